"""Damaged folders of runs are refused by file and line, or their results are equal."""

import collections

import numpy as np
import pytest

from spiel_cr.eval.common import json_log
from tests.fuzz import damaged_lines


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run of each command."""
    folders = {}
    for command in damaged_lines.COMMANDS:
        folders[command] = tmp_path_factory.mktemp(command) / "run"
        assert damaged_lines.run(command, folders[command])[0] == 0
    return folders


def check_all(finished, work, trials):
    """How often each command met damage in each way."""
    counts = collections.Counter()
    for command, folder in finished.items():
        for number in range(trials):
            counts[damaged_lines.check(folder, work / "x", command, number)] += 1
    return counts


def test_a_few(finished, tmp_path):
    counts = check_all(finished, tmp_path, 8)
    assert counts["refused"] > 16 and sum(counts.values()) == 32


@pytest.mark.slow
def test_many(finished, tmp_path):
    counts = check_all(finished, tmp_path, 800)
    print(counts)
    assert counts["refused"] > 1600 and sum(counts.values()) == 3200


def test_no_line_reads_as_another(finished, tmp_path):
    """Bytes of lines: what is read without a refusal was written like that."""
    path = tmp_path / "matches.jsonl"
    content = (finished["tournament"] / path.name).read_bytes()
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
