"""The hands-off procedure: first a good network, then what can be added to it, at any time a model.

Stages, all on record: the default recipe on groups of people (the first answer), other recipes, at
the best recipe the censors that were asked for, further seeds, and the answer: one network or the
mean of a few, trained on everybody. A stage ends when all of it is tried or when the time that is
left is needed for what must follow.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import numpy as np

from autotransfer.data.trials import Array
from autotransfer.errors import IncompleteResultsError
from autotransfer.search.driver import Driver
from autotransfer.search.engines.base import Engine, Handle
from autotransfer.search.ledger import Entry, Ledger
from autotransfer.search.levels.worth import Levels
from autotransfer.search.options import RunOptions
from autotransfer.search.procedures.answer import (
    MOST_MEMBERS,
    Answer,
    Member,
    Tried,
    answer,
    best_setting,
    mean_gain,
    nested_answer,
)
from autotransfer.search.procedures.clock import Clock
from autotransfer.search.procedures.closing import (
    await_refits,
    record_levels,
    record_portraits,
    share_out,
    submit_refits,
)
from autotransfer.search.procedures.held_out import HeldOut, mean_probabilities
from autotransfer.search.procedures.outcome import Outcome
from autotransfer.search.procedures.plan import (
    FINALISTS,
    SEEDS,
    AutoPlan,
    describe,
    first_cost,
    first_setting,
    fixed_groups,
    plan_of,
    training_of,
    trial_of,
)
from autotransfer.search.procedures.reference import begin_reference
from autotransfer.search.progress import RunProgress
from autotransfer.search.run_folder import RunFolder
from autotransfer.search.settings.comparison import credible_gain
from autotransfer.search.settings.recipe import ENCODER, Dimension
from autotransfer.search.settings.selection import TrialScores, lookup_rule
from autotransfer.search.settings.setting import Setting
from autotransfer.search.settings.trial import Trial, digest
from autotransfer.search.shared import Shared
from autotransfer.search.status import OF_TRIALS
from autotransfer.search.tasks import scores
from autotransfer.text import duration

STAGES = OF_TRIALS["auto"]
"""Stages that train and score on held-out people, in their order."""

SLACK = 0.04
"""Share of a budget that is kept for what nobody foresees."""

CLEARLY = 0.8
"""How credible it must be that a setting is worse than the best, for it to get no further seeds."""

LEVELS = 0.08
"""Share of a budget that is kept to score what is known of a new person."""

PORTRAITS = "portraits of the latents"
"""As what they are named where there was no time for them."""

PROBING = 20.0
"""Seconds that a portrait of the latent takes beside its training."""


class AutoProcedure:
    """One run.

    Parameters
    ----------
    options : RunOptions
        What to do.
    shared : Shared
        What all trials share.
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
    publish : callable
        Is handed an `Outcome` whenever there is a better answer, with its model written.
    portraits : bool
        Whether time is kept for portraits of the latents.
    levels : bool
        Whether time is kept to score what is known of a new person.
    """

    def __init__(
        self,
        options: RunOptions,
        shared: Shared,
        folder: RunFolder,
        ledger: Ledger,
        start: Callable[[], tuple[Engine, Handle]],
        progress: RunProgress,
        driver: Driver,
        publish: Callable[[Outcome], None],
        portraits: bool = True,
        levels: bool = True,
    ) -> None:
        assert options.recipes is not None
        self.options, self.shared, self.folder, self.ledger = options, shared, folder, ledger
        self.start, self.progress, self.driver, self.publish = start, progress, driver, publish
        self.recipes, self.problem = options.recipes, shared.problem
        self._portraits, self._levels = portraits, LEVELS if levels else 0.0
        self.rule = lookup_rule(options.rule)
        progress.name_of = self._name
        self._known: dict[Trial, TrialScores] = {}
        self._missed: list[str] = []
        self._closing = ledger.plan("closing")
        self._pending: tuple[Outcome, list[Trial], list[Future[Any]]] | None = None
        self.clock = Clock(options.budget, self._spent_before())

    def run(self) -> Outcome:
        """Do all of it; what is on record is not done again."""
        plan = self.plan()
        first = first_setting(self.options, plan)
        parts = (self.shared.hash, self.ledger, self.start, self.driver, self.progress)
        end_reference = begin_reference(plan.n_folds, *parts)
        self._train("first", self._trials(first, plan))
        end_reference()
        self._require_first(first, plan)
        self._tell("first answer", plan)
        if not self.folder.has_answer:
            self._begin_answer(plan)
        self._try_recipes(plan)
        self._tell("recipes", plan)
        self._try_censors(plan)
        if self._incumbent(plan) != first:
            self._end_answer(wait=True)
            self._begin_answer(plan)
        self._confirm(plan)
        self._tell("seeds", plan)
        if self._try_another_encoder(plan):
            self._confirm(plan)
            self._tell("recipes of another encoder", plan)
        self._end_answer(wait=True)
        outcome = self._close(plan)
        self.publish(outcome)
        return outcome

    def _require_first(self, first: Setting, plan: AutoPlan) -> None:
        """Raise an error if the default recipe could not be trained: all else is built on it."""
        if first not in self._tried(plan).by_seed:
            errors = [one.error for one in self._scores if one.error]
            raise IncompleteResultsError(
                f"{len(errors)} of {plan.n_folds} trainings of the default recipe failed, so there "
                f"is no answer. The first reason: {errors[0].strip().splitlines()[-1]}"
            )

    def _close(self, plan: AutoPlan) -> Outcome:
        """Give the last answer, train it on everybody, and look at its latent if there is time.

        What the time decides is put on record first: the same call gives the same answer again.
        """
        if self._closing is None:
            self._closing = self._plan_closing(plan)
            self.ledger.write_plan("closing", self._closing)
        self._missed = list(self._closing["missed"])
        outcome = self._choose(plan, self._closing["most"], complete=True)
        trials = self._members(outcome.answer, plan)
        if not self.folder.has_model(_key(trials, self.shared.hash)):
            n = len(trials)
            several = f", {n} networks whose mean is the answer" if n > 1 else ""
            name = self._name(outcome.answer.setting)
            self.progress.say(f"training {name} on everybody{several}")
            futures = submit_refits(trials, self.start)
            self._write_model(trials, self._wait(futures, trials))
        if self._levels:
            levels = self._score_levels(outcome, plan)
            outcome = replace(outcome, levels=levels, missed=(*self._missed, *levels.not_tried()))
        if self._closing["portraits"] or (self._portraits and PORTRAITS not in self._missed):
            trial = self._trials(outcome.answer.setting, plan)[0]
            parts = (self.shared.hash, self.ledger, self.start, self.driver, self.progress)
            record_portraits(trial, *parts)
        return outcome

    def _plan_closing(self, plan: AutoPlan) -> dict[str, Any]:
        """Share out what time is left: networks on everybody, levels, portraits."""
        most, portraits = MOST_MEMBERS, self._portraits
        level_seconds: float | None = None
        if self.clock.budget is not None:
            tried = self._tried(plan)

            def networks(most: int) -> list[float]:
                members = answer(tried, self.rule, most).members
                return [self._seconds(member.setting, plan) for member in members]

            reserve, one = self._levels * self.clock.budget, networks(1)[0]
            portrait = one + min(PROBING, 2 * one) if portraits else None
            parts = (self.clock.left, networks, reserve, portrait, self._workers)
            most, levels, portraits = share_out(*parts)
            level_seconds = levels * self._workers / plan.n_folds
        missed = list(dict.fromkeys(self._missed))  # seeds are tried twice
        if self._portraits and not portraits:
            missed.append(PORTRAITS)
        decided = {"most": most, "portraits": portraits, "missed": missed}
        return decided | {"level_seconds": level_seconds}

    def _score_levels(self, outcome: Outcome, plan: AutoPlan) -> Levels:
        """Score what is known of a new person by the first network of the answer.

        Where that is censored, also by the uncensored one beside it, for the report.
        """
        assert self._closing is not None
        first = outcome.answer.members[0]
        settings = [first.setting]
        baseline = first.setting.baseline
        if baseline != first.setting and first.seed in self._tried(plan).by_seed.get(baseline, {}):
            settings.append(baseline)
        seconds = self._closing.get("level_seconds")
        found = []
        for setting in settings:
            trials = self._trials(setting, plan, first.seed)
            networks = [self.folder.read_network(trial.id(self.shared.hash)) for trial in trials]
            each = None if seconds is None else seconds / len(settings)
            parts = (self.shared, self.ledger, self.start, self.driver, self.progress)
            found.append(record_levels(trials, networks, self.options.n_labels, each, *parts))
        levels = found[0]
        if levels.scores:
            self.folder.write_policy(levels.policy(self.options.n_labels).to_json())
        return levels

    # What it costs.

    def plan(self) -> AutoPlan:
        """Take the plan on record, or decide on how many groups the budget carries."""
        known = self.ledger.plan("auto")
        if known is not None:
            return AutoPlan(**known)
        plan = fixed_groups(self.options)
        if plan is None:
            assert self.options.budget is not None
            plan = self._fit_groups(self.options.budget)
        if self.options.budget is not None:
            plan = replace(plan, workers=self._workers)
        self.progress.say(describe(plan, self.options, plan.workers))
        self.ledger.write_plan("auto", plan.to_json())
        return plan

    def _fit_groups(self, budget: float) -> AutoPlan:
        began = time.monotonic()
        engine, handle = self.start()
        one = first_cost(
            *(self.options, self.problem, engine, handle, self.progress, self.driver.result),
            budget=budget,
        )
        spent = time.monotonic() - began
        return plan_of(self.options, budget, engine.n_workers, one, spent)

    @property
    def _workers(self) -> int:
        engine, _ = self.start()
        return engine.n_workers

    def _spent_before(self) -> float:
        """Seconds of a budget that are on record."""
        plan = self.ledger.plan("auto")
        if plan is None:
            return 0.0
        entries = [e for stage in self.ledger.stages() for e in self.ledger.entries(stage)]
        # A run of before this was written down had as many as it was told.
        workers = plan.get("workers", self.options.n_jobs)
        return float(sum(e.result.get("seconds", 0.0) for e in entries) / workers + plan["spent"])

    def _seconds(self, setting: Setting, plan: AutoPlan) -> float:
        """Seconds of a training: what it took before, else what the recipe lets expect."""
        mine, default = [], []
        for entry in self._entries():
            if entry.state == "done":
                if entry.trial.setting == setting:
                    mine.append(entry.result["seconds"])
                if entry.trial.setting.recipe == self.recipes.default:
                    default.append(entry.result["seconds"])
        if mine:
            return float(np.mean(mine))
        base = float(np.mean(default)) if default else plan.seconds
        censor = 1.0 if setting.measure is None else 1.5
        return base * censor * self.recipes.cost(setting.recipe)

    def _fits(self, trials: Sequence[Trial], plan: AutoPlan, n_seeds: int, kept: float = 1) -> bool:
        """Whether there is time for some trials, then for so many more seeds, and for the end.

        `kept` is how much is kept of the slack and of the time for levels, as a share.
        """
        known = {entry.id for entry in self._entries()}
        missing = [t for t in trials if t.id(self.shared.hash) not in known]
        if not missing:
            return True
        if self._closing is not None:
            return False  # the run has come to its end before
        if self.clock.budget is None:
            return True
        seconds = [self._seconds(trial.setting, plan) for trial in missing]
        # If one of them becomes the choice, the seeds are its own.
        one = max(self._seconds(self._incumbent(plan), plan), *seconds)
        # The best so far is trained on everybody beside them; in the end each seed is a network.
        work = sum(seconds) + n_seeds * (plan.n_folds + 1) * one
        refits = math.ceil((1 + max(n_seeds, trials[0].seed)) / self._workers) * one
        slack = kept * (SLACK + self._levels) * self.clock.budget
        return work / self._workers + refits + slack <= self.clock.left

    # Stages.

    def _try_recipes(self, plan: AutoPlan) -> None:
        """Change one thing after the other in the best recipe so far, the most promising first."""
        for dimension in self._queue(self._incumbent(plan)):
            best = self._incumbent(plan)
            # Of another encoder one is always tried on everybody: it may be worth more beside the
            # best than alone.
            beside = dimension.name == ENCODER
            rivals = self._neighbours(best, dimension)
            name = dimension.name
            self._missed += self._race("recipe", rivals, plan, best, 1, name, at_least_one=beside)

    def _try_another_encoder(self, plan: AutoPlan) -> bool:
        """Do the same with the best recipe of another encoder; gives whether there was time for it.

        It may come to be the best, or its networks may be worth more beside the best.
        """
        encoder, before, missed = self._incumbent(plan).recipe.encoder, len(self._known), 0

        def other() -> Setting | None:
            tried = self._tried(plan)
            some = [s for s in tried.by_seed if not s.measure and s.recipe.encoder != encoder]
            return best_setting(tried, self.rule, settings=some) if some else None

        best = other()
        for dimension in self._queue(best) if best else []:
            best = other()
            if best and dimension.name != ENCODER:
                rivals = self._neighbours(best, dimension)
                missed += bool(self._race("recipe", rivals, plan, best, 1, dimension.name))
        if missed:
            self._missed.append(f"changes of the best recipe of another encoder: {missed}")
        return len(self._known) > before

    def _queue(self, best: Setting) -> list[Dimension]:
        """List what can be changed in a recipe, the most promising first."""
        queue = sorted(self.recipes.dimensions, key=lambda d: -d.gain / d.effort)
        if self._still_falling(best):
            # Nothing can be compared fairly that is not trained to its end.
            queue.sort(key=lambda d: d.name != "steps")
            queue = [d for d in queue if d.name != "fewer steps"]
        return queue

    def _neighbours(self, best: Setting, dimension: Dimension) -> list[Setting]:
        recipes = self.recipes.neighbours(best.recipe, dimension.name)
        return [replace(best, recipe=recipe) for recipe in recipes]

    def _try_censors(self, plan: AutoPlan) -> None:
        """Add the censors of the space to the best recipe, each measure in each mode."""
        best = self._incumbent(plan)
        settings = self.options.space.spread(self.options.least, self.options.seed)
        rivals = []
        for setting in settings:
            recipe = best.recipe
            if setting.mode == "conditional":
                # As many trials of a person as the measure needs in each class.
                free = {"subjects_per_batch": None, "trials_per_subject": None}
                recipe = recipe.with_options(free)
            rivals.append(replace(setting, recipe=recipe))
        baselines = dict.fromkeys(r.baseline for r in rivals if r.baseline != best)
        both = [*baselines, *rivals]
        self._missed += self._race("censor", both, plan, best, FINALISTS, "censors")

    def _race(
        self,
        stage: str,
        rivals: Sequence[Setting],
        plan: AutoPlan,
        best: Setting,
        keep: int,
        what: str,
        at_least_one: bool = False,
    ) -> list[str]:
        """Try rivals of a setting on half of the groups, and those who gain there on the others.

        With `at_least_one` the best rival is tried on all of them, whether it gains or not. Gives
        what there was no time for.
        """
        if not rivals:
            return []
        half = plan.half
        heat = [trial for rival in rivals for trial in self._trials(rival, plan)[:half]]
        if not self._fits(heat, plan, n_seeds=SEEDS - 1):
            n = len(rivals)
            return [f"{what}: {n} setting{'' if n == 1 else 's'}"]
        self._train(stage, heat)
        gains = {rival: mean_gain(self._scores, rival, best, half) for rival in rivals}
        scored = sorted((-gain, i) for i, r in enumerate(rivals) if (gain := gains[r]) is not None)
        ahead = [rivals[i] for loss, i in scored if loss < 0]
        if at_least_one and not ahead:
            ahead = [rivals[i] for _, i in scored[:1]]
        missed = []
        for rival in ahead[:keep]:
            trials = self._trials(rival, plan)
            if not self._fits(trials, plan, n_seeds=SEEDS - 1):
                missed.append(f"{self._name(rival)} on all groups")
                continue
            self._train(stage, trials)
        return missed

    def _confirm(self, plan: AutoPlan) -> None:
        """Train the best, and who may be as good, with further seeds."""
        tried = self._tried(plan)
        best = best_setting(tried, self.rule)
        rivals = [
            s
            for s in tried.by_seed
            if s != best and credible_gain(tried.gains(best, s), CLEARLY) <= 0
        ]
        rivals.sort(key=lambda s: -float(np.mean(list(tried.alone(s).values()))))
        for seed in range(1, MOST_MEMBERS):
            # Rivals get one more seed, to be compared on two; each of the best's is a network more.
            for setting in [best, *(rivals[: FINALISTS - 1] if seed == 1 else ())]:
                trials = self._trials(setting, plan, seed)
                # For the first of them time was kept. If trainings took a little longer than was
                # foreseen, levels, which make do with what is left, pay for it.
                kept = 0.5 if setting == best and seed < SEEDS else 1.0
                if not self._fits(trials, plan, n_seeds=0, kept=kept):
                    self._missed.append(f"seed {seed + 1} of {self._name(setting)}")
                    if setting == best:
                        break  # nothing to compare a rival's second seed with
                    continue
                self._train("confirm", trials)

    # What is known.

    def _trials(self, setting: Setting, plan: AutoPlan, seed: int = 0) -> list[Trial]:
        given = (setting, self.options, self.problem, plan.n_folds)
        return [trial_of(*given, fold, seed) for fold in range(plan.n_folds)]

    def _train(self, stage: str, trials: Sequence[Trial]) -> None:
        """Run what is missing of some trials, and take their scores into account.

        What is decided hangs on the scores of the steps before, in the order of the steps, and not
        on all that is on record: a run that goes on decides as it did.
        """
        for trial, one in zip(trials, self.driver.run(stage, trials), strict=True):
            self._known[trial] = one
        self._end_answer(wait=False)

    @property
    def _scores(self) -> list[TrialScores]:
        return list(self._known.values())

    def _entries(self) -> list[Entry]:
        return [entry for stage in STAGES for entry in self.ledger.entries(stage)]

    def _tried(self, plan: AutoPlan) -> Tried:
        return Tried(self._scores, plan.n_folds, lambda members: self._together(members, plan))

    def _incumbent(self, plan: AutoPlan) -> Setting:
        """Find the best setting so far."""
        tried = self._tried(plan)
        if not tried.by_seed:
            return first_setting(self.options, plan)
        return best_setting(tried, self.rule)

    def _still_falling(self, setting: Setting) -> bool:
        # Of the steps before: seeds that a run of before has on record come after this is asked.
        mine = [
            e
            for e in self._entries()
            if e.state == "done" and e.trial.setting == setting and e.trial in self._known
        ]
        return sum(bool(e.result["still_falling"]) for e in mine) > len(mine) / 2

    def _together(self, members: Sequence[Member], plan: AutoPlan) -> dict[str, float] | None:
        """Score everybody by the mean probability of some members; None if a file is missing."""
        mean = self._predicted(members, plan)
        if mean is None:
            return None
        everybody = np.arange(len(mean))
        people: dict[str, float] = scores(self.problem, everybody, mean.argmax(1))["subjects"]
        return people

    def _predicted(self, members: Sequence[Member], plan: AutoPlan) -> Array | None:
        trials = [t for m in members for t in self._trials(m.setting, plan, m.seed)]
        return mean_probabilities(trials, self.shared, self.folder)

    # Answers.

    def _choose(self, plan: AutoPlan, most: int, complete: bool) -> Outcome:
        """Choose from what was tried so far."""
        found = nested_answer(self._tried(plan), self.rule, most)
        classical = [e.result["subjects"] for e in self.ledger.entries("reference") if e.result]
        predicted = self._predicted(found.members, plan)
        return Outcome(
            found,
            tuple(self._scores),
            dict(*classical[-1:]),
            plan,
            self.options.rule,
            tuple(self._missed),
            complete,
            new_person=self.options.new_person,
            n_labels=self.options.n_labels,
            held_out=None if predicted is None else HeldOut.of(self.problem, predicted),
        )

    def _begin_answer(self, plan: AutoPlan) -> None:
        """Have the best so far trained on everybody while the run goes on."""
        outcome = self._choose(plan, 1, complete=False)
        trials = self._members(outcome.answer, plan)
        if self._closing is None and not self.folder.has_model(_key(trials, self.shared.hash)):
            self._pending = outcome, trials, submit_refits(trials, self.start)

    def _end_answer(self, wait: bool) -> None:
        """Write down the best so far once it is trained."""
        if self._pending is None:
            return
        outcome, trials, futures = self._pending
        if wait or all(future.done() for future in futures):
            self._pending = None
            self._write_model(trials, self._wait(futures, trials))
            self.publish(outcome)

    def _members(self, answer: Answer, plan: AutoPlan) -> list[Trial]:
        """Give the trainings on everybody that an answer is made of."""
        return [
            Trial(m.setting, 0, plan.n_folds, m.seed, self._whole_epochs(m.setting), grouped=True)
            for m in answer.members
        ]

    def _wait(self, futures: Sequence[Future[Any]], trials: Sequence[Trial]) -> list[Any]:
        return await_refits(futures, trials, self.start, self.driver, self.progress)

    def _write_model(self, trials: Sequence[Trial], results: list[dict[str, Any]]) -> None:
        """Write down what was trained, then the model folder.

        In this order: if a kill falls between, the model is missing and trained again, and nothing
        is missing on record.
        """
        files = [result.pop("files") for result in results]
        recorded = self.ledger.ids("refit")
        for trial, result in zip(trials, results, strict=True):
            key = _key([trial], self.shared.hash)
            if key not in recorded:
                what, params = trial.to_json(), trial.setting.params()
                self.ledger.record(Entry(key, "refit", "done", what, result, params=params))
        self.folder.write_model(_key(trials, self.shared.hash), files)

    def _whole_epochs(self, setting: Setting) -> int:
        """Epochs that make the steps of a recipe when everybody trains."""
        return training_of(setting, self.options).epochs(len(self.problem.codes))

    def _tell(self, what: str, plan: AutoPlan) -> None:
        """Say in one line how far it is."""
        tried = self._tried(plan)
        best = best_setting(tried, self.rule)
        values = list(tried.alone(best).values())
        left = f", {duration(max(self.clock.left, 0.0))} left" if self.clock.budget else ""
        self.progress.say(
            f"{what}: balanced accuracy {np.mean(values):.3f} of people held out, by "
            f"{self._name(best)}{left}"
        )

    def _name(self, setting: Setting) -> str:
        return setting.beside(self.recipes.default)


def _key(trials: Sequence[Trial], problem_hash: str) -> str:
    """Identity of a model: that of its training on everybody, or of several."""
    keys = [digest(["refit", problem_hash, trial.to_json()]) for trial in trials]
    return keys[0] if len(keys) == 1 else digest(keys)
