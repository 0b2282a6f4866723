"""JSON with one meaning or none."""

import json

import pytest

from softlearning.data.strictjson import read_json


def test_plain_json_is_read():
    value = {"a": [1, 2.5, None, True, "é😀"], "b": {}}
    assert read_json(json.dumps(value).encode()) == value


@pytest.mark.parametrize(
    "text",
    [
        b'{"a": 1, "a": 1}',
        b"NaN",
        b"[-Infinity]",
        b"1e999",
        b'"\\ud800"',
        b"[" * 100_000,
        b'"\xff"',
        b"{'a': 1}",
        b"9" * 5000,
        b"",
    ],
)
def test_what_has_two_meanings_or_none_is_refused(text):
    with pytest.raises(ValueError):
        read_json(text)
