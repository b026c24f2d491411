// Tabular environments, defined by the transitions of each state and action and their
// probabilities: FrozenLake, CliffWalking and Taxi. Their tables are Gymnasium's `env.P`.
#pragma once

#include <string>
#include <vector>

#include "../shoal_kernel.h"

namespace shoal {

/// How a tabular environment is rendered.
enum class TableStyle { kGrid, kTaxi };

/// A possible result of an action.
struct Transition {
  double cumulative;  // the sum of the probabilities up to and including this transition
  double probability, reward;
  int32_t next;
  bool terminated;
};

struct Table {
  std::string name;
  int64_t states, actions;
  // The transitions of state s and action a begin at starts[s * actions + a] and end before the
  // next start.
  std::vector<int32_t> starts;
  std::vector<Transition> transitions;
  std::vector<double> initial;       // cumulative probabilities of initial states
  std::vector<int8_t> action_masks;  // `actions` elements per state, or empty
  // The probability that the passenger changes the destination after the first move (Taxi);
  // negative if the environment has no such passenger.
  double fickle_probability;

  TableStyle style;
  int rows, columns;
  std::vector<char> cells;  // a letter per cell, for rendering
  int width, height, frames_per_second;
};

/// A kernel with its table.
class TableKernel {
 public:
  explicit TableKernel(Table table);
  const shoal_kernel& kernel() const { return kernel_; }

 private:
  Table table_;
  shoal_kernel kernel_;
};

}  // namespace shoal
