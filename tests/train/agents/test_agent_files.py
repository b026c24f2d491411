"""Agents in files: what comes back is what was saved, or an error that leaves the agent alone."""

import numpy as np
import pytest
import torch
from gymnasium import spaces

from shoal.errors import CheckpointError, ConfigError
from shoal.train import AgentSpaces, load_agent, make_agent
from shoal.train._agents import agent_from
from shoal.train._files import write_file
from tests.train.agents.making import CHOICES, NUMBERS, SIZE, VARIANTS, Stream, go_on, make, same

EACH = pytest.mark.parametrize("variant", VARIANTS)
SEEN = np.random.default_rng(0).normal(0, 2, (50, SIZE)).astype(np.float32)


def trained(variant, seed=0):
    agent = make(variant, seed=seed)
    go_on(agent, Stream(seed), 20)
    return agent


@EACH
def test_an_agent_comes_back_from_its_file(variant, tmp_path):
    agent = trained(variant)
    agent.save(tmp_path / "new folder" / "some.agent")
    other = make(variant, seed=9)
    assert other.load(str(tmp_path / "new folder" / "some.agent")) is other
    read = load_agent(tmp_path / "new folder" / "some.agent")
    for found in (other, read):
        assert type(found) is type(agent)
        for ask in (lambda a: a.act_batch(SEEN, True), lambda a: a.evaluate(SEEN)):
            assert np.array_equal(ask(found), ask(agent))
        assert np.array_equal(found.act_in_environment(SEEN), agent.act_in_environment(SEEN))


@EACH
def test_an_agent_goes_through_files_unchanged(variant, tmp_path):
    agent = trained(variant)
    agent.save(tmp_path / "one")
    load_agent(tmp_path / "one").save(tmp_path / "two")
    load_agent(tmp_path / "two").save(tmp_path / "three")
    assert (tmp_path / "two").read_bytes() == (tmp_path / "three").read_bytes()
    assert same(agent.description()["network"], load_agent(tmp_path / "two").network.state_dict())


@EACH
def test_an_agent_that_was_loaded_learns_on(variant, tmp_path):
    """Its parameters are still those that the optimiser steps, and that targets follow."""
    trained(variant).save(tmp_path / "some.agent")
    agent = make(variant, seed=5)
    agent.load(tmp_path / "some.agent")
    before = agent.evaluate(SEEN)
    go_on(agent, Stream(2), 30)
    assert not np.array_equal(before, agent.evaluate(SEEN))
    fresh = make(variant, seed=6)
    fresh.take(agent.description(), "it")
    assert np.array_equal(fresh.evaluate(SEEN), agent.evaluate(SEEN))


def test_an_agent_from_a_file_explores_as_little_as_the_one_that_was_saved(tmp_path):
    agent = make("DDDQN", epsilon_final=0.05, epsilon_steps=100)
    agent.progressed(100, 1.0)
    agent.save(tmp_path / "some.agent")
    for found in (load_agent(tmp_path / "some.agent"), agent_from(agent.description())):
        seen = np.random.default_rng(1).normal(size=(2000, SIZE))
        others = np.mean(found.act_batch(seen) != found.act_batch(seen, deterministic=True))
        assert 0.0 < others < 0.1


def unlike():
    """Pairs of agents of which none can be the other, and what an error says of it."""
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
        # Of the same sizes, but not alike.
        "dueling": (dddqn(four), dddqn(five, **plain)),
        "activation": (dddqn(activation="tanh"), dddqn(activation="relu")),
        "bounds": (sac(), sac(wider)),
        "a table": (
            dddqn(AgentSpaces(SIZE, spaces.Box(-1, 1, (1,)), table=[[0.0], [1.0]])),
            dddqn(AgentSpaces(SIZE, spaces.Box(-1, 1, (1,)), table=[[-1.0], [0.5]])),
        ),
    }


@pytest.mark.parametrize("pair", unlike())
def test_the_file_of_another_agent_is_refused_and_changes_nothing(pair, tmp_path):
    for number, (one, other) in enumerate([unlike()[pair], unlike()[pair][::-1]]):
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
        make("PPO of numbers").load(tmp_path / "some.agent")


@pytest.mark.parametrize("content", [{}, {"file": "else"}, {"agent": 3}, {"agent": {"file": "x"}}])
def test_a_file_of_something_else_is_no_agent(content, tmp_path):
    write_file(tmp_path / "some.agent", content)
    for load in (load_agent, make("DDDQN").load):
        with pytest.raises(CheckpointError, match=r"some\.agent is not the file of an agent"):
            load(tmp_path / "some.agent")


def test_a_checkpoint_is_read_for_its_agent(tmp_path):
    agent = trained("SAC")
    write_file(tmp_path / "some.checkpoint", {"steps": 3, "agent": agent.description()})
    assert np.array_equal(
        load_agent(tmp_path / "some.checkpoint").evaluate(SEEN), agent.evaluate(SEEN)
    )


def test_the_folder_of_a_run_stands_for_its_best_agent(tmp_path):
    final, best = trained("DDDQN", 1), trained("DDDQN", 2)
    with pytest.raises(CheckpointError, match="has no agent"):
        load_agent(tmp_path)
    final.save(tmp_path / "final.agent")
    assert np.array_equal(load_agent(tmp_path).evaluate(SEEN), final.evaluate(SEEN))
    best.save(tmp_path / "best.agent")
    assert np.array_equal(load_agent(tmp_path).evaluate(SEEN), best.evaluate(SEEN))


def test_no_file_is_said_to_be_none(tmp_path):
    with pytest.raises(CheckpointError, match=r"there is no agent .*nowhere"):
        load_agent(tmp_path / "nowhere")
    with pytest.raises(CheckpointError, match=r"there is no agent .*nowhere"):
        make("DDDQN").load(tmp_path / "nowhere")


@EACH
def test_a_file_is_small_and_knows_nothing_of_training(variant, tmp_path):
    """Opponents are loaded many at a time: what was remembered does not come along."""
    agent = make(variant, **({} if variant.startswith("PPO") else {"buffer_size": 100_000}))
    go_on(agent, Stream(0), 10)
    agent.save(tmp_path / "some.agent")
    assert (tmp_path / "some.agent").stat().st_size < 40_000
    read = load_agent(tmp_path / "some.agent")
    assert not hasattr(read, "memory") or read.memory.capacity == 1


def test_all_settings_come_back(tmp_path):
    agent = make("SAC in pink", alpha=0.125, max_grad_norm=None, gamma=0.9)
    agent.save(tmp_path / "some.agent")
    read = load_agent(tmp_path / "some.agent").settings
    assert (read.alpha, read.max_grad_norm, read.gamma) == (0.125, None, 0.9)
    assert (read.noise, read.hidden_dim) == ("pink", [8, 7])


def test_saving_changes_nothing_about_the_agent(tmp_path):
    one, other = trained("SAC"), trained("SAC")
    one.save(tmp_path / "some.agent")
    assert same(go_on(one, Stream(5), 10), go_on(other, Stream(5), 10))


# Making


def test_agents_are_made_by_name():
    with pytest.raises(ValueError, match=r"no agent 'DQN'; there are DDDQN, SAC, PPO"):
        make_agent("DQN", CHOICES)
    for kind, settings, problem in [
        ("SAC", {"lerning_rate": 1}, r"agent\.hyperparameters\.lerning_rate is unknown; did you"),
        ("SAC", {"gamma": 1.5}, r"agent\.hyperparameters\.gamma: expected float <= 1"),
        ("SAC", {"hidden_dim": []}, r"agent\.hyperparameters\.hidden_dim: expected array of"),
        ("SAC", {"hidden_dim": [3, 0]}, r"agent\.hyperparameters\.hidden_dim\[1\]: expected int"),
        ("SAC", {"alpha": 0.0}, r"alpha must be above 0"),
        ("DDDQN", {"action_fineness": 1}, r"agent\.hyperparameters\.action_fineness: expected"),
        ("PPO", {"buffer_size": 3}, r"agent\.hyperparameters\.buffer_size is unknown"),
    ]:
        with pytest.raises(ConfigError, match=problem):
            make_agent(kind, NUMBERS, settings)


@EACH
def test_a_seed_says_everything(variant):
    one, two, other = make(variant, seed=3), make(variant, seed=3), make(variant, seed=4)
    assert same(dict(one.network.state_dict()), dict(two.network.state_dict()))
    assert not np.array_equal(one.evaluate(SEEN), other.evaluate(SEEN))
    assert same(go_on(one, Stream(0), 30), go_on(two, Stream(0), 30))
    assert same(dict(one.network.state_dict()), dict(two.network.state_dict()))


@EACH
def test_what_others_draw_plays_no_part_and_is_not_disturbed(variant, tmp_path):
    torch.manual_seed(1)
    np.random.seed(1)
    one = make(variant, seed=3)
    torch.manual_seed(2)
    np.random.seed(2)
    before = torch.get_rng_state(), np.random.get_state()
    two = make(variant, seed=3)
    go_on(two, Stream(0), 20)
    two.random_actions()
    two.act_batch(SEEN)
    two.save(tmp_path / "some.agent")
    load_agent(tmp_path / "some.agent")
    two.restore(two.state())
    assert torch.equal(before[0], torch.get_rng_state())
    assert same(list(before[1]), list(np.random.get_state()))
    go_on(one, Stream(0), 20)
    assert same(dict(one.network.state_dict()), dict(two.network.state_dict()))
