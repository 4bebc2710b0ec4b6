"""A player that learns from queries."""

import pyspiel

from spiel_cr.policies.bot_base import PolicyPlayer


class Learner(PolicyPlayer):
    """A player whose strategy depends on the number of earlier queries.

    Attributes:
      memory: Information states that were queried since the last reset.
      met: By information state, the memory at the time of the query.
    """

    def __init__(self, player: int) -> None:
        """Create a player without memory."""
        super().__init__(player)
        self.memory: tuple[str, ...] = ()
        self.met: dict[str, tuple[str, ...]] = {}

    def remember(self, memory: tuple[str, ...]) -> None:
        self.memory = memory

    def reset(self, seed: int | None = None) -> None:
        self.memory = ()

    def get_policy(self, state: pyspiel.State) -> list[tuple[int, float]]:
        key = state.information_state_string(self.player_id())
        self.met[key], self.memory = self.memory, (*self.memory, key)
        first, *rest = state.legal_actions()
        odds = 1 / (1 + len(self.memory)) if rest else 1.0
        return [(first, odds), *((action, (1 - odds) / len(rest)) for action in rest)]
