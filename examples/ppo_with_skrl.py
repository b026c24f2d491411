"""Train skrl's PPO on a native kernel, whose batches become tensors without a copy.

    python examples/ppo_with_skrl.py [ROUNDS]

The last line prints the mean length of an episode after training. A random policy reaches 22 steps.
"""

import sys
import tempfile

import torch
from skrl.agents.torch.ppo import PPO
from skrl.memories.torch import RandomMemory
from skrl.models.torch import CategoricalMixin, DeterministicMixin, Model
from skrl.trainers.torch import SequentialTrainer
from skrl.utils import set_seed
from torch import nn

from shoal.skrl import make  # was: skrl.envs.wrappers.torch.wrap_env

NUM_ENVS = 32
ROLLOUT = 64
ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 20


def layers(inputs, outputs):
    """One hidden layer."""
    return nn.Sequential(nn.Linear(inputs, 64), nn.Tanh(), nn.Linear(64, outputs))


class Policy(CategoricalMixin, Model):
    """A policy for discrete actions."""

    def __init__(self, **spaces):
        Model.__init__(self, **spaces)
        CategoricalMixin.__init__(self)
        self.logits = layers(self.num_observations, self.num_actions)

    def compute(self, inputs, role=""):  # noqa: ARG002
        """Logits of the actions."""
        return self.logits(inputs["observations"]), {}


class Value(DeterministicMixin, Model):
    """A value function."""

    def __init__(self, **spaces):
        Model.__init__(self, **spaces)
        DeterministicMixin.__init__(self)
        self.value = layers(self.num_observations, 1)

    def compute(self, inputs, role=""):  # noqa: ARG002
        """The expected return."""
        return self.value(inputs["observations"]), {}


set_seed(0)
torch.set_num_threads(1)  # more threads are slower for networks this small
env = make("CartPole-v1", NUM_ENVS, device="cpu")
spaces = {
    "observation_space": env.observation_space,
    "action_space": env.action_space,
    "device": env.device,
}
experiment = {"write_interval": 0, "checkpoint_interval": 0}
cfg = {"timesteps": ROUNDS * ROLLOUT, "disable_progressbar": True}
with tempfile.TemporaryDirectory() as folder:
    agent = PPO(
        models={"policy": Policy(**spaces), "value": Value(**spaces)},
        memory=RandomMemory(memory_size=ROLLOUT, num_envs=NUM_ENVS, device=env.device),
        cfg={
            "rollouts": ROLLOUT,
            "mini_batches": 8,
            "experiment": {"directory": folder, **experiment},
        },
        **spaces,
    )
    SequentialTrainer(env=env, agents=agent, cfg=cfg).train()

observations, _ = env.reset()
ended = 0
for _ in range(1_000):
    with torch.no_grad():
        actions, _ = agent.act(observations, None, timestep=0, timesteps=0)
    observations, _, terminated, truncated, _ = env.step(actions)
    ended += int((terminated | truncated).sum())
env.close()

print(
    f"{ROUNDS * ROLLOUT * NUM_ENVS} steps of training; then {ended} episodes of "
    f"{1_000 * NUM_ENVS / max(ended, 1):.0f} steps on average"
)
