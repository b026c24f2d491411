"""Both shapes do what a plain loop over PettingZoo environments does, on every pool."""

from functools import partial

import numpy as np
import pettingzoo
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space, iterate

from shoal.pettingzoo import make
from shoal.testing import assert_identical
from shoal.vector.wrappers._base import batch_of
from tests.pettingzoo.environments import AGENTS, Crowd
from tests.pettingzoo.plain import PlainLoop, column

NUM_ENVS, STEPS = 3, 40
POOLS = {
    "inline": {"backend": "inline"},
    "thread": {"backend": "thread", "workers": 2},
    "process": {"backend": "process", "workers": 2, "start": "fork"},
    "ray": {"backend": "ray", "workers": 2, "cpus_per_worker": 0.25, "worker_backend": "inline"},
}
EVERY_POOL = ["inline", "thread", "process", pytest.param("ray", marks=pytest.mark.slow)]
SHAPED = {"reward": 1, "terminated": 2, "truncated": 3}


@pytest.fixture(autouse=True)
def ray_where_it_is_asked_for(request):
    callspec = getattr(request.node, "callspec", None)
    if callspec is not None and callspec.params.get("pool") == "ray":
        request.getfixturevalue("ray_here")


def loops(make_env, mode):
    return PlainLoop([make_env() for _ in range(NUM_ENVS)], mode)


def assert_rows(space, got, infos, expected):
    """Compare one batch, and its infos in the form of a list, with rows of the plain loop."""
    observations, *arrays = got
    assert_identical(observations, batch_of(space, [row["observation"] for row in expected]))
    for key, array in zip(SHAPED, arrays, strict=True):
        assert_identical(array, column(expected, key))
    for info, row in zip(infos, expected, strict=True):
        ours = dict(info)
        assert ours.pop("alive") is row["alive"]
        assert ("final_obs" in ours) == ("final_obs" in row)
        if "final_obs" in row:
            wanted = row["final_obs"]
            assert_identical(batch_of(space, [ours.pop("final_obs")]), batch_of(space, [wanted]))
            assert_identical(ours.pop("final_info"), row["final_info"])
        assert_identical(ours, row["info"])


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize("pool", EVERY_POOL)
def test_agents_times_environments_are_a_plain_loop(pool, mode):
    plain = loops(Crowd, mode)
    envs = make(Crowd, NUM_ENVS, autoreset_mode=mode, info_format="list", **POOLS[pool])
    space = envs.single_observation_space

    def flat(teams):
        return [team[agent] for team in teams for agent in AGENTS]

    def compare(got, teams):
        expected = flat(teams)
        assert_rows(space, got[:4], got[4], expected)
        assert_identical(envs.alive, column(expected, "alive"))

    with envs:
        nothing = (np.zeros(9), np.zeros(9, np.bool_), np.zeros(9, np.bool_))
        observations, infos = envs.reset(seed=5, options={"a": 1})
        teams = plain.reset([5, 6, 7], {"a": 1})
        compare((observations, *nothing, infos), teams.values())
        envs.action_space.seed(0)
        for _ in range(STEPS):
            actions = envs.action_space.sample()
            acts = [dict(zip(AGENTS, row, strict=True)) for row in actions.reshape(-1, 3)]
            got, teams = envs.step(actions), plain.step(acts)
            compare(got, teams)
            if mode is AutoresetMode.DISABLED and any(plain.over):
                over = [number for number in range(NUM_ENVS) if plain.over[number]]
                observations, infos = envs.reset(options={"reset_mask": got[2] | got[3]})
                for number, team in plain.reset([None] * 3, only=over).items():
                    teams[number] = team
                rows = flat(teams)
                assert_identical(
                    observations, batch_of(space, [row["observation"] for row in rows])
                )
                assert_identical(envs.alive, column(rows, "alive"))
                assert [bool(info) for info in infos] == np.isin(np.arange(9) // 3, over).tolist()


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize(
    ("pool", "copies"), [(pool, True) for pool in POOLS] + [("inline", False), ("thread", False)]
)
def test_a_dict_of_batches_is_a_plain_loop(pool, mode, copies):
    make_env = partial(Crowd, mixed=True)
    plain = loops(make_env, mode)
    envs = make(
        make_env,
        NUM_ENVS,
        shape="dict",
        autoreset_mode=mode,
        info_format="list",
        copy=copies,
        **POOLS[pool],
    )

    def compare(got, teams):
        for agent in AGENTS:
            rows = [team[agent] for team in teams]
            *parts, infos = (part[agent] for part in got)
            assert_rows(envs.observation_space(agent), parts, infos, rows)
            assert_identical(envs.alive[agent], column(rows, "alive"))

    with envs:
        observations, infos = envs.reset(seed=5)
        flags = dict.fromkeys(AGENTS, np.zeros(3, np.bool_))
        teams = plain.reset([5, 6, 7])
        compare(
            (observations, dict.fromkeys(AGENTS, np.zeros(3)), flags, flags, infos),
            [*teams.values()],
        )
        for agent in AGENTS:
            envs.batched_action_space(agent).seed(1)
        for _ in range(STEPS):
            actions = {agent: envs.batched_action_space(agent).sample() for agent in AGENTS}
            listed = {
                agent: list(iterate(envs.batched_action_space(agent), actions[agent]))
                for agent in AGENTS
            }
            acts = [{agent: listed[agent][number] for agent in AGENTS} for number in range(3)]
            got, teams = envs.step(actions), plain.step(acts)
            compare(got, teams)
            if mode is AutoresetMode.DISABLED and any(plain.over):
                over = np.array(plain.over)
                observations, infos = envs.reset(options={"reset_mask": over})
                for number, team in plain.reset([None] * 3, only=np.flatnonzero(over)).items():
                    teams[number] = team
                for agent in AGENTS:
                    rows = [team[agent]["observation"] for team in teams]
                    expected = batch_of(envs.observation_space(agent), rows)
                    assert_identical(observations[agent], expected)
                    assert [bool(info) for info in infos[agent]] == over.tolist()


@pytest.mark.parametrize("pool", EVERY_POOL)
def test_an_environment_that_comes_with_pettingzoo(pool):
    """Rock, paper, scissors is an AEC environment with a parallel one made of it."""
    mode = AutoresetMode.SAME_STEP
    make_env = partial(pettingzoo.make, "parallel", "classic/rps-v2", max_cycles=6)
    plain = loops(make_env, mode)
    agents = plain.agents
    with make(make_env, NUM_ENVS, autoreset_mode=mode, info_format="list", **POOLS[pool]) as envs:
        envs.reset(seed=1)
        plain.reset([1, 2, 3])
        envs.action_space.seed(2)
        for _ in range(20):
            actions = envs.action_space.sample()
            got = envs.step(actions)
            teams = plain.step(
                [dict(zip(agents, row, strict=True)) for row in actions.reshape(-1, 2)]
            )
            rows = [team[agent] for team in teams for agent in agents]
            assert_rows(envs.single_observation_space, got[:4], got[4], rows)


@pytest.mark.parametrize("shape", ["batch", "dict"])
def test_environments_that_are_sent_and_received_by_themselves(shape):
    """Whatever order they come in, each does what it does among all."""
    options = {"shape": shape, "seeding": "independent"}
    together, apart = (make(Crowd, 4, **options, backend=b) for b in ("inline", "process"))
    with together, apart:
        assert_identical(together.reset(seed=3), apart.reset(seed=3))
        for step in range(20):
            if shape == "batch":
                together.action_space.seed(step)
                actions = together.action_space.sample()
                expected = together.step(actions)
                for slots in ([3, 1], [0, 2]):
                    rows = apart.slots_of(slots)
                    apart.send(actions[rows], rows)
                found = [apart.recv(min_slots=3) for _ in range(2)]
                found += [apart.recv()] if sum(len(one.slots) for one in found) < 12 else []
                assert sorted(np.concatenate([one.slots for one in found])) == list(range(12))
                for one in found:
                    assert_identical(one.rewards, expected[1][one.slots])
                    assert_identical(one.truncated, expected[3][one.slots])
                    assert_identical(one.infos["alive"], expected[4]["alive"][one.slots])
                    shown = {key: part[one.slots] for key, part in expected[0].items()}
                    assert_identical(one.observations, shown)
            else:
                actions = {}
                for agent in AGENTS:
                    space = batch_space(together.action_space(agent), 4)
                    space.seed(step)
                    actions[agent] = space.sample()
                expected = together.step(actions)
                for slots in ([3, 1], [0, 2]):
                    apart.send({agent: acts[slots] for agent, acts in actions.items()}, slots)
                for slots in ([0, 1], [3, 2]):
                    one = apart.recv(slots=slots)
                    for agent in AGENTS:
                        assert_identical(one.rewards[agent], expected[1][agent][slots])
                        assert_identical(one.terminations[agent], expected[2][agent][slots])
                        assert_identical(one.alive[agent], together.alive[agent][slots])
                        shown = {key: part[slots] for key, part in expected[0][agent].items()}
                        assert_identical(one.observations[agent], shown)
