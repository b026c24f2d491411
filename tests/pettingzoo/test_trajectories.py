"""Both shapes give the results of a plain loop over PettingZoo environments, on every pool."""

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
def ray_for_ray_pools(request):
    callspec = getattr(request.node, "callspec", None)
    if callspec is not None and callspec.params.get("pool") == "ray":
        request.getfixturevalue("ray_here")


def plain_loop(make_env, mode):
    return PlainLoop([make_env() for _ in range(NUM_ENVS)], mode)


def assert_rows(space, actual, infos, expected):
    """Compare a batch and its infos in list format with rows of the plain loop."""
    observations, *arrays = actual
    assert_identical(observations, batch_of(space, [row["observation"] for row in expected]))
    for key, array in zip(SHAPED, arrays, strict=True):
        assert_identical(array, column(expected, key))
    for info, row in zip(infos, expected, strict=True):
        ours = dict(info)
        assert ours.pop("alive") is row["alive"]
        assert ("final_obs" in ours) == ("final_obs" in row)
        if "final_obs" in row:
            final = row["final_obs"]
            assert_identical(batch_of(space, [ours.pop("final_obs")]), batch_of(space, [final]))
            assert_identical(ours.pop("final_info"), row["final_info"])
        assert_identical(ours, row["info"])


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize("pool", EVERY_POOL)
def test_batch_shape_equals_a_plain_loop(pool, mode):
    plain = plain_loop(Crowd, mode)
    envs = make(Crowd, NUM_ENVS, autoreset_mode=mode, info_format="list", **POOLS[pool])
    space = envs.single_observation_space

    def flat(teams):
        return [team[agent] for team in teams for agent in AGENTS]

    def compare(actual, teams):
        expected = flat(teams)
        assert_rows(space, actual[:4], actual[4], expected)
        assert_identical(envs.alive, column(expected, "alive"))

    with envs:
        zeros = (np.zeros(9), np.zeros(9, np.bool_), np.zeros(9, np.bool_))
        observations, infos = envs.reset(seed=5, options={"a": 1})
        teams = plain.reset([5, 6, 7], {"a": 1})
        compare((observations, *zeros, infos), teams.values())
        envs.action_space.seed(0)
        for _ in range(STEPS):
            actions = envs.action_space.sample()
            acts = [dict(zip(AGENTS, row, strict=True)) for row in actions.reshape(-1, 3)]
            actual, teams = envs.step(actions), plain.step(acts)
            compare(actual, teams)
            if mode is AutoresetMode.DISABLED and any(plain.over):
                over = [number for number in range(NUM_ENVS) if plain.over[number]]
                observations, infos = envs.reset(options={"reset_mask": actual[2] | actual[3]})
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
def test_dict_shape_equals_a_plain_loop(pool, mode, copies):
    make_env = partial(Crowd, mixed=True)
    plain = plain_loop(make_env, mode)
    envs = make(
        make_env,
        NUM_ENVS,
        shape="dict",
        autoreset_mode=mode,
        info_format="list",
        copy=copies,
        **POOLS[pool],
    )

    def compare(actual, teams):
        for agent in AGENTS:
            rows = [team[agent] for team in teams]
            *parts, infos = (part[agent] for part in actual)
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
            actual, teams = envs.step(actions), plain.step(acts)
            compare(actual, teams)
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
def test_rock_paper_scissors_equals_a_plain_loop(pool):
    """This environment of PettingZoo is an AEC environment converted to a parallel one."""
    mode = AutoresetMode.SAME_STEP
    make_env = partial(pettingzoo.make, "parallel", "classic/rps-v2", max_cycles=6)
    plain = plain_loop(make_env, mode)
    agents = plain.agents
    with make(make_env, NUM_ENVS, autoreset_mode=mode, info_format="list", **POOLS[pool]) as envs:
        envs.reset(seed=1)
        plain.reset([1, 2, 3])
        envs.action_space.seed(2)
        for _ in range(20):
            actions = envs.action_space.sample()
            actual = envs.step(actions)
            teams = plain.step(
                [dict(zip(agents, row, strict=True)) for row in actions.reshape(-1, 2)]
            )
            rows = [team[agent] for team in teams for agent in agents]
            assert_rows(envs.single_observation_space, actual[:4], actual[4], rows)


@pytest.mark.parametrize("shape", ["batch", "dict"])
def test_send_and_recv_of_single_environments(shape):
    """Results do not depend on the order in which environments are sent and received."""
    options = {"shape": shape, "seeding": "independent"}
    reference, envs = (make(Crowd, 4, **options, backend=b) for b in ("inline", "process"))
    with reference, envs:
        assert_identical(reference.reset(seed=3), envs.reset(seed=3))
        for step in range(20):
            if shape == "batch":
                reference.action_space.seed(step)
                actions = reference.action_space.sample()
                expected = reference.step(actions)
                for slots in ([3, 1], [0, 2]):
                    rows = envs.slots_of(slots)
                    envs.send(actions[rows], rows)
                batches = [envs.recv(min_slots=3) for _ in range(2)]
                batches += [envs.recv()] if sum(len(batch.slots) for batch in batches) < 12 else []
                assert sorted(np.concatenate([batch.slots for batch in batches])) == list(range(12))
                for batch in batches:
                    assert_identical(batch.rewards, expected[1][batch.slots])
                    assert_identical(batch.truncated, expected[3][batch.slots])
                    assert_identical(batch.infos["alive"], expected[4]["alive"][batch.slots])
                    observations = {key: part[batch.slots] for key, part in expected[0].items()}
                    assert_identical(batch.observations, observations)
            else:
                actions = {}
                for agent in AGENTS:
                    space = batch_space(reference.action_space(agent), 4)
                    space.seed(step)
                    actions[agent] = space.sample()
                expected = reference.step(actions)
                for slots in ([3, 1], [0, 2]):
                    envs.send({agent: acts[slots] for agent, acts in actions.items()}, slots)
                for slots in ([0, 1], [3, 2]):
                    batch = envs.recv(slots=slots)
                    for agent in AGENTS:
                        assert_identical(batch.rewards[agent], expected[1][agent][slots])
                        assert_identical(batch.terminations[agent], expected[2][agent][slots])
                        assert_identical(batch.alive[agent], reference.alive[agent][slots])
                        rows = {key: part[slots] for key, part in expected[0][agent].items()}
                        assert_identical(batch.observations[agent], rows)
