"""Damaged files are refused by name, or read as what they were; caches recover."""

import collections

import numpy as np
import pytest

from spiel_cr.common import storage
from tests.fuzz import damaged_files
from tests.fuzz.__main__ import run


def test_a_few():
    with damaged_files.trials(["quick"]) as trial:
        found = collections.Counter(trial(k)["outcome"] for k in range(270))
    assert sum(found[name] for name in found if name.startswith("accident")) > 150
    assert sum(found[name] for name in found if "refused" in name) > 80


@pytest.mark.slow
def test_many(tmp_path):
    rows = run("damaged_files", 0, 20_000, tmp_path / "trials")
    assert not [fault for row in rows for fault in row["faults"]]


def test_what_was_not_damaged_is_read(tmp_path):
    """The fuzzer's own archives, so that its forgeries fail for what they forge."""
    path = tmp_path / "file"
    storage.save(path, {"numbers": np.arange(6.0).reshape(2, 3)}, {"kind": "some"})
    content = path.read_bytes()
    again = damaged_files._archive(damaged_files._members(content), b"")
    for archive in (again, damaged_files._unsealed(content)):
        path.write_bytes(damaged_files._sealed(archive))
        arrays, metadata = storage.load(path)
        np.testing.assert_array_equal(arrays["numbers"], np.arange(6.0).reshape(2, 3))
        assert metadata == {"kind": "some"}
