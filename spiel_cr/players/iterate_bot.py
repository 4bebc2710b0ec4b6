"""A player who draws one of a bank's iterates per match (Steinberger 2019)."""

import pyspiel

from spiel_cr.policies.bot_base import PolicyPlayer
from spiel_cr.solvers.deep.network_policy import DeepPolicy


class IterateBot(PolicyPlayer):
    """Plays one iterate of a `DeepPolicy` per match, drawn by its weight.

    Over many matches it plays what the policy's average strategy does, and asks one
    network per decision.

    Attributes:
      policy: of both players' iterates.
      iterate: the one of this match, its place in the bank of the bot's player.
    """

    def __init__(self, player: int, policy: DeepPolicy, *, seed: int = 0) -> None:
        """Draws the first match's iterate.

        Args:
          player: the seat, 0 or 1.
          policy: the networks.
          seed: of iterates and of actions.
        """
        super().__init__(player, seed=seed)
        self.policy = policy
        self.restart()

    def restart(self) -> None:
        """A new match: another iterate."""
        self.iterate = self.policy.draw_iterate(self._player, self._random)

    def get_policy(self, state: pyspiel.State) -> list[tuple[int, float]]:
        self.check_turn(state)
        found = self.policy.probabilities_of(state, self.iterate, self._player)
        return list(found.items())
