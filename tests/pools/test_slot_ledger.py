"""The slot ledger behaves like a plain Python model of it, in any order of calls."""

import numpy as np
import pytest
from gymnasium.error import AlreadyPendingCallError, NoAsyncCallError
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from shoal._native import SlotLedger
from shoal.errors import SlotInFlightError

NUM_SLOTS = 6
SLOTS = st.lists(st.integers(0, NUM_SLOTS - 1), unique=True)
REQUESTS = st.integers(0, 3)


def numbers(slots):
    return np.array(slots, np.int64)


class LedgerComparison(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.ledger = SlotLedger(NUM_SLOTS)
        self.requests = {}  # of slots in flight, in the order of sending
        self.done = []  # in the order of completion

    @rule(slots=SLOTS, request=REQUESTS)
    def send(self, slots, request):
        busy = [slot for slot in slots if slot in self.requests]
        if busy:
            with pytest.raises(SlotInFlightError, match=f"slot {busy[0]} is in flight"):
                self.ledger.check_idle(numbers(slots))
            return
        self.ledger.check_idle(numbers(slots))
        self.ledger.mark_in_flight(numbers(slots), request)
        self.requests.update(dict.fromkeys(slots, request))

    @rule(slots=SLOTS, request=REQUESTS)
    def finish(self, slots, request):
        due = [
            slot for slot in slots if self.requests.get(slot) == request and slot not in self.done
        ]
        rows = self.ledger.due(numbers(slots), request)
        assert [slots[row] for row in rows] == due
        self.ledger.mark_done(numbers(slots), request)
        self.done += due

    @rule(slots=SLOTS)
    def receive(self, slots):
        self.ledger.clear(numbers(slots))
        for slot in slots:
            self.requests.pop(slot, None)
        self.done = [slot for slot in self.done if slot not in slots]

    @rule(slots=SLOTS, request=REQUESTS)
    def reassign(self, slots, request):
        self.ledger.reassign(numbers(slots), request)
        for slot in slots:
            if slot in self.requests and slot not in self.done:
                self.requests[slot] = request

    @rule(least=st.integers(0, NUM_SLOTS + 1), most=st.none() | st.integers(0, NUM_SLOTS + 1))
    def receive_some(self, least, most):
        if not self.requests:
            with pytest.raises(NoAsyncCallError, match="no reset or step is in flight"):
                self.ledger.wanted(least, most, None)
        elif not 1 <= least <= len(self.requests):
            with pytest.raises(ValueError, match=f"min_slots is {least}, but"):
                self.ledger.wanted(least, most, None)
        else:
            wanted = self.ledger.wanted(least, most, None)
            assert self.ledger.missing(wanted) == max(0, least - len(self.done))
            if self.ledger.missing(wanted) == 0:
                count = NUM_SLOTS if most is None else max(least, most)
                assert self.ledger.select(wanted).tolist() == self.done[:count]

    @rule(slots=SLOTS)
    def receive_these(self, slots):
        idle = [slot for slot in slots if slot not in self.requests]
        if self.requests and idle:
            with pytest.raises(NoAsyncCallError, match=f"slot {idle[0]} is not in flight"):
                self.ledger.wanted(None, None, numbers(slots))
        elif self.requests:
            wanted = self.ledger.wanted(None, None, numbers(slots))
            assert self.ledger.missing(wanted) == len(set(slots) - set(self.done))
            assert self.ledger.select(wanted).tolist() == slots

    @rule()
    def discard(self):
        self.ledger.clear_all()
        self.requests.clear()
        self.done.clear()

    @invariant()
    def agrees_with_the_model(self):
        ledger = self.ledger
        assert ledger.in_flight == len(self.requests)
        assert ledger.done == len(self.done)
        assert ledger.slots_in_flight().tolist() == list(self.requests)
        assert ledger.awaited().tolist() == [s for s in self.requests if s not in self.done]
        for request in range(4):
            of_request = [s for s, number in self.requests.items() if number == request]
            assert ledger.slots_in_flight(request).tolist() == of_request
            assert ledger.awaited(request).tolist() == [s for s in of_request if s not in self.done]
        if self.requests:
            everything = ledger.wanted(None, None, None)
            assert ledger.select(everything).tolist() == list(self.requests)


LedgerComparison.TestCase.settings = settings(max_examples=60, deadline=None)
TestLedgerComparison = LedgerComparison.TestCase


def test_during_a_round_every_slot_is_in_flight():
    ledger = SlotLedger(3)
    with pytest.raises(NoAsyncCallError, match="no step of all slots is in flight"):
        ledger.check_round()
    ledger.begin_round(7)
    ledger.check_round()
    assert (ledger.is_in_round, ledger.round_request, ledger.in_flight) == (True, 7, 3)
    with pytest.raises(AlreadyPendingCallError, match="slot 1 is in flight"):
        ledger.check_idle(numbers([1]))
    ledger.end_round()
    assert ledger.in_flight == 0
    ledger.check_idle(None)


def test_a_split_round_leaves_its_slots_in_flight_under_its_request():
    ledger = SlotLedger(3)
    ledger.begin_round(7)
    ledger.split_round()
    assert not ledger.is_in_round
    assert ledger.awaited(7).tolist() == [0, 1, 2]
    ledger.mark_done(numbers([2]), 7)
    ledger.clear(numbers([2]))
    assert ledger.slots_in_flight().tolist() == [0, 1]


def test_receiving_a_slot_ends_the_round():
    ledger = SlotLedger(2)
    ledger.mark_in_flight(None)
    ledger.begin_round()
    ledger.mark_done(numbers([1]))
    ledger.clear(numbers([1]))
    assert not ledger.is_in_round
    assert ledger.in_flight == 1


def test_slots_out_of_range_are_refused():
    with pytest.raises(IndexError, match="slot 2 is out of range"):
        SlotLedger(2).mark_in_flight(numbers([2]))
