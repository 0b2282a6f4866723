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
import secrets
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

MAGIC = "softlearning-model"  # name of the first member
FORMAT = 1  # version of the layout, written in the magic member
LIMIT = 2 << 30  # bytes that a file may unpack to
MOST_MEMBERS = 60_000
MOST_RATIO = 200  # unpacked to packed bytes of a member; deflate can reach 1032
JSON_SHARE = 32  # a JSON text may take 1/32 of the limit: a list of empty lists grows twentyfold when it is read
NAME = re.compile(r"[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*(\.[a-z]+)?")
FIXED_TIME = (1980, 1, 1, 0, 0, 0)  # the same members give the same bytes


class ModelFileError(ValueError):
    """A model file that is not loaded, or a model that cannot be stored; the message is the reason."""


# --- writing


def write_model(path: Path, manifest: dict[str, Any], members: Mapping[str, bytes], key: bytes | None) -> None:
    """Write all members to a new file beside `path` and put it in place in one step."""
    sums = {name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in members.items()}
    listing = json.dumps({**manifest, "members": sums}, indent=1, allow_nan=False).encode()
    head = {MAGIC: str(FORMAT).encode(), "manifest.json": listing}
    if key is not None:
        head["signature"] = sign(listing, key)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            pack(file, {**head, **members})
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def pack(file: BinaryIO, members: Mapping[str, bytes], *, compress: bool = True) -> None:
    try:
        with zipfile.ZipFile(file, "w", compresslevel=1, allowZip64=False) as archive:
            for name, data in members.items():
                info = zipfile.ZipInfo(name, FIXED_TIME)
                info.compress_type = zipfile.ZIP_DEFLATED if compress and deflates(name, data) else zipfile.ZIP_STORED
                archive.writestr(info, data, compresslevel=1)
    except zipfile.LargeZipFile as error:
        raise ModelFileError("the model is too large for one file (4 GB, or 65,535 parts)") from error


def deflates(name: str, data: bytes) -> bool:
    """Whether a member is compressed: not the magic, and nothing that shrinks so far that it looks like a bomb."""
    return name != MAGIC and len(zlib.compress(data, 1)) * MOST_RATIO > len(data)


def packed(members: Mapping[str, bytes]) -> bytes:
    """The members as one uncompressed zip."""
    buffer = io.BytesIO()
    pack(buffer, members, compress=False)
    return buffer.getvalue()


def sign(listing: bytes, key: bytes) -> bytes:
    return hmac.new(key, listing, "sha256").hexdigest().encode()


# --- reading


def read_model(path: Path, limit: int, key: bytes | None) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The manifest and all members of a model file, each of the size and checksum that the manifest says."""
    with open(path, "rb") as file:
        members = unpack(file, limit)
    check_magic(members.pop(MAGIC))
    listing = members.pop("manifest.json", b"")
    check_signature(listing, members.pop("signature", None), key)
    manifest = read_json(listing, limit)
    if not isinstance(manifest, dict) or not isinstance(manifest.get("members"), dict):
        raise ModelFileError("the manifest does not list the members of the file")
    if manifest["members"].keys() != members.keys():
        odd = sorted(manifest["members"].keys() ^ members.keys())
        raise ModelFileError(f"the manifest and the file differ in their members: {', '.join(map(repr, odd[:3]))}")
    for name, data in members.items():
        if manifest["members"][name] != {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}:
            raise ModelFileError(f"{name!r} does not have the size and checksum of the manifest: the file is damaged")
    return manifest, members


def check_magic(text: bytes) -> None:
    if text != str(FORMAT).encode():
        shown = text[:20].decode("ascii", "replace")
        raise ModelFileError(f"the file has format {shown!r}; this version of softlearning reads format {FORMAT}")


def check_signature(listing: bytes, signature: bytes | None, key: bytes | None) -> None:
    """With a key, the manifest (and by its checksums all else) must be signed with that key."""
    if key is not None and not hmac.compare_digest(signature or b"", sign(listing, key)):
        what = "is not signed" if signature is None else "is signed with another key, or was changed"
        raise ModelFileError(f"the file {what}")


def unpack(file: BinaryIO, limit: int, *, first: str = MAGIC, stored: bool = False) -> dict[str, bytes]:
    """All members of a zip in memory, after its directory was checked."""
    size = check_ends(file, first)
    try:
        with zipfile.ZipFile(file) as archive:
            infos = archive.infolist()
            check_directory(infos, size, limit, stored)
            return {info.filename: archive.read(info) for info in infos}
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, OSError, ValueError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(f"the archive is damaged ({error})") from error


def check_ends(file: BinaryIO, first: str) -> int:
    """The size of a file that begins with a zip entry of the given name and ends with a directory of a sane size.

    Anything else is refused, and never tried as something else.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    start = file.read(30 + len(first))
    if start[:4] != b"PK\x03\x04" or start[30:] != first.encode() or start[26:28] != len(first).to_bytes(2, "little"):
        raise ModelFileError("not a softlearning model file (it does not begin as one); other formats are not read")
    file.seek(max(size - 22, 0))
    mark, disks, here, count, length, _, comment = struct.unpack("<4sIHHIIH", file.read(22))
    if mark != b"PK\x05\x06" or disks or comment or here != count:
        raise ModelFileError("the archive is damaged: it does not end as one")
    if count > MOST_MEMBERS or length > 300 * count:
        raise ModelFileError(
            f"the archive has too many members, or a directory too long; at most {MOST_MEMBERS:,} are read"
        )
    return size


def check_directory(infos: list[zipfile.ZipInfo], size: int, limit: int, stored: bool) -> None:
    """Names, kinds and declared sizes of the members of a zip of `size` bytes."""
    names = [info.filename for info in infos]
    if len(set(names)) < len(names):
        raise ModelFileError("the archive holds a name twice")
    allowed = (zipfile.ZIP_STORED,) if stored else (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
    for info in infos:
        if not NAME.fullmatch(info.filename) or len(info.filename) > 200:
            raise ModelFileError(f"{info.filename[:50]!r} is no name that a model file uses")
        if info.compress_type not in allowed or info.flag_bits & 1:
            raise ModelFileError(f"{info.filename!r} is packed in a way that model files are not")
        if info.file_size > MOST_RATIO * max(info.compress_size, 1):
            raise ModelFileError(f"{info.filename!r} unpacks to more than {MOST_RATIO} times its size")
    if sum(info.compress_size for info in infos) > size:
        raise ModelFileError("the members are larger than the file: they overlap")
    total = sum(info.file_size for info in infos)
    if total > limit:
        raise ModelFileError(f"the file unpacks to {total:,} bytes, above the limit of {limit:,} (max_bytes)")


# --- JSON


def read_json(data: bytes, limit: int) -> Any:
    """A JSON text, refused when it is too long, ambiguous or not JSON."""
    if len(data) > limit // JSON_SHARE:
        raise ModelFileError(f"a description of {len(data):,} bytes is too long for the limit of {limit:,} (max_bytes)")
    try:
        return json.loads(data, object_pairs_hook=unique_keys, parse_constant=refuse_constant)
    except (ValueError, RecursionError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(f"a description in the file is no JSON ({error})") from error


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ModelFileError("a description in the file has a key twice")
    return found


def refuse_constant(text: str) -> Any:
    raise ModelFileError(f"a description in the file holds {text}, which is no JSON")
