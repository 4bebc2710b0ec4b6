"""Round robins of sessions: several hands of poker, each player with a stack of chips.

A session is played hand by hand, and seats are swapped in between. Both players start
with the same stack. The payoff of a hand is paid from the loser's stack to the
winner's, but at most the smaller of both stacks. The session ends when one player has
no chips left, or after the last round. The player with more chips wins it.

Stacks do not change the game: blinds and bets are those of the game, also for a player
with few chips left. Sessions follow a thesis on deep CFR in limit hold'em, as far as it
describes them.

The unit of intervals is a *deal*: two sessions with the same cards, hand by hand, in
which the players have swapped seats. Every session is written to `sessions.jsonl` as
soon as it is over, so that an interrupted tournament can be resumed.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyspiel

from spiel_cr.common import atomic
from spiel_cr.common import json_records as checks
from spiel_cr.common.checks import check_iterations, check_number
from spiel_cr.common.json_log import Record
from spiel_cr.common.parameters import parse, table_of
from spiel_cr.common.statistics import mean_and_half_width, ratio_and_half_width
from spiel_cr.evaluation.aivat import Baseline, baseline
from spiel_cr.evaluation.matches import Slot, generator
from spiel_cr.evaluation.referee import play_match
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.tree.tree_builder import Game
from spiel_cr.players.fixed_policies import NotPokerError, PokerRoles

from . import round_robin
from .round_robin import DEFAULTS, Instance, Records, RoundRobinConfig, Tables

_Number = float | None


@dataclasses.dataclass(frozen=True)
class SessionConfig:
    """Length of a session.

    Attributes:
      stack: Chips of each player at the start, in the game's units.
      rounds: Maximum number of hands.
    """

    stack: float
    rounds: int

    def __post_init__(self) -> None:
        check_number(self.stack, "stack", "(0, inf)")
        check_iterations(self.rounds, name="rounds")


def read_session(text: str) -> SessionConfig:
    """Return a session from a text such as "stack=80,rounds=10".

    Raises:
      ValueError: If the text has another form, or a value is invalid.
    """
    example = "write, for instance, stack=80,rounds=10"
    try:
        parsed = parse(f"session({text})", "session")._replace(text=text)
    except ValueError:
        parsed = None
    if parsed is None or "(" in text:
        raise ValueError(f"session={text!r}: cannot be parsed; {example}")
    settings = parsed.convert(table_of(SessionConfig))
    if missing := [name for name in ("stack", "rounds") if name not in settings]:
        missed = " and ".join(missing)
        raise ValueError(f"session={text!r}: {missed} must be given; {example}")
    return SessionConfig(**settings)


class Sessions(NamedTuple):
    """Results of sessions: [k, k] tables of each row's bot against each column's.

    Attributes:
      bots: Bot strings.
      win_share: Share of sessions that the row wins, with draws counted half; None on
        the diagonal, as in all tables.
      win_share_half_width: Half width of its 95% confidence interval; None after a
        single deal, like all half widths.
      chips: Chips that the row wins per hand, as paid, in the game's units.
      chips_half_width: Half width of the interval of `chips`.
      sessions: Number of sessions.
      wins: Number of sessions that the row wins.
      draws: Number of sessions after which both players have equally many chips.
      hands: Number of hands.
      plain_chips: Chips per hand without variance reduction; None if `chips` has none.
      plain_chips_half_width: Half width of the interval of `plain_chips`.
    """

    bots: tuple[str, ...]
    win_share: list[list[_Number]]
    win_share_half_width: list[list[_Number]]
    chips: list[list[_Number]]
    chips_half_width: list[list[_Number]]
    sessions: list[list[int]]
    wins: list[list[int]]
    draws: list[list[int]]
    hands: list[list[int]]
    plain_chips: list[list[_Number]] | None = None
    plain_chips_half_width: list[list[_Number]] | None = None


def check_chips(game: Game, option: str = "session") -> None:
    """Raise ValueError for a game whose utilities are not chips.

    Args:
      game: OpenSpiel game string, game, or game tree.
      option: Option that needs chips, for the error.

    Raises:
      ValueError: If the game is not poker.
      pyspiel.SpielError: If OpenSpiel does not know the game.
    """
    try:
        PokerRoles(open_game(game).game)
    except NotPokerError as error:
        raise ValueError(
            f"{option}: utilities are chips only in poker, and {error}; omit "
            f"{option}, or choose a poker game"
        ) from error


def play_sessions(
    game: Game,
    bots: Sequence[str],
    sessions: int,
    session: SessionConfig,
    out: atomic.Path,
    config: RoundRobinConfig = DEFAULTS,
    *,
    aivat: str | None = None,
) -> Sessions:
    """Play the sessions that are not in the folder, and write the tables.

    Bots are created once for each seat, and restarted for each hand.

    Args:
      game: OpenSpiel game string, game, or game tree; of poker.
      bots: Two or more strings for `load_bot`.
      sessions: Number of sessions of each pair of bots; an odd number is rounded up. A
        later call may raise it.
      session: Length of a session.
      out: Folder of `settings.json`, `sessions.jsonl`, `sessions.csv` and
        `summary.json`.
      config: Seed, memory limit and progress bars.
      aivat: Policy for variance reduction of chips by its values against itself, see
        `spiel_cr.evaluation.aivat`. The winner of a session is not adjusted.

    Raises:
      OSError: If a session or a table cannot be written. Earlier ones are kept.
      ValueError: If the game is not poker or too large for a bot, an argument is
        invalid, the folder belongs to another tournament, or a bot chose an illegal
        action.
      pyspiel.SpielError: If OpenSpiel does not know the game.
    """
    check_chips(game)
    kind = _Sessions(tuple(bots), session, config.seed)
    if aivat is not None:
        kind.values = baseline(game, aivat, memory_limit=config.memory_limit)
        kind.settings, game = kind.settings | {"aivat": aivat}, kind.values.instance
    return round_robin.run_round_robin(game, bots, sessions, out, kind, config)


_LINE: dict[str, checks.Test] = {
    "hands": checks.is_list(checks.is_list(checks.is_count)),
    "returns": checks.is_list(checks.is_number),
    "paid": checks.is_list(checks.is_number),
    "stacks": checks.is_list(checks.is_duration, 2),
    "seconds": checks.is_list(checks.is_duration, 2),
}


class _Sessions:
    """Sessions as a kind of round robin."""

    unit, lines, table = "session", "sessions", "sessions.csv"
    values: Baseline | None = None

    def __init__(self, bots: tuple[str, ...], config: SessionConfig, seed: int) -> None:
        self._bots, self._config, self._seed = bots, config, seed
        self.settings: Record = {"session": dataclasses.asdict(config)}

    def check(self, record: Record) -> None:
        checks.check_fields(record, _LINE)
        count = len(record["hands"])
        if not 1 <= count <= self._config.rounds:
            raise ValueError(f"is wrong: it has {count} hands of {self._config.rounds}")
        if not count == len(record["returns"]) == len(record["paid"]):
            raise ValueError("is wrong: hands, returns and paid have different lengths")
        if self.values is not None:
            checks.check_fields(
                record, {"aivat": checks.is_list(checks.is_number, count)}
            )

    def play(
        self, instance: Instance, players: Sequence[Sequence[pyspiel.Bot]], slot: Slot
    ) -> Record:
        stacks, seconds = [self._config.stack] * 2, [0.0, 0.0]
        hands: list[tuple[int, ...]] = []
        returns: list[float] = []
        paid: list[float] = []
        adjusted: list[float] = []
        while len(hands) < self._config.rounds and min(stacks) > 0:
            hand = len(hands)
            # Seat 0 belongs to player 0 of the session, then to player 1, and so on.
            order = (1, 0) if hand % 2 else (0, 1)
            try:
                match = play_match(
                    instance,
                    [players[player][seat] for seat, player in enumerate(order)],
                    generator(self._seed, slot, 2 if slot.swapped else 1, hand),
                    chance=generator(self._seed, slot, 0, hand),
                )
            except ValueError as error:
                raise ValueError(f"hand {hand}: {error}") from error
            for seat, player in enumerate(order):
                seconds[player] += sum(match.seconds[seat])
            payoff = match.returns[order.index(0)]
            most = min(stacks)
            chips = float(np.clip(payoff, -most, most))
            if self.values is not None:
                luck = self.values.luck(match, most)
                adjusted.append(chips + luck if hand % 2 else chips - luck)
            stacks = [stacks[0] + chips, stacks[1] - chips]
            hands.append(match.actions)
            returns.append(payoff)
            paid.append(chips)
        return {
            **({} if self.values is None else {"aivat": adjusted}),
            "hands": hands,
            "returns": returns,
            "paid": paid,
            "stacks": stacks,
            "seconds": [round(s, 7) for s in seconds],
        }

    def pair(self, records: Records) -> dict[str, tuple[_Number, _Number]]:
        # For each deal: sessions won, of two, with draws counted half; chips; hands.
        points, chips, plain, hands = np.zeros((4, len(records) // 2))
        name = "paid" if self.values is None else "aivat"
        wins = draws = 0
        for slot, record in records.items():
            player = int(slot.swapped)
            ahead = record["stacks"][player] - record["stacks"][1 - player]
            wins += ahead > 0
            draws += ahead == 0
            points[slot.deal] += (1 + np.sign(ahead)) / 2
            chips[slot.deal] += (-1 if player else 1) * sum(record[name])
            plain[slot.deal] += (-1 if player else 1) * sum(record["paid"])
            hands[slot.deal] += len(record["hands"])
        share, share_half = mean_and_half_width(points / 2, (0.0, 1.0))
        per_hand, chips_half = ratio_and_half_width(chips, hands)
        lucky, lucky_half = ratio_and_half_width(plain, hands)
        with_luck = {
            "plain_chips": (lucky, 0.0 - lucky),
            "plain_chips_half_width": (lucky_half, lucky_half),
        }
        count, total = len(records), int(hands.sum())
        return {
            "win_share": (share, 1 - share),
            "win_share_half_width": (share_half, share_half),
            "chips": (per_hand, 0.0 - per_hand),
            "chips_half_width": (chips_half, chips_half),
            "sessions": (count, count),
            "wins": (wins, count - wins - draws),
            "draws": (draws, draws),
            "hands": (total, total),
            **({} if self.values is None else with_luck),
        }

    def result(self, tables: Tables, records: Records) -> tuple[Sessions, Record]:
        sessions = Sessions(self._bots, **tables)
        return sessions, sessions._asdict()
