"""Train hockey against the weak scripted player, then by self-play in a league.

    python examples/self_play_hockey.py [STEPS]

The last lines print win rates with 95% intervals: against the scripted players, and against the
agent from before the league. With the default, half a minute on one core, it won 60% against the
weak player and 32% against the strong one; against the earlier agent nine of ten games were drawn
and most others won. The config `hockey_league` trains for thirty million steps.
"""

import json
import sys
import tempfile
from pathlib import Path

import torch

from shoal.train import load_agent, play_matches, train_single_run

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 2_400_000
GAMES = 400

torch.set_num_threads(1)  # more threads are slower for networks this small

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


# Closeness to the puck and touching it are rewarded in the first games, then less and less.
SHAPING = {
    "N": 1_000,
    "K": 3_000,
    "CLOSENESS_START": 1.0,
    "TOUCH_START": 1.0,
    "CLOSENESS_FINAL": 0.0,
    "TOUCH_FINAL": 0.0,
    "DIRECTION_FINAL": 0.0,
}


def write_config(folder, phase, **league):
    """Write the config of a run with one phase. A config may also have several phases."""
    config = {
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
    path = Path(folder, f"{phase['name']}.json")
    path.write_text(json.dumps(config))
    return path


with tempfile.TemporaryDirectory() as runs:
    options = {"base_output_dir": runs, "verbose": False, "num_envs": 256, "device": "cpu"}
    basics = train_single_run(
        write_config(
            runs,
            {"name": "basics", "opponent": {"type": "basic_weak"}, "reward_shaping": SHAPING},
        ),
        seed=0,
        **options,
    )
    league = train_single_run(
        write_config(
            runs,
            {"name": "league", "opponent": {"type": "league", "deterministic": False}},
            # A fifth of the games are against the current agent, the others against members to
            # which it loses: snapshots of itself, and the scripted players.
            league={"snapshot_every": 1_000, "size": 8, "matchmaking": "hard"},
        ),
        seed=1,
        checkpoint_path=basics["run_folder"],
        **options,
    )
    print(f"{STEPS} steps, {league['steps_per_second']:,.0f} steps/s including updates")

    before, after = load_agent(basics["run_folder"]), load_agent(league["run_folder"])
    for name, opponent in (("weak", "weak"), ("strong", "strong"), ("its earlier self", before)):
        games = play_matches(after, opponent, GAMES, seed=0).record(0, name)
        print(
            f"against {name}: {games.win_rate:.0%} won ({games.low:.0%} to {games.high:.0%}), "
            f"{games.draws / GAMES:.0%} drawn"
        )
