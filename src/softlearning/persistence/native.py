"""Models of CatBoost and LightGBM: bytes and text that their own loaders believe, checked before they see them.

LightGBM writes text, a section a tree. CatBoost writes `CBM1`, a flatbuffer with trees and columns, and for categories
tables of counts. Their loaders check the outer form; indices into trees, leaves, columns and tables are checked here.
Trees that are not oblivious, texts, embeddings and linear leaves are refused: no specialist of ours uses them.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from softlearning.persistence.container import ModelFileError

MOST_CLASSES = 100_000


def require(condition: Any, kind: str, what: str) -> None:
    if not condition:
        raise ModelFileError(f"a {kind} model in the file is not sound: {what}")


# --- LightGBM

OBJECTIVES = (
    *("regression", "regression_l1", "huber", "fair", "poisson", "quantile", "mape", "gamma", "tweedie"),
    *("binary", "multiclass", "multiclassova", "cross_entropy", "cross_entropy_lambda"),
)
PER_SPLIT = ("split_feature", "split_gain", "threshold", "decision_type", "left_child", "right_child")
PER_SPLIT_TOLD = ("internal_value", "internal_weight", "internal_count")


def check_lightgbm_text(text: Any) -> None:
    """The header, then as many trees as `tree_sizes` says, each of its size and sound in itself."""
    require(isinstance(text, str) and text.isascii(), "LightGBM", "it is no text")
    head, _, rest = text.partition("\n\n")
    lines = head.split("\n")
    require(lines[0] == "tree", "LightGBM", "it does not begin as one")
    fields = dict(line.partition("=")[::2] for line in lines[1:])
    require(len(fields) == len(lines) - 1, "LightGBM", "its header says something twice")
    columns = check_lightgbm_header(fields)
    trees, end, _ = rest.partition("end of trees")
    sizes = whole_numbers(fields["tree_sizes"])
    require(end and sizes.sum() == len(trees) and (sizes > 0).all(), "LightGBM", "its trees are not as long as it says")
    require(len(sizes) % int(fields["num_tree_per_iteration"]) == 0, "LightGBM", "its last round is not complete")
    for number, (stop, size) in enumerate(zip(np.cumsum(sizes), sizes)):
        check_lightgbm_tree(trees[stop - size : stop], number, columns)


def check_lightgbm_header(fields: dict[str, str]) -> int:
    """The number of columns, where classes, columns and objective fit together."""
    names = ("num_class", "num_tree_per_iteration", "max_feature_idx", "label_index")
    require(
        {*names, "objective", "feature_names", "feature_infos", "tree_sizes"} <= fields.keys(),
        "LightGBM",
        "its header has gaps",
    )
    classes, trees, last, label = (int(whole_numbers(fields[name])[0]) for name in names)
    require(label == 0 and fields.get("version") == "v4", "LightGBM", "it is of another version")
    objective, *options = fields["objective"].split(" ")
    require(objective in OBJECTIVES, "LightGBM", "its objective is an unknown one")
    told = [option for option in options if option.startswith("num_class:")]
    many = objective in ("multiclass", "multiclassova")
    require(told == ([f"num_class:{classes}"] if many else []), "LightGBM", "its classes do not fit its objective")
    require(
        1 <= classes <= MOST_CLASSES and trees == classes and (many or classes == 1),
        "LightGBM",
        "its classes do not fit",
    )
    columns = last + 1
    told_of = [len(fields[name].split(" ")) for name in ("feature_names", "feature_infos")]
    require(columns >= 1 and told_of == [columns, columns], "LightGBM", "its columns do not fit")
    return columns


def check_lightgbm_tree(text: str, number: int, columns: int) -> None:
    lines = text.rstrip("\n").split("\n")
    require(lines[0] == f"Tree={number}", "LightGBM", "a tree is not where it should be")
    fields = dict(line.partition("=")[::2] for line in lines[1:])
    require(
        len(fields) == len(lines) - 1 and fields.get("is_linear") == "0", "LightGBM", "a tree is of an unknown kind"
    )
    leaves, sets = int(whole_numbers(fields["num_leaves"])[0]), int(whole_numbers(fields["num_cat"])[0])
    require(1 <= leaves <= len(text) and 0 <= sets <= len(text), "LightGBM", "a tree does not have the leaves it says")
    counts = dict.fromkeys((*PER_SPLIT, *PER_SPLIT_TOLD), leaves - 1) | {"leaf_value": leaves}
    counts |= dict.fromkeys(("leaf_weight", "leaf_count"), leaves) if leaves > 1 else {}
    for name, count in counts.items():
        require(len(fields[name].split()) == count, "LightGBM", f"a tree does not have as many {name} as leaves")
    feature, left, right, decision = (
        whole_numbers(fields[name]) for name in ("split_feature", "left_child", "right_child", "decision_type")
    )
    require(((feature >= 0) & (feature < columns)).all(), "LightGBM", "a tree asks for a column that is not there")
    children = np.concatenate([left, right])
    inner, outer = np.sort(children[children >= 0]), np.sort(~children[children < 0])
    require(np.array_equal(inner, np.arange(1, leaves - 1)), "LightGBM", "a node of a tree has not one parent")
    require(np.array_equal(outer, np.arange(leaves)) or leaves == 1, "LightGBM", "a leaf of a tree has not one parent")
    later = [(child > np.arange(leaves - 1)) | (child < 0) for child in (left, right)]
    require(np.all(later), "LightGBM", "a child in a tree is not a later node")
    check_lightgbm_categories(fields, decision % 2 == 1, sets)


def check_lightgbm_categories(fields: dict[str, str], categorical: np.ndarray, sets: int) -> None:
    if not sets:
        require(not categorical.any() and "cat_threshold" not in fields, "LightGBM", "a tree has categories it has not")
        return
    ends, words = whole_numbers(fields["cat_boundaries"]), fields["cat_threshold"].split()
    asks = np.array([float(text) for text in fields["threshold"].split()])[categorical]
    require(len(ends) == sets + 1 and ends[0] == 0 and (np.diff(ends) >= 0).all(), "LightGBM", "its sets do not fit")
    require(ends[-1] == len(words) and all(word.isdigit() for word in words), "LightGBM", "its sets do not fit")
    require(
        ((asks >= 0) & (asks < sets) & (asks == np.floor(asks))).all(), "LightGBM", "a tree asks for a set it has not"
    )


def whole_numbers(text: str) -> np.ndarray:
    """Whole numbers of 32 bits, parted by blanks."""
    numbers = [int(word) for word in text.split()]
    require(all(abs(number) < 2**31 for number in numbers), "LightGBM", "a number is too large")
    return np.array(numbers, dtype=np.int64)


# --- CatBoost


@dataclass(frozen=True)
class Table:
    """A table of a flatbuffer: fields by slot, every read inside the bytes."""

    data: bytes
    at: int

    def where(self, slot: int) -> int | None:
        """Position of a field; None where it is left out."""
        form = self.at - read_number(self.data, self.at, "i")
        entry = 4 + 2 * slot
        if entry >= read_number(self.data, form, "H"):
            return None
        offset = read_number(self.data, form + entry, "H")
        return self.at + offset if offset else None

    def number(self, slot: int, form: str, default: Any) -> Any:
        at = self.where(slot)
        return default if at is None else read_number(self.data, at, form)

    def follow(self, slot: int) -> int | None:
        at = self.where(slot)
        return None if at is None else at + read_number(self.data, at, "I")

    def table(self, slot: int) -> Table:
        at = self.follow(slot)
        require(at is not None, "CatBoost", "a part is missing")
        return Table(self.data, at)  # type: ignore[arg-type]

    def vector(self, slot: int, dtype: Any) -> np.ndarray:
        at = self.follow(slot)
        if at is None:
            return np.empty(0, dtype)
        count = read_number(self.data, at, "I")
        require(
            at + 4 + count * np.dtype(dtype).itemsize <= len(self.data), "CatBoost", "a part is longer than the whole"
        )
        return np.frombuffer(self.data, dtype, count, at + 4)

    def tables(self, slot: int) -> list[Table]:
        at = self.follow(slot)
        offsets = self.vector(slot, np.uint32)
        return [Table(self.data, at + 4 + 4 * k + int(o)) for k, o in enumerate(offsets)] if at is not None else []


def read_number(data: bytes, at: int, form: str) -> Any:
    require(0 <= at <= len(data) - struct.calcsize(form), "CatBoost", "a part lies outside")
    return struct.unpack_from("<" + form, data, at)[0]


SPLIT = np.dtype([("index", "<i4"), ("border", "<f4")])
BIN = np.dtype([("column", "<u2"), ("flip", "u1"), ("border", "u1")])
BUCKET = np.dtype([("hash", "<u8"), ("index", "<u4")])
EMPTY = np.uint64(2**64 - 1)  # hash of a bucket that is free
BORDERS_PER_BIN = 254
COUNTERS = {0: 0, 1: 0, 2: 8, 3: 8, 4: 4, 5: 4}  # kind of count -> bytes an entry; 0: 4 bytes a class


def check_catboost_bytes(data: Any) -> None:
    """`CBM1`, the size of the core, the core, and where categories are counted, the tables of counts."""
    require(isinstance(data, bytes) and data[:4] == b"CBM1" and len(data) > 16, "CatBoost", "it does not begin as one")
    size = read_number(data, 4, "I")
    require(0 < size <= len(data) - 8, "CatBoost", "it is not as long as it says")
    core = Table(data[8 : 8 + size], read_number(data[8 : 8 + size], 0, "I"))
    trees = core.table(1)
    floats, categories, hot, counts = (trees.tables(slot) for slot in (5, 4, 6, 7))
    for slot, what in ((10, "trees that are not oblivious"), (12, "texts"), (13, "texts"), (18, "embeddings")):
        require(not len(trees.vector(slot, np.uint32)), "CatBoost", f"it has {what}")
    check_catboost_columns(floats, categories)
    for feature in hot:
        require(
            0 <= feature.number(0, "i", -1) < len(categories), "CatBoost", "it asks for a category that is not there"
        )
    check_catboost_trees(trees, floats, hot, counts)
    wanted = [check_count(ctr, len(floats), len(categories)) for ctr in counts]
    check_count_tables(data[8 + size :], wanted, len(floats), len(categories))


def check_catboost_columns(floats: list[Table], categories: list[Table]) -> None:
    """Columns are numbered within their kind and among all."""
    flat = []
    for kind, features, index, place in (("numbers", floats, 1, 2), ("categories", categories, 0, 1)):
        numbered = [feature.number(index, "i", -1) for feature in features]
        require(numbered == list(range(len(features))), "CatBoost", f"its columns of {kind} are not in order")
        flat.append([feature.number(place, "i", -1) for feature in features])
        require(flat[-1] == sorted(flat[-1]), "CatBoost", f"its columns of {kind} are not in order")
    require(sorted(flat[0] + flat[1]) == list(range(len(flat[0]) + len(flat[1]))), "CatBoost", "its columns do not fit")


def check_catboost_trees(trees: Table, floats: list[Table], hot: list[Table], counts: list[Table]) -> None:
    """Splits exist, leaves are as many as depths demand, and packed splits are those that the borders give."""
    classes, depth, splits = trees.number(0, "i", 0), trees.vector(2, "<i4"), trees.vector(1, "<i4")
    require(1 <= classes <= MOST_CLASSES and ((depth >= 0) & (depth <= 16)).all(), "CatBoost", "its trees do not fit")
    starts = np.cumsum(depth) - depth
    require(
        np.array_equal(trees.vector(3, "<i4"), starts) and len(splits) == depth.sum(),
        "CatBoost",
        "its splits do not fit",
    )
    bins = packed_bins(floats, hot, counts)
    require(((splits >= 0) & (splits < len(bins))).all(), "CatBoost", "a tree asks for a split that is not there")
    stored = trees.vector(17, BIN)
    require(not len(stored) or np.array_equal(stored, bins[splits]), "CatBoost", "its packed splits are others")
    leaves = int((2 ** depth.astype(np.int64)).sum())
    require(len(trees.vector(8, "<f8")) == leaves * classes, "CatBoost", "its leaves do not fit")
    require(len(trees.vector(9, "<f8")) in (0, leaves), "CatBoost", "its weights of leaves do not fit")
    require(len(trees.vector(16, "<f8")) in (0, classes), "CatBoost", "its bias does not fit")


def packed_bins(floats: list[Table], hot: list[Table], counts: list[Table]) -> np.ndarray:
    """All splits in their order: which packed column, and which border or value of it."""
    parts, column = [np.empty(0, BIN)], 0
    borders = [(feature.vector(3, "<f4"), False) for feature in floats]
    borders += [(feature.vector(1, "<i4"), True) for feature in hot]
    borders += [(feature.vector(1, "<f4"), False) for feature in counts]
    for values, one_hot in borders:
        k = np.arange(len(values))
        part = np.zeros(len(k), BIN)
        part["column"], number = column + k // BORDERS_PER_BIN, k % BORDERS_PER_BIN + 1
        part["flip"] = (~number & 0xFF) if one_hot else 0
        part["border"] = 0xFF if one_hot else number
        parts.append(part)
        column += -(-len(k) // BORDERS_PER_BIN)
        require(one_hot or (np.diff(values) > 0).all(), "CatBoost", "its borders are not in order")
    require(column <= 0xFFFF, "CatBoost", "it has too many columns")
    return np.concatenate(parts)


def check_count(feature: Table, floats: int, categories: int) -> tuple[Any, int]:
    """What a column of counts is made from, and the class it counts."""
    ctr = feature.table(0)
    target = ctr.number(1, "i", 0)
    require(0 <= target < MOST_CLASSES, "CatBoost", "it counts a class that is not there")
    return check_base(ctr.table(0), floats, categories), target


def check_base(base: Table, floats: int, categories: int) -> Any:
    """A combination of columns and a kind of count, as a key."""
    mix, kind = base.table(0), base.number(1, "b", 0)
    require(kind in COUNTERS, "CatBoost", "it counts in an unknown way")
    words, borders, values = mix.vector(0, "<i4"), mix.vector(1, SPLIT), mix.vector(2, np.dtype("<i4,<i4"))
    require(((words >= 0) & (words < categories)).all(), "CatBoost", "it combines a category that is not there")
    require(
        ((borders["index"] >= 0) & (borders["index"] < floats)).all(),
        "CatBoost",
        "it combines a column that is not there",
    )
    require(
        ((values["f0"] >= 0) & (values["f0"] < categories)).all(),
        "CatBoost",
        "it combines a category that is not there",
    )
    return kind, words.tobytes(), borders.tobytes(), values.tobytes()


def check_count_tables(data: bytes, wanted: list[tuple[Any, int]], floats: int, categories: int) -> None:
    """One table for each wanted count; every bucket of it points into its counts, and one is free."""
    if not wanted:
        require(not data, "CatBoost", "something follows it")
        return
    number, at, classes = read_number(data, 0, "I"), 4, {}
    for _ in range(min(number, len(data))):
        size = read_number(data, at, "I")
        require(size <= len(data) - at - 4, "CatBoost", "a table is not as long as it says")
        part = data[at + 4 : at + 4 + size]
        table = Table(part, read_number(part, 0, "I"))
        key = check_base(table.table(0), floats, categories)
        require(key not in classes, "CatBoost", "a table is there twice")
        classes[key] = check_buckets(table, key[0])
        at += 4 + size
    require(at == len(data), "CatBoost", "something follows it")
    for key, target in wanted:
        require(key in classes, "CatBoost", "a table is missing")
        require(target < classes[key], "CatBoost", "it counts a class that is not there")


def check_buckets(table: Table, kind: int) -> int:
    """The number of classes that a sound table counts."""
    raw, counts, classes = table.vector(1, "u1"), table.vector(2, "u1"), table.number(4, "i", 0)
    require(len(raw) % BUCKET.itemsize == 0, "CatBoost", "the buckets of a table do not fit")
    buckets = raw.view(BUCKET)
    used = buckets["hash"] != EMPTY
    require(
        len(buckets) and not len(buckets) & (len(buckets) - 1) and not used.all(),
        "CatBoost",
        "a table has no free bucket",
    )
    if COUNTERS[kind]:
        width, known = COUNTERS[kind], 1
    else:
        require(0 <= classes < MOST_CLASSES, "CatBoost", "a table counts classes that are not there")
        width, known = 4 * max(classes, 2), max(classes, 2)
    entries = len(counts) // width
    require((buckets["index"][used] < entries).all(), "CatBoost", "a bucket of a table points outside")
    return known
