"""Train an agent, then continue its training against a stronger opponent, and evaluate it.

    python examples/train_an_agent.py [STEPS]

A config is a JSON file (`shoal train CONFIG`); this script writes one from a dict. The last lines
print games won, drawn and lost; after so few steps most are lost. A minute of `hockey_demo` beats
the weak player almost always.
"""

import json
import sys
import tempfile
from pathlib import Path

from shoal.train import load_agent, play_matches, train_single_run

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000


def write_config(folder: str, opponent: str) -> Path:
    """Write a config for one phase against this opponent."""
    config = {
        "curriculum": {
            "phases": [
                {
                    "name": f"against {opponent}",
                    "steps": STEPS,
                    # Drawn for each episode of each slot.
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
    path = Path(folder, f"{opponent}.json")
    path.write_text(json.dumps(config))
    return path


with tempfile.TemporaryDirectory() as runs:
    # `verbose=True` shows a live display in a terminal.
    options = {"base_output_dir": runs, "verbose": False, "num_envs": 128, "device": "cpu"}
    first = train_single_run(write_config(runs, "weak"), seed=0, **options)
    second = train_single_run(
        write_config(runs, "strong"), seed=1, checkpoint_path=first["run_folder"], **options
    )
    print(f"{second['steps_per_second']:,.0f} environment steps/s including updates")

    agent = load_agent(second["run_folder"])
    for opponent in ("weak", "strong"):
        games = play_matches(agent, opponent, games=100, seed=0)
        wins, draws, losses = games.counts
        print(f"against {opponent}: {wins} won, {draws} drawn, {losses} lost")
