"""How strong a hand is before all cards are dealt: against random hands, by samples."""

import numpy as np

from game_defs.bundled.holdem import strengths

# Boards that a hand is completed by, and hands it meets on each. With no card to come
# there is one board, and so many hands.
_BOARDS, _HANDS, _HANDS_AT_LAST = 150, 8, 600
# States taken at once, so that the draws of all cards of all boards fit into a cache.
_CHUNK = 128


def equities(
    own: np.ndarray,
    board: np.ndarray,
    to_come: np.ndarray,
    deck: np.ndarray,
    hole: int,
    random: np.random.Generator,
) -> np.ndarray:
    """The equity of hands against a random one, and how much it varies.

      The equity is the chance to win a showdown, plus half of that to tie, if the other
      hand is any that is left, all alike. The cards to come are drawn `_BOARDS` times,
    and draws of the same card twice are left out.

      Args:
        own: int64 [n], the hands as sets of `strengths.card_bits`.
        board: int64 [n], the public cards as such sets.
        to_come: int64 [n], how many public cards are still to be dealt.
        deck: int64 [cards], the bit of each card.
        hole: cards of a hand, one or two.
        random: consumed.

      Returns:
        float64 [n, 2]: the mean equity, and the variance of the equity over the cards
      to come; the variance is a little too low, and may be below 0.
    """
    found = np.zeros((len(own), 2))
    for cards in np.unique(to_come).tolist():
        (places,) = np.nonzero(to_come == cards)
        for begin in range(0, len(places), _CHUNK):
            some = places[begin : begin + _CHUNK]
            given = own[some], board[some], int(cards)
            found[some] = _some(*given, deck, hole, random)
    return found


def _some(
    own: np.ndarray,
    board: np.ndarray,
    to_come: int,
    deck: np.ndarray,
    hole: int,
    random: np.random.Generator,
) -> np.ndarray:
    """`equities` of states with equally many cards to come."""
    boards, hands = (_BOARDS, _HANDS) if to_come else (1, _HANDS_AT_LAST)
    # Any cards, of which those are kept that are all different.
    drawn = deck[random.integers(len(deck), size=(len(own), boards, to_come))]
    full = np.bitwise_or.reduce(drawn, axis=2) | board[:, None]
    mine = own[:, None] | full
    held = np.bitwise_count(own | board) + to_come
    there = np.bitwise_count(mine) == held[:, None]
    others = deck[random.integers(len(deck), size=(*full.shape, hands, hole))]
    other = np.bitwise_or.reduce(others, axis=3)
    free = (other & mine[..., None] == 0) & (np.bitwise_count(other) == hole)
    free &= there[..., None]
    strong = strengths.strengths(strengths.split(mine))[..., None]
    met = strengths.strengths(strengths.split(other | full[..., None]))
    won = np.where(free, (1 + np.sign(strong - met)) / 2, 0.0)
    # Of each board, two estimates from different hands: their product is unbiased.
    halves = [
        won[..., k::2].sum(axis=2) / np.maximum(free[..., k::2].sum(axis=2), 1)
        for k in (0, 1)
    ]
    # Where a half has met no hand it says nothing.
    said = free[..., ::2].any(axis=2) & free[..., 1::2].any(axis=2)
    count = np.maximum(said.sum(axis=1), 1)
    mean = np.where(said, sum(halves) / 2, 0.0).sum(axis=1) / count
    square = np.where(said, halves[0] * halves[1], 0.0).sum(axis=1) / count
    spread = np.zeros(len(own)) if not to_come else square - mean**2
    return np.stack([mean, spread], axis=1)
