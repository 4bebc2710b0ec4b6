"""A player that learns while it is asked."""

import pyspiel

from spiel_cr.policies.bot_base import PolicyPlayer


class Learner(PolicyPlayer):
    """Remembers where it was asked, and plays by how often that was.

    Attributes:
      memory: the information states that it was asked at since it last forgot.
      met: by information state, what the memory was when it was asked there.
    """

    def __init__(self, player: int) -> None:
        """Knows nothing yet."""
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
