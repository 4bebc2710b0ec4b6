"""Games that violate their interface are rejected by everything that uses them."""

import pytest

import spiel_cr
from tests.fuzz import malformed_games
from tests.fuzz.__main__ import run
from tests.fuzz.malformed_games import GAMES, checks, mutants, rejection_problem


def _complaints(found, names) -> list[str]:
    return [
        f"{mutant}, {name}: {said}"
        for mutant in found
        for name, ask in checks(mutant).items()
        if name in names and (said := rejection_problem(mutant, ask))
    ]


@pytest.mark.parametrize("base", GAMES[:5])
@pytest.mark.parametrize("batched_rules", [False, True])
def test_games_without_faults_are_accepted(base, batched_rules):
    """Otherwise, mutants might be rejected for another reason."""
    game = malformed_games.healthy(base).game(batched_rules=batched_rules)
    assert len(spiel_cr.build_tree(game).histories) == len(game.table)


@pytest.mark.parametrize(("name", "least"), [("states", 25), ("arrays", 20)])
def test_some_mutants_are_rejected(name, least):
    found = [m for m in mutants("kuhn_poker") if name in checks(m)]
    assert len(found) >= least
    assert not _complaints(found, [name])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["states", "arrays"])
def test_all_mutants_are_rejected(name):
    every = [m for base in GAMES for seed in range(3) for m in mutants(base, seed)]
    found = [m for m in every if name in checks(m)]
    assert len(found) >= 250
    assert not _complaints(found, [name])


_OTHERS = ("solve", "resolve", "partial tree", "partial tree on arrays")


def test_some_mutants_are_rejected_by_solvers_and_bots():
    assert not _complaints(mutants("python_rock_paper_scissors"), _OTHERS)


@pytest.mark.slow
def test_all_mutants_are_rejected_by_solvers_and_bots():
    found = [m for base in GAMES[:5] for m in mutants(base)]
    assert len(found) >= 80
    assert not _complaints(found, _OTHERS)


def test_campaign_reports_the_number_of_checks(tmp_path):
    rows = run("malformed_games", 0, 3, tmp_path / "trials", ["kuhn_poker"])
    assert not [fault for row in rows for fault in row["faults"]]
    assert all(row["asked"] >= 3 for row in rows)


@pytest.mark.parametrize(
    ("base", "kind"),
    [
        ("kuhn_poker", "chance without odds"),
        ("python_rock_paper_scissors", "nobody can move"),
    ],
)
def test_faults_at_the_root_are_rejected(base, kind):
    every = (mutant for seed in range(200) for mutant in mutants(base, seed))
    mutant = next(m for m in every if m.kind == kind and m.path == ())
    assert not _complaints([mutant], checks(mutant))
