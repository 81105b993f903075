"""The tables of `evidence.py`: choices, differences and their certainty, from scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from autotransfer.report.statistics import paired
from autotransfer.search.settings.selection import RULES
from autotransfer.search.settings.setting import BASELINE
from benchmarks.common.report import Goal

RULE = "lower_quartile"
UNCENSORED = str(BASELINE)
NOTHING = "nothing"
OURS = "AutoTransfer"
QUARTILE = "AutoTransfer's"
"""Column beside a competitor: AutoTransfer's lower quartile from as many seeds. People's means over
more seeds spread less, and their lower quartile would be higher for that alone."""

Scores = dict[str, float]
"""Person -> balanced accuracy, averaged over seeds."""


@dataclass(frozen=True)
class Table:
    """Every score of a data set.

    Parameters
    ----------
    name : str
        Of the data set.
    scores : DataFrame
        With the columns setting, seed, fold, side, person, balanced_accuracy.
    """

    name: str
    scores: pd.DataFrame

    @classmethod
    def read(cls, file: Path, name: str) -> Table:
        """Read the scores of a data set from the file of all."""
        all_scores = pd.read_csv(file, dtype={"person": str})
        return cls(name, all_scores[all_scores["data"] == name])

    @property
    def settings(self) -> list[str]:
        """Candidates, the baseline first: ties are its."""
        return sorted(self.scores["setting"].unique(), key=lambda s: (s != UNCENSORED, s))

    @property
    def seeds(self) -> list[int]:
        """Seeds of the cross-validation."""
        return sorted(int(seed) for seed in self.scores["seed"].unique())

    def of(self, setting: str, side: str, seeds: Iterable[int] | None = None) -> Scores:
        """Score of each person with a setting."""
        table = self.scores
        mine = table[(table["setting"] == setting) & (table["side"] == side)]
        if seeds is not None:
            mine = mine[mine["seed"].isin(list(seeds))]
        return _means(mine, "person")

    def on_the_first_fold(self) -> dict[str, float]:
        """Give the validation score of every candidate on the first fold with the first seed."""
        table = self.scores
        first = table[(table["fold"] == 0) & (table["seed"] == 0) & (table["side"] == "validation")]
        return _means(first, "setting")

    def judged(
        self, judge: Callable[[Any], float], seeds: Iterable[int] | None = None, but: str = ""
    ) -> dict[str, float]:
        """Judge every candidate by its validation scores, perhaps without those of a person."""
        seeds = None if seeds is None else list(seeds)
        return {
            setting: judge(
                np.array(
                    [v for who, v in self.of(setting, "validation", seeds).items() if who != but]
                )
            )
            for setting in self.settings
        }

    def chosen(
        self, rule: str = RULE, seeds: Iterable[int] | None = None, but: str = "", margin: float = 0
    ) -> str:
        """Choose by validation; a censor must be better than the baseline by more than a margin."""
        judged = self.judged(RULES[rule].judge, seeds, but)
        best = max(judged, key=lambda setting: judged[setting])
        return best if judged[best] - judged[UNCENSORED] > margin else UNCENSORED

    def without_the_person(self) -> Scores:
        """Test score of each person with the setting that the others' validation scores choose."""
        people = self.of(UNCENSORED, "test")
        return {who: self.of(self.chosen(but=who), "test")[who] for who in people}

    def where_gained(self) -> dict[str, Any]:
        """Say whether those gain whose baseline is worst.

        A low score is partly bad luck, which the next training does not share: gains over a
        baseline look larger where that same baseline scored low. So the baseline's score is taken
        from one seed and the gain from the others, each seed in turn; with one seed there is no
        answer.
        """
        setting, found = self.chosen(), []
        if setting == UNCENSORED or len(self.seeds) < 2:
            return {"setting": setting, "spearman": None}
        for seed in self.seeds:
            others = [s for s in self.seeds if s != seed]
            level = self.of(UNCENSORED, "test", [seed])
            mine, base = (self.of(s, "test", others) for s in (setting, UNCENSORED))
            found.append(
                stats.spearmanr([level[w] for w in level], [mine[w] - base[w] for w in level])[0]
            )
        return {"setting": setting, "spearman": float(np.mean(found))}


def _means(scores: pd.DataFrame, by: str) -> dict[str, float]:
    found = scores.groupby(by)["balanced_accuracy"].mean()
    return {str(key): float(value) for key, value in found.items()}


def holm(p: Sequence[float]) -> list[float]:
    """Correct p values for their number (Holm 1979)."""
    order = np.argsort(p)
    corrected, most = np.empty(len(p)), 0.0
    for rank, i in enumerate(order):
        most = max(most, min(1.0, (len(p) - rank) * p[i]))
        corrected[i] = most
    return [float(value) for value in corrected]


def row(name: str, method: str, scores: Scores, base: Scores, **more: Any) -> dict[str, Any]:
    """One row of the table: the spread over people, and the difference from the baseline."""
    values = np.array(list(scores.values()))
    compared = paired(scores, base)
    assert compared is not None
    difference = compared.difference
    return {
        "data": name,
        "method": method,
        "uses": NOTHING,
        "people": len(values),
        "seeds": 1,
        "mean": float(values.mean()),
        "sd": float(values.std(ddof=1)),
        "lower quartile": float(np.percentile(values, 25)),
        QUARTILE: None,
        "worst": float(values.min()),
        "difference": difference.value,
        "95 % interval": f"{difference.low:+.3f} to {difference.high:+.3f}",
        "p": compared.p,
        "p, Holm": None,
        "gained / lost": f"{compared.gained} / {compared.lost}",
        **more,
    }


def compare(tables: Sequence[Table], peers: Sequence[Mapping[str, Any]] = ()) -> list[Any]:
    """Compare the baseline, AutoTransfer's choice and the competitors, data set by data set.

    The choice is one setting for all, by the validation scores of everybody, which is what a user
    gets; beside it, for each person, the choice that the validation scores of the others make.
    """
    rows, chosen_rows = [], []
    for table in tables:
        base, setting = table.of(UNCENSORED, "test"), table.chosen()
        seeds = {"seeds": len(table.seeds)}
        rows.append(row(table.name, UNCENSORED, base, base, **seeds))
        mine = row(table.name, f"{OURS}: {setting}", table.of(setting, "test"), base, **seeds)
        chosen_rows.append(mine)
        apart = f"{OURS}, chosen without the person"
        rows += [mine, row(table.name, apart, table.without_the_person(), base, **seeds)]
        rows += peer_rows(table, peers)
    for one, p in zip(chosen_rows, holm([one["p"] for one in chosen_rows]), strict=True):
        one["p, Holm"] = p
    return rows


def peer_rows(table: Table, peers: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows of the competitors, those that use nothing of the new person first."""
    name, base, setting = table.name, table.of(UNCENSORED, "test"), table.chosen()
    # "erm" is the baseline once more; settings that were not chosen stand in the file only.
    mine = [one for one in peers if one["data"] == name and one["method"] != "erm"]
    found = pd.DataFrame([one for one in mine if one["chosen"]])
    if found.empty:
        return []
    rows = []
    for (method, uses), group in found.groupby(["method", "uses"], sort=False):
        scores = {str(k): float(v) for k, v in group.groupby("subject")["test"].mean().items()}
        seeds = group["seed"].nunique()
        ours = list(table.of(setting, "test", table.seeds[:seeds]).values())
        beside = {QUARTILE: float(np.percentile(ours, 25))}
        rows.append(row(name, str(method), scores, base, uses=uses, seeds=seeds, **beside))
    return sorted(rows, key=lambda one: one["uses"] != NOTHING)


def rivals(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Rows of the competitors."""
    return [one for one in rows if not one["method"].startswith((UNCENSORED, OURS))]


def in_short(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Keep the baseline, AutoTransfer's choice, and the best competitor of each kind."""
    kept = []
    for name in dict.fromkeys(one["data"] for one in rows):
        mine = [one for one in rows if one["data"] == name]
        kept += [one for one in mine if one["method"].startswith((UNCENSORED, f"{OURS}:"))]
        for uses in dict.fromkeys(one["uses"] for one in rivals(mine)):
            kind = [one for one in rivals(mine) if one["uses"] == uses]
            kept.append(max(kind, key=lambda one: one["lower quartile"]))
    return kept


def rules(tables: Sequence[Table]) -> list[dict[str, Any]]:
    """Tell what other rules, or fewer seeds, would have chosen, and how that would have tested."""
    ways: list[tuple[str, dict[str, Any]]] = [
        ("lower quartile", {}),
        ("mean", {"rule": "mean"}),
        ("worst person", {"rule": "worst_subject"}),
        ("lower quartile, 0.02 above the baseline", {"margin": 0.02}),
        ("mean, 0.01 above the baseline", {"rule": "mean", "margin": 0.01}),
    ]
    rows = []
    for table in tables:
        base = table.of(UNCENSORED, "test")
        for words, way in ways:
            for seeds in ([table.seeds[0]], table.seeds) if len(table.seeds) > 1 else [table.seeds]:
                setting = table.chosen(seeds=seeds, **way)
                made = row(table.name, setting, table.of(setting, "test"), base)
                quartile = made["lower quartile"] - np.percentile(list(base.values()), 25)
                rows.append(
                    {"data": table.name, "rule": words, "seeds": len(seeds), "chosen": setting}
                    | {"difference": made["difference"], "of quartiles": float(quartile)}
                )
    return rows


def candidates(tables: Sequence[Table]) -> list[dict[str, Any]]:
    """Tell how large the differences between candidates are beside those between seeds.

    Every candidate's difference from the baseline; the best of them, which nobody could have known
    beforehand, bounds what any rule of choice can gain. Beside it, how far apart two seeds of the
    same baseline are: a difference below that is no news from one seed; and by how much the
    candidate was ahead on the first fold, where a search on one fold tries it.
    """
    rows = []
    for table in tables:
        first = table.on_the_first_fold()
        base = table.of(UNCENSORED, "test")
        single = [list(table.of(UNCENSORED, "test", [seed]).values()) for seed in table.seeds]
        between = {
            "seeds apart, mean": apart([float(np.mean(one)) for one in single]),
            "seeds apart, quartile": apart([float(np.percentile(one, 25)) for one in single]),
        }
        for setting in table.settings[1:]:
            made = row(table.name, setting, table.of(setting, "test"), base)
            held = list(table.of(setting, "validation").values())
            rows.append(
                {"data": table.name, "candidate": setting, "seeds": len(table.seeds)}
                | {"chosen": "*" if setting == table.chosen() else ""}
                | {"on the first fold": first[setting] - first[UNCENSORED]}
                | {"validation quartile": float(np.percentile(held, 25))}
                | {name: made[name] for name in ("mean", "lower quartile", "difference")}
                | {"95 % interval": made["95 % interval"], "p": made["p"], **between}
            )
    return rows


def apart(values: Sequence[float]) -> float | None:
    """Mean distance of two of the values; one alone has none."""
    pairs = [abs(a - b) for i, a in enumerate(values) for b in values[:i]]
    return float(np.mean(pairs)) if pairs else None


def goals(rows: Sequence[Mapping[str, Any]]) -> list[Goal]:
    """Give what the comparison should show."""
    made, ahead, compared = [], 0, 0
    for name in dict.fromkeys(one["data"] for one in rows):
        mine = [one for one in rows if one["data"] == name]
        base = next(one for one in mine if one["method"] == UNCENSORED)
        auto = next(one for one in mine if one["method"].startswith(f"{OURS}:"))
        for figure in ("mean", "lower quartile"):
            words = f"{name}: {figure} of the chosen method above the uncensored by"
            made.append(Goal(words, auto[figure] - base[figure], 0.0, strictly=True))
        peers = [one for one in rivals(mine) if one["uses"] == NOTHING]
        compared += len(peers)
        ahead += bool(peers) and all(one[QUARTILE] > one["lower quartile"] for one in peers)
    corrected = [one["p, Holm"] for one in rows if one["p, Holm"] is not None]
    made.append(Goal("smallest p after Holm", min(corrected), 0.05, at_least=False))
    if compared:
        words = "data sets whose lower quartile is above every competitor's without the new person"
        made.append(Goal(words, ahead, 2))
    return made
