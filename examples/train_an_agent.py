"""Train an agent, evaluate it, and go on with what it has learnt against somebody stronger.

    python examples/train_an_agent.py [STEPS]

Configs are usually JSON files (`shoal train CONFIG`); here one is written in Python, to be read
from top to bottom. The last lines are games won, drawn and lost; after so few steps most are lost.
A minute of `hockey_demo` beats the weak player almost always.
"""

import sys
import tempfile

from shoal.train import load_agent, play_matches, train_single_run
from shoal.train._config import parse_config

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000


def config(opponent: str) -> dict:
    """What a JSON file would say."""
    return {
        "curriculum": {
            "phases": [
                {
                    "name": f"against {opponent}",
                    "steps": STEPS,
                    # Drawn anew for each episode of each slot.
                    "environment": {
                        "mixture": [
                            {"mode": "NORMAL", "weight": 0.6},
                            {"mode": "TRAIN_SHOOTING", "weight": 0.4},
                        ]
                    },
                    "opponent": {"type": f"basic_{opponent}"},
                }
            ]
        },
        "agent": {
            "type": "PPO",
            "hyperparameters": {"hidden_dim": [64, 64], "activation": "tanh", "rollout_steps": 32},
        },
        "training": {"reward_scale": 0.1, "video_episodes": 0, "eval_num_games": 50},
    }


with tempfile.TemporaryDirectory() as runs:
    # `verbose=True` shows a live display in a terminal.
    options = {"base_output_dir": runs, "verbose": False, "num_envs": 128, "device": "cpu"}
    first = train_single_run(parse_config(config("weak")), seed=0, **options)
    second = train_single_run(
        parse_config(config("strong")), seed=1, checkpoint_path=first["run_folder"], **options
    )
    print(f"{second['steps_per_second']:,.0f} environment steps/s, learning included")

    agent = load_agent(second["run_folder"])
    for opponent in ("weak", "strong"):
        games = play_matches(agent, opponent, games=100, seed=0)
        wins, draws, losses = games.counts
        print(f"against {opponent}: {wins} won, {draws} drawn, {losses} lost")
