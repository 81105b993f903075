"""`autotransfer inspect`: what data are, what is doubtful, and what a run will cost."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from autotransfer.cli import options as opt
from autotransfer.cli.forecast import print_forecasts
from autotransfer.cli.heat_map import heat_map
from autotransfer.cli.output import console, print_json, tell, working
from autotransfer.errors import AutoTransferError

if TYPE_CHECKING:
    from autotransfer.data import Report, SubjectDataset
    from autotransfer.leakage import Leakage
    from autotransfer.search.forecast import Forecast

BUDGETS = ("10m", "30m", "1h", None)


def inspect_data(
    context: typer.Context,
    data: opt.Data,
    quick: Annotated[
        bool, typer.Option("--quick", help="Do not probe the signals, do not measure costs.")
    ] = False,
    subjects: opt.Subjects = None,
    only_classes: opt.OnlyClasses = None,
    normalise: opt.Normalise = "channel",
    encoder: opt.Encoder = "eegnet",
    sfreq: opt.Sfreq = None,
    max_epochs: opt.MaxEpochs = None,
    n_jobs: opt.NJobs = 1,
    verbose: opt.Verbose = True,
    as_json: opt.Json = False,
    *,
    reading: opt.Reading,
) -> None:
    """Check data before hours are spent on them.

    Shows what the data are, trials of every subject and class, what is
    doubtful, how well people can be told apart by the signals before any
    training, and what a run of 10, 30 and 60 minutes would do here.

    [bold]Examples[/bold]

      autotransfer inspect gestures.npz
      autotransfer inspect gestures.npz --quick --json
      autotransfer inspect recordings --events left,right --tmax 2 --band 4-40
    """
    with working("loading"):
        from autotransfer.auto import AutoTransfer
        from autotransfer.data import check

        dataset = opt.load_data(data, reading, subjects, only_classes)
    with working("reading the signals"):
        # Where it is not written, a run chooses by the kind of signal.
        written = opt.is_written(context, "normalise")
        findings = check(dataset, normalise=normalise if written else None)
    if not as_json:
        _print_data(dataset, findings)
    probe: Leakage | str | None = None
    costs: list[Forecast] | str | None = None
    if not quick:
        probe = _probe(dataset, findings)
        if not as_json:
            _print_probe(probe)
        training = {"normalise": normalise, "encoder": encoder, "sfreq": sfreq}
        classifier = opt.make_classifier(training | {"max_epochs": max_epochs})
        auto = AutoTransfer(classifier=classifier, n_jobs=n_jobs, verbose=verbose)
        costs = _costs(auto, dataset)
        if not as_json:
            _print_costs(costs)
    if as_json:
        print_json(_as_json(dataset, findings, probe, costs))


def about(data: SubjectDataset) -> dict[str, Any]:
    """Say what data are, in figures."""
    base = data.trials.base
    n = data.n_trials * data.n_channels * data.n_times
    return {
        "trials": data.n_trials,
        "subjects": len(data.subject_ids),
        "classes": len(data.labels),
        "channels": data.n_channels,
        "times": data.n_times,
        "sfreq": data.sfreq,
        "seconds": None if data.sfreq is None else data.n_times / data.sfreq,
        "dtype": str(base.dtype),
        "bytes": n * base.dtype.itemsize,
        "bytes_as_float32": 4 * n,
    }


def _print_data(data: SubjectDataset, findings: Report) -> None:
    facts = about(data)
    rate = "rate unknown (give --sfreq)"
    if data.sfreq is not None:
        rate = f"{data.sfreq:g} Hz, {facts['seconds']:.3g} s a trial"
    out = console()
    out.print(
        f"{facts['trials']} trials of {facts['subjects']} subjects, {facts['classes']} classes"
    )
    out.print(f"{facts['channels']} channels x {facts['times']} times, {rate}")
    out.print(
        f"stored as {facts['dtype']}: {_size(facts['bytes'])}; in training "
        f"{_size(facts['bytes_as_float32'])}"
    )
    names = [str(name) for name in data.subject_names]
    classes = [str(name) for name in data.class_names]
    out.print("trials of each subject and class:")
    out.print(heat_map(data.counts(), names, classes, out))
    for line in str(findings).splitlines():
        tell(line, style="bold red" if line.startswith("error") else "")


def _size(n: float) -> str:
    """Write a number of bytes.

    Examples
    --------
    >>> _size(512), _size(3 * 2**20)
    ('0.5 kB', '3.0 MB')
    """
    for unit in ("kB", "MB"):
        n /= 1024
        if n < 1000:
            return f"{n:.1f} {unit}"
    return f"{n / 1024:.1f} GB"


def _probe(data: SubjectDataset, findings: Report) -> Leakage | str:
    """Probe the raw signals; or say why not."""
    if findings.errors:
        return "Mend the errors above first."
    from autotransfer.leakage.signals import signal_leakage

    try:
        with working("probing the signals"):
            return signal_leakage(data)
    except AutoTransferError as error:
        return str(error)


def _print_probe(probe: Leakage | str) -> None:
    if isinstance(probe, str):
        tell(f"How well people can be told apart is not known. {probe}")
        return
    best = probe.best.accuracy
    can = "can" if probe.best.above_chance.low > 0 else "cannot"
    tell(
        f"Before any training, people {can} be told apart by channel variances and band powers: a "
        f"probe names the right one of {len(probe.subjects)} in {best.value:.0%} of trials "
        f"[{best.low:.0%}, {best.high:.0%}], chance is {probe.chance:.0%}."
    )


def _costs(auto: Any, data: SubjectDataset) -> list[Forecast] | str:
    """Measure what runs cost; or say why not."""
    try:
        costs: list[Forecast] = auto.forecast(data, budgets=BUDGETS)
        return costs
    except AutoTransferError as error:
        return str(error)


def _print_costs(costs: list[Forecast] | str) -> None:
    if isinstance(costs, str):
        tell(f"What a run will cost is not known. {costs}")
    else:
        print_forecasts(costs)


def _as_json(
    data: SubjectDataset,
    findings: Report,
    probe: Leakage | str | None,
    costs: list[Forecast] | str | None,
) -> dict[str, Any]:
    def or_error(value: Any, convert: Any) -> Any:
        if value is None:
            return None
        return {"error": value} if isinstance(value, str) else convert(value)

    return {
        **about(data),
        "channel_names": list(data.channels),
        "class_names": data.class_names,
        "subject_names": data.subject_names,
        "counts": data.counts(),
        "findings": [asdict(finding) for finding in findings],
        "signal_leakage": or_error(probe, lambda leakage: leakage.to_dict()),
        "costs": or_error(costs, lambda forecasts: [f.to_json() for f in forecasts]),
    }
