"""AIVAT: luck taken out of matches by values that are fixed before them.

Burch, Schmid, Moravčík, Morrill & Bowling 2018, "AIVAT: A new variance reduction
technique for agent evaluation in imperfect information games". At each move whose
probabilities are known, chance's or a bot's that gives its policy, the value of what
was drawn is taken off and the mean of what might have been is added. That has mean zero
whatever the values are; the better these are, the less is left of the luck.

Left out are the paper's imaginary observations, means over the hands that a known
player might have held: bots are asked in their own match only.
"""

from typing import NamedTuple

import numpy as np

from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.common.memory import Limit
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.tree.compiler import Game
from spiel_cr.games.tree.tree import CompiledGame
from spiel_cr.games.worlds.game import WorldGame
from spiel_cr.judging.one_match import Match
from spiel_cr.judging.targets import lay_out_to_judge, load_target
from spiel_cr.players.given_players import GivenPolicy
from spiel_cr.policies.conversions import history_values

# Seconds for laying a game out.
_PATIENCE = 600.0


class Baseline(NamedTuple):
    """Values of all histories of a game.

    Attributes:
      tree: the compiled game.
      values: float64 [N], player 0's; any numbers keep estimates unbiased.
    """

    tree: CompiledGame
    values: np.ndarray

    def estimate(self, match: Match) -> float:
        """Player 0's return of a match without what luck is known of it."""
        histories, node = self.tree.histories, 0
        total = match.returns[0]
        for action, odds in zip(match.actions, match.odds, strict=True):
            begin, end = np.searchsorted(histories.parent, [node, node + 1])
            legal = histories.action[begin:end].tolist()
            node = begin + legal.index(action)
            if odds is not None:
                shares = [odds.get(each, 0.0) for each in legal]
                mean = np.dot(shares, self.values[begin:end]) / sum(shares)
                total += float(mean - self.values[node])
        return total


def baseline(
    game: Game, policy: GivenPolicy, *, memory_limit: Limit = None
) -> Baseline:
    """Values of a policy that plays itself.

    Args:
      game: OpenSpiel game string, game, or compiled game.
      policy: of both players: an OpenSpiel policy, a result of `solve`, or a string
        such as "cfr+(iterations=100)" or the path of a file.
      memory_limit: refuse to compile larger games.

    Raises:
      GameTooLargeError: the game does not fit.
      ValueError: no policy, or one of another game.
    """
    tree: CompiledGame | WorldGame
    if isinstance(game, CompiledGame):
        tree = game
    else:
        try:
            tree = lay_out_to_judge(
                open_game(game), memory_limit, worlds=False, seconds=_PATIENCE
            )
        except GameTooLargeError as error:
            raise GameTooLargeError(
                f"aivat={policy!r} needs values of all histories: {error}; leave it "
                f"out, or choose a smaller game"
            ) from error
    assert isinstance(tree, CompiledGame)
    try:
        target = load_target(policy, tree, signals=False, memory_limit=memory_limit)
    except (OSError, ValueError) as error:
        raise ValueError(f"aivat={policy!r}: {error}") from error
    return Baseline(tree, history_values(tree, target.strategy()))
