"""The study of limit hold'em, on a game of six cards: what it keeps, what it says."""

import json

import pytest

from spiel_cr.eval.cli import main, study
from spiel_cr.eval.common import json_log
from spiel_cr.eval.players import sessions
from spiel_cr.eval.studies import deep_holdem

_LEDUC = "leduc_poker"


def test_plans_are_those_of_the_thesis():
    """Traversals, iterations and networks; smaller ones where it is asked for less."""
    specified, more = deep_holdem._plans(10)
    assert "traversals=270,hidden=512,layers=3" in specified.algorithm
    assert (specified.iterations, specified.sessions) == (10, 200)
    assert more.traversals == 1080
    assert "capacity=300000" in specified.algorithm
    small, _ = deep_holdem._plans(0.1)
    assert (small.traversals, small.iterations, small.hidden) == (27, 1, 64)


def table(chips, half):
    """Sessions of six bots in which the row wins so much from a column before it."""
    size = 6
    square = [[None] * size for _ in range(size)]
    mean = [[chips if j < i else 0.0 for j in range(size)] for i in range(size)]
    halves = [[half] * size for _ in range(size)]
    return sessions.Sessions(
        *(tuple("abcdef"), square, square, mean, halves), *([square] * 4)
    )


@pytest.mark.parametrize(
    ("chips", "half", "agrees"),
    [(0.1, 0.2, True), (-0.1, 0.2, True), (-0.3, 0.2, False), (-0.3, None, None)],
)
def test_weaker_is_what_chance_does_not_explain(chips, half, agrees):
    line = deep_holdem._not_weaker(deep_holdem._plans(1)[0], table(chips, half))
    assert line.agrees is agrees
    assert "M50" in line.ours and "faulty program" in line.published
    assert "20 deals" in line.ours and line.what.startswith(
        "no later checkpoint is sig"
    )


@pytest.mark.parametrize(
    ("half", "agrees"), [(0.02, True), (0.1, None), (None, None), (0.0, True)]
)
def test_a_share_is_above_a_bound_with_its_interval(half, agrees):
    assert deep_holdem._above(0.9, half, 0.84) is agrees
    assert deep_holdem._above(0.78, half, 0.84) is (None if agrees is None else False)


def test_studies_that_keep_nothing_take_no_folder(tmp_path, capsys):
    words = ["spiel-cr", "study", "kuhn", "--out", str(tmp_path / "x")]
    with pytest.raises(SystemExit):
        main._run(main._parse(words))
    said = capsys.readouterr().err
    assert "the study kuhn keeps nothing" in said and "deep_holdem" in said


@pytest.mark.slow
def test_the_study_of_a_small_game(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(deep_holdem, "_GAME", _LEDUC)
    words = ["study", "deep_holdem", "--size", "0.002", "--json", "--out"]

    def report():
        main._run(main._parse(["spiel-cr", *words, str(tmp_path)]))
        return json.loads(capsys.readouterr().out.splitlines()[-1])["lines"]

    lines = report()
    # Training, ten pairs, one verdict, five against the honest player, six styles,
    # four responses; of both runs.
    assert len(lines) == 2 * (1 + 10 + 1 + 5 + 6 + 4)
    whats = [line["what"] for line in lines]
    assert whats[1].startswith("M20 against M10")
    assert (
        lines[1]["published"] == "wins 101 of 200 matches (50.5%), by a faulty program"
    )
    verdicts = [line["what"] for line in lines if line["agrees"] is not None]
    # One deal has no interval, and so no verdict.
    assert not verdicts
    rows = json_log.read_lines(tmp_path / "specified" / "rows.jsonl", ("kind", "name"))
    assert ("training", "M50") in rows and ("ismcts", "M10") in rows
    assert rows["training", "M50"]["iterations"] == 5

    def fail(*_, **__):
        raise AssertionError("computed again")

    for name in ("solve_deep", "_respond"):
        monkeypatch.setattr(deep_holdem, name, fail)
    assert report() == lines


def test_it_is_listed():
    assert study.STUDIES["deep_holdem"].run_in is not None
