"""Two players, many matches: in memory, for scripts. `tournament` keeps a folder.

Matches come in deals: in the two matches of a deal chance draws from the same numbers,
and the players swap seats in between.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from spiel_cr.common.checks import check_iterations, check_seed
from spiel_cr.common.memory import Limit
from spiel_cr.common.messages import short_repr
from spiel_cr.common.statistics import mean_and_half_width
from spiel_cr.evaluation.aivat import baseline
from spiel_cr.evaluation.referee import play_match
from spiel_cr.games.opening.game_checks import utility_bounds
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.tree.compiler import Game
from spiel_cr.players.player_specs import (
    MEMORY_LIMIT,
    PlayerLike,
    PolicyLike,
    check_order,
    make_bot,
    prepare,
)


class Slot(NamedTuple):
    """A match of the plan: bots by number, `row` in seat 0 unless swapped."""

    deal: int
    row: int
    column: int
    swapped: bool

    @property
    def seats(self) -> tuple[int, int]:
        """The bots in seats 0 and 1."""
        return (self.column, self.row) if self.swapped else (self.row, self.column)


def generator(seed: int, slot: Slot, *stream: int) -> np.random.Generator:
    """Random numbers of a slot, other ones for each stream."""
    key = (slot.deal, slot.row, slot.column, *stream)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


@dataclasses.dataclass(frozen=True, repr=False)
class Matches:
    """What came of many matches.

    Attributes:
      mean: return of the first player, in the game's units, over both seats.
      half_width: of the 95 % confidence interval around it, over deals; None: one deal.
      returns: float64 [deals, 2], the first player's in each deal, as player 0 and as
        player 1; without luck where that was asked for.
    """

    mean: float
    half_width: float | None
    returns: np.ndarray

    __repr__ = short_repr


def play_matches(
    game: Game,
    players: Sequence[PlayerLike],
    matches: int = 100,
    *,
    seed: int = 0,
    memory_limit: Limit = MEMORY_LIMIT,
    aivat: PolicyLike | None = None,
    progress: bool = False,
) -> Matches:
    """Plays matches between two players, each of them in both seats.

    Bots are made once for each seat, and restarted for each match.

    Args:
      game: OpenSpiel game string, game, or compiled game.
      players: two: strings such as "resolving(iterations=100)", policies, results of
        `solve`, or functions of (player, seed) that make a bot.
      matches: an odd number is rounded up.
      seed: of chance and of all that bots draw.
      memory_limit: refuse players that need the whole of a larger game.
      aivat: take luck out by the values of this policy against itself, see `aivat`;
        exact where the game fits compiled.
      progress: show a progress bar on stderr.

    Raises:
      IllegalMoveError: a bot chose what it may not.
      ValueError: not two players, a bot in the wrong seat, or a bad number.
    """
    check_order(game, players, "play_matches(game, players)")
    if isinstance(players, str) or len(players) != 2:
        count = 1 if isinstance(players, str) else len(players)
        raise ValueError(f"players: {count} given; give two, as ['A', 'B']")
    matches = check_iterations(matches, name="matches")
    check_seed(seed)
    values = None
    if aivat is not None:
        values = baseline(game, aivat, memory_limit=memory_limit)
        game = values.instance
    known = prepare(game, players, memory_limit=memory_limit)
    bots = {}
    for number, player in enumerate(players):
        for seat in range(2):
            own = np.random.SeedSequence(seed, spawn_key=(number, seat))
            bots[number, seat] = make_bot(
                player,
                known,
                seat,
                seed=int(own.generate_state(1)[0] >> 1),
                name=f"players[{number}]",
            )
    returns = np.empty(((matches + 1) // 2, 2))
    for deal in tqdm(range(len(returns)), desc="deals", disable=not progress):
        for swapped in (False, True):
            slot = Slot(deal, 0, 1, swapped)
            match = play_match(
                known,
                [bots[number, seat] for seat, number in enumerate(slot.seats)],
                generator(seed, slot, 2 if swapped else 1),
                chance=generator(seed, slot, 0),
            )
            first = match.returns[0] if values is None else values.estimate(match)
            returns[deal, int(swapped)] = -first if swapped else first
    bounds = utility_bounds(open_game(known).game)
    mean, half_width = mean_and_half_width(returns.mean(axis=1), bounds)
    return Matches(mean, half_width, returns)
