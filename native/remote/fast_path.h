// The common case of both ends, in one call each: a step of all slots that is nothing but tensors.
//
// Whatever else comes, infos, failures, other requests, is left where it is for Python to read; so
// all of the protocol's rules stand in one place, and here stands only what is fast.
#pragma once

#include "../stepper/intake.h"
#include "header.h"
#include "port.h"

namespace shoal {

/// The numbers of the kinds and flags that are spoken of here.
struct FastPathState {
  uint8_t step, batch, whole, in_tray;
};

/// The client's end.
class FastPathClient {
 public:
  FastPathClient(ActionIntake& intake, SlotState& state, const Tree& observations,
                 bool notes_endings, FastPathState words);

  /// Checks actions, sends them as message `number`, and waits for the answer.
  ///
  /// Returns the results; or False if the request was sent, and something else than a plain answer,
  /// or nothing in time, has come; or None if nothing was sent, since the actions are not plain.
  nb::object step(Port& port, nb::handle actions, uint64_t number, uint64_t ack,
                  std::optional<double> seconds);

  /// The observations that lie in the tray of request `about`, copied: an array for each leaf.
  /// Raises ProtocolError if it has offered none.
  nb::object from_tray(uint64_t about) const;

  /// Before a fork; see Trays.
  void part_from_held() { trays_.part_from_held(); }

  // Where it stands, also after an interrupt, which may come before the caller has the results.

  /// The number of the newest request that was begun to be sent, and of the newest answered one.
  uint64_t newest() const { return newest_; }
  uint64_t answered() const { return answered_; }

  /// The number of the newest message that was received.
  uint64_t received() const { return received_; }

  /// The results of the newest answer; nothing after the next request was begun.
  nb::object results() const { return nb::borrow(results_ ? results_.get() : Py_None); }

  /// Whether the last call was interrupted in the middle of a message: in sending one, or inside
  /// one that it received.
  bool is_torn() const { return is_torn_; }
  bool is_inside() const { return is_inside_; }

  /// Microseconds that the server has told to have spent on the last answer.
  uint32_t micros() const { return micros_; }

  int traverse(visitproc visit, void* arg) const {
    Py_VISIT(results_.get());
    return banks_.traverse(visit, arg);
  }

 private:
  bool is_plain(const Header& header, uint64_t number, uint64_t ack) const;

  ActionIntake& intake_;
  SlotState& state_;
  const Tree& observations_;
  const bool notes_endings_;
  const FastPathState words_;
  uint64_t request_bytes_ = 0, answer_bytes_ = 0;
  uint64_t newest_ = 0, answered_ = 0, received_ = 0;
  Ref results_;
  bool is_torn_ = false, is_inside_ = false;
  uint32_t micros_ = 0;
  UserBanks banks_;
  Trays trays_;
  uint8_t offered_ = 0;  // the tray of the newest request
};

/// The server's end.
class FastPathServer {
 public:
  FastPathServer(const Tree& actions, const Tree& observations, Py_ssize_t rows,
                 FastPathState words);

  /// Waits for a request after message `received`.
  ///
  /// Returns its number and the actions; or False if something else has come, which stays to be
  /// received; or None when the time is over.
  nb::object next(Port& port, uint64_t received, std::optional<double> seconds);

  /// Sends results as message `number`; returns False, and sends nothing, if they are not plain.
  bool answer(Port& port, nb::tuple results, uint64_t number, uint64_t about, uint32_t micros);

  /// Bytes of a tray that the observations of all slots fit into; 0 where it is not worth it.
  size_t tray_bytes() const { return plan_.bytes(); }

 private:
  const Tree& actions_;
  const Tree& observations_;
  const Py_ssize_t rows_;
  const FastPathState words_;
  const TrayPlan plan_;
  uint64_t request_bytes_ = 0, answer_bytes_ = 0;
  Columns received_;
  uint8_t offered_ = 0;  // the tray that the newest request has named
};

}  // namespace shoal
