"""The benchmark of hockey measures what is required of it, against the scene that it says."""

import numpy as np

from benchmarks.contenders import CONTENDERS
from benchmarks.hockey import REQUIRED, measure_hockey
from benchmarks.hockey_scene import HockeyScene
from benchmarks.workloads import WORKLOADS
from shoal._bench.runner import Settings


def test_required_figures_are_about_what_there_is():
    for figure in REQUIRED:
        workload, _, names = figure.contest
        assert all(CONTENDERS[name].supports(workload) for name in names)


def test_contenders_step_hockey():
    for name in ("shoal-hockey", "shoal-hockey-1", "box2d"):
        for workload in filter(CONTENDERS[name].supports, WORKLOADS):
            vector = CONTENDERS[name].open(WORKLOADS[workload], 20)
            steps, seconds = vector.step_many(0.01)
            assert steps > 0 < seconds
            vector.close()


def test_the_scene_plays_whole_matches():
    scene, random, ends = HockeyScene(), np.random.default_rng(0), []
    scene.reset()
    for _ in range(800):
        seen, rewards, terminated, truncated, infos = scene.play(random.uniform(-1, 1, 8))
        assert seen.shape == (2, 18)
        assert rewards[0] == 10 * infos[0]["winner"] + infos[0]["reward_closeness_to_puck"]
        if terminated or truncated:
            ends.append((terminated, truncated, infos[0]["winner"]))
            assert scene.time == 0
    assert len(ends) >= 3
    assert all(terminated == (winner != 0) != truncated for terminated, truncated, winner in ends)


def test_results_are_written(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("benchmarks.hockey.worth_of_threads", lambda *_: [])
    measure_hockey(Settings(rounds=2, seconds=0.01), tmp_path)
    assert "hockey 4096: shoal-hockey-1 times box2d" in capsys.readouterr().out
    assert {path.name for path in tmp_path.iterdir()} == {"hockey.json", "hockey.md"}
