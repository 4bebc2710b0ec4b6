"""The folder of a run: what is kept, what is continued, what is refused."""

import json
import os

import pytest

from spiel_cr.common.errors import CorruptFileError
from spiel_cr.common.json_log import JsonLog, OtherRunError, read_lines
from tests.support.full_disk import file_size

SETTINGS = {"game": "kuhn_poker", "seed": 0, "bots": ("a", "b")}


def opened(folder, settings=SETTINGS, **options):
    return JsonLog(folder, "results", settings, key=("deal", "seat"), **options)


def filled(folder, count=3, **options):
    with opened(folder, **options) as log:
        for deal in range(count):
            log.add({"deal": deal, "seat": 0, "return": deal / 3})
    return folder / "results.jsonl"


def test_the_next_run_finds_what_was_added(tmp_path):
    filled(tmp_path)
    with opened(tmp_path) as log:
        assert log.records == {
            (deal, 0): {"deal": deal, "seat": 0, "return": deal / 3}
            for deal in range(3)
        }
        log.add({"deal": 1, "seat": 0, "return": 9.0}, sync=True)
    with opened(tmp_path) as log:
        # The newest line counts, the order is that of the first.
        assert [key[0] for key in log.records] == [0, 1, 2]
        assert log.records[1, 0]["return"] == 9.0


def test_a_line_is_in_the_file_as_soon_as_it_was_added(tmp_path):
    with opened(tmp_path) as log:
        for count in range(1, 4):
            log.add({"deal": count, "seat": 0})
            assert len((tmp_path / "results.jsonl").read_text().splitlines()) == count


def test_half_a_line_is_cut_off(tmp_path):
    path = filled(tmp_path)
    whole = path.read_bytes()
    for cut in (1, 2, 20):
        path.write_bytes(whole[:-cut])
        with opened(tmp_path) as log:
            assert list(log.records) == [(0, 0), (1, 0)]
            log.add({"deal": 2, "seat": 0, "return": 2 / 3})
        assert path.read_bytes() == whole
    # Reading alone changes nothing.
    path.write_bytes(whole[:-1])
    assert len(read_lines(path, ("deal", "seat"))) == 2
    assert path.read_bytes() == whole[:-1]


@pytest.mark.parametrize("wrong", ["{}", "[1]", "zap", '{"deal": [], "seat": 0}'])
def test_a_damaged_line_is_named(tmp_path, wrong):
    path = filled(tmp_path)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], wrong, lines[2]]) + "\n")
    with pytest.raises(
        ValueError, match=r"results.jsonl, line 2, is not a valid match.*del"
    ):
        opened(tmp_path, label="match")
    path.write_text("\n".join(lines) + "\n")

    def check(record):
        if record["deal"] == 2:
            raise ValueError("no such deal")

    with pytest.raises(ValueError, match="line 3.*no such deal"):
        opened(tmp_path, check=check)
    opened(tmp_path).close()


def test_a_changed_digit_is_noticed(tmp_path):
    path = filled(tmp_path)
    before = path.read_text()
    path.write_text(before.replace("0.333", "0.433"))
    with pytest.raises(CorruptFileError, match="results.jsonl, line 2.*checksum.*del"):
        opened(tmp_path)
    lines = before.splitlines(keepends=True)
    path.write_text(lines[0] + '{"deal": 1, "seat": 0, "return": 1}\n' + lines[2])
    with pytest.raises(CorruptFileError, match='line 2.*has no checksum "crc".*delete'):
        opened(tmp_path)
    # A line that was deleted is computed again.
    path.write_text(lines[0] + lines[2])
    with opened(tmp_path) as log:
        assert list(log.records) == [(0, 0), (2, 0)]


def test_edited_settings_are_refused(tmp_path):
    filled(tmp_path)
    path = tmp_path / "settings.json"
    before = path.read_text()
    path.write_text(before.replace('"seed": 0', '"seed": 1'))
    for seed in (0, 1):
        with pytest.raises(CorruptFileError, match="settings.json is.* edited.*folder"):
            opened(tmp_path, {**SETTINGS, "seed": seed})
    path.write_text(before)
    opened(tmp_path).close()


def test_a_folder_of_another_command_is_refused(tmp_path):
    filled(tmp_path, settings={"game": "kuhn_poker"})
    with pytest.raises(OtherRunError, match="another command, without seed; choose"):
        opened(tmp_path)


def test_a_full_disk_names_the_file_and_loses_that_line_only(tmp_path):
    path = filled(tmp_path)
    whole = path.read_bytes()
    with opened(tmp_path) as log:
        log.add({"deal": 3, "seat": 0})
        with (
            file_size(path.stat().st_size + 10),
            pytest.raises(OSError, match=r"File too large: .*results.jsonl"),
        ):
            log.add({"deal": 4, "seat": 0})
        assert (4, 0) in log.records
        log.add({"deal": 5, "seat": 0})
    with opened(tmp_path) as log:
        assert [key[0] for key in log.records] == [0, 1, 2, 3, 5]
    assert path.read_bytes().startswith(whole)


def test_another_run_is_refused_and_nothing_is_changed(tmp_path):
    filled(tmp_path, facts={"versions": 1})
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    with pytest.raises(OtherRunError, match=r"with seed=0, not 1; choose another fo"):
        opened(tmp_path, {**SETTINGS, "seed": 1})
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    # Facts are no settings.
    with opened(tmp_path, facts={"versions": 2}) as log:
        assert log.settings["versions"] == 1


def test_settings_may_grow(tmp_path):
    def merge(found, new):
        if found["game"] != new["game"]:
            raise OtherRunError("is of another game")
        return {**new, "seed": max(found["seed"], new["seed"])}

    filled(tmp_path)
    with opened(tmp_path, {**SETTINGS, "seed": 5}, merge=merge) as log:
        assert log.settings["seed"] == 5
        assert json.loads((tmp_path / "settings.json").read_text())["seed"] == 0
        log.begin()
    with opened(tmp_path, merge=merge) as log:
        assert log.settings["seed"] == 5
    with pytest.raises(OtherRunError, match="out=.* is of another game; choose"):
        opened(tmp_path, {**SETTINGS, "game": "leduc_poker"}, merge=merge)


def test_damaged_or_missing_settings_are_refused(tmp_path):
    filled(tmp_path)
    for text in ("{}", "[]", "{"):
        (tmp_path / "settings.json").write_text(text)
        with pytest.raises(ValueError, match="settings.json is corrupt.*delete this"):
            opened(tmp_path)
    (tmp_path / "settings.json").unlink()
    with pytest.raises(ValueError, match=r"has results.jsonl but no settings.json"):
        opened(tmp_path)


def test_a_run_without_results_does_not_keep_the_folder(tmp_path):
    folder = tmp_path / "new"
    opened(folder).close()
    assert not folder.exists()
    opened(tmp_path).close()
    filled(tmp_path, settings={**SETTINGS, "seed": 1})


def test_only_one_process_at_a_time(tmp_path):
    first = opened(tmp_path)
    with pytest.raises(ValueError, match="in use by another run"):
        opened(tmp_path)
    first.close()
    opened(tmp_path).close()


def test_without_a_folder_results_are_kept_in_memory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with opened(None) as log:
        log.add({"deal": 0, "seat": 1})
        assert list(log.records) == [(0, 1)]
    assert not list(tmp_path.iterdir())


def test_places_that_cannot_be_written(tmp_path):
    file = tmp_path / "file"
    file.write_text("mine")
    with pytest.raises(ValueError, match="is a file; use the path of a folder"):
        opened(file)
    with pytest.raises(ValueError, match="cannot be written"):
        opened(file / "below")
    assert file.read_text() == "mine" and os.listdir(tmp_path) == ["file"]
