"""Models of CatBoost and LightGBM: bytes and text that their own loaders believe, checked before they see them.

LightGBM writes text, a section a tree. CatBoost writes `CBM1`, a flatbuffer with trees and columns, and for categories
tables of counts. Their loaders check the outer form; indices into trees, leaves, columns and tables are checked here.
Trees that are not oblivious, texts, embeddings and linear leaves are refused: no specialist of ours uses them.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from softlearning.storage.container import ModelFileError

MOST_CLASSES = 100_000


def require(kind: str, condition: Any, what: str) -> None:
    """Refuse a model of this library, with the reason."""
    if not condition:
        raise ModelFileError(f"a {kind} model in the file is not sound: {what}")


light, cat = partial(require, "LightGBM"), partial(require, "CatBoost")


# --- parameters

LIGHTGBM_WORD = re.compile(r"[A-Za-z0-9_]{0,60}")  # LightGBM joins parameters to one text and splits it at blanks
CATBOOST_WORD = re.compile(r"[A-Za-z0-9_:;=.,~+-]{0,200}")  # CatBoost's words have options, as in Quantile:alpha=0.9
NAMES = """
_objective alpha bagging_fraction bagging_freq bagging_seed boost_from_average boosting boosting_type cat_l2
cat_smooth categorical_column class_weight colsample_bytree data_random_seed data_sample_strategy deterministic
drop_rate drop_seed
early_stopping_min_delta early_stopping_round early_stopping_rounds enable_bundle extra_seed extra_trees fair_c
feature_fraction feature_fraction_bynode feature_fraction_seed feature_pre_filter first_metric_only force_col_wise
force_row_wise histogram_pool_size importance_type is_unbalance lambda_l1 lambda_l2 learning_rate max_bin
max_cat_threshold max_cat_to_onehot max_delta_step max_depth max_drop metric min_child_samples min_child_weight
min_data_in_bin min_data_in_leaf min_data_per_group min_gain_to_split min_split_gain min_sum_hessian_in_leaf
monotone_constraints n_estimators n_jobs neg_bagging_fraction num_class num_grad_quant_bins num_iterations num_leaves
num_threads objective objective_seed other_rate path_smooth poisson_max_delta_step pos_bagging_fraction random_state
reg_alpha reg_lambda reg_sqrt scale_pos_weight seed sigmoid silent skip_drop subsample subsample_for_bin
subsample_freq top_k top_rate tweedie_variance_power uniform_drop use_missing use_quantized_grad verbose verbosity
xgboost_dart_mode zero_as_missing
"""
LIGHTGBM_NAMES = set(NAMES.split())  # none names a file, a machine, or turns a check off


def check_parameter(kind: str, name: str, value: Any, words: re.Pattern) -> None:
    """None, a bool, a number within its range or a word without blanks; or a list or dict of such."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufU" and value.size < 1_000_000:
        value = value.ravel().tolist()
    if isinstance(value, list | tuple | dict):
        for item in [*value, *value.values()] if isinstance(value, dict) else value:
            check_parameter(kind, name, item, words)
    elif isinstance(value, str):
        require(kind, words.fullmatch(value), f"its parameter {name[:50]!r} is not one plain word")
    elif value is not None:
        require(kind, isinstance(value, bool | int | float), f"its parameter {name[:50]!r} is not a plain value")
        require(kind, -(2**31) < value < 2**32, f"its parameter {name[:50]!r} is out of range")


# --- LightGBM

OBJECTIVES = (
    *("regression", "regression_l1", "huber", "fair", "poisson", "quantile", "mape", "gamma", "tweedie"),
    *("binary", "multiclass", "multiclassova", "cross_entropy", "cross_entropy_lambda"),
)
HEADER = ("num_class", "num_tree_per_iteration", "max_feature_idx", "label_index")
HEADER_TEXTS = ("version", "objective", "feature_names", "feature_infos", "tree_sizes")
PER_SPLIT = (
    *("split_feature", "split_gain", "threshold", "decision_type", "left_child", "right_child"),
    *("internal_value", "internal_weight", "internal_count"),
)
PER_LEAF = ("leaf_value", "leaf_weight", "leaf_count")
PER_TREE = ("num_leaves", "num_cat", "is_linear", "shrinkage", "cat_boundaries", "cat_threshold")
PLAIN_TEXT = re.compile(r"[\n -~]*")  # its reader ends lines at other control characters too
NUMBER = re.compile(r"-?\d+(\.\d+)?(e[-+]?\d+)?")  # its reader ends the process at anything else


def check_lightgbm_text(text: Any) -> None:
    """The header, then as many trees as `tree_sizes` says, each of its size and sound in itself."""
    light(isinstance(text, str) and PLAIN_TEXT.fullmatch(text), "it is not a plain text")
    head, _, rest = text.partition("\n\n")
    lines = head.split("\n")
    light(lines[0] == "tree", "it does not begin as one")
    fields = dict(line.partition("=")[::2] for line in lines[1:])
    light(len(fields) == len(lines) - 1, "its header says something twice")
    columns = check_lightgbm_header(fields)
    trees, end, _ = rest.partition("end of trees")
    sizes = whole_numbers(fields["tree_sizes"])
    light(end and sizes.sum() == len(trees) and (sizes > 0).all(), "its trees are not as long as it says")
    light(len(sizes) % int(fields["num_tree_per_iteration"]) == 0, "its last round is not complete")
    for number, (stop, size) in enumerate(zip(np.cumsum(sizes), sizes)):
        check_lightgbm_tree(trees[stop - size : stop], number, columns)


def check_lightgbm_header(fields: dict[str, str]) -> int:
    """The number of columns, where classes, columns and objective fit together."""
    need, may = {*HEADER, *HEADER_TEXTS}, {"average_output", "monotone_constraints"}
    light(need <= fields.keys() <= need | may, "its header is an unknown one")
    classes, trees, last, label = (int(whole_numbers(fields[name])[0]) for name in HEADER)
    whole_numbers(fields.get("monotone_constraints", ""))
    light(label == 0 and fields.get("version") == "v4", "it is of another version")
    objective, *options = fields["objective"].split(" ")
    light(objective in OBJECTIVES, "its objective is an unknown one")
    told = [option for option in options if option.startswith("num_class:")]
    many = objective in ("multiclass", "multiclassova")
    light(told == ([f"num_class:{classes}"] if many else []), "its classes do not fit its objective")
    light(1 <= classes <= MOST_CLASSES and trees == classes and (many or classes == 1), "its classes do not fit")
    columns = last + 1
    told_of = [len(fields[name].split(" ")) for name in ("feature_names", "feature_infos")]
    light(columns >= 1 and told_of == [columns, columns], "its columns do not fit")
    return columns


def check_lightgbm_tree(text: str, number: int, columns: int) -> None:
    lines = text.rstrip("\n").split("\n")
    light(lines[0] == f"Tree={number}", "a tree is not where it should be")
    fields = dict(line.partition("=")[::2] for line in lines[1:])
    light(len(fields) == len(lines) - 1 and fields.get("is_linear") == "0", "a tree is of an unknown kind")
    light(fields.keys() <= {*PER_SPLIT, *PER_LEAF, *PER_TREE}, "a tree is of an unknown kind")
    light(NUMBER.fullmatch(fields["shrinkage"]), "a tree shrinks by something that is not a number")
    leaves, sets = int(whole_numbers(fields["num_leaves"])[0]), int(whole_numbers(fields["num_cat"])[0])
    light(1 <= leaves <= len(text) and 0 <= sets <= len(text), "a tree does not have the leaves it says")
    for name in (*PER_SPLIT, *PER_LEAF):
        check_lightgbm_numbers(name, fields[name].split(), leaves)
    feature, left, right, decision = (
        whole_numbers(fields[name]) for name in ("split_feature", "left_child", "right_child", "decision_type")
    )
    light(((feature >= 0) & (feature < columns)).all(), "a tree asks for a column that is not there")
    children = np.concatenate([left, right])
    inner, outer = np.sort(children[children >= 0]), np.sort(~children[children < 0])
    light(np.array_equal(inner, np.arange(1, leaves - 1)), "a node of a tree does not have one parent")
    light(np.array_equal(outer, np.arange(leaves)) or leaves == 1, "a leaf of a tree does not have one parent")
    later = [(child > np.arange(leaves - 1)) | (child < 0) for child in (left, right)]
    light(np.all(later), "a child in a tree is not a later node")
    check_lightgbm_categories(fields, decision % 2 == 1, sets)


def check_lightgbm_numbers(name: str, words: list[str], leaves: int) -> None:
    """As many numbers as splits or leaves; a tree that is one leaf need not tell its size."""
    fits = len(words) == leaves - (name in PER_SPLIT) or (leaves == 1 and name != "leaf_value" and not words)
    also = {"inf"} if name == "threshold" else set()  # such a split parts what is missing from what is not
    light(fits and all(map(NUMBER.fullmatch, set(words) - also)), f"a tree does not have its {name}")


def check_lightgbm_categories(fields: dict[str, str], categorical: np.ndarray, sets: int) -> None:
    if not sets:
        light(not categorical.any() and "cat_threshold" not in fields, "a tree has categories without sets")
        return
    ends, words = whole_numbers(fields["cat_boundaries"]), fields["cat_threshold"].split()
    asks = np.array([float(text) for text in fields["threshold"].split()])[categorical]
    light(len(ends) == sets + 1 and ends[0] == 0 and (np.diff(ends) >= 0).all(), "its sets do not fit")
    light(ends[-1] == len(words) and all(word.isdigit() for word in words), "its sets do not fit")
    light(((asks >= 0) & (asks < sets) & (asks == np.floor(asks))).all(), "a tree asks for a set that is not there")


def whole_numbers(text: str) -> np.ndarray:
    """Whole numbers of 32 bits, parted by blanks."""
    words = text.split()
    light(all(re.fullmatch(r"-?\d{1,10}", word) for word in words), "a whole number is not one")
    numbers = np.array([int(word) for word in words], dtype=np.int64)
    light((abs(numbers) < 2**31).all(), "a whole number is too large")
    return numbers


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
        cat(at is not None, "a part is missing")
        return Table(self.data, at)  # type: ignore[arg-type]

    def vector(self, slot: int, dtype: Any) -> np.ndarray:
        at = self.follow(slot)
        if at is None:
            return np.empty(0, dtype)
        count = read_number(self.data, at, "I")
        cat(at + 4 + count * np.dtype(dtype).itemsize <= len(self.data), "a part is longer than the whole")
        return np.frombuffer(self.data, dtype, count, at + 4)

    def tables(self, slot: int) -> list[Table]:
        at = self.follow(slot)
        offsets = self.vector(slot, np.uint32)
        return [Table(self.data, at + 4 + 4 * k + int(o)) for k, o in enumerate(offsets)] if at is not None else []


def read_number(data: bytes, at: int, form: str) -> Any:
    cat(0 <= at <= len(data) - struct.calcsize(form), "a part lies outside")
    return struct.unpack_from("<" + form, data, at)[0]


SPLIT = np.dtype([("index", "<i4"), ("border", "<f4")])
BIN = np.dtype([("column", "<u2"), ("flip", "u1"), ("border", "u1")])
BUCKET = np.dtype([("hash", "<u8"), ("index", "<u4")])
EMPTY = np.uint64(2**64 - 1)  # hash of a bucket that is free
BORDERS_PER_BIN = 254
COUNTERS = {0: 0, 1: 0, 2: 8, 3: 8, 4: 4, 5: 4}  # kind of count -> bytes an entry; 0: 4 bytes a class


def check_catboost_bytes(data: Any) -> None:
    """`CBM1`, the size of the core, the core, and where categories are counted, the tables of counts."""
    cat(isinstance(data, bytes) and data[:4] == b"CBM1" and len(data) > 16, "it does not begin as one")
    size = read_number(data, 4, "I")
    cat(0 < size <= len(data) - 8, "it is not as long as it says")
    core = Table(data[8 : 8 + size], read_number(data[8 : 8 + size], 0, "I"))
    trees = core.table(1)
    floats, categories, hot, counts = (trees.tables(slot) for slot in (5, 4, 6, 7))
    for slot, what in ((10, "trees that are not oblivious"), (12, "texts"), (13, "texts"), (18, "embeddings")):
        cat(not len(trees.vector(slot, np.uint32)), f"it has {what}")
    check_catboost_columns(floats, categories)
    for feature in hot:
        cat(0 <= feature.number(0, "i", -1) < len(categories), "it asks for a category that is not there")
    check_catboost_trees(trees, floats, hot, counts)
    wanted = [check_count(ctr, len(floats), len(categories)) for ctr in counts]
    check_count_tables(data[8 + size :], wanted, len(floats), len(categories))


def check_catboost_columns(floats: list[Table], categories: list[Table]) -> None:
    """Columns are numbered within their kind and among all."""
    flat = []
    for kind, features, index, place in (("numbers", floats, 1, 2), ("categories", categories, 0, 1)):
        numbered = [feature.number(index, "i", -1) for feature in features]
        cat(numbered == list(range(len(features))), f"its columns of {kind} are not in order")
        flat.append([feature.number(place, "i", -1) for feature in features])
        cat(flat[-1] == sorted(flat[-1]), f"its columns of {kind} are not in order")
    cat(sorted(flat[0] + flat[1]) == list(range(len(flat[0]) + len(flat[1]))), "its columns do not fit")


def check_catboost_trees(trees: Table, floats: list[Table], hot: list[Table], counts: list[Table]) -> None:
    """Splits exist, leaves are as many as depths demand, and packed splits are those that the borders give."""
    classes, depth, splits = trees.number(0, "i", 0), trees.vector(2, "<i4"), trees.vector(1, "<i4")
    cat(1 <= classes <= MOST_CLASSES and ((depth >= 0) & (depth <= 16)).all(), "its trees do not fit")
    starts = np.cumsum(depth) - depth
    cat(np.array_equal(trees.vector(3, "<i4"), starts) and len(splits) == depth.sum(), "its splits do not fit")
    bins = packed_bins(floats, hot, counts)
    cat(((splits >= 0) & (splits < len(bins))).all(), "a tree asks for a split that is not there")
    stored = trees.vector(17, BIN)
    cat(not len(stored) or np.array_equal(stored, bins[splits]), "its packed splits are others")
    leaves = int((2 ** depth.astype(np.int64)).sum())
    cat(len(trees.vector(8, "<f8")) == leaves * classes, "its leaves do not fit")
    cat(len(trees.vector(9, "<f8")) in (0, leaves), "its weights of leaves do not fit")
    cat(len(trees.vector(16, "<f8")) in (0, classes), "its bias does not fit")


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
        cat(one_hot or (np.diff(values) > 0).all(), "its borders are not in order")
    cat(column <= 0xFFFF, "it has too many columns")
    return np.concatenate(parts)


def check_count(feature: Table, floats: int, categories: int) -> tuple[Any, int]:
    """What a column of counts is made from, and the class it counts."""
    ctr = feature.table(0)
    target = ctr.number(1, "i", 0)
    cat(0 <= target < MOST_CLASSES, "it counts a class that is not there")
    return check_base(ctr.table(0), floats, categories), target


def check_base(base: Table, floats: int, categories: int) -> Any:
    """A combination of columns and a kind of count, as a key."""
    mix, kind = base.table(0), base.number(1, "b", 0)
    cat(kind in COUNTERS, "it counts in an unknown way")
    words, borders, values = mix.vector(0, "<i4"), mix.vector(1, SPLIT), mix.vector(2, np.dtype("<i4,<i4"))
    cat(((words >= 0) & (words < categories)).all(), "it combines a category that is not there")
    cat(((borders["index"] >= 0) & (borders["index"] < floats)).all(), "it combines a column that is not there")
    cat(((values["f0"] >= 0) & (values["f0"] < categories)).all(), "it combines a category that is not there")
    return kind, words.tobytes(), borders.tobytes(), values.tobytes()


def check_count_tables(data: bytes, wanted: list[tuple[Any, int]], floats: int, categories: int) -> None:
    """One table for each wanted count; every bucket of it points into its counts, and one is free."""
    if not wanted:
        cat(not data, "something follows it")
        return
    number, at, classes = read_number(data, 0, "I"), 4, {}
    for _ in range(min(number, len(data))):
        size = read_number(data, at, "I")
        cat(size <= len(data) - at - 4, "a table is not as long as it says")
        part = data[at + 4 : at + 4 + size]
        table = Table(part, read_number(part, 0, "I"))
        key = check_base(table.table(0), floats, categories)
        cat(key not in classes, "a table is there twice")
        classes[key] = check_buckets(table, key[0])
        at += 4 + size
    cat(at == len(data), "something follows it")
    for key, target in wanted:
        cat(key in classes, "a table is missing")
        cat(target < classes[key], "it counts a class that is not there")


def check_buckets(table: Table, kind: int) -> int:
    """The number of classes that a sound table counts."""
    raw, counts, classes = table.vector(1, "u1"), table.vector(2, "u1"), table.number(4, "i", 0)
    cat(len(raw) % BUCKET.itemsize == 0, "the buckets of a table do not fit")
    buckets = raw.view(BUCKET)
    used = buckets["hash"] != EMPTY
    cat(len(buckets) and not len(buckets) & (len(buckets) - 1) and not used.all(), "a table has no free bucket")
    if COUNTERS[kind]:
        width, known = COUNTERS[kind], 1
    else:
        cat(0 <= classes < MOST_CLASSES, "a table counts classes that are not there")
        width, known = 4 * max(classes, 2), max(classes, 2)
    entries = len(counts) // width
    cat((buckets["index"][used] < entries).all(), "a bucket of a table points outside")
    return known
