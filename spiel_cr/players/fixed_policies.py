"""Fixed policies of poker: always fold, always call, always raise, call or raise."""

import pyspiel

from spiel_cr.common.checks import check_choice
from spiel_cr.players.poker_roles import PokerRoles
from spiel_cr.policies.conversions import StatePolicy

# For each policy equally likely lists of actions, of which the first legal one is
# played.
_PREFERENCES: dict[str, tuple[tuple[str, ...], ...]] = {
    "always_fold": (("fold", "call", "raise"),),
    "always_call": (("call", "fold", "raise"),),
    "always_raise": (("raise", "call", "fold"),),
    "call_raise": (("call", "fold", "raise"), ("raise", "call", "fold")),
}
FIXED_POLICIES = tuple(_PREFERENCES)


class FixedPolicy(StatePolicy):
    """A policy of poker that depends on the legal actions alone.

    The actions are recognised by their names: fold, call (or check), raise (or bet; of
    several sizes the smallest). In kuhn_poker, which names them pass and bet, a pass is
    a check, or a fold after a bet; a bet is a raise, or a call after a bet.

    always_fold folds wherever that is legal, also where it could check; otherwise it
    calls (checks). always_call calls. always_raise raises, and calls where it may not
    raise. call_raise calls or raises with equal probability, and only calls where it
    may not raise.

    Attributes:
      kind: One of `FIXED_POLICIES`.
      by_legal_actions: Whether its answers can be looked up by the legal actions.
    """

    def __init__(self, game: pyspiel.Game, kind: str) -> None:
        """Recognise the actions of a game.

        Args:
          game: kuhn_poker, leduc_poker, python_leduc_poker, universal_poker, or another
            game whose actions have such names.
          kind: One of `FIXED_POLICIES`.

        Raises:
          ValueError: If the kind is unknown, or the game is not poker.
        """
        check_choice(kind, "kind", FIXED_POLICIES)
        super().__init__(game)
        self.kind = kind
        self._roles = PokerRoles(game)
        self.by_legal_actions = not self._roles.two_actions
        self._chosen: dict[tuple[int, ...], dict[int, float]] = {}

    def probabilities_at(self, state: pyspiel.State, player: int) -> dict[int, float]:
        """Return the answer at a state; see `StatePolicy`."""
        legal = tuple(state.legal_actions())
        if self._roles.two_actions:
            return self._choose(legal, self._roles.by_role(state))
        if legal not in self._chosen:
            self._chosen[legal] = self._choose(legal, self._roles.by_role(state))
        return dict(self._chosen[legal])

    def _choose(
        self, legal: tuple[int, ...], roles: dict[str, int]
    ) -> dict[int, float]:
        preferences = _PREFERENCES[self.kind]
        probabilities = dict.fromkeys(legal, 0.0)
        for preference in preferences:
            matches = (roles[role] for role in preference if role in roles)
            action = next(matches, legal[0])
            probabilities[action] += 1 / len(preferences)
        return probabilities
