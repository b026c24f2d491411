// A worker's side of a crew: does what stands on the board, with a stepper.
#pragma once

#include "../stepper/stepper.h"
#include "entry.h"

namespace shoal {

class Hand {
 public:
  /// The worker with this number drives the slots [first, last).
  Hand(nb::handle board, nb::handle stepper, nb::handle actions, nb::list banks, int worker,
       Py_ssize_t first, Py_ssize_t last);

  /// Does tasks until there is something for Python to do, and returns that: None for a message to
  /// read, or (slot or None for the share, number of the bank, infos, exception or None) for an
  /// outcome of which the board can only tell a part.
  nb::object serve();

  /// Steps slots, or resets them where there are seeds, outside of `serve`; returns infos.
  nb::object drive(nb::handle slots, Py_ssize_t bank, nb::handle seeds, nb::handle options);

  /// Tells the caller that a slot (None: the share) is done; `has_mail` if a message follows.
  void finish(nb::handle slot, bool has_mail);

  int traverse(visitproc visit, void* arg) const;

 private:
  Ref fill(const Slots& slots, Py_ssize_t bank, PyObject* seeds, PyObject* options);
  Bank& bank(Py_ssize_t number) const;

  Ref board_owner_, stepper_owner_, actions_owner_, banks_;
  Board& board_;
  Stepper& stepper_;
  int worker_;
  Slots share_;
  bool has_objects_;
};

}  // namespace shoal
