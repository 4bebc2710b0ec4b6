"""Suites of `compare`: their games, their runs, and the page of results."""

import math

import pyspiel
import pytest

import spiel_cr
from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.common.executor import IN_PROCESS
from spiel_cr.eval.adapters import registry
from spiel_cr.eval.common.budget import Budget
from spiel_cr.eval.comparison import suites
from spiel_cr.solvers.cfr.cfr_config import PRESETS
from tests.support.commands import outputs, rejection

_KUHN = suites.SuiteGame("kuhn_poker", -1 / 18, -1 / 18, "Kuhn 1950")
_PENNIES = suites.SuiteGame("matrix_mp", None, None)


def tiny(**changes):
    suite = suites.Suite(
        "small", [_KUHN, _PENNIES], ("auto", "cfr", "cfr+"), Budget(None, 20), (5, 20)
    )
    return suite._replace(**changes)


def test_suites_have_distinct_games_and_all_presets():
    """All games load and differ, and the small suite runs `auto` and every preset."""
    small, large = suites.SUITES["small"], suites.SUITES["large"]
    assert 25 <= len(small.games) and len(large.games) == 6
    assert {*small.algorithms} == {"auto", *PRESETS}
    for suite in (small, large):
        loaded = {str(pyspiel.load_game(row.game)) for row in suite.games}
        assert len(loaded) == len(suite.games)
        for row in suite.games:
            assert row.low <= row.high and row.source
        for name in suite.algorithms:
            registry.find(name)


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, marks=[] if place < 3 else [pytest.mark.slow])
        for place, row in enumerate(suites.SUITES["small"].games)
    ],
    ids=lambda row: row.game.partition("(")[0],
)
def test_value_brackets_overlap_the_bounds_of_dcfr(row):
    """The strategies of another algorithm do not contradict a bracket."""
    result = spiel_cr.solve(row.game, "dcfr", 50)
    low, high = result.value_bounds()
    assert low - 1e-9 <= row.high and row.low <= high + 1e-9
    assert row.high - row.low <= 1e-9


def _record(game, algorithm, *curve):
    points = [[0.1 * t, t, value] for t, value in curve]
    return {"game": game, "algorithm": algorithm, "curve": points}


def test_standings_use_the_last_point_within_a_budget():
    """`auto` is not ranked among the rules."""
    records = [
        _record("kuhn_poker", "cfr", (1, 0.5), (5, 0.3), (20, 0.2)),
        _record("kuhn_poker", "cfr+", (2, 0.4), (10, 0.1), (20, 0.05)),
        _record("kuhn_poker", "auto", (5, 0.01), (20, 0.0)),
        _record("matrix_mp", "cfr", (5, 0.02), (20, 0.02)),
        _record("matrix_mp", "auto", (20, 0.08)),
        {"game": "matrix_mp", "algorithm": "cfr+", "missing": "reason"},
    ]
    rows = suites.standings(tiny(), records)
    assert rows[0].reached[0] == {"cfr": 0.3, "cfr+": 0.4, "auto": 0.01}
    assert [rows[0].best(0), rows[0].best(1)] == ["cfr", "cfr+"]
    assert [rows[1].best(0), rows[1].best(1)] == ["cfr", "cfr"]
    assert rows[1].reached[0] == {"cfr": 0.02}
    expected = math.sqrt(1e-12 / 0.05 * 0.08 / 0.02)
    assert suites.auto_ratio(rows) == pytest.approx(expected)
    assert suites.auto_ratio(suites.standings(tiny(), [])) is None


def test_summaries_rank_rules_that_ran_on_all_games():
    """Ties share a rank, and only rules that ran on all games have one."""
    records = [
        _record("kuhn_poker", "cfr", (20, 1e-15)),
        _record("kuhn_poker", "cfr+", (20, 0.0)),
        _record("kuhn_poker", "dcfr", (20, 0.0)),
        _record("matrix_mp", "cfr", (20, 0.04)),
        _record("matrix_mp", "cfr+", (20, 0.01)),
        _record("matrix_mp", "auto", (20, 0.0)),
    ]
    suite = tiny(algorithms=("auto", "cfr", "cfr+", "dcfr"))
    plus, plain = suites.summaries(suite, suites.standings(suite, records))
    assert plus[:3] == ("cfr+", 2, 1.0) and plain[:3] == ("cfr", 1, 1.5)
    assert plus.mean == pytest.approx(1e-7) and plain.mean == pytest.approx(2e-7)
    assert suites.summaries(suite, suites.standings(suite, [])) == []


def test_small_suite_runs_resumes_and_writes_its_table(tmp_path, monkeypatch, capsys):
    """One command runs and resumes the suite, and replaces the table in the page."""
    monkeypatch.setitem(suites.SUITES, "small", tiny())
    page = tmp_path / "page.md"
    begin, end = "<!-- suite small: begin -->", "<!-- suite small: end -->"
    page.write_text(f"# Title\n\n{begin}\nold\n{end}\n\nEnd.\n", "utf-8")
    words = ["compare", "--suite", "small", "--workers", 0, "--out", tmp_path / "out"]
    found, _, _ = outputs(capsys, *words, "--table", page)
    assert found["suite"] == "small" and found["runs"] == 6
    text = page.read_text("utf-8")
    assert text.startswith(f"# Title\n\n{begin}\n\n| game |") and "old" not in text
    assert text.endswith(f"\n{end}\n\nEnd.\n")
    (kuhn,) = (line for line in text.splitlines() if "-0.055555556" in line)
    reached = {
        name: spiel_cr.solve("kuhn_poker", name, 20).nash_conv()
        for name in ("cfr", "cfr+")
    }
    best = min(reached, key=reached.get)
    assert kuhn.endswith(
        f"| Kuhn 1950 | {kuhn.split('|')[4].strip()} | `{best}` {reached[best]:.2e} |"
    )
    lines = (tmp_path / "out" / "results.jsonl").read_text("utf-8")
    assert outputs(capsys, *words, "--table", page)[0] == found
    assert (tmp_path / "out" / "results.jsonl").read_text("utf-8") == lines
    assert page.read_text("utf-8") == text


@pytest.mark.slow
def test_large_suite_records_why_a_value_is_missing(tmp_path, monkeypatch, capsys):
    """Games that cannot be evaluated exactly have a reason instead of a number."""
    games = [_KUHN, suites.SuiteGame("leduc_poker")]
    large = tiny(
        name="large",
        games=games,
        algorithms=["cfr+", "os-mccfr"],
        budget=Budget(0.3, None),
        points=(1,),
    )
    monkeypatch.setitem(suites.SUITES, "large", large)
    words = ["compare", "--suite", "large", "--seconds", 0.3, "--out", tmp_path / "out"]
    monkeypatch.setattr(suites.spiel_cr, "nash_conv", _limited)
    found, out, _ = outputs(capsys, *words, "--table", tmp_path / "new.md")
    assert found["runs"] == 4 and out.count("kuhn_poker, ") == 2
    records = [*suites.run_large(large, tmp_path / "out", IN_PROCESS)]
    values = {(r["game"], r["algorithm"]): r["nash_conv"] for r in records}
    assert values["kuhn_poker", "cfr+"] < 0.01
    assert values["leduc_poker", "os-mccfr"] is None
    assert "too large" in {r["error"] for r in records}


def _limited(game, result, *, memory_limit):
    if game != "kuhn_poker":
        raise GameTooLargeError("too large")
    return result.nash_conv()


_MERGED = (
    "universal_poker(betting=limit,numPlayers=2,numRounds=2,blind=100 50,firstPlayer=2 "
    "1,numSuits=3,numRanks=4,numHoleCards=2,numBoardCards=0 3,raiseSize=100 100,"
    "maxRaises=3 3)"
)


@pytest.mark.slow
def test_sampled_policies_need_canonical_on_merged_deals(tmp_path):
    """On merged deals, NashConv of a sampled policy needs `canonical(policy=...)`."""
    games = [
        suites.SuiteGame(_MERGED, memory_limit="1GB", is_canonical=is_canonical)
        for is_canonical in (True, False)
    ]
    found = []
    for game in games:
        suite = tiny(
            name="large",
            games=[game],
            algorithms=["cfr+", "os-mccfr"],
            budget=Budget(1.0, None),
            points=(1,),
        )
        records = suites.run_large(suite, tmp_path / str(len(found)), IN_PROCESS)
        found.append({r["algorithm"]: r for r in records})
    merged, each = found
    # Uniform play has a NashConv of 297.
    assert 0 < merged["cfr+"]["nash_conv"] < 50 > each["cfr+"]["nash_conv"] > 0
    assert 50 < merged["os-mccfr"]["nash_conv"] < 600
    assert "canonical(policy=...)" in each["os-mccfr"]["error"]


def test_game_memory_limit_replaces_the_suite_default(tmp_path, monkeypatch):
    """A limit that the user gives takes precedence over that of the game."""
    limits = []

    def solve(game, algorithm, goal, *, options, seed):
        limits.append(options.memory_limit)
        raise GameTooLargeError("too large")

    monkeypatch.setattr(suites.spiel_cr, "solve", solve)
    games = [_KUHN, suites.SuiteGame("leduc_poker", memory_limit="6GB")]
    suite = tiny(
        name="large", games=games, algorithms=["cfr"], budget=Budget(1.0, None)
    )
    for place, options in enumerate([{}, {"memory_limit": "2GB"}]):
        out = tmp_path / str(place)
        assert len([*suites.run_large(suite, out, IN_PROCESS, **options)]) == 2
        assert len([*suites.run_large(suite, out, IN_PROCESS, **options)]) == 2
    assert limits == ["4GB", "6GB", "2GB", "2GB"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "add --suite, or a game"),
        (["--game", "kuhn_poker", "--table", "x.md"], "--table needs a suite"),
        (["--suite", "small", "--game", "kuhn_poker"], "leave --game out"),
        (["--suite", "small", "--seconds", "3"], "leave --seconds out"),
        (["--suite", "large", "--iterations", "3"], "leave --iterations out"),
        (["--suite", "large", "--algorithms", "cfr"], "leave --algorithms out"),
        (["--suite", "large", "--figure", "x.pdf"], "leave --figure out"),
        (["--suite", "large", "--unit", "mbb"], "leave --unit out"),
    ],
)
def test_rejects_options_that_the_suite_determines(words, message, capsys):
    assert message in rejection(capsys, "compare", *words)
