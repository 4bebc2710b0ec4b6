"""Memory limits: sizes, estimates of histories, and rejected games."""

import dataclasses
import math

import numpy as np
import pyspiel
import pytest

import spiel_cr
from spiel_cr.common import memory, messages
from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.eval.common import exact_evaluator
from spiel_cr.eval.common.game_instance import GameInstance
from spiel_cr.evaluation import openspiel_evaluator
from spiel_cr.games.histories import CHANCE, TERMINAL
from spiel_cr.games.opening import estimate
from spiel_cr.players.bots import OOSBot
from spiel_cr.resolving import roles
from spiel_cr.solvers import lp
from spiel_cr.solvers.cfr import cfr
from spiel_cr.solvers.mccfr import mccfr
from tests.support import games
from tests.support.made_games import MadeGame, Node
from tests.support.solving import solve_with


@pytest.mark.parametrize(
    "text,size",
    [
        (3_000_000_000, 3_000_000_000),
        ("123456", 123_456),
        ("123 B", 123),
        ("3gb", 3 * 10**9),
        ("500M", 500 * 10**6),
        ("1.5 GiB", 3 * 2**29),
        (" 7 KiB ", 7 * 2**10),
        ("64k", 64_000),
        ("0.5TB", 5 * 10**11),
        ("1Ti", 2**40),
    ],
)
def test_parses_sizes(text, size):
    assert memory.parse_size(text) == size


@pytest.mark.parametrize(
    "text",
    [
        *("", "3 4GB", *"GB 3XB 1.2.3GB -1GB inf 3GBs 0GB ٣GB".split()),
        *(-5, math.nan, True, None, f"{9**400}GB"),
    ],
)
def test_rejects_invalid_sizes(text):
    with pytest.raises(ValueError, match="memory_limit"):
        memory.parse_size(text)


@pytest.mark.parametrize(
    "name", ["kuhn", "goofspiel4", "leduc", "nim", "dark_hex", "rps5"]
)
def test_estimate_is_unbiased(name):
    """The mean of 100 independent estimates is within four standard errors."""
    game = games.compiled(name).game
    estimates = [
        estimate.estimate_histories(game, rollouts=5, seed=seed) for seed in range(100)
    ]
    error = np.std(estimates, ddof=1) / np.sqrt(len(estimates))
    # For a regular tree such as goofspiel's, the only error is rounding.
    expected = games.BY_NAME[name].histories
    assert np.mean(estimates) == pytest.approx(expected, rel=1e-12, abs=4 * error)


@pytest.mark.parametrize("text", ["none", " None ", math.inf])
def test_none_means_no_limit(text):
    assert memory.parse_size(text) == math.inf
    assert solve_with("kuhn_poker", "cfr+", 1, memory_limit=text).iterations == 1


def test_error_contains_the_name_of_the_option():
    with pytest.raises(ValueError, match=r"--memory-limit='3 apples' is not a size"):
        memory.parse_size("3 apples", "--memory-limit")


def _machine(tmp_path, monkeypatch, *, total, free, held, groups=(), lines=""):
    """Simulate a machine; sizes in GB, groups are (folder, most, used, caches)."""
    sizes = {"MemTotal": total, "MemAvailable": free}
    lengths = {key: int(size * 1e9 / 1024) for key, size in sizes.items()}
    text = "".join(f"{key}:  {length} kB\n" for key, length in lengths.items())
    (tmp_path / "meminfo").write_text(text)
    (tmp_path / "cgroup").write_text(lines)
    for folder, most, used, caches in groups:
        old = folder.startswith("memory")
        place = tmp_path / "groups" / folder
        place.mkdir(parents=True, exist_ok=True)
        most = most if isinstance(most, str) else str(int(most * 1e9))
        names = ("limit_in", "usage_in", "total_") if old else ("max", "current", "")
        size = "_bytes" if old else ""
        (place / f"memory.{names[0]}{size}").write_text(f"{most}\n")
        (place / f"memory.{names[1]}{size}").write_text(f"{int(used * 1e9)}\n")
        cached = f"x 1\n{names[2]}inactive_file {int(caches * 1e9)}\n"
        (place / "memory.stat").write_text(cached)
    monkeypatch.setattr(memory, "_MACHINE", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "_PROCESS", tmp_path)
    monkeypatch.setattr(memory, "_GROUPS", tmp_path / "groups")
    monkeypatch.setattr(memory, "held_bytes", lambda: int(held * 1e9))


V2, V1 = "0::/a/b\n", "9:name=systemd:/\n4:memory:/a\n0::/\n"


@pytest.mark.parametrize(
    "machine,expected",
    [
        ({"total": 16, "free": 15, "held": 0.3}, 0.7 * 15.3),
        # All memory is free except the part that this process holds.
        ({"total": 16, "free": 15.9, "held": 0.5}, 0.7 * 16),
        ({"total": 16, "free": 3, "held": 0}, 0.7 * 3),
        # The limit has a minimum, so small games always run.
        ({"total": 0.5, "free": 0.1, "held": 0.1}, 1),
        # Memory that a large process holds for other purposes is not available.
        ({"total": 16, "free": 3, "held": 10}, 0.7 * 3.4),
        # cgroups v2: the parent's limit also counts, and caches are free.
        ({"groups": [("a/b", "max", 1, 0)], "lines": V2}, 0.7 * 16),
        ({"groups": [("a/b", 6, 1, 0)], "lines": V2}, 0.7 * 5.4),
        ({"groups": [("a", 8, 6, 1), ("a/b", 9, 1, 0)], "lines": V2}, 0.7 * 3.4),
        # In a container, the folder of the group itself is not visible.
        ({"groups": [("", 5, 0, 0)], "lines": V2}, 0.7 * 5),
        ({"groups": [("memory/a", 4, 2, 0.5)], "lines": V1}, 0.7 * 2.9),
        ({"groups": [("memory", 9.2e9, 2, 0)], "lines": V1}, 0.7 * 16),
    ],
)
def test_default_limit(tmp_path, monkeypatch, machine, expected):
    machine = {"total": 16, "free": 16, "held": 1, **machine}
    _machine(tmp_path, monkeypatch, **machine)
    assert memory.default_limit() == pytest.approx(expected * 1e9, rel=1e-6)


def test_default_limit_without_system_information(tmp_path, monkeypatch):
    for name in ("_MACHINE", "_PROCESS", "_GROUPS"):
        monkeypatch.setattr(memory, name, tmp_path / "missing")
    assert memory.default_limit() > 0
    monkeypatch.delattr(memory.os, "sysconf")
    assert memory.default_limit() == math.inf
    assert memory.held_bytes() == 0


@pytest.mark.parametrize(
    "string,expected",
    [
        # In these games, the number of legal actions determines the size of a subtree.
        ("liars_dice(numdice=1,dice_sides=4)", 8181),
        ("python_ii_goofspiel(num_cards=4)", 2229),
    ],
)
def test_stratified_estimate_is_exact_for_skewed_trees(string, expected):
    """Plain random rollouts found only a quarter of the histories of liar's dice."""
    game = spiel_cr.load_game(string)
    assert len(spiel_cr.build_tree(game).histories) == expected
    assert estimate.estimate_histories(game, rollouts=1) == pytest.approx(expected)


def test_error_of_immense_games_names_limits_and_alternatives():
    assert estimate.estimate_histories(pyspiel.load_game("chess")) >= estimate.IMMENSE
    for function in (estimate.check_limit, spiel_cr.build_tree):
        limit = {} if function is spiel_cr.build_tree else {"limit": None}
        with pytest.raises(GameTooLargeError) as refused:
            function(pyspiel.load_game("chess"), **limit)
        text = str(refused.value)
        assert text.startswith("chess() has more than 10^15 histories")
        assert "(the default on this machine)" in text and "inf" not in text
        assert "max_histories=N" in text and "best-response" in text


def test_building_stops_when_the_process_exceeds_the_limit(monkeypatch):
    """Estimates do not include long strings, but the memory of the process does."""
    held = iter(range(0, 10**12, 4 * 10**7))
    monkeypatch.setattr(memory, "held_bytes", lambda: next(held))
    monkeypatch.setattr(estimate, "_EVERY", 0.0)
    with pytest.raises(GameTooLargeError, match=r"more than 48 histories"):
        spiel_cr.build_tree("leduc_poker", memory_limit=memory.BASE_BYTES + 2 * 10**6)


def test_progress_is_shown_only_for_long_builds(monkeypatch, capsys):
    spiel_cr.build_tree("leduc_poker", progress=True)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(estimate, "_SILENT", 1e-9)
    monkeypatch.setattr(estimate, "_EVERY", 0.0)
    spiel_cr.build_tree("leduc_poker", progress=True)
    assert "walking leduc_poker: 9.46k histories" in capsys.readouterr().err
    # Commands show the progress of all builds, including those for bots.
    with messages.listening():
        spiel_cr.build_tree("leduc_poker")
    assert "walking leduc_poker: 9.46k histories" in capsys.readouterr().err
    spiel_cr.build_tree("leduc_poker")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "algorithm,limit,remedy",
    [
        ("cfr+", "380MB", "float32"),
        ("evr-mccfr", "600MB", "smaller batch"),
        ("evr-mccfr(batch=1048576)", "2GB", "smaller batch"),
        ("lp", "252MB", "smaller game"),
    ],
)
def test_memory_limit_is_checked_before_solvers_are_created(
    monkeypatch, algorithm, limit, remedy
):
    tree = games.compiled("leduc")
    for module, name in ((cfr, "make_solver"), (mccfr, "make_solver"), (lp, "_flow")):
        monkeypatch.setattr(module, name, None)
    with pytest.raises(GameTooLargeError, match=f"leduc.* needs about .*{remedy}"):
        spiel_cr.solve(
            tree, algorithm, 1, options=spiel_cr.GameOptions(memory_limit=limit)
        )


def test_memory_limit_is_checked_before_solver_objects_are_created(monkeypatch):
    tree = games.compiled("leduc")
    for module in (cfr, mccfr):
        monkeypatch.setattr(module, "make_solver", None)
    with pytest.raises(GameTooLargeError, match="leduc.* by cfr .*float32"):
        spiel_cr.CFRSolver(tree, memory_limit="380MB")
    with pytest.raises(GameTooLargeError, match="leduc.* by os-mccfr.*smaller batch"):
        OOSBot(tree, 0, memory_limit="380MB")


def test_memory_limit_is_checked_before_resolving(monkeypatch):
    monkeypatch.setattr(roles, "decompose", None)
    with pytest.raises(GameTooLargeError, match="resolving leduc.*float32"):
        spiel_cr.resolve(
            games.compiled("leduc"),
            iterations=1,
            options=spiel_cr.GameOptions(memory_limit="380MB"),
        )


def test_evaluator_is_chosen_within_the_memory_limit():
    result = spiel_cr.solve(games.compiled("kuhn"), "lp")
    judged = openspiel_evaluator.evaluate_result(result, memory_limit="250050000")
    assert judged.evaluator == "spiel_cr"
    assert (
        openspiel_evaluator.evaluate_result(result, memory_limit="260MB").evaluator
        == "openspiel"
    )
    with pytest.raises(
        GameTooLargeError, match="evaluator on kuhn.*--evaluator spiel_cr"
    ):
        openspiel_evaluator.check_memory(result.tree, "250MB")
    instance = GameInstance("kuhn_poker", memory_limit=251_000_000)
    vars(instance)["tree"] = dataclasses.replace(result.tree)
    assert exact_evaluator.ExactEvaluator(instance).curve_by == "OpenSpiel"
    instance.memory_limit = 250_050_000
    assert exact_evaluator.ExactEvaluator(instance).curve_by == "spiel_cr"


def test_memory_held_before_a_call_does_not_count(monkeypatch):
    """A notebook may hold much memory before the call."""
    monkeypatch.setattr(memory, "held_bytes", lambda: 10**10)
    monkeypatch.setattr(estimate, "_EVERY", 0.0)
    spiel_cr.build_tree("leduc_poker", memory_limit="2GB")
    # The game is small, but memory is still checked.
    tree = spiel_cr.build_tree("python_leduc_poker", memory_limit="2GB")
    options = spiel_cr.GameOptions(memory_limit="2GB")
    assert spiel_cr.solve(tree, "cfr+", 1, options=options).iterations == 1
    assert spiel_cr.resolve(tree, iterations=1, options=options).iterations == 1
    openspiel_evaluator.check_memory(tree, "2GB")


def test_small_games_are_probed_once(monkeypatch):
    """Building the tree is faster than a second probe."""
    probe, probes = estimate._probe, []

    def counting(*arguments):
        probes.append(1)
        return probe(*arguments)

    monkeypatch.setattr(estimate, "_probe", counting)
    estimate.check_limit(pyspiel.load_game("liars_dice"), "5GB")
    assert len(probes) == 1


def test_estimate_ignores_zero_probability_outcomes():
    """A game may raise an error after such an outcome."""

    def rules(path):
        if not path:
            return Node(CHANCE, (0, 1, 2), chance=(0.5, 0.5, 0.0))
        assert path[0] != 2, "this cannot come"
        return Node(TERMINAL, utility=1.0)

    game = MadeGame(rules, "made")
    assert estimate.estimate_histories(game, rollouts=1) == 3


def test_slow_estimates_continue_with_one_child(monkeypatch):
    """With millions of legal actions, the root would use all of the time."""
    game = spiel_cr.load_game("blotto(coins=10,fields=3)")
    ticks = iter(range(100))
    monkeypatch.setattr(estimate.time, "thread_time", lambda: float(next(ticks)))
    assert estimate.estimate_histories(game, seconds=0.5) == 1 + 66 + 66**2


def test_estimate_samples_few_children_of_wide_nodes(monkeypatch):
    """Lists of legal actions dominate the time, so few children are created."""
    game, made = spiel_cr.load_game("blotto(coins=30,fields=5)"), []
    child = pyspiel.State.child

    def counting(state, action):
        made.append(action)
        return child(state, action)

    monkeypatch.setattr(pyspiel.State, "child", counting)
    found = estimate.estimate_histories(game, rollouts=1)
    assert found == pytest.approx(1 + 46_376 + 46_376**2) and len(made) == 2 * 21


@pytest.mark.parametrize("string", ["chess", "go(board_size=9)", "dark_chess"])
def test_rejects_games_that_clearly_exceed_the_limit(string):
    with pytest.raises(ValueError, match="memory_limit is 1 GB"):
        estimate.check_limit(pyspiel.load_game(string), 10**9)


@pytest.mark.parametrize("limit", [0, 1, memory.BASE_BYTES])
def test_rejects_limits_too_small_for_any_game(limit):
    """`GameTooLargeError` lets callers fall back to tree-free methods."""
    kind = GameTooLargeError if limit else ValueError
    with pytest.raises(kind, match="memory_limit=.*too small"):
        estimate.check_limit(games.compiled("kuhn").game, limit)


def test_number_of_histories_within_a_limit():
    limit = memory.BASE_BYTES + 1000 * memory.BYTES_PER_HISTORY
    assert memory.histories_within(limit) == 1000


@pytest.mark.parametrize(
    "string,limit",
    [
        ("kuhn_poker", "1MB"),
        ("kuhn_poker", "much"),
        ("chess", "1GB"),
        # Less than twice the estimate, so the build itself detects it.
        ("leduc_poker", memory.BASE_BYTES + 9456 * memory.BYTES_PER_HISTORY),
    ],
)
@pytest.mark.parametrize("algorithm", ["cfr+", "lp"])
def test_solve_raises_above_the_memory_limit(string, limit, algorithm):
    with pytest.raises(ValueError, match="memory_limit"):
        spiel_cr.solve(
            string, algorithm, 1, options=spiel_cr.GameOptions(memory_limit=limit)
        )


def test_solve_succeeds_within_the_memory_limit(monkeypatch):
    monkeypatch.setattr(memory, "held_bytes", lambda: memory.IMPORTED_BYTES)
    limit = memory.BASE_BYTES + 58 * memory.BYTES_PER_HISTORY
    result = solve_with("kuhn_poker", "cfr+", 1, memory_limit=limit)
    assert result.iterations == 1


def test_peak_memory_exceeds_held_arrays():
    held = np.ones(10**7)
    assert memory.peak_bytes() > held.nbytes


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (3.2e9, "3.2 GB"),
        (2.5e12, "2,500 GB"),
        (1e30, "more than 1,000,000,000 GB"),
        (float("inf"), "more than 1,000,000,000 GB"),
        (float("nan"), "more than 1,000,000,000 GB"),
    ],
)
def test_sizes_are_described_in_words(size, text):
    assert memory.describe_bytes(size) == text
