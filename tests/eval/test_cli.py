"""The command line: its output, JSON, files and errors."""

import importlib.util
import json
import pathlib
import re
import subprocess
import sys

import pyspiel
import pytest
from open_spiel.python.algorithms import exploitability

import spiel_cr
from spiel_cr.eval.cli import main
from spiel_cr.eval.common import help_pages
from spiel_cr.evaluation import openspiel_evaluator
from spiel_cr.evaluation.result import Evaluation
from spiel_cr.solvers import algorithms
from tests.support.commands import outputs, rejection, report, run

SCRIPT = pathlib.Path(sys.executable).parent / "spiel-cr"
needs_script = pytest.mark.skipif(not SCRIPT.exists(), reason="not installed")
needs_matplotlib = pytest.mark.skipif(
    importlib.util.find_spec("matplotlib") is None, reason="no matplotlib"
)

LEDUC_SIZES = {
    "histories": 9457,
    "terminals": 5520,
    "infosets": [468, 468],
    "sequences": [1093, 1093],
    "max_depth": 11,
}
SOLVE_KEYS = set(
    "game algorithm iterations nash_conv game_value evaluator seconds compile_seconds "
    "iterations_per_second".split()
)
KUHN = ("--game", "kuhn_poker")


def openspiel_nash_conv(path, game):
    """Compute the NashConv of a saved policy with OpenSpiel."""
    table = spiel_cr.load_policy(path, game)
    return exploitability.nash_conv(pyspiel.load_game(game), table)


@needs_script
def test_info_prints_sizes_as_json_in_a_subprocess():
    words = [SCRIPT, "info", "--game", "leduc_poker", "--json"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    found = json.loads(lines[-1])
    assert 9457 * 40 < found.pop("bytes") < 9457 * 400
    assert found == LEDUC_SIZES
    assert "9,457" in done.stdout  # In the text for people.


def test_version(capsys):
    with pytest.raises(SystemExit) as stopped:
        run("--version")
    assert stopped.value.code == 0
    assert capsys.readouterr().out == f"spiel-cr {spiel_cr.__version__}\n"
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", spiel_cr.__version__)


@pytest.mark.parametrize("algorithm", ("cfr+", "dcfr(alpha=1.5,beta=0,gamma=2)", "lp"))
def test_solve_reports_the_nash_conv_of_openspiel(capsys, tmp_path, algorithm):
    path = tmp_path / "policy.npz"
    words = ("--algorithm", algorithm, "--iterations", 200, "--save", path)
    found = report(capsys, "solve", *KUHN, *words)
    assert SOLVE_KEYS <= found.keys()
    assert "curve" not in found
    assert found["game"] == "kuhn_poker"
    if algorithm == "lp":
        assert found["nash_conv"] < 1e-9
        assert found["game_value"] == pytest.approx(-1 / 18, abs=1e-9)
    else:
        assert found["iterations"] == 200
        assert found["iterations_per_second"] > 0
        assert 0 < found["nash_conv"] < 0.05
        assert found["game_value"] == pytest.approx(-1 / 18, abs=0.05)
    expected = openspiel_nash_conv(path, "kuhn_poker")
    assert found["nash_conv"] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("command", ("solve", "resolve"))
def test_both_evaluators_agree(capsys, command):
    words = (command, *KUHN, "--iterations", 20, "--evaluator")
    theirs, ours = (report(capsys, *words, by) for by in ("openspiel", "spiel_cr"))
    assert (theirs["evaluator"], ours["evaluator"]) == ("openspiel", "spiel_cr")
    # Both are exact: rounding of double precision.
    for key in ("nash_conv", "game_value"):
        assert ours[key] == pytest.approx(theirs[key], abs=1e-9)
    low, high = ours["value_bounds"]
    assert low <= -1 / 18 <= high
    assert high - low == pytest.approx(ours["nash_conv"], abs=1e-12)
    assert "value_bounds" not in theirs


def test_large_games_are_not_evaluated_by_openspiel(capsys, monkeypatch):
    words = ("solve", *KUHN, "--iterations", 10)
    assert report(capsys, *words)["evaluator"] == "openspiel"
    monkeypatch.setattr(openspiel_evaluator, "MOST_HISTORIES", 57)
    assert report(capsys, *words)["evaluator"] == "spiel_cr"
    assert (
        report(capsys, *words, "--evaluator", "openspiel")["evaluator"] == "openspiel"
    )


def test_curve_has_a_point_per_evaluation(capsys):
    words = ("--iterations", 100, "--eval-every", 25)
    found = report(capsys, "solve", *KUHN, *words)
    points = found["curve"]
    assert [point["iterations"] for point in points] == [25, 50, 75, 100]
    assert points[-1]["nash_conv"] == pytest.approx(found["nash_conv"], abs=1e-9)
    assert points[-1]["nash_conv"] < points[0]["nash_conv"]
    seconds = [point["seconds"] for point in points]
    assert seconds == sorted(seconds)


@needs_matplotlib
def test_plot_option_writes_a_png_file(tmp_path):
    path = tmp_path / "curve.png"
    run("solve", *KUHN, "--iterations", 60, "--eval-every", 20, "--plot", path)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_solve_resumes_from_a_checkpoint(capsys, tmp_path):
    path = tmp_path / "state.npz"
    words = ("solve", *KUHN, "--checkpoint", path, "--iterations")
    run(*words, 100)
    assert path.exists()
    continued = report(capsys, *words, 200)
    # `auto` chooses the same algorithm for 100 and for 200 iterations.
    straight = report(capsys, "solve", *KUHN, "--iterations", 200)
    assert continued["nash_conv"] == pytest.approx(straight["nash_conv"], abs=1e-12)


def test_progress_goes_to_stderr(capsys, tmp_path):
    words = (*KUHN, "--algorithm", "cfr+", "--iterations", 100)
    words += ("--save", tmp_path / "policy.npz")
    for command in ("solve", "resolve"):
        found, out, err = outputs(capsys, command, *words)
        assert str(words[-1]) in out
        assert f"{found['nash_conv']:.3e}" in out
        assert "\r" not in out and "it/s" not in out and err


def test_resolve_reports_the_nash_conv_of_the_saved_policy(capsys, tmp_path):
    path = tmp_path / "policy.npz"
    words = ("--iterations", 100, "--save", path)
    found = report(capsys, "resolve", *KUHN, *words)
    assert SOLVE_KEYS <= found.keys()
    assert "baselines" not in found
    assert 0 <= found["nash_conv"] < 0.1
    expected = openspiel_nash_conv(path, "kuhn_poker")
    assert found["nash_conv"] == pytest.approx(expected, abs=1e-12)


def test_resolve_in_public_tree_form_equals_the_game_tree(capsys, tmp_path):
    path = tmp_path / "policy.npz"
    game = "python_poker_spot(pot=100,stack=100,ranges=AA QQ;KK JJ,bets=allin)"
    words = ("--game", game, "--iterations", 20, "--algorithm", "cfr+")
    compiled = report(capsys, "resolve", *words)
    found = report(capsys, "resolve", *words, "--form", "public-tree", "--save", path)
    assert (compiled["form"], found["form"]) == ("tree", "public-tree")
    assert found["nash_conv"] == pytest.approx(compiled["nash_conv"], abs=1e-12)
    expected = openspiel_nash_conv(path, game)
    assert found["nash_conv"] == pytest.approx(expected, abs=1e-12)


def test_resolve_compares_with_baselines(capsys):
    # The largest seed, which does not fit in a signed 32-bit integer of C++.
    words = ("--baselines", "--seed", 2**32 - 1, "--json")
    run("resolve", *KUHN, "--iterations", 50, *words)
    lines = capsys.readouterr().out.splitlines()
    rows = json.loads(lines[-1])["baselines"]
    assert len(rows) == 4
    names = {"name", "iterations", "seconds", "compile_seconds", "nash_conv"}
    for row in rows:
        assert row.keys() == names
        (line,) = [text for text in lines[:-1] if text.startswith(row["name"])]
        assert f"{row['nash_conv']:.2e}" in line
    assert rows[0]["iterations"] == 50
    # The same algorithm for the same time; compilation is reported separately.
    assert rows[1]["name"] == "spiel_cr cfr+"
    assert rows[1]["compile_seconds"] > 0 == rows[0]["compile_seconds"]
    assert rows[-1]["name"] == "uniform"
    assert rows[-1]["nash_conv"] == pytest.approx(11 / 12)
    assert any(text.startswith("spiel_cr resolve") for text in lines)


def test_unknown_algorithm_error_lists_cfr_and_lp(capsys):
    message = rejection(capsys, "solve", *KUHN, "--algorithm", "sarsa").split()
    assert {"cfr,", "cfr+,"} <= set(message)
    assert any(word.strip(",;'") == "lp" for word in message)


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="argparse wraps otherwise")
def test_stored_help_pages_match_the_parsers(monkeypatch):
    """If this test fails, run `make help-pages`."""
    monkeypatch.setenv("COLUMNS", str(help_pages.HELP_COLUMNS))
    pages = main.make_help_pages()
    assert json.loads(help_pages.HELP_PAGES.read_text("utf-8")) == pages
    assert {"", "solve", "resolve"} <= set(pages)


def test_help_is_read_from_the_file_if_the_width_matches(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert help_pages.help_page(["--help"]).startswith("usage: spiel-cr [-h]")
    assert help_pages.help_page(["solve", "-h"]).startswith(
        "usage: spiel-cr solve [-h]"
    )
    assert help_pages.help_page(["--version"]) == f"spiel-cr {spiel_cr.__version__}\n"
    for words in ([], ["solve"], ["nothing", "--help"], ["solve", "--json", "--help"]):
        assert help_pages.help_page(words) is None
    monkeypatch.setenv("COLUMNS", "60")
    assert help_pages.help_page(["--help"]) is None


def test_help_does_not_import_jax_numpy_or_pyspiel():
    code = (
        "import sys\nfrom spiel_cr.eval.common import help_pages\n"
        "help_pages.help_page(['solve', '--help'])\n"
        "print({'jax', 'numpy', 'pyspiel'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "set()\n", done.stderr


def test_spot_parser_does_not_import_players_or_scipy_sparse():
    code = (
        "import sys\nfrom spiel_cr.eval.cli import main\nmain.make_parser(['spot'])\n"
        "slow = ('spiel_cr.players', 'spiel_cr.resolving', 'scipy.sparse.linalg')\n"
        "print([name for name in slow if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "[]\n", done.stderr


def test_output_uses_the_singular_for_one(capsys):
    run("resolve", *KUHN, "--iterations", 1)
    run("solve", *KUHN, "--algorithm", "cfr", "--iterations", 1)
    out = capsys.readouterr().out
    assert "cfr, 1 iteration\n" in out and "1 iteration in each of" in out
    assert not re.search(r"\b1 \w+s\b", out)


def test_lp_notes_unplayed_actions_that_are_as_good(capsys):
    """As player 0, `lp` never bets; betting the jack or the king is as good."""
    run("solve", *KUHN, "--algorithm", "lp")
    assert "note        2 unplayed actions are as good" in capsys.readouterr().out
    for words in (
        (*KUHN, "--algorithm", "cfr+", "--iterations", 100),
        # Rock, paper, scissors has one equilibrium.
        ("--game", "python_rock_paper_scissors", "--algorithm", "lp"),
    ):
        run("solve", *words)
        assert "unplayed" not in capsys.readouterr().out


def test_help_states_each_default_once():
    texts = {
        name: parser.format_help()
        for action in main.make_parser()._actions
        for name, parser in (action.choices or {}).items()
    }
    assert len(texts) == 21
    for name, text in texts.items():
        flat = " ".join(text.split())
        assert not re.search(
            r"default default|\(default \d+\.0\)|pip install -e", flat
        ), name


def test_lp_output_has_no_rate_no_bar_and_no_negative_nash_conv(capsys, monkeypatch):
    """A linear program runs no given number of iterations, so a bar would mislead."""
    verdict = Evaluation(-2.776e-17, evaluator="openspiel", game_value=0.0)
    monkeypatch.setattr(
        openspiel_evaluator, "evaluate_result", lambda *_, **__: verdict
    )
    found, out, err = outputs(capsys, "solve", *KUHN)
    assert found["algorithm"] == "lp" and found["nash_conv"] == -2.776e-17
    assert found["iterations_per_second"] > 0 and "iterations/s" not in out
    assert "  NashConv    0.000e+00  (" in out and "%|" not in err
    assert "iterations/s" in outputs(capsys, "solve", *KUHN, "--algorithm", "cfr")[1]


def test_spot_help_describes_the_plot():
    said = " ".join(main.make_help_pages()["spot"].split())
    wanted = "--plot PATH draw the curve of NashConv (with locks, if there are any) as"
    assert wanted in said
    assert "hands: --save FILE, then spiel-cr show --plot" in said


def test_solve_rejects_several_algorithms_and_names_compare(capsys):
    message = rejection(capsys, "solve", *KUHN, "--algorithm", "cfr+;dcfr")
    assert message.endswith("name(parameter=value,...); several: spiel-cr compare")


def test_algorithms_command_lists_names_and_settings(capsys):
    found, out, _ = outputs(capsys, "algorithms")
    rows = {row["name"]: row for row in found["algorithms"]}
    assert set(rows) == set(algorithms.ALGORITHMS)
    assert (
        rows["dcfr"]["family"] == "full-width" and "alpha" in rows["dcfr"]["settings"]
    )
    assert rows["lp"]["settings"] == []
    lines = out.splitlines()[:-1]
    assert [line.split()[0] for line in lines] == list(algorithms.ALGORITHMS)
