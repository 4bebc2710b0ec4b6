"""Fixed policies of poker: always fold, always call, always raise, call or raise.

OpenSpiel's actions are numbers with names. A game counts as poker if its actions have
the names of poker; see `PokerRoles`.
"""

import pyspiel

from spiel_cr.common.checks import check_choice
from spiel_cr.games.histories import after_deals, moves_along
from spiel_cr.policies.conversions import StatePolicy
from spiel_cr.policies.public_node_names import action_labels

ROLES = ("fold", "call", "raise")
MEANINGS = ("fold", "check", "call", "raise")


class NotPokerError(ValueError):
    """The game has no actions that are called fold, call and raise."""


class PokerRoles:
    """The actions of a game of poker, recognised by their names.

    fold, call (or check), raise (or bet; of several sizes the smallest). In kuhn_poker,
    which names them pass and bet, a pass is a check, or a fold after a bet; a bet is a
    raise, or a call after a bet.

    Attributes:
      two_actions: Whether the actions are pass and bet, whose meanings change after a
        bet.
      free_folds: Whether a player may fold if there is nothing to call.
    """

    def __init__(self, game: pyspiel.Game) -> None:
        """Read the names of the actions at the first decision.

        Args:
          game: A sequential game.

        Raises:
          NotPokerError: If the actions have other names.
        """
        first = after_deals(game.new_initial_state())
        labels = set(action_labels(first).values())
        self.two_actions = labels == {"pass", "bet"}
        meanings = {_meaning(label) for label in labels}
        if not self.two_actions and not ("call" in meanings and meanings <= set(ROLES)):
            raise NotPokerError(
                f"{game} is not a game of poker: the first player chooses among "
                f"{', '.join(sorted(labels)) or 'nothing'}; fixed policies need "
                f"actions named fold, call (or check) and raise (or bet), as in "
                f"leduc_poker, universal_poker or kuhn_poker"
            )
        self.free_folds = False
        if not self.two_actions:
            # Blinds are called once. A player that may fold then has nothing to call.
            first.apply_action(self.by_role(first)["call"])
            self.free_folds = "fold" in self.by_role(first)

    def by_role(self, state: pyspiel.State) -> dict[str, int]:
        """Return the legal action of each role; an empty dict if no player acts."""
        if self.two_actions and state.current_player() >= 0:
            return _roles_after(state)
        roles: dict[str, int] = {}
        labels = action_labels(state)
        for action in sorted(labels):
            roles.setdefault(str(_meaning(labels[action])), action)
        return roles

    def meaning(self, state: pyspiel.State, action: int) -> str:
        """Return the meaning of an action at a decision, one of `MEANINGS`.

        Args:
          state: The state before the action.
          action: A legal action; bets of all sizes are raises.
        """
        roles = self.by_role(state)
        # Of several sizes of bets, `by_role` has the smallest alone.
        role = next((role for role in roles if roles[role] == action), "raise")
        if role == "call" and not self.must_call(state):
            return "check"
        return role

    def must_call(self, state: pyspiel.State) -> bool:
        """Return whether the acting player has to call or raise to stay in the hand."""
        if "fold" not in self.by_role(state):
            return False
        return not self.free_folds or self._was_raised(state)

    def _was_raised(self, state: pyspiel.State) -> bool:
        """Return whether the opponent made the last raise since the last deal."""
        raiser = -1
        for before, action in moves_along(state.get_game(), state.history()):
            player = before.current_player()
            if player < 0:
                raiser = -1
            elif _meaning(action_labels(before)[action]) == "raise":
                raiser = player
        return raiser not in (-1, state.current_player())


def _meaning(label: str) -> str | None:
    """Return the role of a name: fold, call, raise; None for other actions."""
    word = label.rstrip("0123456789 ")
    if word in ("call", "check"):
        return "call"
    if word in ("raise", "bet", "allin", "halfpot"):
        return "raise"
    return "fold" if word == "fold" else None


def _roles_after(state: pyspiel.State) -> dict[str, int]:
    """Return the roles in Kuhn poker; after a bet, pass is a fold and bet a call."""
    names = {name: action for action, name in action_labels(state).items()}
    moves = [step.action for step in state.full_history() if step.player >= 0]
    if names["bet"] in moves:
        return {"fold": names["pass"], "call": names["bet"]}
    return {"call": names["pass"], "raise": names["bet"]}


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
        if not (self.by_legal_actions and legal in self._chosen):
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
