"""Games that break a promise are refused, wherever they are met."""

import pytest

import spiel_cr
from spiel_cr.resolving.partial.partial_tree import compile_partial
from tests.fuzz import malformed_games
from tests.fuzz.malformed_games import CHANGES, GAMES, Mutant, complaint, mutants

LEAF = "rollouts(n=1)"
# Of the kinds, those that are met at a single node.
_AT_NODES = {*CHANGES, "both players win"}


def _compile(mutant: Mutant, vectorised: bool):
    return complaint(
        mutant, lambda: spiel_cr.compile_game(mutant.game(vectorised=vectorised))
    )


def _complaints(answers) -> list[str]:
    return [f"{mutant}: {said}" for mutant, said in answers if said]


@pytest.mark.parametrize("base", GAMES[:5])
@pytest.mark.parametrize("vectorised", [False, True])
def test_without_a_fault_they_are_games(base, vectorised):
    """Else the mutants might be refused for something else."""
    game = malformed_games.healthy(base).game(vectorised=vectorised)
    assert len(spiel_cr.compile_game(game).histories) == len(game.table)


@pytest.mark.parametrize("vectorised", [False, True])
def test_few(vectorised):
    found = [m for m in mutants("kuhn_poker") if m.arrays or not vectorised]
    assert len(found) >= (20 if vectorised else 25)
    assert not _complaints((m, _compile(m, vectorised)) for m in found)


@pytest.mark.slow
@pytest.mark.parametrize("vectorised", [False, True])
def test_all(vectorised):
    every = [m for base in GAMES for seed in range(3) for m in mutants(base, seed)]
    found = [m for m in every if m.arrays or not vectorised]
    assert len(found) >= 250
    assert not _complaints((m, _compile(m, vectorised)) for m in found)


def _asked(mutant: Mutant) -> list[tuple[Mutant, str]]:
    """By solving, resolving, and trees for bots that never compile the game."""
    game, arrays = (mutant.game(vectorised=v) for v in (False, True))
    answers = [
        complaint(mutant, lambda: spiel_cr.solve(game, "cfr+", 1)),
        complaint(mutant, lambda: spiel_cr.resolve(game, iterations=1)),
    ]
    if mutant.kind in _AT_NODES:
        answers.append(complaint(mutant, lambda: compile_partial(game, 10**5, LEAF)))
    if mutant.kind in CHANGES:
        answers.append(complaint(mutant, lambda: compile_partial(arrays, 10**5, LEAF)))
    return [(mutant, said) for said in answers]


def test_few_are_asked_by_solvers_and_bots():
    found = list(mutants("python_rock_paper_scissors"))
    assert not _complaints(pair for m in found for pair in _asked(m))


@pytest.mark.slow
def test_all_are_asked_by_solvers_and_bots():
    found = [m for base in GAMES[:5] for m in mutants(base)]
    assert len(found) >= 80
    assert not _complaints(pair for m in found for pair in _asked(m))
