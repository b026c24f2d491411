"""How runs end: at their goal, by the clock, and in the middle of an evaluation."""

import signal

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from shoal.errors import NotFiniteError
from shoal.train import _evaluation, play_episodes, resume_run
from shoal.train._config import parse_config
from shoal.train._reporting.formatting import remaining_seconds
from shoal.train._runs.judge import Judge
from shoal.train._runs.run import Run
from tests.train.runs.making import (
    checkpoints,
    differences,
    episodes,
    last_state,
    made_config,
    network,
    trained,
)


class Wrong(gymnasium.Env):
    """After three steps of its second episode something is not a number."""

    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = spaces.Discrete(2)
    wrong = "reward"

    def __init__(self):
        self.episode = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        self.episode += 1
        first = np.nan if (self.wrong, self.episode) == ("first", 2) else 0.0
        return np.array([first, 1.0], np.float32), {}

    def step(self, action):
        self.steps += 1
        bad = self.episode == 2 and self.steps == 3
        seen = np.array([np.inf if bad and self.wrong == "observation" else 0.0, 1.0], np.float32)
        reward = np.nan if bad and self.wrong == "reward" else 1.0
        return seen, reward, self.steps == 5, False, {}


class TestNumbersThatAreNotFinite:
    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            ("reward", r"the reward of slot 0 after step 3 of its episode is nan"),
            ("observation", r"the observation of slot 0 after step 3 of its episode is \[inf  ?1"),
            ("first", r"the observation of slot 0 after step 0 of its episode is \[nan  ?1"),
        ],
    )
    @pytest.mark.parametrize("kind", ["DDDQN", "PPO"])
    def test_from_an_environment(self, tmp_path, monkeypatch, kind, wrong, message):
        monkeypatch.setattr(Wrong, "wrong", wrong)
        config = made_config(kind, task="wrong", steps=100, arguments={"backend": "inline"})
        with pytest.raises(NotFiniteError, match=message):
            trained(config, tmp_path, env=Wrong, num_envs=2)

    def test_large_ones_are_finite(self, tmp_path, monkeypatch):
        """Their sum is not."""
        step = Wrong.step

        def large(env, action):
            _, *rest = step(env, action)
            return np.full(2, 3e38, np.float32), *rest

        monkeypatch.setattr(Wrong, "wrong", "")
        monkeypatch.setattr(Wrong, "step", large)
        config = made_config(task="large", steps=40, arguments={"backend": "inline"})
        assert trained(config, tmp_path, env=Wrong, num_envs=2)["total_steps"] == 40

    def test_from_updates(self, tmp_path):
        config = made_config(
            steps=400, checkpoint_save_freq=50, settings={"learning_rate": 1e30}
        )  # fmt: skip
        with pytest.raises(NotFiniteError, match=r"after [\d,]+ updates the .* is not finite.*has"):
            trained(config, tmp_path)
        for path in checkpoints(tmp_path / "run"):
            assert all(np.isfinite(values).all() for values in network(path).values())


class TestByTheClock:
    def test_a_run_ends_when_its_time_is_over(self, tmp_path):
        result = trained(made_config(steps=10**9, max_seconds=0.5), tmp_path)
        assert 0.5 <= result["seconds"] < 5
        assert 0 < result["total_steps"] < 10**9
        assert result["evaluation_results"][-1]["step"] == result["total_steps"]
        again = resume_run(tmp_path / "run", verbose=False)
        assert again["total_steps"] == result["total_steps"]

    def test_a_run_that_is_shorter_does_not_wait(self, tmp_path):
        result = trained(made_config(steps=60, max_seconds=60), tmp_path)
        assert result["total_steps"] == 60
        assert result["seconds"] < 30

    def test_what_is_told_to_be_left_is_what_is_left(self, tmp_path, monkeypatch):
        told, tell = [], Run._tell

        def telling(run):
            monkeypatch.setattr(run._reporter, "progress", told.append)
            tell(run)

        monkeypatch.setattr(Run, "_tell", telling)
        trained(made_config(steps=10**9, max_seconds=1.2), tmp_path)
        assert len(told) >= 2
        for record in told:
            assert remaining_seconds(record) == pytest.approx(max(0, 1.2 - record.seconds), abs=0.1)


class TestAnEvaluation:
    def test_its_error_costs_no_training(self, tmp_path, monkeypatch):
        config = made_config(steps=300, eval_freq_steps=200)
        trained(config, tmp_path, "whole")
        evaluate = Judge.evaluate
        monkeypatch.setattr(Judge, "evaluate", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            trained(config, tmp_path)
        assert [path.stem for path in checkpoints(tmp_path / "run")] == ["step-000000000200"]
        monkeypatch.setattr(Judge, "evaluate", evaluate)
        resume_run(tmp_path / "run", verbose=False)
        assert not differences(last_state(tmp_path / "whole"), last_state(tmp_path / "run"))

    @pytest.mark.parametrize("step", [200, 300])
    def test_an_interrupt_does_not_wait_for_it(self, tmp_path, monkeypatch, step):
        """It is made when the run goes on."""
        config = made_config(steps=300, eval_freq_steps=200, checkpoint_save_freq=100)
        trained(config, tmp_path, "whole")
        alone, came = Judge._alone, []

        def interrupted(judge, agent, at):
            if at == step and not came:
                came.append(at)
                signal.raise_signal(signal.SIGINT)
                raise AssertionError("it went on")
            return alone(judge, agent, at)

        monkeypatch.setattr(Judge, "_alone", interrupted)
        with pytest.raises(KeyboardInterrupt, match="shoal resume"):
            trained(config, tmp_path)
        assert came == [step]
        assert checkpoints(tmp_path / "run")[-1].stem == f"step-{step:012d}"
        result = resume_run(tmp_path / "run", verbose=False)
        assert [found["step"] for found in result["evaluation_results"]] == [200, 300]
        assert not differences(last_state(tmp_path / "whole"), last_state(tmp_path / "run"))
        assert episodes(tmp_path / "whole") == episodes(tmp_path / "run")

    def test_what_was_best_is_kept_even_where_that_fails(self, tmp_path, monkeypatch):
        """An agent that could not be saved is no record to be beaten."""
        config = made_config(steps=300, eval_freq_steps=100)
        trained(config, tmp_path, "whole")
        evaluate, failures = Judge.evaluate, [OSError("no space")]

        def failing(judge, agent, step):
            if failures:
                with monkeypatch.context() as patched:

                    def fails(*_):
                        raise failures.pop()

                    patched.setattr(type(agent), "save", fails)
                    return evaluate(judge, agent, step)
            return evaluate(judge, agent, step)

        monkeypatch.setattr(Judge, "evaluate", failing)
        with pytest.raises(OSError, match="no space"):
            trained(config, tmp_path)
        resume_run(tmp_path / "run", verbose=False)
        best = [network(tmp_path / name / "best.agent") for name in ("whole", "run")]
        assert not differences(*best)

    def test_an_episode_without_an_end_is_cut_with_a_warning(self, monkeypatch):
        class Endless(Wrong):
            def step(self, action):
                return np.zeros(2, np.float32), 1.0, False, False, {}

        class Standing:
            def act_in_environment(self, states, deterministic=True):
                return np.zeros(len(states), np.int64)

        monkeypatch.setattr(_evaluation, "_MOST_STEPS", 50)
        backend = {"backend": "inline"}
        with pytest.warns(RuntimeWarning, match=r"Endless has not ended after 50 steps.*max_epis"):
            returns, lengths = play_episodes(Standing(), Endless, 3, arguments=backend)
        assert (returns == 50).all()
        assert (lengths == 50).all()
        _, lengths = play_episodes(
            Standing(), Endless, 3, arguments=backend, max_episode_steps=70
        )  # fmt: skip
        assert (lengths == 70).all()


def test_an_interrupted_run_has_its_report(tmp_path, monkeypatch, interrupted_at):
    drawn = []
    monkeypatch.setattr(
        "shoal.train._reporting.reporter.write_plots", lambda path, _: drawn.append(path)
    )
    interrupted_at(200)
    with pytest.raises(KeyboardInterrupt, match="shoal resume"):
        trained(made_config(steps=400), tmp_path)
    assert drawn == [tmp_path / "run" / "plots"]
    assert "200" in (tmp_path / "run" / "report.html").read_text()
    assert not (tmp_path / "run" / "final.agent").exists()
    assert not (tmp_path / "run" / "result.json").exists()


class TestWhatCannotBe:
    @pytest.mark.parametrize("seed", [-1, 1.5, True, "3"])
    def test_seeds(self, tmp_path, seed):
        with pytest.raises(ValueError, match="seed must be an integer of at least 0, got"):
            trained(made_config(steps=60), tmp_path, seed=seed)

    def test_seeds_of_numpy_can_be(self, tmp_path):
        assert trained(made_config(steps=60), tmp_path, seed=np.int64(0))["total_steps"] == 60

    def test_a_memory_that_does_not_fit(self, tmp_path):
        config = made_config(steps=60, settings={"buffer_size": 10**12})
        with pytest.raises(ValueError, match=r"a buffer_size of 1,000,000,000,000 .*44,000.0 GB"):
            trained(config, tmp_path)
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize("value", [float("inf"), 1e300, float("nan")])
    def test_paces_that_are_not_finite(self, value):
        raw = {
            "curriculum": {"phases": [{"name": "only", "steps": 1}]},
            "agent": {"type": "SAC"},
            "training": {"updates_per_step": value},
        }
        with pytest.raises(ValueError, match=r"training\.updates_per_step"):
            parse_config(raw)


@pytest.mark.parametrize("setting", [{"updates_per_step": 4}, {"warmup_steps": 7}])
def test_what_ppo_does_not_heed_is_warned_of(tmp_path, setting):
    (name,) = setting
    with pytest.warns(UserWarning, match=f"training.{name} is not used: PPO"):
        trained(made_config("PPO", steps=60, **setting), tmp_path)
