"""Comparing: runs that survive failures, kills and crashes; workers and Ray."""

import json
import math
import multiprocessing
import subprocess
import sys
import time

import pytest

from spiel_cr.common import json_log
from spiel_cr.common.executor import Executor
from spiel_cr.eval.adapters import registry
from spiel_cr.eval.common import conditions
from spiel_cr.eval.common.budget import Budget
from spiel_cr.eval.comparison import comparisons, measure
from spiel_cr.games.opening import estimate
from tests.support.commands import report, run, told

KUHN = "kuhn_poker"
RESULTS = "results.jsonl"
NO_JAX = "openspiel-cfr;openspiel-cfr+;lp"


class Broken:
    compile_seconds, note, iterations = 0.0, "", None

    def __init__(self, instance, seed):
        pass

    def run(self, iterations):
        raise RuntimeError("lost its way\nwith details")


IN_PROCESS = comparisons.CompareConfig(executor=Executor())


def go(out, algorithms=NO_JAX, iterations=10, workers=0, **options):
    return comparisons.compare(
        [KUHN],
        registry.expand(algorithms),
        Budget(None, iterations),
        out,
        comparisons.CompareConfig(executor=Executor(workers), **options),
    )


def lines(out):
    """What is on the disk; half a line, just being written, is not."""
    text = (out / RESULTS).read_text("utf-8")
    whole = text[: text.rfind("\n") + 1]
    return [json.loads(line) for line in whole.splitlines()]


def test_a_failing_run_is_recorded_and_the_others_go_on(tmp_path, monkeypatch):
    broken = registry.find("openspiel-cfr")._replace(make=Broken)
    monkeypatch.setitem(registry.BUNDLED, "openspiel-cfr", broken)
    result = go(tmp_path, "openspiel-cfr;openspiel-cfr+")
    first, second = result.records
    assert first["error"] == "RuntimeError: lost its way"
    assert first["nash_conv"] is None
    assert second["error"] is None and second["nash_conv"] > 0
    assert "lost its way" in (tmp_path / "report.md").read_text("utf-8")
    # It counts as finished, unless asked otherwise.
    monkeypatch.undo()
    assert go(tmp_path, "openspiel-cfr").records[0]["error"]
    assert len(lines(tmp_path)) == 2
    assert go(tmp_path, "openspiel-cfr", retry=True).records[0]["error"] is None


def test_missing_ones_are_named_and_tried_again(tmp_path, monkeypatch):
    absent = registry.find("openspiel-cfr")._replace(modules=("nowhere",), extra="deep")
    monkeypatch.setitem(registry.BUNDLED, "openspiel-cfr", absent)
    for _ in range(2):
        (record,) = go(tmp_path, "openspiel-cfr").records
        assert record["missing"] == (
            "needs nowhere, not installed: pip install 'spiel_cr[deep]'"
        )
    assert len(lines(tmp_path)) == 1
    monkeypatch.undo()
    (record,) = go(tmp_path, "openspiel-cfr").records
    assert "missing" not in record and record["nash_conv"] > 0


def test_finished_runs_are_kept_and_not_run_again(tmp_path, monkeypatch):
    go(tmp_path, "openspiel-cfr;openspiel-os-mccfr", seeds=2)
    old = lines(tmp_path)
    assert [(r["algorithm"], r["seed"]) for r in old] == [
        ("openspiel-cfr", 0),
        ("openspiel-os-mccfr", 0),
        ("openspiel-os-mccfr", 1),
    ]
    # Half a line, as a kill leaves it: its run was not finished.
    file = tmp_path / RESULTS
    content = file.read_bytes()
    file.write_bytes(content[: content.rstrip().rfind(b"\n") + 40])
    ran = []
    do = measure.measure_run
    monkeypatch.setattr(
        measure, "measure_run", lambda games, c: ran.append(c.key) or do(games, c)
    )
    result = go(tmp_path, "openspiel-os-mccfr;openspiel-cfr+", seeds=2)
    assert ran == [(KUHN, "openspiel-cfr+", 0), (KUHN, "openspiel-os-mccfr", 1)]
    assert [r["nash_conv"] for r in lines(tmp_path)[:2]] == [
        r["nash_conv"] for r in old[:2]
    ]
    # The report is on all that the folder has.
    assert len(result.records) == 4
    assert result.settings["algorithms"][0] == "openspiel-cfr"


def test_a_folder_that_grew_has_the_conditions_of_each_run(tmp_path, monkeypatch):
    work = Executor.map
    here = lambda executor, *a, **b: work(Executor(), *a, **b)  # noqa: E731
    monkeypatch.setattr(Executor, "map", here)
    go(tmp_path, "openspiel-cfr;lp", workers=2)
    monkeypatch.setattr(conditions, "source", lambda: "f00")
    monkeypatch.setattr(conditions, "optional_versions", lambda: {"flax": "9.8"})
    first, _, last = go(tmp_path, "openspiel-cfr;lp;uniform", workers=0).records
    assert (first["workers"], last["workers"]) == (2, 0)
    assert first["source"] != last["source"] == "f00"
    assert len(first["source"]) == 12
    text = (tmp_path / "report.md").read_text("utf-8")
    assert "in 2 worker processes at a time (2 runs)" in text
    assert "one after the other in one process (1 run)" in text
    assert f"source: {first['source']} (2 runs), f00 (1 run)" in text
    flax = first["optional_versions"].get("flax", "absent")
    assert f"flax: {flax} (2 runs), 9.8 (1 run)" in text


def test_nothing_runs_twice_under_two_names(tmp_path, monkeypatch):
    ran = []
    do = measure.measure_run
    monkeypatch.setattr(
        measure, "measure_run", lambda games, c: ran.append(c.key) or do(games, c)
    )
    budget = Budget(None, 5)

    def run(games, algorithms):
        return comparisons.compare(games, algorithms, budget, tmp_path, IN_PROCESS)

    result = run([KUHN, "kuhn_poker()"], ["openspiel-cfr"] * 2)
    assert ran == [(KUHN, "openspiel-cfr", 0)]
    assert result.settings["games"] == [KUHN]
    assert result.settings["algorithms"] == ["openspiel-cfr"]
    assert len(result.records) == 1
    # The folder's words are those of its runs.
    result = run(["kuhn_poker()"], ["openspiel-cfr", "uniform"])
    assert ran[1:] == [(KUHN, "uniform", 0)]
    assert result.settings["games"] == [KUHN] and len(result.records) == 2
    keys = [
        c.key for c in comparisons.plan([KUHN, "kuhn_poker()"], ["lp"] * 2, budget, 1)
    ]
    assert keys == [(KUHN, "lp", 0)]


def test_games_too_large_are_refused_at_once(tmp_path):
    """phantom_ttt would be walked for days; Leduc poker shows its size on the way."""
    with pytest.raises(ValueError, match=r"phantom_ttt\(\) .*memory_limit is 4 GB"):
        comparisons.compare(["phantom_ttt"], ["lp"], Budget(1.0, None), tmp_path / "a")
    assert not (tmp_path / "a").exists()
    walks = []

    def compare_with(limit):
        return comparisons.compare(
            ["leduc_poker"],
            ["openspiel-cfr", "uniform"],
            Budget(None, 1),
            tmp_path,
            comparisons.CompareConfig(executor=Executor(), memory_limit=limit),
        ).records

    make = measure.GameInstance
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            measure, "GameInstance", lambda *a, **b: walks.append(a) or make(*a, **b)
        )
        # Histories are counted; how much memory is held by when is the machine's.
        patch.setattr(estimate, "_EVERY", math.inf)
        first, second = compare_with("401MB")
    assert "more than 8,333 histories" in first["missing"] == second["missing"]
    assert first["nash_conv"] is None and first["error"] is None
    # The second did not walk again.
    assert len(walks) == 1
    text = (tmp_path / "report.md").read_text("utf-8")
    assert "too large" in text and "--memory-limit 401MB" in text
    # With more memory they run.
    assert all("missing" not in record for record in compare_with("1GB"))


def test_another_runs_folder_is_refused(tmp_path):
    go(tmp_path, "openspiel-cfr")
    with pytest.raises(ValueError, match="holds a run with budget"):
        go(tmp_path, "openspiel-cfr", iterations=11)
    (tmp_path / json_log.SETTINGS).unlink()
    with pytest.raises(ValueError, match="no settings.json"):
        go(tmp_path, "openspiel-cfr")
    (tmp_path / json_log.SETTINGS).write_text("{")
    with pytest.raises(ValueError, match="is corrupt or was edited"):
        go(tmp_path, "openspiel-cfr")


def test_a_folder_with_an_unknown_algorithm_is_refused_before_the_run(tmp_path):
    go(tmp_path, "openspiel-cfr")
    file = tmp_path / json_log.SETTINGS
    settings = json_log.unsealed(file.read_text())
    settings["algorithms"] = ["openspiel-cfx"]
    file.write_text(json.dumps(json_log.sealed(settings)))
    with pytest.raises(
        ValueError, match=r"names in settings.json .*openspiel-cfx.*delete"
    ):
        go(tmp_path, "openspiel-cfr+")
    assert len(lines(tmp_path)) == 1
    assert "openspiel-cfx" in file.read_text()


def test_a_run_without_a_number_fails(tmp_path, monkeypatch, capsys):
    broken = registry.find("openspiel-cfr")._replace(make=Broken)
    monkeypatch.setitem(registry.BUNDLED, "openspiel-cfr", broken)
    words = ["compare", "--game", KUHN, "--iterations", "1", "--json"]
    words += ["--workers", "0", "--out", tmp_path, "--algorithms"]
    assert "exit_code" not in report(capsys, *words, "uniform;openspiel-cfr")
    # What else the folder has, was not asked for.
    with pytest.raises(SystemExit, match="1"):
        run(*words, "openspiel-cfr")
    out, err = capsys.readouterr()
    assert json.loads(out.splitlines()[-1])["runs"] == 2
    assert "no run gave a number" in err


def test_one_run_at_a_time(tmp_path):
    pytest.importorskip("fcntl")
    settings = {**dict(games=[], algorithms=[], seeds=1, budget={}, versions={})}

    def opened():
        return json_log.JsonLog(tmp_path, "results", settings, key=measure.KEY)

    first = opened()
    with pytest.raises(ValueError, match="in use by another run"):
        opened()
    first.close()
    opened().close()


@pytest.mark.slow
def test_workers_give_the_same_numbers_in_the_same_order(tmp_path):
    names = "cfr+;openspiel-cfr;openspiel-os-mccfr;lp"
    go(tmp_path / "serial", names), go(tmp_path / "on", names, workers=2)
    pairs = zip(lines(tmp_path / "serial"), lines(tmp_path / "on"), strict=True)
    for one, two in pairs:
        for name in ("algorithm", "iterations", "nash_conv", "game_value"):
            assert one[name] == two[name]
    assert not multiprocessing.active_children()


def test_a_run_without_an_end_costs_itself_only(tmp_path):
    """What workers lose is a line with an error; the contract is `Executor`'s."""
    kuhn, ends = [KUHN], Budget(1e6, None)
    # On a busy machine what ends has no time in four seconds, either.
    for patience in (4, 60):
        where = comparisons.CompareConfig(executor=Executor(1, patience=patience))
        out = tmp_path / str(patience)
        late, good = comparisons.compare(
            kuhn, ["openspiel-cfr", "uniform"], ends, out, where
        ).records
        gone = f"given up after {patience} wall-clock seconds (--patience)"
        assert late["error"] == gone and good["error"] in (None, gone)
        if good["error"] is None:
            break
    assert late["algorithm"] == "openspiel-cfr" and late["nash_conv"] is None
    assert good["error"] is None and good["nash_conv"] > 0
    assert not multiprocessing.active_children()


@pytest.mark.slow
def test_kill_9_loses_nothing_and_repeats_nothing(tmp_path, monkeypatch):
    """Killed in its second run, of ten minutes; workers end, and the rest is left."""
    words = ["compare", "--game", KUHN, "--seconds", "600", "--out", str(tmp_path)]
    words += ["--algorithms", "lp;openspiel-cfr;openspiel-cfr+"]
    file = tmp_path / RESULTS
    process = start(words)
    deadline = time.monotonic() + 120
    while not (file.exists() and file.read_bytes().count(b"\n") >= 1):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    children = children_of(process.pid)
    process.kill()
    process.wait()
    assert process.stderr is not None
    process.stderr.close()
    before = lines(tmp_path)
    assert [record["algorithm"] for record in before] == ["lp"]
    while any(alive(child) for child in children):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    ran = []

    def note(_, c):
        ran.append(c.algorithm)
        return measure.failed(c, "not really run")

    monkeypatch.setattr(measure, "measure_run", note)
    run(*words, "--workers", "0")
    assert ran == ["openspiel-cfr", "openspiel-cfr+"]
    after = lines(tmp_path)
    assert after[:1] == before and len(after) == 3
    assert (tmp_path / "report.html").exists()


def start(words):
    """The command in a process of its own."""
    code = (
        f"from spiel_cr.eval.cli import main; "
        f"main._run(main._parse(['spiel-cr', *{words!r}]))"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )


def alive(pid):
    """Whether a process runs; one that nobody waited for does not."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def children_of(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return file.read().split()
    except OSError:
        return []


def test_json_names_algorithms_as_they_are_typed(tmp_path, capsys):
    """Also those that are missing; the tables for people have titles."""
    words = ["compare", "--game", "kuhn_poker", "--algorithms", "cfr+;public-es"]
    words += ["--iterations", "2", "--workers", "0", "--out", tmp_path, "--json"]
    found, shown, _ = told(capsys, *words)
    (game,) = found["games"]
    assert [row["algorithm"] for row in game["results"]] == ["cfr+"]
    assert [row["algorithm"] for row in game["missing"]] == ["public-es"]
    assert "spiel_cr public-es: missing: " in shown
