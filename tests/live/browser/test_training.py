"""The panel of a training run."""

from tests.live.browser.browser_window import GAP, MINUS


def test_the_progress_of_the_run_is_shown(window, training):
    window.open(training.url)
    window.wait_for(lambda: window.is_visible("#training"))
    assert window.text("#title") == "hockey_dddqn"
    assert window.text("#phase-label") == "Phase 2 of 3: defense"
    assert window.text("#phase-percent") == f"40{GAP}%"
    assert window.text("#run-percent") == f"47{GAP}%"
    assert window.run("return document.querySelector('#run-share').value") == 0.47
    assert window.text("#training-pace") == f"1{GAP}234 updates · 99.5/s"
    assert window.text("#losses") == f"critic\n0.012\nactor\n{MINUS}1.27"


def test_evaluations_ratings_and_wins_are_shown(window, training):
    window.open(training.url)
    window.wait_for(lambda: window.is_visible("#evaluations tr"))
    newest, before = window.texts("#evaluations tr")
    assert newest.split() == ["60", "k", "strong", "200", "45", "%", "2.50"]
    assert before.split()[2] == "weak"
    style = window.attribute("#evaluations .interval", "style")
    assert "left: 38%" in style
    assert "width: 14%" in style
    assert [row.split()[0] for row in window.texts("#ratings tr")] == ["main", "weak"]
    assert window.text("#win-rate") == f"61{GAP}%"
    assert window.texts("#win-chart .axes text")[:3] == [f"{share}{GAP}%" for share in (0, 50, 100)]
    assert "evaluation" in window.texts("#log .kind")
