"""Classes of leaves of a declared game whose payoffs are equal up to a stake.

Leaves are compared on a sample of deals, or on all deals if there are few. If the
payoffs of a leaf are a multiple of those of another leaf, both share a payoff matrix.
The result is then checked on other deals.
"""

from typing import NamedTuple

import numpy as np

from spiel_cr.common.arrays import ranks
from spiel_cr.common.errors import InvalidGameError
from spiel_cr.games.public_tree.declaration.line import LineDeals
from spiel_cr.games.public_tree.declaration.public_tree import PublicTree
from spiel_cr.games.public_tree.declaration.public_tree_replay import (
    PublicTreeReplay,
    replay,
)
from spiel_cr.games.public_tree.public_nodes import LeafTerms

# Largest difference of payoffs that count as equal, relative to the larger one.
_TOLERANCE = 1e-12
# Largest number of payoff matrices for which the factorisation is useful.
_MOST_MATRICES = 4096


class LeafPayoffs(NamedTuple):
    """Payoffs of leaves.

    Attributes:
      terms: Leaves, payoff matrices and stakes.
      leaf: A representative leaf of each matrix, which pays `unit` times the matrix,
        int64 [K].
      unit: Stake of the representative leaf, float64 [K].
    """

    terms: LeafTerms
    leaf: np.ndarray
    unit: np.ndarray


def find_stakes(tree: PublicTree, deals: LineDeals, prefer: np.ndarray) -> LeafPayoffs:
    """Group the leaves whose payoffs are proportional on some deals.

    Args:
      tree: The public tree.
      deals: Sample of deals.
      prefer: Nodes that are preferred as representatives of a matrix, bool [P].

    Raises:
      InvalidGameError: If there are thousands of payoffs that are not proportional.
    """
    leaves = tree.leaves
    one, number = _classes(tree, prefer)
    paid = payoffs_at(tree, deals, leaves[one])
    rounds = tree.betting.round[leaves[one]]
    group = np.full(len(one), -1)
    stake = np.zeros(len(one))
    group[~paid.any(axis=1)] = -2  # all payoffs are zero
    matrix_leaf: list[int] = []
    unit: list[float] = []
    while (todo := np.flatnonzero(group == -1)).size:
        if len(unit) == _MOST_MATRICES:
            raise InvalidGameError(
                f"{tree.checked.game}: its leaves have more than {_MOST_MATRICES} "
                f"payoff functions that are not multiples of each other, so payoffs "
                f"do not factor into bets and private states; remove `private_state` "
                f"from its batched rules"
            )
        # Leaves of the line of bets first, and the smallest stakes.
        size = np.abs(paid[todo]).max(axis=1)
        first = todo[np.lexsort([todo, size, ~prefer[leaves[one[todo]]]])[0]]
        # The largest absolute payoff is one unit, negative if all payoffs are losses.
        one_unit = np.abs(paid[first]).max()
        direction = paid[first] / (-one_unit if (paid[first] <= 0).all() else one_unit)
        same_round = todo[rounds[todo] == rounds[first]]
        times = paid[same_round] @ direction / (direction @ direction)
        off = np.abs(paid[same_round] - times[:, None] * direction).max(axis=1)
        joins = same_round[off <= _TOLERANCE * np.abs(times)]
        group[joins] = len(unit)
        stake[joins] = _neat(times[off <= _TOLERANCE * np.abs(times)])
        matrix_leaf.append(int(leaves[one[first]]))
        unit.append(float(stake[first]))
    pays = group[number] >= 0
    terms = LeafTerms(
        leaves[pays].astype(np.int32),
        group[number[pays]].astype(np.int32),
        stake[number[pays]],
    )
    return LeafPayoffs(terms, np.array(matrix_leaf, np.int64), np.array(unit))


def _neat(stakes: np.ndarray) -> np.ndarray:
    """Return stakes, rounded to integers where the difference is a rounding error."""
    rounded = np.round(stakes)
    return np.where(
        np.abs(stakes - rounded) <= _TOLERANCE * np.abs(stakes), rounded, stakes
    )


def _classes(tree: PublicTree, prefer: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return one leaf of each class of payoff keys, and the class of each leaf."""
    count = len(tree.leaves)
    if tree.payoff_keys is None:
        return np.arange(count), np.arange(count)
    number = ranks([tree.payoff_keys])
    one = np.full(number.max() + 1, count)
    for some in (np.arange(count), np.flatnonzero(prefer[tree.leaves])):
        one[number[some[::-1]]] = some[::-1]
    return one, number


def payoffs_at(tree: PublicTree, deals: LineDeals, leaves: np.ndarray) -> np.ndarray:
    """Return player 0's payoffs at some leaves on some deals, float64 [leaves, n]."""
    count = len(deals.outcomes)
    paid = np.zeros((len(leaves), count))
    order = np.argsort(leaves)
    for nodes, states in replay(tree, deals, tree.up_to(leaves)):
        wanted = np.isin(nodes, leaves)
        if wanted.any():
            utility = tree.checked.utility(states[np.repeat(wanted, count)])
            rows = order[np.searchsorted(leaves, nodes[wanted], sorter=order)]
            paid[rows] = utility.reshape(-1, count)
    return paid


def check_on(tree: PublicTree, deals: LineDeals, stakes: LeafPayoffs) -> None:
    """Play other deals through the whole tree and compare all values.

    Args:
      tree: The public tree.
      deals: Deals that were not used to determine the stakes.
      stakes: Payoffs of leaves.

    Raises:
      InvalidGameError: If a payoff differs, payoff keys depend on deals, private states
        depend on bets, or as in `replay`. The message names the place.
    """
    count, betting = len(deals.outcomes), tree.betting
    by_matrix = payoffs_at(tree, deals, stakes.leaf)
    by_matrix /= stakes.unit[:, None]
    matrix = np.full(len(betting), -1)
    matrix[stakes.terms.leaf] = stakes.terms.matrix
    stake = np.zeros(len(betting))
    stake[stakes.terms.leaf] = stakes.terms.stake
    by_matrix = np.vstack([by_matrix, np.zeros(count)])  # the last one is zero

    check, seen = PublicTreeReplay(tree, deals), 0
    for nodes, states in replay(tree, deals):
        for r in np.unique(betting.round[nodes]):
            in_round = betting.round[nodes] == r
            rows = states[np.repeat(in_round, count)]
            for player, wanted in enumerate(deals.private_states[r]):
                row_keys = tree.checked.rows("private_state", rows, player)
                equal = (row_keys == np.tile(wanted, (int(in_round.sum()), 1))).all(1)
                problem = f"the private state of player {player} depends on the bets"
                check.same(nodes[in_round], equal, problem)
        over = betting.player[nodes] < 0
        if not over.any():
            continue
        ends, rows = nodes[over], states[np.repeat(over, count)]
        utility = tree.checked.utility(rows)
        expected = (stake[ends, None] * by_matrix[matrix[ends]]).ravel()
        equal = np.abs(utility - expected) <= _TOLERANCE * np.abs(utility)
        problem = "the payoff is not proportional to that of its class of leaves"
        check.same(ends, equal, problem)
        if tree.payoff_keys is not None:
            keys = tree.checked.rows("payoff_key", rows)
            wanted = tree.payoff_keys[seen : seen + len(ends), 1:]
            equal = (keys == np.repeat(wanted, count, axis=0)).all(axis=1)
            check.same(ends, equal, "payoff_key depends on the deals")
        seen += len(ends)
