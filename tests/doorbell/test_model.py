"""A model check of the doorbell's protocol: no interleaving loses a wake-up.

The programs below are those of native/doorbell/bell.h and board.cpp, one atomic operation per step.
A state in which no party can continue, but not all are done, is a lost wake-up. Programs with two
operations exchanged show that the search finds such states.
"""

from dataclasses import dataclass, replace

import pytest


@dataclass(frozen=True)
class State:
    """The shared words, and the program counter of each party."""

    generation: int = 0
    sleepers: int = 0
    target: int = 0
    completed: int = 0
    finished: int = 0  # slots that the caller can see
    posted: int = 0
    taken: int = 0
    rounds: tuple = ()  # by party: how many it has finished
    places: tuple = ()  # by party: the number of its next operation
    notes: tuple = ()  # by party: the value that it has read
    asleep: frozenset = frozenset()

    def at(self, party, place, note=None, **changes):
        places, notes = list(self.places), list(self.notes)
        places[party] = place
        if note is not None:
            notes[party] = note
        return replace(self, places=tuple(places), notes=tuple(notes), **changes)


DONE = 99


def ring(state, party, place, after):
    """Bell::ring, in three operations starting at `place`."""
    match state.places[party] - place:
        case 0:
            return state.at(party, place + 1, generation=state.generation + 1)
        case 1:
            return state.at(party, place + 2 if state.sleepers > 0 else after)
        case 2:
            woken = dict.fromkeys(state.asleep, 50)
            places = tuple(woken.get(k, spot) for k, spot in enumerate(state.places))
            return replace(state, places=places, asleep=frozenset()).at(party, after)


class Worker:
    """Board::finish: publish a slot, add to the count, and ring if that reaches the target."""

    def __init__(self, publishes_first=True):
        self._publishes_first = publishes_first

    def step(self, state, party):
        place = state.places[party]
        if place in (0, 1):
            if (place == 0) == self._publishes_first:
                return state.at(party, place + 1, finished=state.finished + 1)
            before = state.completed
            return state.at(party, place + 1, note=before, completed=before + 1)
        if place == 2:
            reaches = state.target == state.notes[party] + 1
            return state.at(party, 10 if reaches else DONE)
        return ring(state, party, 10, DONE)


class Caller:
    """Board::wait, repeated until enough slots are finished."""

    def __init__(self, wanted, order=("target", "seen", "look")):
        self._wanted = wanted
        self._order = order

    def step(self, state, party):
        place = state.places[party]
        if place < len(self._order):
            return getattr(self, f"_{self._order[place]}")(state, party, place + 1)
        if place == len(self._order):
            return state.at(party, place + 1, sleepers=state.sleepers + 1)
        if place == len(self._order) + 1:  # the futex compares and sleeps atomically
            if state.generation != state.notes[party]:
                return state.at(party, 50)
            return replace(state.at(party, 40), asleep=state.asleep | {party})
        if place == 50:
            return state.at(party, 0, sleepers=state.sleepers - 1)
        return None  # asleep

    def _target(self, state, party, after):
        return state.at(party, after, target=self._wanted)

    def _seen(self, state, party, after):
        return state.at(party, after, note=state.generation)

    def _look(self, state, party, after):
        return state.at(party, DONE if state.finished >= self._wanted else after)


class RoundCaller(Caller):
    """Rounds of one slot for each worker: post, wait and take, repeatedly.

    With ``corrects`` it corrects the workers' count before every round, which is wrong: a worker
    may have reported a slot that it has not counted yet.
    """

    def __init__(self, workers, rounds, corrects):
        super().__init__(workers)
        self._workers = workers
        self._rounds = rounds
        self._corrects = corrects

    def step(self, state, party):
        if state.places[party] != 0 or state.posted > state.taken:
            after = super().step(state, party)
            if after is not None and after.places[party] == DONE:
                place = DONE if state.posted == self._rounds * self._workers else 0
                return after.at(party, place, taken=state.posted)
            return after
        changes = {"completed": state.taken} if self._corrects else {}
        return state.at(party, 0, posted=state.posted + self._workers, **changes)

    def _target(self, state, party, after):
        return state.at(party, after, target=state.taken + self._workers)

    def _look(self, state, party, after):
        enough = state.finished >= state.taken + self._workers
        return state.at(party, DONE if enough else after)


class RoundWorker(Worker):
    """Finishes a slot in every round, as soon as it is posted."""

    def __init__(self, workers, rounds):
        super().__init__()
        self._workers = workers
        self._rounds = rounds

    def step(self, state, party):
        done = state.rounds[party]
        if state.places[party] == 0 and state.posted <= done * self._workers:
            return None  # the bell for tasks is tested separately
        after = super().step(state, party)
        if after.places[party] != DONE:
            return after
        rounds = list(after.rounds)
        rounds[party] = done + 1
        place = DONE if done + 1 == self._rounds else 0
        return after.at(party, place, rounds=tuple(rounds))


class Poster:
    """Board::post and ring: post a task, then ring."""

    def __init__(self, rings_first=False):
        self._rings_first = rings_first

    def step(self, state, party):
        place = state.places[party]
        if self._rings_first:
            if place < 3:
                return ring(state, party, 0, 3)
            return state.at(party, DONE, finished=state.finished + 1)
        if place == 0:
            return state.at(party, 1, finished=state.finished + 1)
        return ring(state, party, 1, DONE)


def stuck_states(parties):
    """Return all reachable states in which no party can continue but not all are done."""
    nothing = (0,) * len(parties)
    start = State(places=nothing, notes=nothing, rounds=nothing)
    visited, pending, stuck = {start}, [start], []
    while pending:
        state = pending.pop()
        following = [
            after
            for party, program in enumerate(parties)
            if state.places[party] != DONE and (after := program.step(state, party)) is not None
        ]
        if not following and any(place != DONE for place in state.places):
            stuck.append(state)
        for after in following:
            if after not in visited:
                visited.add(after)
                pending.append(after)
    return stuck, len(visited)


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_caller_is_woken_by_its_workers(workers):
    for wanted in range(1, workers + 1):
        stuck, searched = stuck_states([Caller(wanted), *[Worker() for _ in range(workers)]])
        assert searched > 20
        assert stuck == []


def rounds_of(workers, rounds, corrects):
    return [
        RoundCaller(workers, rounds, corrects),
        *[RoundWorker(workers, rounds) for _ in range(workers)],
    ]


@pytest.mark.parametrize(("workers", "rounds"), [(1, 4), (2, 3)])
def test_repeated_rounds_lose_no_wake_up(workers, rounds):
    stuck, searched = stuck_states(rounds_of(workers, rounds, corrects=False))
    assert searched > 100
    assert stuck == []


@pytest.mark.parametrize("posters", [1, 2])
def test_workers_are_woken_by_new_tasks(posters):
    waiters = [Caller(posters, order=("seen", "look")) for _ in range(2)]
    stuck, searched = stuck_states([*waiters, *[Poster() for _ in range(posters)]])
    assert searched > 50
    assert stuck == []


@pytest.mark.parametrize(
    ("parties", "mistake"),
    [
        (
            [Caller(1, order=("target", "look", "seen")), Worker()],
            "checks before it reads the generation",
        ),
        (
            [Caller(1, order=("seen", "look", "target")), Worker()],
            "sets the target after checking",
        ),
        ([Caller(2), Worker(False), Worker(False)], "counts a slot before it publishes it"),
        ([Caller(1, order=("seen", "look")), Poster(rings_first=True)], "rings before it posts"),
        (rounds_of(1, 3, corrects=True), "corrects a count while a worker is counting"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_search_finds_a_mistake(parties, mistake):
    stuck, _ = stuck_states(parties)
    assert stuck != [], f"no wake-up is lost although a party {mistake}"
