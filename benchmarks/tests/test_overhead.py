"""The overhead file is written part by part, and its figures of memory are those of the system."""

import mmap
import os

import pandas as pd

from softlearning_bench import overhead


def test_a_part_is_written_over_what_the_file_had_of_it(tmp_path, monkeypatch):
    path = tmp_path / "folder" / "overhead.csv"
    times = iter([1.0, 2.0, 3.0])
    part = lambda what: [{"what": what, "where": "here", "seconds": next(times)}]
    monkeypatch.setattr(overhead, "PARTS", {"a": lambda: part("a"), "b": lambda: part("b")})
    overhead.main(str(path))
    overhead.main(str(path), "a")
    assert pd.read_csv(path).set_index("what")["seconds"].to_dict() == {"a": 3.0, "b": 2.0}


def test_memory_of_this_process_is_watched():
    """Pages that are mapped anew, since what was freed before may be given again; looked at until they are seen."""
    size, before = 2**27, overhead.memory_of(os.getpid())["RssAnon"]
    with overhead.watched_memory() as most, mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as held:
        held.write(b"x" * size)
        for _ in range(1_000):
            if most["here"]["RssAnon"] >= before + size // 2:
                break
            overhead.time.sleep(0.02)
    assert most["here"]["RssAnon"] >= before + size // 2
