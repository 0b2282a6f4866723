"""Damage at random, and the process in which files of strangers are opened.

`mutated(data, seed)` damages a file; `resealed(path, seed)` damages its contents and repairs the checksums.
`python -m tests.storage.hostile MODEL ROWS` opens the files named on its input under an audit hook, measures resident
memory, and prints one line of JSON per file.
"""

from __future__ import annotations

import faulthandler
import json
import os
import re
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from softlearning.storage.trial import COMMAND
from tests.storage.crafted import Opened, nodes, plain, resized, unzipped, zipped

LIMIT = 64 << 20  # bytes that a loaded model may take in these tests
PATIENCE = 60  # seconds after which opening a file counts as a hang


# --- damage at random


def mutated(data, seed):
    """A file with flipped bits, overwritten or missing bytes, or two exchanged members."""
    rng = np.random.default_rng(seed)
    kind = seed % 5
    if kind == 4:
        return exchanged(data, rng)
    if kind == 3:
        start, end = int(rng.integers(len(data))), int(rng.integers(1, 200))
        return data[:start] if rng.random() < 0.5 else data[:start] + data[start + end :]
    damaged = bytearray(data)
    for _ in range(int(rng.integers(1, 9))):
        at = int(rng.integers(len(damaged)))
        damaged[at] = damaged[at] ^ (1 << int(rng.integers(8))) if kind < 2 else int(rng.integers(256))
    return bytes(damaged)


def exchanged(data, rng):
    members = unzipped(data)
    a, b = 2 + rng.permutation(len(members) - 2)[:2]
    members[a], members[b] = (members[a][0], members[b][1]), (members[b][0], members[a][1])
    return zipped(members)


def resealed(path, seed):
    """A file whose contents were damaged by someone who repairs the checksums."""
    rng, file = np.random.default_rng(seed), Opened(path)
    (damage_member, damage_text, damage_parameter, damage_parameter)[seed % 4](file, rng)
    return file.seal()


def damage_member(file, rng):
    """Bytes of an array, of the CatBoost model or of the description; one in three in the native model."""
    names = sorted(file.members)
    native = [name for name in names if name.endswith(".bin")]
    name = str(rng.choice(native if rng.random() < 1 / 3 else [*names, "schema.json"]))
    if name == "schema.json":
        file.schema = damaged_bytes(json.dumps(file.schema).encode(), rng)
    else:
        file.members[name] = damaged_bytes(file.members[name], rng)


def damage_text(file, rng):
    """A number of the LightGBM model exchanged for an odd one."""
    place = file.objects("Booster")[0]
    whole = json.loads(place["_handle"]["content"])
    numbers = list(re.finditer(r"-?\d+(\.\d+)?", whole[: whole.index("end of trees")]))
    at = numbers[int(rng.integers(len(numbers)))]
    odd = str(rng.choice(["0", "1", "-1", "-2", "3", "99999", "-99999", "2147483647", "nan", "1e308", "x", ""]))
    place["_handle"] = plain(resized(whole[: at.start()] + odd + whole[at.end() :]))


ODD = ("", "a", "gbdt num_threads=3000000", "x\ny=1", "é", "a" * 5000, "../../etc/passwd", "__class__", "nan", "-1")
NUMBERS = (0, -1, 1, 3, 10**9, 2**63, -(2**63), 10**30, 0.5, float("nan"), float("inf"), True, None)


def damage_parameter(file, rng):
    """A word or a number anywhere in the description exchanged for an odd one."""
    places = [n for n in nodes(file.schema) if n.get("__loader__") == "JsonNode"]
    words = [n for n in places if n["content"].startswith('"')]
    if rng.random() < 0.5:
        words[int(rng.integers(len(words)))]["content"] = json.dumps(str(rng.choice(ODD)))
    else:
        places[int(rng.integers(len(places)))]["content"] = json.dumps(NUMBERS[int(rng.integers(len(NUMBERS)))])


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

NEVER = {"exec", "import", "os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen", "ctypes.dlopen"}
NEVER |= {"socket.connect", "socket.bind", "pickle.find_class", "shutil.rmtree"}
NEVER |= {"os.remove", "os.rename", "os.mkdir", "os.rmdir"}
READABLE: set[str] = set()


def forbid_and_report():
    """An audit hook that writes down what a model file must never cause."""
    seen = []

    def hook(event, args):
        if event == "subprocess.Popen" and args[1] == COMMAND:  # the process in which native models are tried
            return
        if event in NEVER:
            seen.append(f"{event} {str(args[0])[:100]}")
        elif event == "compile" and args[1] != "<unknown>":  # literals in the headers of arrays are parsed, not run
            seen.append(f"compile {str(args[1])[:100]}")
        elif event == "open" and isinstance(args[0], int):  # a pipe that is open already
            return
        elif event == "open" and (is_writing(args[1], args[2]) or not may_read(str(args[0]))):
            seen.append(f"open {str(args[0])[:100]} {args[1]}")

    sys.addaudithook(hook)
    return seen


def is_writing(mode, flags):
    return any(letter in (mode or "") for letter in "wax+") or bool((flags or 0) & (os.O_WRONLY | os.O_RDWR))


def may_read(name):
    return name in READABLE or name.startswith(("/proc", "/sys", sys.prefix, sys.base_prefix))


def resident(name):
    """VmRSS or VmHWM, its peak, in megabytes."""
    return int(re.search(rf"{name}:\s+(\d+)", Path("/proc/self/status").read_text())[1]) >> 10


def open_file(path, rows, expected):
    """(outcome, reason) of one file; running out of memory is no refusal."""
    from softlearning import load
    from softlearning.storage import ModelFileError

    try:
        given = load(path, max_bytes=LIMIT).predict_proba(rows)
        return ("same" if np.array_equal(given, expected) else "other"), ""
    except ModelFileError as error:
        return "refused", str(error)
    except MemoryError as error:
        return "exhausted", str(error)
    except Exception as error:
        return "raised", f"{type(error).__name__}: {error}"


def watched(path, rows, expected, seen):
    """One report: what came of a file, how long it took, how far resident memory rose above where it was."""
    READABLE.add(path)
    Path("/proc/self/clear_refs").write_text("5")  # the peak of resident memory begins anew
    seen.clear()
    before, start = resident("VmRSS"), time.perf_counter()
    faulthandler.dump_traceback_later(PATIENCE, exit=True)
    outcome, reason = open_file(path, rows, expected)
    faulthandler.cancel_dump_traceback_later()
    report = {"path": path, "outcome": outcome, "reason": reason[:300], "seconds": time.perf_counter() - start}
    return {**report, "grown_mb": resident("VmHWM") - before, "seen": seen[:5]}


def judge():
    """Open every file named on the input; print for each what came of it."""
    from softlearning import load

    warnings.simplefilter("ignore")
    genuine, rows = sys.argv[1], pd.read_json(sys.argv[2])
    expected = load(genuine).predict_proba(rows)  # also imports whatever loading needs
    seen = forbid_and_report()
    for line in sys.stdin:
        print(json.dumps(watched(line.rstrip("\n"), rows, expected, seen)), flush=True)


if __name__ == "__main__":
    judge()
