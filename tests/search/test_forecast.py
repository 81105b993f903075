"""What a run will cost: several budgets from one measurement."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import drive

from autotransfer.errors import BudgetError

DATA = drive.data()


@pytest.mark.slow
def test_budgets_are_planned_from_one_measurement(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    auto = drive.auto(None)
    whole, hour, short = auto.forecast(
        DATA.X, DATA.y, subject=DATA.subject, budgets=[None, "1h", "0.001s"]
    )
    assert (whole.budget, hour.budget, short.budget) == (None, 3600.0, 0.001)
    assert whole.trials == hour.trials == 17  # an hour is more than enough
    assert 0 < whole.plan.seconds < 3600
    assert whole.workers == 2
    assert whole.memory > 2**28
    assert short.plan is None
    assert "too short" in short.words
    assert str(short) == short.words
    assert "17 trials" in str(whole)
    assert capsys.readouterr().out == ""
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(BudgetError, match="too short"):
        drive.auto(None, budget="0.001s").dry_run(DATA.X, DATA.y, subject=DATA.subject)
