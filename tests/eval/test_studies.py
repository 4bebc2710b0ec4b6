"""Studies: claims and verdicts, outputs of the command, and computations."""

import dataclasses
import json
import re
from multiprocessing.reduction import ForkingPickler

import pyspiel
import pytest

from spiel_cr.eval.studies import game_values, gameshrink, page
from spiel_cr.eval.studies.study import (
    DIFFERS,
    NOT_COMPARABLE,
    REPRODUCED,
    STUDIES,
    Claim,
    Measurement,
    mean_points,
    read_studies,
)
from tests.project.pages import ROOT
from tests.support.commands import outputs, rejection, report

PAGE = ROOT / "docs" / "benchmarks" / "reproductions.md"
BIBLIOGRAPHY = ROOT / "docs" / "reference" / "bibliography.md"
SMALL = "dark_hex(board_size=2"
POINTS = mean_points(
    [
        Measurement("a, kuhn", 1.0, 10),
        Measurement("a, kuhn", 3.0, 10),
        Measurement("a, kuhn", 0.5, 20),
        Measurement("b, kuhn", 4.0, 20, error=0.3),
    ]
)


def finding(size=1.0, **claim):
    (found,) = Claim(**claim).findings(POINTS, size)
    return found


def test_points_are_means_over_seeds():
    first, second, third = POINTS
    assert (first.mean, first.x, first.seeds) == (2.0, 10, 2)
    # Student's t with one degree of freedom: 12.706 times the standard error, 1.
    assert first.half_width == pytest.approx(12.706, abs=1e-3)
    assert second.half_width is None and third.error == 0.3


@pytest.mark.parametrize(
    ("claim", "agrees"),
    [
        ({"series": "a, kuhn", "equals": 0.5}, True),
        ({"series": "a, kuhn", "equals": 0.4}, False),
        ({"series": "a, kuhn", "equals": 0.4, "tolerance": 0.11}, True),
        ({"series": "a, kuhn", "x": 10, "equals": 2}, True),
        ({"series": "a, kuhn", "x": "mean", "equals": 1.25}, True),
        ({"series": "b, kuhn", "equals": 4.25}, True),
        ({"series": "b, kuhn", "equals": 4.35}, False),
        ({"series": "a, kuhn", "at_most": 0.49}, False),
        ({"series": "a, kuhn", "at_least": 0.49}, True),
        ({"series": "a, *", "at_most": "b, {*}"}, True),
        ({"series": "a, *", "at_most": "b, {*}", "factor": 0.1}, False),
        ({"series": "a, kuhn", "at_least": "a, kuhn@10"}, False),
    ],
)
def test_claim_is_reproduced_within_its_tolerance(claim, agrees):
    found = finding(**claim, reason="known")
    assert found.verdict == (REPRODUCED if agrees else DIFFERS)
    assert found.reason == ("" if agrees else "known")


def test_small_sizes_widen_the_tolerance_of_claims():
    """A quarter of the work doubles the error, which adds the slack once."""
    claim = {"series": "a, kuhn", "equals": 0.4, "slack": 0.11}
    assert finding(1.0, **claim).verdict == finding(0.3, **claim).verdict == DIFFERS
    assert finding(0.25, **claim).verdict == REPRODUCED
    found = finding(0.5, series="a, kuhn", at_most=0.1, full_size=True)
    assert found.verdict == NOT_COMPARABLE and found.reason
    assert list(Claim(series="not measured", at_most=1).findings(POINTS, 1.0)) == []
    with pytest.raises(ValueError, match="'c, kuhn'"):
        finding(series="a, *", at_most="c, {*}")


def test_verdict_of_a_study_follows_from_its_findings():
    made = STUDIES["gameshrink"]
    right, wrong = (
        finding(series="a, kuhn", equals=x, reason="why.") for x in (0.5, 1)
    )
    unknown = finding(0.5, series="a, kuhn", equals=1, full_size=True)
    assert made.verdict([right, unknown]) == (REPRODUCED, "")
    assert made.verdict([right, wrong]) == (DIFFERS, "why.")
    assert made.verdict([unknown]) == (NOT_COMPARABLE, unknown.reason)
    assert STUDIES["gcr-cfr"].verdict([])[0] == NOT_COMPARABLE


def test_studies_have_known_sources_and_claims_or_a_reason():
    """Each row has sources of the bibliography, and a reason if it has no claims."""
    headings = re.findall(r"^### (.*)$", BIBLIOGRAPHY.read_text("utf-8"), re.M)
    keys = {heading.lower() for heading in headings}
    for made in STUDIES.values():
        assert {key for key in made.sources.values() if key} <= keys, made.name
        assert made.claims or made.reason, made.name
        for claim in made.claims:
            bounds = (claim.equals, claim.at_most, claim.at_least)
            assert sum(bound is not None for bound in bounds) == 1, made.name


def test_page_lists_all_studies():
    """Each study has a line, and each command on the page exists."""
    text = PAGE.read_text("utf-8")
    commands = re.findall(r"`spiel-cr study ([\w-]+)", text)
    assert set(commands) == set(STUDIES)


def test_page_text_is_filled_with_measurements():
    text = "{a, kuhn} {a, kuhn@first}, {a, kuhn@mean}; {c, kuhn} and {a, kuhn@11}"
    assert page.filled(text, POINTS) == "0.5 2, 1.25; – and –"


def test_each_expands_to_all_combinations_of_cases():
    (made,) = read_studies(
        """
        [x]
        title = "t"
        sources = {"S 1990" = ""}
        protocol = "p"
        published = "q"
        finding = "{a}"
        compute = "c.f"
        reason = "r"
        cases = [{each = {a = [1, 2], b = [3, 4]}, c = 5}, {a = 0, from_size = 0.5}]
        """
    ).values()
    assert made.cases[1] == {"a": 1, "b": 4, "c": 5} and len(made.cases) == 5


def test_study_without_a_name_lists_all_studies(capsys):
    found, text, _ = outputs(capsys, "study")
    assert found["studies"] == list(STUDIES)
    assert all(re.search(rf"^{name} ", text, re.M) for name in STUDIES)


def test_kuhn_study_prints_an_explanation_and_a_table(capsys, monkeypatch):
    kuhn = STUDIES["kuhn"]
    short = dataclasses.replace(kuhn, cases=kuhn.cases[:2])
    monkeypatch.setitem(STUDIES, "kuhn", short)
    found, text, err = outputs(capsys, "study", "kuhn", "--size", "0.01")
    assert re.search(r"^Q +0 +alpha \+ 1/3 +0 +1/3$", text, re.M)
    assert "alpha is how\noften player 0 bluffs" in text
    rows = {line[:29].strip(): line[29:].split() for line in text.splitlines() if line}
    assert rows[""] == ["lp", "cfr"]
    bets = rows["player 0 bets the jack"]
    # `lp` never bluffs.
    assert bets[0] == "0" and 0.05 < float(bets[1]) < 1 / 3
    exact = {p["series"]: p["mean"] for p in found["points"]}
    assert float(bets[1]) == pytest.approx(exact["cfr: player 0 bets the jack"], 1e-4)
    # A rounding residue is shown as 0, and is in the JSON.
    assert rows["largest error"][0] == "0" and exact["lp: largest error"] > 0
    assert "measured   0\n" in text
    # A progress bar has two lines if stderr is not a terminal; nothing else is shown.
    assert err.count("\n") == 2 and "kuhn: finished cfr" in err


def test_study_writes_json_csv_picture_and_table(capsys, tmp_path):
    pytest.importorskip("matplotlib")
    table = tmp_path / "page.md"
    table.write_text("above\n<!-- studies: begin -->\n<!-- studies: end -->\nbelow\n")
    words = ("kuhn-cfr", "--size", "0.01", "--out", tmp_path, "--table", table)
    found, text, _ = outputs(capsys, "study", *words)
    assert found["verdict"] == REPRODUCED and "verdict: reproduced" in text
    written = json.loads((tmp_path / "kuhn-cfr.json").read_text("utf-8"))
    assert written["points"] == found["points"] and written["versions"]
    lines = (tmp_path / "kuhn-cfr.csv").read_text("utf-8").splitlines()
    assert len(lines) == 1 + len(found["points"]) == 9
    assert (tmp_path / "kuhn-cfr.png").stat().st_size > 10_000
    lines = table.read_text("utf-8").splitlines()
    assert lines[0] == "above" and lines[-1] == "below"
    (row,) = (line for line in lines if "`spiel-cr study kuhn-cfr`" in line)
    assert "*reproduced*" in row and "0.01, 1" in row
    assert sum("| not run |" in line for line in lines) == len(STUDIES) - 1


def test_curves_are_plotted_to_a_file(tmp_path):
    """Means have error bars; series with a single point are omitted."""
    pytest.importorskip("matplotlib")
    path = tmp_path / "curves.png"
    page.plot(STUDIES["gcr-cfr"], POINTS, path)
    assert path.stat().st_size > 5_000


def test_rejects_invalid_options_before_the_work(capsys, tmp_path):
    assert "ray='nowhere'" in rejection(capsys, "study", "kuhn", "--ray", "nowhere")
    assert "seeds=0" in rejection(capsys, "study", "kuhn", "--seeds", 0)
    assert "add --out" in rejection(capsys, "study", "--table", tmp_path / "x.md")
    other = tmp_path / "other.md"
    other.write_text("no marks")
    words = ("study", "--out", tmp_path, "--table", other)
    assert "are missing" in rejection(capsys, *words)
    assert other.read_text() == "no marks"


@pytest.mark.parametrize("name", STUDIES)
def test_cases_are_distinct_and_can_be_pickled(name):
    """Workers must be able to unpickle a study and its functions."""
    cases = [str(case) for case in STUDIES[name].cases]
    assert len(set(cases)) == len(cases) >= 1
    again = ForkingPickler.loads(ForkingPickler.dumps(STUDIES[name]))
    assert again == STUDIES[name]


def test_kuhn_study_distinguishes_solved_from_uniform_play():
    """Claims about the equilibria of Kuhn poker fail after a single iteration."""
    kuhn = dataclasses.replace(
        STUDIES["kuhn"], cases=[{"algorithm": "cfr", "iterations": 100_000}]
    )
    for size, verdict in ((1e-5, DIFFERS), (1.0, REPRODUCED)):
        points = mean_points(line for _, line in kuhn.measure(size))
        claims = [dataclasses.replace(c, slack=0.0) for c in kuhn.claims]
        found = dataclasses.replace(kuhn, claims=claims).findings(points, 1.0)
        assert [each.verdict for each in found] == [verdict] * 2


def values_of(measurements):
    return {(line.series, line.x): line.value for line in measurements}


def test_gameshrink_study_has_known_classes_for_a_small_deck(monkeypatch):
    """The game is solved for 20 iterations only; solving has separate tests."""
    game = "python_rhode_island_holdem(num_ranks=4,num_suits=2,max_bets=1)"
    found = values_of(gameshrink.partitions(1.0, 0, game=game))
    classes = [found["by histograms: classes", r] for r in (1, 2, 3)]
    assert classes == [4, 24, 103]
    assert [found["equitable: classes", r] for r in (1, 2, 3)] == [4, 28, 168]
    assert found["by histograms: is equitable", 0] == 0
    assert found["equitable: is equitable", 0] == 1
    lost = values_of(
        gameshrink.losses(1.0, 0, game=game, method="equitable", iterations=20)
    )
    inside, lifted, _ = lost.values()
    assert 0 < inside == pytest.approx(lifted, abs=1e-9)


def count_infosets(game):
    """Count information states at decisions, by walking OpenSpiel's states."""
    states, keys = [pyspiel.load_game(game).new_initial_state()], set()
    while states:
        state = states.pop()
        if not state.is_terminal():
            player = state.current_player()
            keys.add((player, state.information_state_string(player)))
            states += [state.child(action) for action in state.legal_actions()]
    return len(keys)


def test_phantom_game_studies_have_known_values():
    """Player 0 wins every match on a board of 2x2."""
    lines = list(game_values.phantom(1.0, 0, game=f"{SMALL})", iterations=60))
    infosets, value, uniform = lines
    # The phantom form merges infosets, so it has fewer than OpenSpiel.
    assert 0 < round(infosets.value * 1e6) < count_infosets(f"{SMALL})")
    assert abs(value.value - 1) <= value.error + 5e-5 and value.error < 0.01
    assert uniform.value == pytest.approx(1.25)
    game = f"{SMALL},gameversion=adh)"
    (infosets,) = game_values.abrupt(1.0, 0, game=game)
    assert round(infosets.value * 1e6) == count_infosets(game)


@pytest.mark.slow
@pytest.mark.parametrize("name", STUDIES)
def test_studies_at_small_size_explain_each_difference(capsys, name):
    """Each finding that differs from the source has a reason."""
    size = STUDIES[name].small
    found = report(capsys, "study", name, "--size", size, "--seeds", 1)
    assert found["points"] and all(p["seeds"] == 1 for p in found["points"])
    differs = [f for f in found["findings"] if f["verdict"] == DIFFERS]
    assert all(f["reason"] for f in differs), differs
    assert found["seconds"] < 600
