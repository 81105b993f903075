"""`AutoTransfer`: the hands-off procedure as a scikit-learn estimator."""

from __future__ import annotations

import contextlib
import functools
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

from autotransfer.adaptation.registry import AUTO
from autotransfer.adaptation.statistics import PRIOR
from autotransfer.data.problem import Problem
from autotransfer.errors import AutoTransferError, BudgetError
from autotransfer.notebook import Card
from autotransfer.report import write_report
from autotransfer.report.auto_summary import first_screen
from autotransfer.report.gather import gather
from autotransfer.report.reproduce import given_options
from autotransfer.report.summary import Answer
from autotransfer.search import results
from autotransfer.search.budget import Plan, parse_budget
from autotransfer.search.driver import Driver, Stop
from autotransfer.search.forecast import Forecast, forecast
from autotransfer.search.ledger import RunLedger
from autotransfer.search.ledger.connection import place
from autotransfer.search.options import RunOptions, run_definition, run_options_of, shared_of
from autotransfer.search.procedures import auto_results
from autotransfer.search.procedures.auto import STAGES, AutoProcedure
from autotransfer.search.procedures.outcome import Outcome
from autotransfer.search.procedures.paper import Procedure
from autotransfer.search.procedures.plan import AutoPlan
from autotransfer.search.progress import RunProgress
from autotransfer.search.run_folder import RunFolder, trial_table
from autotransfer.search.settings.recipe import RecipeSpace
from autotransfer.search.settings.space import Space
from autotransfer.search.settings.trial import digest
from autotransfer.search.shared import Shared, Starter
from autotransfer.search.tensorboard import write_tensorboard
from autotransfer.training import CensoredClassifier
from autotransfer.training.ensemble import Ensemble, load_model
from autotransfer.training.estimator import SignalEstimator
from autotransfer.training.live import Live
from autotransfer.training.options import refuse_unknown, versions, warn_doubts

NEXT_STEPS = (
    ("Predict trials of a new person", "auto.predict(X_new)"),
    ("First adapt to a recording of theirs, without labels", "person = auto.adapt(X_recording)"),
    ("Or to a few labelled trials", "person = auto.adapt(X_few, y_few)"),
    ("Or go along, trial by trial", "live = auto.live(); live.predict(one_trial)"),
)
"""What a notebook says to do with a run."""


class AutoTransfer(SignalEstimator):
    """Find the best model for people it has never seen, in the time that there is.

    With ``procedure="auto"`` the default recipe (normalisation, filters, batches, learning rate,
    steps) is trained first, on groups of people of which each is held out once: from then on there
    is a model and a score. Then one thing after the other of the recipe is changed, the censors of
    `space` are added to the best recipe, the best is trained with further seeds, and at the end one
    network, or the mean of several, is trained on everybody. A recipe replaces another where people
    gain, a censor is added only where they gain credibly. A budget decides how far this goes.

    With ``procedure="paper"`` the recipe is that of `classifier`: settings (measure, mode,
    strength, options) are tried on one fold of subjects, the best few of each measure and the
    uncensored baseline are cross-validated over all subjects, and the one whose lower quartile of
    validation balanced accuracy is highest is trained on everybody, for as many epochs as were
    typical. Conditional censors draw batches in a way of their own: they are compared with a second
    baseline that has such batches.

    Who is held out reaches no training and no stopping. The choice has seen a score of everybody;
    the score that is told first is therefore each person's under the choice made without that
    person's score.

    A run lives in a folder. Killed at any moment, the same call goes on with it.

    Parameters
    ----------
    budget : str or timedelta, optional
        Time for all of it, such as ``"20m"`` or ``"1h"``. Without one everything is tried.
    procedure : {"auto", "paper"}
        What a run does.
    recipes : RecipeSpace, optional
        Recipes to try; by default short lists that suit the data
        (`autotransfer.search.recipe_space`).
    signal : {"eeg", "emg"}, optional
        The kind of signal, which decides where the recipes begin; by default what channel names
        tell.
    new_person : {"nothing", "recording", "stream", "labels"}
        What there will be of a new person: recipe, censor and ensemble are chosen by people held
        out who are treated in just that way. What the other levels are worth is scored at the end.
    n_labels : int
        Labelled trials of each class of a new person, at level labels.
    fixed : sequence of str
        Options of `classifier` that the search of recipes leaves as they are, beside those that
        differ from their defaults.
    out : path, optional
        Folder of the run. By default ``autotransfer-runs/<hash of data and options>``.
    classifier : CensoredClassifier, optional
        Whose options (encoder, normalise, sfreq, learning rate, max_epochs, ...) all trials share.
        Its `log` gets the trials of the run when it ends (`autotransfer.search.write_tensorboard`).
    space : Space, optional
        Censors to search. By default none in the hands-off procedure, because none was worth its
        time (docs/evidence.md); in the paper's its Table II, with weaker MMDs, which is
        ``Space()``.
    strategy : {"grid", "tpe"}
        Of the paper's procedure, as are `n_settings`, `prune`, `keep`, `n_seeds`, `search_folds`.
        Walk through the space, or let Optuna's TPE sampler propose settings in batches.
    n_settings : int, optional
        Settings to try; the whole grid, or 60 with TPE.
    prune : bool
        Drop hopeless settings on the way (successive halving).
    keep : int
        Settings of each measure that are cross-validated.
    n_folds : int, optional
        Groups of subjects of the cross-validation. By default as many as the budget carries, at
        least 3; in the paper's procedure one subject each, or 20 groups if there are more than 40
        subjects.
    n_seeds : int
        Repetitions of the cross-validation.
    search_folds : int
        Folds on which the search tries every setting. The paper has 1: what is kept is then what
        suits the person who validates there, which on others may be far below the baseline
        (docs/protocol.md). 3 folds take 3 times as long, some of which the cross-validation saves.
    rule : str, optional
        How to choose: a name in `autotransfer.search.RULES`. By default "safe", and
        "lower_quartile" in the paper's procedure.
    portraits : bool
        At the end, measure and draw what the latents of the baseline and of the choice tell about
        the person, for the report: three more trainings.
    levels : bool
        At the end, score what a recording, a stream and labels of a new person are worth, and let
        the model adapt in the way by which people held out gained most.
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
    best_estimator_ : CensoredClassifier or Ensemble
        What was chosen, trained on everybody.
    choice_ : Answer or Choice
        What was chosen, with the scores of everybody.
    candidates_ : DataFrame
        Every cross-validated setting with the spread of its validation and test scores over
        subjects.
    trials_ : DataFrame
        Every trial.
    scores_ : DataFrame
        The score of everybody held out, a row each: person, level (what was known of that person),
        method, seed (missing for what is of several), score.
    levels_ : DataFrame
        What a recording, a stream and labels of a new person are worth to people who were held out:
        person, level, amount, tested, method, score (`autotransfer.search.levels`). Of the
        hands-off procedure, by the first network of its answer.
    plan_ : AutoPlan or Plan
        What was done.
    run_ : Path
        Folder of the run.
    report_ : Path
        The page that `report` wrote last, if it has.

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
        procedure: str = "auto",
        recipes: RecipeSpace | None = None,
        signal: str | None = None,
        new_person: str = "nothing",
        n_labels: int = 5,
        fixed: Sequence[str] = (),
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
        rule: str | None = None,
        portraits: bool = True,
        levels: bool = True,
        engine: str | Executor = "local",
        n_jobs: int = 1,
        engine_options: dict[str, Any] | None = None,
        storage: str | None = None,
        time_limit: str | timedelta | None = None,
        random_state: int = 0,
        verbose: bool = True,
    ) -> None:
        self.budget, self.procedure, self.recipes, self.signal = budget, procedure, recipes, signal
        self.new_person, self.n_labels = new_person, n_labels
        self.fixed, self.out, self.classifier, self.space = fixed, out, classifier, space
        self.strategy, self.n_settings, self.prune, self.keep = strategy, n_settings, prune, keep
        self.n_folds, self.n_seeds, self.search_folds = n_folds, n_seeds, search_folds
        self.rule, self.portraits, self.levels = rule, portraits, levels
        self.engine, self.n_jobs, self.engine_options = engine, n_jobs, engine_options
        self.storage, self.time_limit = storage, time_limit
        self.random_state, self.verbose = random_state, verbose

    def fit(
        self,
        X: Any,
        y: Any = None,
        subject: Any = None,
        X_target_unlabeled: Any = None,
        X_target_labeled: Any = None,
        y_target_labeled: Any = None,
        **unknown: Any,
    ) -> Self:
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
        X_target_unlabeled, X_target_labeled, y_target_labeled
            Trials of one new person, to whom ``best_estimator_`` is adapted at the end; as for
            `autotransfer.CensoredClassifier.fit`. The model in the run's folder is not adapted.
        """
        refuse_unknown("fit", unknown)
        self._answer: Answer | None = None
        shared = shared_of(self, X, y, subject)
        options = run_options_of(self, shared.problem)
        searched = {} if options.recipes is None else dict(options.recipes.default.options)
        # A normalisation that the run looks for itself is not the user's.
        warn_doubts(shared.problem, searched.get("normalise", shared.options["normalise"]))
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
            about = self._about(shared.problem, options)
            folder.claim(definition, about | {"source": getattr(X, "source", None)})
            stack.enter_context(show)
            stack.enter_context(stop.listening(show))
            start = stack.enter_context(starter)
            keep = functools.partial(folder.keep_trial, networks=bool(self.levels))
            driver = Driver(ledger, start, shared.hash, show, stop, keep=keep)
            parts = (folder, ledger, start, show, driver)
            if options.recipes is None:
                paper = Procedure(options, shared.hash, *parts, bool(self.portraits))
                summary = self._paper(paper, shared.problem)
            else:
                summary = self._auto(options, shared, parts)
        self.run_ = folder.path
        if self.classifier is not None and self.classifier.log is not None:
            write_tensorboard(folder.path, self.classifier.log, storage=self.storage)
        folder.tidy()
        # The command line prints what the report says first, instead.
        if self.verbose and getattr(self, "_command", None) is None:
            show.say(results.verdict(summary))
        encoder = None if self.classifier is None else self.classifier.encoder
        spec = None if isinstance(encoder, str | None) else encoder
        model = load_model(folder.model, encoder=spec)
        target = X_target_unlabeled, X_target_labeled, y_target_labeled
        self.best_estimator_ = model.adapt_to_target(*target)
        self.classes_ = self.best_estimator_.classes_
        return self

    def _paper(self, procedure: Procedure, problem: Problem) -> dict[str, Any]:
        """Run the paper's procedure and write down what came of it."""
        choice, scores, plan = procedure.run()
        entries = [e for s in ("search", "crossval") for e in procedure.ledger.entries(s)]
        self.choice_: Any = choice
        self.plan_: Any = plan
        self.candidates_ = results.candidate_table(choice, scores)
        self.scores_ = results.scores_table(choice, scores)
        self.trials_ = trial_table(entries)
        folds = problem.folds(plan.n_folds)
        return self._write(procedure.folder, results.summary(choice, scores, plan, entries, folds))

    def _auto(self, options: RunOptions, shared: Shared, parts: Any) -> dict[str, Any]:
        """Run the hands-off procedure; whenever there is a better answer it is written down."""
        folder, ledger, start, show, driver = parts
        summary: dict[str, Any] = {}

        def publish(outcome: Outcome) -> None:
            entries = [e for stage in STAGES for e in ledger.entries(stage)]
            self.choice_, self.plan_ = outcome.answer, outcome.plan
            self.candidates_ = auto_results.candidate_table(outcome)
            self.trials_ = trial_table(entries)
            self.scores_ = auto_results.scores_table(outcome)
            self.levels_ = auto_results.levels_table(outcome)
            if len(self.levels_):
                folder.write_table(folder.levels, self.levels_)
            summary.update(auto_results.summary(outcome, entries, shared.problem))
            self._write(folder, summary)

        extras = bool(self.portraits), bool(self.levels)
        AutoProcedure(options, shared, folder, ledger, start, show, driver, publish, *extras).run()
        return summary

    def _write(self, folder: RunFolder, summary: dict[str, Any]) -> dict[str, Any]:
        folder.write_table(folder.trials, self.trials_)
        folder.write_table(folder.candidates, self.candidates_)
        folder.write_table(folder.scores, self.scores_)
        folder.write_results(summary)
        return summary

    def dry_run(self, X: Any, y: Any = None, subject: Any = None) -> Plan | AutoPlan:
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

    def _about(self, problem: Problem, options: RunOptions) -> dict[str, Any]:
        """Say what is good to know of a run, for its report."""
        asked = {} if options.recipes is None else {"asked": self._asked()}
        return asked | {
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
            "command": getattr(self, "_command", None),
            "params": options.space.params(),
            "begun": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }

    def _asked(self) -> dict[str, Any]:
        """Say what somebody asked of a hands-off run that its definition has in other words."""
        of_training = CensoredClassifier().get_params(deep=False)
        return {
            "own_recipes": self.recipes is not None,
            "fixed": [name for name in self.fixed if name in of_training],
            "signal": self.signal,
            "n_folds": self.n_folds,
            "max_epochs": None if self.classifier is None else self.classifier.max_epochs,
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

    def adapt(
        self,
        X: Any,
        y: Any = None,
        *,
        unlabelled: Any = None,
        method: str = AUTO,
        prior: int = PRIOR,
        all_classes: bool = False,
    ) -> CensoredClassifier | Ensemble:
        """Make a model for one new person from some of their trials, with labels or without.

        Parameters
        ----------
        X, y, unlabelled, method, prior, all_classes
            As for `autotransfer.CensoredClassifier.adapt`.

        Returns
        -------
        CensoredClassifier or Ensemble
            A copy of ``best_estimator_`` for this person.
        """
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.adapt(
            X, y, unlabelled=unlabelled, method=method, prior=prior, all_classes=all_classes
        )

    def live(self, *, prior: int = PRIOR, method: str = AUTO) -> Live:
        """Begin to go along with one new person, trial by trial (level ``stream``).

        Parameters
        ----------
        prior, method
            As for `autotransfer.CensoredClassifier.live`.
        """
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.live(prior=prior, method=method)

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
        self.report_ = write_report(self.run_, path, storage=self.storage)
        return self.report_

    def _card(self) -> Card | None:
        """Make the first screen of the report: what to expect of a new person, and what to do."""
        if not hasattr(self, "best_estimator_"):
            return None
        page = getattr(self, "report_", self.run_ / "report.html")
        there = f"The report: `{page}`" if page.exists() else f"`auto.report()` writes `{page}`"
        steps = (
            *NEXT_STEPS,
            ("Write the report", "auto.report()"),
            ("Keep the model", 'auto.save("my.model")'),
        )
        try:
            first = self._first_screen()
        except AutoTransferError as error:
            # The folder is somebody's to move or to delete; the model is still here.
            words = f"What came of the run cannot be read: {error}"
            facts = self.describe().splitlines()
            return Card("A model of a run", [words], sentences=facts, steps=steps)
        tiles = [(tile.label, tile.value, tile.note) for tile in first.tiles]
        title, told = first.headline, [f"The run: `{self.run_}`", there]
        return Card(title, first.warnings, tiles, sentences=told, steps=steps)

    def _first_screen(self) -> Answer:
        """Read what the report says first; once, because a ledger may be large and far away."""
        if self._answer is None:
            self._answer = first_screen(gather(self.run_, self.storage))
        return self._answer
