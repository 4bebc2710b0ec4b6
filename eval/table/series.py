"""Matches in a row between the same two, who swap seats from match to match."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyspiel

from spiel_cr.common.checks import check_seed
from spiel_cr.common.memory import Limit
from spiel_cr.evaluation.referee import Match, Observer, play_match
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.tree.compiler import Game
from spiel_cr.players.player_specs import load_bot, prepare
from spiel_cr.players.player_strings import read_string

HUMAN = "human"


@dataclasses.dataclass(frozen=True)
class Played:
    """A match that is over.

    Attributes:
      number: from 0.
      bots: the strings of who sat in seats 0 and 1.
      match: what happened.
    """

    number: int
    bots: tuple[str, str]
    match: Match


class Series:
    """Matches of two bots, one of which may be a person.

    Attributes:
      instance: the compiled game where a bot needs it, else OpenSpiel's.
      seed: of chance and of all that bots draw.
      played: what is over.
    """

    def __init__(
        self, game: Game, bots: Sequence[str], *, seed: int, memory_limit: Limit
    ) -> None:
        """Build the game tree if a bot needs it; bots are created later.

        Args:
          game: OpenSpiel game string, game, or compiled game (with
            `observations=True`).
          bots: two strings for `load_bot`, one of which may be `HUMAN`; the first one
            is player 0 in the first match.
          seed: of all matches.
          memory_limit: as for `prepare`.

        Raises:
          ValueError: not two bots, two persons, a bad bot, a game too large for it, or
            a bad seed.
        """
        check_bots(bots)
        self._bots = bots[0], bots[1]
        self.seed = check_seed(seed)
        players = [bot for bot in bots if bot != HUMAN]
        self.instance = prepare(game, players, memory_limit=memory_limit)
        self.played: list[Played] = []
        # By who and where: a bot is made for a seat.
        self._made: dict[tuple[int, int], pyspiel.Bot] = {}

    @property
    def game(self) -> pyspiel.Game:
        """OpenSpiel's game."""
        return open_game(self.instance).game

    def order(self, number: int) -> tuple[int, int]:
        """Which of the two bots sit in seats 0 and 1 in a match."""
        return (1, 0) if number % 2 else (0, 1)

    def seats(self, number: int) -> tuple[str, str]:
        """Return the strings of the bots in seats 0 and 1 in a match."""
        first, second = self.order(number)
        return self._bots[first], self._bots[second]

    def bot(self, number: int, seat: int) -> pyspiel.Bot:
        """Return the bot of a seat in a match; the first call makes it."""
        index = self.order(number)[seat]
        if (index, seat) not in self._made:
            words = np.random.SeedSequence(self.seed).generate_state(2)
            self._made[index, seat] = load_bot(
                self.instance, self._bots[index], seat, seed=int(words[seat] >> 1)
            )
        return self._made[index, seat]

    def play(
        self,
        person: Callable[[int], pyspiel.Bot] | None = None,
        observers: Sequence[Observer] = (),
    ) -> Played:
        """Play the next match.

        Args:
          person: makes who answers for `HUMAN`, from the seat.
          observers: see `play_match`.

        Raises:
          IllegalMoveError: a bot chose what it may not.
        """
        number = len(self.played)
        players = []
        for seat, bot in enumerate(self.seats(number)):
            if bot == HUMAN:
                assert person is not None
                players.append(person(seat))
            else:
                players.append(self.bot(number, seat))
        # The first match is that of its seed alone.
        entropy = np.random.SeedSequence([self.seed, number] if number else self.seed)
        match = play_match(
            self.instance, players, np.random.default_rng(entropy), observers=observers
        )
        self.played.append(Played(number, self.seats(number), match))
        return self.played[-1]

    def totals(self) -> tuple[float, float]:
        """What the first and the second bot won in all, in the game's units."""
        totals = [0.0, 0.0]
        for played in self.played:
            for seat, index in enumerate(self.order(played.number)):
                totals[index] += played.match.returns[seat]
        return totals[0], totals[1]

    def report(self) -> dict[str, Any]:
        """Return all that is over, for JSON."""
        return {
            "seed": self.seed,
            "matches": [
                {
                    "bots": list(played.bots),
                    "actions": list(played.match.actions),
                    "returns": list(played.match.returns),
                }
                for played in self.played
            ],
            "totals": list(self.totals()),
        }


def check_bots(bots: Sequence[str]) -> None:
    """Reject bots that cannot play a match, before any game tree is built.

    Raises:
      ValueError: not two bots, two persons, or a bad bot.
    """
    if len(bots) != 2:
        raise ValueError(
            f"--bots={';'.join(bots)!r}: a match needs two bots; write 'A;B'"
        )
    if bots[0] == bots[1] == HUMAN:
        raise ValueError(
            f"--bots={';'.join(bots)!r}: at one terminal only one player can be a "
            f"person, or each would see what the other knows; give a bot a seat"
        )
    for bot in bots:
        if bot != HUMAN:
            read_string(bot, "bot")
