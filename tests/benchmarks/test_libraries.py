"""Which libraries are measured, and how they are found."""

import pytest

from benchmarks import libraries, ray
from benchmarks.contenders import CONTENDERS
from benchmarks.libraries import LIBRARIES, measure_libraries


def test_the_figure_of_the_ray_pool_is_that_of_the_issue():
    (figure,) = ray.REQUIRED
    assert figure.what == "burn1ms 64: shoal-ray times shoal-process"
    assert figure.bound == ">= 0.85"
    assert set(figure.contest.contenders) <= set(CONTENDERS)


@pytest.mark.parametrize("verdicts", [(True, True), (True, False)])
def test_those_that_are_there_are_measured_and_the_others_named(
    verdicts, monkeypatch, tmp_path, capsys
):
    measured = []

    class Module:
        def __init__(self, name, verdict):
            self.name, self.verdict = name, verdict

        def __getattr__(self, name):
            def measure(settings, output):
                measured.append((name, settings.rounds, output))
                return self.verdict

            return measure

    answers = iter(verdicts)
    monkeypatch.setattr(libraries, "import_module", lambda name: Module(name, next(answers)))
    monkeypatch.setattr(
        libraries, "find_spec", lambda name: None if name == LIBRARIES["rllib"].needs else object()
    )
    reached = measure_libraries(["ray", "rllib", "torchrl"], 3, tmp_path)
    assert reached is all(verdicts)
    assert measured == [("measure_ray", 3, tmp_path), ("measure_torchrl", 3, tmp_path)]
    assert "rllib is left out" in capsys.readouterr().err
