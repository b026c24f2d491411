"""Self-play in hockey: first against the weak scripted player, then in a league of former selves.

    python examples/self_play_hockey.py [STEPS]

The last lines are win rates, with 95% intervals, of the agent that the league has made: against the
scripted players, and against itself as it was before the league. After the default, half a minute
of one core, it won 60% against the weak player and 32% against the strong one; of ten games against
its former self nine were drawn, and most of the others won. The config `hockey_league`, which comes
along, goes on for thirty million steps.
"""

import sys
import tempfile

import torch

from shoal.train import load_agent, play_matches, train_single_run
from shoal.train._config import parse_config

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 2_400_000
GAMES = 400

torch.set_num_threads(1)  # for networks this small more are slower

AGENT = {
    "type": "PPO",
    "hyperparameters": {
        "hidden_dim": [64, 64],
        "activation": "tanh",
        "learning_rate": 5e-4,
        "rollout_steps": 64,
        "epochs": 3,
        "minibatches": 8,
        "entropy": 0.003,
        "log_std": -0.5,
    },
}


# How near the puck is, and whether it is touched, counts in the first games, then less and less.
SHAPING = {
    "N": 1_000,
    "K": 3_000,
    "CLOSENESS_START": 1.0,
    "TOUCH_START": 1.0,
    "CLOSENESS_FINAL": 0.0,
    "TOUCH_FINAL": 0.0,
    "DIRECTION_FINAL": 0.0,
}


def config(phase, **league):
    """A run of one phase; as a JSON file it could have both of them, one after the other."""
    return parse_config(
        {
            "curriculum": {"phases": [{"steps": STEPS // 2, **phase}]},
            "agent": AGENT,
            "training": {
                "reward_scale": 0.1,
                "episode_log_freq": 10,
                "eval_num_games": 50,
                "eval_freq_steps": STEPS,
                "video_episodes": 0,
            },
            **league,
        }
    )


with tempfile.TemporaryDirectory() as runs:
    options = {"base_output_dir": runs, "verbose": False, "num_envs": 256, "device": "cpu"}
    basics = train_single_run(
        config({"name": "basics", "opponent": {"type": "basic_weak"}, "reward_shaping": SHAPING}),
        seed=0,
        **options,
    )
    league = train_single_run(
        config(
            {"name": "league", "opponent": {"type": "league", "deterministic": False}},
            # A fifth of the games is against the agent as it is, the others against those it
            # loses to: snapshots of itself, and the scripted players.
            league={"snapshot_every": 1_000, "size": 8, "matchmaking": "hard"},
        ),
        seed=1,
        checkpoint_path=basics["run_folder"],
        **options,
    )
    print(f"{STEPS} steps, {league['steps_per_second']:,.0f} a second, learning included")

    before, after = load_agent(basics["run_folder"]), load_agent(league["run_folder"])
    for name, opponent in (("weak", "weak"), ("strong", "strong"), ("its former self", before)):
        games = play_matches(after, opponent, GAMES, seed=0).record(0, name)
        print(
            f"against {name}: {games.win_rate:.0%} won ({games.low:.0%} to {games.high:.0%}), "
            f"{games.draws / GAMES:.0%} drawn"
        )
