"""One zip file, written whole or not at all, and read only after every member was measured.

A model file is a zip whose first member is the magic, then a manifest with the size and SHA-256 of every other member.
Nothing here interprets a member: it is bytes until its name, size, compression and checksum are found in order.
"""

from __future__ import annotations

import hashlib
import hmac
import io
import json
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from softlearning.data.files import whole_file
from softlearning.data.strictjson import read_json

MAGIC = "softlearning-model"  # name of the first member
FORMAT = 2  # version of the layout, written in the magic member
LIMIT = 2 << 30  # bytes that a loaded model may take
MEMBER_BYTES = 1000  # what a member costs in memory beside its content: names, directory entries
MOST_RATIO = 200  # unpacked to packed bytes of a member; deflate can reach 1032
JSON_SHARE = 32  # a JSON text may take 1/32 of the limit: a list of empty lists grows twentyfold when it is read
NAME = re.compile(r"[A-Za-z0-9_-]+(\.[a-z]+)?")
FIXED_TIME = (1980, 1, 1, 0, 0, 0)  # the same members give the same bytes
LEAST_KEY = 16  # bytes of a key in a file


class ModelFileError(ValueError):
    """A model file that is not loaded, or a model that cannot be stored; the message is the reason."""


@contextmanager
def blaming(what: str) -> Iterator[None]:
    """Whatever goes wrong with a file is the file's fault, and said in one way; running out of memory is not."""
    try:
        yield
    except (ModelFileError, MemoryError):
        raise
    except Exception as error:
        raise ModelFileError(f"{what} ({type(error).__name__}: {error})") from error


# --- keys


def read_key(path: str | os.PathLike) -> bytes:
    """The key in a file, without blanks and line ends around it; at least 16 bytes."""
    key = Path(path).read_bytes().strip()
    if len(key) < LEAST_KEY:
        raise ValueError(f"the key in {path} is shorter than {LEAST_KEY} bytes: anyone could guess it")
    return key


def check_key(key: bytes | None) -> None:
    """A key is bytes, and not empty: with an empty one anybody could sign."""
    if key is not None and (not isinstance(key, bytes) or not key):
        raise ValueError("key is the bytes that the file is signed with, and cannot be empty; None means no signature")


def sign(listing: bytes, key: bytes) -> bytes:
    """HMAC-SHA256 of the manifest, which has the checksum of all else."""
    return hmac.new(key, listing, "sha256").hexdigest().encode()


# --- writing


def write_file(path: str | os.PathLike, manifest: dict[str, Any], members: Mapping[str, bytes], key: bytes | None):
    """Write all members to a new file beside `path` and put it in place in one step, readable by its owner alone."""
    sums = {name: summed(data) for name, data in members.items()}
    listing = json.dumps({**manifest, "members": sums}, indent=1, allow_nan=False).encode()
    signature = {} if key is None else {"signature": sign(listing, key)}
    head = {MAGIC: str(FORMAT).encode(), "manifest.json": listing, **signature}
    with whole_file(os.fspath(path), private=True) as part, open(part, "wb") as file:
        pack(file, {**head, **members})
        file.flush()
        os.fsync(file.fileno())


def summed(data: bytes) -> dict[str, Any]:
    """What a manifest says of a member."""
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def pack(file: BinaryIO, members: Mapping[str, bytes], *, compress: bool = True) -> None:
    """Write members as a zip."""
    with zipfile.ZipFile(file, "w", compresslevel=1) as archive:
        for name, data in members.items():
            info = zipfile.ZipInfo(name, FIXED_TIME)
            info.compress_type = zipfile.ZIP_DEFLATED if compress and deflates(name, data) else zipfile.ZIP_STORED
            archive.writestr(info, data, compresslevel=1)


def deflates(name: str, data: bytes) -> bool:
    """Whether a member is compressed: not the magic, and nothing that shrinks so far that it looks like a bomb."""
    return name != MAGIC and (len(data) < 4096 or len(zlib.compress(data, 1)) * MOST_RATIO > len(data))


# --- reading


def read_file(path: str | os.PathLike, limit: int, key: bytes | None) -> tuple[bytes, dict[str, Any], dict[str, bytes]]:
    """The bytes of a model file, its manifest and its members, each of the size and checksum that the manifest says."""
    with open(path, "rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise ModelFileError(f"the file is larger than the limit of {limit:,} bytes (max_bytes)")
    members = unpack(data, limit, name=os.fspath(path))
    check_magic(members.pop(MAGIC))
    listing = members.pop("manifest.json", b"")
    check_signature(listing, members.pop("signature", None), key)
    manifest = description(listing, limit)
    if not isinstance(manifest, dict) or not isinstance(manifest.get("members"), dict):
        raise ModelFileError("the manifest does not list the members of the file")
    if manifest["members"].keys() != members.keys():
        odd = sorted(manifest["members"].keys() ^ members.keys())
        raise ModelFileError(f"the manifest and the file differ in their members: {', '.join(map(repr, odd[:3]))}")
    for name, content in members.items():
        if manifest["members"][name] != summed(content):
            raise ModelFileError(f"{name!r} does not have the size and checksum of the manifest: the file is damaged")
    return data, manifest, members


def description(data: bytes, limit: int) -> Any:
    """A JSON text of a file, refused when it is too long, ambiguous or not JSON."""
    if len(data) > limit // JSON_SHARE:
        raise ModelFileError(f"a description of {len(data):,} bytes is too long for the limit of {limit:,} (max_bytes)")
    with blaming("a description in the file is not valid JSON"):
        return read_json(data)


def check_magic(text: bytes) -> None:
    if text != str(FORMAT).encode():
        shown = text[:20].decode("ascii", "replace")
        raise ModelFileError(f"the file has format {shown!r}; this version of softlearning reads format {FORMAT}")


def check_signature(listing: bytes, signature: bytes | None, key: bytes | None) -> None:
    """With a key, the manifest (and by its checksums all else) must be signed with that key."""
    if key is not None and not hmac.compare_digest(signature or b"", sign(listing, key)):
        what = "is not signed" if signature is None else "is signed with another key, or was changed"
        raise ModelFileError(f"the file {what}")


def unpack(
    data: bytes, limit: int, *, first: str = MAGIC, stored: bool = False, name: str = "a part of the file"
) -> dict[str, bytes]:
    """All members of a zip in memory, after its directory was checked; `name` is what an error calls it."""
    check_ends(data, first, limit, name)
    with blaming("the archive is damaged"), zipfile.ZipFile(io.BytesIO(data)) as archive:
        infos = archive.infolist()
        check_directory(infos, len(data), limit, stored)
        return {info.filename: archive.read(info) for info in infos}


def check_ends(data: bytes, first: str, limit: int, name: str) -> None:
    """It begins with a zip entry of the given name, and ends with a directory that fits into memory.

    Anything else is refused, and never tried as something else.
    """
    start = data[: 30 + len(first)]
    if start[:4] != b"PK\x03\x04" or start[30:] != first.encode() or start[26:28] != len(first).to_bytes(2, "little"):
        reason = "is not a softlearning model file (it does not begin as one); other formats are not read"
        raise ModelFileError(f"{name} {reason}")
    mark, disks, here, count, length, _, comment = struct.unpack("<4sIHHIIH", data[-22:].ljust(22))
    if mark != b"PK\x05\x06" or disks or comment or here != count:
        raise ModelFileError("the archive is damaged: it does not end as one")
    if count == 0xFFFF or length == 0xFFFFFFFF:  # too many for the old fields: the larger ones stand 98 bytes before
        larger, count, length = struct.unpack("<4s28xQQ", data[-98:-50].ljust(48))
        if larger != b"PK\x06\x06":
            raise ModelFileError("the archive is damaged: it does not end as one")
    if count * MEMBER_BYTES > limit or length > 300 * count:
        raise ModelFileError(f"the archive has {count:,} members, too many for the limit of {limit:,} (max_bytes)")


def check_directory(infos: list[zipfile.ZipInfo], size: int, limit: int, stored: bool) -> None:
    """Names, kinds and declared sizes of the members of a zip of `size` bytes."""
    if len({info.filename for info in infos}) < len(infos):
        raise ModelFileError("the archive holds a name twice")
    allowed = (zipfile.ZIP_STORED,) if stored else (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
    for info in infos:
        if not NAME.fullmatch(info.filename) or len(info.filename) > 100:
            raise ModelFileError(f"{info.filename[:50]!r} is not a name that model files use")
        if info.compress_type not in allowed or info.flag_bits & 1:
            raise ModelFileError(f"{info.filename!r} is packed in a way that model files are not")
        if info.file_size > MOST_RATIO * max(info.compress_size, 1):
            raise ModelFileError(f"{info.filename!r} unpacks to more than {MOST_RATIO} times its size")
    if sum(info.compress_size for info in infos) > size:
        raise ModelFileError("the members are larger than the file: they overlap")
    total = sum(info.file_size for info in infos)
    if total > limit:
        raise ModelFileError(f"the file unpacks to {total:,} bytes, above the limit of {limit:,} (max_bytes)")
