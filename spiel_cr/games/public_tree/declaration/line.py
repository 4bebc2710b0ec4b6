"""One line of bets through all rounds of a declared game, and deals along it."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from spiel_cr.common.errors import InvalidGameError
from spiel_cr.common.pairs import pair
from spiel_cr.games.histories import CHANCE
from spiel_cr.games.opening.batched_rules import CheckedRules
from spiel_cr.games.public_tree.declaration.public_tree import PublicTree


class BettingLine(NamedTuple):
    """A line of bets that visits every round.

    Attributes:
      nodes: Public node at which each round begins.
      moves: Actions from that node to the next round, for each round; empty in the
        last.
    """

    nodes: list[int]
    moves: list[list[int]]


def find_line(tree: PublicTree) -> BettingLine:
    """Return the shortest line of bets that visits every round.

    Raises:
      InvalidGameError: If there is no such line.
    """
    betting, num_rounds = tree.betting, len(tree.num_deals)
    rounds_below = np.ones(len(betting), np.int64) << betting.round
    for level in betting.levels()[1:]:
        rounds_below[level] |= rounds_below[betting.parent[level]]
    complete = np.flatnonzero(rounds_below == (1 << num_rounds) - 1)
    if not len(complete):
        raise InvalidGameError(
            f"{tree.checked.game}: no line of bets visits all of its {num_rounds} "
            f"rounds (after {tree.num_deals.tolist()} chance nodes), which is required "
            f"to enumerate private states; remove the rounds to which only some bets "
            f"lead"
        )
    node = int(complete[0])
    nodes: list[int] = [0] * num_rounds
    moves: list[list[int]] = [[] for _ in range(num_rounds)]
    nodes[-1] = node
    while (above := int(betting.parent[node])) >= 0:
        moves[betting.round[above]].insert(0, int(betting.action[node]))
        nodes[betting.round[above]] = above
        node = above
    return BettingLine(nodes, moves)


class LineDeals(NamedTuple):
    """Complete deals, with private states along a line of bets.

    Attributes:
      outcomes: The outcome of each chance node, int64 [n, C].
      probabilities: The probabilities of the outcomes, float64 [n, C].
      private_states: Private states for each round and player, integers [n, k].
    """

    outcomes: np.ndarray
    probabilities: np.ndarray
    private_states: list[tuple[np.ndarray, np.ndarray]]


def draw_deals(
    checked: CheckedRules, line: BettingLine, random: np.random.Generator, count: int
) -> LineDeals:
    """Draw random deals along a line of bets.

    Args:
      checked: The game.
      line: Line of bets.
      random: Random generator; one number for each deal and chance node.
      count: Number of deals, each drawn by its own probability.
    """

    def draw(probabilities: np.ndarray, move: int) -> np.ndarray:
        level = np.cumsum(probabilities, axis=1)
        drawn = random.random(count) * level[:, -1]
        # The last possible outcome, in case of rounding errors in the sum.
        last = (
            probabilities.shape[1] - 1 - np.argmax(probabilities[:, ::-1] > 0, axis=1)
        )
        return np.minimum((level <= drawn[:, None]).sum(axis=1), last)

    return _deal(checked, line, count, draw)


def every_deal(checked: CheckedRules, line: BettingLine, most: int) -> LineDeals | None:
    """Return all deals, or None if there are more than `most`."""
    states = checked.rules.new_initial_states()
    outcomes = np.zeros((1, 0), np.int64)
    for moves in line.moves:
        while checked.rules.current_player(states[:1])[0] == CHANCE:
            states, where, outcome, _ = checked.outcomes(states)
            if len(where) > most:
                return None
            outcomes = np.column_stack([outcomes[where], outcome])
        states = checked.play(states, moves)
    return _deal(
        *(checked, line, len(outcomes)), lambda probabilities, move: outcomes[:, move]
    )


def _deal(
    checked: CheckedRules,
    line: BettingLine,
    count: int,
    choose: Callable[[np.ndarray, int], np.ndarray],
) -> LineDeals:
    """Return deals whose outcomes are chosen by a function.

    Args:
      checked: The game.
      line: Line of bets.
      count: Number of deals.
      choose: Function of probabilities [n, A] and the number of the chance node, which
        returns outcomes [n].
    """
    states = np.repeat(checked.rules.new_initial_states(), count, axis=0)
    outcomes: list[np.ndarray] = []
    probabilities: list[np.ndarray] = []
    private_states = []
    for moves in line.moves:
        while checked.rules.current_player(states[:1])[0] == CHANCE:
            each = checked.chance_probabilities(states)
            chosen = choose(each, len(outcomes))
            outcomes.append(chosen)
            probabilities.append(each[np.arange(count), chosen])
            states = checked.rules.child(states, chosen)
        private_states.append(
            pair(checked.rows("private_state", states, player) for player in range(2))
        )
        states = checked.play(states, moves)
    return LineDeals(
        _columns(outcomes, count), _columns(probabilities, count, float), private_states
    )


def _columns(
    arrays: list[np.ndarray], count: int, dtype: type = np.int64
) -> np.ndarray:
    return np.stack(arrays, axis=1) if arrays else np.zeros((count, 0), dtype)
