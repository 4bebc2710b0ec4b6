"""Matches between two players, in memory; the command `tournament` keeps a folder.

Matches are played in pairs, called deals: both matches of a deal draw the chance
outcomes from the same random numbers, and the players exchange seats.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from spiel_cr.common.checks import check_iterations, check_seed
from spiel_cr.common.memory import Limit
from spiel_cr.common.messages import progress_bar, short_repr
from spiel_cr.common.statistics import mean_and_half_width
from spiel_cr.evaluation.aivat import baseline
from spiel_cr.evaluation.referee import play_match
from spiel_cr.games.opening.game_checks import payoff_offset, utility_bounds
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.tree.tree_builder import Game
from spiel_cr.players.player_specs import (
    MEMORY_LIMIT,
    PlayerLike,
    PolicyLike,
    check_order,
    make_bot,
    prepare,
)


class Slot(NamedTuple):
    """A planned match between two bots, by number; `row` is player 0 unless swapped."""

    deal: int
    row: int
    column: int
    swapped: bool

    @property
    def seats(self) -> tuple[int, int]:
        """Numbers of the bots that are players 0 and 1."""
        return (self.column, self.row) if self.swapped else (self.row, self.column)


def generator(seed: int, slot: Slot, *stream: int) -> np.random.Generator:
    """Return the random numbers of a match; each stream has its own."""
    key = (slot.deal, slot.row, slot.column, *stream)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


@dataclasses.dataclass(frozen=True, repr=False)
class Matches:
    """Result of many matches, from the perspective of the first of the two players.

    Attributes:
      mean: Mean return of the first player, over both seats, in the game's units.
      half_width: Half of the 95% confidence interval of the mean, over deals; None for
        a single deal.
      returns: Returns of the first player in each deal, as player 0 and as player 1,
        float64 [deals, 2]; after variance reduction, if `aivat` was given.
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
    progress: bool | None = None,
) -> Matches:
    """Play matches between two players, each of them in both seats.

    Bots are made once for each seat, and restarted for each match.

    Args:
      game: OpenSpiel game string, game, or game tree.
      players: The two players: strings such as "resolving(iterations=100)", policies,
        results of `solve`, or functions of (player, seed) that make a bot.
      matches: Number of matches; an odd number is rounded up.
      seed: Seed of chance and of the bots' random choices.
      memory_limit: Largest memory for the game tree, if a player needs it. Solutions of
        sampled algorithms are computed without the tree if it is too large.
      aivat: Policy for variance reduction by its values against itself, see `aivat`.
        The values are exact if the game tree fits into memory.
      progress: Whether to show progress on stderr. If None, after ten seconds if stderr
        is a terminal.

    Raises:
      IllegalMoveError: If a bot chooses an illegal action.
      ValueError: If there are not two players, a bot is in the wrong seat, a number is
        invalid, or a player needs a game tree that exceeds the memory limit.

    Example:
      >>> import spiel_cr
      >>> solved = spiel_cr.solve("kuhn_poker", "cfr+", 100)
      >>> spiel_cr.play_matches("kuhn_poker", (solved, "uniform"), 1000).mean > 0
      True
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
    represented = prepare(game, players, memory_limit=memory_limit)
    bots = {}
    for number, player in enumerate(players):
        for seat in range(2):
            sequence = np.random.SeedSequence(seed, spawn_key=(number, seat))
            bots[number, seat] = make_bot(
                player,
                represented,
                seat,
                seed=int(sequence.generate_state(1)[0] >> 1),
                name=f"players[{number}]",
            )
    returns = np.empty(((matches + 1) // 2, 2))
    for deal in progress_bar(range(len(returns)), desc="deals", progress=progress):
        for swapped in (False, True):
            slot = Slot(deal, 0, 1, swapped)
            match = play_match(
                represented,
                [bots[number, seat] for seat, number in enumerate(slot.seats)],
                generator(seed, slot, 2 if swapped else 1),
                chance=generator(seed, slot, 0),
            )
            first = match.returns[0] if values is None else values.estimate(match)
            returns[deal, int(swapped)] = -first if swapped else first
    bounds = utility_bounds(open_game(represented).game)
    mean, half_width = mean_and_half_width(returns.mean(axis=1), bounds)
    offset = payoff_offset(open_game(represented).game)
    return Matches(mean + offset, half_width, returns + offset)
