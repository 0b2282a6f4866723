"""Model files that someone made to do harm, and the process in which they are opened.

`crafted(path)` yields (name, bytes): variations of one honest file, each with one attack and, unless the attack is on
the container, with checksums that fit. `mutated(data, seed)` damages a file at random; `resealed(path, seed)` damages
its contents and repairs the checksums. `python -m tests.storage.hostile` opens files named on its input under an
audit hook and limits, and prints one line of JSON a file.
"""

from __future__ import annotations

import faulthandler
import hashlib
import io
import json
import os
import pickle
import re
import resource
import struct
import sys
import time
import zipfile
import zlib
from pathlib import Path

import numpy as np
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, SplineTransformer
from sklearn.svm import SVC

from softlearning.storage.arrays import write_npy

LIMIT = 64 << 20  # bytes that a file may unpack to in these tests
PATIENCE = 60  # seconds after which opening a file counts as a hang
MEMORY = 1 << 30  # bytes of address space that opening them may add


# --- one honest file


def honest_model():
    """A small model with a specialist of each kind that compiled code serves."""
    from catboost import CatBoostClassifier
    from lightgbm import LGBMClassifier

    from softlearning import SoftClassifier

    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(60, 2)), rng.integers(0, 4, 60)])
    y = np.digitize(X[:, 0] + X[:, 1] ** 2 + 0.3 * X[:, 2], [0.8, 2.0])
    quiet = {"verbose": 0, "allow_writing_files": False, "thread_count": 1}
    library = [
        ("forest", RandomForestClassifier(3, max_depth=4, random_state=0)),
        ("boosting", GradientBoostingClassifier(n_estimators=2, random_state=0)),
        ("hist", HistGradientBoostingClassifier(max_iter=2, categorical_features=[2], min_samples_leaf=5)),
        ("near", KNeighborsClassifier(3, algorithm="kd_tree", leaf_size=5)),
        ("brute", KNeighborsClassifier(3, algorithm="brute")),
        ("vectors", SVC(decision_function_shape="ovr")),
        ("spline", make_pipeline(SplineTransformer(n_knots=4), LogisticRegression())),
        ("hot", make_pipeline(OneHotEncoder(handle_unknown="ignore", sparse_output=False), LogisticRegression())),
        ("catboost", CatBoostClassifier(iterations=3, depth=3, **quiet)),
        ("lightgbm", LGBMClassifier(n_estimators=2, num_leaves=4, verbose=-1, min_child_samples=5, n_jobs=1)),
    ]
    model = SoftClassifier([*library, "logistic"], rule="uniform", cv=2, calibrate=False).fit(X, y)
    model._reference = X[:32]
    return model, X


class Opened:
    """The members of a model file, to be changed and sealed again."""

    def __init__(self, path):
        with zipfile.ZipFile(path) as file:
            self.members = {name: file.read(name) for name in file.namelist()}
        self.manifest = json.loads(self.members.pop("manifest.json"))
        self.magic = self.members.pop("softlearning-model")
        self.compression = zipfile.ZIP_DEFLATED

    @property
    def state(self):
        return json.loads(self.members["state.json"])

    @state.setter
    def state(self, tree):
        self.members["state.json"] = json.dumps(tree).encode()

    def estimator(self, kind):
        """(name, schema, files) of the estimator that holds a class of this name."""
        for name in self.members:
            if name.endswith(".skops"):
                with zipfile.ZipFile(io.BytesIO(self.members[name])) as file:
                    files = {n: file.read(n) for n in file.namelist()}
                if f'"{kind}"'.encode() in files["schema.json"]:
                    return name, json.loads(files.pop("schema.json")), files
        raise LookupError(kind)

    def put(self, name, schema, files, compress=zipfile.ZIP_STORED):
        text = schema if isinstance(schema, bytes) else json.dumps(schema).encode()
        self.members[name] = zipped({"schema.json": text, **files}, compress)

    def seal(self, **manifest):
        sums = {n: {"bytes": len(d), "sha256": hashlib.sha256(d).hexdigest()} for n, d in self.members.items()}
        listing = json.dumps({**self.manifest, "members": sums, **manifest}).encode()
        head = {"softlearning-model": self.magic, "manifest.json": listing}
        return zipped({**head, **self.members}, self.compression)


def zipped(members, compress=zipfile.ZIP_DEFLATED):
    """A zip of (name, bytes) pairs or a dict; the magic is never compressed."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, data in members.items() if isinstance(members, dict) else members:
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_STORED if name == "softlearning-model" else compress
            file.writestr(info, data)
    return buffer.getvalue()


class Evil:
    """What a pickle would run."""

    def __reduce__(self):
        return os.system, ("touch pwned",)


# --- attacks on the container


def not_ours(path):
    good = Path(path).read_bytes()
    yield "an empty file", b""
    yield "one byte", b"P"
    yield "a pickle", pickle.dumps(Evil())
    yield "a pickle behind the magic of a zip", b"PK\x03\x04" + pickle.dumps(Evil())
    yield "a plain text", b"weights: 1.0\n"
    yield "an executable", b"\x7fELF" + bytes(100)
    yield "a gzip", b"\x1f\x8b\x08\x00" + zlib.compress(good)
    yield "an array", write_npy(np.zeros(3))
    yield "a zip with a pickle, as torch writes", zipped({"archive/data.pkl": pickle.dumps(Evil())})
    yield "a bare skops file", zipped({"schema.json": b"{}"})
    yield "junk before the zip", b"#!/bin/sh\n" + good
    yield "the first half", good[: len(good) // 2]
    yield "all but the last byte", good[:-1]
    yield "a zip without members", b"PK\x05\x06" + bytes(18)


def odd_archives(path):
    file = Opened(path)
    sealed = file.seal()
    pairs = [("softlearning-model", file.magic), *zip_members(sealed)]
    yield "the magic is not first", zipped([pairs[1], pairs[0], *pairs[2:]])
    for name in (
        "../evil",
        "/etc/evil",
        "a/../../b",
        "C:\\evil",
        "evil\nname",
        "a//b",
        "dir/",
        "é",
        "x" * 300,
        "a.b.c",
    ):
        yield f"a member called {name[:12]!r}", zipped([*pairs, (name, b"x")])
    with_twice = zipped([*pairs, ("state.jsoN", b"{}")]).replace(b"state.jsoN", b"state.json")
    yield "a name twice", with_twice
    yield "an extra member", zipped([*pairs, ("extra.npy", b"x")])
    yield "a missing member", zipped([pair for pair in pairs if pair[0] != "state.json"])
    yield "no manifest", zipped([pair for pair in pairs if pair[0] != "manifest.json"])
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        yield f"packed with method {method}", zipped(pairs, method)
    yield "a member that is encrypted", patched_directory(sealed, "state.json", 8, struct.pack("<H", 1))
    yield "a member that claims 3 GB", patched_directory(sealed, "state.json", 24, struct.pack("<I", 3 << 30))
    yield "a member that claims nothing", patched_directory(sealed, "state.json", 24, struct.pack("<I", 0))
    first = find_directory(sealed, "softlearning-model")[1]
    yield "two members in one place", patched_directory(sealed, "state.json", 42, struct.pack("<I", first))
    yield "a bomb", zipped([*pairs, ("bomb.npy", bytes(40 << 20))])
    yield (
        "more than the limit",
        zipped([*pairs, ("large.npy", np.random.default_rng(0).bytes(65 << 20))], zipfile.ZIP_STORED),
    )
    yield "a hundred thousand members", zipped([*pairs, *((f"m{k}", b"") for k in range(100_001))], zipfile.ZIP_STORED)


def zip_members(data):
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        return [(name, file.read(name)) for name in file.namelist() if name != "softlearning-model"]


def find_directory(data, name):
    """Where the entry of a member stands in the directory, and where its data begin."""
    at = data.rindex(b"PK\x01\x02", 0, data.rindex(name.encode()))
    return at, struct.unpack_from("<I", data, at + 42)[0]


def patched_directory(data, name, offset, value):
    at, _ = find_directory(data, name)
    return data[: at + offset] + value + data[at + offset + len(value) :]


def lying_manifests(path):
    file = Opened(path)
    members = dict(zip_members(file.seal()))
    head = [("softlearning-model", file.magic)]
    listing = json.loads(members["manifest.json"])

    def with_manifest(text):
        pairs = [(n, text if n == "manifest.json" else d) for n, d in members.items()]
        return zipped(head + pairs, zipfile.ZIP_STORED)

    wrong_sum = json.loads(json.dumps(listing))
    wrong_sum["members"]["state.json"]["sha256"] = "0" * 64
    wrong_size = json.loads(json.dumps(listing))
    wrong_size["members"]["state.json"]["bytes"] += 1
    yield "a wrong checksum", with_manifest(json.dumps(wrong_sum).encode())
    yield "a wrong size", with_manifest(json.dumps(wrong_size).encode())
    yield "a manifest that is no JSON", with_manifest(b"import os")
    yield "a manifest that is a list", with_manifest(b"[1, 2]")
    yield "a manifest of brackets", with_manifest(b"[" * 100_000)
    yield "a manifest of many lists", with_manifest(b'{"a":[' + b"[]," * 1_000_000 + b"[]]}")
    yield "a manifest with a key twice", with_manifest(b'{"members": {}, "members": {}}')
    yield "a manifest with NaN", with_manifest(b'{"members": NaN}')
    yield "a manifest with a huge number", with_manifest(b'{"members": ' + b"9" * 5000 + b"}")
    yield "a manifest that is not UTF-8", with_manifest(b'{"members": "\xff\xfe"}')
    yield "members that are a list", file.seal(members=[])
    yield "members with odd sums", file.seal(members=dict.fromkeys(file.members, 1))
    yield "no versions", file.seal(versions=None)
    yield "an older scikit-learn", file.seal(versions={**file.manifest["versions"], "scikit-learn": "1.2.0"})
    yield "a newer softlearning", file.seal(versions={**file.manifest["versions"], "softlearning": "9.0"})
    yield "versions of an odd type", file.seal(versions={"softlearning": [1], "scikit-learn": {}})
    for magic in (b"2", b"", b"1 " * 1000):
        file.magic = magic
        yield f"format {magic[:4]!r}", file.seal()


# --- attacks on the state tree


def find(tree, test):
    """The first node of a tree that passes a test."""
    if test(tree):
        return tree
    for child in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        found = find(child, test)
        if found is not None:
            return found
    return None


def record(tree, name):
    return find(tree, lambda t: isinstance(t, dict) and t.get("type") == name)["value"]


def bad_states(path):
    def changed(change):
        file = Opened(path)
        tree = file.state
        result = change(tree, file)
        file.state = tree if result is None else result
        return file.seal()

    def with_weights(values):
        def change(tree, file):
            name = record(tree, "Solution")["weights"]["value"]
            file.members[name] = write_npy(np.asarray(values, dtype=float))
            shown = record(tree, "SoftClassifier")["weights_"]["value"]["value"]
            file.members[shown] = file.members[name]

        return changed(change)

    def setting(name, key, value):
        return changed(lambda tree, file: record(tree, name).update({key: value}))

    def new_array(array):
        return lambda file: (
            file.members.update({"arrays/new.npy": write_npy(array)}),
            {"$": "array", "value": "arrays/new.npy"},
        )[1]

    yield "weights of NaN", with_weights([np.nan] * 11)
    yield "weights off the simplex", with_weights([0.3] * 11)
    yield "weights below zero", with_weights([2.0, -1.0] + [0.0] * 9)
    yield "too many weights", with_weights([1 / 12] * 12)
    yield "weights in a square", with_weights(np.full((11, 1), 1 / 11))
    yield (
        "weights that differ from those shown",
        changed(
            lambda tree, file: file.members.update(
                {record(tree, "Solution")["weights"]["value"]: write_npy(np.eye(11)[0])}
            )
        ),
    )
    yield "no state", changed(lambda tree, file: {})
    yield "a state that is a list", changed(lambda tree, file: [tree])
    yield "a state with more", changed(lambda tree, file: {**tree, "code": "1"})
    yield (
        "a value of an unknown kind",
        changed(lambda tree, file: {**tree, "model": {"$": "python", "value": "exit()"}}),
    )
    yield "a kind that is a list", changed(lambda tree, file: {**tree, "model": {"$": [1]}})
    yield (
        "a record of another module",
        changed(lambda tree, file: {**tree, "model": {"$": "record", "type": "os.system", "value": {}}}),
    )
    yield (
        "a record without fields",
        changed(lambda tree, file: {**tree, "model": {"$": "record", "type": "Schema", "value": 1}}),
    )
    yield "a record with a field more", setting("Team", "extra", 1)
    yield "a record with a field less", changed(lambda tree, file: record(tree, "Team").pop("classes") and None)
    yield (
        "a schema in place of a team",
        changed(lambda tree, file: record(tree, "Learned").update(team=record(tree, "Data")["schema"])),
    )
    yield "a model that hides a method", setting("SoftClassifier", "predict_proba", 1)
    yield "a model with another class", setting("SoftClassifier", "__class__", "x")
    yield "a model with an odd attribute", setting("SoftClassifier", "a b", 1)
    yield "a model without a parameter", changed(lambda tree, file: record(tree, "SoftClassifier").pop("rule") and None)
    yield "an array that is not there", setting("Solution", "weights", {"$": "array", "value": "arrays/999.npy"})
    yield "an array that is an estimator", setting("Solution", "weights", {"$": "array", "value": "estimators/1.skops"})
    yield "an estimator that is not there", setting("Member", "model", {"$": "estimator", "value": "nowhere"})
    yield "an estimator that is an array", setting("Member", "model", {"$": "estimator", "value": "arrays/0.npy"})
    yield "a specialist that is a number", setting("Member", "model", 3)
    yield "a view that is not there", setting("Member", "view", "nowhere")
    yield "a view with odd attributes", setting("View", "transform", 1)
    yield "a specialist of an unknown family", setting("Specialist", "family", "evil")
    yield "a recipe that is not ours", setting("Specialist", "make", ["os", "system"])
    yield "values within values", changed(lambda tree, file: {**tree, "reference": nested(500)})
    yield "keys that are lists", changed(lambda tree, file: {**tree, "reference": {"$": "items", "value": [[[1], 2]]}})
    yield (
        "a float that is code",
        changed(lambda tree, file: {**tree, "reference": {"$": "float", "value": "__import__('os')"}}),
    )
    yield "a scalar that is a word", changed(lambda tree, file: {**tree, "reference": {"$": "scalar", "value": 1}})
    yield (
        "objects of a negative shape",
        changed(lambda tree, file: {**tree, "reference": {"$": "objects", "shape": [-7, 3], "value": [1]}}),
    )
    yield (
        "an index without end",
        changed(
            lambda tree, file: {
                **tree,
                "reference": {
                    "$": "series",
                    "value": 1,
                    "name": None,
                    "index": {"$": "range", "value": [0, 10**15, 1], "name": None},
                },
            }
        ),
    )
    yield (
        "three classes called two",
        changed(lambda tree, file: record(tree, "SoftClassifier").update(classes_=new_array(np.arange(2))(file))),
    )
    yield "a team of two classes", setting("Team", "classes", 2)
    yield (
        "out-of-fold predictions of another shape",
        changed(lambda tree, file: record(tree, "CrossFit").update(oof=new_array(np.zeros((3, 3, 3)))(file))),
    )
    yield (
        "reference rows too narrow",
        changed(
            lambda tree, file: {
                **tree,
                "reference": {
                    "$": "tuple",
                    "value": [new_array(np.zeros((4, 1)))(file), tree["reference"]["value"][1]],
                },
            }
        ),
    )
    yield (
        "other reference answers",
        changed(
            lambda tree, file: {
                **tree,
                "reference": {
                    "$": "tuple",
                    "value": [tree["reference"]["value"][0], new_array(np.zeros((32, 3)))(file)],
                },
            }
        ),
    )
    yield "a sparse table that points outside", changed(sparse_outside)
    yield "categories that are not there", changed(codes_outside)


def nested(depth):
    tree = []
    for _ in range(depth):
        tree = [tree]
    return tree


def put_arrays(file, *arrays):
    names = [f"arrays/x{k}.npy" for k in range(len(arrays))]
    file.members.update({name: write_npy(array) for name, array in zip(names, arrays)})
    return [{"$": "array", "value": name} for name in names]


def sparse_outside(tree, file):
    parts = put_arrays(file, np.ones(2), np.array([0, 10**6], dtype=np.int32), np.array([0, 1, 2], dtype=np.int32))
    return {**tree, "reference": {"$": "tuple", "value": [{"$": "csr", "shape": [2, 3], "value": parts}, 1]}}


def codes_outside(tree, file):
    (codes,) = put_arrays(file, np.array([0, 99], dtype=np.int8))
    words = {"$": "index", "value": {"$": "strings", "value": ["a"]}, "name": None}
    return {**tree, "reference": {"$": "category", "codes": codes, "categories": words, "ordered": False}}


# --- attacks on arrays


def header(text, version=b"\x01\x00", payload=b""):
    padded = text.encode() + b" " * 10 + b"\n"
    return b"\x93NUMPY" + version + struct.pack("<H", len(padded)) + padded + payload


def bad_arrays(path):
    def with_array(data):
        file = Opened(path)
        name = record(file.state, "Solution")["weights"]["value"]
        file.members[name] = data
        return file.seal()

    eval_me = "{'descr': __import__('os').system('touch pwned'), 'fortran_order': False, 'shape': (1,)}"
    yield (
        "an array of objects with a pickle",
        with_array(header("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", payload=pickle.dumps(Evil()))),
    )
    yield "a pickle in place of an array", with_array(pickle.dumps(Evil()))
    yield "a zip of arrays in place of an array", with_array(zipped({"a.npy": write_npy(np.zeros(2))}))
    yield "a header that calls a function", with_array(header(eval_me))
    yield "a header that is no dict", with_array(header("[1, 2]"))
    for shape in ("(10**18,)", "(1000000000000,)", "(-1,)", "(-5, -5)", "(3.5,)", "('a',)", "(True, 10)"):
        yield (
            f"an array of shape {shape}",
            with_array(header(f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}", payload=bytes(80))),
        )
    for dtype in ("'|V0'", "'<U0'", "'|V1000000000'", "[('a', '<f8')]", "'<c99'", "'O'", "[('a', '|O')]", "None"):
        yield (
            f"an array of {dtype}",
            with_array(header(f"{{'descr': {dtype}, 'fortran_order': False, 'shape': (10,)}}", payload=bytes(80))),
        )
    yield (
        "an array of nothing with a huge shape",
        with_array(header("{'descr': '<f8', 'fortran_order': False, 'shape': (0, 10000000000)}")),
    )
    yield (
        "an array of version 9",
        with_array(header("{'descr': '<f8', 'fortran_order': False, 'shape': (0,)}", version=b"\x09\x00")),
    )
    yield "an array cut short", with_array(write_npy(np.full(11, 1 / 11))[:-8])
    yield "an array with a tail", with_array(write_npy(np.full(11, 1 / 11)) + b"tail")
    yield "an empty array file", with_array(b"")


# --- attacks on the description of estimators


def node(loader, module, name, **content):
    return {"__class__": name, "__module__": module, "__loader__": loader, **content}


def text_node(value):
    return node("JsonNode", "builtins", "str", content=json.dumps(value), is_json=True)


def tuple_node(*items):
    return node("TupleNode", "builtins", "tuple", content=list(items))


def dict_node(**items):
    types = node("ListNode", "builtins", "list", content=[node("TypeNode", "builtins", "str") for _ in items])
    return node("DictNode", "builtins", "dict", content=items, key_types=types)


def list_node(*items):
    return node("ListNode", "builtins", "list", content=list(items))


def partial_node(func, namespace=None):
    content = {"func": func, "args": tuple_node(text_node("1")), "kwds": dict_node(), "namespace": namespace}
    return node("PartialNode", "functools", "partial", content={**content, "namespace": namespace or text_node(None)})


def reduced(loader, module, name, *args, **state):
    """A node that is made by a call with arguments."""
    return node(
        loader, module, name, __reduce__={"args": tuple_node(*map(text_node, args))}, content=dict_node(**state)
    )


def operator_node(name, argument):
    return node("OperatorFuncNode", "operator", name, attrs=tuple_node(text_node(argument)))


def constructed(module, name, argument):
    return node("ConstructorFromReduceNode", module, name, content=tuple_node(text_node(argument)))


def with_keys(*types):
    return {**dict_node(a=text_node(1)), "key_types": list_node(*types)}


def object_node(module, name, **state):
    return node("ObjectNode", module, name, content=dict_node(**state))


def function(module, name):
    return node("FunctionNode", module, name)


LOGISTIC = ("sklearn.linear_model._logistic", "LogisticRegression")
GENERATOR = {"bit_generator": dict_node(bit_generator=text_node("seed")), "seed_seq": dict_node()}
OLD_FUNCTION = {"module_path": "os", "function": "system"}
SYSTEM = function("posix", "system")
CALLS = {
    "a function that runs a command": SYSTEM,
    "eval as a function": function("builtins", "eval"),
    "eval as a type": node("TypeNode", "builtins", "eval"),
    "exec in a partial": partial_node(function("builtins", "exec")),
    "a partial with a namespace": partial_node(function("numpy", "exp"), dict_node(a=text_node(1))),
    "a partial of a type": partial_node(node("TypeNode", "builtins", "str")),
    "a method caller": operator_node("methodcaller", "predict"),
    "an operator node that walks to exec": operator_node("__builtins__.exec", "x"),
    "an attribute getter to globals": operator_node("attrgetter", "__class__.__init__.__globals__"),
    "a method of a trusted class": node(
        "MethodNode", *LOGISTIC, content={"func": "fit", "obj": object_node(*LOGISTIC)}
    ),
    "a method that walks by dots": node(
        "MethodNode", "builtins", "str", content={"func": "__init__.__globals__", "obj": text_node("x")}
    ),
    "a process as an object": object_node("subprocess", "Popen", args=text_node("touch pwned")),
    "a process from its constructor": constructed("subprocess", "Popen", "true"),
    "a path from its constructor": constructed("pathlib", "PosixPath", "/etc/passwd"),
    "a cached node": node("CachedNode", "builtins", "str", __id__=7),
    "a node with an identity": {**text_node(1), "__id__": 7},
    "a function of an older protocol": node("FunctionNode", "numpy", "exp.__class__", content=OLD_FUNCTION),
    "a loader that is not there": node("EvilNode", "builtins", "str"),
    "a loader that is a list": {**text_node(1), "__loader__": ["JsonNode"]},
    "a class name with dots": object_node("sklearn", "pipeline.Pipeline"),
    "a class with a name alike": object_node("sklearn.pipeline", "Pipeline2"),
    "a class from another module": object_node("evil.sklearn.pipeline", "Pipeline"),
    "an estimator off the list": object_node("sklearn.cluster._kmeans", "KMeans"),
    "a memory that caches on disk": object_node("joblib.memory", "Memory", location=text_node("pwned")),
    "a default dict made by a command": node(
        "DefaultDictNode", "collections", "defaultdict", content={"main": dict_node(), "default_factory": SYSTEM}
    ),
    "a generator by name": node("RandomGeneratorNode", "numpy.random._generator", "Generator", content=GENERATOR),
    "a quantile forest": node("QuantileForestNode", "quantile_forest._quantile_forest_fast", "QuantileForest"),
    "a loss that is a function": reduced("LossNode", "builtins", "eval", "1"),
    "a loss with a state": reduced("LossNode", "sklearn._loss._loss", "CyHuberLoss", 1.0, a=text_node(1)),
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


def bad_descriptions(path):
    def with_schema(change, kind="KNeighborsClassifier", **options):
        file = Opened(path)
        name, schema, files = file.estimator(kind)
        result = change(schema, files)
        file.put(name, schema if result is None else result, files, **options)
        return file.seal()

    def with_parameter(value):
        return with_schema(lambda schema, files: schema["content"]["content"].update(leaf_size=value))

    for name, call in CALLS.items():
        yield f"{name}, as a parameter", with_parameter(call)
    for name in (
        "a function that runs a command",
        "exec in a partial",
        "a process as an object",
        "a method that walks by dots",
    ):
        yield f"{name}, as the whole", with_schema(lambda schema, files, call=CALLS[name]: {**call, "protocol": 2})
    for protocol in (0, 1, 3, True, "2", None):
        yield f"skops protocol {protocol!r}", with_schema(lambda schema, files, p=protocol: schema.update(protocol=p))
    yield "a description that is no JSON", with_schema(lambda schema, files: b"{'a': 1}")
    yield "a description of brackets", with_schema(lambda schema, files: b"[" * 200_000)
    yield "a description with a key twice", with_schema(lambda schema, files: b'{"protocol": 2, "protocol": 2}')
    yield "a description that is too long", with_schema(lambda schema, files: b'{"a":"' + noise(3 << 20) + b'"}')
    yield "a deep description", with_parameter(deep_node(400))
    yield "an inner archive that is packed", with_schema(lambda schema, files: None, compress=zipfile.ZIP_DEFLATED)
    yield (
        "a bomb in the inner archive",
        with_schema(lambda schema, files: files.update({"999.npy": bytes(20 << 20)}), compress=zipfile.ZIP_DEFLATED),
    )
    yield "an inner member with a bad name", with_schema(lambda schema, files: files.update({"../evil.npy": b""}))
    yield (
        "an archive within the inner archive",
        with_schema(
            lambda schema, files: files.update({next(n for n in files if n.endswith(".npy")): zipped({"a": b"x"})})
        ),
    )
    yield (
        "a method in the place of an attribute",
        with_schema(lambda schema, files: add_attribute(schema, "predict_proba", node("FunctionNode", "numpy", "exp"))),
    )
    yield (
        "a private method in the place of an attribute",
        with_schema(
            lambda schema, files: add_attribute(
                schema, "_validate_X_predict", node("FunctionNode", "numpy", "absolute")
            ),
            kind="RandomForestClassifier",
        ),
    )
    yield (
        "a billion threads",
        with_schema(lambda schema, files: schema["content"]["content"].update(n_jobs=text_node(10**9))),
    )
    yield (
        "threads that are words",
        with_schema(lambda schema, files: schema["content"]["content"].update(n_jobs=text_node("a"))),
    )


def add_attribute(schema, name, value):
    schema["content"]["content"][name] = value
    schema["content"]["key_types"]["content"].append(node("TypeNode", "builtins", "str"))


def noise(size):
    return np.random.default_rng(0).bytes(size // 2).hex().encode()


def deep_node(depth):
    tree = text_node(1)
    for _ in range(depth):
        tree = node("ListNode", "builtins", "list", content=[tree])
    return tree


# --- attacks on numbers that compiled code follows


def bad_numbers(path):
    def with_array(kind, owner, key, change, nth=0):
        """One array of one object changed: `change` takes the array and returns another."""
        file = Opened(path)
        name, schema, files = file.estimator(kind)
        place = nth_object(schema, owner, key, nth)
        array = np.load(io.BytesIO(files[place[key]["file"]]), allow_pickle=False).copy()
        files[place[key]["file"]] = write_npy(change(array))
        file.put(name, schema, files)
        return file.seal()

    def field(name, index, value):
        def change(array):
            array[name][index] = value
            return array

        return change

    def with_value(kind, owner, key, value, nth=0):
        file = Opened(path)
        name, schema, files = file.estimator(kind)
        nth_object(schema, owner, key, nth)[key] = value if isinstance(value, dict) else text_node(value)
        file.put(name, schema, files)
        return file.seal()

    def cut(array):
        return array[:-1]

    def narrow(array):
        return np.ascontiguousarray(array[:, :-1])

    forest, tree = "RandomForestClassifier", "Tree"
    yield "a child that is its own parent", with_array(forest, tree, "nodes", field("left_child", 0, 0))
    yield "a child that comes before", with_array(forest, tree, "nodes", field("right_child", 1, 0))
    yield "a child beyond the end", with_array(forest, tree, "nodes", field("left_child", 0, 10**6))
    yield "a child far below zero", with_array(forest, tree, "nodes", field("right_child", 0, -(10**6)))
    yield (
        "a node with two parents",
        with_array(forest, tree, "nodes", lambda a: field("left_child", 0, a["right_child"][0])(a)),
    )
    yield (
        "a leaf with a child",
        with_array(
            forest,
            tree,
            "nodes",
            lambda a: field("right_child", int(np.flatnonzero(a["left_child"] == -1)[0]), len(a) - 1)(a),
        ),
    )
    yield "a column that is not there", with_array(forest, tree, "nodes", field("feature", 0, 99))
    yield "a column below zero", with_array(forest, tree, "nodes", field("feature", 0, -2))
    yield "nodes of another type", with_array(forest, tree, "nodes", lambda a: np.zeros(len(a)))
    yield "no nodes", with_array(forest, tree, "nodes", lambda a: a[:0])
    yield "too few values", with_array(forest, tree, "values", cut)
    yield "values of another type", with_array(forest, tree, "values", lambda a: a.astype(np.float32))
    yield "more nodes than there are", with_value(forest, tree, "node_count", 10**6)
    yield "another depth", with_value(forest, tree, "max_depth", 1)
    yield "nodes that are a word", with_value(forest, tree, "nodes", "nodes")
    yield "a tree for more columns", with_value(forest, "DecisionTreeClassifier", "n_features_in_", 99, nth=1)
    yield "a tree for more outputs", with_value(forest, "DecisionTreeClassifier", "n_outputs_", 5, nth=1)
    yield (
        "boosting with more trees a round",
        with_value("GradientBoostingClassifier", "GradientBoostingClassifier", "n_trees_per_iteration_", 9),
    )
    yield (
        "boosting for fewer columns",
        with_value("GradientBoostingClassifier", "GradientBoostingClassifier", "n_features_in_", 1),
    )
    yield (
        "boosting with a narrow first guess",
        with_array("GradientBoostingClassifier", "DummyClassifier", "class_prior_", cut),
    )
    yield "a bare tree", with_value(forest, forest, "class_weight", forest_tree(path))
    yield (
        "boosting that is in training",
        with_attribute(path, "HistGradientBoostingClassifier", "_in_fit", text_node(True)),
    )

    hist, predictor = "HistGradientBoostingClassifier", "TreePredictor"
    yield "a histogram tree that loops", with_array(hist, predictor, "nodes", field("left", 0, 0))
    yield "a histogram tree that leads outside", with_array(hist, predictor, "nodes", field("right", 0, 10**6))
    yield "a histogram tree with a far column", with_array(hist, predictor, "nodes", field("feature_idx", 0, 10**6))
    yield "a histogram tree with a column below zero", with_array(hist, predictor, "nodes", field("feature_idx", 0, -1))
    yield (
        "a histogram tree with sets that are not there",
        with_array(
            hist,
            predictor,
            "nodes",
            lambda a: field("bitset_idx", 0, 10**6)(field("is_categorical", 0, 1)(field("feature_idx", 0, 0)(a))),
        ),
    )
    yield (
        "a histogram tree with sets for numbers",
        with_array(
            hist,
            predictor,
            "nodes",
            lambda a: field("bitset_idx", 0, 0)(field("is_categorical", 0, 1)(field("feature_idx", 0, 1)(a))),
        ),
    )
    yield (
        "sets that are too narrow",
        with_array(hist, predictor, "raw_left_cat_bitsets", lambda a: np.zeros((3, 2), np.uint32)),
    )
    yield "bins for another number of columns", with_array(hist, "_BinMapper", "is_categorical_", cut)
    yield "trees that are words", with_value(hist, hist, "_predictors", "trees")
    yield "an encoder that is another", with_value(hist, hist, "_preprocessor", "encoder")
    yield (
        "an encoder that drops a column",
        with_value(
            hist,
            "ColumnTransformer",
            "_transformer_to_input_indices",
            dict_node(
                encoder=list_node(),
                numerical=list_node(text_node(0)),
            ),
        ),
    )

    near = "KDTree"
    for position, what, change in (
        (1, "neighbours that are not there", lambda a: a + 10**6),
        (1, "neighbours twice", lambda a: a * 0),
        (2, "nodes with far rows", field("idx_end", 0, 10**9)),
        (2, "nodes that begin below zero", field("idx_start", 0, -5)),
        (2, "a last level without leaves", lambda a: field("is_leaf", len(a) - 1, 0)(a)),
        (2, "too few nodes", cut),
        (3, "bounds of another shape", lambda a: a[:, :1].copy()),
        (0, "fewer rows", cut),
    ):
        yield f"a search tree with {what}", with_array(near, near, position, change)
    yield "a search tree of many levels", with_value(near, near, 5, 60)
    yield "a search tree with another distance", with_value(near, near, 11, text_node("euclidean"))
    yield "a label that is not there", with_array(near, "KNeighborsClassifier", "_y", lambda a: a + 1000)
    yield "more neighbours than rows", with_value(near, "KNeighborsClassifier", "n_neighbors", 10**6)
    yield "a distance by name", with_value(near, "KNeighborsClassifier", "effective_metric_", "mahalanobis")
    yield "rows of another width", with_array(near, "KNeighborsClassifier", "_fit_X", narrow)
    yield (
        "weights by a function",
        with_value(near, "KNeighborsClassifier", "weights", node("FunctionNode", "numpy", "exp")),
    )

    svc = "SVC"
    yield "support vectors that are too few", with_array(svc, svc, "support_vectors_", cut)
    yield "support vectors that are too narrow", with_array(svc, svc, "support_vectors_", narrow)
    yield "counts of support vectors that lie", with_array(svc, svc, "_n_support", lambda a: a * 100)
    yield "counts below zero", with_array(svc, svc, "_n_support", lambda a: a - 50)
    yield "too few offsets", with_array(svc, svc, "_intercept_", cut)
    yield "too few coefficients", with_array(svc, svc, "_dual_coef_", narrow)
    yield "probabilities for another number of pairs", with_array(svc, svc, "_probA", lambda a: np.ones(1))
    yield "a kernel given before", with_value(svc, svc, "kernel", "precomputed", nth=1)
    yield "another machine", with_attribute(path, svc, "_impl", text_node("one_class"))

    yield "knots that fall", with_array("SplineTransformer", "BSpline", "_t", lambda a: a[::-1].copy())
    yield "knots that are not finite", with_array("SplineTransformer", "BSpline", "_t", lambda a: a * np.nan)
    yield "too few knots", with_array("SplineTransformer", "BSpline", "_t", lambda a: a[:5])
    yield "too few coefficients of a spline", with_array("SplineTransformer", "BSpline", "_c", lambda a: a[:2])
    yield "a spline of degree 1000", with_value("SplineTransformer", "BSpline", "k", 1000)
    yield (
        "more spline columns than there are",
        with_value("SplineTransformer", "SplineTransformer", "n_features_out_", 10**7),
    )
    yield (
        "one-hot columns that lie",
        with_value(
            "OneHotEncoder",
            "OneHotEncoder",
            "_n_features_outs",
            list_node(*[text_node(1)] * 3),
        ),
    )
    yield "one-hot categories out of order", categories_backwards(path)
    yield from bad_natives(path)


def forest_tree(path):
    _, schema, _ = Opened(path).estimator("RandomForestClassifier")
    return find(schema, lambda t: isinstance(t, dict) and t.get("__loader__") == "TreeNode")


def categories_backwards(path):
    file = Opened(path)
    name, schema, files = file.estimator("OneHotEncoder")
    member = nth_object(schema, "OneHotEncoder", "categories_")["categories_"]["content"][0]["file"]
    files[member] = write_npy(np.load(io.BytesIO(files[member]))[::-1].copy())
    file.put(name, schema, files)
    return file.seal()


def with_attribute(path, kind, name, value):
    file = Opened(path)
    member, schema, files = file.estimator(kind)
    place = find(
        schema, lambda t: isinstance(t, dict) and t.get("__class__") == kind and t.get("__loader__") == "ObjectNode"
    )
    add_attribute(place, name, value)
    file.put(member, schema, files)
    return file.seal()


def nth_object(schema, owner, key, nth=0):
    """The attributes (or the tuple) of the nth object of a class that has this one."""
    found = []

    def collect(tree):
        if (
            isinstance(tree, dict)
            and tree.get("__class__") == owner
            and tree["__loader__"] in ("ObjectNode", "TreeNode")
        ):
            place = tree["content"]["content"]
            found.extend([place] if isinstance(place, list) or key in place else [])
        for child in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
            collect(child)

    collect(schema)
    return found[nth]


def bad_natives(path):
    """Models of CatBoost and LightGBM with indices that lead outside."""

    def with_blob(change):
        file = Opened(path)
        name, schema, files = file.estimator("CatBoostClassifier")
        key = next(n for n in files if n.endswith(".bin"))
        files[key] = change(files[key])
        file.put(name, schema, files)
        return file.seal()

    def with_text(old, new):
        file = Opened(path)
        name, schema, files = file.estimator("Booster")
        place = nth_object(schema, "Booster", "_handle")
        text = json.loads(place["_handle"]["content"])
        changed = new(text) if callable(new) else text.replace(old, new, 1)
        assert changed != text
        place["_handle"] = text_node(resized(changed))
        file.put(name, schema, files)
        return file.seal()

    def depths(blob):
        """The vector of depths (three trees of depth 3) with one made absurd."""
        at = blob.index(struct.pack("<4I", 3, 3, 3, 3))
        return blob[: at + 4] + struct.pack("<i", 30) + blob[at + 8 :]

    yield "a CatBoost model of random bytes", with_blob(lambda blob: b"CBM1" + np.random.default_rng(0).bytes(5000))
    yield "a CatBoost model cut in half", with_blob(lambda blob: blob[: len(blob) // 2])
    yield "a CatBoost model that is a pickle", with_blob(lambda blob: pickle.dumps(Evil()))
    yield "a CatBoost model that claims 4 GB", with_blob(lambda blob: blob[:4] + b"\xfe\xff\xff\xff" + blob[8:])
    yield "a CatBoost model with a tail", with_blob(lambda blob: blob + bytes(64))
    yield "a CatBoost tree of depth 30", with_blob(depths)
    yield "a LightGBM child far away", with_text(None, lambda text: with_first(text, "left_child", "99999"))
    yield "a LightGBM tree that loops", with_text(None, lambda text: with_first(text, "left_child", "0"))
    yield "a LightGBM column far away", with_text(None, lambda text: with_first(text, "split_feature", "9"))
    yield "a LightGBM tree with more leaves", with_text("num_leaves=", "num_leaves=9")
    yield "a LightGBM model of more classes", with_text("num_class=3", "num_class=9999")
    yield "a LightGBM objective of more classes", with_text("num_class:3", "num_class:9999")
    yield "a LightGBM model with other sizes", with_text("tree_sizes=", "tree_sizes=1 ")
    yield "a LightGBM model with linear leaves", with_text("is_linear=0", "is_linear=1")
    yield "a LightGBM model that is no text", with_text(None, lambda text: "tree")


def resized(text):
    """The same with sizes of trees that fit again, where it still has trees."""
    if "end of trees" not in text or "tree_sizes=1 " in text:
        return text
    trees = text[text.index("Tree=0") : text.index("end of trees")]
    sizes = [len("Tree=" + part) for part in trees.split("Tree=")[1:]]
    line = next(line for line in text.split("\n") if line.startswith("tree_sizes="))
    return text.replace(line, "tree_sizes=" + " ".join(map(str, sizes)), 1)


def with_first(text, name, number):
    """The first number of the first line of a name exchanged."""
    line = next(line for line in text.split("\n") if line.startswith(f"{name}="))
    return text.replace(line, f"{name}={number}" + line[line.find(" ") :], 1)


def crafted(path):
    """(name, bytes) of every crafted file."""
    for attacks in (not_ours, odd_archives, lying_manifests, bad_states, bad_arrays, bad_descriptions, bad_numbers):
        yield from attacks(path)


# --- damage at random


def mutated(data, seed):
    """A file with flipped bits, overwritten or missing bytes, or two exchanged members."""
    rng = np.random.default_rng(seed)
    kind = seed % 5
    if kind == 4:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            members = [(name, file.read(name)) for name in file.namelist()]
        a, b = 2 + rng.permutation(len(members) - 2)[:2]
        members[a], members[b] = (members[a][0], members[b][1]), (members[b][0], members[a][1])
        return zipped(members)
    damaged = bytearray(data)
    if kind == 3:
        start = int(rng.integers(len(damaged)))
        return (
            bytes(damaged[:start])
            if rng.random() < 0.5
            else bytes(damaged[:start] + damaged[start + int(rng.integers(1, 200)) :])
        )
    for _ in range(int(rng.integers(1, 9))):
        at = int(rng.integers(len(damaged)))
        damaged[at] = damaged[at] ^ (1 << int(rng.integers(8))) if kind < 2 else int(rng.integers(256))
    return bytes(damaged)


def resealed(path, seed):
    """A file whose contents were damaged by someone who repairs the checksums; a third of them in native models."""
    rng = np.random.default_rng(seed)
    file = Opened(path)
    if seed % 3 == 0:
        return damaged_native(file, rng)
    name = str(rng.choice(sorted(file.members)))
    if not name.endswith(".skops"):
        file.members[name] = damaged_bytes(file.members[name], rng)
        return file.seal()
    with zipfile.ZipFile(io.BytesIO(file.members[name])) as inner:
        files = {n: inner.read(n) for n in inner.namelist()}
    chosen = str(rng.choice(sorted(files)))
    files[chosen] = damaged_bytes(files[chosen], rng)
    file.put(name, files.pop("schema.json"), files)
    return file.seal()


def damaged_native(file, rng):
    """Bytes of the CatBoost model, or numbers of the LightGBM model, exchanged for odd ones."""
    if rng.random() < 0.5:
        name, schema, files = file.estimator("CatBoostClassifier")
        key = next(n for n in files if n.endswith(".bin"))
        files[key] = damaged_bytes(files[key], rng)
    else:
        name, schema, files = file.estimator("Booster")
        place = nth_object(schema, "Booster", "_handle")
        text = json.loads(place["_handle"]["content"])
        numbers = list(re.finditer(r"-?\d+(\.\d+)?", text[: text.index("end of trees")]))
        at = numbers[int(rng.integers(len(numbers)))]
        odd = str(rng.choice(["0", "1", "-1", "-2", "3", "99999", "-99999", "2147483647", "nan", "1e308", "x", ""]))
        place["_handle"] = text_node(resized(text[: at.start()] + odd + text[at.end() :]))
    file.put(name, schema, files)
    return file.seal()


def damaged_bytes(data, rng):
    """A few numbers exchanged for odd ones: in text for other digits, in binary for extreme words."""
    data = bytearray(data)
    odd = (0, 1, -1, 7, 255, 65535, 10**6, 2**31 - 1, -(2**31))
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(len(data)))
        if data[:1] in (b"{", b"["):
            data[at] = int(rng.choice(np.frombuffer(b'0123456789-{}[]",:aN', np.uint8)))
        elif rng.random() < 0.5:
            data[at] = int(rng.integers(256))
        else:
            at -= at % 8
            data[at : at + 8] = int(rng.choice(odd)).to_bytes(8, "little", signed=True)[: len(data) - at]
    return bytes(data)


# --- the process in which they are opened


def forbid_and_report():
    """An audit hook that writes down what a model file must never cause."""
    seen = []
    never = (
        "exec",
        "os.system",
        "os.exec",
        "os.posix_spawn",
        "os.fork",
        "subprocess.Popen",
        "socket.connect",
        "socket.bind",
    )
    never += (
        "pickle.find_class",
        "os.remove",
        "os.rename",
        "os.mkdir",
        "os.rmdir",
        "shutil.rmtree",
        "ctypes.dlopen",
        "import",
    )

    def hook(event, args):
        if event in never:
            seen.append(f"{event} {str(args[0])[:100]}")
        elif event == "compile" and args[1] != "<unknown>":  # literals in the headers of arrays are parsed, not run
            seen.append(f"compile {str(args[1])[:100]}")
        elif event == "open" and (is_writing(args[1], args[2]) or not may_read(str(args[0]))):
            seen.append(f"open {str(args[0])[:100]} {args[1]}")

    sys.addaudithook(hook)
    return seen


def is_writing(mode, flags):
    return any(letter in (mode or "") for letter in "wax+") or bool((flags or 0) & (os.O_WRONLY | os.O_RDWR))


READABLE: set[str] = set()


def may_read(name):
    return name in READABLE or name.startswith(("/proc", "/sys", sys.prefix, sys.base_prefix))


def judge():
    """Open every file named on the input; print for each what came of it."""
    import warnings

    from softlearning.storage import ModelFileError, load

    honest = sys.argv[1]
    rows = np.load(sys.argv[2])
    expected = load(honest).predict_proba(rows)  # also imports whatever loading needs
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY, now + MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    seen = forbid_and_report()
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for line in sys.stdin:
        path = line.rstrip("\n")
        READABLE.add(path)
        print(json.dumps({"start": path}), flush=True)
        start = time.perf_counter()
        faulthandler.dump_traceback_later(PATIENCE, exit=True)
        try:
            model = load(path, max_bytes=LIMIT)
            given = model.predict_proba(rows) if hasattr(model, "predict_proba") else None
            same = given is not None and np.array_equal(given, expected)
            outcome, reason = "same" if same else "other", ""
        except ModelFileError as error:
            outcome, reason = "refused", str(error)
        except Exception as error:
            outcome, reason = "raised", f"{type(error).__name__}: {error}"
        faulthandler.cancel_dump_traceback_later()
        seconds = time.perf_counter() - start
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - base) >> 10
        report = {"path": path, "outcome": outcome, "reason": reason[:300], "seconds": seconds, "grown_mb": grown}
        print(json.dumps({**report, "seen": seen[:5]}), flush=True)
        seen.clear()


if __name__ == "__main__":
    judge()
