// The fast path of both ends: a step of all slots that consists of tensors only, in one call.
//
// Everything else (infos, failures, other requests) stays in the port for Python to read, so the
// rules of the protocol are implemented once, in Python.
#pragma once

#include "../stepper/intake.h"
#include "header.h"
#include "port.h"

namespace shoal {

/// The message kinds and flags of the fast path; see shoal/remote/_wire.py.
struct FastPathCodes {
  uint8_t step, batch, whole;
};

/// The client's end.
class FastPathClient {
 public:
  FastPathClient(ActionIntake& intake, SlotState& state, const Tree& observations,
                 bool updates_finished, FastPathCodes codes);

  /// Checks the actions, sends them as message `number`, and waits for the response.
  ///
  /// Returns the results. Returns False if the request was sent, but the next message is not a
  /// plain response, or none arrived in time. Returns None if nothing was sent because the actions
  /// do not consist of tensors only.
  nb::object step(Port& port, nb::handle actions, uint64_t number, uint64_t ack,
                  std::optional<double> seconds);

  // The state after the last call. It is valid after an interrupt too, which may arrive before the
  // caller has the results.

  /// The numbers of the newest request that was (at least partly) sent, and of the newest one that
  /// was answered.
  uint64_t last_request() const { return last_request_; }
  uint64_t last_answered() const { return last_answered_; }

  /// The number of the newest message that was received.
  uint64_t last_received() const { return last_received_; }

  /// The results of the newest response; None once the next request is sent.
  nb::object results() const { return nb::borrow(results_ ? results_.get() : Py_None); }

  /// Whether the last call was interrupted in the middle of sending, or of receiving, a message.
  bool is_send_incomplete() const { return is_send_incomplete_; }
  bool is_receive_incomplete() const { return is_receive_incomplete_; }

  /// Microseconds that the server spent on the last response.
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
  const bool updates_finished_;
  const FastPathCodes codes_;
  uint64_t request_bytes_ = 0, response_bytes_ = 0;
  uint64_t last_request_ = 0, last_answered_ = 0, last_received_ = 0;
  Ref results_;
  bool is_send_incomplete_ = false, is_receive_incomplete_ = false;
  uint32_t micros_ = 0;
  UserBanks banks_;
};

/// The server's end.
class FastPathServer {
 public:
  FastPathServer(const Tree& actions, const Tree& observations, Py_ssize_t rows,
                 FastPathCodes codes);

  /// Waits for the request that follows message `received`.
  ///
  /// Returns its number and the actions. Returns False if the next message is not a plain request;
  /// it is not consumed. Returns None after the timeout.
  nb::object receive(Port& port, uint64_t received, std::optional<double> seconds);

  /// Sends results as message `number`. Returns False, and sends nothing, if they do not consist of
  /// tensors only.
  bool respond(Port& port, nb::tuple results, uint64_t number, uint64_t reply_to, uint32_t micros);

 private:
  const Tree& actions_;
  const Tree& observations_;
  const Py_ssize_t rows_;
  const FastPathCodes codes_;
  uint64_t request_bytes_ = 0, response_bytes_ = 0;
  Columns received_;
};

}  // namespace shoal
