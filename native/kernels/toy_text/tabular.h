// Environments that are a table: for each state and action, what may come of it and how likely.
//
// FrozenLake, CliffWalking and Taxi are that, and give their tables themselves (`env.P`).
#pragma once

#include <string>
#include <vector>

#include "../shoal_kernel.h"

namespace shoal {

/// What the pictures of a table show.
enum class TableStyle { kGrid, kTaxi };

/// What may come of an action.
struct Transition {
  double cumulative;  // its probability and those of the transitions before it, added up
  double probability, reward;
  int32_t next;
  bool terminated;
};

struct Table {
  std::string name;
  int64_t states, actions;
  // For state s and action a the transitions starts[s * actions + a] up to the next start.
  std::vector<int32_t> starts;
  std::vector<Transition> transitions;
  std::vector<double> initial;       // probabilities of states to begin in, added up
  std::vector<int8_t> action_masks;  // for each state `actions` of them, or none at all
  // Of a taxi with a passenger who may change their mind on the first move; negative for none.
  double fickle_probability;

  TableStyle style;
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
