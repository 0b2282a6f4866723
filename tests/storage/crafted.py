"""Model files that someone made to do harm: tables of attacks on one genuine file, each with checksums that fit.

`crafted(path)` yields (name, bytes). An attack is a row: its name, and a function that changes an `Opened` file.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import struct
import zipfile
import zlib
from pathlib import Path

import numpy as np

# --- a file, opened to be changed


class Opened:
    """The members of a model file and its description, to be changed and sealed again."""

    def __init__(self, path):
        with zipfile.ZipFile(path) as file:
            self.members = {name: file.read(name) for name in file.namelist()}
        self.manifest = json.loads(self.members.pop("manifest.json"))
        self.magic = self.members.pop("softlearning-model")
        self.schema = json.loads(self.members.pop("schema.json"))

    def seal(self, **manifest):
        schema = self.schema if isinstance(self.schema, bytes) else json.dumps(self.schema).encode()
        members = {**self.members, "schema.json": schema}
        sums = {n: {"bytes": len(d), "sha256": hashlib.sha256(d).hexdigest()} for n, d in members.items()}
        listing = json.dumps({**self.manifest, "members": sums, **manifest}).encode()
        return zipped({"softlearning-model": self.magic, "manifest.json": listing, **members})

    def objects(self, kind):
        """Attributes of all objects of a class (a list where the state is a tuple), in the order of the file."""
        loaders = ("ObjectNode", "TreeNode")
        found = [n for n in nodes(self.schema) if n.get("__class__") == kind and n.get("__loader__") in loaders]
        return [node["content"]["content"] for node in found if node.get("content")]

    def record(self, kind):
        """Fields of the first record of a class."""
        return next(o for o in self.objects("Stored") if o["kind"]["content"] == f'"{kind}"')["value"]["content"]

    def put(self, array):
        """A node for a new array."""
        name = f"new{len(self.members)}.npy"
        self.members[name] = npy(array)
        return node("NdArrayNode", "numpy", "ndarray", type="numpy", file=name)

    def root(self, key):
        return self.schema["content"][key]

    def learned(self):
        return self.root("learned")["content"]


def nodes(tree):
    """Every dict of a tree."""
    if isinstance(tree, dict):
        yield tree
    for child in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from nodes(child)


def npy(array):
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asanyarray(array), allow_pickle=False)
    return buffer.getvalue()


def zipped(members, compress=zipfile.ZIP_DEFLATED):
    """A zip of (name, bytes) pairs or a dict; the magic is never compressed."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, data in members.items() if isinstance(members, dict) else members:
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_STORED if name == "softlearning-model" else compress
            file.writestr(info, data)
    return buffer.getvalue()


def unzipped(data):
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        return [(name, file.read(name)) for name in file.namelist()]


class Evil:
    """What a pickle would run."""

    def __reduce__(self):
        return os.system, ("touch pwned",)


# --- nodes of a description


def node(loader, module, name, **content):
    return {"__class__": name, "__module__": module, "__loader__": loader, **content}


def plain(value):
    return node("JsonNode", "builtins", "str", content=json.dumps(value), is_json=True)


def as_node(value):
    return value if isinstance(value, dict) and "__loader__" in value else plain(value)


def list_node(*items):
    return node("ListNode", "builtins", "list", content=[as_node(item) for item in items])


def tuple_node(*items):
    return node("TupleNode", "builtins", "tuple", content=[as_node(item) for item in items])


def dict_node(**items):
    types = list_node(*[node("TypeNode", "builtins", "str") for _ in items])
    return node("DictNode", "builtins", "dict", content={k: as_node(v) for k, v in items.items()}, key_types=types)


def object_node(module, name, **state):
    return node("ObjectNode", module, name, content=dict_node(**state))


def stored(kind, value):
    return object_node("softlearning.storage.records", "Stored", kind=kind, value=value)


def partial_node(func, namespace=None):
    content = {"func": func, "args": tuple_node("1"), "kwds": dict_node(), "namespace": namespace or plain(None)}
    return node("PartialNode", "functools", "partial", content=content)


def reduced(loader, module, name, *args, **state):
    return node(loader, module, name, __reduce__={"args": tuple_node(*args)}, content=dict_node(**state))


def function(module, name):
    return node("FunctionNode", module, name)


def operator_node(name, argument):
    return node("OperatorFuncNode", "operator", name, attrs=tuple_node(argument))


def constructed(module, name, argument):
    return node("ConstructorFromReduceNode", module, name, content=tuple_node(argument))


def with_keys(*types):
    return {**dict_node(a=1), "key_types": list_node(*types)}


def nested(depth):
    tree = plain(1)
    for _ in range(depth):
        tree = list_node(tree)
    return tree


def add(attributes, **values):
    """Put attributes where there may be none of that name: a dict counts the types of its keys."""
    attributes["content"].update({name: as_node(value) for name, value in values.items()})
    names = [node("TypeNode", "builtins", "str")] * len(attributes["content"])
    attributes["key_types"]["content"] = names


# --- attacks on the container


def not_ours(path):
    good = Path(path).read_bytes()
    return {
        "an empty file": b"",
        "one byte": b"P",
        "a pickle": pickle.dumps(Evil()),
        "a pickle behind the magic of a zip": b"PK\x03\x04" + pickle.dumps(Evil()),
        "a plain text": b"weights: 1.0\n",
        "an executable": b"\x7fELF" + bytes(100),
        "a gzip": b"\x1f\x8b\x08\x00" + zlib.compress(good),
        "an array": npy(np.zeros(3)),
        "a zip with a pickle, as torch writes": zipped({"archive/data.pkl": pickle.dumps(Evil())}),
        "a bare skops file": zipped({"schema.json": b"{}"}),
        "junk before the zip": b"#!/bin/sh\n" + good,
        "the first half": good[: len(good) // 2],
        "all but the last byte": good[:-1],
        "a zip without members": b"PK\x05\x06" + bytes(18),
        "larger than the limit": good + bytes(65 << 20),
    }


NAMES = ("../evil", "/etc/evil", "a/../b", "a/b", "C:\\evil", "evil\nname", "a//b", "dir/", "é", "x" * 300, "a.b.c")


def odd_archives(path):
    sealed = Opened(path).seal()
    pairs = unzipped(sealed)
    rest = [pair for pair in pairs if pair[0] != "schema.json"]
    start = find_directory(sealed, "softlearning-model")[1]
    many = [(f"m{k}", b"") for k in range(100_001)]
    noise = np.random.default_rng(0).bytes(65 << 20)
    return {
        "the magic is not first": zipped([pairs[1], pairs[0], *pairs[2:]]),
        **{f"a member called {name[:12]!r}": zipped([*pairs, (name, b"x")]) for name in NAMES},
        "a name twice": zipped([*pairs, ("schema.jsoN", b"{}")]).replace(b"schema.jsoN", b"schema.json"),
        "an extra member": zipped([*pairs, ("extra.npy", b"x")]),
        "a missing member": zipped(rest),
        "no manifest": zipped([pair for pair in pairs if pair[0] != "manifest.json"]),
        "packed with bzip2": zipped(pairs, zipfile.ZIP_BZIP2),
        "packed with lzma": zipped(pairs, zipfile.ZIP_LZMA),
        "a member that is encrypted": patched(sealed, 8, "<H", 1),
        "a member that claims 3 GB": patched(sealed, 24, "<I", 3 << 30),
        "a member that claims nothing": patched(sealed, 24, "<I", 0),
        "two members in one place": patched(sealed, 42, "<I", start),
        "a bomb": zipped([*pairs, ("bomb.npy", bytes(40 << 20))]),
        "more than the limit": zipped([*pairs, ("large.npy", noise)], zipfile.ZIP_STORED),
        "a hundred thousand members": zipped([*pairs, *many], zipfile.ZIP_STORED),
        "an end that lies of its size": sealed[:-12] + b"\xff\xff\xff\xff" + sealed[-8:],
    }


def find_directory(data, name):
    """Where the entry of a member stands in the directory, and where its data begin."""
    at = data.rindex(b"PK\x01\x02", 0, data.rindex(name.encode()))
    return at, struct.unpack_from("<I", data, at + 42)[0]


def patched(data, offset, form, value):
    """The directory entry of the description changed."""
    at, changed = find_directory(data, "schema.json")[0] + offset, struct.pack(form, value)
    return data[:at] + changed + data[at + len(changed) :]


def lying_manifests(path):
    pairs = unzipped(Opened(path).seal())
    listing = json.loads(dict(pairs)["manifest.json"])

    def with_text(text):
        return zipped([(n, text if n == "manifest.json" else d) for n, d in pairs], zipfile.ZIP_STORED)

    def with_sum(**said):
        members = {**listing["members"], "schema.json": {**listing["members"]["schema.json"], **said}}
        return with_text(json.dumps({**listing, "members": members}).encode())

    def with_magic(magic):
        return zipped([("softlearning-model", magic), *pairs[1:]])

    def with_manifest(**said):
        return Opened(path).seal(**said)

    versions = listing["versions"]
    return {
        "a wrong checksum": with_sum(sha256="0" * 64),
        "a wrong size": with_sum(bytes=1),
        "a manifest that is not JSON": with_text(b"import os"),
        "a manifest that is a list": with_text(b"[1, 2]"),
        "a manifest of brackets": with_text(b"[" * 100_000),
        "a manifest of many lists": with_text(b'{"a":[' + b"[]," * 1_000_000 + b"[]]}"),
        "a manifest with a key twice": with_text(b'{"members": {}, "members": {}}'),
        "a manifest with NaN": with_text(b'{"members": NaN}'),
        "a manifest with a huge number": with_text(b'{"members": ' + b"9" * 5000 + b"}"),
        "a manifest that is not UTF-8": with_text(b'{"members": "\xff\xfe"}'),
        "members that are a list": with_manifest(members=[]),
        "members with odd sums": with_manifest(members=dict.fromkeys(listing["members"], 1)),
        "no versions": with_manifest(versions=None),
        "an older scikit-learn": with_manifest(versions={**versions, "scikit-learn": "1.2.0"}),
        "versions of an odd type": with_manifest(versions={"scikit-learn": {}}),
        "an older format": with_magic(b"1"),
        "a newer format": with_magic(b"3"),
        "no format": with_magic(b""),
        "a long format": with_magic(b"2 " * 1000),
    }


# --- attacks on records


def weights(values):
    def change(file):
        array = file.put(np.asarray(values, dtype=float))
        file.record("Solution")["weights"] = array
        file.record("series")["value"]["content"]["value"] = array

    return change


def field(kind, **values):
    """Fields of the first record of a kind."""

    def change(file):
        whole = next(o for o in file.objects("Stored") if o["kind"]["content"] == f'"{kind}"')
        add(whole["value"], **{k: v(file) if callable(v) else v for k, v in values.items()})

    return change


def attribute(**values):
    """Attributes of the model."""
    return lambda file: add(file.root("learned"), **{k: v(file) if callable(v) else v for k, v in values.items()})


def without(kind, name):
    def change(file):
        whole = next(o for o in file.objects("Stored") if o["kind"]["content"] == f'"{kind}"')["value"]
        del whole["content"][name]
        whole["key_types"]["content"].pop()

    return change


def root(**values):
    return lambda file: add(file.schema, **values)


def column(value, dtype="float64"):
    return dict_node(dtype=dtype, value=value)


def array(*shape, dtype=float):
    return lambda file: file.put(np.zeros(shape, dtype))


def one_array_many_times(file):
    item = file.put(np.random.default_rng(0).normal(size=1 << 17))
    add(file.root("learned"), many_=list_node(*[item] * 1500))


def long_series(file):
    index = dict_node(dtype="int64", value=file.put(np.arange(3)), name=None)
    add(file.root("learned"), extra_=stored("series", dict_node(value=column(1.5), index=index, name=None)))


def ragged_frame(file):
    columns = list_node(column(file.put(np.zeros(2))), column(file.put(np.zeros(3))))
    add(file.root("learned"), extra_=stored("frame", dict_node(value=columns, index=None, names=list_node("a", "b"))))


RECORDS = {
    "weights of NaN": weights([np.nan] * 14),
    "weights off the simplex": weights([0.3] * 14),
    "weights below zero": weights([2.0, -1.0] + [0.0] * 12),
    "too many weights": weights([1 / 15] * 15),
    "weights in a square": weights(np.full((14, 1), 1 / 14)),
    "weights that differ from those shown": field("Solution", weights=lambda file: file.put(np.eye(14)[0])),
    "a sharpness of NaN": field("Ensemble", sharpness=float("nan")),
    "a sharpness without bound": field("Ensemble", sharpness=1e6),
    "a sharpness that is a word": field("CrossFit", sharpness="2"),
    "a model of another class": root(kind="Pipeline"),
    "a model that is a number": root(kind=3),
    "more than a model": root(code="1"),
    "nothing learnt": root(learned=dict_node()),
    "parameters that are objects": root(
        params=list_node(list_node("rule", object_node("sklearn.dummy", "DummyClassifier")))
    ),
    "parameters that are unknown": root(params=list_node(list_node("evil", 1))),
    "a model on a million cores": root(params=list_node(list_node("n_jobs", 10**6))),
    "a record of another module": attribute(extra_=stored("os.system", dict_node())),
    "a record of an odd kind": attribute(extra_=stored(list_node(1), dict_node())),
    "a record without fields": attribute(extra_=stored("Schema", 1)),
    "a record with a field more": field("Ensemble", extra=1),
    "a record with a field less": without("Ensemble", "classes"),
    "a schema in place of the ensemble": field("Record", ensemble=lambda file: file.record("Training")["schema"]),
    "a number in place of the record": attribute(record_=3),
    "a model that hides a method": attribute(predict_proba=1),
    "a model with another class attribute": attribute(__class__="x"),
    "a model with an odd attribute": attribute(**{"a b": 1}),
    "a specialist that is a number": field("Member", model=3),
    "a specialist that is not there": field("Member", model=stored("model", 999)),
    "a specialist that is a bare tree": lambda file: field("Member", model=tree_node(file))(file),
    "a view that is not there": field("Member", view="nowhere"),
    "a view with odd attributes": field("View", transform=1),
    "a specialist of an unknown family": field("Specialist", family="evil"),
    "a recipe that is not ours": field("Specialist", make=list_node("os", "system")),
    "values within values": attribute(extra_=nested(120)),
    "keys that are lists": attribute(extra_=stored("dict", list_node(list_node(list_node(1), 2)))),
    "a number over a long index": long_series,
    "a frame of columns of two lengths": ragged_frame,
    "a column of another type": attribute(extra_=stored("series", dict_node(value=column("x"), index=None, name=None))),
    "one array named 1,500 times": one_array_many_times,
    "three classes called two": attribute(classes_=array(2, dtype=int)),
    "an ensemble of two classes": field("Ensemble", classes=2),
    "out-of-fold predictions of another shape": field("CrossFit", oof=array(3, 3, 3)),
}


# --- attacks on arrays


def header(text, version=b"\x01\x00", payload=b""):
    padded = text.encode() + b" " * 10 + b"\n"
    return b"\x93NUMPY" + version + struct.pack("<H", len(padded)) + padded + payload


def described(descr="'<f8'", shape="(10,)", payload=bytes(80), **version):
    return header(f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}", payload=payload, **version)


SHAPES = ("(10**18,)", "(1000000000000,)", "(-1,)", "(-5, -5)", "(3.5,)", "('a',)", "(True, 10)")
TYPES = ("'|V0'", "'<U0'", "'|V1000000000'", "[('a', '<f8')]", "'<c99'", "'O'", "[('a', '|O')]", "None")
CODE = "__import__('os').system('touch pwned')"
ARRAYS = {
    "an array of objects with a pickle": described("'|O'", "(1,)", pickle.dumps(Evil())),
    "a pickle in place of an array": pickle.dumps(Evil()),
    "a zip of arrays in place of an array": zipped({"a.npy": npy(np.zeros(2))}),
    "a header that calls a function": described(CODE),
    "a header that is not a dict": header("[1, 2]"),
    **{f"an array of shape {shape}": described(shape=shape) for shape in SHAPES},
    **{f"an array of {dtype}": described(dtype) for dtype in TYPES},
    "an array of nothing with a huge shape": described(shape="(0, 10000000000)", payload=b""),
    "an array of version 9": described(version=b"\x09\x00"),
    "an array cut short": npy(np.full(14, 1 / 14))[:-8],
    "an array with a tail": npy(np.full(14, 1 / 14)) + b"tail",
    "an empty array file": b"",
}


def with_array(data):
    def change(file):
        file.members[file.record("Solution")["weights"]["file"]] = data

    return change


# --- attacks on the description

LOGISTIC = ("sklearn.linear_model._logistic", "LogisticRegression")
SYSTEM = function("posix", "system")
METHOD = {"func": "__init__.__globals__", "obj": plain("x")}
GENERATOR = {"bit_generator": dict_node(bit_generator="seed"), "seed_seq": dict_node()}
MADE = {"main": dict_node(), "default_factory": SYSTEM}
CALLS = {
    "a function that runs a command": SYSTEM,
    "eval as a function": function("builtins", "eval"),
    "eval as a type": node("TypeNode", "builtins", "eval"),
    "exec in a partial": partial_node(function("builtins", "exec")),
    "a partial with a namespace": partial_node(function("numpy", "exp"), dict_node(a=1)),
    "a partial of a type": partial_node(node("TypeNode", "builtins", "str")),
    "a method caller": operator_node("methodcaller", "predict"),
    "an operator node that walks to exec": operator_node("__builtins__.exec", "x"),
    "an attribute getter to globals": operator_node("attrgetter", "__class__.__init__.__globals__"),
    "a method of a trusted class": node(
        "MethodNode", *LOGISTIC, content={"func": "fit", "obj": object_node(*LOGISTIC)}
    ),
    "a method that walks by dots": node("MethodNode", "builtins", "str", content=METHOD),
    "a process as an object": object_node("subprocess", "Popen", args="touch pwned"),
    "a process from its constructor": constructed("subprocess", "Popen", "true"),
    "a path from its constructor": constructed("pathlib", "PosixPath", "/etc/passwd"),
    "a cached node": node("CachedNode", "builtins", "str", __id__=7),
    "a node with an identity": {**plain(1), "__id__": 7},
    "a loader that is not there": node("EvilNode", "builtins", "str"),
    "a loader that is a list": {**plain(1), "__loader__": ["JsonNode"]},
    "a class name with dots": object_node("sklearn", "pipeline.Pipeline"),
    "a class with a name alike": object_node("sklearn.pipeline", "Pipeline2"),
    "a class from another module": object_node("evil.sklearn.pipeline", "Pipeline"),
    "an estimator off the list": object_node("sklearn.cluster._kmeans", "KMeans"),
    "a class that our library only imports": object_node("softlearning.library.learners", "BaseEstimator"),
    "a function of our library as a class": object_node("softlearning.library.recipes", "logistic"),
    "a module that our library has not": object_node("softlearning.library.evil", "Evil"),
    "a memory that caches on disk": object_node("joblib.memory", "Memory", location="pwned"),
    "a default dict made by a command": node("DefaultDictNode", "collections", "defaultdict", content=MADE),
    "a generator by name": node("RandomGeneratorNode", "numpy.random._generator", "Generator", content=GENERATOR),
    "a loss that is a function": reduced("LossNode", "builtins", "eval", "1"),
    "a loss with a state": reduced("LossNode", "sklearn._loss._loss", "CyHuberLoss", 1.0, a=1),
    "a tree of another class": reduced("TreeNode", "builtins", "eval", "1"),
    "a tree without nodes": reduced("TreeNode", "sklearn.tree._tree", "Tree", 1, 1, 1),
    "a member outside": node("NdArrayNode", "numpy", "ndarray", type="numpy", file="../../etc/passwd"),
    "a member that is the schema": node("BytesNode", "builtins", "bytes", file="schema.json"),
    "an array of an unknown type": node("NdArrayNode", "numpy", "ndarray", type="pickle", file="0.npy"),
    "an array made by load": node("NdArrayNode", "numpy", "load", type="numpy", file="0.npy"),
    "keys made by a function": with_keys(SYSTEM),
    "keys made by a container": with_keys(node("TypeNode", "builtins", "map")),
    "fewer types than keys": with_keys(),
    "plain JSON that is nested": node("JsonNode", "builtins", "str", content="[" * 5000 + "]" * 5000),
    "plain JSON that is a list": node("JsonNode", "builtins", "str", content="[1]"),
    "a list that is a dict": node("ListNode", "builtins", "list", content={"a": 1}),
    "a slice of words": node("SliceNode", "builtins", "slice", content={"start": "a", "stop": [], "step": {}}),
    "a node that is a number": 5,
    "a node without a class": {"__loader__": "JsonNode"},
}


def parameter(value):
    return lambda file: file.objects("KNeighborsClassifier")[0].update(leaf_size=value)


def as_schema(value):
    return lambda file: setattr(file, "schema", value)


def noise(size):
    return np.random.default_rng(0).bytes(size // 2).hex().encode()


DESCRIPTIONS = {
    **{f"{name}, as a parameter": parameter(call) for name, call in CALLS.items()},
    **{f"{name}, as the whole": as_schema({**CALLS[name], "protocol": 2}) for name in list(CALLS)[:5]},
    **{f"protocol {p!r}": lambda file, p=p: file.schema.update(protocol=p) for p in (0, 1, 3, True, "2", None)},
    "a description that is not JSON": as_schema(b"{'a': 1}"),
    "a description of brackets": as_schema(b"[" * 200_000),
    "a description with a key twice": as_schema(b'{"protocol": 2, "protocol": 2}'),
    "a description that is too long": as_schema(b'{"a":"' + noise(3 << 20) + b'"}'),
    "a deep description": parameter(nested(120)),
    "an archive in place of an array": lambda file: file.members.update({"0.npy": zipped({"a": b"x"})}),
}


# --- attacks on what compiled code follows


def value(kind, key, new, nth=0):
    """An attribute of the nth object of a class that has it."""

    def change(file):
        found = [o for o in file.objects(kind) if isinstance(o, list) or key in o]
        found[nth][key] = as_node(new(file) if callable(new) else new)

    return change


def extra(kind, **values):
    """An attribute that an object of a class does not have."""

    def change(file):
        add(next(n for n in nodes(file.schema) if n.get("__class__") == kind)["content"], **values)

    return change


def numbers(kind, key, new, nth=0):
    """An array of the nth object of a class: `new` takes the array and returns another."""

    def change(file):
        place = [o for o in file.objects(kind) if isinstance(o, list) or key in o][nth]
        old = np.load(io.BytesIO(file.members[place[key]["file"]]), allow_pickle=False).copy()
        place[key] = file.put(new(old))

    return change


def cell(name, index, new):
    """One field of a structured array."""

    def change(array):
        array[name][index] = new(array) if callable(new) else new
        return array

    return change


def both(*changes):
    def change(array):
        for one in changes:
            array = one(array)
        return array

    return change


def cut(array):
    return array[:-1]


def narrow(array):
    return np.ascontiguousarray(array[:, :-1])


def tree_node(file):
    return next(n for n in nodes(file.schema) if n.get("__loader__") == "TreeNode")


def tree(change):
    return numbers("Tree", "nodes", change)


def hist(change):
    return numbers("TreePredictor", "nodes", change)


def leaf(array):
    return int(np.flatnonzero(array["left_child"] == -1)[0])


def encoder_drops(file):
    found = (o["_transformer_to_input_indices"]["content"] for o in file.objects("ColumnTransformer"))
    next(columns for columns in found if "encoder" in columns)["numerical"] = list_node(0)


FOREST, BOOSTING, NEAR, SPLINE = (
    "RandomForestClassifier",
    "GradientBoostingClassifier",
    "KNeighborsClassifier",
    "BSpline",
)
HIST = "HistGradientBoostingClassifier"
TREES = {
    "a child that is its own parent": tree(cell("left_child", 0, 0)),
    "a child that comes before": tree(cell("right_child", 1, 0)),
    "a child beyond the end": tree(cell("left_child", 0, 10**6)),
    "a child far below zero": tree(cell("right_child", 0, -(10**6))),
    "a node with two parents": tree(cell("left_child", 0, lambda a: a["right_child"][0])),
    "a leaf with a child": tree(lambda a: cell("right_child", leaf(a), len(a) - 1)(a)),
    "a column that is not there": tree(cell("feature", 0, 99)),
    "a column below zero": tree(cell("feature", 0, -2)),
    "nodes of another type": tree(lambda a: np.zeros(len(a))),
    "no nodes": tree(lambda a: a[:0]),
    "too few values": numbers("Tree", "values", cut),
    "values of another type": numbers("Tree", "values", lambda a: a.astype(np.float32)),
    "more nodes than there are": value("Tree", "node_count", 10**6),
    "another depth": value("Tree", "max_depth", 1),
    "nodes that are a word": value("Tree", "nodes", "nodes"),
    "a tree for more columns": value("DecisionTreeClassifier", "n_features_in_", 99, nth=1),
    "a tree for more outputs": value("DecisionTreeClassifier", "n_outputs_", 5, nth=1),
    "boosting with more trees per round": value(BOOSTING, "n_trees_per_iteration_", 9),
    "boosting for fewer columns": value(BOOSTING, "n_features_in_", 1),
    "boosting with a narrow first guess": numbers("DummyClassifier", "class_prior_", cut),
    "a bare tree": value(FOREST, "class_weight", tree_node),
    "a private method in the place of an attribute": extra(FOREST, _validate_X_predict=function("numpy", "absolute")),
    "a histogram tree that loops": hist(cell("left", 0, 0)),
    "a histogram tree that leads outside": hist(cell("right", 0, 10**6)),
    "a histogram tree with a far column": hist(cell("feature_idx", 0, 10**6)),
    "a histogram tree with a column below zero": hist(cell("feature_idx", 0, -1)),
    "a histogram tree with sets that are not there": hist(
        both(cell("feature_idx", 0, 0), cell("is_categorical", 0, 1), cell("bitset_idx", 0, 10**6))
    ),
    "a histogram tree with sets for numbers": hist(
        both(cell("feature_idx", 0, 1), cell("is_categorical", 0, 1), cell("bitset_idx", 0, 0))
    ),
    "sets that are too narrow": numbers("TreePredictor", "raw_left_cat_bitsets", lambda a: np.zeros((3, 2), np.uint32)),
    "bins for another number of columns": numbers("_BinMapper", "is_categorical_", cut),
    "trees that are words": value(HIST, "_predictors", "trees"),
    "boosting that is in training": extra(HIST, _in_fit=True),
    "an encoder that is another": value(HIST, "_preprocessor", "encoder"),
    "an encoder that drops a column": encoder_drops,
}
NEIGHBOURS = {
    "a search tree with neighbours that are not there": numbers("KDTree", 1, lambda a: a + 10**6),
    "a search tree with neighbours twice": numbers("KDTree", 1, lambda a: a * 0),
    "a search tree with nodes with far rows": numbers("KDTree", 2, cell("idx_end", 0, 10**9)),
    "a search tree with nodes that begin below zero": numbers("KDTree", 2, cell("idx_start", 0, -5)),
    "a search tree with a last level without leaves": numbers("KDTree", 2, cell("is_leaf", -1, 0)),
    "a search tree with too few nodes": numbers("KDTree", 2, cut),
    "a search tree with bounds of another shape": numbers("KDTree", 3, lambda a: a[:, :1].copy()),
    "a search tree with fewer rows": numbers("KDTree", 0, cut),
    "a search tree of many levels": value("KDTree", 5, 60),
    "a search tree with another distance": value("KDTree", 11, "euclidean"),
    "a label that is not there": numbers(NEAR, "_y", lambda a: a + 1000),
    "more neighbours than rows": value(NEAR, "n_neighbors", 10**6),
    "a distance by name": value(NEAR, "effective_metric_", "mahalanobis"),
    "rows of another width": numbers(NEAR, "_fit_X", narrow),
    "weights by a function": value(NEAR, "weights", function("numpy", "exp")),
    "support vectors that are too few": numbers("SVC", "support_vectors_", cut),
    "support vectors that are too narrow": numbers("SVC", "support_vectors_", narrow),
    "counts of support vectors that lie": numbers("SVC", "_n_support", lambda a: a * 100),
    "counts below zero": numbers("SVC", "_n_support", lambda a: a - 50),
    "too few offsets": numbers("SVC", "_intercept_", cut),
    "too few coefficients": numbers("SVC", "_dual_coef_", narrow),
    "probabilities for another number of pairs": numbers("SVC", "_probA", lambda a: np.ones(1)),
    "a kernel given before": value("SVC", "kernel", "precomputed", nth=1),
    "another machine": extra("SVC", _impl="one_class"),
}
PREPARATION = {
    "knots that fall": numbers(SPLINE, "_t", lambda a: a[::-1].copy()),
    "knots that are not finite": numbers(SPLINE, "_t", lambda a: a * np.nan),
    "too few knots": numbers(SPLINE, "_t", lambda a: a[:5]),
    "too few coefficients of a spline": numbers(SPLINE, "_c", lambda a: a[:2]),
    "a spline of degree 1000": value(SPLINE, "k", 1000),
    "more spline columns than there are": value("SplineTransformer", "n_features_out_", 10**7),
    "one-hot columns that lie": value("OneHotEncoder", "_n_features_outs", list_node(9)),
    "one-hot categories out of order": lambda file: file.objects("OneHotEncoder")[1].update(
        categories_=list_node(file.put(np.arange(4.0)[::-1].copy()))
    ),
    "words that are not there": value("CountVectorizer", "vocabulary_", dict_node(red=0, blue=10**6)),
    "words in one place": value("TfidfVectorizer", "vocabulary_", dict_node(red=0, blue=0)),
    "a pattern that runs for hours": value("TfidfVectorizer", "token_pattern", "(a+)+$"),
    "text read by a function": value("CountVectorizer", "analyzer", function("numpy", "exp")),
    "cells that name files to read": value("CountVectorizer", "input", "filename", nth=1),
    "cells that are open files": value("HashingVectorizer", "input", "file", nth=1),
    "a billion hashed columns": value("HashingVectorizer", "n_features", 10**9),
    "n-grams without end": value("HashingVectorizer", "ngram_range", tuple_node(1, 10**9)),
}
PROCESSES = {
    "three processes for bagging": value("BaggingClassifier", "n_jobs", 3),
    "all processors for bagging": value("BaggingClassifier", "n_jobs", -1),
    "two processes for a union": value("FeatureUnion", "n_jobs", 2),
    "two processes for columns": value("ColumnTransformer", "n_jobs", 2),
    "a billion threads": value(NEAR, "n_jobs", 10**9),
    "threads that are words": value(NEAR, "n_jobs", "a"),
    "threads that are true": value(NEAR, "n_jobs", True),
}


# --- attacks on CatBoost and LightGBM


def blob(change):
    def apply(file):
        name = next(n for n in file.members if n.endswith(".bin"))
        file.members[name] = change(file.members[name])

    return apply


def text(change):
    def apply(file):
        place = file.objects("Booster")[0]
        old = json.loads(place["_handle"]["content"])
        new = change(old)
        assert new != old
        place["_handle"] = plain(resized(new))

    return apply


def instead(old, new):
    return text(lambda whole: whole.replace(old, new, 1))


def first(name, number):
    """The first number of the first line of a name exchanged."""

    def change(whole):
        line = next(line for line in whole.split("\n") if line.startswith(f"{name}="))
        return whole.replace(line, f"{name}={number}" + line[line.find(" ") :], 1)

    return text(change)


def resized(whole):
    """The same with sizes of trees that fit again, where it still has trees."""
    if "end of trees" not in whole or "Tree=0" not in whole or "tree_sizes=1 " in whole:
        return whole
    trees = whole[whole.index("Tree=0") : whole.index("end of trees")]
    sizes = [len("Tree=" + part) for part in trees.split("Tree=")[1:]]
    line = next(line for line in whole.split("\n") if line.startswith("tree_sizes="))
    return whole.replace(line, "tree_sizes=" + " ".join(map(str, sizes)), 1)


def depths(data):
    """The vector of depths (three trees of depth 3) with one made absurd."""
    at = data.index(struct.pack("<4I", 3, 3, 3, 3))
    return data[: at + 4] + struct.pack("<i", 30) + data[at + 8 :]


LIGHT, CAT = "LGBMClassifier", "CatBoostClassifier"
NATIVE = {
    "a CatBoost model of random bytes": blob(lambda data: b"CBM1" + np.random.default_rng(0).bytes(5000)),
    "a CatBoost model cut in half": blob(lambda data: data[: len(data) // 2]),
    "a CatBoost model that is a pickle": blob(lambda data: pickle.dumps(Evil())),
    "a CatBoost model that claims 4 GB": blob(lambda data: data[:4] + b"\xfe\xff\xff\xff" + data[8:]),
    "a CatBoost model with a tail": blob(lambda data: data + bytes(64)),
    "a CatBoost tree of depth 30": blob(depths),
    "a LightGBM child far away": first("left_child", "99999"),
    "a LightGBM tree that loops": first("left_child", "0"),
    "a LightGBM column far away": first("split_feature", "9999"),
    "a LightGBM tree with more leaves": instead("num_leaves=", "num_leaves=9"),
    "a LightGBM model of more classes": instead("num_class=3", "num_class=9999"),
    "a LightGBM objective of more classes": instead("num_class:3", "num_class:9999"),
    "a LightGBM model with other sizes": instead("tree_sizes=", "tree_sizes=1 "),
    "a LightGBM model with linear leaves": instead("is_linear=0", "is_linear=1"),
    "a LightGBM line behind a carriage return": instead("\nfeature_infos", "\rnum_tree_per_iteration=1\nfeature_infos"),
    "a LightGBM text that ends early": instead("\nfeature_infos", "\0\nfeature_infos"),
    "a LightGBM model that is not text": text(lambda whole: "tree"),
    "LightGBM threads behind a blank": value(LIGHT, "boosting_type", "gbdt num_threads=3000000"),
    "LightGBM threads behind a line end": value(LIGHT, "importance_type", "split\nnum_threads=3000000"),
    "LightGBM threads behind an objective": value(LIGHT, "_objective", "multiclass num_threads=3000000"),
    "LightGBM threads in a list": value(LIGHT, "_other_params", dict_node(metric=list_node("auc num_threads=3000000"))),
    "LightGBM threads among its own": value(LIGHT, "_other_params", dict_node(num_threads=3000000)),
    "LightGBM that skips its check of columns": value(
        LIGHT, "_other_params", dict_node(predict_disable_shape_check=True)
    ),
    "LightGBM with an absurd number": value(LIGHT, "num_leaves", 10**15),
    "LightGBM with an infinite number": value(LIGHT, "learning_rate", float("inf")),
    "LightGBM with a list of machines": value("Booster", "params", dict_node(machines="a")),
    "LightGBM threads in the booster": value("Booster", "params", dict_node(metric="auc nthread=9999")),
    "CatBoost with a million threads": value(CAT, "thread_count", 10**6),
    "CatBoost with a path": extra(CAT, loss_function="/etc/passwd"),
    "CatBoost with an object as a parameter": extra(CAT, eval_metric=object_node("sklearn.dummy", "DummyClassifier")),
    "CatBoost with a huge number": value(CAT, "depth", 10**12),
}

CHANGES = {**RECORDS, **DESCRIPTIONS, **TREES, **NEIGHBOURS, **PREPARATION, **PROCESSES, **NATIVE}
CHANGES |= {name: with_array(data) for name, data in ARRAYS.items()}


def crafted(path, every=1):
    """(name, bytes) of every crafted file, or of those on the container and every third of the others, say."""
    for attacks in (not_ours, odd_archives, lying_manifests):
        yield from attacks(path).items()
    for name in list(CHANGES)[::every]:
        file = Opened(path)
        CHANGES[name](file)
        yield name, file.seal()
