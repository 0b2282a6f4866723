"""What a specialist is, and a library as an immutable list of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from sklearn.base import BaseEstimator, clone

from softlearning.data.messages import nearest

FAMILIES = ("linear", "instance", "tree", "kernel", "neural", "complementary", "baseline", "stacker", "custom")
ALL = 2**62  # more rows than there are
LEAST = 1_000  # rows of a sample below which it teaches nothing
VIEWS = ("auto", "raw", "native", "ordinal", "pairs", "scaled")  # of the table; "" for predictions alone


@dataclass(frozen=True)
class Shape:
    """The size of the training rows that a specialist is about to see.

    `classes` counts the classes in these rows, `rarest` the rows of the rarest of them; `outputs` counts the classes
    of the whole task, and `categorical` lists the columns that hold category codes.
    """

    task: str
    rows: int
    columns: int
    classes: int = 1
    rarest: int = 0
    categorical: tuple[int, ...] = ()
    outputs: int = 1


class Cost(NamedTuple):
    """Expected seconds of one fit on one core: `seconds` for 1,000 rows, 10 columns and two classes (or numbers), times
    the powers of how many more there are. Fitted to recorded fits; a machine's own first tasks correct the scale."""

    seconds: float
    rows: float = 1.0
    columns: float = 0.5
    classes: float = 0.5
    most_classes: float = float("inf")  # with more, it grows no further

    def at(self, rows: int, columns: int, classes: int) -> float:
        """Seconds for a table of this size."""
        more = max(rows, 1) / 1_000, max(columns, 1) / 10, max(min(classes, self.most_classes) - 1, 1)
        return self.seconds * more[0] ** self.rows * more[1] ** self.columns * more[2] ** self.classes


@dataclass(frozen=True)
class Specialist:
    """One row of a library.

    Parameters
    ----------
    name : str
        Unique in a library; seeds hang on it.
    family : str
        The algorithmic family, for totals and the report.
    make : callable
        From a `Shape` to an unfitted scikit-learn estimator. A top-level function, so that it travels to workers.
    needs : str
        The view of the table it reads: "native" (categories as codes, missing values kept), "ordinal" (no missing
        values), "pairs" (missing values kept, pairs of columns added), "scaled" (standardised), "raw" (the
        table itself) or "auto". A stacker reads predictions, and beside them one of these where it is not "".
    min_rows, max_rows, reason
        Below or above so many rows it is skipped, and why.
    sample_rows, sample_cells : int or None
        How it grows: of more rows, or of more rows times columns times classes, it learns from a random part that has
        as many. Where that part would be too small to learn from, it is skipped.
    piecewise_constant : bool
        Its prediction does not move under small changes of the input, so gradients do not reach it.
    cost : Cost or float
        Expected seconds of a fit, by a formula; a float is the seconds for 1,000 rows and 10 columns.
    prior : float
        Its share of the weight before any row is seen, relative to the other specialists: the guarded rule leans
        towards these shares where rows are few.
    level : int
        2 for a stacker: it reads the out-of-fold predictions of level 1.
    reads : tuple of str, "support" or None
        The specialists that a row of level 2 reads: those named, those that earn weight when level 1 is solved alone,
        or all of level 1.
    sparse : bool
        Whether it takes a sparse matrix; otherwise it gets a dense copy.
    trusted : bool
        True for the rows that ship here: they may run in the caller's process.
    """

    name: str
    family: str
    make: Callable[[Shape], Any]
    needs: str = "scaled"
    min_rows: int = 0
    max_rows: int | None = None
    reason: str = ""
    sample_rows: int | None = None
    sample_cells: float | None = None
    piecewise_constant: bool = False
    cost: Cost | float = 1.0
    prior: float = 1.0
    level: int = 1
    reads: tuple[str, ...] | str | None = None
    sparse: bool = True
    trusted: bool = False

    def __post_init__(self):
        if self.family not in FAMILIES:
            raise ValueError(f"family of {self.name!r} is {self.family!r}; {nearest(self.family, FAMILIES)}")
        if self.needs not in VIEWS and not (self.needs == "" and self.level == 2):
            raise ValueError(f"{self.name!r} needs {self.needs!r}; {nearest(self.needs, VIEWS)}")
        if not self.prior > 0:
            raise ValueError(f"the prior of {self.name!r} is {self.prior!r}; give a positive number")
        if not isinstance(self.cost, Cost):
            parts = self.cost if isinstance(self.cost, tuple) else (self.cost,)  # a saved model has a plain tuple
            object.__setattr__(self, "cost", Cost(*map(float, parts)))

    def seconds(self, rows: int, columns: int, classes: int) -> float:
        """Expected seconds of one fit on a table of this size."""
        return self._cost.at(min(rows, self.most_rows(columns, classes)), columns, classes)

    def rows_for(self, share: float, rows: int) -> int:
        """How many of the rows take this share of the seconds of all of them."""
        return max(int(rows * share ** (1 / max(self._cost.rows, 0.5))), 1)

    @property
    def _cost(self) -> Cost:
        return self.cost if isinstance(self.cost, Cost) else Cost(float(self.cost))

    def most_rows(self, columns: int, classes: int) -> int:
        """From how many rows of this width it learns at most; a stacker reads the predictions of about ten."""
        columns = columns if self.level == 1 else 10 * classes
        cells = self.sample_cells or float("inf")
        return int(min(self.sample_rows or ALL, cells / (max(columns, 1) * max(classes, 1)), ALL))

    def refusal(self, rows: int, columns: int, classes: int) -> str:
        """Why it is skipped on a table of this size; empty when it is not."""
        if self.max_rows is not None and rows > self.max_rows:
            return f"more than {self.max_rows:,} rows: {self.reason}"
        if rows < self.min_rows:
            return f"fewer than {self.min_rows:,} rows: {self.reason}"
        most = self.most_rows(columns, classes)
        if rows > most and most < LEAST:
            return f"of {columns:,} columns and {classes:,} classes it could learn from {most:,} rows only"
        return ""

    def __repr__(self) -> str:
        return f"Specialist({self.name!r}, {self.family!r})"


@dataclass(frozen=True)
class Prototype:
    """A user's own estimator as the `make` of a row: a fresh clone each time."""

    estimator: Any

    def __call__(self, shape: Shape):
        return clone(self.estimator)


@dataclass(frozen=True)
class Library:
    """An immutable list of specialists: `+` adds, `-` takes away by name, `[names]` selects.

    Examples
    --------
    >>> from softlearning.library import classifiers
    >>> len(classifiers("paper"))
    15
    >>> small = classifiers("paper")["logistic", "catboost"]
    >>> (small - "catboost").names
    ('logistic',)
    """

    specialists: tuple[Specialist, ...]

    def __post_init__(self):
        repeated = sorted({name for name in self.names if self.names.count(name) > 1})
        if repeated:
            raise ValueError(f"a library holds each name once; repeated: {', '.join(repeated)}")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(s.name for s in self.specialists)

    def __repr__(self) -> str:
        return f"Library({', '.join(self.names)})"

    def __iter__(self) -> Iterator[Specialist]:
        return iter(self.specialists)

    def __len__(self) -> int:
        return len(self.specialists)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __getitem__(self, names) -> Library:
        wanted = (names,) if isinstance(names, str) else tuple(names)
        by_name = dict(zip(self.names, self.specialists))
        return Library(tuple(by_name[known(name, self.names)] for name in wanted))

    def __add__(self, other) -> Library:
        added = (other,) if isinstance(other, Specialist) else tuple(as_rows(other))
        return Library(self.specialists + added)

    def __sub__(self, names) -> Library:
        gone = {known(n, self.names) for n in ((names,) if isinstance(names, str) else names)}
        return Library(tuple(s for s in self.specialists if s.name not in gone))

    def level(self, level: int) -> Library:
        return Library(tuple(s for s in self.specialists if s.level == level))


def known(name: str, names: Iterable[str]) -> str:
    """The name itself if it is one of names; else an error that suggests the nearest."""
    names = tuple(names)
    if name not in names:
        raise ValueError(f"no specialist is called {name!r}; {nearest(name, names)}")
    return name


def as_rows(entries, named: Library | None = None) -> list[Specialist]:
    """Rows from names, Specialist rows, (name, estimator) pairs and bare estimators, mixed freely."""
    entries = [entries] if isinstance(entries, str | BaseEstimator | Specialist) else list(entries)
    rows: list[Specialist] = []
    for entry in entries:
        rows.append(as_row(entry, named, taken={row.name for row in rows}))
    return rows


def as_row(entry, named: Library | None, taken: set[str]) -> Specialist:
    if isinstance(entry, Specialist):
        return entry
    if isinstance(entry, str):
        names = named.names if named is not None else ()
        return dict(zip(names, named or ()))[known(entry, names)]
    if isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[0], str):
        return own_row(*entry)
    if hasattr(entry, "fit") and hasattr(entry, "get_params"):
        return own_row(free_name(entry, taken), entry)
    raise TypeError(
        f"{entry!r} is not a specialist: give a name, a Specialist row, a (name, estimator) pair or an estimator"
    )


def own_row(name: str, estimator) -> Specialist:
    if not (hasattr(estimator, "fit") and hasattr(estimator, "get_params")):
        raise TypeError(f"specialist {name!r} is {estimator!r}, which is not a scikit-learn estimator")
    return Specialist(name, "custom", Prototype(estimator), needs="auto")


def free_name(estimator, taken: set[str]) -> str:
    """The class name in words (RandomForestClassifier -> random_forest), numbered when taken."""
    base = re.sub(r"(Classifier|Regressor)$", "", type(estimator).__name__) or type(estimator).__name__
    base = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", base).lower()
    name, number = base, 2
    while name in taken:
        name, number = f"{base}_{number}", number + 1
    return name
