// Environments that are a table: for each state and action, what may come of it and how likely.
//
// FrozenLake, CliffWalking and Taxi are that, and give their tables themselves (`env.P`).
#pragma once

#include <memory>
#include <vector>

#include "../shoal_kernel.h"

namespace shoal {

/// What the pictures of a table show.
enum class Scenery { kGrid, kTaxi };

struct Table {
  int64_t states, actions;
  // For state s and action a the outcomes starts[s * actions + a] up to the next start.
  std::vector<int64_t> starts;
  std::vector<double> cumulative;  // probabilities, added up from the first outcome on
  std::vector<double> probabilities;
  std::vector<int64_t> next;
  std::vector<double> rewards;
  std::vector<uint8_t> terminated;
  std::vector<double> initial;       // probabilities of states to begin in, added up
  std::vector<int8_t> action_masks;  // for each state `actions` of them, or none at all
  // Of a taxi with a passenger who may change their mind on the first move; negative for none.
  double fickle_probability;

  Scenery scenery;
  int rows, columns;
  std::vector<char> cells;  // a letter for each cell of the grid
  int width, height, frames_per_second;
};

/// A kernel together with the table that it works on.
class TableKernel {
 public:
  explicit TableKernel(Table table);
  const shoal_kernel& kernel() const { return kernel_; }

 private:
  Table table_;
  shoal_kernel kernel_;
};

}  // namespace shoal
