"""Check that information that shares a private state is equivalent in the whole game.

Two pieces of information of a player may share a private state if they have the same
relation to the other player's private states: relative to their probability, each
matrix has the same payoffs against each of these, and each private state of the next
round follows with the same probability. Then, for every strategy of the other player
that depends on its private states, both have the same values, so the player loses
nothing by merging them. Instead of comparing everything, the check compares one sum
over all deals with random weights of private states. Sums of information that is not
equivalent are equal with probability zero.
"""

from typing import NamedTuple

import numpy as np

from spiel_cr.common.errors import InvalidGameError
from spiel_cr.games.public_tree.declaration.line import BettingLine
from spiel_cr.games.public_tree.declaration.numbers import Numbers
from spiel_cr.games.public_tree.declaration.public_tree import PublicTree

# Largest difference of sums of at most one unit of payoff that count as equal.
_TOLERANCE = 1e-10
# Approximate number of deals of a round that are checked.
_MOST_DEALS = 1 << 20


class RoundDeals(NamedTuple):
    """Some deals as they enter a round.

    Attributes:
      states: States on the line of bets.
      outcomes: Chance outcomes, int32 [n, c].
      probabilities: Probabilities of all outcomes of each deal together, float64 [n].
      private_states: Private states of both players, int64 [2, n].
      paid: Player 0's utility by matrices times the probability, float64 [matrices, n].
      above: Result of `MergedDealsCheck.see` in the round before, int64 [2, n].
    """

    states: np.ndarray
    outcomes: np.ndarray
    probabilities: np.ndarray
    private_states: np.ndarray
    paid: np.ndarray
    above: np.ndarray


class _NumberedSums:
    """Sums by growing numbers."""

    def __init__(self) -> None:
        self.values = np.zeros(0)

    def add(self, numbers: np.ndarray, values: np.ndarray) -> None:
        some = np.bincount(numbers, weights=values)
        if len(some) > len(self.values):
            self.values = np.pad(self.values, (0, len(some) - len(self.values)))
        self.values[: len(some)] += some

    def upto(self, count: int) -> np.ndarray:
        return np.pad(self.values, (0, max(0, count - len(self.values))))[:count]


class _Informations:
    """Sums for the information of one player in one round."""

    def __init__(self, num_matrices: int) -> None:
        self.numbers = Numbers()
        self.private_state = np.zeros(0, np.int64)
        self.examples: list[np.ndarray] = []
        self.probabilities = _NumberedSums()
        self.paid = [_NumberedSums() for _ in range(num_matrices)]
        self.next = _NumberedSums()


class MergedDealsCheck:
    """Check of merged information, which processes deals as they are played."""

    def __init__(
        self,
        tree: PublicTree,
        line: BettingLine,
        payoff_matrices: list[int],
        num_deals: list[float],
        random: np.random.Generator,
    ) -> None:
        """Prepare the check.

        Args:
          tree: The public tree.
          line: Line of bets along which deals are played.
          payoff_matrices: Number of payoff matrices in each round.
          num_deals: Approximate number of deals that enter each round.
          random: Random generator for weights, and to choose private states if there
            are many deals.
        """
        self._checked, self._random = tree.checked, random
        self._share = [min(1.0, _MOST_DEALS / count) for count in num_deals]
        self._to_decision = [
            tuple(_to_decision(tree, node, player) for player in range(2))
            for node in line.nodes
        ]
        self._seen = [(_Informations(n), _Informations(n)) for n in payoff_matrices]
        self._draws: dict[tuple[int, int, str], np.ndarray] = {}

    def _drawn(
        self, r: int, player: int, purpose: str, private_states: np.ndarray
    ) -> np.ndarray:
        """Return a fixed random number for each private state, float64 [n]."""
        drawn = self._draws.get((r, player, purpose), np.zeros(0))
        most = int(private_states.max()) + 1
        if most > len(drawn):
            more = self._random.random(max(most, 2 * len(drawn)) - len(drawn))
            drawn = np.concatenate([drawn, more])
            self._draws[r, player, purpose] = drawn
        return drawn[private_states]

    def see(self, r: int, deals: RoundDeals) -> np.ndarray:
        """Add deals that enter a round.

        Args:
          r: The round.
          deals: Some of its deals.

        Returns:
          Numbers of information, which are `above` in the next round, int64 [2, n].
        """
        informations = np.full((2, len(deals.probabilities)), -1)
        for player in range(2):
            if r:
                self._follow(r, player, deals)
            path = self._to_decision[r][player]
            if path is not None:
                drawn = self._drawn(r, player, "chosen", deals.private_states[player])
                chosen = np.flatnonzero(drawn < self._share[r])
                if len(chosen):
                    seen_now = self._inform(r, player, deals, chosen, path)
                    informations[player, chosen] = seen_now
        return informations

    def _follow(self, r: int, player: int, deals: RoundDeals) -> None:
        """Add the private states of a round to the information of the round before."""
        chosen = np.flatnonzero(deals.above[player] >= 0)
        if len(chosen):
            private_states = deals.private_states[player, chosen]
            weight = deals.probabilities[chosen] * self._drawn(
                r, player, "next", private_states
            )
            self._seen[r - 1][player].next.add(deals.above[player, chosen], weight)

    def _inform(
        self,
        r: int,
        player: int,
        deals: RoundDeals,
        chosen: np.ndarray,
        path: list[int],
    ) -> np.ndarray:
        """Number the information of some deals, int64 [n], and add to its sums."""
        states, seen = deals.states[chosen], self._seen[r][player]
        states = self._checked.play(states, path)
        keys = self._checked.rows("information_state", states, player)
        numbers, new = seen.numbers.of(keys)
        private_states = deals.private_states[player, chosen]
        seen.private_state = np.concatenate([seen.private_state, private_states[new]])
        seen.examples += list(deals.outcomes[chosen[new]])
        if not (equal := seen.private_state[numbers] == private_states).all():
            odd = int(np.argmin(equal))
            raise self._error(
                *(r, player),
                deals.outcomes[chosen[odd]],
                seen.examples[int(numbers[odd])],
                "has two private states with the same information",
                "let `private_state` depend only on what the player knows",
            )
        seen.probabilities.add(numbers, deals.probabilities[chosen])
        other = self._drawn(
            r, 1 - player, "met", deals.private_states[1 - player, chosen]
        )
        for table, paid in zip(seen.paid, deals.paid, strict=True):
            table.add(numbers, paid[chosen] * other)
        return numbers

    def compare_sums(self) -> None:
        """Compare the sums of information that shares a private state.

        Raises:
          InvalidGameError: If the sums differ. The message names two deals.
        """
        for r, both in enumerate(self._seen):
            for player, seen in enumerate(both):
                count = len(seen.private_state)
                if not count:
                    continue
                probabilities = seen.probabilities.upto(count)
                first = np.zeros(int(seen.private_state.max()) + 1, np.int64)
                first[seen.private_state[::-1]] = np.arange(count)[::-1]
                like = first[seen.private_state]
                for number, table in enumerate([*seen.paid, seen.next]):
                    per = table.upto(count) / probabilities
                    off = np.abs(per - per[like])
                    if (off > _TOLERANCE).any():
                        odd = int(np.argmax(off))
                        problem = (
                            "different private states may follow"
                            if number == len(seen.paid)
                            else "its payoffs differ"
                        )
                        raise self._error(
                            *(r, player),
                            seen.examples[odd],
                            seen.examples[int(like[odd])],
                            f"has one private state, although {problem}",
                            "let `private_state` distinguish them: it may only merge "
                            "deals that a symmetry of the game maps to each other",
                        )

    def _error(
        self,
        r: int,
        player: int,
        one: np.ndarray,
        other: np.ndarray,
        problem: str,
        remedy: str,
    ) -> InvalidGameError:
        return InvalidGameError(
            f"{self._checked.game}: in round {r}, after deals {one.tolist()} and "
            f"{other.tolist()}, player {player} {problem}; {remedy}"
        )


def _to_decision(tree: PublicTree, node: int, player: int) -> list[int] | None:
    """Return the shortest path to a player's decision in the same round, if any."""
    betting = tree.betting
    level: list[tuple[int, list[int]]] = [(node, [])]
    round = betting.round[node]
    while level:
        below: list[tuple[int, list[int]]] = []
        for place, path in level:
            if betting.player[place] == player:
                return path
            below += [
                (child, [*path, int(betting.action[child])])
                for child in betting.children(place).tolist()
                if betting.round[child] == round and betting.player[child] >= 0
            ]
        level = below
    return None
