"""Best responses in Flop Hold'em by a program that shares no code with spiel_cr.

Opponents ignore their cards, so all their hands stay equally likely, and the value of a
hand on a flop is a multiple of its margin: the share of hands that it beats minus the
share of hands that beat it.
"""

import itertools
from collections.abc import Callable

import numpy as np

BLINDS, RAISE, MOST_RAISES = (100.0, 50.0), 100.0, 3

# Probabilities of the legal actions ("fold" if there is a bet, "call", "raise").
Opponent = Callable[[list[str]], dict[str, float]]


def uniform(legal: list[str]) -> dict[str, float]:
    return dict.fromkeys(legal, 1 / len(legal))


def always_call(legal: list[str]) -> dict[str, float]:
    return {action: float(action == "call") for action in legal}


def strength(ranks: np.ndarray, suits: np.ndarray) -> np.ndarray:
    """Return the order of five-card hands [n, 5] as integers [n]."""
    counts = (ranks[:, :, None] == np.arange(13)).sum(axis=1)
    order = np.argsort(-(counts * 13 + np.arange(13)), axis=1)[:, :5]
    sizes = np.take_along_axis(counts, order, axis=1)
    present = np.sort(ranks, axis=1)
    distinct = sizes[:, 0] == 1
    straight = distinct & (present[:, 4] - present[:, 0] == 4)
    wheel = distinct & (present == [0, 1, 2, 3, 12]).all(axis=1)
    flush = (suits == suits[:, :1]).all(axis=1)
    first, second = sizes[:, 0], sizes[:, 1]
    kind = np.select(
        [
            *((straight | wheel) & flush, first == 4, (first == 3) & (second == 2)),
            *(flush, straight | wheel, first == 3, (first == 2) & (second == 2)),
            first == 2,
        ],
        [8, 7, 6, 5, 4, 3, 2, 1],
        0,
    )
    high = (np.where(sizes > 0, order, 0) * 13 ** np.arange(4, -1, -1)).sum(axis=1)
    return kind * 13**5 + np.where(wheel, 3 * 13**4, high)


class FlopHoldem:
    """Margins of all hands on all flops, up to permutations of suits.

    Attributes:
      margin: Margin of each hand on each flop that represents others, [F, H]; 0 if they
        share a card.
      weight: Number of flops that each of them represents, [F, 1]; 0 where a hand
        shares a card with the flop.
      group: Class of each hand before the flop, [H]: its ranks, and whether it is
        suited.
    """

    def __init__(self, num_ranks: int, num_suits: int) -> None:
        cards = np.arange(num_ranks * num_suits)
        rank, suit = cards // num_suits, cards % num_suits
        hands = np.array(list(itertools.combinations(cards, 2)))
        apart = (hands[:, None, :, None] != hands[None, :, None, :]).all(axis=(2, 3))
        flops: dict[tuple[int, ...], int] = {}
        for flop in itertools.combinations(cards.tolist(), 3):
            images = (
                tuple(
                    sorted(c // num_suits * num_suits + p[c % num_suits] for c in flop)
                )
                for p in itertools.permutations(range(num_suits))
            )
            least = min(images)
            flops[least] = flops.get(least, 0) + 1
        margin, weight = [], []
        for flop, count in flops.items():
            free = ~np.isin(hands, flop).any(axis=1)
            five = np.concatenate([hands[free], np.tile(flop, (free.sum(), 1))], axis=1)
            order = strength(rank[five], suit[five])
            signs = np.sign(order[:, None] - order[None])
            meets = apart[np.ix_(free, free)]
            row = np.zeros(len(hands))
            row[free] = (signs * meets).sum(axis=1) / meets.sum(axis=1)
            margin.append(row)
            weight.append(count * free)
        self.margin, self.weight = np.array(margin), np.array(weight, float)
        high, low = rank[hands[:, 1]], rank[hands[:, 0]]
        suited = suit[hands[:, 0]] == suit[hands[:, 1]]
        groups = np.stack([high, low, suited], axis=1)
        _, self.group = np.unique(groups, axis=0, return_inverse=True)
        self.group = self.group.reshape(-1)
        self.leaves = 0

    def best_response_value(self, player: int, opponent: Opponent) -> float:
        """Return the best-response value of a player in chips."""
        self.leaves = 0
        values = self._value(player, opponent, 0, 1, list(BLINDS), 0, 0)
        return float(values.mean())

    def _value(
        self,
        player: int,
        opponent: Opponent,
        round: int,
        actor: int,
        paid: list[float],
        raises: int,
        moves: int,
    ) -> np.ndarray:
        """Return the player's values of a node: [H] before the flop, then [F, H]."""
        shape = self.margin.shape[1 - round :] if not round else self.margin.shape
        owed = max(paid) - paid[actor]
        legal = ["fold"] * (owed > 0) + ["call"] + ["raise"] * (raises < MOST_RAISES)
        values = {}
        for action in legal:
            after = list(paid)
            if action == "fold":
                self.leaves += 1
                won = paid[1 - player] if actor != player else -paid[player]
                values[action] = np.full(shape, won)
                continue
            after[actor] = max(paid) + RAISE * (action == "raise")
            ends = action == "call" and moves > 0
            if not ends:
                more = raises + (action == "raise")
                values[action] = self._value(
                    player, opponent, round, 1 - actor, after, more, moves + 1
                )
            elif round:
                self.leaves += 1
                values[action] = after[0] * self.margin
            else:
                flop = self._value(player, opponent, 1, 0, after, 0, 0)
                values[action] = self._before_flop(flop)
        if actor != player:
            chances = opponent(legal)
            return sum(chances[a] * values[a] for a in legal)
        return np.max([values[a] for a in legal], axis=0)

    def _before_flop(self, values: np.ndarray) -> np.ndarray:
        """Return the mean over flops of values [F, H], for each hand."""
        sums = np.bincount(self.group, (values * self.weight).sum(axis=0))
        return (sums / np.bincount(self.group, self.weight.sum(axis=0)))[self.group]
