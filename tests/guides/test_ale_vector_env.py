"""The samples of ale-py's guide to its vector environment; only the import line is changed."""

import numpy as np

from shoal.atari import VectorAtariEnv


def test_basic_usage():
    # Create a vector environment with 4 parallel instances of Breakout
    envs = VectorAtariEnv(
        game="Breakout",
        num_envs=4,
    )

    # Reset all environments
    observations, info = envs.reset()
    assert observations.shape == (4, 4, 84, 84)
    assert set(info) == {"env_id", "lives", "frame_number", "episode_frame_number"}

    # Take random actions in all environments
    actions = envs.action_space.sample()
    observations, rewards, terminations, truncations, infos = envs.step(actions)
    assert observations.shape == (4, 4, 84, 84)
    assert rewards.shape == terminations.shape == truncations.shape == (4,)
    assert infos["lives"].tolist() == [5, 5, 5, 5]

    # Close the environment when done
    envs.close()


def test_advanced_configuration_and_send_and_recv():
    envs = VectorAtariEnv(
        # Required parameters
        game="Breakout",          # ROM name in snake_case
        num_envs=8,               # Number of parallel environments

        # Preprocessing parameters
        frame_skip=4,             # Number of frames to skip (action repeat)
        grayscale=True,           # Use grayscale observations
        stack_num=4,              # Number of frames to stack
        img_height=84,            # Height to resize frames to
        img_width=84,             # Width to resize frames to

        # Environment behavior
        noop_max=30,              # Maximum number of no-ops at reset
        fire_reset=True,          # Press FIRE on reset for games that require it
        episodic_life=False,      # End episodes on life loss
        max_episode_steps=108000, # Max frames per episode (27000 steps * 4 frame skip)
        repeat_action_probability=0.0,  # Sticky actions probability
        full_action_space=False,  # Use full action space (not minimal)

        # Performance options
        batch_size=0,             # Number of environments to process at once (default=0 is the `num_envs`)  # noqa: E501
        num_threads=0,            # Number of worker threads (0=auto)
        thread_affinity_offset=-1,# CPU core offset for thread affinity (-1=no affinity)
        seed=0,                   # Random seed
    )  # fmt: skip
    envs.reset()
    actions = envs.action_space.sample()

    # Send actions to environments
    envs.send(actions)

    # Do other computation here while environments are stepping

    # Receive results when ready
    observations, rewards, terminations, truncations, infos = envs.recv()
    assert observations.shape == (8, 4, 84, 84)
    assert infos["env_id"].tolist() == [*range(8)]
    assert not (terminations | truncations).any()
    assert rewards.shape == (8,)
    envs.close()


def test_batch_size():
    # Process environments in batches of 4
    envs = VectorAtariEnv(game="Breakout", num_envs=16, batch_size=4)
    observations, info = envs.reset()
    assert observations.shape == (4, 4, 84, 84)
    assert len(set(info["env_id"].tolist())) == 4
    envs.close()


def test_thread_affinity():
    # Set thread affinity starting from core 0
    envs = VectorAtariEnv(game="Breakout", num_envs=8, thread_affinity_offset=0)
    observations, _ = envs.reset()
    assert observations.shape == (8, 4, 84, 84)
    envs.close()


def test_training_with_pytorch():
    import torch

    # Create environment
    envs = VectorAtariEnv(game="Breakout", num_envs=8)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    # Initialize model (simplified example)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(4, 32, kernel_size=8, stride=4),
        torch.nn.ReLU(),
        torch.nn.Conv2d(32, 64, kernel_size=4, stride=2),
        torch.nn.ReLU(),
        torch.nn.Conv2d(64, 64, kernel_size=3, stride=1),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(3136, 512),
        torch.nn.ReLU(),
        torch.nn.Linear(512, envs.single_action_space.n)
    ).to(device)  # fmt: skip

    # Reset environment
    observations, _ = envs.reset()

    # Training loop
    for _step in range(10):
        # Convert observations to PyTorch tensors
        obs_tensor = torch.tensor(observations, dtype=torch.float32, device=device) / 255.0

        # Get actions from model
        with torch.no_grad():
            q_values = model(obs_tensor)
            actions = q_values.max(dim=1)[1].cpu().numpy()

        # Step the environment
        observations, rewards, _terminations, _truncations, infos = envs.step(actions)
    assert observations.shape == (8, 4, 84, 84)
    assert rewards.dtype == np.int32
    assert (infos["frame_number"] >= 40).all()
    envs.close()
