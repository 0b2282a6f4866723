"""Who is held out when: the paper's rule, groups, repeats, time order, or a user's own list."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

import numpy as np
import pandas as pd
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold

Split = tuple[np.ndarray, np.ndarray]

PARTS = 5  # of the held-out rows, where one split is all there is
LARGE = 2_000  # rows above which the paper takes three folds instead of five
MANY = 200_000  # rows above which one part of them, held out once, tells the weights
HELD_OUT = 50_000  # rows of that part


def make_folds(cv, y, *, stratify: bool, groups=None, seed: int = 42, X=None, live=None) -> list[Split]:
    """List of (train, test) row numbers.

    Parameters
    ----------
    cv : None, int, splitter or iterable of (train, test)
        None is the paper's rule: 5 folds up to 2,000 rows, else 3, shuffled and stratified: by class, or by the order
        of the target. Above 200,000 rows about 50,000 of them are held out once.
    y : array (n,)
        Class codes, or the target of a regression.
    stratify : bool
        Whether y holds classes.
    groups : array (n,) or None
        Rows of a group are never split between train and test by the rules that are ours.
    live : array of row numbers or None
        The rows that count, all by default; the others are neither trained on nor held out.
    """
    n = len(y)
    live = np.arange(n) if live is None else live
    if len(live) < 2:
        raise ValueError(f"cross-fitting needs at least 2 rows, the table has {len(live)} sample(s)")
    if groups is not None:
        check_groups(groups, n)
    if isinstance(cv, type):
        raise TypeError(f"cv is the class {cv.__name__}; give a splitter made of it, {cv.__name__}(..)")
    if cv is None or isinstance(cv, int | np.integer):
        once = cv is None and len(live) > MANY
        number = int(cv) if cv is not None else len(live) // HELD_OUT if once else 5 if len(live) <= LARGE else 3
        own = None if groups is None else np.asarray(groups)[live]
        parts = own_rule(number, y[live], stratify, own, seed, asked=cv is not None)
        return [(live[train], live[test]) for train, test in (parts[:1] if once else parts)]
    if hasattr(cv, "split") and not isinstance(cv, str | bytes):
        splits = list(cv.split(np.zeros((n, 1)) if X is None else X, y, groups))
    elif isinstance(cv, Iterable) and not isinstance(cv, str | bytes):
        splits = list(cv)
    else:
        raise TypeError(f"cv is {cv!r}; give None, a number of folds, a splitter or a list of (train, test) rows")
    return [checked(split, n, number, live) for number, split in enumerate(nonempty(splits))]


def check_groups(groups, n: int) -> None:
    if len(groups) != n:
        raise ValueError(f"groups has {len(groups)} entries, the table has {n} rows")
    if np.ndim(groups) != 1:
        raise ValueError(f"groups has {np.ndim(groups)} dimensions; give one group a row")
    missing = pd.isna(np.asarray(groups, dtype=object))
    if missing.any():
        raise ValueError(f"groups is missing (NaN) in row {missing.argmax()}; give every row a group")


def own_rule(number: int, y, stratify: bool, groups, seed: int, *, asked: bool) -> list[Split]:
    n = len(y)
    if number < 2:
        raise ValueError(f"cv is {number}; cross-fitting needs at least 2 folds")
    if groups is not None:
        return grouped(number, y, stratify, np.asarray(groups), seed, asked=asked)
    if number > n:
        if asked:
            raise ValueError(f"cv asks for {number} folds, the table has {n} rows")
        number = n
    if stratify and np.bincount(y).max() >= number:
        with warnings.catch_warnings():  # a class rarer than the folds is allowed here: some folds miss it
            warnings.filterwarnings("ignore", "The least populated class", UserWarning)
            return list(StratifiedKFold(number, shuffle=True, random_state=seed).split(np.zeros(n), y))
    if stratify:
        return list(KFold(number, shuffle=True, random_state=seed).split(np.zeros(n)))
    return sorted_strata(y, number, seed)


def grouped(number: int, y, stratify: bool, groups, seed: int, *, asked: bool) -> list[Split]:
    distinct = len(np.unique(groups))
    if distinct < 2:
        raise ValueError("groups holds one group only: nothing can be held out")
    if number > distinct and asked:
        raise ValueError(f"cv asks for {number} folds, groups holds {distinct} groups")
    number = min(number, distinct)
    kind = StratifiedGroupKFold if stratify and np.bincount(y).max() >= number else GroupKFold
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        return list(kind(number, shuffle=True, random_state=seed).split(np.zeros(len(y)), y, groups))


def nonempty(part):
    if not len(part):
        raise ValueError("cv gives no split, or one without rows that count")
    return part


def checked(split, n: int, number: int, live: np.ndarray) -> Split:
    """Row numbers of one split that are live, refused when out of range, empty or overlapping."""
    if not (isinstance(split, tuple | list) and len(split) == 2):
        raise ValueError(f"split {number} of cv is not a pair (train, test)")
    train, test = (row_numbers(part, n, number) for part in split)
    if np.intersect1d(train, test).size:
        raise ValueError(
            f"split {number} of cv has rows both in train and in test: its predictions would not be held out"
        )
    if len(live) == n:
        return train, test
    return nonempty(train[np.isin(train, live)]), nonempty(test[np.isin(test, live)])


def row_numbers(part, n: int, number: int) -> np.ndarray:
    rows = np.asarray(part)
    if rows.dtype == bool:
        if len(rows) != n:
            raise ValueError(f"split {number} of cv has a mask of {len(rows)} rows, the table has {n}")
        rows = np.flatnonzero(rows)
    if rows.ndim != 1 or not rows.size:
        raise ValueError(f"split {number} of cv has an empty part")
    if not np.issubdtype(rows.dtype, np.integer) or rows.min() < 0 or rows.max() >= n:
        raise ValueError(f"split {number} of cv names rows outside 0..{n - 1}")
    return rows


def fold_of_row(splits: list[Split], n: int) -> np.ndarray:
    """(n,) number of the first fold that holds a row out; -1 for rows that are never predicted."""
    fold = np.full(n, -1)
    for number in reversed(range(len(splits))):
        fold[splits[number][1]] = number
    return fold


def second_splits(splits: list[Split]) -> list[Split]:
    """Folds for what is learnt from predictions: the same, or of a single split parts of its held-out rows."""
    if len(splits) > 1:
        return splits
    held_out = splits[0][1]
    parts = [held_out[start::PARTS] for start in range(min(PARTS, len(held_out)))]
    return [(np.setdiff1d(held_out, part), part) for part in parts]


def sorted_strata(y: np.ndarray, number: int, seed: int) -> list[Split]:
    """Folds of a regression that share the target evenly: of each `number` neighbours in its order, one per fold.

    So the folds' means hardly differ. Where they do, predictions tell which fold is held out, and a learner that reads
    them learns the held-out mean.
    """
    random = np.random.RandomState(seed)
    order = np.lexsort((random.permutation(len(y)), y))  # equal targets in any order
    fold = np.empty(len(y), dtype=int)
    for start in range(0, len(y), number):
        block = order[start : start + number]
        fold[block] = random.permutation(number)[: len(block)]
    return [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(number)]
