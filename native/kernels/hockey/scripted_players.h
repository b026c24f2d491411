// The scripted player for many matches at once.
#pragma once

#include <vector>

#include "../../python/object.h"
#include "../shoal_kernel.h"

namespace shoal {

class ScriptedPlayers {
 public:
  /// `seed` is a number in 32-bit words, the lowest first; every player draws numbers of its own.
  ScriptedPlayers(size_t count, std::vector<uint32_t> seed);

  /// Begins anew, with another seed.
  void seed(std::vector<uint32_t> seed);

  /// All that they remember, as bytes; and the way back.
  nb::bytes save() const;
  void restore(nb::bytes saved);

  /// Writes what each player does, four float32, where it sees its row of 18 float32. `is_weak` has
  /// a byte for each. All three are arrays of NumPy's, whose rows may lie apart.
  void act(nb::handle observations, nb::handle is_weak, nb::handle actions);

 private:
  struct Player {
    shoal_random random;
    float phase;
  };

  std::vector<Player> players_;
};

}  // namespace shoal
