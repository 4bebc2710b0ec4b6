"""Runs of `compare`: failures, resumption, rejected folders, and workers."""

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
from tests.support.commands import outputs, report, run

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


def run_compare(out, algorithms=NO_JAX, iterations=10, workers=0, **options):
    return comparisons.compare(
        [KUHN],
        registry.expand(algorithms),
        Budget(None, iterations),
        out,
        comparisons.CompareConfig(executor=Executor(workers), **options),
    )


def lines(out):
    """Return the records on disk, without an incomplete last line."""
    text = (out / RESULTS).read_text("utf-8")
    whole = text[: text.rfind("\n") + 1]
    return [json.loads(line) for line in whole.splitlines()]


def test_failing_run_is_recorded_and_the_others_continue(tmp_path, monkeypatch):
    broken = registry.find("openspiel-cfr")._replace(make=Broken)
    monkeypatch.setitem(registry.BUNDLED, "openspiel-cfr", broken)
    result = run_compare(tmp_path, "openspiel-cfr;openspiel-cfr+")
    first, second = result.records
    assert first["error"] == "RuntimeError: lost its way"
    assert first["nash_conv"] is None
    assert second["error"] is None and second["nash_conv"] > 0
    assert "lost its way" in (tmp_path / "report.md").read_text("utf-8")
    # A failed run counts as finished unless `retry` is set.
    monkeypatch.undo()
    assert run_compare(tmp_path, "openspiel-cfr").records[0]["error"]
    assert len(lines(tmp_path)) == 2
    assert (
        run_compare(tmp_path, "openspiel-cfr", retry=True).records[0]["error"] is None
    )


def test_missing_dependency_is_reported_and_retried(tmp_path, monkeypatch):
    absent = registry.find("openspiel-cfr")._replace(modules=("nowhere",), extra="deep")
    monkeypatch.setitem(registry.BUNDLED, "openspiel-cfr", absent)
    for _ in range(2):
        (record,) = run_compare(tmp_path, "openspiel-cfr").records
        assert record["missing"] == (
            "needs nowhere, not installed: pip install 'spiel_cr[deep]'"
        )
    assert len(lines(tmp_path)) == 1
    monkeypatch.undo()
    (record,) = run_compare(tmp_path, "openspiel-cfr").records
    assert "missing" not in record and record["nash_conv"] > 0


def test_finished_runs_are_kept_and_not_repeated(tmp_path, monkeypatch):
    run_compare(tmp_path, "openspiel-cfr;openspiel-os-mccfr", seeds=2)
    old = lines(tmp_path)
    assert [(r["algorithm"], r["seed"]) for r in old] == [
        ("openspiel-cfr", 0),
        ("openspiel-os-mccfr", 0),
        ("openspiel-os-mccfr", 1),
    ]
    # An incomplete line, as after a kill, does not count as a finished run.
    file = tmp_path / RESULTS
    content = file.read_bytes()
    file.write_bytes(content[: content.rstrip().rfind(b"\n") + 40])
    ran = []
    do = measure.measure_run
    monkeypatch.setattr(
        measure, "measure_run", lambda games, c: ran.append(c.key) or do(games, c)
    )
    result = run_compare(tmp_path, "openspiel-os-mccfr;openspiel-cfr+", seeds=2)
    assert ran == [(KUHN, "openspiel-cfr+", 0), (KUHN, "openspiel-os-mccfr", 1)]
    assert [r["nash_conv"] for r in lines(tmp_path)[:2]] == [
        r["nash_conv"] for r in old[:2]
    ]
    # The report covers all records of the folder.
    assert len(result.records) == 4
    assert result.settings["algorithms"][0] == "openspiel-cfr"


def test_report_lists_the_conditions_of_each_run(tmp_path, monkeypatch):
    work = Executor.map
    here = lambda executor, *a, **b: work(Executor(), *a, **b)  # noqa: E731
    monkeypatch.setattr(Executor, "map", here)
    run_compare(tmp_path, "openspiel-cfr;lp", workers=2)
    monkeypatch.setattr(conditions, "source", lambda: "f00")
    monkeypatch.setattr(conditions, "optional_versions", lambda: {"flax": "9.8"})
    first, _, last = run_compare(
        tmp_path, "openspiel-cfr;lp;uniform", workers=0
    ).records
    assert (first["workers"], last["workers"]) == (2, 0)
    assert first["source"] != last["source"] == "f00"
    assert len(first["source"]) == 12
    text = (tmp_path / "report.md").read_text("utf-8")
    assert "in 2 worker processes at a time (2 runs)" in text
    assert "one after the other in one process (1 run)" in text
    assert f"source: {first['source']} (2 runs), f00 (1 run)" in text
    flax = first["optional_versions"].get("flax", "absent")
    assert f"flax: {flax} (2 runs), 9.8 (1 run)" in text


def test_equal_games_and_algorithms_run_only_once(tmp_path, monkeypatch):
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
    # The folder keeps the game strings of its runs.
    result = run(["kuhn_poker()"], ["openspiel-cfr", "uniform"])
    assert ran[1:] == [(KUHN, "uniform", 0)]
    assert result.settings["games"] == [KUHN] and len(result.records) == 2
    keys = [
        c.key for c in comparisons.plan([KUHN, "kuhn_poker()"], ["lp"] * 2, budget, 1)
    ]
    assert keys == [(KUHN, "lp", 0)]


def test_too_large_games_are_rejected_without_a_full_walk(tmp_path):
    """The size of phantom_ttt is estimated; Leduc poker is walked up to the limit."""
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
        # Only the count of histories is tested: memory use depends on the machine.
        patch.setattr(estimate, "_EVERY", math.inf)
        first, second = compare_with("401MB")
    assert "more than 8,333 histories" in first["missing"] == second["missing"]
    assert first["nash_conv"] is None and first["error"] is None
    # The second run did not walk the game again.
    assert len(walks) == 1
    text = (tmp_path / "report.md").read_text("utf-8")
    assert "too large" in text and "--memory-limit 401MB" in text
    # With more memory they run.
    assert all("missing" not in record for record in compare_with("1GB"))


def test_rejects_a_folder_with_other_settings(tmp_path):
    run_compare(tmp_path, "openspiel-cfr")
    with pytest.raises(ValueError, match="holds a run with budget"):
        run_compare(tmp_path, "openspiel-cfr", iterations=11)
    (tmp_path / json_log.SETTINGS).unlink()
    with pytest.raises(ValueError, match="no settings.json"):
        run_compare(tmp_path, "openspiel-cfr")
    (tmp_path / json_log.SETTINGS).write_text("{")
    with pytest.raises(ValueError, match="is corrupt or was edited"):
        run_compare(tmp_path, "openspiel-cfr")


def test_rejects_a_folder_with_an_unknown_algorithm_before_runs(tmp_path):
    run_compare(tmp_path, "openspiel-cfr")
    file = tmp_path / json_log.SETTINGS
    settings = json_log.unsealed(file.read_text())
    settings["algorithms"] = ["openspiel-cfx"]
    file.write_text(json.dumps(json_log.sealed(settings)))
    with pytest.raises(
        ValueError, match=r"names in settings.json .*openspiel-cfx.*delete"
    ):
        run_compare(tmp_path, "openspiel-cfr+")
    assert len(lines(tmp_path)) == 1
    assert "openspiel-cfx" in file.read_text()


def test_compare_exits_with_an_error_if_no_run_gives_a_number(
    tmp_path, monkeypatch, capsys
):
    broken = registry.find("openspiel-cfr")._replace(make=Broken)
    monkeypatch.setitem(registry.BUNDLED, "openspiel-cfr", broken)
    words = ["compare", "--game", KUHN, "--iterations", "1", "--json"]
    words += ["--workers", "0", "--out", tmp_path, "--algorithms"]
    assert "exit_code" not in report(capsys, *words, "uniform;openspiel-cfr")
    # Other results in the folder do not count for this command.
    with pytest.raises(SystemExit, match="1"):
        run(*words, "openspiel-cfr")
    out, err = capsys.readouterr()
    assert json.loads(out.splitlines()[-1])["runs"] == 2
    assert "no run gave a number" in err


def test_folder_in_use_by_another_run_is_rejected(tmp_path):
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
def test_workers_give_the_same_results_in_the_same_order(tmp_path):
    names = "cfr+;openspiel-cfr;openspiel-os-mccfr;lp"
    (
        run_compare(tmp_path / "serial", names),
        run_compare(tmp_path / "on", names, workers=2),
    )
    pairs = zip(lines(tmp_path / "serial"), lines(tmp_path / "on"), strict=True)
    for one, two in pairs:
        for name in ("algorithm", "iterations", "nash_conv", "game_value"):
            assert one[name] == two[name]
    assert not multiprocessing.active_children()


def test_run_that_exceeds_patience_does_not_affect_others(tmp_path):
    """A run that a worker gives up is recorded as an error."""
    kuhn, ends = [KUHN], Budget(1e6, None)
    # On a busy machine even the short run may not finish within two seconds.
    for patience in (2, 8, 60):
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
def test_sigkill_loses_and_repeats_no_finished_run(tmp_path, monkeypatch):
    """The command is killed in its second run; repeating it runs only the rest."""
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
    while any(is_running(child) for child in children):
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
    """Start the command in a separate process."""
    code = (
        f"from spiel_cr.eval.cli import main; "
        f"main._run(main._parse(['spiel-cr', *{words!r}]))"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )


def is_running(pid):
    """Return whether a process runs; a zombie does not."""
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


def test_json_names_algorithms_as_given_on_the_command_line(tmp_path, capsys):
    """This holds for missing ones, too; printed tables show titles."""
    words = ["compare", "--game", "kuhn_poker", "--algorithms", "cfr+;public-es"]
    words += ["--iterations", "2", "--workers", "0", "--out", tmp_path, "--json"]
    found, shown, _ = outputs(capsys, *words)
    (game,) = found["games"]
    assert [row["algorithm"] for row in game["results"]] == ["cfr+"]
    assert [row["algorithm"] for row in game["missing"]] == ["public-es"]
    assert "spiel_cr public-es: missing: " in shown
