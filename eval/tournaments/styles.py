"""Styles of poker bots: action frequencies by street, loose or tight, passive or not.

Styles are computed from the hands of matches. A street is the part of a hand between
two deals; the first one has number 0. Actions are classified by their names: a call
without a bet counts as a check (see `fixed_policies`).

The measures are those of poker trackers. A hand is played *voluntarily* if the player
calls or raises on the first street; blinds, antes and checks are not voluntary. The
*aggression factor* is bets and raises per call. A player that plays at least half of
its hands is called loose, otherwise tight. A player that raises at least as often as it
calls is called aggressive, otherwise passive. These two limits are choices of this
project: there is no convention for two players.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from spiel_cr.common.json_log import Record
from spiel_cr.common.statistics import ratio_and_half_width
from spiel_cr.games.histories import moves_along
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.tree.tree_builder import Game
from spiel_cr.players.fixed_policies import MEANINGS, PokerRoles

from ..common.files import csv_text

_LOOSE, _AGGRESSIVE = 0.5, 1.0

# Key of hands that share their cards; bots in seats 0 and 1; OpenSpiel's actions from
# the beginning of the hand.
Hand = tuple[Hashable, tuple[str, str], Iterable[int]]


class Style(NamedTuple):
    """Playing style of a bot.

    Attributes:
      bot: Bot string.
      hands: Number of hands.
      streets: Number of actions of each kind in the order of `MEANINGS`, by street.
      voluntary: Share of hands that the bot plays voluntarily.
      voluntary_half_width: Half width of its 95% confidence interval, over deals; None
        for a single deal.
      aggression: Bets and raises per call; None if the bot never calls.
      aggression_half_width: Half width of its interval; also None if the bot never
        calls.
    """

    bot: str
    hands: int
    streets: list[list[int]]
    voluntary: float
    voluntary_half_width: float | None
    aggression: float | None
    aggression_half_width: float | None

    @property
    def text(self) -> str:
        """The style in two words, such as "tight, aggressive"."""
        loose = "loose" if self.voluntary >= _LOOSE else "tight"
        # A bot that never calls raises more often.
        factor = np.inf if self.aggression is None else self.aggression
        return f"{loose}, {'aggressive' if factor >= _AGGRESSIVE else 'passive'}"

    def shares(self, street: int) -> list[float]:
        """Return the frequency of each action among the decisions on a street."""
        total = sum(self.streets[street])
        return [count / total if total else 0.0 for count in self.streets[street]]


def read_hands(records: Mapping[Any, Record]) -> Iterator[Hand]:
    """Yield every hand of a tournament; a match is one hand, a session has several.

    Args:
      records: Lines of `matches.jsonl` or of `sessions.jsonl`.
    """
    for record in records.values():
        deal = record["deal"], record["row"], record["column"]
        first, second = record["players"]
        hands = record["hands"] if "hands" in record else [record["actions"]]
        for hand, actions in enumerate(hands):
            yield deal, (second, first) if hand % 2 else (first, second), actions


def styles_of(game: Game, hands: Iterable[Hand]) -> list[Style]:
    """Return the style of each bot, in the order of first appearance.

    Args:
      game: OpenSpiel game string, game, or game tree; of poker.
      hands: Hands of the matches; see `read_hands`.

    Raises:
      NotPokerError: If the game is not poker.
      pyspiel.SpielError: If OpenSpiel does not know the game.
    """
    loaded = open_game(game).game
    roles = PokerRoles(loaded)
    # For each bot and deal: number of hands, voluntary ones, and actions of each kind.
    deals: dict[str, dict[Hashable, Counter[str]]] = {}
    streets: dict[str, list[list[int]]] = defaultdict(list)
    for deal, bots, actions in hands:
        per_bot = [
            deals.setdefault(bot, {}).setdefault(deal, Counter())
            for bot in dict.fromkeys(bots)
        ]
        by_seat = per_bot if len(per_bot) == 2 else per_bot * 2
        for counts in by_seat:
            counts["hands"] += 1
        street, dealt, joined = -1, False, set()
        for state, action in moves_along(loaded, actions):
            player = state.current_player()
            if player < 0:
                dealt = True
            else:
                street, dealt = street + dealt, False
                meaning = roles.meaning(state, action)
                rows = streets[bots[player]]
                while len(rows) <= street:
                    rows.append([0] * len(MEANINGS))
                rows[street][MEANINGS.index(meaning)] += 1
                by_seat[player][meaning] += 1
                if street == 0 and meaning in ("call", "raise"):
                    joined.add(player)
        for player in joined:
            by_seat[player]["voluntary"] += 1
    return [
        _style(bot, list(per_bot.values()), streets[bot])
        for bot, per_bot in deals.items()
    ]


def _style(bot: str, deals: list[Counter[str]], streets: list[list[int]]) -> Style:
    counted = ("hands", "voluntary", "raise", "call")
    table = np.array([[deal[name] for name in counted] for deal in deals], float)
    hands, voluntary, raises, calls = table.T
    share, half = ratio_and_half_width(voluntary, hands)
    factor: tuple[float | None, float | None] = (None, None)
    if calls.sum():
        factor = ratio_and_half_width(raises, calls)
    return Style(bot, int(hands.sum()), streets, share, half, *factor)


# Attributes of a style over all streets.
_TOTALS = (
    "hands voluntary voluntary_half_width aggression aggression_half_width".split()
)


def table_of_styles(styles: Iterable[Style]) -> str:
    """Return CSV with one line for each bot and street."""
    rows: list[list[object]] = []
    for style in styles:
        totals = [getattr(style, name) for name in _TOTALS]
        for n, counts in enumerate(style.streets):
            rows.append([style.bot, n, *counts, *totals, style.text])
    return csv_text(["bot", "street", *MEANINGS, *_TOTALS, "style"], rows)


def lines_of_styles(styles: Iterable[Style]) -> list[str]:
    """Return lines of text: frequencies by street, then the measures."""
    lines = []
    for style in styles:
        lines.append(f"{style.bot}: {style.text}, {style.hands:,} hands")
        for street in range(len(style.streets)):
            shares = (
                f"{meaning} {share:6.1%}"
                for meaning, share in zip(MEANINGS, style.shares(street), strict=True)
            )
            count = sum(style.streets[street])
            lines.append(f"  street {street}  {'  '.join(shares)}  of {count:,}")
        played = _interval(style.voluntary, style.voluntary_half_width)
        factor = _interval(style.aggression, style.aggression_half_width)
        lines.append(f"  plays {played} of its hands; raises per call {factor}")
    return lines


def _interval(value: float | None, half_width: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.3f} ± {'?' if half_width is None else f'{half_width:.3f}'}"
