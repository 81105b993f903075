"""`AutoTransfer`: the hands-off procedure as a scikit-learn estimator."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from concurrent.futures import Executor
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from autotransfer.data.problem import Problem
from autotransfer.errors import BudgetError
from autotransfer.report import write_report
from autotransfer.report.reproduce import given_options
from autotransfer.search import results
from autotransfer.search.budget import Plan, parse_budget
from autotransfer.search.driver import Driver, Stop
from autotransfer.search.forecast import Forecast, forecast
from autotransfer.search.ledger import RunLedger
from autotransfer.search.ledger.connection import place
from autotransfer.search.options import run_definition, run_options_of, shared_of
from autotransfer.search.procedure import Procedure
from autotransfer.search.progress import RunProgress
from autotransfer.search.run_folder import RunFolder, trial_table
from autotransfer.search.settings.space import Space
from autotransfer.search.settings.trial import digest
from autotransfer.search.shared import Shared, Starter
from autotransfer.search.tensorboard import write_tensorboard
from autotransfer.training import CensoredClassifier
from autotransfer.training.classifier import SignalEstimator
from autotransfer.training.options import refuse_unknown, versions, warn_doubts


class AutoTransfer(SignalEstimator):
    """Find the censor that helps on people the model has never seen, and train it.

    Tries settings (measure, mode, strength, options) on one fold of subjects, keeps the best few of
    each measure, cross-validates these and the uncensored baseline over all subjects, chooses the
    one whose lower quartile of validation balanced accuracy is highest, and trains it on everybody,
    for as many epochs as were typical in the cross-validation. Conditional censors draw batches in
    a way of their own: they are compared with a second baseline that has such batches.
    Test subjects of a fold reach no training and no stopping. Everybody validates once, so that the
    choice over all folds has seen a score of each person; the score that is told first is therefore
    each person's under the choice made without that person's score. Where no censor helps, the
    uncensored baseline is what you get.

    A run lives in a folder. Killed at any moment, the same call goes on with it.

    Parameters
    ----------
    budget : str or timedelta, optional
        Time for all of it, such as ``"20m"`` or ``"1h"``; a plan that fits is made from measured
        training steps. Without one everything is tried.
    out : path, optional
        Folder of the run. By default ``autotransfer-runs/<hash of data and options>``.
    classifier : CensoredClassifier, optional
        Whose options (encoder, normalise, sfreq, learning rate, max_epochs, ...) all trials share.
        Its `log` gets the trials of the run when it ends (`autotransfer.search.write_tensorboard`).
    space : Space, optional
        Settings to search; by default the paper's Table II, with weaker MMDs.
    strategy : {"grid", "tpe"}
        Walk through the space, or let Optuna's TPE sampler propose settings in batches.
    n_settings : int, optional
        Settings to try; the whole grid, or 60 with TPE.
    prune : bool
        Drop hopeless settings on the way (successive halving).
    keep : int
        Settings of each measure that are cross-validated.
    n_folds : int, optional
        Groups of subjects of the cross-validation. One subject each by default, or 20 groups if
        there are more than 40 subjects.
    n_seeds : int
        Repetitions of the cross-validation.
    search_folds : int
        Folds on which the search tries every setting. The paper has 1: what is kept is then what
        suits the person who validates there, which on others may be far below the baseline
        (docs/evidence.md). 3 folds take 3 times as long, some of which the cross-validation saves.
    rule : str
        How to choose: a name in `autotransfer.search.RULES`.
    portraits : bool
        At the end, measure and draw what the latents of the baseline and of the choice tell about
        the person, for the report: three more trainings.
    engine : str or concurrent.futures.Executor
        "local" (processes on this machine), "ray", or an executor of your own.
    n_jobs : int
        Trials at once; -1 for one on each core.
    engine_options : dict, optional
        Options of the engine, such as ``{"address": "auto", "num_gpus": 0.25}`` for Ray.
    storage : str, optional
        Ledger of the run: ``"postgresql://..."`` for a team, with the password in ``PGPASSWORD`` or
        ``~/.pgpass``; a file in the folder by default.
    time_limit : str or timedelta, optional
        Most time of a trial, such as ``"30m"``; one that takes longer is stopped, tried again and
        then given up.
    random_state : int
        Seed of everything.
    verbose : bool
        Show progress with the time left.

    Attributes
    ----------
    best_estimator_ : CensoredClassifier
        The chosen setting, trained on everybody.
    choice_ : Choice
        What was chosen, by which rule.
    candidates_ : DataFrame
        Every cross-validated setting with the spread of its validation and test scores over
        subjects.
    trials_ : DataFrame
        Every trial.
    plan_ : Plan
        What was done.
    run_ : Path
        Folder of the run.

    Examples
    --------
    >>> import autotransfer as at
    >>> data = at.make_subjects(n_subjects=4, n_trials=20, random_state=0)
    >>> auto = at.AutoTransfer(budget="1h", out="runs/mine", n_jobs=2)
    >>> auto.fit(data.X, data.y, subject=data.subject)  # doctest: +SKIP
    """

    def __init__(
        self,
        budget: str | timedelta | None = None,
        *,
        out: str | os.PathLike[str] | None = None,
        classifier: CensoredClassifier | None = None,
        space: Space | None = None,
        strategy: str = "grid",
        n_settings: int | None = None,
        prune: bool = False,
        keep: int = 3,
        n_folds: int | None = None,
        n_seeds: int = 1,
        search_folds: int = 1,
        rule: str = "lower_quartile",
        portraits: bool = True,
        engine: str | Executor = "local",
        n_jobs: int = 1,
        engine_options: dict[str, Any] | None = None,
        storage: str | None = None,
        time_limit: str | timedelta | None = None,
        random_state: int = 0,
        verbose: bool = True,
    ) -> None:
        self.budget, self.out, self.classifier, self.space = budget, out, classifier, space
        self.strategy, self.n_settings, self.prune, self.keep = strategy, n_settings, prune, keep
        self.n_folds, self.n_seeds, self.search_folds = n_folds, n_seeds, search_folds
        self.rule, self.portraits = rule, portraits
        self.engine, self.n_jobs, self.engine_options = engine, n_jobs, engine_options
        self.storage, self.time_limit = storage, time_limit
        self.random_state, self.verbose = random_state, verbose

    def fit(self, X: Any, y: Any = None, subject: Any = None, **unknown: Any) -> Self:
        """Search, cross-validate, select and refit; or go on with a run that was stopped.

        ``fit(data)`` with a `SubjectDataset`, whose names then go all the way into the report and
        the model, or ``fit(X, y, subject=ids)``.

        Parameters
        ----------
        X : SubjectDataset, array or TrialArray of shape (n_trials, n_channels, n_times)
            A data set, or signals.
        y : array of shape (n_trials,)
            Task labels.
        subject : array of shape (n_trials,)
            The person each trial comes from.
        """
        refuse_unknown("fit", unknown)
        shared = shared_of(self, X, y, subject)
        warn_doubts(shared.problem, shared.options["normalise"])
        options = run_options_of(self, shared.problem)
        definition = run_definition(shared, options)
        path = Path("autotransfer-runs") / digest(definition)[:12] if self.out is None else self.out
        folder = RunFolder(Path(path).expanduser().resolve())
        storage = self.storage or folder.ledger
        starter = self._starter(shared, folder)  # refuses a wrong time_limit
        stop = Stop()
        show = RunProgress(bool(self.verbose), heartbeat=folder.heartbeat)
        with contextlib.ExitStack() as stack:
            # The ledger's lock comes first: whoever has it has the folder.
            folder.path.mkdir(parents=True, exist_ok=True)
            ledger = stack.enter_context(RunLedger(storage, digest(definition)))
            folder.claim(definition, self._about(shared.problem, options.space))
            stack.enter_context(show)
            stack.enter_context(stop.listening(show))
            start = stack.enter_context(starter)
            driver = Driver(ledger, start, shared.hash, show, stop)
            procedure = Procedure(
                options, shared.hash, folder, ledger, start, show, driver, bool(self.portraits)
            )
            choice, scores, plan = procedure.run()
            entries = [e for s in ("search", "crossval") for e in ledger.entries(s)]
        self.choice_, self.plan_, self.run_ = choice, plan, folder.path
        self.candidates_ = results.candidate_table(choice, scores)
        self.trials_ = trial_table(entries)
        folder.write_table(folder.trials, self.trials_)
        folder.write_table(folder.candidates, self.candidates_)
        folds = shared.problem.folds(plan.n_folds)
        summary = results.summary(choice, scores, plan, entries, folds)
        folder.write_results(summary)
        if self.classifier is not None and self.classifier.log is not None:
            write_tensorboard(folder.path, self.classifier.log, storage=self.storage)
        folder.tidy()
        if self.verbose:
            show.say(results.verdict(summary))
        encoder = None if self.classifier is None else self.classifier.encoder
        spec = None if isinstance(encoder, str | None) else encoder
        self.best_estimator_ = CensoredClassifier.load(folder.model, encoder=spec)
        self.classes_ = self.best_estimator_.classes_
        return self

    def dry_run(self, X: Any, y: Any = None, subject: Any = None) -> Plan:
        """Say how many trials a run would be, how long it would take and in how much memory.

        A few training steps of every kind of setting are timed; no trial is run and nothing is
        written.
        """
        (cost,) = self.forecast(X, y, subject, budgets=[self.budget])
        if cost.plan is None:
            raise BudgetError(cost.words)
        print(cost)
        return cost.plan

    def forecast(
        self, X: Any, y: Any = None, subject: Any = None, *, budgets: Sequence[Any] = (None,)
    ) -> list[Forecast]:
        """Say what runs with several budgets would be; costs are measured once, nothing is printed.

        Parameters
        ----------
        X, y, subject
            As for `fit`.
        budgets : sequence
            Times, as for `budget`; None for a run without one.
        """
        shared = shared_of(self, X, y, subject)
        seconds = [None if budget is None else parse_budget(budget) for budget in budgets]
        starter, show = self._starter(shared, None), RunProgress(bool(self.verbose))
        return forecast(shared, run_options_of(self, shared.problem), starter, show, seconds)

    def _about(self, problem: Problem, space: Space) -> dict[str, Any]:
        """Say what is good to know of a run, for its report."""
        return {
            **versions(),
            "classifier": given_options(self.classifier),
            "shape": list(problem.X.shape),
            "classes": list(problem.class_names),
            "subjects": [
                problem.subject_names.get(str(s), str(s)) for s in np.unique(problem.subject)
            ],
            "subject_names": dict(problem.subject_names),
            "signals": problem.info.to_json(),
            "storage": None if self.storage is None else place(self.storage),
            "params": space.params(),
            "begun": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }

    def _starter(self, shared: Shared, folder: RunFolder | None) -> Starter:
        return Starter(
            shared,
            folder,
            self.engine,
            self.n_jobs if self.n_jobs > 0 else (os.cpu_count() or 1),
            None if self.time_limit is None else parse_budget(self.time_limit, "time_limit"),
            self.engine_options or {},
            checkpoints=bool(self.prune),
        )

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Predict the label of each trial."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict(X)

    def predict_proba(self, X: Any) -> npt.NDArray[Any]:
        """Estimate class probabilities, of shape (n_trials, n_classes)."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict_proba(X)

    def transform(self, X: Any) -> npt.NDArray[Any]:
        """Encode trials: latents of shape (n_trials, n_latent)."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.transform(X)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Balanced accuracy."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.score(X, y, sample_weight)

    def describe(self) -> str:
        """Say in words what the chosen model takes, what it gives, and how it was made."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.describe()

    def save(self, path: str | os.PathLike[str], overwrite: bool = False) -> Path:
        """Write the chosen model's folder to another place."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.save(path, overwrite)

    def report(self, path: str | os.PathLike[str] | None = None) -> Path:
        """Write the report of the run as one HTML file, ``report.html`` in its folder by default.

        The options and what else is written: `autotransfer.report.write_report`.
        """
        check_is_fitted(self, "run_")
        return write_report(self.run_, path, storage=self.storage)
