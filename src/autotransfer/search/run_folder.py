"""The folder of a run: what it is, its ledger, its results, its model."""

from __future__ import annotations

import io
import json
import shutil
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autotransfer import atomic
from autotransfer.documents import misfit, read_object
from autotransfer.errors import RunMismatchError, SourceError, join_some
from autotransfer.search.ledger import Entry
from autotransfer.text import csv_table

# Pandas and data (which bring scikit-learn) wait for those who write: `status` only reads.
if TYPE_CHECKING:
    import pandas as pd

FORMAT = "autotransfer-run-2"
EXPECTED = {"mean": slice(0, 1), "lower_quartile": slice(0, 1)}


class RunFolder:
    """Names of things in a run's folder.

    Parameters
    ----------
    path : Path
        The folder; made if need be.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.run, self.results = path / "run.json", path / "results.json"
        self.trials, self.candidates = path / "trials.csv", path / "candidates.csv"
        self.ledger, self.model = path / "ledger.jsonl", path / "model"
        self.refit = path / "refit.json"
        self.checkpoints, self.signals = path / "checkpoints", path / "signals"
        self.predictions, self.networks = path / "predictions", path / "networks"
        self.levels, self.scores = path / "levels.csv", path / "scores.csv"
        self.heartbeat = path / ".heartbeat.json"

    def claim(self, definition: dict[str, Any], about: dict[str, Any]) -> None:
        """Make the folder this run's, or see that it is.

        Parameters
        ----------
        definition : dict
            What may not differ: data and options, as JSON.
        about : dict
            What is good to know: versions, shapes.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        if not self.run.exists():
            atomic.write_json(
                self.run, {"format": FORMAT, "definition": definition, "about": about}
            )
            return
        there = read_object(self.run, RunMismatchError, "Give another folder.")
        found = there.get("definition")
        if there.get("format") != FORMAT or not isinstance(found, dict):
            raise RunMismatchError(
                f"{self.path} holds a run of another version of autotransfer. Give another folder."
            )
        # Through JSON, so that tuples and lists are the same.
        wanted = json.loads(json.dumps(definition))
        differ = [k for k in {**wanted, **found} if wanted.get(k) != found.get(k)]
        if differ:
            shown = [f"{k}: {found.get(k)!r} there, {wanted.get(k)!r} now"[:200] for k in differ]
            raise RunMismatchError(
                f"The run in {self.path} was made with other data or options "
                f"({join_some(shown, 3)}). "
                "Give another folder, or the same data and options to go on with it."
            )
        known, command = there.get("about"), about.get("command")
        if command is not None and isinstance(known, dict) and known.get("command") is None:
            # Begun in Python, and now somebody types: the report says what to type next.
            atomic.write_json(self.run, there | {"about": known | {"command": command}})

    def write_model(self, key: str, models: list[dict[str, bytes]]) -> None:
        """Write the model folder in one step, then which refit it came from.

        Parameters
        ----------
        key : str
            Of the refit.
        models : list of dict
            File name -> content, of each model; several make the folder of an ensemble.
        """
        self.refit.unlink(missing_ok=True)
        self._put_model(models)
        atomic.write_json(self.refit, {"refit": key})

    def _put_model(self, models: list[dict[str, bytes]]) -> None:
        from autotransfer.training.ensemble import write_members
        from autotransfer.training.model.folder import write_files

        with atomic.folder(self.model, overwrite=True) as temp:
            if len(models) > 1:
                write_members(temp, models)
            else:
                write_files(temp, models[0])

    def write_policy(self, policy: dict[str, Any]) -> None:
        """Write into the model what was learned about its adaptation, unless it is there already.

        Parameters
        ----------
        policy : dict
            What `autotransfer.adaptation.registry.Policy.to_json` gave.
        """
        from autotransfer.training.model.folder import with_adaptation

        folders = sorted(self.model.glob("member-*")) or [self.model]
        models = [{one.name: one.read_bytes() for one in folder.iterdir()} for folder in folders]
        changed = [with_adaptation(files, policy) for files in models]
        if changed != models:
            self._put_model(changed)

    def keep_trial(
        self, key: str, predictions: bytes, network: dict[str, bytes], *, networks: bool = True
    ) -> None:
        """Keep the class probabilities of a trial (float16, row by row), and its network.

        Parameters
        ----------
        key : str
            Of the trial.
        predictions : bytes
            The class probabilities.
        network : dict of str to bytes
            File name -> content of its model folder.
        networks : bool
            Whether the network is kept; only levels need it.
        """
        self.predictions.mkdir(exist_ok=True)
        if networks:
            self.networks.mkdir(exist_ok=True)
            packed = io.BytesIO()
            with zipfile.ZipFile(packed, "w") as archive:
                for name, content in network.items():
                    archive.writestr(name, content)
            atomic.write_bytes(self.networks / f"{key}.zip", packed.getvalue())
        atomic.write_bytes(self.predictions / f"{key}.f16", predictions)

    def read_network(self, key: str) -> dict[str, bytes] | None:
        """Read the model folder of a trial's network: file name -> content; None if it is gone."""
        try:
            with zipfile.ZipFile(self.networks / f"{key}.zip") as archive:
                return {name: archive.read(name) for name in archive.namelist()}
        except (OSError, zipfile.BadZipFile):
            return None

    def read_predictions(self, key: str, shape: tuple[int, int]) -> Any:
        """Read the class probabilities of a trial; None if they are not here, whole."""
        import numpy as np

        path = self.predictions / f"{key}.f16"
        if not path.is_file() or path.stat().st_size != 2 * shape[0] * shape[1]:
            return None
        return np.fromfile(path, np.float16).reshape(shape).astype(np.float64)

    def has_model(self, key: str) -> bool:
        """Whether the model folder is that of a certain refit."""
        return self.model.is_dir() and _content(self.refit).get("refit") == key

    @property
    def has_answer(self) -> bool:
        """Whether there are a model and results, be they the first ones."""
        return self.refit.is_file() and self.model.is_dir() and self.results.is_file()

    def write_table(self, path: Path, table: pd.DataFrame) -> None:
        """Write a table, unless it is there already."""
        content = csv_table(table)
        if not path.exists() or path.read_bytes() != content:
            atomic.write_bytes(path, content)

    def write_results(self, results: dict[str, Any]) -> None:
        """Write the results, unless they are there already."""
        if _content(self.results) != results:
            atomic.write_json(self.results, results)

    @property
    def says_complete(self) -> bool:
        """Whether there are results, and they say that the run has come to its end."""
        return _content(self.results).get("complete") is True

    @property
    def expected(self) -> dict[str, float] | None:
        """What the results so far let expect of a new person: mean and lower quartile, if known."""
        nested = _content(self.results).get("nested")
        return None if misfit(nested, EXPECTED) else nested

    def tidy(self) -> None:
        """Delete what only a run that goes on needs."""
        for folder in (self.checkpoints, self.signals, self.networks):
            shutil.rmtree(folder, ignore_errors=True)


def _content(path: Path) -> dict[str, Any]:
    """Read a file that is written anew if need be; nothing if it is missing or damaged."""
    try:
        return read_object(path, SourceError, "")
    except SourceError:
        return {}


def trial_table(entries: list[Entry]) -> pd.DataFrame:
    """Make the table of trials: one row each, sorted, without times, which are never the same."""
    import pandas as pd

    rows = []
    for entry in entries:
        trial = entry.trial
        result = entry.result
        rows.append(
            {
                "stage": entry.stage,
                "setting": str(trial.setting),
                "measure": trial.setting.measure,
                "mode": trial.setting.mode,
                "strength": trial.setting.strength,
                "options": json.dumps(dict(trial.setting.options), sort_keys=True),
                "fold": trial.fold,
                "seed": trial.seed,
                "max_epochs": trial.epochs,
                "state": entry.state,
                "validation": result["validation"]["balanced_accuracy"] if result else None,
                "test": result["test"]["balanced_accuracy"] if result else None,
                "best_epoch": result["best_epoch"] if result else None,
                "id": entry.id,
            }
        )
    table = pd.DataFrame(rows)
    order = ["stage", "setting", "fold", "seed", "max_epochs"]
    return table if table.empty else table.sort_values(order, ignore_index=True)
