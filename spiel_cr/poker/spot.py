"""OpenSpiel games of hold'em spots, from a description in poker terms."""

from collections.abc import Sequence

import pyspiel

from spiel_cr.common.checks import check_integer
from spiel_cr.common.plugins import registered

NAME = "python_poker_spot"
_MOST_CHIPS = 1_000_000


def spot(
    board: str,
    pot: int,
    stack: int | Sequence[int],
    *,
    ranges: str | Sequence[str] = ("random", "random"),
    bets: str = "50%,pot,allin",
    first: str = "oop",
    rake: str = "",
) -> pyspiel.Game:
    """Return a flop, turn or river between two players as an OpenSpiel game.

    The game supports the public-tree form. Payoffs are net chips, and half of the pot
    belongs to each player at the start: a player that folds immediately loses half the
    pot.

    Args:
      board: Three, four or five cards, such as "5c9dJs2h".
      pot: Number of chips in the middle.
      stack: Number of chips that each player has behind. If you give two numbers, both
        players play the smaller one.
      ranges: Ranges of player 0, which is out of position, and of player 1, such as
        "QQ+,AKs,A5s:0.5". A part is a pair, two ranks (suited: s, offsuit: o), either
        of these with a plus, a span such as "JTs-87s", two cards, or "random". An
        optional weight from 0 to 1 follows a colon, or one in percent surrounds several
        parts: "[50]A5s,A4s[/50]".
      bets: Bet sizes: "50%" of the pot, "pot", "120c" (chips), "2.5x" (of the bet, for
        raises), "allin", "allin:150%" (at most this share of the pot), "none". Words
        before the sizes restrict them: flop, turn, river, oop, ip, bets, raises, donks.
        Semicolons separate clauses, and the last clause that applies takes precedence:
        "50%,allin; raises 2.5x; river oop none; cap 4; force 15%" (at most four bets
        and raises on a street; bets that leave at most 15% of the pot behind become
        all-in).
      first: Player that acts first on the first street: "oop", or "ip" after oop's
        check.
      rake: Share of the pot and cap in chips, such as "5%,3", which the winner pays at
        showdowns and after folds; empty: no rake. With a rake the game is not zero-sum:
        `spiel_cr.solve` needs a full-width CFR algorithm, which minimises regret, and
        `Result.values` and `Result.regrets` describe the solution.

    Raises:
      ValueError: If an argument cannot be parsed, or no hands can be dealt; the message
        contains a remedy.
    """
    check_integer(pot, "pot", 1, _MOST_CHIPS)
    stacks = list(stack) if isinstance(stack, Sequence) else [stack]
    for chips in stacks:
        check_integer(chips, "stack", 1, _MOST_CHIPS)
    if len(stacks) not in (1, 2):
        raise ValueError(f"stack={stack!r}: give one number, or one for each player")
    # Importing the package that declares hold'em registers the game of spots.
    registered("spiel_cr.public_tree", "universal_poker")
    both = ranges if isinstance(ranges, str) else ";".join(ranges)
    words = {"board": board, "ranges": both, "bets": bets, "first": first}
    if rake:
        words["rake"] = rake
    # Commas separate the parameters of game strings.
    parameters = {name: " ".join(text.split(",")) for name, text in words.items()}
    return pyspiel.load_game(NAME, {**parameters, "pot": pot, "stack": min(stacks)})
