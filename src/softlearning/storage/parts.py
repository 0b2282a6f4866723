"""A model as a skops archive: written tidy, read as harmless parts, built only after every part was checked.

    dump(value)       -> members             inspect(members) -> what is in them, in plain data
    build(zip, names) -> value               only ever called on what `inspect` let through

skops describes an object by nodes: a loader, a class, its content. `inspect` reads these nodes itself, accepts none
that is not in `allowed`, counts what building them would take, and hands every object to the `guards`. Tidy archives
have no object identities, by which one node could stand in for another: what was inspected is what is built.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import sys
import zipfile
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
import skops.io
from sklearn.base import BaseEstimator
from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
from sklearn.neighbors import KDTree
from sklearn.tree._tree import NODE_DTYPE

from softlearning.execution.fingerprint import is_users
from softlearning.storage.allowed import FORGOTTEN, KEYS, class_of, is_allowed
from softlearning.storage.container import LIMIT, ModelFileError, blaming, description, pack, unpack
from softlearning.storage.guards import THREADS, Part, check, check_attributes, check_free, native_model
from softlearning.storage.trial import NativeModel

PROTOCOL = 2  # of the skops schema
DEEPEST = 90  # objects within objects
NODE_BYTES = 1000  # about what a node costs beside its content, in ours and in skops's hands
VOUCHABLE = ("ObjectNode", "FunctionNode", "TypeNode")  # what a caller may trust by name
SCHEMA = "schema.json"
NODE_DATA_DTYPE = np.asarray(KDTree(np.zeros((1, 1))).__getstate__()[2]).dtype
RECORDS = (NODE_DTYPE, PREDICTOR_RECORD_DTYPE, NODE_DATA_DTYPE)  # the structured arrays that scikit-learn's trees hold
KINDS = "biufcSUMm"
SPARSE = {"format": "S", "shape": "i", "data": "biuf", "indices": "i", "indptr": "i", "_is_array": "b"}


# --- writing


def dump(value: Any) -> dict[str, bytes]:
    """The members of a skops archive without identities and without what only training needs.

    Equal models give equal members. Whatever says how many threads or processes to use says one: a file starts none.
    """
    with blaming("the model cannot be stored"):
        raw = skops.io.dumps(value)
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        schema = json.loads(archive.read(SCHEMA))
        if schema["protocol"] != PROTOCOL:
            raise ModelFileError(f"this skops writes protocol {schema['protocol']}; softlearning knows {PROTOCOL}")
        shelf = Shelf(archive)
        tidy = tidied(schema, shelf)
    return {SCHEMA: json.dumps(tidy, separators=(",", ":")).encode(), **shelf.members}


class Shelf:
    """The members that a description refers to, numbered as they are met; equal ones are kept once."""

    def __init__(self, archive: zipfile.ZipFile):
        self.archive = archive
        self.members: dict[str, bytes] = {}
        self._names: dict[tuple[str, bytes], str] = {}

    def put(self, name: str) -> str:
        """The new name of a member of the archive."""
        ending = name.rsplit(".", 1)[-1]
        data = self.archive.read(name)
        data = store_npz(data) if ending == "npz" else data
        key = (ending, hashlib.sha256(data).digest())
        if key not in self._names:
            self._names[key] = f"{len(self.members)}.{ending}"
            self.members[self._names[key]] = data
        return self._names[key]


def tidied(node: Any, shelf: Shelf) -> Any:
    """The node without identities, its members on the shelf."""
    if isinstance(node, list):
        return [tidied(item, shelf) for item in node]
    if not isinstance(node, dict):
        return node
    if node.get("__loader__") == "DictNode":
        node = tidied_dict(node)
    if type_name(node) in FORGOTTEN:
        return plain_node(None)
    tidy = {key: tidied(value, shelf) for key, value in node.items() if key not in ("__id__", "_skops_version")}
    if isinstance(tidy.get("file"), str) and "__loader__" in tidy:
        tidy["file"] = shelf.put(tidy["file"])
    return tidy


def tidied_dict(node: dict[str, Any]) -> dict[str, Any]:
    """A dict with one thread, and without private entries that only training needs; types of keys in the same order."""
    kept, types = {}, []
    for (key, value), kind in zip(node["content"].items(), node["key_types"]["content"]):
        if key.startswith("_") and type_name(value) in FORGOTTEN:
            continue
        kept[key] = plain_node(1) if key in THREADS and value.get("content") != "null" else value
        types.append(kind)
    return {**node, "content": kept, "key_types": {**node["key_types"], "content": types}}


def plain_node(value: Any) -> dict[str, Any]:
    """None, a number or a word, as skops describes it."""
    return {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "content": json.dumps(value)}


def type_name(node: dict[str, Any]) -> str:
    """The full name of the class of a node."""
    return f"{node.get('__module__')}.{node.get('__class__')}"


# --- reading


@dataclass
class Archive:
    """Members under inspection: names trusted beyond our list, names met, and how much may still be built."""

    members: dict[str, bytes]
    left: int
    trusted: Collection[str] | None
    met: set[str] = field(default_factory=set)
    strangers: set[str] = field(default_factory=set)
    natives: list[NativeModel] = field(default_factory=list)
    depth: int = 0

    def take(self, size: int) -> None:
        """Count what building takes: a member that is named twice is built twice."""
        self.left -= size
        if self.left < 0:
            raise ModelFileError("the model would take more than the limit (max_bytes)")


def inspect(members: dict[str, bytes], limit: int, trusted: Collection[str] | None = ()) -> Archive:
    """Read members as plain data and `Part`s, refused if anything is odd; the names of the types that were met.

    `trusted` are names beyond our list. None takes any name and is only for what this process is about to write.
    """
    archive = Archive(members, limit, trusted)
    schema = description(members.get(SCHEMA, b""), limit)
    if not isinstance(schema, dict) or schema.get("protocol") != PROTOCOL or isinstance(schema["protocol"], bool):
        raise ModelFileError("the model in the file is not described as softlearning describes models")
    with blaming("the model in the file is badly described"):
        check_free(read(schema, archive))
    return archive


def build(data: bytes, names: Collection[str]) -> Any:
    """The value of an inspected archive; skops checks the same names once more."""
    with blaming("the model in the file cannot be built"):
        return skops.io.loads(data, trusted=sorted(names))


def read(node: Any, archive: Archive) -> Any:
    """What a node describes, if its loader and its type are allowed."""
    if not isinstance(node, dict) or "__id__" in node or "." in node["__class__"]:
        raise ModelFileError("the model in the file has a node that softlearning does not write")
    loader, name = node["__loader__"], type_name(node)
    if loader not in READERS or (not is_allowed(loader, name) and not trusts(archive, loader, name)):
        raise ModelFileError(refusal(loader, name))
    archive.met.add(name)
    archive.take(NODE_BYTES)
    archive.depth += 1
    if archive.depth > DEEPEST:
        raise ModelFileError(f"the model in the file is nested deeper than {DEEPEST}")
    value = READERS[loader](node, archive)
    archive.depth -= 1
    return value


def trusts(archive: Archive, loader: str, name: str) -> bool:
    """Whether the caller vouches for a name that is not on our list."""
    if loader not in VOUCHABLE or (archive.trusted is not None and name not in archive.trusted):
        return False
    archive.strangers.add(name)
    return True


def refusal(loader: Any, name: str) -> str:
    if loader in VOUCHABLE:
        name = name[:200]
        return f"the file holds {name!r}, which is not on the list; if you trust it, load(path, trusted=[{name!r}])"
    return f"the file asks for {name[:200]!r} by {str(loader)[:50]!r}, which is never built"


def read_dict(node: dict, archive: Archive) -> dict:
    types = [(kind["__loader__"], type_name(kind)) for kind in node["key_types"]["content"]]
    if not all(loader == "TypeNode" and name in KEYS for loader, name in types) or len(types) != len(node["content"]):
        raise ModelFileError("a dict in the file has keys of an unknown type")
    read(node["key_types"], archive)
    found = {key: read(value, archive) for key, value in node["content"].items()}
    for key in THREADS & found.keys():
        if found[key] is not None and (found[key] is True or found[key] != 1):
            raise ModelFileError(f"the file asks for {key}={str(found[key])[:50]}; model files use one thread")
    return found


def read_defaultdict(node: dict, archive: Archive) -> dict:
    factory = node["content"]["default_factory"]
    if factory["__loader__"] != "TypeNode":
        raise ModelFileError("a dict in the file makes its values by something that is not a plain type")
    read(factory, archive)
    return read(node["content"]["main"], archive)


def read_list(node: dict, archive: Archive) -> list:
    if not isinstance(node["content"], list):
        raise ModelFileError("a list in the file is not described as one")
    return [read(item, archive) for item in node["content"]]


def read_scalar(node: dict, archive: Archive) -> Any:
    """None, a bool, a number (NaN and infinities too) or a string."""
    archive.take(len(node["content"]))
    value = json.loads(node["content"])
    if not (value is None or isinstance(value, bool | int | float | str)):
        raise ModelFileError("a plain value in the file is not plain")
    return value


def read_array(node: dict, archive: Archive) -> Any:
    if node["type"] == "numpy":
        array = read_npy(member(node, archive, ".npy"))
        if node["__class__"] != "ndarray" and array.ndim:
            raise ModelFileError("a number in the file is an array")
        return array
    if node["type"] != "json" or node["__class__"] != "ndarray":
        raise ModelFileError("an array in the file is stored in an unknown way")
    shape, items = read(node["shape"], archive), read_list(node, archive)
    if node["shape"]["__loader__"] != "TupleNode" or not all(type(size) is int for size in shape):
        raise ModelFileError("an array in the file has no shape")
    if len(shape) != 1 and any(hasattr(item, "shape") for item in items):
        raise ModelFileError("an array of arrays in the file would be taken apart")
    return items


def member(node: dict, archive: Archive, ending: str) -> bytes:
    name = node["file"]
    if not isinstance(name, str) or not name.endswith(ending) or name not in archive.members:
        raise ModelFileError("the model names a member that is not in the file")
    archive.take(len(archive.members[name]))
    return archive.members[name]


def read_slice(node: dict, archive: Archive) -> slice:
    ends = [node["content"][key] for key in ("start", "stop", "step")]
    if not all(end is None or type(end) is int for end in ends):
        raise ModelFileError("a slice in the file has ends that are not numbers")
    return slice(*ends)


def read_partial(node: dict, archive: Archive) -> Part:
    content = {key: read(node["content"][key], archive) for key in ("func", "args", "kwds", "namespace")}
    if node["content"]["func"]["__loader__"] != "FunctionNode" or content["namespace"]:
        raise ModelFileError("a partial function in the file is not of a function")
    return Part(content["func"].name, content["kwds"], tuple(content["args"]))


def read_loss(node: dict, archive: Archive) -> Part:
    args, content = read(node["__reduce__"]["args"], archive), read(node["content"], archive)
    if content or not all(type(a) in (int, float) for a in args):
        raise ModelFileError("a loss in the file holds more than its parameters")
    return Part(type_name(node), {}, tuple(args))


def read_tree(node: dict, archive: Archive) -> Part:
    args, content = read(node["__reduce__"]["args"], archive), read(node["content"], archive)
    return guarded(Part(type_name(node), content, tuple(args)), archive)


def read_object(node: dict, archive: Archive) -> Part:
    content = node.get("content")
    return guarded(Part(type_name(node), None if content is None else read(content, archive)), archive)


def guarded(part: Part, archive: Archive) -> Part:
    """The part, after the checks for its type; a user's own class has none."""
    if part.name not in archive.strangers:
        check_attributes(part, class_of(part.name))
        check(part)
        archive.natives += native_model(part)
    return part


READERS: dict[Any, Callable[[dict, Archive], Any]] = {
    "DictNode": read_dict,
    "DefaultDictNode": read_defaultdict,
    "ListNode": read_list,
    "TupleNode": lambda node, archive: tuple(read_list(node, archive)),
    "SetNode": read_list,
    "SliceNode": read_slice,
    "BytesNode": lambda node, archive: member(node, archive, ".bin"),
    "JsonNode": read_scalar,
    "NdArrayNode": read_array,
    "DTypeNode": lambda node, archive: read(node["content"], archive).dtype,
    "SparseMatrixNode": lambda node, archive: read_npz(member(node, archive, ".npz")),
    "TypeNode": lambda node, archive: Part(type_name(node)),
    "FunctionNode": lambda node, archive: Part(type_name(node)),
    "PartialNode": read_partial,
    "LossNode": read_loss,
    "TreeNode": read_tree,
    "ObjectNode": read_object,
}


# --- arrays: read only when the header and the number of bytes agree exactly


def read_npy(data: bytes) -> np.ndarray:
    """The array in `data`, without a copy; refused when its header says anything else than is there."""
    try:
        buffer = io.BytesIO(data)
        version = np.lib.format.read_magic(buffer)
        header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
        shape, fortran, dtype = header(buffer)
    except Exception as error:
        raise ModelFileError(f"an array in the file has no valid header ({type(error).__name__})") from error
    start, count = buffer.tell(), math.prod(shape)
    if not (dtype in RECORDS if dtype.names else dtype.kind in KINDS) or not dtype.itemsize:
        raise ModelFileError(f"an array in the file holds {str(dtype)[:50]}, which model files do not")
    if min(shape, default=0) < 0 or len(shape) > 32 or count * dtype.itemsize != len(data) - start:
        raise ModelFileError("an array in the file is not as long as its header says")
    if max(shape, default=0) > max(len(data), 1):
        raise ModelFileError("an empty array in the file claims an absurd shape")
    return np.frombuffer(data, dtype, count, start).reshape(shape, order="F" if fortran else "C")


def store_npz(data: bytes) -> bytes:
    """The npz of a sparse matrix, members uncompressed, so that reading it cannot unpack to more than it is."""
    buffer, members = io.BytesIO(), {}
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        for name in ("format", *sorted(set(file) - {"format"})):
            array = io.BytesIO()
            np.lib.format.write_array(array, file[name], allow_pickle=False)
            members[f"{name}.npy"] = array.getvalue()
    pack(buffer, members, compress=False)
    return buffer.getvalue()


def read_npz(data: bytes) -> sp.csr_matrix | sp.csc_matrix:
    """A csr or csc matrix whose indices all lie inside its shape: scipy's loops do not look."""
    members = unpack(data, max(len(data), 10_000), first="format.npy", stored=True)
    parts = {name.removesuffix(".npy"): read_npy(part) for name, part in members.items()}
    if not SPARSE.keys() - {"_is_array"} <= parts.keys() <= SPARSE.keys():
        raise ModelFileError("a sparse matrix in the file has other parts than scipy writes")
    if any(part.dtype.kind not in SPARSE[name] for name, part in parts.items()):
        raise ModelFileError("a sparse matrix in the file has parts of a wrong type")
    layout = bytes(parts["format"].item()) if parts["format"].ndim == 0 else b""
    if layout not in (b"csr", b"csc") or parts["shape"].shape != (2,):
        raise ModelFileError("a sparse matrix in the file is neither csr nor csc")
    kind = sp.csr_matrix if layout == b"csr" else sp.csc_matrix
    with blaming("a sparse matrix in the file is not sound"):
        matrix = kind((parts["data"], parts["indices"], parts["indptr"]), shape=tuple(parts["shape"].tolist()))
        matrix.check_format(full_check=True)  # scipy makes these checks on request only
        return matrix


# --- fitted models alone: the form in which a checkpoint keeps them


def dump_model(model: Any) -> bytes:
    """A fitted estimator, without what only training needs."""
    buffer = io.BytesIO()
    pack(buffer, dump(model), compress=False)
    return buffer.getvalue()


def load_model(data: bytes, task: Any) -> Any:
    """The estimator again. Of classes that are not on our list, only those that the task itself will fit are built."""
    members = unpack(data, LIMIT, first=SCHEMA, stored=True)
    return build(data, inspect(members, LIMIT, own_classes(task)).met)


def own_classes(task: Any) -> set[str]:
    """Full names of the user's own classes that a task fits: the user runs their code in any case."""
    estimator = getattr(getattr(getattr(task.args[0], "specialist", None), "make", None), "estimator", None)
    parts = [estimator, *estimator.get_params().values()] if isinstance(estimator, BaseEstimator) else []
    kinds = {type(part) for part in parts}
    own = {kind for kind in kinds if kind.__module__ == "__main__" or is_users(sys.modules.get(kind.__module__))}
    return {f"{kind.__module__}.{kind.__qualname__}" for kind in own}
