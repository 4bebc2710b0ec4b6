"""A spot of hold'em, as poker players describe it, becomes an OpenSpiel game."""

from collections.abc import Sequence

import pyspiel

from spiel_cr.common.checks import check_integer
from spiel_cr.common.plugins import registered

_GAME = "python_poker_spot"
_MOST_CHIPS = 1_000_000


def spot(
    board: str,
    pot: int,
    stack: int,
    *,
    ranges: str | Sequence[str] = ("random", "random"),
    bets: str = "50%,pot,allin",
    first: str = "oop",
) -> pyspiel.Game:
    """A flop, turn or river between two players, as a game that declares its signals.

    Payoffs are net chips, half of the pot being each player's own: who folds at once
    loses half the pot. Two-player zero-sum games are solved, so there is no rake.

    Args:
      board: three, four or five cards, such as "5c9dJs2h".
      pot: chips in the middle.
      stack: chips that each player has behind.
      ranges: of player 0, out of position, and of player 1: "QQ+,AKs,A5s:0.5". Pieces
        are pairs, two ranks (suited: s, offsuit: o), a plus behind them, spans such as
        "JTs-87s", two cards, or "random", and a weight from 0 to 1 behind a colon.
      bets: sizes: "50%" of the pot, "pot", "120c" (chips), "2.5x" (of the bet, for
        raises), "allin", "allin:150%" (up to so much of the pot), "none"; before them,
        where they hold: flop, turn, river, oop, ip, bets, raises, donks. Semicolons
        part clauses, and later ones count: "50%,allin; raises 2.5x; river oop none;
        cap 4; force 15%" (at most four bets and raises on a street; bets that leave at
        most 15 % of the pot behind are all-in).
      first: who acts first on the first street: "oop", or "ip" after oop's check.

    Raises:
      ValueError: an argument cannot be read, or no hands can be dealt; says what to
        write instead.
    """
    check_integer(pot, "pot", 1, _MOST_CHIPS)
    check_integer(stack, "stack", 1, _MOST_CHIPS)
    # The package that declares hold'em registers spots when it is imported.
    registered("spiel_cr.public_tree", "universal_poker")
    both = ranges if isinstance(ranges, str) else ";".join(ranges)
    words = {"board": board, "ranges": both, "bets": bets, "first": first}
    # Commas part the parameters of game strings.
    parameters = {name: " ".join(text.split(",")) for name, text in words.items()}
    return pyspiel.load_game(_GAME, {**parameters, "pot": pot, "stack": stack})
