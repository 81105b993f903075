"""Write the figures of README and documentation from the files in `benchmarks/results/`.

    python -m benchmarks.speed.eegnet_step --json benchmarks/results/eegnet_step.json    (and so on)
    python -m benchmarks.figures

A test fails when a page and the files differ, so no figure is typed in by hand.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

BENCHMARKS = Path(__file__).resolve().parent
RESULTS = BENCHMARKS / "results"
ROOT = BENCHMARKS.parent
START, END = "<!-- figures: made by benchmarks/figures.py -->", "<!-- end of figures -->"

TABLES = {
    "erm": (
        "Uncensored EEGNet on people it has never seen (balanced accuracy; each fold validates on "
        "one person or group and tests on the next). 'Simple pipeline' is an untuned classical "
        "one on the same recordings, from their description, leave-one-subject-out.",
        ("data", "normalise", "subjects", "mean", "sd", "lower quartile", "worst",
         "simple pipeline"),
    ),
    "baseline": (
        "The uncensored baseline of the evidence: options chosen one after the other by the mean "
        "validation score (*). Test scores stand beside it and chose nothing, with their "
        "difference from the chosen options' person by person (paired Wilcoxon p, one seed). Where "
        "there is a patience, training was stopped by the person who validates, for comparison.",
        ("data", "chosen", "normalise", "kernel_seconds", "F1", "drop_prob", "subjects_per_batch",
         "trials_per_subject", "learning_rate", "epochs", "patience", "validation", "test",
         "test sd", "test quartile", "from the chosen", "p"),
    ),
    "evidence": (
        "AutoTransfer, the uncensored baseline and competitors on people never seen (balanced "
        "accuracy, mean over seeds). Differences are from the baseline, person by person, with a "
        "bootstrap interval and the paired Wilcoxon test. \"AutoTransfer's\" is its lower quartile "
        "from as many seeds as the competitor has.",
        ("data", "method", "uses", "seeds", "mean", "sd", "lower quartile", "AutoTransfer's",
         "worst", "difference", "95 % interval", "p", "p, Holm", "gained / lost"),
    ),
    "candidates": (
        "Every candidate of the cross-validation, * the chosen one. The best difference, which "
        "nobody could have known beforehand, bounds what any rule of choice gains. 'Seeds apart' "
        "is how far two seeds of the same uncensored baseline are from each other; 'on the first "
        "fold' is the difference on the people who validate there, which is all that a search on "
        "one fold sees.",
        ("data", "candidate", "chosen", "seeds", "on the first fold", "validation quartile", "mean",
         "lower quartile", "difference", "95 % interval", "p", "seeds apart, mean",
         "seeds apart, quartile"),
    ),
    "own_batches": (
        "Conditional candidates beside the uncensored network with their own batches (by class: "
        "every person's trials have their share of the classes), on the folds and with the random "
        "numbers of AutoTransfer's run: they differ by the penalty alone. First what the batches "
        "do without any penalty. * is AutoTransfer's choice.",
        ("data", "method", "chosen", "beside", "seeds", "mean", "lower quartile", "difference",
         "95 % interval", "p", "of quartiles", "gained / lost"),
    ),
    "rules": (
        "What other rules of choice, margins over the baseline, or fewer seeds would have chosen "
        "from the same validation scores, and the difference of its test scores (of all seeds) "
        "from the baseline's: of the means and of the lower quartiles.",
        ("data", "rule", "seeds", "chosen", "difference", "of quartiles"),
    ),
    "gains": (
        "Do those gain whose baseline is worst? Rank correlation over people of the baseline's "
        "score (one seed) and the gain of the chosen method (the other seeds), each seed in turn; "
        "negative means yes.",
        ("data", "setting", "spearman"),
    ),
    "digest": (
        "All censors together, by strength (weak, middle, strong of their range): mean gain on "
        "people never seen over the uncensored baseline of the same seed and the same batches, its "
        "spread over censors, and the change of the subject probe's accuracy; then the same with "
        "shuffled subject labels (placebo). 'Noise' is how far trainings of the baseline with "
        "other seeds are from their mean (SD).",
        ("data", "strength", "gain", "gain sd", "probe", "placebo gain", "placebo gain sd",
         "placebo probe", "noise"),
    ),
    "importances": (
        "What matters among the censors (fANOVA, share of the variance over the settings below): "
        "for the gain on people never seen, and for what a probe finds of the person.",
        None,
    ),
    "draws": (
        "What the batches do without any penalty: the uncensored baseline with batches in which "
        "every person's trials have their share of the classes, as conditional censors have them, "
        "and with batches drawn at random, as all others have them (five trainings each; people "
        "never seen).",
        ("data", "people", "by class", "at random", "difference", "95 % interval", "p"),
    ),
    "curves": (
        "Every censor at three strengths: gain on people never seen over the uncensored baseline "
        "of the same seed and batches, one training each; the same with shuffled subject labels "
        "(placebo); change of the subject probe's accuracy. With spreads over people in the file.",
        ("data", "censor", "weak", "middle", "strong", "placebo middle", "placebo strong",
         "probe weak", "probe middle", "probe strong"),
    ),
    "gap": (
        "The same trials of the same people, predicted by models that learnt from other trials of "
        "theirs (known) and by models that never met them (new): accuracy, and the difference "
        "person by person. Marginal censors beside the uncensored baseline (three trainings, a "
        "censor has one): what they change for known and for new people, from the uncensored "
        "training of the same seed, and how far people's latents are from the mean of the training "
        "people, in deviations within people.",
        ("data", "censor", "strength", "people", "known", "new", "gap", "95 % interval", "p",
         "known change", "new change", "known distance", "new distance"),
    ),
    "skew": (
        "People who differ in what they do: every training person keeps all trials of one class "
        "and a fifth of the others (skewed), or as many evenly over classes (even). Accuracy on "
        "new people and difference from the skewed baseline; of censors (at middle strengths) the "
        "mean over the five measures and the spread between them, from the baseline of the same "
        "seed and the same batches, a single training.",
        ("data", "trials", "censors", "number", "mean", "difference", "sd"),
    ),
    "augmentations": (
        "The uncensored baseline with and without an augmentation of its training trials: balanced "
        "accuracy on people never seen (four groups, each tested by a model of the others; means "
        "over seeds), the difference person by person, and how many times as long a training "
        "takes.",
        ("data", "augmentation", "seeds", "people", "mean", "lower quartile", "difference",
         "95 % interval", "p", "gained / lost", "time"),
    ),
    "levels": (
        "What is known of a new person, and what it is worth: the network that a run begins with, "
        "trained without a group of people, on nine data sets. 'Other' trials are not those that "
        "were adapted to, but of the same sessions; 'same' are the very same. The method is chosen "
        "by all other people, under a guard that they give. Balanced accuracy, mean over seeds, "
        "paired over people with level nothing on the same trials.",
        ("data", "seeds", "level", "amount", "tested", "people", "nothing", "mean",
         "lower quartile", "difference", "95 % interval", "p"),
    ),
    "level_guard": (
        "The guard: recordings cut to half of the classes or to one, under bounds that all other "
        "people give. The share of recordings that were adapted to, and what adapting changed.",
        ("data", "cut to", "people", "adapted to", "difference"),
    ),
    "level_trainings": (
        "Trained on each person's own statistics: the scale of every channel (person), batch norms "
        "by person (person_norm), alignment (euclidean, riemannian), or what is best for all other "
        "people; paired over people with the usual training at the same level. One seed.",
        ("data", "level", "amount", "tested", "trained", "people", "mean", "lower quartile",
         "difference", "95 % interval", "p"),
    ),
    "across": (
        "Another armband: trained on everybody of one Myo data set, tested on the people of "
        "another on five common gestures, with the turn of the ring and without it.",
        ("data", "seeds", "level", "amount", "tested", "method", "people", "nothing", "mean",
         "lower quartile", "difference", "95 % interval", "p"),
    ),
    "adaptation": (
        "The uncensored baseline before and after `adapt` with unlabelled trials of the new "
        "person: how many, and how many trials the statistics of training count for (prior; * the "
        "one that validation chose of 0, 8 and 32). Other trials of the same person are predicted; "
        "with 'all', the very same. Balanced accuracy, paired over people.",
        ("data", "trials", "prior", "chosen", "people", "before", "after", "quartile before",
         "quartile after", "difference", "95 % interval", "p", "gained / lost"),
    ),
    "batch_norm_momentum": (
        "Momentum of batch norm in EEGNet (braindecode has 0.01, we have 0.1), at most 60 epochs, "
        "learning rate 0.001, patience 30.",
        ("data", "momentum", "mean", "lower quartile", "worst", "paired Wilcoxon p"),
    ),
    "eegnet_step": (
        "A training step of EEGNet, layer by layer and fused (the same function; CPU time, one "
        "thread).",
        ("channels x times, batch", "literal ms", "fused, cached ms", "speed-up",
         "speed-up per batch"),
    ),
    "loso": (
        "Leave one person out with EEGNet: networks of one size, as many steps, one thread. Ours "
        "is `CensoredClassifier` as it is; braindecode's is in skorch, on trials that are "
        "normalised before its clock starts. CPU seconds of these people, and balanced accuracy. "
        "What limits it: ours filters 16 signals of a trial in time, after the spatial filters; "
        "layer by layer it is 8 for each channel, 64 with SSVEP's 8 channels and 448 with ERP's "
        "56, so that the gain grows with the channels.",
        ("data", "people", "by", "wall s", "CPU s", "CPU ratio", "balanced accuracy"),
    ),
    "training_overhead": (
        "An epoch of `fit` against the bare loop of the same network on tensors in memory.",
        ("channels x times, batch", "bare ms", "fit ms", "fit / bare"),
    ),
    "censors_on_synthetic": (
        "The censors at their default strengths and options on a known leak (`make_leak`, learning "
        "rate 0.001): accuracy of the task "
        "and of the best subject probe on the latent (z1 in complementary mode, where z2 should "
        "keep it), and of that probe after training with shuffled subject labels (placebo).",
        ("censor", "task", "probe", "probe sd", "chance", "z2", "placebo"),
    ),
    "censors_on_recordings": (
        "The censors at their default strengths and options on real recordings (learning rate "
        "0.001, patience 30), 5 grouped folds: balanced "
        "accuracy on people never seen, and accuracy of the best subject probe on the latent of "
        "the training subjects beside that of the uncensored latent.",
        ("data", "censor", "accuracy", "sd", "lower quartile", "probed", "probe", "uncensored",
         "z2"),
    ),
    "penalty_cost": (
        "A training step with each censor, relative to the uncensored one (fused EEGNet, 8 "
        "subjects in the batch, CPU time, one thread).",
        ("channels x times, batch", "censor", "ms", "relative", "goal"),
    ),
    "first": (
        "Balanced accuracy of people never seen: by the best of three classical pipelines; by one "
        "command, the mean and the lower quartile of people. The last three columns are by one "
        "network of its answer, on half of each person's trials: with nothing of theirs, with the "
        "other half as a recording without labels, with five labels of each class. (In ECG only 16 "
        "people have five beats of each kind. In arithmetic rest always came first and was cleaned "
        "more heavily, so a person's labels may tell that rather than the task.)",
        ("recordings", "people", "classes", "classical pipeline", "one command", "lower quartile",
         "nothing", "recording", "5 labels"),
    ),
    "in_short": (
        "Balanced accuracy of people never seen, chosen without them, and the lower quartile of "
        "people; by one network of the answer, on half of each person's trials: with nothing, a "
        "recording, and five labels of each class (of those who have so many: on ECG 16 of 37).",
        ("data", "classes", "people", "minutes", "one command", "lower quartile",
         "classical pipeline", "nothing", "recording", "5 labels"),
    ),
    "encoders": (
        "EEGNet with the recipe that a run begins with, the covariance encoder, and the mean of "
        "both, and EEGNet with the paper's schedule of the learning rate (sqrt), on people never "
        "seen (balanced accuracy; one seed). Differences are from EEGNet, person by person.",
        None,
    ),
    "joined": (
        "How credible should it be that people gain before the best other encoder joins EEGNet in "
        "a mean? Score of people by what the others would have chosen, more or less carefully.",
        None,
    ),
    "hands_off": (
        "A budget, two workers and nothing else: the nested score that the run tells first, of the "
        "first answer (default recipe), of the classical pipelines; groups of people, trainings, "
        "and networks of the answer. By the first of these networks, on half of the trials of "
        "people held out: with nothing of theirs, with a recording, as a stream, with 5 labels of "
        "each class. One training: seconds that one of the first answer took, which tells how "
        "quick the machine was. Busy: beside two other processes. Commit: of the code. Both where "
        "they are on record.",
        ("case", "nested", "quartile", "first answer", "one network", "together", "classical",
         "groups", "trainings", "networks", "nothing", "recording", "stream", "labels",
         "one training", "commit"),
    ),
    "mixed": (
        "How careful should a run be before networks of other settings join the seeds of the "
        "chosen one? The answer made once more from what the run had tried, of up to five networks "
        "(the run itself may have had no time for so many): nested score by how credible the gain "
        "of people must be. Where it is on record.",
        None,
    ),
    "one_command": (
        "One command for 30 minutes beside its own classical pipeline (the best of three by these "
        "scores) and braindecode's EEGNet with its defaults, level nothing (balanced accuracy of "
        "people never seen). How much one command is above, person by person, with a bootstrap "
        "interval and the paired Wilcoxon test after Holm. Empty: not run yet.",
        None,
    ),
    "one_command_levels": (
        "What a recording and five labels are worth in the same runs, by the first network of the "
        "answer on half of each person's trials: means and lower quartiles over the people who "
        "have all levels (of ECG not everybody has five beats of each kind), and how much a "
        "recording is above nothing for everybody.",
        None,
    ),
    "today": (
        "What a user would do today, one seed; 'ours is above by' is the run of one command or, "
        "where there is none yet, its first network, person by person; beside those that have the "
        "unlabelled trials of the new person it is our first network adapted to them, with labels "
        "the row of ours. CPU minutes are of fitting all groups.",
        None,
    ),
    "another_session": (
        "What was learned of a person, in another session: the second half of their last session "
        "is predicted by the network that a run begins with, trained without them. It knows "
        "nothing of them; the first half of that session, without labels or with three labels of "
        "each class; the first session instead; or labels of the first session and the first half "
        "of the last one without labels. The method is chosen by all other people. Paired over "
        "people with nothing.",
        ("data", "seeds", "level", "of", "people", "mean", "lower quartile", "difference",
         "95 % interval", "p"),
    ),
    "more_people": (
        "Three Myo data sets in one: balanced accuracy of new people by the number of people "
        "trained on, with nothing, a recording, and five labels of each gesture.",
        None,
    ),
    "censoring": (
        "Every censor at its middle strength beside the uncensored network of the same seeds and "
        "batches, and its placebo beside one of the same shuffled people: what a probe finds of "
        "the person less, accuracy of new people up, with its interval, and with 1, 2 and 5 "
        "labels of each class.",
        None,
    ),
    "replay": (
        "Rules of choice replayed: half of the people choose, the others judge; gain against the "
        "first candidate (the baseline, the default recipe), 400 halves of each record.",
        None,
    ),
    "null_runs": (
        "Hands-off runs on labels that are shuffled within each person: what each tells of a new "
        "person, whose chance is 0.5.",
        ("run", "nested", "low", "high", "covers chance", "networks"),
    ),
    "engine": ("40 trials of about 2 s on 2 workers, by engine.", None),
    "ledger_scale": ("A ledger of many trials.", None),
    "preparing": (
        "What EEGNet prepares of all trials once in a training, which workers of a search could "
        "share, beside the whole training: CPU seconds of one thread.",
        None,
    ),
    "single_trial": ("Predicting one trial.", None),
    "import_time": ("Importing.", None),
    "worker_start": ("Starting a worker of the local engine, CPU seconds.", None),
    "batches": ("Drawing a batch of 8 subjects x 16 trials (`SubjectBatches`).", None),
}  # fmt: skip

PARTS = {
    "first": ("hands_off", "short", ""),
    "in_short": ("hands_off", "short", ""),
    "mixed": ("hands_off", "mixed", ""),
    "joined": ("encoders", "joined", ""),
    "candidates": ("evidence", "candidates", ""),
    "rules": ("evidence", "rules", ""),
    "gains": ("evidence", "gains", ""),
    "digest": ("strengths", "digest", ""),
    "importances": ("strengths", "importances", ""),
    "curves": ("strengths", "censors", ""),
    "draws": ("strengths", "batches", ""),
    "one_command_levels": ("one_command", "levels", ""),
    "more_people": ("more_people", "short", ""),
    "skew": ("skew", "together", ""),
    "replay": ("replay", "summary", ""),
    "levels": ("levels", "short", ""),
    "level_guard": ("levels", "guard", ""),
    "level_trainings": ("levels", "trainings", ""),
}
"""Tables that are part of a file: the file, its entry, and the column that marks their rows."""

EVIDENCE = (
    *("baseline", "evidence", "candidates", "own_batches", "rules", "gains"),
    *("gap", "skew", "draws", "digest", "importances", "curves", "replay", "null_runs"),
)
ADAPTING = (
    *("levels", "another_session", "level_guard", "level_trainings", "across", "adaptation"),
)
AUGMENTING = ("augmentations",)
HANDS_OFF = ("hands_off", "mixed")
TRAINING = ("encoders", "joined")
NINE_SETS = ("one_command", "one_command_levels", "today", "more_people", "censoring")
PAGES = {
    "README.md": ("first",),
    "docs/index.md": ("first",),
    "docs/figures.md": tuple(
        n
        for n in TABLES
        if n not in (*EVIDENCE, *PARTS, *ADAPTING, *AUGMENTING, *HANDS_OFF, *TRAINING, *NINE_SETS)
    ),
    "docs/evidence.md": ("in_short",),
    "docs/protocol.md": EVIDENCE,
    "docs/level_tables.md": ADAPTING,
    "docs/augmenting.md": AUGMENTING,
    "docs/run_tables.md": HANDS_OFF,
    "docs/training.md": TRAINING,
    "docs/nine_sets.md": NINE_SETS,
}
"""Which tables stand on which page."""


def table(rows: list[dict[str, Any]], columns: tuple[str, ...] | None) -> str:
    """Write rows as a Markdown table."""
    columns = columns or tuple(rows[0])
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for row in rows:
        cells = (_cell(value) for value in map(row.get, columns))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(value: Any) -> str:
    """Write a value; what does not apply (null) is left empty."""
    if value is None:
        return ""
    if not isinstance(value, float):
        return str(value)
    # A column of scores has as many places throughout: 0.400 beside 0.341.
    return f"{value:.3f}" if 0.1 <= abs(value) < 1 else f"{value:.3g}"


def command_of(name: str) -> str:
    """Give the command of a benchmark, whichever folder it stands in."""
    (script,) = BENCHMARKS.glob(f"*/{name}.py")
    return f"python -m benchmarks.{script.parent.name}.{name}"


def figures(names: tuple[str, ...]) -> str:
    """Make the section of a page from the files that are there."""
    parts = []
    for name in names:
        words, columns = TABLES[name]
        source, entry, marked = PARTS.get(name, (name, "rows", ""))
        file = RESULTS / f"{source}.json"
        if file.exists():
            # Files of earlier runs have NaN where there is null now.
            found = json.loads(file.read_text(), parse_constant=lambda _: None)
            machine = ", ".join(f"{k} {v}" for k, v in found["machine"].items())
            command = f"`{command_of(source)}` ({machine})"
            # Where a benchmark has goals for some of its rows, the others are in its file only.
            rows = [r for r in found[entry] if r.get("goal", 0.0) is not None]
            rows = [r for r in rows if not marked or r[marked]]
            if rows:  # a table of what has not been run yet would say nothing
                parts.append(f"{words}\n{command}:\n\n{table(rows, columns)}")
    return "\n\n".join(parts)


def with_figures(page: str) -> str:
    """Give a page with its figures as the files have them."""
    text = (ROOT / page).read_text()
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{START}\n{figures(PAGES[page])}\n{END}{after}"


def main() -> None:
    from benchmarks.common import report  # docs/scaling_tables.py reads this file for its tables

    args = report.arguments(report.parser(__doc__))
    rows = []
    for page, tables in PAGES.items():
        text = with_figures(page)
        changed = text != (ROOT / page).read_text()
        rows.append({"page": page, "tables": len(tables), "changed": changed})
        if not args.smoke:
            (ROOT / page).write_text(text)
    report.finish(args, "Pages with figures", rows)


if __name__ == "__main__":
    main()
