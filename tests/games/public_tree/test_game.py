"""Validation of public-tree games, and independence of the units of matrices."""

import dataclasses

import numpy as np
import pytest

import spiel_cr
from spiel_cr.common.errors import InvalidGameError
from spiel_cr.solvers.algorithms import find
from spiel_cr.solvers.cfr import cfr
from tests.support.kuhn_public_tree import kuhn


def kuhn_with_changed_value(part, field, index, value):
    """Return Kuhn poker with one number of its public tree or its terms changed."""
    game = kuhn()
    whole = getattr(game, part)
    array = getattr(whole, field).copy()
    array[index] = value
    if part == "terms":
        return dataclasses.replace(game, terms=whole._replace(**{field: array}))
    other = dataclasses.replace(whole, **{field: array})
    return dataclasses.replace(game, betting=other)


def kuhn_with_changed_entry(part, value):
    """Return Kuhn poker with the first entry of its first matrix changed."""
    game = kuhn()
    matrix = game.payoff_matrices[0]
    array = getattr(matrix.entries, part).copy()
    array[0] = value
    entries = matrix.entries._replace(**{part: array})
    other = dataclasses.replace(matrix, entries=entries)
    return dataclasses.replace(game, payoff_matrices=(other, *game.payoff_matrices[1:]))


BROKEN = {
    "node 0 is not a root": lambda: kuhn_with_changed_value("betting", "round", 0, 1),
    "before its parent": lambda: kuhn_with_changed_value("betting", "parent", 1, 3),
    "not 0, 1 or TERMINAL": lambda: kuhn_with_changed_value("betting", "player", 0, -1),
    "terminal node has actions": lambda: kuhn_with_changed_value(
        "betting", "parent", 7, 3
    ),
    "a decision has no actions": lambda: kuhn_with_changed_value(
        "betting", "player", 3, 1
    ),
    "actions do not ascend": lambda: kuhn_with_changed_value("betting", "action", 2, 0),
    "round ends before it begins": lambda: kuhn_with_changed_value(
        "betting", "round", 3, -1
    ),
    "node's round has no private states": lambda: kuhn_with_changed_value(
        "betting", "round", 8, 1
    ),
    "has unknown private states": lambda: kuhn_with_changed_entry("rows", 3),
    "entries that are not finite": lambda: kuhn_with_changed_entry("values", np.nan),
    "leaf is not a public node": lambda: kuhn_with_changed_value(
        "terms", "leaf", 0, -6
    ),
    "payoff matrix does not exist": lambda: kuhn_with_changed_value(
        "terms", "matrix", 0, -2
    ),
    "a payoff is at a decision": lambda: kuhn_with_changed_value("terms", "leaf", 0, 1),
    "a stake is not finite": lambda: kuhn_with_changed_value(
        "terms", "stake", 0, np.inf
    ),
}


@pytest.mark.parametrize("problem", BROKEN)
def test_rejects_invalid_games(problem):
    game = BROKEN[problem]()
    with pytest.raises(InvalidGameError, match=problem):
        spiel_cr.solve(game, goal=1)


def test_rejects_invalid_parents_of_private_states():
    game = kuhn()
    wrong = (np.array([0, 0, 1], np.int32),)
    broken = dataclasses.replace(game, parents=(wrong, game.parents[1]))
    with pytest.raises(InvalidGameError, match="has an invalid parent"):
        spiel_cr.solve(broken, goal=1)


def test_iterates_do_not_depend_on_units_of_matrices_and_stakes():
    """Float32 could represent neither the scaled entries nor the scaled stakes."""
    game = kuhn()
    payoff_matrices = tuple(
        dataclasses.replace(
            matrix,
            entries=matrix.entries._replace(
                values=np.ldexp(matrix.entries.values, -200)
            ),
        )
        for matrix in game.payoff_matrices
    )
    stakes = game.terms._replace(stake=np.ldexp(game.terms.stake, 200))
    other = dataclasses.replace(game, payoff_matrices=payoff_matrices, terms=stakes)
    found = []
    for one in (game, other):
        solver = cfr.make_solver(
            one.build_sequence_form(products=True),
            config=find("cfr+").config,
            dtype=np.float32,
            compile="fast",
        )
        solver.run(20)
        found.append(solver.average(0))
    np.testing.assert_array_equal(*found)
