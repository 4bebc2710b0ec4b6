"""Logs of runs: records, resumption, and rejection of other or corrupt folders."""

import json
import os

import pytest

from spiel_cr.common.errors import CorruptFileError
from spiel_cr.common.json_log import JsonLog, OtherRunError, read_lines
from tests.support.full_disk import file_size

SETTINGS = {"game": "kuhn_poker", "seed": 0, "bots": ("a", "b")}


def open_log(folder, settings=SETTINGS, **options):
    return JsonLog(folder, "results", settings, key=("deal", "seat"), **options)


def write_log(folder, count=3, **options):
    with open_log(folder, **options) as log:
        for deal in range(count):
            log.add({"deal": deal, "seat": 0, "return": deal / 3})
    return folder / "results.jsonl"


def test_records_are_read_by_the_next_run(tmp_path):
    write_log(tmp_path)
    with open_log(tmp_path) as log:
        assert log.records == {
            (deal, 0): {"deal": deal, "seat": 0, "return": deal / 3}
            for deal in range(3)
        }
        log.add({"deal": 1, "seat": 0, "return": 9.0}, sync=True)
    with open_log(tmp_path) as log:
        # The latest record of a key counts; the order is that of first records.
        assert [key[0] for key in log.records] == [0, 1, 2]
        assert log.records[1, 0]["return"] == 9.0


def test_records_are_written_immediately(tmp_path):
    with open_log(tmp_path) as log:
        for count in range(1, 4):
            log.add({"deal": count, "seat": 0})
            assert len((tmp_path / "results.jsonl").read_text().splitlines()) == count


def test_incomplete_last_lines_are_removed(tmp_path):
    path = write_log(tmp_path)
    whole = path.read_bytes()
    for cut in (1, 2, 20):
        path.write_bytes(whole[:-cut])
        with open_log(tmp_path) as log:
            assert list(log.records) == [(0, 0), (1, 0)]
            log.add({"deal": 2, "seat": 0, "return": 2 / 3})
        assert path.read_bytes() == whole
    # Reading does not change the file.
    path.write_bytes(whole[:-1])
    assert len(read_lines(path, ("deal", "seat"))) == 2
    assert path.read_bytes() == whole[:-1]


@pytest.mark.parametrize("wrong", ["{}", "[1]", "zap", '{"deal": [], "seat": 0}'])
def test_error_names_the_invalid_line(tmp_path, wrong):
    path = write_log(tmp_path)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], wrong, lines[2]]) + "\n")
    with pytest.raises(
        ValueError, match=r"results.jsonl, line 2, is not a valid match.*del"
    ):
        open_log(tmp_path, label="match")
    path.write_text("\n".join(lines) + "\n")

    def check(record):
        if record["deal"] == 2:
            raise ValueError("no such deal")

    with pytest.raises(ValueError, match="line 3.*no such deal"):
        open_log(tmp_path, check=check)
    open_log(tmp_path).close()


def test_checksums_detect_changed_lines(tmp_path):
    path = write_log(tmp_path)
    before = path.read_text()
    path.write_text(before.replace("0.333", "0.433"))
    with pytest.raises(CorruptFileError, match="results.jsonl, line 2.*checksum.*del"):
        open_log(tmp_path)
    lines = before.splitlines(keepends=True)
    path.write_text(lines[0] + '{"deal": 1, "seat": 0, "return": 1}\n' + lines[2])
    with pytest.raises(CorruptFileError, match='line 2.*has no checksum "crc".*delete'):
        open_log(tmp_path)
    # A line that was deleted is computed again.
    path.write_text(lines[0] + lines[2])
    with open_log(tmp_path) as log:
        assert list(log.records) == [(0, 0), (2, 0)]


def test_rejects_edited_settings(tmp_path):
    write_log(tmp_path)
    path = tmp_path / "settings.json"
    before = path.read_text()
    path.write_text(before.replace('"seed": 0', '"seed": 1'))
    for seed in (0, 1):
        with pytest.raises(CorruptFileError, match="settings.json is.* edited.*folder"):
            open_log(tmp_path, {**SETTINGS, "seed": seed})
    path.write_text(before)
    open_log(tmp_path).close()


def test_rejects_folders_of_other_commands(tmp_path):
    write_log(tmp_path, settings={"game": "kuhn_poker"})
    with pytest.raises(OtherRunError, match="another command, without seed; choose"):
        open_log(tmp_path)


def test_full_disk_loses_only_the_current_record(tmp_path):
    path = write_log(tmp_path)
    whole = path.read_bytes()
    with open_log(tmp_path) as log:
        log.add({"deal": 3, "seat": 0})
        with (
            file_size(path.stat().st_size + 10),
            pytest.raises(OSError, match=r"File too large: .*results.jsonl"),
        ):
            log.add({"deal": 4, "seat": 0})
        assert (4, 0) in log.records
        log.add({"deal": 5, "seat": 0})
    with open_log(tmp_path) as log:
        assert [key[0] for key in log.records] == [0, 1, 2, 3, 5]
    assert path.read_bytes().startswith(whole)


def test_rejects_other_settings_without_changing_files(tmp_path):
    write_log(tmp_path, facts={"versions": 1})
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    with pytest.raises(OtherRunError, match=r"with seed=0, not 1; choose another fo"):
        open_log(tmp_path, {**SETTINGS, "seed": 1})
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    # Facts are not settings, so they may differ.
    with open_log(tmp_path, facts={"versions": 2}) as log:
        assert log.settings["versions"] == 1


def test_settings_are_merged(tmp_path):
    def merge(found, new):
        if found["game"] != new["game"]:
            raise OtherRunError("is of another game")
        return {**new, "seed": max(found["seed"], new["seed"])}

    write_log(tmp_path)
    with open_log(tmp_path, {**SETTINGS, "seed": 5}, merge=merge) as log:
        assert log.settings["seed"] == 5
        assert json.loads((tmp_path / "settings.json").read_text())["seed"] == 0
        log.begin()
    with open_log(tmp_path, merge=merge) as log:
        assert log.settings["seed"] == 5
    with pytest.raises(OtherRunError, match="out=.* is of another game; choose"):
        open_log(tmp_path, {**SETTINGS, "game": "leduc_poker"}, merge=merge)


def test_rejects_corrupt_or_missing_settings(tmp_path):
    write_log(tmp_path)
    for text in ("{}", "[]", "{"):
        (tmp_path / "settings.json").write_text(text)
        with pytest.raises(ValueError, match="settings.json is corrupt.*delete this"):
            open_log(tmp_path)
    (tmp_path / "settings.json").unlink()
    with pytest.raises(ValueError, match=r"has results.jsonl but no settings.json"):
        open_log(tmp_path)


def test_runs_without_results_leave_no_folder(tmp_path):
    folder = tmp_path / "new"
    open_log(folder).close()
    assert not folder.exists()
    open_log(tmp_path).close()
    write_log(tmp_path, settings={**SETTINGS, "seed": 1})


def test_rejects_folders_in_use(tmp_path):
    first = open_log(tmp_path)
    with pytest.raises(ValueError, match="in use by another run"):
        open_log(tmp_path)
    first.close()
    open_log(tmp_path).close()


def test_records_stay_in_memory_without_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with open_log(None) as log:
        log.add({"deal": 0, "seat": 1})
        assert list(log.records) == [(0, 1)]
    assert not list(tmp_path.iterdir())


def test_rejects_unwritable_paths(tmp_path):
    file = tmp_path / "file"
    file.write_text("mine")
    with pytest.raises(ValueError, match="is a file; use the path of a folder"):
        open_log(file)
    with pytest.raises(ValueError, match="cannot be written"):
        open_log(file / "below")
    assert file.read_text() == "mine" and os.listdir(tmp_path) == ["file"]
