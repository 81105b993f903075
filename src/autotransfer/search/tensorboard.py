"""The trials of a run for TensorBoard, from its ledger."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from autotransfer import atomic
from autotransfer.search.ledger import Entry
from autotransfer.search.status import open_run
from autotransfer.training.log import check_log, write_run

STAGES = ("search", "crossval")


def write_tensorboard(
    run: atomic.PathLike,
    log: atomic.PathLike,
    *,
    stages: Sequence[str] = STAGES,
    storage: str | None = None,
) -> int:
    """Write the finished trials of a run for TensorBoard: curves, scores and settings.

    Can be called while the run goes on, and again later: trials that are there already are not
    written again.

    Parameters
    ----------
    run : path
        Folder of the run.
    log : path
        Folder for ``tensorboard --logdir``; each trial gets a folder of its own in it.
    stages : sequence of str
        Stages of the run to write.
    storage : str, optional
        Ledger of the run, if it is not in its folder.

    Returns
    -------
    int
        Trials written now.

    Raises
    ------
    MissingExtraError
        TensorBoard is not installed.
    SourceError
        There is no run in the folder.
    """
    check_log(log)
    target = Path(log).expanduser()
    _, ledger = open_run(Path(run).expanduser(), storage)
    count = 0
    with ledger:
        for stage in stages:
            (target / stage).mkdir(parents=True, exist_ok=True)
            for entry in ledger.each(stage, curves=True):
                folder = target / stage / _name(entry)
                if entry.state != "done" or folder.exists():
                    continue
                with atomic.folder(folder) as temp:
                    _write(temp, entry)
                count += 1
    return count


def _name(entry: Entry) -> str:
    """Name a trial: what was tried, on which fold, and enough of its id to be unique."""
    trial = entry.trial
    setting = trial.setting
    words = [setting.family]
    if setting.measure is not None:
        words += [setting.mode, f"{setting.strength:.4g}"]
    # Whatever the ledger says, it is one name, and lies in the folder.
    return re.sub(r"[^\w.+-]", "_", "-".join([*words, f"fold{trial.fold}", entry.id[:8]]))[:200]


def _write(folder: Path, entry: Entry) -> None:
    result = entry.result
    scores = {f"{side}_balanced_accuracy": result[side]["balanced_accuracy"] for side in _SIDES}
    trial = entry.trial
    options = {**entry.params, "fold": trial.fold, "seed": trial.seed}
    write_run(folder, entry.curves, options, scores, int(result["best_epoch"]))


_SIDES = ("validation", "test")
