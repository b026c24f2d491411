"""Helpers that create local env runners and collect episodes with them."""

from contextlib import contextmanager

from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner

NATIVE = {"gym_env_vectorize_mode": "vector_entry_point"}


def make_config(env, num_envs=3, *, seed=7, environment=None, model_config=None, **env_runners):
    """Return a PPO config with a small network and, by default, a local env runner."""
    settings = {"num_env_runners": 0, "num_envs_per_env_runner": num_envs, **env_runners}
    config = PPOConfig().environment(env, **(environment or {}))
    config = config.env_runners(**settings).debugging(seed=seed, log_level="ERROR")
    return config.rl_module(model_config={"fcnet_hiddens": [16], **(model_config or {})})


class NoModule(SingleAgentEnvRunner):
    """An env runner without a module, for random actions in any space."""

    def make_module(self):
        """Set the module to None."""
        self.module = None


@contextmanager
def runner(*arguments, kind=SingleAgentEnvRunner, worker=0, **settings):
    """Create an env runner, and stop it at the end."""
    env_runner = kind(config=make_config(*arguments, **settings), worker_index=worker)
    try:
        yield env_runner
    finally:
        env_runner.stop()


def collect(*arguments, samples=(60, 60), random_actions=False, **settings):
    """Return the episodes of several calls of ``sample``, converted after the last call."""
    with runner(*arguments, **settings) as env_runner:
        env_runner.env.action_space.seed(3)
        episodes = [
            episode
            for steps in samples
            for episode in env_runner.sample(num_timesteps=steps, random_actions=random_actions)
        ]
        return [as_data(episode) for episode in episodes]


def as_data(episode):
    """Return the data of an episode without its id and time."""
    return {
        "observations": episode.get_observations(),
        "actions": episode.get_actions(),
        "rewards": episode.get_rewards(),
        "infos": episode.get_infos(),
        "ended": (bool(episode.is_terminated), bool(episode.is_truncated)),
        "steps": (episode.t_started, episode.t),
        "model": {key: episode.get_extra_model_outputs(key) for key in episode.extra_model_outputs},
    }
