// The scripted player for a vector of matches.
#pragma once

#include <vector>

#include "../../python/object.h"
#include "../shoal_kernel.h"

namespace shoal {

class ScriptedPlayers {
 public:
  /// `seed`: 32-bit words, lowest first. Each player has a separate generator.
  ScriptedPlayers(size_t count, std::vector<uint32_t> seed);

  /// Resets the generators with another seed.
  void seed(std::vector<uint32_t> seed);

  /// Saves the state of the players as bytes, and restores it.
  nb::bytes save() const;
  void restore(nb::bytes saved);

  /// Writes the action of each player, four float32, for its observation, 18 float32. `is_weak` has
  /// a byte per player. All three are NumPy arrays, whose rows need not be contiguous.
  void act(nb::handle observations, nb::handle is_weak, nb::handle actions);

 private:
  struct Player {
    shoal_random random;
    float phase;
  };

  std::vector<Player> players_;
};

}  // namespace shoal
