"""What a model is to be good at: a metric, the weights that serve it, and how it stands on held-out rows.

A metric that has a convex loss of its own (`OWN`) is aimed at by that loss, with its certificate. For every other the
weights come from the nearest convex losses (`NEAREST`) or from greedy selection by the metric itself, whichever is
better on held-out rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from softlearning.evaluation import BLEND, Evaluation, among, summarise
from softlearning.evaluation.scoring import (
    COUNTS,
    RANKED,
    RANKS,
    RankedScorer,
    Records,
    jackknife_error,
    make_records,
    measure,
    metric_name,
    ordered_places,
    recorded,
    scorers,
)
from softlearning.method.decisions import Decision, Optimum, best_of_counts, best_threshold, decision_rule, ranking
from softlearning.method.record import RELATIONS, HeldOut, Record
from softlearning.method.training import Training
from softlearning.weights import solve_weights

OWN = {
    "neg_log_loss": "log", "d2_log_loss_score": "log", "neg_brier_score": "squared", "d2_brier_score": "squared",
    "r2": "squared", "neg_mean_squared_error": "squared", "neg_root_mean_squared_error": "squared",
    "neg_mean_absolute_error": "absolute", "d2_absolute_error_score": "absolute",
    "neg_mean_poisson_deviance": "poisson", RANKED: "log",
}  # fmt: skip
NEAREST = {
    "neg_median_absolute_error": ("absolute", "squared"),
    "neg_mean_absolute_percentage_error": ("absolute", "squared"),
    "neg_mean_gamma_deviance": ("poisson", "squared"),
    "neg_mean_squared_log_error": ("poisson", "squared"),
    "neg_root_mean_squared_log_error": ("poisson", "squared"),
}
ROUNDS, IDLE = 30, 5  # of greedy selection by a metric: at most, and without gain
SAMPLE = 20_000  # rows that it looks at
OF_NUMBERS = ("r2", "neg_mean_", "neg_root_", "neg_median_", "neg_max_", "explained_", "d2_abs", "pinball:")
OF_ONE_CLASS = ("f1", "precision", "recall", "jaccard")  # the second of two; scikit-learn has no such of more classes
OF_PROBABILITIES = (*RANKS, RANKED, "neg_log_loss", "neg_brier_score")
OF_LABELS = ("f1", "balanced_accuracy", "matthews", "jaccard")  # precision or recall alone would answer one class


@dataclass(frozen=True)
class Aim:
    """A metric as users give it, its name, its scorer, and the losses that serve it.

    own : whether the first loss is the metric's own, so that its optimum is the optimum of the metric. order : of
    ordered classes the labels, lowest first; None is the order of the alphabet.
    """

    metric: Any
    name: str
    scorer: Any
    losses: tuple[str, ...]
    own: bool
    order: tuple[Any, ...] | None = None

    @property
    def level(self) -> float | None:
        """The quantile whose pinball loss is the metric, or None."""
        name, _, number = self.losses[0].partition(":")
        return 0.5 if self.own and name == "absolute" else float(number) if self.own and name == "pinball" else None

    def shown(self, labels: np.ndarray | None) -> str:
        """The name; of two classes, with the one that it is about."""
        about_one = labels is not None and len(labels) == 2 and self.name in (*OF_ONE_CLASS, "average_precision")
        return f"{self.name} of {labels.tolist()[1]!r}" if about_one else self.name  # type: ignore[union-attr]

    @property
    def of_labels(self) -> bool:
        """Whether the metric reads labels, so that it gains by another decision than the most probable class."""
        return self.name.startswith(OF_LABELS)


def aim_of(metric: Any, task: str, order: tuple[Any, ...] | None = None) -> Aim:
    """The aim that a user means: a scorer name of scikit-learn, a common short name, "pinball:0.9", or a scorer."""
    name, classes = metric_name(metric), task == "classification"
    if name == RANKED:
        return Aim(metric, name, RankedScorer(order), (OWN[name],), own=True, order=order)
    scorer = scorers({name: metric}, classes)[name]
    if name in OWN or name.startswith("pinball:"):
        return Aim(metric, name, scorer, (OWN.get(name, name),), own=True)
    nearest = NEAREST.get(name, ("log", "squared") if classes else ("squared", "absolute"))
    return Aim(metric, name, scorer, nearest, own=False)


def check_aim(aim: Aim, training: Training, splits: Iterable[Any]) -> None:
    """Refuse a metric that cannot score this target in these folds, before anything is fitted."""
    target, labels = training.target, training.labels
    if labels is not None:
        _check_classes(aim, target > 0, labels, splits)
    trivial = np.broadcast_to(np.average(target, axis=0, weights=training.weight), target.shape)
    try:
        score(aim, records_of({"trivial": trivial}, target, labels, training.weight), "trivial")
    except (ValueError, TypeError) as error:
        raise ValueError(f"the metric {aim.name!r} cannot score this target: {error}") from None


def _check_classes(aim: Aim, true: np.ndarray, labels: np.ndarray, splits: Iterable[Any]) -> None:
    """A metric of numbers, of two classes alone, or of rankings that no fold could measure; true is (n, C)."""
    if aim.name.startswith(OF_NUMBERS):
        raise ValueError(f"the metric {aim.name!r} is of numbers, and the target has classes")
    if aim.name in (*OF_ONE_CLASS, "roc_auc") and len(labels) > 2:
        ways = ("ovr", "ovo") if aim.name == "roc_auc" else ("macro", "weighted")
        several = " or ".join(f"'{aim.name}_{way}'" for way in ways)
        raise ValueError(f"the metric {aim.name!r} is of two classes, not {len(labels)}; give {several}")
    ranked = (all(true[part].any(axis=0).all() for part in split) for split in splits)
    if aim.name.startswith(RANKS) and not any(ranked):
        counts = true.sum(axis=0)
        rarest = f"{labels.tolist()[counts.argmin()]!r} has {counts.min()} of {len(true)} rows"
        raise ValueError(f"the metric {aim.name!r} needs every class both in and outside of some fold; {rarest}")


def records_of(
    predictions: dict[str, np.ndarray], target: np.ndarray, labels: np.ndarray | None, weight: np.ndarray | None,
    *, fold: np.ndarray | None = None, groups: np.ndarray | None = None, chosen: dict[str, np.ndarray] | None = None,
) -> Records:  # fmt: skip
    """Predictions (n, C) of rows as the scorers read them; `chosen` are the labels decided on, as places."""
    y = target[:, 0] if labels is None else labels[target.argmax(axis=1)]
    answers = None if labels is None or chosen is None else {name: labels[c] for name, c in chosen.items()}
    return make_records(y, predictions, classes=labels, weight=weight, fold=fold, groups=groups, labels=answers)


def score(aim: Aim, records: Records, candidate: str) -> float:
    """The metric of all rows of a record at once; greater is better."""
    rows = np.arange(len(records.y))[:, None]
    arguments = {"sample_weight": records.weight} if records.weighted else {}
    return float(aim.scorer(recorded(records, candidate), rows, records.y, **arguments))


def score_model(model: Any, aim: Aim, X: Any, y: Any, sample_weight: Any = None) -> float:
    """The metric of a fitted model on rows; labels of any kind."""
    y = np.asarray(y)
    if hasattr(model, "predict_proba"):
        classes = np.union1d(model.classes_, y)  # a label that the model never saw has no probability
        P, labels = among(model.predict_proba(X), model.classes_, classes), {"model": model.predict(X)}
    else:
        P, classes, labels = model.predict(X)[:, None], None, None
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
    return score(aim, make_records(y, {"model": P}, classes=classes, weight=weight, labels=labels), "model")


# -- weights for a metric ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GreedyFor:
    """A rule for weights: selection with replacement by a metric; a round adds the specialist that helps most.

    The best of up to `ROUNDS` sizes is taken; at most `SAMPLE` rows are looked at.
    """

    metric: Any
    labels: np.ndarray | None = None

    def __post_init__(self):
        object.__setattr__(self, "__name__", f"greedy for {metric_name(self.metric)}")  # what a solution calls its rule

    def __call__(self, P: np.ndarray, Y: np.ndarray, sample_weight: np.ndarray | None) -> np.ndarray:
        aim = aim_of(self.metric, "regression" if Y.shape[1] == 1 else "classification")
        keep = np.sort(np.random.default_rng(0).permutation(len(Y))[:SAMPLE])
        P, Y = P[keep], Y[keep]
        weight = None if sample_weight is None else sample_weight[keep]
        judge = self._judge(aim, Y, weight)
        chosen, best, weights = np.zeros(P.shape[1]), -np.inf, np.full(P.shape[1], 1 / P.shape[1])
        total, found = np.zeros_like(Y), 0
        for size in range(1, ROUNDS + 1):
            scores = [judge((total + P[:, k]) / size) for k in range(P.shape[1])]
            k = int(np.argmax(scores))
            chosen[k] += 1
            total += P[:, k]
            if scores[k] > best:
                best, weights, found = scores[k], chosen / size, size
            elif size >= found + IDLE:
                break
        return weights

    def _judge(self, aim: Aim, Y: np.ndarray, weight: np.ndarray | None) -> Callable[[np.ndarray], float]:
        """Prediction (n, C) -> the metric; of labels, at the best threshold."""
        labels = self.labels if self.labels is not None or Y.shape[1] == 1 else np.arange(Y.shape[1])
        if Y.shape[1] == 2 and aim.name in COUNTS:
            return lambda f: best_of_counts(f[:, 1], Y[:, 1], weight, COUNTS[aim.name])[1]
        if Y.shape[1] == 2 and aim.name in RANKS:
            return lambda f: ranking(f[:, 1], Y[:, 1], weight)[RANKS.index(aim.name)]
        return lambda f: score(aim, records_of({"": f}, Y, labels, weight), "")


@dataclass(frozen=True)
class OfOrderedClasses:
    """A rule for weights of ordered classes: least squares of cumulative probabilities, the ranked probability score.

    rule : "guarded" or "simplex", as for every squared loss. places : of the classes, lowest first; None as they are.
    """

    rule: str
    places: tuple[int, ...] | None = None

    def __post_init__(self):
        object.__setattr__(self, "__name__", f"{self.rule} by ranked probability score")

    def __call__(self, P: np.ndarray, Y: np.ndarray, sample_weight: np.ndarray | None) -> np.ndarray:
        places = list(range(Y.shape[1]) if self.places is None else self.places)
        below = np.cumsum(P[:, :, places], axis=2)[:, :, :-1]
        target = np.cumsum(Y[:, places], axis=1)[:, :-1]
        return solve_weights(below, target, rule=self.rule, loss="squared", sample_weight=sample_weight).weights


def as_stored(rule: Any) -> Any:
    """A rule that a file can hold: greedy selection by a scorer object becomes a function, which files forget."""
    if isinstance(rule, GreedyFor) and not isinstance(rule.metric, str):
        return lambda P, Y, weight: rule(P, Y, weight)
    return rule


@dataclass(frozen=True)
class Choice:
    """The rule and loss that serve an aim, and the held-out score of each that was tried."""

    rule: Any
    loss: str
    tried: tuple[tuple[str, float], ...]

    def words(self, aim: Aim, told: bool, labels: np.ndarray | None = None) -> str:
        """Where the weights come from, as a sentence; `told` where the user chose the loss."""
        name = aim.shown(labels)
        if not told and aim.name == RANKED and labels is not None:
            order = " < ".join(map(str, labels[ordered_places(aim.order, labels)]))
            what = f"the squared error of cumulative probabilities, which is {aim.name} itself"
            return f"the classes have an order, {order}: the weights minimise {what}"
        if not told and aim.own:
            return f"the weights minimise the {self.loss} loss, which is {aim.name} itself"
        if told:
            return f"the weights minimise the {self.loss} loss, as told; {name} is only reported"
        scores = ", ".join(f"{what} {value:.4g}" for what, value in self.tried)
        choice = "of what serves it, the best beyond noise was taken"
        return f"there is no loss of its own for {name}: {choice} (held out: {scores})"


def serve(aim: Aim, record: Record, rule: Any, threshold: Any) -> Choice:
    """The rule and loss whose weights, learnt without each row's fold, are best by the metric.

    The nearest loss under the user's rule comes first; another is taken where it is better by more than one standard
    error of their difference, since choosing among equals by chance costs as much as it gains.

    record : of the fit, its rule and loss yet to be chosen. Greedy selection is tried beside the default rule alone.
    """
    if aim.name == RANKED and rule in ("guarded", "simplex"):
        labels = record.training.labels
        places = None if aim.order is None or labels is None else tuple(ordered_places(aim.order, labels).tolist())
        return Choice(OfOrderedClasses(rule, places), aim.losses[0], ())
    if aim.own:
        return Choice(rule, aim.losses[0], ())
    tried: list[tuple[Any, str]] = [(rule, loss) for loss in aim.losses]
    if rule == "guarded":
        tried.append((GreedyFor(aim.metric, record.training.labels), aim.losses[0]))
    names = [rule_words(r, loss) for r, loss in tried]
    found = measure(aim.name, aim.scorer, _held_out(aim, record, dict(zip(names, tried)), threshold))
    gains = [found.score[name] - found.score[names[0]] for name in names]
    errors = [jackknife_error(found.left_out[name] - found.left_out[names[0]]) for name in names]
    best = max((k for k in range(len(names)) if k == 0 or gains[k] > errors[k]), key=lambda k: gains[k])
    return Choice(*tried[best], tuple((name, found.score[name]) for name in names))


def rule_words(rule: Any, loss: str) -> str:
    name = rule if isinstance(rule, str) else getattr(rule, "__name__", type(rule).__name__)
    return name if isinstance(rule, GreedyFor) else f"{name} by {loss} loss"


def _held_out(aim: Aim, record: Record, tried: dict[str, tuple[Any, str]], threshold: Any) -> Records:
    """The held-out rows as each rule and loss would blend and label them."""
    solved = {loss: replace(record.solution, loss=loss) for _, loss in tried.values()}
    helds = {name: replace(record, solution=solved[loss], rule=rule).held_out for name, (rule, loss) in tried.items()}
    blends = {name: held.blend for name, held in helds.items()}
    return held_out_records(record, blends, next(iter(helds.values())), threshold, aim)


def held_out_records(
    record: Record, predictions: dict[str, np.ndarray], held: HeldOut, threshold: Any, aim: Aim
) -> Records:
    """Predictions of the held-out rows; each of them decides on labels by a rule learnt without the row's fold."""
    decided = {name: decide_held_out(record, P, held, threshold, aim) for name, P in predictions.items()}
    return records_of(
        predictions, held.target, record.training.labels, held.weight, fold=held.fold, groups=held.groups,
        chosen={name: places for name, places in decided.items() if places is not None},
    )  # fmt: skip


# -- decisions --------------------------------------------------------------------------------------------------------


def threshold_for(threshold: Any, aim: Aim | None, labels: np.ndarray) -> Any:
    """What `threshold` means with this aim: a metric of labels is served by its own held-out optimum unless told.

    Of ordered classes the label is the one of least expected distance, the median.
    """
    if threshold is None and aim is not None and aim.name == RANKED:
        rank = np.argsort(ordered_places(aim.order, labels))
        return np.abs(np.subtract.outer(rank, rank)).astype(float)
    return "auto" if threshold is None and aim is not None and aim.of_labels else threshold


def optimum(aim: Aim | None, labels: np.ndarray, weight: np.ndarray | None) -> Optimum:
    """(probabilities, true places) -> the threshold that is best by the metric.

    Without a metric, or by one of probabilities alone, which has no threshold of its own, it is balanced accuracy.
    """
    labelled = aim is not None and not aim.name.startswith(OF_PROBABILITIES)
    wanted = aim if aim is not None and labelled else aim_of("balanced_accuracy", "classification")

    def best(P: np.ndarray, true: np.ndarray) -> float:
        if wanted.name in COUNTS:
            return best_of_counts(P[:, 1], true, weight, COUNTS[wanted.name])[0]
        target = np.eye(len(labels))[true]
        made = lambda places: records_of({"": P}, target, labels, weight, chosen={"": places})
        return best_threshold(P[:, 1], lambda places: score(wanted, made(places), ""))

    return best


def decision_for(P: np.ndarray, target: np.ndarray, labels: np.ndarray, weight: np.ndarray | None, threshold: Any,
                 aim: Aim | None) -> Decision | None:  # fmt: skip
    """How probabilities (n, C) become labels, learnt from these rows; None for the most probable class."""
    wanted, best = threshold_for(threshold, aim, labels), optimum(aim, labels, weight)
    return decision_rule(wanted, P, target.argmax(axis=1), len(labels), best)


def decide_held_out(record: Record, P: np.ndarray, held: HeldOut, threshold: Any, aim: Aim | None) -> np.ndarray | None:
    """(n,) places of the labels, each decided by a rule learnt without the row's fold; None for the most probable."""
    labels = record.training.labels
    if labels is None or threshold_for(threshold, aim, labels) is None:
        return None
    chosen = P.argmax(axis=1)
    for v in np.unique(held.fold):
        rows = held.fold == v
        rest = ~rows if (~rows).any() else rows
        known = held.part(rest)
        rule = decision_for(P[rest], known.target, labels, known.weight, threshold, aim)
        if rule is not None:
            chosen[rows] = rule.places(P[rows])
    return chosen


def said_held_out(record: Record, threshold: Any, aim: Aim | None) -> np.ndarray:
    """(n,) places of the labels that the blend gives held-out rows; any rule of decision is learnt without the fold."""
    held = record.held_out
    decided = decide_held_out(record, held.blend, held, threshold, aim)
    return held.blend.argmax(axis=1) if decided is None else decided


# -- how it stands ----------------------------------------------------------------------------------------------------


def standing(
    record: Record, aim: Aim, threshold: Any = None, names: Iterable[str] | None = None, level: float = 0.95
) -> Evaluation:
    """The metric of the blend and of specialists, all unless named, on held-out rows: intervals, paired differences."""
    held = record.held_out
    others = record.crossed.library.names if names is None else names
    predictions = {BLEND: held.blend} | {name: record.column(name) for name in others}
    made = held_out_records(record, predictions, held, threshold, aim)
    groups = None if held.groups is None else made.block.max() + 1
    return summarise([measure(aim.name, aim.scorer, made)], made, level, groups)


def rival_by(found: Evaluation, record: Record) -> tuple[str, str]:
    """The best single specialist by the metric, and how the blend compares: better, worse, level or undecided."""
    scores = found.scores.set_index("candidate")["score"]
    rival = scores.loc[list(record.crossed.library.level(1).names)].fillna(-np.inf).idxmax()
    line = found.differences.set_index("against").loc[rival]
    if not np.isfinite(line["std_error"]):
        return rival, "undecided"
    return rival, line["verdict"] if line["verdict"] in ("better", "worse") else "level"


def verdict(found: Evaluation, record: Record, aim: Aim) -> str:
    """Whether the blend is better than its best single specialist by the metric, in words."""
    rival, word = rival_by(found, record)
    scores = found.scores.set_index("candidate")
    error = found.differences.set_index("against").loc[rival, "std_error"]
    error = (
        f"standard error of the difference {error:.2g}" if word != "undecided" else "too few rows to tell them apart"
    )
    relation = RELATIONS[word]
    metric, mine, theirs = aim.shown(record.training.labels), scores.loc[BLEND], scores.loc[rival, "score"]
    return (
        f"the blend is {relation} its best single specialist, {rival}: {metric} {mine['score']:.4g} "
        f"({found.level:.0%} interval {mine['low']:.4g} to {mine['high']:.4g}) against {theirs:.4g}, {error}"
    )
