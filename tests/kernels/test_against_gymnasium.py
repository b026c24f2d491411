"""Kernels equal Gymnasium's environments, for the same seeds and for the same states."""

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import shoal
from tests.kernels.reference import (
    EVERY_CASE,
    NUMPY_SINE_DIFFERS,
    both,
    identify,
    same_numbers,
)


def normalized_infos(infos):
    """Normalize infos for comparison: Gymnasium uses 1 instead of 1.0 in some places."""
    if isinstance(infos, dict):
        return {key: normalized_infos(value) for key, value in infos.items()}
    if isinstance(infos, np.ndarray) and infos.dtype == object:
        return [normalized_infos(value) for value in infos]
    if isinstance(infos, tuple):
        return [normalized_infos(value) for value in infos]
    return np.asarray(infos).tolist() if infos is not None else None


def assert_same(got, expected, name, *, is_reset=False, resets=None):
    names = ("observations", "rewards", "terminated", "truncated")
    for what, one, other in zip(names, got[:-1], expected[:-1], strict=False):
        if what == "observations" and name.startswith("Acrobot") and resets is not None:
            # Rows that were reset within the step contain first observations.
            assert same_numbers(one[~resets], other[~resets], name), what
            one, other = one[resets], other[resets]
            assert same_numbers(one, other, name, is_reset=True), what
            continue
        assert same_numbers(one, other, name, is_reset=is_reset), what
    if name.startswith("Acrobot") or NUMPY_SINE_DIFFERS:
        assert list(got[-1]) == list(expected[-1])
    else:
        assert normalized_infos(got[-1]) == normalized_infos(expected[-1])
        assert list(got[-1]) == list(expected[-1])


@pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.name)
@pytest.mark.parametrize("case", EVERY_CASE, ids=identify)
def test_same_seeds_give_same_trajectories_as_gymnasium(case, mode):
    name, arguments = case
    python, kernel = both(name, 5, arguments, mode)
    assert_same(kernel.reset(seed=5), python.reset(seed=5), name, is_reset=True)
    python.action_space.seed(11)
    finished = np.zeros(5, np.bool_)
    ended = 0
    for _ in range(220):
        actions = python.action_space.sample()
        expected, got = python.step(actions), kernel.step(actions)
        done = expected[2] | expected[3]
        resets = {AutoresetMode.NEXT_STEP: finished, AutoresetMode.SAME_STEP: done}
        assert_same(got, expected, name, resets=resets.get(mode, np.zeros(5, np.bool_)))
        finished = done
        ended += done.sum()
        if mode is AutoresetMode.DISABLED and done.any():
            options = {"reset_mask": done}
            again = kernel.reset(options=options), python.reset(options=options)
            assert_same(*again, name, is_reset=True)
    assert ended or name.startswith(("MountainCarC", "Cliff", "Acrobot"))
    python.close()
    kernel.close()


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("CartPole-v1", {"low": -0.2, "high": 0.1}),
        ("MountainCar-v0", {"low": -0.9}),
        ("MountainCarContinuous-v0", {"high": 0.0}),
        ("Pendulum-v1", {"x_init": 0.5, "y_init": 4}),
        ("Acrobot-v1", {"low": 0.0, "high": 1.0}),
        ("Blackjack-v1", {"anything": "at all"}),
    ],
)
def test_reset_options_equal_gymnasium(name, options):
    python, kernel = both(name, 4, {})
    for given in (options, None, options | {"unknown": 1}):
        assert_same(
            kernel.reset(seed=1, options=given),
            python.reset(seed=1, options=given),
            name,
            is_reset=True,
        )


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"low": 0.3, "high": 0.1}, "must be lower"),
        ({"low": "wide"}, "could not be converted"),
        ({"high": None}, "could not be converted"),
    ],
)
def test_invalid_reset_options_raise_and_change_nothing(options, complaint):
    python, kernel = both("CartPole-v1", 2, {})
    before = kernel.reset(seed=1)[0]
    for envs in (python, kernel):
        with pytest.raises(ValueError, match=complaint):
            envs.reset(options=options)
    kernel.pool.drop()
    assert np.array_equal(kernel.pool.latest(), before)


SEEDS = [0, 1, 2**31, 2**32 - 1, 2**32, 2**63, 2**64 + 7, 2**96 + 12345, 2**160 + 3, 10**60]


@pytest.mark.parametrize("name", ["CartPole-v1", "Blackjack-v1", "Taxi-v3", "Taxi-v4"])
def test_seeds_of_any_size_equal_numpy(name):
    if not any(name == known for known, _ in EVERY_CASE):
        pytest.skip("this version of Gymnasium has it not")
    python, kernel = both(name, len(SEEDS), {})
    assert_same(kernel.reset(seed=SEEDS), python.reset(seed=SEEDS), name)
    for _ in range(20):  # long enough for further random draws
        actions = python.action_space.sample()
        assert_same(kernel.step(actions), python.step(actions), name)
    assert kernel.np_random_seed == tuple(SEEDS)
    for one, other in zip(kernel.np_random, python.np_random, strict=True):
        assert one.bit_generator.state["state"] == other.bit_generator.state["state"]
        assert one.integers(1000, size=9).tolist() == other.integers(1000, size=9).tolist()


def test_unseeded_reset_continues_the_generators():
    python, kernel = both("CartPole-v1", 3, {})
    assert_same(kernel.reset(seed=[1, 2, 3]), python.reset(seed=[1, 2, 3]), "CartPole")
    assert_same(kernel.reset(), python.reset(), "CartPole")
    assert_same(kernel.reset(seed=[None, 9, None]), python.reset(seed=[None, 9, None]), "CartPole")


def test_slots_that_were_never_seeded_differ():
    with shoal.make("CartPole-v1", 50) as envs:
        first = envs.reset()[0]
        assert len(np.unique(first, axis=0)) == 50
        seeds = envs.np_random_seed
        assert len(set(seeds)) == 50
        again = shoal.make("CartPole-v1", 50)
        assert np.array_equal(again.reset(seed=list(seeds))[0], first)


# Arbitrary states, including those that episodes do not reach.
STATES = {
    "CartPole-v1": lambda rng, n: {
        "x": rng.uniform(-3, 3, n),
        "x_dot": rng.normal(0, 3, n),
        "theta": rng.uniform(-0.5, 0.5, n) * rng.choice([1, 10], n),
        "theta_dot": rng.normal(0, 4, n),
    },
    "MountainCar-v0": lambda rng, n: {
        "position": rng.uniform(-1.2, 0.6, n),
        "velocity": rng.uniform(-0.07, 0.07, n),
    },
    "MountainCarContinuous-v0": lambda rng, n: {
        "position": rng.uniform(-1.2, 0.6, n).astype(np.float32).astype(np.float64),
        "velocity": rng.uniform(-0.07, 0.07, n).astype(np.float32).astype(np.float64),
    },
    "Pendulum-v1": lambda rng, n: {
        "theta": rng.uniform(-4, 4, n) * rng.choice([1, 10, 1000], n),
        "theta_dot": rng.uniform(-8, 8, n),
    },
    "Acrobot-v1": lambda rng, n: {
        "theta1": rng.uniform(-np.pi, np.pi, n),
        "theta2": rng.uniform(-np.pi, np.pi, n),
        "theta1_dot": rng.uniform(-4 * np.pi, 4 * np.pi, n),
        "theta2_dot": rng.uniform(-9 * np.pi, 9 * np.pi, n),
    },
}


def set_states(python, kernel, name, states):
    for field, values in states.items():
        kernel.state[field] = values
    rows = np.stack(list(states.values()), axis=1)
    single = name.startswith("MountainCarContinuous")
    if single:
        kernel.state["is_single"] = 1
        rows = rows.astype(np.float32)
    for env, row in zip(python.envs, rows, strict=True):
        env.unwrapped.state = row


@pytest.mark.parametrize("name", STATES)
def test_step_from_any_state_equals_gymnasium(name):
    count = 1000
    rng = np.random.default_rng(7)
    python, kernel = both(name, count, {})
    for trial in range(3):
        python.reset(seed=trial)
        kernel.reset(seed=trial)
        set_states(python, kernel, name, STATES[name](rng, count))
        if hasattr(python.single_action_space, "n"):
            actions = rng.integers(0, python.single_action_space.n, count)
        else:  # also out of bounds, where actions are clipped
            actions = rng.uniform(-3, 3, (count, 1)).astype(np.float32)
        assert_same(kernel.step(actions), python.step(actions), name)
        if name != "Acrobot-v1":
            expected = np.array([np.asarray(env.unwrapped.state) for env in python.envs])
            fields = [kernel.state[field] for field in STATES[name](rng, 1)]
            assert same_numbers(np.stack(fields, 1), expected.astype(np.float64), name)


@pytest.mark.parametrize("name", ["Taxi-v3", "Taxi-v4", "FrozenLake8x8-v1", "CliffWalking-v1"])
def test_step_from_every_tabular_state_equals_gymnasium(name):
    if not any(name == known for known, _ in EVERY_CASE):
        pytest.skip("this version of Gymnasium has it not")
    env = gymnasium.make(name)
    states, actions = int(env.observation_space.n), int(env.action_space.n)
    with shoal.make(name, states) as kernel:
        for action in range(actions):
            kernel.reset(seed=action)
            kernel.state["s"] = np.arange(states)
            got = kernel.step(np.full(states, action))
            for state in range(states):
                env.reset(seed=action + state)
                env.unwrapped.s = state
                observation, reward, terminated, _, info = env.step(action)
                assert (got[0][state], got[1][state]) == (observation, reward)
                assert got[2][state] == terminated
                for key, value in info.items():
                    assert np.array_equal(got[4][key][state], value)


def test_squares_round_as_pow():
    # The reward of the pendulum contains squares, which Python computes with pow.
    python, kernel = both("Pendulum-v1", 2000, {})
    rng = np.random.default_rng(3)
    otherwise = 0
    for _ in range(5):
        python.reset(seed=0)
        kernel.reset(seed=0)
        states = {"theta": rng.uniform(-3, 3, 2000), "theta_dot": rng.uniform(-8, 8, 2000)}
        set_states(python, kernel, "Pendulum-v1", states)
        actions = rng.uniform(-2, 2, (2000, 1)).astype(np.float32)
        got, expected = kernel.step(actions), python.step(actions)
        assert_same(got, expected, "Pendulum-v1")
        otherwise += sum(number**2 != number * number for number in states["theta_dot"])
    assert otherwise > 0


def test_actions_of_another_dtype_are_cast():
    python, kernel = both("CartPole-v1", 3, {})
    python.reset(seed=0)
    kernel.reset(seed=0)
    for dtype in (np.int32, np.uint8, np.int16):
        actions = np.array([0, 1, 1], dtype)
        assert same_numbers(kernel.step(actions)[0], python.step(actions)[0], "CartPole")
    assert same_numbers(kernel.step([1, 0, 1])[0], python.step([1, 0, 1])[0], "CartPole")


@pytest.mark.parametrize(
    ("name", "of_python", "of_kernel"),
    [
        ("CartPole-v1", ("kinematics_integrator", "semi-implicit"), ("is_semi_implicit", 1)),
        ("CartPole-v1", ("tau", 0.01), ("tau", 0.01)),
        ("Acrobot-v1", ("torque_noise_max", 0.7), ("torque_noise_max", 0.7)),
        ("Acrobot-v1", ("book_or_nips", "nips"), ("is_nips", 1)),
        ("Acrobot-v1", ("dt", 0.05), ("dt", 0.05)),
        ("Pendulum-v1", ("max_torque", 1.0), ("max_torque", 1.0)),
    ],
)
def test_parameters_set_later_have_the_effect_they_have_in_gymnasium(name, of_python, of_kernel):
    python, kernel = both(name, 3, {})
    normalized_infos = both(name, 3, {})[1]
    for envs in (python, kernel, normalized_infos):
        envs.reset(seed=4)
    python.set_attr(*of_python)
    kernel.set_attr(*of_kernel)
    differs = False
    for _ in range(40):
        actions = python.action_space.sample()
        got, expected = kernel.step(actions), python.step(actions)
        assert same_numbers(got[0], expected[0], name, is_reset=True)
        assert same_numbers(got[1], expected[1], name)
        differs |= not np.array_equal(got[0], normalized_infos.step(actions)[0])
    assert differs
