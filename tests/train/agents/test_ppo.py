"""The losses and schedules of PPO, compared with a reference implementation."""

import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch.distributions import Categorical, Normal

from shoal.train import AgentSpaces, make_agent
from shoal.train._agents import Step
from shoal.train._config.schema import Training
from shoal.train._runs.trainee import Trainee
from shoal.train._tasks import Outcome
from tests.train.agents.reference import Recorder, all_close

LOW, HIGH = np.array([-2.0, 0.0], np.float32), np.array([1.0, 4.0], np.float32)
SPACES = {
    "discrete": AgentSpaces(3, spaces.Discrete(4)),
    "continuous": AgentSpaces(3, spaces.Box(LOW, HIGH)),
}


def make_ppo(actions="discrete", slots=3, **settings):
    small = {"hidden_dim": [8], "rollout_steps": 5, "epochs": 1, "minibatches": 1, "log_std": -1.0}
    return make_agent("PPO", SPACES[actions], small | settings, num_slots=slots, seed=1)


def fill(agent, seed=0, steps=None):
    rng = np.random.default_rng(seed)
    for _ in range(agent.settings.rollout_steps if steps is None else steps):
        states = rng.normal(size=(agent.num_slots, 3)).astype(np.float32)
        actions = agent.explore(states)
        agent.remember(
            Step(
                states,
                actions,
                rng.normal(0, 3, agent.num_slots),
                rng.normal(size=(agent.num_slots, 3)).astype(np.float32),
                rng.random(agent.num_slots) < 0.2,
                rng.random(agent.num_slots) < 0.2,
            )
        )


def perturb(agent):
    """Change the policy, so that log-probabilities differ from those in the rollout."""
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in agent.policy.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))


@pytest.mark.parametrize("actions", SPACES)
@pytest.mark.parametrize("clip_value", [False, True])
@pytest.mark.parametrize("entropy", [0.0, 0.1])
def test_loss_and_gradient_equal_the_clipped_objective(actions, clip_value, entropy, monkeypatch):
    agent = make_ppo(
        actions, clip_value=clip_value, entropy=entropy, value_coefficient=0.7, clip=0.2
    )
    fill(agent)
    perturb(agent)
    recorder = Recorder(monkeypatch, agent._optimizer)
    assert agent.learn(0) == 1
    rollout, policy = agent.rollout, agent.policy
    advantages = rollout.advantages.flatten().double().numpy()
    values = rollout.values[:-1].flatten().double()
    returns = values + torch.as_tensor(advantages)
    scaled = torch.as_tensor((advantages - advantages.mean()) / (advantages.std() + 1e-8))
    states, past_actions = rollout.observations.flatten(0, 1), rollout.actions.flatten(0, 1)
    if actions == "discrete":
        categorical = Categorical(logits=policy.actor(states).double())
        log_prob, mean_entropy = categorical.log_prob(past_actions), categorical.entropy().mean()
    else:
        normal = Normal(policy.actor(states), policy.log_std.exp())
        normalized = (past_actions - torch.as_tensor((LOW + HIGH) / 2)) / torch.as_tensor(
            (HIGH - LOW) / 2
        )
        log_prob = normal.log_prob(normalized).sum(1).double()
        mean_entropy = normal.entropy().sum(1).mean().double()
    ratio = (log_prob - rollout.log_probs.flatten()).exp()
    assert bool(((ratio - 1).abs() > 0.2).any())
    surrogate = [min(r * a, min(max(r, 0.8), 1.2) * a) for r, a in zip(ratio, scaled, strict=True)]
    value = policy.critic(states).squeeze(1).double()
    errors = (value - returns) ** 2
    if clip_value:
        clipped = values + (value - values).clamp(-0.2, 0.2)
        errors = torch.maximum(errors, (clipped - returns) ** 2)
    loss = -torch.stack(surrogate).mean() + 0.7 * 0.5 * errors.mean() - entropy * mean_entropy
    assert recorder.losses == [pytest.approx(loss.item(), rel=1e-4)]
    expected = torch.autograd.grad(loss, list(policy.parameters()))
    assert all_close(recorder.gradients[0], expected, atol=2e-5)
    metrics = agent.metrics()
    assert metrics["clipped"] == pytest.approx(((ratio - 1).abs() > 0.2).double().mean().item())
    assert metrics["entropy"] == pytest.approx(mean_entropy.item(), rel=1e-4)
    expected = (ratio - 1 - ratio.log()).mean().item()
    assert metrics["divergence"] == pytest.approx(expected, rel=1e-3)


def test_a_ratio_beyond_the_clip_has_no_gradient():
    """One of two actions is better: once its ratio is beyond the clip, the policy stays."""
    for better, increased in ((0, 0), (0, 1), (1, 0), (1, 1)):
        agent = make_agent(
            "PPO",
            AgentSpaces(1, spaces.Discrete(2)),
            {"hidden_dim": [2], "rollout_steps": 1, "epochs": 1, "minibatches": 1, "clip": 0.1}
            | {"value_coefficient": 0.0},
            num_slots=64,
        )
        states, ended = np.ones((64, 1), np.float32), np.ones(64, bool)
        actions = agent.explore(states)
        assert 0 < actions.sum() < 64
        agent.remember(Step(states, actions, (actions == better) * 1.0, states, ended, ~ended))
        with torch.no_grad():
            agent.policy.actor[-1].bias[increased] += 3.0
        before = agent.policy.actor[-1].bias.clone()
        agent.learn(0)
        moved = bool((agent.policy.actor[-1].bias != before).any())
        assert moved is (better != increased)


@pytest.mark.parametrize(
    ("steps", "slots", "minibatches", "epochs"),
    [(8, 1, 4, 1), (8, 3, 4, 2), (5, 2, 3, 3), (9, 1, 4, 1), (4, 3, 5, 2), (4, 1, 1, 5)],
)
def test_an_epoch_has_the_configured_number_of_minibatches(steps, slots, minibatches, epochs):
    agent = make_ppo(slots=slots, rollout_steps=steps, minibatches=minibatches, epochs=epochs)
    fill(agent)
    assert agent.learn(0) == epochs * minibatches
    assert agent.updates == epochs * minibatches


@pytest.mark.parametrize("actions", SPACES)
@pytest.mark.parametrize(
    ("steps", "slots", "minibatches"), [(1, 1, 1), (1, 1, 4), (2, 1, 4), (4, 1, 4), (4, 2, 8)]
)
def test_the_smallest_rollouts_cause_no_nan(actions, steps, slots, minibatches):
    """The advantages of a minibatch of one step have no standard deviation to divide by."""
    agent = make_ppo(actions, slots=slots, rollout_steps=steps, minibatches=minibatches, epochs=2)
    for number in range(3):
        fill(agent, number)
        assert agent.learn(0) > 0
    assert np.isfinite(agent.evaluate(np.ones((2, 3)))).all()
    assert np.isfinite(agent.act_batch(np.ones((2, 3)), deterministic=True)).all()
    assert all(np.isfinite(value) for value in agent.metrics().values())


def test_every_step_is_in_one_minibatch_of_an_epoch(monkeypatch):
    agent = make_ppo(rollout_steps=8, minibatches=4, epochs=3)
    fill(agent)
    batches = []
    monkeypatch.setattr(agent, "_run_update", lambda: batches.append(agent._indices.clone()))
    agent.learn(0)
    assert len(batches) == 12
    for epoch in range(3):
        indices = torch.cat(batches[4 * epoch : 4 * epoch + 4])
        assert sorted(indices.tolist()) == list(range(24))
    assert not torch.equal(torch.cat(batches[:4]), torch.cat(batches[4:8]))


def test_nothing_is_learned_before_the_rollout_is_full():
    agent = make_ppo()
    before = agent.evaluate(np.ones((1, 3)))
    for _ in range(4):
        assert agent.learn(100) == 0
        fill(agent, steps=1)
    assert agent.learn(0) == 0
    fill(agent, steps=1)
    assert np.array_equal(before, agent.evaluate(np.ones((1, 3))))
    assert agent.learn(0) == 1
    assert agent.learn(0) == 0
    assert not np.array_equal(before, agent.evaluate(np.ones((1, 3))))


def test_the_normalization_statistics_cover_all_rollouts():
    agent = make_ppo(normalize_observations=True)
    fill(agent, 0)
    observations = agent.rollout.observations.flatten(0, 1).clone().numpy()
    agent.learn(0)
    np.testing.assert_allclose(agent.policy.scaled.mean, observations.mean(0), atol=1e-3)
    np.testing.assert_allclose(agent.policy.scaled.variance, observations.var(0), rtol=1e-3)
    fill(agent, 1)
    second = agent.rollout.observations.flatten(0, 1).numpy()
    observations = np.concatenate([observations, second])
    agent.learn(0)
    np.testing.assert_allclose(agent.policy.scaled.mean, observations.mean(0), atol=1e-3)


def test_log_probs_in_the_rollout_are_those_of_the_current_policy():
    """The statistics of ``normalize_observations`` do not change within a rollout."""
    agent = make_ppo("continuous", normalize_observations=True)
    for number in range(3):
        fill(agent, number)
        rollout = agent.rollout
        with torch.no_grad():
            log_prob, _, value = agent.policy.evaluate_actions(
                rollout.observations.flatten(0, 1), rollout.actions.flatten(0, 1)
            )
        torch.testing.assert_close(log_prob, rollout.log_probs.flatten(), rtol=1e-3, atol=1e-3)
        torch.testing.assert_close(value, rollout.values[:-1].flatten(), rtol=1e-3, atol=1e-3)
        agent.learn(0)


def play(trainee, rounds, start, total):
    """Act, step, remember and update the schedules, as a run does."""
    rng = np.random.default_rng(start)
    slots = trainee.agent.num_slots
    for number in range(start, start + rounds):
        trainee.act(rng.normal(size=(slots, 3)).astype(np.float32))
        ended = rng.random(slots) < 0.1
        after = rng.normal(size=(slots, 3)).astype(np.float32)
        trainee.remember(Outcome(rng.normal(size=slots), after, ended, ~ended & False))
        trainee.agent.progressed(trainee.pace.steps, min(1.0, (number + 1) / total))


def largest_change(agent):
    """Return the largest parameter change of an update: with Adam about the learning rate."""
    before = agent._optimizer.vector.clone()
    fill(agent, 9, agent.settings.rollout_steps - agent.rollout.filled)
    agent.learn(0)
    return float((agent._optimizer.vector - before).abs().max())


@pytest.mark.parametrize(("share", "expected"), [(0.0, 1.0), (0.5, 0.5), (1.0, 0.0)])
def test_the_learning_rate_is_annealed_to_zero_over_a_run(share, expected):
    agent = make_ppo(anneal=True, learning_rate=0.01)
    play(Trainee(agent, slice(None), Training()), round(share * 40), 0, total=40)
    assert largest_change(agent) == pytest.approx(0.01 * expected, abs=0.0025)


def test_without_annealing_the_learning_rate_is_constant():
    agent = make_ppo(learning_rate=0.01)
    play(Trainee(agent, slice(None), Training()), 40, 0, total=40)
    assert largest_change(agent) == pytest.approx(0.01, abs=0.0025)


def test_an_annealed_learning_rate_is_restored():
    agents = [make_ppo(anneal=True, learning_rate=0.01, max_grad_norm=None) for _ in range(2)]
    steady, saved = (Trainee(agent, slice(None), Training()) for agent in agents)
    play(steady, 15, 0, 40)
    play(saved, 15, 0, 40)
    fresh = make_ppo(anneal=True, learning_rate=0.01, max_grad_norm=None)
    again = Trainee(fresh, slice(None), Training())
    again.restore(saved.state(with_memory=True))
    play(steady, 8, 15, 40)
    play(again, 8, 15, 40)
    assert torch.equal(steady.agent._optimizer.vector, fresh._optimizer.vector)


def test_it_learns_the_action_with_the_highest_reward():
    for actions, best in (("discrete", 2), ("continuous", np.array([0.5, 1.0]))):
        agent = make_ppo(actions, 32, rollout_steps=4, epochs=4, minibatches=2, learning_rate=0.02)
        ended = np.ones(32, bool)
        states = np.ones((32, 3), np.float32)
        for _ in range(160):
            agent.learn(0)
            past_actions = agent.explore(states)
            if actions == "discrete":
                rewards = (past_actions == best) * 1.0
            else:
                rewards = -((past_actions - best) ** 2).sum(1)
            agent.remember(Step(states, past_actions, rewards, states, ended, ~ended))
        learned = agent.act_batch(states[:1], deterministic=True)[0]
        assert np.abs(learned - best).max() < 0.3
