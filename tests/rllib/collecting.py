"""Env runners in this process, and what they collect."""

from contextlib import contextmanager

from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner

NATIVE = {"gym_env_vectorize_mode": "vector_entry_point"}


def configured(env, num_envs=3, *, seed=7, environment=None, model_config=None, **env_runners):
    """PPO's config, with a small network, for env runners in this process unless said otherwise."""
    settings = {"num_env_runners": 0, "num_envs_per_env_runner": num_envs, **env_runners}
    config = PPOConfig().environment(env, **(environment or {}))
    config = config.env_runners(**settings).debugging(seed=seed, log_level="ERROR")
    return config.rl_module(model_config={"fcnet_hiddens": [16], **(model_config or {})})


class NoModule(SingleAgentEnvRunner):
    """An env runner that acts at random, whatever the spaces."""

    def make_module(self):
        """There is none."""
        self.module = None


@contextmanager
def runner(*arguments, kind=SingleAgentEnvRunner, worker=0, **settings):
    """An env runner, which is stopped at the end."""
    made = kind(config=configured(*arguments, **settings), worker_index=worker)
    try:
        yield made
    finally:
        made.stop()


def collected(*arguments, samples=(60, 60), random_actions=False, **settings):
    """The episodes of some calls of ``sample``, all made before any is looked at."""
    with runner(*arguments, **settings) as made:
        made.env.action_space.seed(3)
        episodes = [
            episode
            for steps in samples
            for episode in made.sample(num_timesteps=steps, random_actions=random_actions)
        ]
        return [as_data(episode) for episode in episodes]


def as_data(episode):
    """All that was collected in an episode, but for its name and its time."""
    return {
        "observations": episode.get_observations(),
        "actions": episode.get_actions(),
        "rewards": episode.get_rewards(),
        "infos": episode.get_infos(),
        "ended": (bool(episode.is_terminated), bool(episode.is_truncated)),
        "steps": (episode.t_started, episode.t),
        "model": {key: episode.get_extra_model_outputs(key) for key in episode.extra_model_outputs},
    }
