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
import zipfile
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

import skops.io

from softlearning.storage.allowed import FORGOTTEN, KEYS, class_of, is_allowed
from softlearning.storage.arrays import read_npy, read_npz, store_npz
from softlearning.storage.container import ModelFileError, blaming, description
from softlearning.storage.guards import THREADS, Part, check, check_attributes, check_free, native_model
from softlearning.storage.trial import NativeModel

PROTOCOL = 2  # of the skops schema
DEEPEST = 90  # objects within objects
NODE_BYTES = 1000  # about what a node costs beside its content, in ours and in skops's hands
VOUCHABLE = ("ObjectNode", "FunctionNode", "TypeNode")  # what a caller may trust by name
SCHEMA = "schema.json"


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
