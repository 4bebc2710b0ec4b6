"""The command line: what it prints where, its JSON, its files, how it refuses."""

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
from spiel_cr.eval.common.plurals import counted
from spiel_cr.judging import python_judge

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
SOLVE_KEYS = {
    "game",
    "algorithm",
    "iterations",
    "nash_conv",
    "game_value",
    "judge",
    "seconds",
    "compile_seconds",
    "iterations_per_second",
}
KUHN = ("--game", "kuhn_poker")


def run(*words):
    """Runs a command in this process; returns nothing, prints as the command does."""
    main._run(main._parse(["spiel-cr", *map(str, words)]))


def report(capsys, *words):
    """The JSON of a command: the last line of its stdout."""
    run(*words, "--json")
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def openspiel_nash_conv(path, game):
    """NashConv of a saved policy, by OpenSpiel."""
    table = spiel_cr.load_policy(path, game)
    return exploitability.nash_conv(pyspiel.load_game(game), table)


def info_as_a_process(game):
    words = [SCRIPT, "info", "--game", game, "--json"]
    return subprocess.run(words, capture_output=True, text=True, timeout=60)


@needs_script
def test_info_as_a_process():
    done = info_as_a_process("leduc_poker")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    found = json.loads(lines[-1])
    assert 9457 * 40 < found.pop("bytes") < 9457 * 400
    assert found == LEDUC_SIZES
    assert "9,457" in done.stdout  # and for people


@needs_script
@pytest.mark.slow
def test_mistake_as_a_process():
    done = info_as_a_process("leduc_poker(flavour=1)")
    assert done.returncode == 2
    assert done.stdout == ""
    assert "flavour" in done.stderr
    assert "Traceback" not in done.stderr


def test_version(capsys):
    with pytest.raises(SystemExit) as stopped:
        run("--version")
    assert stopped.value.code == 0
    assert capsys.readouterr().out == f"spiel-cr {spiel_cr.__version__}\n"
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", spiel_cr.__version__)


def test_info_without_json_prints_no_json(capsys):
    run("info", *KUHN)
    out = capsys.readouterr().out
    assert "58" in out
    assert "{" not in out


@pytest.mark.parametrize("algorithm", ("cfr+", "dcfr(alpha=1.5,beta=0,gamma=2)", "lp"))
def test_solve_reports_what_openspiel_finds(capsys, tmp_path, algorithm):
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


def test_solve_says_to_people_what_it_says_to_programs(capsys):
    run("solve", *KUHN, "--iterations", 100, "--json")
    lines = capsys.readouterr().out.splitlines()
    found = json.loads(lines[-1])
    assert any(f"{found['nash_conv']:.3e}" in line for line in lines[:-1])


@pytest.mark.parametrize("command", ("solve", "resolve"))
def test_both_judges_agree(capsys, command):
    words = (command, *KUHN, "--iterations", 20, "--judge")
    theirs, ours = (report(capsys, *words, by) for by in ("openspiel", "spiel_cr"))
    assert (theirs["judge"], ours["judge"]) == ("openspiel", "spiel_cr")
    # Both are exact: rounding of double precision.
    for key in ("nash_conv", "game_value"):
        assert ours[key] == pytest.approx(theirs[key], abs=1e-9)
    low, high = ours["value_bounds"]
    assert low <= -1 / 18 <= high
    assert high - low == pytest.approx(ours["nash_conv"], abs=1e-12)
    assert "value_bounds" not in theirs


def test_large_games_are_not_given_to_openspiel(capsys, monkeypatch):
    words = ("solve", *KUHN, "--iterations", 10)
    assert report(capsys, *words)["judge"] == "openspiel"
    monkeypatch.setattr(python_judge, "_MOST_HISTORIES", 57)
    assert report(capsys, *words)["judge"] == "spiel_cr"
    assert report(capsys, *words, "--judge", "openspiel")["judge"] == "openspiel"


def test_curve(capsys):
    words = ("--iterations", 100, "--eval-every", 25)
    found = report(capsys, "solve", *KUHN, *words)
    points = found["curve"]
    assert [point["iterations"] for point in points] == [25, 50, 75, 100]
    assert points[-1]["nash_conv"] == pytest.approx(found["nash_conv"], abs=1e-9)
    assert points[-1]["nash_conv"] < points[0]["nash_conv"]
    seconds = [point["seconds"] for point in points]
    assert seconds == sorted(seconds)


def test_until_stops_early(capsys):
    words = ("--iterations", 100_000, "--until", 0.01)
    found = report(capsys, "solve", *KUHN, *words)
    assert found["nash_conv"] <= 0.01
    assert found["iterations"] < 100_000


def test_saved_policy_is_for_its_game(capsys, tmp_path):
    path = tmp_path / "policy.npz"
    run("solve", *KUHN, "--iterations", 10, "--save", path)
    assert str(path) in capsys.readouterr().out
    with pytest.raises(ValueError, match="kuhn_poker"):
        spiel_cr.load_policy(path, "python_rock_paper_scissors")


@needs_matplotlib
def test_plot(tmp_path):
    path = tmp_path / "curve.png"
    run("solve", *KUHN, "--iterations", 60, "--eval-every", 20, "--plot", path)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_checkpoint_is_continued(capsys, tmp_path):
    path = tmp_path / "state.npz"
    words = ("solve", *KUHN, "--checkpoint", path, "--iterations")
    run(*words, 50)
    assert path.exists()
    continued = report(capsys, *words, 100)
    straight = report(capsys, "solve", *KUHN, "--iterations", 100)
    assert continued["nash_conv"] == pytest.approx(straight["nash_conv"], abs=1e-12)


def test_progress_goes_to_stderr(capsys):
    run("solve", *KUHN, "--iterations", 100, "--json")
    solved = capsys.readouterr()
    run("resolve", *KUHN, "--iterations", 20, "--json")
    resolved = capsys.readouterr()
    for streams in (solved, resolved):
        assert "\r" not in streams.out
        assert "it/s" not in streams.out
        json.loads(streams.out.splitlines()[-1])
    assert solved.err or resolved.err


def test_resolve(capsys, tmp_path):
    path = tmp_path / "policy.npz"
    words = ("--iterations", 100, "--save", path)
    found = report(capsys, "resolve", *KUHN, *words)
    assert SOLVE_KEYS <= found.keys()
    assert "baselines" not in found
    assert 0 <= found["nash_conv"] < 0.1
    expected = openspiel_nash_conv(path, "kuhn_poker")
    assert found["nash_conv"] == pytest.approx(expected, abs=1e-12)


def test_resolve_in_the_form_of_signals(capsys, tmp_path):
    path = tmp_path / "policy.npz"
    game = "python_leduc_poker(max_raises=1)"
    words = ("--game", game, "--iterations", 20)
    compiled = report(capsys, "resolve", *words)
    found = report(capsys, "resolve", *words, "--form", "signals", "--save", path)
    assert (compiled["form"], found["form"]) == ("compiled", "signals")
    assert found["nash_conv"] == pytest.approx(compiled["nash_conv"], abs=1e-12)
    expected = openspiel_nash_conv(path, game)
    assert found["nash_conv"] == pytest.approx(expected, abs=1e-12)


def test_resolve_beside_baselines(capsys):
    # The largest seed, which C++ has no room for without its sign.
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
    # The same algorithm in the same seconds, its compiling apart.
    assert rows[1]["name"] == "spiel_cr cfr+"
    assert rows[1]["compile_seconds"] > 0 == rows[0]["compile_seconds"]
    assert rows[-1]["name"] == "uniform"
    assert rows[-1]["nash_conv"] == pytest.approx(11 / 12)
    assert any(text.startswith("spiel_cr resolve") for text in lines)


@pytest.mark.parametrize("command", ("solve", "resolve"))
def test_place_that_cannot_be_saved_to(capsys, tmp_path, command):
    (tmp_path / "file").write_text("not a folder")
    path = tmp_path / "file" / "policy.npz"
    with pytest.raises(SystemExit) as stopped:
        run(command, *KUHN, "--iterations", 5, "--save", path)
    assert stopped.value.code == 2
    message = capsys.readouterr().err.splitlines()[-1]
    assert message.startswith("spiel-cr: error:")
    assert str(tmp_path / "file") in message


def test_message_for_an_unknown_algorithm_lists_lp_too(capsys):
    with pytest.raises(SystemExit):
        run("solve", *KUHN, "--algorithm", "sarsa")
    message = capsys.readouterr().err.split()
    assert {"cfr,", "cfr+,"} <= set(message)
    assert any(word.strip(",;'") == "lp" for word in message)


_SOLVER_FLAGS = ("game", "algorithm", "iterations", "dtype", "memory-limit", "save")
FLAGS = {
    "info": ("game", "json", "memory-limit"),
    "solve": (
        *_SOLVER_FLAGS,
        *("json", "seconds", "until", "eval-every", "plot"),
        *("checkpoint", "checkpoint-every"),
    ),
    "resolve": (*_SOLVER_FLAGS, "json", "baselines", "seed"),
}


@pytest.mark.parametrize("command", FLAGS)
def test_help(capsys, command):
    with pytest.raises(SystemExit) as stopped:
        run(command, "--help")
    assert stopped.value.code == 0
    out = capsys.readouterr().out
    missing = [flag for flag in FLAGS[command] if f"--{flag}" not in out]
    assert not missing


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="argparse wraps otherwise")
def test_help_pages_are_those_of_the_parsers(monkeypatch):
    """Else: `make help-pages`."""
    monkeypatch.setenv("COLUMNS", str(help_pages.HELP_COLUMNS))
    pages = main.make_help_pages()
    assert json.loads(help_pages.HELP_PAGES.read_text("utf-8")) == pages
    assert {"", "solve", "resolve"} <= set(pages)


def test_help_is_read_from_a_file_where_it_fits(monkeypatch):
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


def test_help_imports_nothing_heavy():
    code = (
        "import sys\nfrom spiel_cr.eval.common import help_pages\n"
        "help_pages.help_page(['solve', '--help'])\n"
        "print({'jax', 'numpy', 'pyspiel'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "set()\n", done.stderr


def test_help_names_the_commands(capsys):
    with pytest.raises(SystemExit) as stopped:
        run("--help")
    assert stopped.value.code == 0
    out = capsys.readouterr().out
    assert all(command in out for command in FLAGS)


@pytest.mark.parametrize(
    ("number", "nouns", "text"),
    [
        (1, ("match", "matches"), "1 match"),
        (2, ("match", "matches"), "2 matches"),
        (0, ("solve",), "0 solves"),
        (12345, ("solve",), "12,345 solves"),
    ],
)
def test_counted(number, nouns, text):
    assert counted(number, *nouns) == text


def test_one_is_no_plural(capsys):
    run("resolve", *KUHN, "--iterations", 1)
    run("solve", *KUHN, "--algorithm", "cfr", "--iterations", 1)
    out = capsys.readouterr().out
    assert "cfr, 1 iteration\n" in out and "1 iteration in each of" in out
    assert not re.search(r"\b1 \w+s\b", out)


def test_help_gives_each_default_once():
    texts = {
        name: parser.format_help()
        for action in main.make_parser()._actions
        for name, parser in (action.choices or {}).items()
    }
    assert len(texts) == 14
    for name, text in texts.items():
        flat = " ".join(text.split())
        assert not re.search(
            r"default default|\(default \d+\.0\)|pip install -e", flat
        ), name
