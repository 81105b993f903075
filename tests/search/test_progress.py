"""What a person is told while a run goes on."""

from autotransfer.search import BASELINE, BASELINE_BY_CLASS, Entry, Setting
from autotransfer.search.progress import RunProgress
from autotransfer.search.settings.trial import Trial


def test_the_best_so_far_is_a_censor_and_no_baseline(capsys):
    progress = RunProgress(True, every=0.0)
    scores = {BASELINE: 0.5, BASELINE_BY_CLASS: 0.9, Setting.of("mmd", "conditional", 1): 0.6}
    entries = []
    for setting, score in scores.items():
        result = {"validation": {"subjects": {"a": score}}}
        trial = Trial(setting, 0, 3, 0, 1)
        entries.append(Entry(trial.id("data"), "search", "done", trial.to_json(), result))
    progress.stage("search", 3, entries)
    said = capsys.readouterr().err
    assert "best so far 0.600 mmd conditional 1" in said
    assert "baseline 0.500 uncensored" in said
