// The slot ledger: which slots of a pool are in flight, and which of those are done.
//
//   idle --mark_in_flight--> in flight --mark_done--> done --clear--> idle
//
// Pools keep this state only here. A round, a step of every slot, is one entry: its slots are not
// marked one by one. All calls need the GIL, and each either does all of its work or raises and
// changes nothing, so an interrupt between two calls leaves the ledger consistent.
#pragma once

#include <optional>

#include "../layout/codec.h"
#include "slot_list.h"

namespace shoal {

class SlotLedger {
 public:
  /// What `recv` waits for: these slots, or between `least` and `most` of the slots in flight.
  struct Wanted {
    std::vector<int64_t> slots;
    bool by_count;
    size_t least, most;
  };

  explicit SlotLedger(Py_ssize_t num_slots)
      : in_flight_(static_cast<size_t>(num_slots)),
        done_(static_cast<size_t>(num_slots)),
        requests_(static_cast<size_t>(num_slots)) {}

  Py_ssize_t num_slots() const { return static_cast<Py_ssize_t>(requests_.size()); }
  /// How many slots are in flight, done or not; all of them during a round.
  size_t in_flight() const { return is_in_round_ ? requests_.size() : in_flight_.size(); }
  /// How many of them are done.
  size_t done() const { return done_.size(); }
  bool is_in_flight(int64_t slot) const { return is_in_round_ || in_flight_.contains(slot); }
  /// Whether a slot is in flight and not done.
  bool is_awaited(int64_t slot) const { return in_flight_.contains(slot) && !done_.contains(slot); }

  /// Raises SlotInFlightError if one of these slots is in flight.
  void check_idle(const Slots& slots) const;
  /// Raises NoAsyncCallError if one of these slots is not in flight.
  void check_in_flight(const Slots& slots) const;
  /// Raises NoAsyncCallError if no round is open.
  void check_round() const;

  bool is_in_round() const { return is_in_round_; }
  /// The request of the open round.
  int64_t round_request() const { return round_request_; }
  void begin_round(int64_t request = 0) {
    round_request_ = request;
    is_in_round_ = true;
  }
  void end_round() { is_in_round_ = false; }
  /// Turns the open round into its slots, marked one by one under its request.
  void split_round();

  /// Marks slots in flight, in this order. A slot that is in flight already moves to the end.
  void mark_in_flight(const Slots& slots, int64_t request = 0);
  /// Changes the request of those of these slots that are awaited.
  void reassign(const Slots& slots, int64_t request);
  /// Marks a slot done; false, with nothing changed, unless it is awaited under this request.
  bool mark_done(int64_t slot, int64_t request = 0);
  /// Makes slots idle. This ends a round.
  void clear(const Slots& slots);
  void clear_all();

  /// The request that a slot in flight was marked with.
  int64_t request_of(int64_t slot) const { return requests_[static_cast<size_t>(slot)]; }
  /// The slots in flight, in the order in which they were marked.
  const SlotList& slots_in_flight() const { return in_flight_; }
  /// The slots that are done, in the order in which they were marked done.
  const SlotList& slots_done() const { return done_; }

  /// Checks the arguments of `recv` and says what it waits for.
  ///
  /// Raises NoAsyncCallError if nothing, or one of the slots, is not in flight, and ValueError if
  /// fewer slots are in flight than asked for.
  Wanted wanted(std::optional<Py_ssize_t> min_slots, std::optional<Py_ssize_t> max_slots,
                const std::optional<Slots>& slots) const;
  /// How many slots must still become done for this; 0 if nothing is missing.
  size_t missing(const Wanted& wanted) const;
  /// The slots to return for this, in the order of the batch; only while nothing is missing.
  std::vector<int64_t> select(const Wanted& wanted) const;

 private:
  SlotList in_flight_, done_;
  std::vector<int64_t> requests_;
  int64_t round_request_ = 0;
  bool is_in_round_ = false;
};

}  // namespace shoal
