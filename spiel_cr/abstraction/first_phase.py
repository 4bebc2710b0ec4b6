"""The early rounds of a signal game alone, valued by rollouts: nobody bets any more.

Phase one of GS1 and GS2 (Gilpin & Sandholm 2006, "A competitive Texas Hold'em poker
player via automated abstraction and real-time equilibrium computation"; 2007, "Better
automated abstraction techniques for imperfect information games"): the first rounds are
solved as if both players checked from there on. In the form of signals no rollout is
drawn: a later kernel summed over the cards to come is the expectation over all of them.

Legend for shapes: P public nodes, S sequences of a player.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from spiel_cr.common.checks import check_whole
from spiel_cr.common.errors import InvalidGameError
from spiel_cr.games.signals import public_nodes
from spiel_cr.games.signals.game import (
    Betting,
    HandKernel,
    Kernel,
    SignalGame,
    SparseKernel,
    Terms,
    compares,
    sum_entries,
)


def early_rounds(game: SignalGame, rounds: int) -> SignalGame:
    """The game that ends with its first rounds, where hands are compared at once.

    What is compared for is what would be at stake if nobody bet any more: of all
    showdowns below, the one with the least at stake. Its kernel is summed over the
    cards to come, so values are exact expectations.

    Args:
      game: of several rounds.
      rounds: how many stay, at least 1 and less than the game has.

    Returns:
      A signal game whose public decisions are those of the first rounds, in the same
      order, with the same signals.

    Raises:
      ValueError: there are no so many rounds.
      InvalidGameError: below some later node nobody compares hands.
    """
    check_whole(rounds, "rounds", 1, game.num_rounds - 1)
    betting, terms = game.betting, game.terms
    last = rounds - 1
    early = betting.round <= last
    # Node 0 is of round 0, so every later node has a parent.
    above = np.maximum(betting.parent, 0)
    cut = np.flatnonzero(~early & early[above])
    kept = np.flatnonzero(early | (~early & early[above]))
    number = np.full(len(betting), -1, np.int32)
    number[kept] = np.arange(len(kept), dtype=np.int32)
    players = betting.player[kept].copy()
    shown = cheapest_showdowns(game)
    # For each leaf that pays, where it pays now.
    pays_at = np.where(early, number, -1)
    for node in cut.tolist():
        if shown[node] < 0:
            raise InvalidGameError(
                f"{game.game}: below node {node}, after the first {rounds} rounds, "
                "nobody compares hands, so there is nothing to value it by"
            )
        pays_at[shown[node]] = number[node]
    players[number[cut]] = betting.player[shown[cut]]
    # Two cut nodes have different leaves below them, so none is overwritten.
    used = np.flatnonzero(pays_at[terms.leaf] >= 0)
    kernels, kernel = np.unique(terms.kernel[used], return_inverse=True)
    parents = tuple(own[:rounds] for own in game.parents)
    return dataclasses.replace(
        game,
        betting=Betting(
            player=players,
            parent=np.where(kept > 0, number[above[kept]], -1).astype(np.int32),
            action=betting.action[kept],
            round=np.minimum(betting.round[kept], last),
        ),
        parents=(parents[0], parents[1]),
        kernels=tuple(_summed(game, game.kernels[k], last) for k in kernels.tolist()),
        terms=Terms(
            pays_at[terms.leaf[used]].astype(np.int32),
            kernel.astype(np.int32),
            terms.stake[used],
        ),
    )


def check_down(
    game: SignalGame, behaviour: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """A strategy of the early rounds for the whole game: nobody bets any more.

    Args:
      game: the whole game.
      behaviour: for each player float [S'], action probabilities by logical sequence of
        what `early_rounds` made.

    Returns:
      For each player float64 [S]: later on it checks, or calls what was bet, whatever
      its cards are.

    Raises:
      ValueError: the behaviours are those of no such game.
      InvalidGameError: somewhere later on nobody can come to compare hands.
    """
    shown = cheapest_showdowns(game)
    first, second = (
        _continued(game, player, np.asarray(behaviour[player], np.float64), shown)
        for player in range(2)
    )
    return first, second


def cheapest_showdowns(game: SignalGame) -> np.ndarray:
    """int64 [P], the leaf at or below each node where hands are compared for least.

    The first one of equals; -1 where there is none.
    """
    betting, terms = game.betting, game.terms
    compared = np.array([compares(kernel) for kernel in game.kernels], bool)
    folded = np.zeros(len(betting), bool)
    np.logical_or.at(folded, terms.leaf, ~compared[terms.kernel])
    cost = np.full(len(betting), np.inf)
    cost[np.setdiff1d(terms.leaf, np.flatnonzero(folded))] = 0.0
    np.add.at(cost, terms.leaf, np.abs(terms.stake))
    found = np.where(np.isfinite(cost), np.arange(len(betting)), -1)
    # Children come after their parents; downwards, so that the first of equals stays.
    for node in range(len(betting) - 1, 0, -1):
        above = betting.parent[node]
        if cost[node] < np.inf and cost[node] <= cost[above]:
            cost[above], found[above] = cost[node], found[node]
    return found


def _continued(
    game: SignalGame, player: int, behaviour: np.ndarray, shown: np.ndarray
) -> np.ndarray:
    """float64 [S], one player's strategy; see `check_down`."""
    decisions = public_nodes.public_decisions(game, player)
    sizes = decisions.num_signals.astype(np.int64) * decisions.num_actions
    rounds = game.betting.round[decisions.node]
    ends = [1 + int(sizes[rounds <= r].sum()) for r in range(game.num_rounds)]
    if len(behaviour) not in ends[:-1]:
        raise ValueError(
            f"behaviour of player {player} has {len(behaviour)} sequences; the first "
            f"rounds of {game.game} have {ends[:-1]}, by their number: give a strategy "
            "of what early_rounds made"
        )
    last = ends.index(len(behaviour))
    found = np.zeros(decisions.num_sequences)
    found[0], begin = 1.0, 1
    finder = public_nodes.Finder(game)
    for node, size, r in zip(
        decisions.node.tolist(), sizes.tolist(), rounds.tolist(), strict=True
    ):
        block = decisions.block(found, node)
        if r <= last:
            block[:] = behaviour[begin : begin + size].reshape(block.shape)
            begin += size
            continue
        below = shown[finder.children(node)]
        if shown[node] < 0:
            raise InvalidGameError(
                f"{game.game}: nobody compares hands below node {node}, so there is no "
                "way to check or call"
            )
        block[:, np.flatnonzero(below == shown[node])[0]] = 1.0
    return found


def _summed(game: SignalGame, kernel: Kernel, last: int) -> Kernel:
    """A kernel by the signals of round `last` that its own signals refine."""
    if kernel.round <= last:
        return kernel
    first, second = (game.ancestors(p, kernel.round, last) for p in range(2))
    shape = game.num_signals(0)[last], game.num_signals(1)[last]
    if isinstance(kernel, HandKernel):
        # A signal may stand for several boards to come.
        hands = tuple(
            own._replace(signal=behind[own.signal])
            for own, behind in zip(kernel.hands, (first, second), strict=True)
        )
        return HandKernel(last, shape, (hands[0], hands[1]), kernel.showdown)
    rows, columns, values = kernel.coordinates()
    entries = sum_entries(first[rows], second[columns], values, shape)
    return SparseKernel(last, shape, entries)
