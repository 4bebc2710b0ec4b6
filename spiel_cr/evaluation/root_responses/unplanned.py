"""How a response moves in matches where neither its table nor a habit says."""

import numpy as np

from spiel_cr.common.draws import choose
from spiel_cr.evaluation.root_responses.setting import Setting
from spiel_cr.games.simulation.simulator import Positions


class Unplanned:
    """Moves as the setting's own player does; or at random by actions that were not
    taken in the match, as long as there are any: who shoots at a board that way wins
    more than who repeats itself.

    Attributes:
      again: an action that was taken was legal once more, in a match that is varied.
    """

    def __init__(self, setting: Setting, varied: np.ndarray) -> None:
        """No move was made.

        Args:
          setting: of the matches.
          varied: bool [n], matches in which actions are not repeated.
        """
        self._own, self._varied, self.again = setting.own, varied, False
        # Where some match is varied; games may have many actions.
        rows = len(varied) if varied.any() else 0
        self._taken = np.zeros((rows, setting.source.max_actions), bool)

    def fill(
        self,
        positions: Positions,
        there: np.ndarray,
        games: np.ndarray,
        chosen: np.ndarray,
        random: np.random.Generator,
    ) -> None:
        """Moves where nothing is chosen, and remembers all moves.

        Args:
          positions: of all matches.
          there: int64 [m], places of those where the responder acts.
          games: int64 [m], matches to which these belong.
          chosen: int64 [m], places among the legal actions; -1, nothing, is replaced.
          random: consumed.
        """
        some = np.flatnonzero(self._varied[games])
        free = np.flatnonzero((chosen < 0) & ~self._varied[games])
        if len(free):
            chosen[free] = self._own.draw(positions, there[free], random)
        if len(some):
            legal = _legal(positions, there[some], self._taken.shape[1])
            new = legal & ~self._taken[games[some]]
            self.again |= bool((new != legal).any())
            odds = np.where(new.any(axis=1, keepdims=True), new, legal)
            action = choose(odds / odds.sum(1, keepdims=True), random.random(len(some)))
            rank = legal.cumsum(axis=1) - 1
            drawn = rank[np.arange(len(some)), action]
            chosen[some] = np.where(chosen[some] < 0, drawn, chosen[some])
            self._taken[games[some]] |= legal & (rank == chosen[some, None])


def _legal(positions: Positions, there: np.ndarray, width: int) -> np.ndarray:
    """bool [m, width], legal actions of some positions, by rules or states."""
    states = positions.states[there]
    if not isinstance(states, np.ndarray):
        return np.asarray(states.legal[:, :width])
    legal = np.zeros((len(states), width), bool)
    for row, decision in zip(legal, states, strict=True):
        row[decision.legal] = True
    return legal
