"""Ends of runs: target reward, time limit, errors, and interrupts during an evaluation."""

import signal

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from shoal.errors import NotFiniteError
from shoal.train import _evaluation, play_episodes, resume_run
from shoal.train._config import parse_config
from shoal.train._reporting.formatting import remaining_seconds
from shoal.train._runs.evaluator import Evaluator
from shoal.train._runs.run import Run
from tests.train.runs.small_runs import (
    checkpoints,
    differences,
    episodes,
    last_state,
    make_config,
    network,
    train_run,
)


class NotFinite(gymnasium.Env):
    """Environment that returns a number that is not finite in step 3 of its second episode."""

    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = spaces.Discrete(2)
    location = "reward"

    def __init__(self):
        self.episode = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        self.episode += 1
        first = np.nan if (self.location, self.episode) == ("first", 2) else 0.0
        return np.array([first, 1.0], np.float32), {}

    def step(self, action):
        self.steps += 1
        fails = self.episode == 2 and self.steps == 3
        first = np.inf if fails and self.location == "observation" else 0.0
        reward = np.nan if fails and self.location == "reward" else 1.0
        return np.array([first, 1.0], np.float32), reward, self.steps == 5, False, {}


class TestNotFiniteNumbers:
    @pytest.mark.parametrize(
        ("location", "message"),
        [
            ("reward", r"the reward of slot 0 after step 3 of its episode is nan"),
            ("observation", r"the observation of slot 0 after step 3 of its episode is \[inf  ?1"),
            ("first", r"the observation of slot 0 after step 0 of its episode is \[nan  ?1"),
        ],
    )
    @pytest.mark.parametrize("kind", ["DDDQN", "PPO"])
    def test_from_an_environment(self, tmp_path, monkeypatch, kind, location, message):
        monkeypatch.setattr(NotFinite, "location", location)
        config = make_config(kind, task="not-finite", steps=100, arguments={"backend": "inline"})
        with pytest.raises(NotFiniteError, match=message):
            train_run(config, tmp_path, env=NotFinite, num_envs=2)

    def test_large_numbers_with_infinite_sum_are_accepted(self, tmp_path, monkeypatch):
        step = NotFinite.step

        def large(env, action):
            _, *rest = step(env, action)
            return np.full(2, 3e38, np.float32), *rest

        monkeypatch.setattr(NotFinite, "location", "")
        monkeypatch.setattr(NotFinite, "step", large)
        config = make_config(task="large", steps=40, arguments={"backend": "inline"})
        assert train_run(config, tmp_path, env=NotFinite, num_envs=2)["total_steps"] == 40

    def test_from_updates(self, tmp_path):
        config = make_config(
            steps=400, checkpoint_save_freq=50, settings={"learning_rate": 1e30}
        )  # fmt: skip
        with pytest.raises(NotFiniteError, match=r"after [\d,]+ updates, .* is not finite.*has"):
            train_run(config, tmp_path)
        for path in checkpoints(tmp_path / "run"):
            assert all(np.isfinite(values).all() for values in network(path).values())


class TestMaxSeconds:
    def test_run_ends_at_max_seconds(self, tmp_path):
        result = train_run(make_config(steps=10**9, max_seconds=0.5), tmp_path)
        assert 0.5 <= result["seconds"] < 5
        assert 0 < result["total_steps"] < 10**9
        assert result["evaluation_results"][-1]["step"] == result["total_steps"]
        again = resume_run(tmp_path / "run", verbose=False)
        assert again["total_steps"] == result["total_steps"]

    def test_shorter_run_does_not_wait(self, tmp_path):
        result = train_run(make_config(steps=60, max_seconds=60), tmp_path)
        assert result["total_steps"] == 60
        assert result["seconds"] < 30

    def test_reported_remaining_time(self, tmp_path, monkeypatch):
        records, report_progress = [], Run._report_progress

        def recorded(run):
            monkeypatch.setattr(run._reporter, "progress", records.append)
            report_progress(run)

        monkeypatch.setattr(Run, "_report_progress", recorded)
        train_run(make_config(steps=10**9, max_seconds=1.2), tmp_path)
        assert len(records) >= 2
        for record in records:
            assert remaining_seconds(record) == pytest.approx(max(0, 1.2 - record.seconds), abs=0.1)


class TestFailingEvaluation:
    def test_run_is_saved_before_the_error(self, tmp_path, monkeypatch):
        config = make_config(steps=300, eval_freq_steps=200)
        train_run(config, tmp_path, "whole")
        evaluate = Evaluator.evaluate
        monkeypatch.setattr(Evaluator, "evaluate", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            train_run(config, tmp_path)
        assert [path.stem for path in checkpoints(tmp_path / "run")] == ["step-000000000200"]
        monkeypatch.setattr(Evaluator, "evaluate", evaluate)
        resume_run(tmp_path / "run", verbose=False)
        assert not differences(last_state(tmp_path / "whole"), last_state(tmp_path / "run"))

    @pytest.mark.parametrize("step", [200, 300])
    def test_interrupt_aborts_the_evaluation(self, tmp_path, monkeypatch, step):
        """The evaluation is repeated when the run is resumed."""
        config = make_config(steps=300, eval_freq_steps=200, checkpoint_save_freq=100)
        train_run(config, tmp_path, "whole")
        without_opponent, interrupts = Evaluator._without_opponent, []

        def interrupted(evaluator, agent, at):
            if at == step and not interrupts:
                interrupts.append(at)
                signal.raise_signal(signal.SIGINT)
                raise AssertionError("the evaluation continued")
            return without_opponent(evaluator, agent, at)

        monkeypatch.setattr(Evaluator, "_without_opponent", interrupted)
        with pytest.raises(KeyboardInterrupt, match="shoal resume"):
            train_run(config, tmp_path)
        assert interrupts == [step]
        assert checkpoints(tmp_path / "run")[-1].stem == f"step-{step:012d}"
        result = resume_run(tmp_path / "run", verbose=False)
        assert [record["step"] for record in result["evaluation_results"]] == [200, 300]
        assert not differences(last_state(tmp_path / "whole"), last_state(tmp_path / "run"))
        assert episodes(tmp_path / "whole") == episodes(tmp_path / "run")

    def test_best_agent_is_saved_after_a_failed_save(self, tmp_path, monkeypatch):
        """The score of an agent that could not be saved does not count as the best."""
        config = make_config(steps=300, eval_freq_steps=100)
        train_run(config, tmp_path, "whole")
        evaluate, failures = Evaluator.evaluate, [OSError("no space")]

        def failing(evaluator, agent, step):
            if failures:
                with monkeypatch.context() as patched:

                    def fails(*_):
                        raise failures.pop()

                    patched.setattr(type(agent), "save", fails)
                    return evaluate(evaluator, agent, step)
            return evaluate(evaluator, agent, step)

        monkeypatch.setattr(Evaluator, "evaluate", failing)
        with pytest.raises(OSError, match="no space"):
            train_run(config, tmp_path)
        resume_run(tmp_path / "run", verbose=False)
        best = [network(tmp_path / name / "best.agent") for name in ("whole", "run")]
        assert not differences(*best)

    def test_endless_episode_is_truncated_with_a_warning(self, monkeypatch):
        class Endless(NotFinite):
            def step(self, action):
                return np.zeros(2, np.float32), 1.0, False, False, {}

        class ZeroPlayer:
            def act_in_environment(self, states, deterministic=True):
                return np.zeros(len(states), np.int64)

        monkeypatch.setattr(_evaluation, "_MAX_STEPS", 50)
        backend = {"backend": "inline"}
        with pytest.warns(RuntimeWarning, match=r"Endless has not ended after 50 steps.*max_epis"):
            returns, lengths = play_episodes(ZeroPlayer(), Endless, 3, arguments=backend)
        assert (returns == 50).all()
        assert (lengths == 50).all()
        _, lengths = play_episodes(
            ZeroPlayer(), Endless, 3, arguments=backend, max_episode_steps=70
        )  # fmt: skip
        assert (lengths == 70).all()


def test_interrupted_run_has_a_report(tmp_path, monkeypatch, interrupted_at):
    plot_folders = []
    monkeypatch.setattr(
        "shoal.train._reporting.reporter.write_plots", lambda path, _: plot_folders.append(path)
    )
    interrupted_at(200)
    with pytest.raises(KeyboardInterrupt, match="shoal resume"):
        train_run(make_config(steps=400), tmp_path)
    assert plot_folders == [tmp_path / "run" / "plots"]
    assert "200" in (tmp_path / "run" / "report.html").read_text()
    assert not (tmp_path / "run" / "final.agent").exists()
    assert not (tmp_path / "run" / "result.json").exists()


class TestInvalidArguments:
    @pytest.mark.parametrize("seed", [-1, 1.5, True, "3"])
    def test_seeds(self, tmp_path, seed):
        with pytest.raises(ValueError, match="seed must be a non-negative integer, got"):
            train_run(make_config(steps=60), tmp_path, seed=seed)

    def test_numpy_seed_is_accepted(self, tmp_path):
        assert train_run(make_config(steps=60), tmp_path, seed=np.int64(0))["total_steps"] == 60

    def test_buffer_that_exceeds_memory(self, tmp_path):
        config = make_config(steps=60, settings={"buffer_size": 10**12})
        with pytest.raises(ValueError, match=r"a buffer_size of 1,000,000,000,000 .*44,000.0 GB"):
            train_run(config, tmp_path)
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize("value", [float("inf"), 1e300, float("nan")])
    def test_updates_per_step_must_be_finite(self, value):
        raw = {
            "curriculum": {"phases": [{"name": "only", "steps": 1}]},
            "agent": {"type": "SAC"},
            "training": {"updates_per_step": value},
        }
        with pytest.raises(ValueError, match=r"training\.updates_per_step"):
            parse_config(raw)


@pytest.mark.parametrize("setting", [{"updates_per_step": 4}, {"warmup_steps": 7}])
def test_settings_unused_by_ppo_warn(tmp_path, setting):
    (name,) = setting
    with pytest.warns(UserWarning, match=f"training.{name} is not used: PPO"):
        train_run(make_config("PPO", steps=60, **setting), tmp_path)
