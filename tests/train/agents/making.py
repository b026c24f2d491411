"""Small agents of every kind, and random steps for them to learn from."""

from copy import deepcopy

import numpy as np
import torch
from gymnasium import spaces
from hypothesis import strategies as st

from shoal.train import AgentSpaces, make_agent
from shoal.train._agents import Step

SIZE = 3
SLOTS = 3

CHOICES = AgentSpaces(SIZE, spaces.Discrete(4, start=2), observation_scale=[1.0, 2.0, 0.5])
NUMBERS = AgentSpaces(
    SIZE, spaces.Box(np.array([-2.0, 0.0], np.float32), np.array([1.0, 4.0], np.float32))
)
TABLE = AgentSpaces(
    SIZE,
    spaces.Box(-1.0, 1.0, (2,)),
    table=[[0.0, 0.0], [-1.0, 0.5], [1.0, 0.25]],
    switches=(1,),
)

_SMALL = {"hidden_dim": [8, 7], "learning_rate": 0.01}
_OFF_POLICY = {"batch_size": 6, "buffer_size": 50}
_ON_POLICY = {"rollout_steps": 8, "minibatches": 3, "epochs": 2}

VARIANTS = {
    "DDDQN": ("DDDQN", CHOICES, {}),
    "DDDQN prioritized": (
        "DDDQN",
        CHOICES,
        {
            "n_step": 3,
            "prioritized": True,
            "priority_beta_updates": 50,
            "target_update_freq": 4,
            "tau": 0.5,
        },
    ),
    "DDDQN with a grid": (
        "DDDQN",
        NUMBERS,
        {"action_fineness": 3, "double": False, "dueling": False, "activation": "tanh"},
    ),
    "DDDQN with a table": ("DDDQN", TABLE, {"n_step": 2, "activation": "elu"}),
    "SAC": ("SAC", NUMBERS, {"max_grad_norm": 1.0}),
    "SAC with pink noise": ("SAC", NUMBERS, {"noise": "pink", "noise_period": 7, "n_step": 2}),
    "SAC with a fixed temperature": (
        "SAC",
        NUMBERS,
        {"alpha": 0.2, "learn_alpha": False, "target_update_freq": 3, "activation": "silu"},
    ),
    "PPO discrete": ("PPO", CHOICES, {"entropy": 0.01, "clip_value": True}),
    "PPO continuous": ("PPO", NUMBERS, {"normalize_observations": True, "log_std": -0.5}),
    "PPO annealed": ("PPO", NUMBERS, {"anneal": True, "activation": "tanh"}),
}


_bounds = st.floats(-1e6, 1e6, width=32)


@st.composite
def boxes(draw):
    """Box action spaces with one to four elements and random bounds."""
    size = draw(st.integers(1, 4))
    low, high = np.array([sorted((draw(_bounds), draw(_bounds))) for _ in range(size)]).T
    low, high = low.astype(np.float32), high.astype(np.float32)
    high = np.where(low == high, np.nextafter(high, np.float32(np.inf)), high)
    return spaces.Box(low, high, dtype=np.float32)


def make(variant, *, seed=0, num_slots=SLOTS, **settings):
    """Create a small agent of this variant."""
    kind, agent_spaces, variant_settings = VARIANTS[variant]
    common = _SMALL | (_ON_POLICY if kind == "PPO" else _OFF_POLICY)
    return make_agent(
        kind,
        agent_spaces,
        common | variant_settings | settings,
        num_slots=num_slots,
        seed=seed,
    )


class Stream:
    """Random observations, rewards and episode ends; episodes last about ten steps."""

    def __init__(self, seed, slots=SLOTS, size=SIZE):
        self._rng = np.random.default_rng(seed)
        self._shape = slots, size
        self.observations = self._random_observations()

    def _random_observations(self):
        return self._rng.normal(size=self._shape).astype(np.float32)

    def step(self, actions):
        """Return the step that follows these actions."""
        slots = self._shape[0]
        before, self.observations = self.observations, self._random_observations()
        next_observations = self.observations.copy()
        terminated = self._rng.random(slots) < 0.06
        truncated = self._rng.random(slots) < 0.06
        rewards = self._rng.normal(size=slots) + np.abs(np.reshape(actions, (slots, -1))).sum(1)
        ended = terminated | truncated
        self.observations[ended] = self._random_observations()[ended]
        return Step(before, actions, rewards, next_observations, terminated, truncated)

    def copy(self):
        """Return a stream that continues in the same way."""
        return deepcopy(self)


def train(agent, stream, rounds, *, start=0, updates=2):
    """Train for a number of steps of all slots, as a run does, and return the actions."""
    all_actions = []
    for number in range(start, start + rounds):
        if agent.is_on_policy:
            agent.learn(0)
        actions = agent.explore(stream.observations)
        all_actions.append(actions)
        if not agent.is_on_policy:
            agent.learn(updates)
        agent.remember(stream.step(actions))
        agent.progressed((number + 1) * SLOTS, min(1.0, (number + 1) / 200))
    return all_actions


def same(one, other):
    """Return whether nested data is equal, bit for bit."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, torch.Tensor):
        return one.dtype == other.dtype and torch.equal(one, other)
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    return type(one) is type(other) and one == other
