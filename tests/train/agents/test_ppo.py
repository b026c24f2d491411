"""What PPO learns from its rollouts, computed once more by hand."""

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
from tests.train.agents.plain import Recorder, all_close

LOW, HIGH = np.array([-2.0, 0.0], np.float32), np.array([1.0, 4.0], np.float32)
SPACES = {
    "choices": AgentSpaces(3, spaces.Discrete(4)),
    "numbers": AgentSpaces(3, spaces.Box(LOW, HIGH)),
}


def made(actions="choices", slots=3, **settings):
    small = {"hidden_dim": [8], "rollout_steps": 5, "epochs": 1, "minibatches": 1, "log_std": -1.0}
    return make_agent("PPO", SPACES[actions], small | settings, num_slots=slots, seed=1)


def filled(agent, seed=0, steps=None):
    rng = np.random.default_rng(seed)
    for _ in range(agent.settings.rollout_steps if steps is None else steps):
        seen = rng.normal(size=(agent.num_slots, 3)).astype(np.float32)
        actions = agent.explore(seen)
        agent.remember(
            Step(
                seen,
                actions,
                rng.normal(0, 3, agent.num_slots),
                rng.normal(size=(agent.num_slots, 3)).astype(np.float32),
                rng.random(agent.num_slots) < 0.2,
                rng.random(agent.num_slots) < 0.2,
            )
        )


def disturbed(agent):
    """As it would be after some updates, so that densities are not what they were."""
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in agent.policy.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))


@pytest.mark.parametrize("actions", SPACES)
@pytest.mark.parametrize("clip_value", [False, True])
@pytest.mark.parametrize("entropy", [0.0, 0.1])
def test_the_objective_is_the_clipped_one(actions, clip_value, entropy, monkeypatch):
    agent = made(actions, clip_value=clip_value, entropy=entropy, value_coefficient=0.7, clip=0.2)
    filled(agent)
    disturbed(agent)
    recorder = Recorder(monkeypatch, agent._learner)
    assert agent.learn(0) == 1
    rollout, policy = agent.rollout, agent.policy
    advantages = rollout.advantages.flatten().double().numpy()
    values = rollout.values[:-1].flatten().double()
    returns = values + torch.as_tensor(advantages)
    scaled = torch.as_tensor((advantages - advantages.mean()) / (advantages.std() + 1e-8))
    seen, done = rollout.observations.flatten(0, 1), rollout.actions.flatten(0, 1)
    if actions == "choices":
        likely = Categorical(logits=policy.actor(seen).double())
        density, mean_entropy = likely.log_prob(done), likely.entropy().mean()
    else:
        normal = Normal(policy.actor(seen), policy.log_std.exp())
        units = (done - torch.as_tensor((LOW + HIGH) / 2)) / torch.as_tensor((HIGH - LOW) / 2)
        density = normal.log_prob(units).sum(1).double()
        mean_entropy = normal.entropy().sum(1).mean().double()
    ratio = (density - rollout.densities.flatten()).exp()
    assert bool(((ratio - 1).abs() > 0.2).any())
    surrogate = [min(r * a, min(max(r, 0.8), 1.2) * a) for r, a in zip(ratio, scaled, strict=True)]
    value = policy.critic(seen).squeeze(1).double()
    errors = (value - returns) ** 2
    if clip_value:
        near = values + (value - values).clamp(-0.2, 0.2)
        errors = torch.maximum(errors, (near - returns) ** 2)
    loss = -torch.stack(surrogate).mean() + 0.7 * 0.5 * errors.mean() - entropy * mean_entropy
    assert recorder.losses == [pytest.approx(loss.item(), rel=1e-4)]
    expected = torch.autograd.grad(loss, list(policy.parameters()))
    assert all_close(recorder.gradients[0], expected, atol=2e-5)
    told = agent.metrics()
    assert told["clipped"] == pytest.approx(((ratio - 1).abs() > 0.2).double().mean().item())
    assert told["entropy"] == pytest.approx(mean_entropy.item(), rel=1e-4)
    expected = (ratio - 1 - ratio.log()).mean().item()
    assert told["divergence"] == pytest.approx(expected, rel=1e-3)


def test_a_ratio_beyond_the_clip_pushes_no_further():
    """Two actions of one state, one of them better: beyond the clip its gradient is gone."""
    for better, pushed in ((0, 0), (0, 1), (1, 0), (1, 1)):
        agent = make_agent(
            "PPO",
            AgentSpaces(1, spaces.Discrete(2)),
            {"hidden_dim": [2], "rollout_steps": 1, "epochs": 1, "minibatches": 1, "clip": 0.1}
            | {"value_coefficient": 0.0},
            num_slots=64,
        )
        seen, ended = np.ones((64, 1), np.float32), np.ones(64, bool)
        actions = agent.explore(seen)
        assert 0 < actions.sum() < 64
        agent.remember(Step(seen, actions, (actions == better) * 1.0, seen, ended, ~ended))
        with torch.no_grad():
            agent.policy.actor[-1].bias[pushed] += 3.0
        before = agent.policy.actor[-1].bias.clone()
        agent.learn(0)
        moved = bool((agent.policy.actor[-1].bias != before).any())
        assert moved is (better != pushed)


@pytest.mark.parametrize(
    ("steps", "slots", "minibatches", "epochs"),
    [(8, 1, 4, 1), (8, 3, 4, 2), (5, 2, 3, 3), (9, 1, 4, 1), (4, 3, 5, 2), (4, 1, 1, 5)],
)
def test_an_epoch_is_divided_into_as_many_parts_as_asked(steps, slots, minibatches, epochs):
    agent = made(slots=slots, rollout_steps=steps, minibatches=minibatches, epochs=epochs)
    filled(agent)
    assert agent.learn(0) == epochs * minibatches
    assert agent.updates == epochs * minibatches


@pytest.mark.parametrize("actions", SPACES)
@pytest.mark.parametrize(
    ("steps", "slots", "minibatches"), [(1, 1, 1), (1, 1, 4), (2, 1, 4), (4, 1, 4), (4, 2, 8)]
)
def test_the_smallest_rollouts_spoil_nothing(actions, steps, slots, minibatches):
    """A part of one step has no deviation of its advantages to divide by."""
    agent = made(actions, slots=slots, rollout_steps=steps, minibatches=minibatches, epochs=2)
    for number in range(3):
        filled(agent, number)
        assert agent.learn(0) > 0
    assert np.isfinite(agent.evaluate(np.ones((2, 3)))).all()
    assert np.isfinite(agent.act_batch(np.ones((2, 3)), deterministic=True)).all()
    assert all(np.isfinite(value) for value in agent.metrics().values())


def test_every_step_is_learnt_from_once_in_an_epoch(monkeypatch):
    agent = made(rollout_steps=8, minibatches=4, epochs=3)
    filled(agent)
    places = []
    monkeypatch.setattr(agent, "_run_update", lambda: places.append(agent._places.clone()))
    agent.learn(0)
    assert len(places) == 12
    for epoch in range(3):
        found = torch.cat(places[4 * epoch : 4 * epoch + 4])
        assert sorted(found.tolist()) == list(range(24))
    assert not torch.equal(torch.cat(places[:4]), torch.cat(places[4:8]))


def test_nothing_is_learnt_before_the_rollout_is_full():
    agent = made()
    before = agent.evaluate(np.ones((1, 3)))
    for _ in range(4):
        assert agent.learn(100) == 0
        filled(agent, steps=1)
    assert agent.learn(0) == 0
    filled(agent, steps=1)
    assert np.array_equal(before, agent.evaluate(np.ones((1, 3))))
    assert agent.learn(0) == 1
    assert agent.learn(0) == 0
    assert not np.array_equal(before, agent.evaluate(np.ones((1, 3))))


def test_the_running_scale_has_seen_what_the_agent_has():
    agent = made(normalize_observations=True)
    filled(agent, 0)
    seen = agent.rollout.observations.flatten(0, 1).clone().numpy()
    agent.learn(0)
    np.testing.assert_allclose(agent.policy.scaled.mean, seen.mean(0), atol=1e-3)
    np.testing.assert_allclose(agent.policy.scaled.variance, seen.var(0), rtol=1e-3)
    filled(agent, 1)
    seen = np.concatenate([seen, agent.rollout.observations.flatten(0, 1).numpy()])
    agent.learn(0)
    np.testing.assert_allclose(agent.policy.scaled.mean, seen.mean(0), atol=1e-3)


def test_densities_are_those_of_the_policy_that_acted():
    """With running scales, too: they do not change within a rollout."""
    agent = made("numbers", normalize_observations=True)
    for number in range(3):
        filled(agent, number)
        rollout = agent.rollout
        with torch.no_grad():
            density, _, value = agent.policy.judge(
                rollout.observations.flatten(0, 1), rollout.actions.flatten(0, 1)
            )
        torch.testing.assert_close(density, rollout.densities.flatten(), rtol=1e-3, atol=1e-3)
        torch.testing.assert_close(value, rollout.values[:-1].flatten(), rtol=1e-3, atol=1e-3)
        agent.learn(0)


def play(trainee, rounds, begun, whole):
    """As a run does: act, step, remember, and tell the agent how far the run is."""
    rng = np.random.default_rng(begun)
    slots = trainee.agent.num_slots
    for number in range(begun, begun + rounds):
        trainee.act(rng.normal(size=(slots, 3)).astype(np.float32))
        ended = rng.random(slots) < 0.1
        after = rng.normal(size=(slots, 3)).astype(np.float32)
        trainee.remember(Outcome(rng.normal(size=slots), after, ended, ~ended & False))
        trainee.agent.progressed(trainee.pace.steps, min(1.0, (number + 1) / whole))


def updates_of(agent):
    """How far an update moves the parameters at most: with Adam about its learning rate."""
    before = agent._learner.vector.clone()
    filled(agent, 9, agent.settings.rollout_steps - agent.rollout.filled)
    agent.learn(0)
    return float((agent._learner.vector - before).abs().max())


@pytest.mark.parametrize(("share", "expected"), [(0.0, 1.0), (0.5, 0.5), (1.0, 0.0)])
def test_the_rate_falls_to_nothing_over_a_run(share, expected):
    agent = made(anneal=True, learning_rate=0.01)
    play(Trainee(agent, slice(None), Training()), round(share * 40), 0, whole=40)
    assert updates_of(agent) == pytest.approx(0.01 * expected, abs=0.0025)


def test_without_annealing_the_rate_stays():
    agent = made(learning_rate=0.01)
    play(Trainee(agent, slice(None), Training()), 40, 0, whole=40)
    assert updates_of(agent) == pytest.approx(0.01, abs=0.0025)


def test_a_rate_that_has_fallen_is_restored():
    agents = [made(anneal=True, learning_rate=0.01, max_grad_norm=None) for _ in range(2)]
    steady, saved = (Trainee(agent, slice(None), Training()) for agent in agents)
    play(steady, 15, 0, 40)
    play(saved, 15, 0, 40)
    fresh = made(anneal=True, learning_rate=0.01, max_grad_norm=None)
    again = Trainee(fresh, slice(None), Training())
    again.restore(saved.state(with_memory=True))
    play(steady, 8, 15, 40)
    play(again, 8, 15, 40)
    assert torch.equal(steady.agent._learner.vector, fresh._learner.vector)


def test_it_learns_what_is_worth_more():
    for actions, best in (("choices", 2), ("numbers", np.array([0.5, 1.0]))):
        agent = made(actions, 32, rollout_steps=4, epochs=4, minibatches=2, learning_rate=0.02)
        ended = np.ones(32, bool)
        seen = np.ones((32, 3), np.float32)
        for _ in range(160):
            agent.learn(0)
            done = agent.explore(seen)
            rewards = (done == best) * 1.0 if actions == "choices" else -((done - best) ** 2).sum(1)
            agent.remember(Step(seen, done, rewards, seen, ended, ~ended))
        found = agent.act_batch(seen[:1], deterministic=True)[0]
        assert np.abs(found - best).max() < 0.3
