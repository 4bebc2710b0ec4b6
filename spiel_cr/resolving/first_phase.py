"""The early rounds of a public-tree game alone: the first phase of GS1 and GS2.

Gilpin & Sandholm 2006 (GS1) solve the early rounds of poker as if both players checked
from then on, and values at the end of the early rounds are rollouts of the cards to
come. Gilpin & Sandholm 2007 ("Better automated abstraction techniques for imperfect
information games, with application to Texas Hold'em poker", GS2) replace the checks by
statistics of how players bet later, given their hands. `public_endgames` is the second
phase.

Here nothing is drawn and no statistics are counted: a payoff matrix of a later round is
multiplied by both players' probabilities of later play, given their private states, and
summed over the cards to come, so values are expectations. GS2 estimated them from hands
that its predecessors had played; here the policy itself, such as a blueprint, is given.

The weakness of both systems remains: later play is fixed, so the early strategy does
not take into account that the opponent may play later rounds differently, and NashConv
in the complete game is large (docs/explanation/abstraction.md).
"""

import dataclasses
import os
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from spiel_cr.abstraction.gameshrink.counts import list_entries
from spiel_cr.common.arrays import places_in
from spiel_cr.common.checks import check_integer
from spiel_cr.common.errors import InvalidGameError
from spiel_cr.common.pairs import map_pair, pair
from spiel_cr.games.histories import TERMINAL
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.public_tree.payoff_matrices import (
    BoardHands,
    HandMatrix,
    PayoffMatrix,
    SparseMatrix,
    compares,
    sum_entries,
)
from spiel_cr.games.public_tree.public_nodes import Betting, LeafTerms
from spiel_cr.games.sequence_form.decisions import Payoffs
from spiel_cr.policies.conversions import uniform_behaviour
from spiel_cr.resolving.leaves.continuations import Strategies, blueprint_behaviour
from spiel_cr.solvers.policy_files import load_policy

CHECK_DOWN = "check-down"


def early_rounds(
    game: PublicTreeGame, rounds: int, later: Strategies = CHECK_DOWN
) -> PublicTreeGame:
    """Build the game that ends with its first rounds.

    Args:
      game: Game of several rounds.
      rounds: Number of early rounds, at least 1 and less than the game has.
      later: Play of both players in the later rounds, which determines the payoffs:
        "check-down", "uniform", the path of a policy file, a policy, or action
        probabilities by sequence.
        "check-down": nobody bets, as in GS1. "uniform": all actions are equally likely.
        The path of a policy file, a policy, or action probabilities of each player by
        logical sequence of `game`, float [S]: as in GS2.

    Returns:
      A game whose public decisions and private states are those of the early rounds, in
      the same order. `with_later_rounds` maps its strategies to the complete game.

    Raises:
      OSError: If the policy file does not exist, or cannot be read.
      ValueError: If the game does not have so many rounds, or the policy does not match
        the game.
      InvalidGameError: If `later` is "check-down" and hands are never compared after a
        public node.

    Example:
      >>> import game_defs, spiel_cr
      >>> from spiel_cr.games.public_tree import public_tree_game
      >>> game = public_tree_game("python_leduc_poker")
      >>> early = early_rounds(game, 1)
      >>> average = spiel_cr.solve(early, "cfr+", 100).average
      >>> behaviour = with_later_rounds(game, average)
    """
    check_integer(rounds, "rounds", 1, game.num_rounds - 1)
    betting, last = game.betting, rounds - 1
    is_early = betting.round <= last
    above = np.maximum(betting.parent, 0)
    nodes = np.flatnonzero(is_early | is_early[above])
    number = places_in(nodes, len(betting))
    terms, matrices = _later_payoffs(game, rounds, later_play(game, later))
    return dataclasses.replace(
        game,
        betting=Betting(
            player=np.where(is_early, betting.player, TERMINAL)[nodes].astype(np.int8),
            parent=np.where(nodes > 0, number[above[nodes]], -1).astype(np.int32),
            action=betting.action[nodes],
            round=np.minimum(betting.round[nodes], last),
        ),
        parents=pair(side[:rounds] for side in game.parents),
        payoff_matrices=tuple(matrices),
        terms=terms._replace(leaf=number[terms.leaf]),
    )


def with_later_rounds(
    game: PublicTreeGame,
    behaviour: Sequence[np.ndarray],
    later: Strategies = CHECK_DOWN,
) -> tuple[np.ndarray, np.ndarray]:
    """Map strategies of the early rounds to the complete game.

    Args:
      game: The complete game.
      behaviour: Probability of each sequence's last action for each player, in the game
        that `early_rounds` returns, float [S'].
      later: Play in the later rounds, as for `early_rounds`.

    Returns:
      Probability of each sequence's last action for each player, float64 [S].

    Raises:
      ValueError: If the behaviours belong to no number of early rounds.
    """
    play = [row.copy() for row in later_play(game, later)]
    for player, decisions in enumerate(game.public_decisions):
        sizes = decisions.num_private_states.astype(np.int64) * decisions.num_actions
        rounds = np.repeat(game.betting.round[decisions.node], sizes)
        counts = [1 + int((rounds <= r).sum()) for r in range(game.num_rounds)]
        early = np.asarray(behaviour[player])
        if early.shape not in [(count,) for count in counts[:-1]]:
            raise ValueError(
                f"behaviour of player {player} has the shape {early.shape}; the early "
                f"rounds of {game.game} have {counts[:-1]} sequences, by their number: "
                f"give a strategy of a game that early_rounds returned"
            )
        play[player][1:][rounds <= counts.index(len(early))] = early[1:]
    return play[0], play[1]


def later_play(
    game: PublicTreeGame, later: Strategies
) -> tuple[np.ndarray, np.ndarray]:
    """Return later play as action probabilities, float64 [S] of each player."""
    if isinstance(later, str):
        if later == CHECK_DOWN:
            return check_down(game)
        if later == "uniform":
            return map_pair(uniform_behaviour, game.decisions)
        if not os.path.isfile(later):
            raise FileNotFoundError(
                f"later={later!r}: the file does not exist; use {CHECK_DOWN!r}, "
                f"'uniform' or the path of a policy file"
            )
        later = load_policy(later, game)
    return blueprint_behaviour(later, game, "later")


def check_down(game: PublicTreeGame) -> tuple[np.ndarray, np.ndarray]:
    """Return the strategies of players that always check, or call a bet.

    At each decision a player takes the action that leads to the showdown with the
    smallest stake, the first one of several.

    Raises:
      InvalidGameError: If hands are never compared after a decision.
    """
    betting, terms = game.betting, game.terms
    shows = np.array([compares(matrix) for matrix in game.payoff_matrices], bool)
    cost = np.full(len(betting), np.inf)
    cost[np.setdiff1d(terms.leaf, terms.leaf[~shows[terms.matrix]])] = 0.0
    np.add.at(cost, terms.leaf, np.abs(terms.stake))
    best = np.zeros(len(betting), np.int64)
    # Children come after their parents, so each node is final when it is visited. The
    # order is descending, so that the first of equal actions is kept.
    for node in range(len(betting) - 1, 0, -1):
        above = betting.parent[node]
        if cost[node] < np.inf and cost[node] <= cost[above]:
            cost[above], best[above] = cost[node], betting.index[node]
    behaviours = [np.zeros(side.num_sequences) for side in game.public_decisions]
    for behaviour, decisions in zip(behaviours, game.public_decisions, strict=True):
        behaviour[0] = 1.0
        for node in decisions.node.tolist():
            if cost[node] == np.inf:
                raise InvalidGameError(
                    f"{game.game}: hands are never compared after the public actions "
                    f"{betting.path(node)}, so there is no play without bets; use "
                    f"later='uniform' or a policy"
                )
            decisions.block(behaviour, node)[:, best[node]] = 1.0
    return behaviours[0], behaviours[1]


def _later_payoffs(
    game: PublicTreeGame, rounds: int, play: Sequence[np.ndarray]
) -> tuple[LeafTerms, list[PayoffMatrix]]:
    """Return terms at leaves and ends of the early rounds, and their matrices.

    If later play to a leaf does not depend on the private states, the summed matrix of
    the leaf is shared and the stake is scaled; otherwise the end of the early rounds
    has a matrix of its own.

    Args:
      game: The complete game.
      rounds: Number of early rounds.
      play: Later play of each player, float64 [S].
    """
    betting, terms, last = game.betting, game.terms, rounds - 1
    end = np.arange(len(betting))
    for node in np.flatnonzero(betting.round > last).tolist():
        above = betting.parent[node]
        end[node] = node if betting.round[above] <= last else end[above]

    def strategy_at(node: int) -> np.ndarray:
        decisions = game.public_decisions[betting.player[node]]
        block = decisions.block(play[betting.player[node]], node)
        return block if betting.round[node] > last else np.ones_like(block)

    shape = game.num_private_states(0)[last], game.num_private_states(1)[last]
    stakes: dict[tuple[int, int], float] = defaultdict(float)
    entries: dict[int, list[Payoffs]] = defaultdict(list)
    for leaf, k, stake in zip(*(row.tolist() for row in terms), strict=True):
        first, second = (game.reach_at(p, leaf, strategy_at) for p in range(2))
        if np.ptp(first) == np.ptp(second) == 0:
            if scale := first[0] * second[0]:
                stakes[int(end[leaf]), k] += stake * float(scale)
            continue
        matrix = game.payoff_matrices[k]
        rows, columns, values = list_entries(matrix)
        values = stake * values * first[rows] * second[columns]
        rows = game.ancestors(0, matrix.round, last)[rows]
        columns = game.ancestors(1, matrix.round, last)[columns]
        # Summed at once, because there are many more cards to come than leaves.
        entries[int(end[leaf])].append(sum_entries(rows, columns, values, shape))
    shared = sorted({k for _, k in stakes})
    matrices = [_summed(game, game.payoff_matrices[k], last) for k in shared]
    for parts in entries.values():
        rows, columns, values = map(np.concatenate, zip(*parts, strict=True))
        total = sum_entries(rows, columns, values, shape)
        matrices.append(SparseMatrix(last, shape, total))
    separate = range(len(shared), len(matrices))
    return LeafTerms(
        np.array([leaf for leaf, _ in stakes] + list(entries), np.int32),
        np.array([shared.index(k) for _, k in stakes] + list(separate), np.int32),
        np.array(list(stakes.values()) + [1.0] * len(entries)),
    ), matrices


def _summed(game: PublicTreeGame, matrix: PayoffMatrix, last: int) -> PayoffMatrix:
    """Return a payoff matrix by the private states of the last early round."""
    if matrix.round <= last:
        return matrix
    above = pair(game.ancestors(p, matrix.round, last) for p in range(2))
    shape = game.num_private_states(0)[last], game.num_private_states(1)[last]
    if isinstance(matrix, HandMatrix):
        # A private state may stand for several boards to come.
        hands = map_pair(BoardHands.renumbered, matrix.hands, above)
        return HandMatrix(last, shape, hands, matrix.showdown)
    rows, columns, values = matrix.coordinates()
    entries = sum_entries(above[0][rows], above[1][columns], values, shape)
    return SparseMatrix(last, shape, entries)
