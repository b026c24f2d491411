"""Training with TorchRL's collectors, replay buffers and losses."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torchrl")

from torchrl.collectors import Collector  # noqa: E402
from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer  # noqa: E402
from torchrl.modules import MLP, QValueActor  # noqa: E402
from torchrl.objectives import DQNLoss  # noqa: E402

import shoal.torchrl  # noqa: E402


@pytest.mark.parametrize("is_categorical", [True, False])
def test_dqn_learns_episode_lengths(is_categorical):
    torch.manual_seed(0)
    env = shoal.torchrl.make("CartPole-v1", 8, categorical_action_encoding=is_categorical)
    env.set_seed(0)
    spec = env.action_spec_unbatched
    actor = QValueActor(MLP(in_features=4, out_features=2, num_cells=[32]), spec=spec)
    loss = DQNLoss(actor, action_space=spec, delay_value=True)
    loss.make_value_estimator(gamma=0.9)
    optimizer = torch.optim.Adam(loss.parameters(), lr=1e-2)
    memory = TensorDictReplayBuffer(storage=LazyTensorStorage(2_000), batch_size=64)
    losses = []
    collector = Collector(env, None, frames_per_batch=256, total_frames=1_024)
    for batch in collector:
        memory.extend(batch.reshape(-1))
        for _ in range(30):
            value = loss(memory.sample())["loss"]
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
            losses.append(value.item())
    collector.shutdown()
    assert len(memory) == 1_024
    # The value of a step is its reward 1 plus the discounted next value, so it is at least 1.
    sample = memory.sample()
    assert actor(sample)["chosen_action_value"].mean() > 1.0
    assert all(value == value for value in losses)
