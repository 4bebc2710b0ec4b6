"""Damaged folders of runs are refused by file and line, or their results are equal."""

import collections
import json

import numpy as np
import pytest

from spiel_cr.common import json_log
from tests.fuzz import damaged_lines


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run of each command."""
    return {
        command: damaged_lines.finish(command, tmp_path_factory.mktemp(command) / "run")
        for command in damaged_lines.COMMANDS
    }


def check_all(finished, work, trials):
    """How often each command met damage in each way."""
    counts = collections.Counter()
    for command, run in finished.items():
        for number in range(trials):
            counts[damaged_lines.check(run, work / "x", command, number)] += 1
    return counts


def test_a_few(finished, tmp_path):
    counts = check_all(finished, tmp_path, 8)
    assert counts["refused"] > 16 and sum(counts.values()) == 32


def test_the_checker_sees_another_line(finished, tmp_path, monkeypatch):
    """Whose checksum is right, in a run that says it comes to the same results."""
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
def test_many(finished, tmp_path):
    counts = check_all(finished, tmp_path, 800)
    print(counts)
    assert counts["refused"] > 1600 and sum(counts.values()) == 3200


def test_no_line_reads_as_another(finished, tmp_path):
    """Bytes of lines: what is read without a refusal was written like that."""
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
        except json_log.DamagedFileError as error:
            assert f"{path}, line " in str(error)
            refused += 1
            continue
        assert found.items() <= true.items(), f"default_rng({number})"
    assert refused > 60
