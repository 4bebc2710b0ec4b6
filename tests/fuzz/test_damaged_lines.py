"""Damaged run folders are rejected by file and line, or give equal results."""

import collections
import json
import shutil

import numpy as np
import pytest

from spiel_cr.common import json_log
from tests.fuzz import damaged_lines
from tests.fuzz.__main__ import run
from tests.fuzz.damaged_lines import KUHN


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Return a finished run of each command."""
    return {
        command: damaged_lines.finish(command, tmp_path_factory.mktemp(command) / "run")
        for command in damaged_lines.COMMANDS
    }


def test_some_damaged_folders_are_rejected_or_give_equal_results(finished, tmp_path):
    counts = collections.Counter(
        damaged_lines.check(done, tmp_path / "x", command, number)
        for command, done in finished.items()
        for number in range(8)
    )
    assert counts["refused"] > 16 and sum(counts.values()) == 32


@pytest.mark.parametrize("first", [3, pytest.param(7, marks=pytest.mark.slow)])
@pytest.mark.parametrize("command", damaged_lines.COMMANDS)
def test_changed_values_with_valid_checksums_are_detected_or_unused(
    finished, tmp_path, command, first
):
    """Values are exchanged, and checksums are computed again."""
    for number in range(first, 160, 8):
        damaged_lines.check(finished[command], tmp_path / "x", command, number)


@pytest.mark.parametrize("more", [{"games": [KUHN, ""]}, {"seeds": 2**70}])
def test_settings_with_more_games_or_seeds_do_not_change_results(
    finished, tmp_path, more
):
    """Games and seeds that a comparison does not use do not change its results."""
    work = tmp_path / "x"
    shutil.copytree(finished["compare"].folder, work)
    path = work / json_log.SETTINGS
    settings = json_log.unsealed(path.read_bytes()) | more
    path.write_text(json.dumps(json_log.sealed(settings), indent=1))
    code, _, results = damaged_lines.run("compare", work)
    assert code == 0 and results["games"][0] == finished["compare"].results["games"][0]


def test_checker_reports_a_changed_line_with_a_valid_checksum(
    finished, tmp_path, monkeypatch
):
    """The line has a valid checksum, and the run reports unchanged results."""
    results = finished["playing"].results

    def change(content, random):
        lines = content.splitlines()
        record = json_log.unsealed(lines[0])
        record["utility"] += 1
        lines[0] = json.dumps(json_log.sealed(record)).encode()
        return b"\n".join([*lines, b""])

    monkeypatch.setattr(damaged_lines, "files", lambda at: sorted(at.glob("*.jsonl")))
    monkeypatch.setattr(damaged_lines, "run", lambda *_: (0, "", results))
    monkeypatch.setattr(damaged_lines, "damage", change)
    with pytest.raises(AssertionError, match=r"check\(finished, work, 'playing', 0\)"):
        damaged_lines.check(finished["playing"], tmp_path / "x", "playing", 0)


@pytest.mark.slow
def test_many_damaged_folders_are_rejected_or_give_equal_results(tmp_path):
    rows = run("damaged_lines", 0, 3200, tmp_path / "trials")
    assert not [fault for row in rows for fault in row["faults"]]
    assert sum("refused" in row["outcome"] for row in rows) > 1600


def test_damaged_lines_are_never_read_as_other_values(finished, tmp_path):
    """A line that is read without an error has its original content."""
    path = tmp_path / "matches.jsonl"
    content = (finished["tournament"].folder / path.name).read_bytes()
    key = ("deal", "row", "column", "swapped")
    path.write_bytes(content)
    true = json_log.read_lines(path, key)
    refused = 0
    for number in range(100):
        path.write_bytes(damaged_lines.damage(content, np.random.default_rng(number)))
        try:
            found = json_log.read_lines(path, key)
        except json_log.CorruptFileError as error:
            assert f"{path}, line " in str(error)
            refused += 1
            continue
        assert found.items() <= true.items(), f"default_rng({number})"
    assert refused > 60
