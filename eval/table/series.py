"""Series of matches between two bots, which swap seats after each match."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyspiel

from spiel_cr.common.checks import check_seed
from spiel_cr.common.memory import Limit
from spiel_cr.evaluation.referee import Match, Observer, play_match
from spiel_cr.games.opening.game_checks import payoff_offset
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.tree.tree_builder import Game
from spiel_cr.players.player_specs import load_bot, prepare
from spiel_cr.players.player_strings import read_string

HUMAN = "human"


@dataclasses.dataclass(frozen=True)
class FinishedMatch:
    """A match that is over.

    Attributes:
      number: Number of the match, from 0.
      bots: Bot strings of seats 0 and 1.
      match: Actions of the match, and its returns as a zero-sum game.
      returns: Payoffs of both players, in the game's own units.
    """

    number: int
    bots: tuple[str, str]
    match: Match
    returns: tuple[float, float]


class MatchSeries:
    """Series of matches between two bots, one of which may be a person.

    Attributes:
      instance: Game tree if a bot needs it; otherwise OpenSpiel's game.
      seed: Seed for chance and for all random choices of the bots.
      played: Matches that are over.
    """

    def __init__(
        self, game: Game, bots: Sequence[str], *, seed: int, memory_limit: Limit
    ) -> None:
        """Build the game tree if a bot needs it; bots are created later.

        Args:
          game: OpenSpiel game string, game, or game tree (with `observations=True`).
          bots: Two strings for `load_bot`, one of which may be `HUMAN`. The first one
            is player 0 in the first match.
          seed: Seed of all matches.
          memory_limit: Memory limit of the game tree, see `prepare`.

        Raises:
          ValueError: If there are not two bots, both are persons, a bot string is
            invalid, the game is too large for a bot, or the seed is invalid.
        """
        check_bots(bots)
        self._bots = bots[0], bots[1]
        self.seed = check_seed(seed)
        players = [bot for bot in bots if bot != HUMAN]
        self.instance = prepare(game, players, memory_limit=memory_limit)
        self.played: list[FinishedMatch] = []
        # Bots by index and seat, because a bot is created for a seat.
        self._made: dict[tuple[int, int], pyspiel.Bot] = {}

    @property
    def game(self) -> pyspiel.Game:
        """OpenSpiel's game."""
        return open_game(self.instance).game

    def order(self, number: int) -> tuple[int, int]:
        """Return the indices of the bots in seats 0 and 1 in a match."""
        return (1, 0) if number % 2 else (0, 1)

    def seats(self, number: int) -> tuple[str, str]:
        """Return the strings of the bots in seats 0 and 1 in a match."""
        first, second = self.order(number)
        return self._bots[first], self._bots[second]

    def bot(self, number: int, seat: int) -> pyspiel.Bot:
        """Return the bot of a seat in a match; the first call creates it."""
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
    ) -> FinishedMatch:
        """Play the next match.

        Args:
          person: Function that returns the bot of the person, from the seat.
          observers: Observers of the moves, see `play_match`.

        Raises:
          IllegalMoveError: If a bot chooses an illegal move.
        """
        number = len(self.played)
        players = [
            person(seat) if person and bot == HUMAN else self.bot(number, seat)
            for seat, bot in enumerate(self.seats(number))
        ]
        # The first match depends on the seed alone.
        entropy = np.random.SeedSequence([self.seed, number] if number else self.seed)
        match = play_match(
            self.instance, players, np.random.default_rng(entropy), observers=observers
        )
        offset = payoff_offset(self.game)
        returns = match.returns[0] + offset, match.returns[1] + offset
        self.played.append(FinishedMatch(number, self.seats(number), match, returns))
        return self.played[-1]

    def totals(self) -> tuple[float, float]:
        """Return the total winnings of both bots, in the game's units."""
        totals = [0.0, 0.0]
        for played in self.played:
            for seat, index in enumerate(self.order(played.number)):
                totals[index] += played.returns[seat]
        return totals[0], totals[1]

    def report(self) -> dict[str, Any]:
        """Return all matches that are over, as a JSON-serialisable dict."""
        return {
            "seed": self.seed,
            "matches": [
                {
                    "bots": list(played.bots),
                    "actions": list(played.match.actions),
                    "returns": list(played.returns),
                }
                for played in self.played
            ],
            "totals": list(self.totals()),
        }


def check_bots(bots: Sequence[str]) -> None:
    """Reject bots that cannot play a match, before any game tree is built.

    Raises:
      ValueError: If there are not two bots, both are persons, or a bot string is
        invalid.
    """
    if len(bots) != 2:
        raise ValueError(
            f"--bots={';'.join(bots)!r}: a match needs two bots; write 'A;B'"
        )
    if bots[0] == bots[1] == HUMAN:
        raise ValueError(
            f"--bots={';'.join(bots)!r}: only one player can be human, because two "
            f"at one terminal would see each other's cards; make the other a bot"
        )
    for bot in bots:
        if bot != HUMAN:
            read_string(bot, "bot")
