"""Damaged files are rejected by name or read unchanged, and caches recover."""

import collections

import numpy as np
import pytest

from spiel_cr.common import storage
from tests.fuzz import damaged_files
from tests.fuzz.__main__ import run


def test_some_damaged_files():
    with damaged_files.trials(["quick"]) as trial:
        found = collections.Counter(trial(k)["outcome"] for k in range(270))
    assert sum(found[name] for name in found if name.startswith("accident")) > 150
    assert sum(found[name] for name in found if "refused" in name) > 80


@pytest.mark.slow
def test_many_damaged_files(tmp_path):
    rows = run("damaged_files", 0, 20_000, tmp_path / "trials")
    assert not [fault for row in rows for fault in row["faults"]]


def test_rebuilt_undamaged_archives_are_read(tmp_path):
    """Forged archives must fail because of the forgery, not of the rebuilding."""
    path = tmp_path / "file"
    storage.save(path, {"numbers": np.arange(6.0).reshape(2, 3)}, {"kind": "some"})
    content = path.read_bytes()
    again = damaged_files._archive(damaged_files._members(content), b"")
    for archive in (again, damaged_files._unsealed(content)):
        path.write_bytes(damaged_files._sealed(archive))
        arrays, metadata = storage.load(path)
        np.testing.assert_array_equal(arrays["numbers"], np.arange(6.0).reshape(2, 3))
        assert metadata == {"kind": "some"}
