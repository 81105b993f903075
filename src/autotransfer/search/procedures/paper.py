"""AutoTransfer's procedure: search, keep, cross-validate, select, refit."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from autotransfer.errors import join_some
from autotransfer.search import budget as budgets
from autotransfer.search.budget import Costs, Plan
from autotransfer.search.driver import Driver, scores_of
from autotransfer.search.engines.base import Engine, Handle
from autotransfer.search.forecast import measure_costs
from autotransfer.search.ledger import Entry, Ledger
from autotransfer.search.options import RunOptions, describe, describe_crossval, plan_for
from autotransfer.search.procedures.closing import await_refits, record_portraits, submit_refits
from autotransfer.search.progress import RunProgress
from autotransfer.search.run_folder import RunFolder
from autotransfer.search.settings.selection import (
    Choice,
    TrialScores,
    best_of_each,
    choose,
    over_folds,
    promoted,
)
from autotransfer.search.settings.setting import BASELINE, Setting
from autotransfer.search.settings.tpe import BATCH, suggest
from autotransfer.search.settings.trial import Trial, digest


class Procedure:
    """One run.

    Parameters
    ----------
    options : RunOptions
        What to do.
    problem_hash : str
        Hash of the data and of the options that all trials share.
    folder : RunFolder
        Where.
    ledger : Ledger
        Open for writing.
    start : callable
        Starts the engine: () -> (engine, handle of the problem). Not called if all is on record.
    progress : RunProgress
        Tells a person.
    driver : Driver
        Runs trials.
    portraits : bool
        Whether to measure and draw what the latents tell about the person.
    """

    def __init__(
        self,
        options: RunOptions,
        problem_hash: str,
        folder: RunFolder,
        ledger: Ledger,
        start: Callable[[], tuple[Engine, Handle]],
        progress: RunProgress,
        driver: Driver,
        portraits: bool = True,
    ) -> None:
        self._with_portraits = portraits
        self.options, self.problem_hash, self.folder = options, problem_hash, folder
        self.ledger, self.start, self.progress, self.driver = ledger, start, progress, driver

    def run(self) -> tuple[Choice, list[TrialScores], Plan]:
        """Do all of it; what is on record is not done again."""
        plan = self.plan()
        scores = self.search(plan)
        plan, candidates = self.plan_crossval(plan, scores)
        results = self.crossval(plan, candidates)
        choice = choose(candidates, results, plan.n_folds, plan.n_seeds, self.options.rule)
        self.refit(choice, plan)
        self.portraits(choice, plan)
        return choice, results, plan

    def plan(self) -> Plan:
        """Take the plan on record, or make one."""
        known = self.ledger.plan("search")
        if known is not None:
            return Plan.from_json(known["plan"])
        options = self.options
        costs = None
        if options.budget is None:
            plan = options.plan()
        else:
            began = time.monotonic()
            engine, handle = self.start()
            costs = measure_costs(options, engine, handle, self.progress, self.driver.result)
            costs = replace(costs, seconds=time.monotonic() - began)
            plan = plan_for(options, costs, options.budget, engine.n_workers)
        self.progress.say(describe(plan, options))
        record = {"plan": plan.to_json(), "costs": None if costs is None else costs.to_json()}
        self.ledger.write_plan("search", record)
        return plan

    def search(self, plan: Plan) -> list[TrialScores]:
        """Try the settings on the first folds; gives the scores of the last rung."""
        if self.options.strategy == "grid":
            n = None if plan.n_settings >= self.options.most else plan.n_settings
            if self.options.n_settings is not None:
                n = plan.n_settings
            return self._successive_halving(self.options.settings(n), plan)
        scores = self._successive_halving(self.options.space.baselines(), plan)
        while (left := plan.n_settings + plan.n_baselines - len(scores)) > 0:
            n = min(BATCH, left)
            batch = suggest(self.options.space, scores, n, self.options.seed)
            scores += self._successive_halving(batch, plan, all_of_them=True)
        return scores

    def _successive_halving(
        self, settings: list[Setting], plan: Plan, all_of_them: bool = False
    ) -> list[TrialScores]:
        """Train settings rung by rung, dropping the worse ones in between."""
        left = settings
        last: dict[Setting, TrialScores] = {}
        for rung, epochs in enumerate(plan.rungs):
            trials = [
                Trial(setting, fold, plan.n_folds, 0, epochs)
                for setting in left
                for fold in range(plan.search_folds)
            ]
            scores = over_folds(self.driver.run("search", trials))
            last |= {one.setting: one for one in scores}
            if rung + 1 < len(plan.rungs):
                left = promoted(scores, 3, plan.keep)
        return [last[s] for s in settings] if all_of_them else [last[s] for s in left]

    def plan_crossval(self, plan: Plan, scores: list[TrialScores]) -> tuple[Plan, list[Setting]]:
        """Fix who is cross-validated, and fit that to the time that is left."""
        known = self.ledger.plan("crossval")
        if known is not None:
            candidates = [Setting.from_json(document) for document in known["candidates"]]
            return Plan.from_json(known["plan"]), candidates
        censors = best_of_each(scores, plan.keep)
        # Conditional censors are compared with a baseline that has their batches.
        baselines = dict.fromkeys([BASELINE, *(censor.baseline for censor in censors)])
        candidates = [*baselines, *censors]
        # From the record: pruning has dropped them before the last rung.
        trials = map(scores_of, self.ledger.entries("search"))
        names = (f"{one.setting.measure} {one.setting.mode}" for one in trials if one.small_cells)
        skipped = list(dict.fromkeys(names))
        if skipped:
            self.progress.say(
                f"skipped, because a batch has too few trials to censor: {join_some(skipped)}. "
                "Raise trials_per_subject to have them tried."
            )
        if self.options.budget is not None:
            engine, _ = self.start()
            plan = self._fit_to_budget(plan, candidates, engine.n_workers)
            self.progress.say(describe_crossval(plan, candidates))
        record = {"plan": plan.to_json(), "candidates": [c.to_json() for c in candidates]}
        self.ledger.write_plan("crossval", record)
        return plan, candidates

    def _fit_to_budget(self, plan: Plan, candidates: list[Setting], workers: int) -> Plan:
        """Fit folds, epochs and seeds of the cross-validation to the rest of the budget."""
        assert self.options.budget is not None
        entries = [e for e in self.ledger.entries("search") if e.state == "done"]
        on_record = self.ledger.plan("search")
        assert on_record is not None
        costs = with_measured_times(Costs(**on_record["costs"]).at(plan.n_folds), entries)
        spent = sum(entry.result["seconds"] for entry in entries) / workers
        left = self.options.budget - spent - costs.seconds
        work = left * workers * (1 - budgets.SLACK)

        def needs(epochs: int, seeds: int, n_folds: int) -> float:
            mine = costs.at(n_folds)
            trial = max(mine.trial(c, epochs) for c in candidates)
            last = budgets.afterwards_seconds(trial, workers)
            return last + budgets.crossval_seconds(candidates, epochs, n_folds, seeds, mine)

        n_folds = plan.n_folds
        if needs(plan.epochs, 1, n_folds) > work:
            fitting = (e for e in range(5, plan.epochs) if needs(e, 1, n_folds) <= work)
            epochs = max(fitting, default=5)
            seconds = needs(epochs, 1, n_folds) / workers
            return replace(plan, rungs=(epochs,), n_seeds=1, seconds=seconds)
        # Trials that took less time than was feared leave room for the folds that were cut.
        more = range(n_folds, self.options.n_folds + 1)
        n_folds = max(n for n in more if needs(plan.epochs, 1, n) <= work)
        most = max(self.options.n_seeds, plan.n_seeds)
        fits = [s for s in range(1, most + 1) if needs(plan.epochs, s, n_folds) <= work]
        seconds = needs(plan.epochs, fits[-1], n_folds) / workers
        return replace(plan, n_folds=n_folds, n_seeds=fits[-1], seconds=seconds)

    def crossval(self, plan: Plan, candidates: list[Setting]) -> list[TrialScores]:
        """Train every candidate on every fold."""
        trials = [
            Trial(setting, fold, plan.n_folds, seed, plan.epochs)
            for seed in range(plan.n_seeds)
            for fold in range(plan.n_folds)
            for setting in candidates
        ]
        return self.driver.run("crossval", trials)

    def refit(self, choice: Choice, plan: Plan) -> None:
        """Train the chosen setting on everybody and write the model folder."""
        epochs = self._typical_epoch(choice.setting)
        trial = Trial(choice.setting, 0, plan.n_folds, 0, epochs)
        key = digest(["refit", self.problem_hash, trial.to_json()])
        recorded = {entry.id for entry in self.ledger.entries("refit")}
        if key in recorded and self.folder.has_model(key):
            return
        self.progress.say(f"refitting {choice.setting} on all subjects, {epochs} epochs")
        futures = submit_refits([trial], self.start)
        (result,) = await_refits(futures, [trial], self.start, self.driver, self.progress)
        self.folder.write_model(key, [result.pop("files")])
        if key not in recorded:
            self.ledger.record(
                Entry(key, "refit", "done", trial.to_json(), result, params=trial.setting.params())
            )

    def portraits(self, choice: Choice, plan: Plan) -> None:
        """Put portraits on record of the baseline, of the choice, and of its placebo."""
        if self._with_portraits:
            trial = Trial(choice.setting, 0, plan.n_folds, 0, plan.epochs)
            record_portraits(
                trial, self.problem_hash, self.ledger, self.start, self.driver, self.progress
            )

    def _typical_epoch(self, setting: Setting) -> int:
        """Median over folds of the epoch whose weights were kept."""
        best = [
            entry.result["best_epoch"]
            for stage in ("search", "crossval")
            for entry in self.ledger.entries(stage)
            if entry.state == "done" and entry.trial.setting == setting
        ]
        return max(1, round(float(np.median(best))))


def with_measured_times(costs: Costs, entries: list[Entry]) -> Costs:
    """Put what trials really took in the place of what was measured before them."""
    epoch, fixed = dict(costs.epoch), dict(costs.fixed)
    seen: dict[str, list[tuple[float, float]]] = {}
    for entry in entries:
        kind = budgets.kind_of(entry.trial.setting)
        each = entry.result["epoch_seconds"]
        rest = entry.result["seconds"] - each * entry.result["epochs"]
        seen.setdefault(kind, []).append((each, max(rest, 0.0)))
    for kind, values in seen.items():
        epoch[kind], fixed[kind] = (float(v) for v in np.mean(values, axis=0))
    return replace(costs, epoch=epoch, fixed=fixed)
