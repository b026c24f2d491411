"""Agent files: loading restores what was saved, or raises and leaves the agent unchanged."""

import numpy as np
import pytest
import torch
from gymnasium import spaces

from shoal.errors import CheckpointError, ConfigError
from shoal.train import AgentSpaces, load_agent, make_agent
from shoal.train._agents import agent_from
from shoal.train._files import write_file
from tests.train.agents.making import CHOICES, NUMBERS, SIZE, VARIANTS, Stream, make, same, train

EACH = pytest.mark.parametrize("variant", VARIANTS)
STATES = np.random.default_rng(0).normal(0, 2, (50, SIZE)).astype(np.float32)


def trained(variant, seed=0):
    agent = make(variant, seed=seed)
    train(agent, Stream(seed), 20)
    return agent


@EACH
def test_a_loaded_agent_acts_like_the_saved_one(variant, tmp_path):
    agent = trained(variant)
    agent.save(tmp_path / "new folder" / "some.agent")
    other = make(variant, seed=9)
    assert other.load(str(tmp_path / "new folder" / "some.agent")) is other
    loaded = load_agent(tmp_path / "new folder" / "some.agent")
    for copy in (other, loaded):
        assert type(copy) is type(agent)
        for method in (lambda a: a.act_batch(STATES, True), lambda a: a.evaluate(STATES)):
            assert np.array_equal(method(copy), method(agent))
        assert np.array_equal(copy.act_in_environment(STATES), agent.act_in_environment(STATES))


@EACH
def test_saving_a_loaded_agent_writes_an_equal_file(variant, tmp_path):
    agent = trained(variant)
    agent.save(tmp_path / "one")
    load_agent(tmp_path / "one").save(tmp_path / "two")
    load_agent(tmp_path / "two").save(tmp_path / "three")
    assert (tmp_path / "two").read_bytes() == (tmp_path / "three").read_bytes()
    assert same(agent.description()["network"], load_agent(tmp_path / "two").network.state_dict())


@EACH
def test_a_loaded_agent_continues_to_learn(variant, tmp_path):
    """Its parameters are still views of the vectors that optimizers and targets use."""
    trained(variant).save(tmp_path / "some.agent")
    agent = make(variant, seed=5)
    agent.load(tmp_path / "some.agent")
    before = agent.evaluate(STATES)
    train(agent, Stream(2), 30)
    assert not np.array_equal(before, agent.evaluate(STATES))
    fresh = make(variant, seed=6)
    fresh.take(agent.description(), "agent")
    assert np.array_equal(fresh.evaluate(STATES), agent.evaluate(STATES))


def test_a_loaded_agent_keeps_the_saved_epsilon(tmp_path):
    agent = make("DDDQN", epsilon_final=0.05, epsilon_steps=100)
    agent.progressed(100, 1.0)
    agent.save(tmp_path / "some.agent")
    for loaded in (load_agent(tmp_path / "some.agent"), agent_from(agent.description())):
        states = np.random.default_rng(1).normal(size=(2000, SIZE))
        random = np.mean(loaded.act_batch(states) != loaded.act_batch(states, deterministic=True))
        assert 0.0 < random < 0.1


def incompatible_agents():
    """Pairs of functions that create agents, neither of which can load the other's file."""
    small = {"hidden_dim": [8], "buffer_size": 4}
    ppo = {"hidden_dim": [8], "rollout_steps": 2}

    def dddqn(observed=CHOICES, **more):
        return lambda: make_agent("DDDQN", observed, small | more)

    def sac(observed=NUMBERS, **more):
        return lambda: make_agent("SAC", observed, small | more)

    plain = {"dueling": False}
    four = AgentSpaces(SIZE, spaces.Discrete(4), observation_scale=CHOICES.observation_scale)
    five = AgentSpaces(SIZE, spaces.Discrete(5), observation_scale=CHOICES.observation_scale)
    wider = AgentSpaces(
        SIZE, spaces.Box(NUMBERS.action_space.low - 1, NUMBERS.action_space.high + 1)
    )
    return {
        "another kind": (dddqn(), lambda: make_agent("PPO", CHOICES, ppo)),
        "another width": (dddqn(), dddqn(hidden_dim=[9])),
        "another depth": (dddqn(), dddqn(hidden_dim=[8, 8])),
        "more choices": (dddqn(four), dddqn(five)),
        "a wider state": (dddqn(four), dddqn(AgentSpaces(SIZE + 1, spaces.Discrete(4)))),
        "a finer grid": (dddqn(NUMBERS, action_fineness=2), dddqn(NUMBERS, action_fineness=3)),
        "running scale": (
            lambda: make_agent("PPO", CHOICES, ppo),
            lambda: make_agent("PPO", CHOICES, ppo | {"normalize_observations": True}),
        ),
        # With networks of the same shapes.
        "dueling": (dddqn(four), dddqn(five, **plain)),
        "activation": (dddqn(activation="tanh"), dddqn(activation="relu")),
        "bounds": (sac(), sac(wider)),
        "a table": (
            dddqn(AgentSpaces(SIZE, spaces.Box(-1, 1, (1,)), table=[[0.0], [1.0]])),
            dddqn(AgentSpaces(SIZE, spaces.Box(-1, 1, (1,)), table=[[-1.0], [0.5]])),
        ),
    }


@pytest.mark.parametrize("pair", incompatible_agents())
def test_loading_an_incompatible_agent_raises_and_changes_nothing(pair, tmp_path):
    agents = incompatible_agents()[pair]
    for number, (one, other) in enumerate([agents, agents[::-1]]):
        file = tmp_path / f"{number}.agent"
        one().save(file)
        agent = other()
        before = {name: value.clone() for name, value in agent.network.state_dict().items()}
        with pytest.raises(CheckpointError, match=rf"{number}\.agent"):
            agent.load(file)
        assert same(dict(agent.network.state_dict()), before)


def test_the_error_names_both_kinds(tmp_path):
    make("SAC").save(tmp_path / "some.agent")
    with pytest.raises(CheckpointError, match=r"some\.agent is of SAC, not of PPO"):
        make("PPO continuous").load(tmp_path / "some.agent")


@pytest.mark.parametrize("content", [{}, {"file": "else"}, {"agent": 3}, {"agent": {"file": "x"}}])
def test_loading_another_kind_of_file_raises(content, tmp_path):
    write_file(tmp_path / "some.agent", content)
    for load in (load_agent, make("DDDQN").load):
        with pytest.raises(CheckpointError, match=r"some\.agent is not an agent file"):
            load(tmp_path / "some.agent")


def test_an_agent_is_loaded_from_a_checkpoint(tmp_path):
    agent = trained("SAC")
    write_file(tmp_path / "some.checkpoint", {"steps": 3, "agent": agent.description()})
    assert np.array_equal(
        load_agent(tmp_path / "some.checkpoint").evaluate(STATES), agent.evaluate(STATES)
    )


def test_the_best_agent_is_loaded_from_the_folder_of_a_run(tmp_path):
    final, best = trained("DDDQN", 1), trained("DDDQN", 2)
    with pytest.raises(CheckpointError, match="has no agent"):
        load_agent(tmp_path)
    final.save(tmp_path / "final.agent")
    assert np.array_equal(load_agent(tmp_path).evaluate(STATES), final.evaluate(STATES))
    best.save(tmp_path / "best.agent")
    assert np.array_equal(load_agent(tmp_path).evaluate(STATES), best.evaluate(STATES))


def test_a_missing_file_raises(tmp_path):
    with pytest.raises(CheckpointError, match=r"there is no agent .*nowhere"):
        load_agent(tmp_path / "nowhere")
    with pytest.raises(CheckpointError, match=r"there is no agent .*nowhere"):
        make("DDDQN").load(tmp_path / "nowhere")


@EACH
def test_a_file_is_small_and_has_no_training_data(variant, tmp_path):
    """Many opponents are loaded at a time, so the replay buffer must not be saved with them."""
    agent = make(variant, **({} if variant.startswith("PPO") else {"buffer_size": 100_000}))
    train(agent, Stream(0), 10)
    agent.save(tmp_path / "some.agent")
    assert (tmp_path / "some.agent").stat().st_size < 40_000
    loaded = load_agent(tmp_path / "some.agent")
    assert not hasattr(loaded, "memory") or loaded.memory.capacity == 1


def test_a_loaded_agent_has_all_settings(tmp_path):
    agent = make("SAC with pink noise", alpha=0.125, max_grad_norm=None, gamma=0.9)
    agent.save(tmp_path / "some.agent")
    loaded = load_agent(tmp_path / "some.agent").settings
    assert (loaded.alpha, loaded.max_grad_norm, loaded.gamma) == (0.125, None, 0.9)
    assert (loaded.noise, loaded.hidden_dim) == ("pink", [8, 7])


def test_saving_does_not_change_the_agent(tmp_path):
    one, other = trained("SAC"), trained("SAC")
    one.save(tmp_path / "some.agent")
    assert same(train(one, Stream(5), 10), train(other, Stream(5), 10))


# Creating agents


def test_make_agent_raises_for_unknown_names_and_settings():
    with pytest.raises(ValueError, match=r"unknown agent 'DQN': expected one of DDDQN, SAC, PPO"):
        make_agent("DQN", CHOICES)
    for kind, settings, message in [
        ("SAC", {"lerning_rate": 1}, r"agent\.hyperparameters\.lerning_rate is unknown; did you"),
        ("SAC", {"gamma": 1.5}, r"agent\.hyperparameters\.gamma: expected float <= 1"),
        ("SAC", {"hidden_dim": []}, r"agent\.hyperparameters\.hidden_dim: expected array of"),
        ("SAC", {"hidden_dim": [3, 0]}, r"agent\.hyperparameters\.hidden_dim\[1\]: expected int"),
        ("SAC", {"alpha": 0.0}, r"alpha must be above 0"),
        ("DDDQN", {"action_fineness": 1}, r"agent\.hyperparameters\.action_fineness: expected"),
        ("PPO", {"buffer_size": 3}, r"agent\.hyperparameters\.buffer_size is unknown"),
    ]:
        with pytest.raises(ConfigError, match=message):
            make_agent(kind, NUMBERS, settings)


@EACH
def test_agents_with_the_same_seed_are_identical(variant):
    one, two, other = make(variant, seed=3), make(variant, seed=3), make(variant, seed=4)
    assert same(dict(one.network.state_dict()), dict(two.network.state_dict()))
    assert not np.array_equal(one.evaluate(STATES), other.evaluate(STATES))
    assert same(train(one, Stream(0), 30), train(two, Stream(0), 30))
    assert same(dict(one.network.state_dict()), dict(two.network.state_dict()))


@EACH
def test_agents_neither_use_nor_advance_global_random_generators(variant, tmp_path):
    torch.manual_seed(1)
    np.random.seed(1)
    one = make(variant, seed=3)
    torch.manual_seed(2)
    np.random.seed(2)
    before = torch.get_rng_state(), np.random.get_state()
    two = make(variant, seed=3)
    train(two, Stream(0), 20)
    two.random_actions()
    two.act_batch(STATES)
    two.save(tmp_path / "some.agent")
    load_agent(tmp_path / "some.agent")
    two.restore(two.state())
    assert torch.equal(before[0], torch.get_rng_state())
    assert same(list(before[1]), list(np.random.get_state()))
    train(one, Stream(0), 20)
    assert same(dict(one.network.state_dict()), dict(two.network.state_dict()))
