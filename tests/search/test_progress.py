"""What a person is told while a run goes on."""

from autotransfer.search import BASELINE, BASELINE_BY_CLASS, Entry, Setting
from autotransfer.search.progress import RunProgress
from autotransfer.search.settings.recipe import Recipe
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


def test_the_best_so_far_of_a_hands_off_run_was_tried_on_everybody(capsys):
    progress = RunProgress(True, every=0.0)

    def trial(stage, steps, fold, score, seed=0):
        one = Trial(Setting(None, recipe=Recipe.of(n_steps=steps)), fold, 2, seed, 1, grouped=True)
        result = {"validation": {"subjects": {f"person {fold}": score}}}
        return Entry(one.id("data"), stage, "done", one.to_json(), result)

    first = [trial("first", 10, fold, 0.5) for fold in range(2)]
    progress.stage("first", 2, first)
    progress.stage("refit", 1, ())
    other, part = [trial("recipe", 20, fold, 0.6) for fold in range(2)], trial("recipe", 40, 0, 0.9)
    capsys.readouterr()
    progress.stage("recipe", 4, [*first, *other, part])
    # A further seed counts when it was tried on everybody, too.
    again = trial("confirm", 20, 0, 0.1, seed=1)
    progress.stage("confirm", 6, [*first, *other, part, again])
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.endswith(
        "best so far 0.600 ± 0.000 uncensored (n_steps=20), first answer 0.500 ± 0.000 uncensored "
        "(n_steps=10)"
    )
