"""Fitted estimators as skops archives: written tidy, read as harmless parts, built only after every part was checked.

    dump(estimator) -> bytes          inspect(bytes) -> what is in it, in plain data
    build(bytes)    -> estimator      only ever called on what `inspect` let through

skops describes an object by nodes: a loader, a class, its content. `inspect` reads these nodes itself, accepts none
that is not in `allowed`, and hands every object to the `guards`. Tidy archives have no object identities, by which one
node could stand in for another: what was inspected is what is built.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import skops.io

from softlearning.storage.allowed import FORGOTTEN, KEYS, NAMES
from softlearning.storage.arrays import read_npy, read_npz, store_npz
from softlearning.storage.container import ModelFileError, packed, read_json, unpack
from softlearning.storage.guards import GUARDS, OWNERS, Part, check_attributes

PROTOCOL = 2  # of the skops schema
DEEPEST = 60  # objects within objects
VOUCHABLE = ("ObjectNode", "FunctionNode", "TypeNode")  # what a caller may trust by name
SCHEMA = "schema.json"


# --- writing


def dump(estimator: Any) -> bytes:
    """A skops archive without identities and without what only training needs; equal models give equal bytes."""
    try:
        raw = skops.io.dumps(estimator)
    except Exception as error:
        raise ModelFileError(f"{type(estimator).__name__} cannot be stored: {error}") from error
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        schema = json.loads(archive.read(SCHEMA))
        if schema["protocol"] != PROTOCOL:
            raise ModelFileError(f"this skops writes protocol {schema['protocol']}; softlearning knows {PROTOCOL}")
        shelf = Shelf(archive)
        tidy = tidied(schema, shelf)
    return packed({SCHEMA: json.dumps(tidy, separators=(",", ":")).encode(), **shelf.members})


class Shelf:
    """The members that a description refers to, numbered as they are met; equal ones are kept once."""

    def __init__(self, archive: zipfile.ZipFile):
        self.archive = archive
        self.members: dict[str, bytes] = {}
        self._names: dict[tuple[str, bytes], str] = {}

    def put(self, name: str) -> str:
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
        node = without_forgotten(node)
    if type_name(node) in FORGOTTEN:
        return {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "content": "null"}
    tidy = {key: tidied(value, shelf) for key, value in node.items() if key not in ("__id__", "_skops_version")}
    if isinstance(tidy.get("file"), str) and "__loader__" in tidy:
        tidy["file"] = shelf.put(tidy["file"])
    return tidy


def without_forgotten(node: dict[str, Any]) -> dict[str, Any]:
    """A dict without private entries that only training needs; the types of the keys stand in the same order."""
    gone = [key.startswith("_") and type_name(value) in FORGOTTEN for key, value in node["content"].items()]
    content = {key: value for (key, value), out in zip(node["content"].items(), gone) if not out}
    types = [kind for kind, out in zip(node["key_types"]["content"], gone) if not out]
    return {**node, "content": content, "key_types": {**node["key_types"], "content": types}}


def type_name(node: dict[str, Any]) -> str:
    return f"{node.get('__module__')}.{node.get('__class__')}"


# --- reading


@dataclass
class Archive:
    """An archive under inspection: its members, the names that are trusted beyond our list, those that were met."""

    members: dict[str, bytes]
    trusted: Collection[str] | None
    met: set[str] = field(default_factory=set)
    strangers: set[str] = field(default_factory=set)
    depth: int = 0


def inspect(data: bytes, limit: int, trusted: Collection[str] | None = ()) -> Archive:
    """Read an archive as plain data and `Part`s, refused if anything is odd; the names of the types that were met.

    `trusted` are names beyond our list. None takes any name and is only for what this process is about to write.
    """
    archive = Archive(unpack(io.BytesIO(data), limit, first=SCHEMA, stored=True), trusted)
    schema = read_json(archive.members[SCHEMA], limit)
    if not isinstance(schema, dict) or schema.get("protocol") != PROTOCOL or isinstance(schema["protocol"], bool):
        raise ModelFileError("an estimator in the file is not described as softlearning describes estimators")
    try:
        whole = read(schema, archive)
        if isinstance(whole, Part) and whole.kind in OWNERS:
            raise ModelFileError(f"a bare {whole.kind} is no estimator")
        return archive
    except ModelFileError:
        raise
    except Exception as error:
        raise ModelFileError(
            f"an estimator in the file is badly described ({type(error).__name__}: {error})"
        ) from error


def build(data: bytes, names: set[str]) -> Any:
    """The object of an inspected archive; skops checks the same names once more."""
    try:
        return skops.io.loads(data, trusted=sorted(names))
    except Exception as error:
        raise ModelFileError(f"an estimator in the file cannot be built ({type(error).__name__}: {error})") from error


def read(node: Any, archive: Archive) -> Any:
    """What a node describes, if its loader and its type are allowed."""
    if not isinstance(node, dict) or "__id__" in node:
        raise ModelFileError("an estimator in the file has a node that softlearning does not write")
    if "." in node["__class__"]:
        raise ModelFileError("an estimator in the file has a class name with dots")
    loader, name = node["__loader__"], f"{node['__module__']}.{node['__class__']}"
    if loader not in READERS or (name not in NAMES[loader] and not trusts(archive, loader, name)):
        raise ModelFileError(refusal(loader, name))
    archive.met.add(name)
    archive.depth += 1
    if archive.depth > DEEPEST:
        raise ModelFileError(f"an estimator in the file is nested deeper than {DEEPEST}")
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
    types = node["key_types"]["content"]
    kinds = [(kind["__loader__"], f"{kind['__module__']}.{kind['__class__']}") for kind in types]
    if not all(loader == "TypeNode" and name in KEYS for loader, name in kinds) or len(kinds) != len(node["content"]):
        raise ModelFileError("a dict in the file has keys of an unknown kind")
    read(node["key_types"], archive)
    return {key: read(value, archive) for key, value in node["content"].items()}


def read_defaultdict(node: dict, archive: Archive) -> dict:
    factory = node["content"]["default_factory"]
    if factory["__loader__"] != "TypeNode":
        raise ModelFileError("a dict in the file makes its values by something that is no plain type")
    read(factory, archive)
    return read(node["content"]["main"], archive)


def read_list(node: dict, archive: Archive) -> list:
    if not isinstance(node["content"], list):
        raise ModelFileError("a list in the file is none")
    return [read(item, archive) for item in node["content"]]


def read_scalar(node: dict, archive: Archive) -> Any:
    """None, a bool, a number (NaN and infinities too) or a string."""
    value = json.loads(node["content"])
    if not (value is None or isinstance(value, bool | int | float | str)):
        raise ModelFileError("a plain value in the file is none")
    return value


def read_array(node: dict, archive: Archive) -> Any:
    if node["type"] == "numpy":
        array = read_npy(member(node, archive, ".npy"))
        if node["__class__"] != "ndarray" and array.ndim:
            raise ModelFileError("a number in the file is an array")
        return array
    if node["type"] != "json" or node["__class__"] != "ndarray":
        raise ModelFileError("an array in the file is stored in an unknown way")
    shape = read(node["shape"], archive)
    if node["shape"]["__loader__"] != "TupleNode" or not all(type(size) is int for size in shape):
        raise ModelFileError("an array in the file has no shape")
    return read_list(node, archive)


def read_sparse(node: dict, archive: Archive) -> Any:
    return read_npz(member(node, archive, ".npz"))


def read_bytes(node: dict, archive: Archive) -> bytes:
    return member(node, archive, ".bin")


def member(node: dict, archive: Archive, ending: str) -> bytes:
    name = node["file"]
    if not isinstance(name, str) or not name.endswith(ending) or name not in archive.members:
        raise ModelFileError("an estimator in the file names a member that is not there")
    return archive.members[name]


def read_slice(node: dict, archive: Archive) -> slice:
    ends = [node["content"][key] for key in ("start", "stop", "step")]
    if not all(end is None or type(end) is int for end in ends):
        raise ModelFileError("a slice in the file has ends that are no numbers")
    return slice(*ends)


def read_partial(node: dict, archive: Archive) -> Part:
    content = {key: read(node["content"][key], archive) for key in ("func", "args", "kwds", "namespace")}
    if node["content"]["func"]["__loader__"] != "FunctionNode" or content["namespace"]:
        raise ModelFileError("a partial function in the file is of no function")
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
        check_attributes(part, own_class(part.name))
        GUARDS.get(part.name, lambda part: None)(part)
    return part


def own_class(name: str) -> type:
    """The class of an allowed name: the modules of the list are the only ones ever imported here."""
    module, _, attribute = name.rpartition(".")
    return getattr(import_module(module), attribute)


READERS: dict[Any, Callable[[dict, Archive], Any]] = {
    "DictNode": read_dict,
    "DefaultDictNode": read_defaultdict,
    "ListNode": read_list,
    "TupleNode": lambda node, archive: tuple(read_list(node, archive)),
    "SetNode": read_list,
    "SliceNode": read_slice,
    "BytesNode": read_bytes,
    "JsonNode": read_scalar,
    "NdArrayNode": read_array,
    "DTypeNode": lambda node, archive: read(node["content"], archive).dtype,
    "SparseMatrixNode": read_sparse,
    "TypeNode": lambda node, archive: Part(type_name(node)),
    "FunctionNode": lambda node, archive: Part(type_name(node)),
    "PartialNode": read_partial,
    "LossNode": read_loss,
    "TreeNode": read_tree,
    "ObjectNode": read_object,
}
