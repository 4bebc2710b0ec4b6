"""Estimates of time: sizes, the state of the cache, and what commands print."""

import math

import jax
import pytest

import spiel_cr
from spiel_cr.common import compilation_cache, messages
from spiel_cr.eval.cli import main
from spiel_cr.eval.common import time_estimate
from spiel_cr.games.opening.opened import open_game

LEDUC = 9457  # histories
PHANTOM_PAIRS = 38_520_864 + 55_300_608


@pytest.fixture(autouse=True)
def reference(monkeypatch):
    """Pretend that this machine has the speed of the reference machine."""
    monkeypatch.setattr(time_estimate, "_speed", lambda: 1.0)


def phases(game="leduc_poker", form="tree", marker=(), **options):
    return time_estimate.solving_phases(open_game(game), form, marker, **options)


def test_estimates_grow_with_the_size_of_the_game():
    costs = time_estimate._COSTS["tree"]
    leduc = phases(iterations=1000)
    assert leduc.evaluating == pytest.approx(LEDUC * costs.openspiel, rel=0.01)
    assert leduc.compiling == 8 * costs.compiling
    larger = phases("liars_dice", iterations=1000)
    assert larger.solving > leduc.solving and larger.evaluating > leduc.evaluating
    own = phases("liars_dice", iterations=1000, evaluator="spiel_cr")
    assert own.evaluating < larger.evaluating / 10
    phantom, costs = phases("phantom_ttt", "phantom"), time_estimate._COSTS["phantom"]
    assert phantom.building == pytest.approx(PHANTOM_PAIRS * costs.building, rel=0.15)
    assert phases(form="simulator", seconds=3.0) == (0, 0, 3, 0)


def test_limits_bound_the_estimate_of_solving():
    assert phases(seconds=7.0).solving == 7.0
    assert phases(seconds=7.0, iterations=1).solving < 1
    assert math.isnan(phases().solving)
    assert phases(iterations=10, layers=4).solving == 4 * phases(iterations=10).solving


def test_cached_functions_reduce_the_compilation_estimate(tmp_path):
    cold = phases(marker=("cfr+", 1)).compiling
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", str(tmp_path))
    try:
        assert not compilation_cache.is_marked(("cfr+", 1))
        compilation_cache.mark(("cfr+", 1))
        assert phases(marker=("cfr+", 1)).compiling < cold / 2
        assert phases(marker=("cfr+", 2)).compiling == cold
    finally:
        jax.config.update("jax_compilation_cache_dir", before)


def test_only_long_estimates_are_announced(capsys, monkeypatch):
    monkeypatch.setattr(messages, "elapsed", lambda: 2.0)
    monkeypatch.setattr(time_estimate, "elapsed", lambda: 2.0)
    with messages.listening():
        short = time_estimate.announce_phases(time_estimate.Phases(solving=1.0))
        long = time_estimate.announce_phases(
            time_estimate.Phases(1.25, 2.0, 30.0, 0.0), " for 3 runs"
        )
    assert (short, long) == (3.0, 35.25)
    line = "estimate: 35 s in total for 3 runs (building 1.2 s, compiling 2 s, "
    assert capsys.readouterr().err.endswith(f"] {line}solving 30 s)\n")


@pytest.mark.parametrize(
    "words",
    [
        "solve --game leduc_poker --algorithm cfr+ --seconds 30",
        "resolve --game leduc_poker --iterations 100000",
        "compare --game kuhn_poker --algorithms cfr+;openspiel-cfr --out OUT",
        "exploit --game kuhn_poker --policy resolving(iterations=9) --minutes 600",
        "spot --board 5c9dJs2h3c --pot 10 --stack 15 --bets pot --seconds 30",
    ],
)
def test_commands_print_an_estimate_before_the_work(
    words, tmp_path, capsys, monkeypatch
):
    """The first step of the work is replaced by an error, which ends the command."""

    def stop(*_, **__):
        raise ValueError("stopped")

    for name in ("represent", "exploit", "compare"):
        for module in ("solve.representation", "resolve", "exploit", "compare"):
            place = f"spiel_cr.eval.cli.{module}"
            target = f"{place}.comparisons" if module == "compare" else place
            monkeypatch.setattr(f"{target}.{name}", stop, raising=False)
    monkeypatch.setattr(
        "sys.argv", ["spiel-cr", *words.replace("OUT", str(tmp_path)).split()]
    )
    with pytest.raises(SystemExit):
        main.main()
    error = capsys.readouterr().err
    assert "estimate: " in error and "stopped" in error
    assert error.index("estimate: ") < error.index("stopped")


@pytest.mark.slow
def test_wall_clock_limits_the_total_time(tmp_path):
    """The total is within two seconds of --wall-clock, evaluation included."""
    import subprocess
    import sys
    import time

    code = "from spiel_cr.eval.cli import entry; entry.main()"
    words = "solve --game leduc_poker --algorithm cfr+ --wall-clock 20".split()
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code, *words], check=True, timeout=200)
    assert 17 < time.perf_counter() - start < 22
    assert spiel_cr.Goal(wall_clock=20).most(1000) > 1000
