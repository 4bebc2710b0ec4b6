"""Comparisons: the evaluator, bundled adapters, budgets, names, and the command."""

import importlib.util
import json
import pathlib
import re
import tomllib

import jax
import numpy as np
import pyspiel
import pytest
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import exploitability

from spiel_cr import solve
from spiel_cr.eval.adapters import protocol, registry
from spiel_cr.eval.cli import compare as cli_compare
from spiel_cr.eval.common.game_instance import GameInstance
from spiel_cr.eval.comparison import measure
from spiel_cr.evaluation import openspiel_evaluator
from spiel_cr.policies import conversions as policy_lib
from spiel_cr.solvers import algorithms
from tests.support import games
from tests.support.commands import outputs, rejection, report, run
from tests.support.strategies import random_behaviours

KUHN = "kuhn_poker"
# Deep networks take half a minute and need an extra, so they are in slow tests.
QUICK = [name for name, entry in registry.BUNDLED.items() if not entry.modules]


@pytest.fixture(scope="module")
def kuhn():
    return GameInstance(KUHN)


def test_extras_list_the_modules_that_entries_need():
    """Modules are compared with the packages in `pyproject.toml`."""
    project = pathlib.Path(__file__).parents[2] / "pyproject.toml"
    extras = tomllib.loads(project.read_text())["project"]["optional-dependencies"]
    packages = {
        extra: {re.split(r"[<>=\[ ]", line)[0] for line in lines}
        for extra, lines in extras.items()
    }
    needy = [entry for entry in registry.BUNDLED.values() if entry.modules]
    assert len(needy) == 3
    for entry in needy:
        for module in entry.modules:
            assert module in packages[entry.extra], (entry.name, module)
    # Imports of the OpenSpiel module that the adapter uses.
    spec = importlib.util.find_spec("open_spiel.python.jax.deep_cfr")
    text = pathlib.Path(spec.origin).read_text()
    found = set(re.findall(r"^import (chex|flax|optax|etils|orbax)", text, re.M))
    assert found <= set(registry.BUNDLED["openspiel-deep-cfr"].modules)


def measure_run(algorithm, iterations, seed=0, game=KUHN):
    record = measure.measurer()(measure.Run(game, algorithm, seed, None, iterations))
    assert record["error"] is None, record
    return record


@pytest.mark.parametrize("name", ["kuhn", "goofspiel3_simultaneous", "rps5"])
def test_evaluator_agrees_with_openspiels_python_tools(name):
    instance = GameInstance(games.BY_NAME[name].string)
    referee = measure.ExactEvaluator(instance)
    strategy = random_behaviours(instance.tree, 3)
    table = policy_lib.tabular_policy(instance.tree, strategy)
    slow = openspiel_evaluator.evaluate(instance.game, table)
    quick = referee.final(strategy)
    assert quick.evaluator == "OpenSpiel"
    assert quick.nash_conv == pytest.approx(slow.nash_conv, abs=1e-9)
    assert quick.game_value == pytest.approx(slow.game_value, abs=1e-9)
    assert referee.curve_point(strategy) == pytest.approx(slow.nash_conv, abs=1e-9)


def test_evaluator_rejects_an_invalid_strategy(kuhn):
    first, second = random_behaviours(kuhn.tree, 0)
    first[1] += 0.1
    with pytest.raises(ValueError, match="player 0 has the probabilities"):
        measure.ExactEvaluator(kuhn).final((first, second))


def test_raises_if_evaluators_disagree(kuhn, monkeypatch):
    monkeypatch.setattr(
        measure.ExactEvaluator, "_by_spiel_cr", lambda self, s: (1.0, 0.0)
    )
    with pytest.raises(ValueError, match="one of them is wrong"):
        measure.ExactEvaluator(kuhn).final(random_behaviours(kuhn.tree, 0))


@pytest.mark.parametrize("name", QUICK)
def test_bundled_adapter_runs_and_beats_uniform(name):
    """Only solvers must beat uniform; search and sampled play need not."""
    entry = registry.find(name)
    record = measure_run(name, 40)
    assert record["iterations"] == 40
    assert len(record["curve"]) >= (3 if entry.mode == "iterates" else 2)
    assert record["curve"][-1][2] == record["nash_conv"]
    solver = name.split("-")[1] not in ("ismcts", "q", "os")
    assert 0 <= record["nash_conv"] < (0.75 if solver else 2.0)
    assert record["evaluator"] == "OpenSpiel"
    assert entry.how and not entry.is_spiel_cr


def test_cfr_iterates_are_equal_in_every_implementation():
    """CFR and CFR+ of OpenSpiel (C++, Python) and spiel_cr have the same iterates."""
    for names in (
        ("openspiel-cfr", "openspiel-cfr-python", "cfr"),
        ("openspiel-cfr+", "openspiel-cfr+-python", "cfr+"),
    ):
        curves = [measure_run(name, 20)["curve"] for name in names]
        counts = [[point[1] for point in curve] for curve in curves]
        assert counts == [[1, 2, 5, 10, 20]] * 3
        values = np.array([[point[2] for point in curve] for curve in curves])
        np.testing.assert_allclose(values, values[:1].repeat(3, axis=0), atol=1e-9)


def test_adapter_has_the_nash_conv_of_openspiels_solver(kuhn):
    solver = pyspiel.CFRPlusSolver(kuhn.game)
    for _ in range(30):
        solver.evaluate_and_update_policy()
    policy = openspiel_policy.tabular_policy_from_callable(
        kuhn.game, solver.average_policy().action_probabilities
    )
    slow = exploitability.nash_conv(kuhn.game, policy)
    found = measure_run("openspiel-cfr+", 30)["nash_conv"]
    assert found == pytest.approx(slow, abs=1e-9)


def test_adapters_of_a_python_game_are_better_than_uniform():
    game = "python_ii_goofspiel(num_cards=3)"
    uniform = measure_run("uniform", 1, game=game)["nash_conv"]
    for name in ("openspiel-cfr+", "openspiel-os-mccfr"):
        assert measure_run(name, 500, game=game)["nash_conv"] < uniform


@pytest.mark.slow
def test_jax_adapter_is_reset_after_compilation():
    """Its curve equals that of C++ in single precision; warming up leaves no state."""
    pytest.importorskip("chex")
    curves = [
        np.array(measure_run(name, 20)["curve"])[:, 2]
        for name in ("openspiel-cfr+", "openspiel-cfr+-jax")
    ]
    np.testing.assert_allclose(curves[1], curves[0], atol=2e-5)


@pytest.mark.slow
def test_deep_adapter_runs():
    name = "openspiel-deep-cfr"
    entry = registry.find(name)
    for module in entry.modules:
        pytest.importorskip(module)
    record = measure_run(name, 2)
    assert record["iterations"] == 2 and 0 < record["nash_conv"] < 4
    assert record["evaluator"] == "OpenSpiel"
    assert record["compile_seconds"] > 0


def num_compiled_functions(adapter):
    """Return the number of functions that the adapter's solver has compiled."""
    values = vars(adapter._step.__self__).values()
    return sum(v._cache_size() for v in values if hasattr(v, "_cache_size"))


def solver_state(adapter):
    """Return all weights, keys and counters of the adapter's solver."""
    nnx = pytest.importorskip("flax.nnx")
    found = []
    for name, value in sorted(vars(adapter._step.__self__).items()):
        first = value[0] if isinstance(value, list) else value
        if isinstance(first, nnx.Module | nnx.Optimizer):
            found += jax.tree.leaves(nnx.state(value))
        elif name == "_rngkey":
            found.append(jax.random.key_data(value))
        elif isinstance(value, int):
            found.append(value)
        elif "memor" in name:
            found += jax.tree.leaves(value)
    return [np.asarray(x) for x in found]


@pytest.mark.slow
def test_deep_adapter_is_reset_after_compilation(kuhn, monkeypatch):
    """It equals a solver that was not warmed up, and compiles nothing more."""
    entry = registry.find("openspiel-deep-cfr")
    for module in entry.modules:
        pytest.importorskip(module)
    warm = entry.make(kuhn, 3)
    with monkeypatch.context() as patch:
        patch.setattr(protocol, "seconds_of_compiling", lambda work: 0.0)
        cold = entry.make(kuhn, 3)
    one, two = solver_state(warm), solver_state(cold)
    assert len(one) == len(two) > 20
    assert all((x == y).all() for x, y in zip(one, two, strict=True))
    compiled = num_compiled_functions(warm)
    warm.run(2)
    assert num_compiled_functions(warm) == compiled > 0
    cold.run(2)
    for one, two in zip(warm.strategy(), cold.strategy(), strict=True):
        np.testing.assert_allclose(one, two, atol=1e-6)


@pytest.mark.slow
def test_linear_program_of_openspiel_is_exact():
    pytest.importorskip("cvxpy")
    pytest.importorskip("ecos")
    record = measure_run("openspiel-lp", 1)
    assert record["nash_conv"] == pytest.approx(0, abs=1e-6)
    assert record["game_value"] == pytest.approx(-1 / 18, abs=1e-6)


@pytest.mark.parametrize("name", ["openspiel-os-mccfr", "openspiel-es-mccfr-python"])
def test_seed_determines_runs_and_numpys_generator_is_unchanged(name):
    np.random.seed(5)
    before = np.random.get_state()[1].copy()
    first, again, other = (measure_run(name, 30, seed) for seed in (1, 1, 2))
    assert (np.random.get_state()[1] == before).all()
    assert first["nash_conv"] == again["nash_conv"]
    assert first["game_value"] != other["game_value"]


def test_search_is_queried_at_every_infoset():
    game = games.BY_NAME["rps5"].string
    record = measure_run("openspiel-ismcts-python", 8, game=game)
    assert record["note"] == "queried at 2 infosets"
    fast = measure.measurer()(measure.Run(game, "openspiel-ismcts", 0, None, 8))
    assert "ResampleFromInfostate" in fast["missing"]
    assert fast["error"] is None and fast["nash_conv"] is None


def test_descriptions_state_whether_all_actions_are_followed():
    """External sampling follows all actions of the updating player."""
    for name in ("es-mccfr", "openspiel-es-mccfr", "openspiel-es-mccfr-python"):
        assert "all actions of the player" in registry.find(name).how
        assert "trajector" not in registry.find(name).how
    for name in ("os-mccfr", "openspiel-os-mccfr", "openspiel-os-mccfr-python"):
        assert "trajector" in registry.find(name).how
    assert "some actions of the player" in registry.find("as-mccfr").how


def test_every_algorithm_of_solve_is_found_except_pcs():
    for name in algorithms.ALGORITHMS:
        if name == "pcs":
            with pytest.raises(ValueError, match="'pcs' needs hands in buckets"):
                registry.find(name)
        else:
            assert registry.find(name).name == name


def test_public_sampling_equals_solve_and_is_evaluated_on_the_tree():
    """`solve` computes NashConv in public-tree form."""
    game = "python_leduc_poker(num_ranks=2,max_raises=1)"
    record = measure_run("public-es", 5, game=game)
    solved = solve(game, "public-es", 5)
    assert record["nash_conv"] == pytest.approx(solved.nash_conv(), abs=1e-6)
    assert record["evaluator"] == "OpenSpiel" and record["iterations"] == 5
    assert registry.find("public-es").samples
    other = measure.measurer()(measure.Run("tic_tac_toe", "public-es", 0, None, 1, 3e9))
    assert "does not declare private states" in other["missing"]


def test_auto_with_a_time_budget_uses_a_linear_program():
    """A linear program solves Kuhn poker, as in `solve --seconds 5`."""
    record = measure.measurer()(measure.Run("kuhn_poker", "auto", 0, 5.0, None))
    assert record["note"].startswith("lp: ") and record["nash_conv"] < 1e-9
    assert len(record["curve"]) == 7


def test_groups_expand_to_known_algorithms():
    every = registry.expand("default")
    assert set(registry.BUNDLED) <= set(every)
    assert registry.expand("bundled;default;cfr+")[0] == "openspiel-cfr"
    assert len(set(every)) == len(every)
    assert all(registry.find(name).name == name for name in every)


def test_compare_command_reports_results_and_unwritable_pages(tmp_path, capsys):
    words = ["compare", "--game", KUHN, "--algorithms", "lp;openspiel-cfr;uniform"]
    words += ["--iterations", "20", "--workers", "0", "--out", tmp_path, "--json"]
    found, shown, _ = outputs(capsys, *words)
    out = shown.splitlines()
    assert found["runs"] == 3 and found["report"].endswith("report.html")
    (game,) = found["games"]
    best = game["results"][0]
    assert best["algorithm"] == "lp" and best["nash_conv"] < 1e-9
    assert best["game_value"] == pytest.approx(-1 / 18, abs=1e-9)
    assert game["results"][-1]["nash_conv"] == pytest.approx(11 / 12, abs=1e-9)
    assert any("OpenSpiel CFR (C++)" in line for line in out)
    assert f"report: {tmp_path}/report.html" in out
    for name in ("report.html", "report.md"):
        (tmp_path / name).unlink()
        (tmp_path / name).mkdir()
    with pytest.raises(SystemExit, match="1"):
        run(*words)
    out, err = capsys.readouterr()
    assert "report" not in json.loads(out.splitlines()[-1]) and "report:" not in out
    assert all(
        f"{tmp_path}/report.{kind}" in err.splitlines()[-1] for kind in ("html", "md")
    )


@pytest.mark.parametrize(
    ("given", "folder"),
    [
        ([KUHN], "kuhn_poker"),
        (["kuhn_poker()"], "kuhn_poker"),
        (["kuhn_poker(players=2)", KUHN], "kuhn_poker-players=2+kuhn_poker"),
    ],
)
def test_default_folder_is_named_after_the_games(
    tmp_path, monkeypatch, capsys, given, folder
):
    monkeypatch.chdir(tmp_path)
    words = [word for game in given for word in ("--game", game)]
    words += ["--algorithms", "uniform", "--iterations", "1", "--workers", "0"]
    found = report(capsys, "compare", *words)
    assert found["out"] == f"out/compare/{folder}"
    assert (tmp_path / found["report"]).exists()


def test_long_folder_names_are_shortened_and_distinct():
    first, second = (
        cli_compare._folder([KUHN] * 30 + [last]) for last in ("a", "../b /")
    )
    assert first != second
    assert all(len(name) < 130 and name.count("/") == 2 for name in (first, second))
    assert cli_compare._folder(["../b /"]) == "out/compare/b"


def test_figures_and_tables_contain_the_algorithms_of_a_call(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    words = ["compare", "--game", KUHN, "--iterations", "20", "--workers", "0"]
    words += ["--out", "out", "--json"]
    outputs(capsys, *words, "--algorithms", "openspiel-cfr;openspiel-cfr+")
    files = ["--figure", "a.svg", "--latex", "a.tex", "--unit", "mbb"]
    found, shown, _ = outputs(capsys, *words, *files, "--algorithms", "openspiel-cfr+")
    assert (found["figure"], found["latex"]) == ("a.svg", "a.tex")
    assert "figure: a.svg" in shown and "table: a.tex" in shown
    figure, table = (pathlib.Path(f"a.{kind}").read_text() for kind in ("svg", "tex"))
    assert "openspiel-cfr+" in table and "openspiel-cfr &" not in table
    assert figure.startswith("<?xml") and "mbb/g" in table
    line = f"compare --game {KUHN} --figure a.txt"
    assert "figure='a.txt': unknown format" in rejection(capsys, *line.split())
    line = "compare --game tic_tac_toe --figure a.pdf --unit mbb"
    assert "neither blinds nor an ante" in rejection(capsys, *line.split())


def test_rejects_unknown_evaluators():
    result = solve(KUHN, "cfr+", 2)
    with pytest.raises(ValueError, match="evaluator='nonsense' must be one of auto"):
        openspiel_evaluator.evaluate_result(result, "nonsense")
    assert {
        openspiel_evaluator.evaluate_result(result, by).evaluator
        for by in openspiel_evaluator.EVALUATORS
    } == {
        "openspiel",
        "spiel_cr",
    }
