"""Meanings of the actions of poker games: fold, check, call, raise.

OpenSpiel's actions are numbers with names. A game counts as poker if its actions have
the names of poker; see `PokerRoles`.
"""

import pyspiel

from spiel_cr.games.histories import after_deals, moves_along
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
        if self.two_actions:
            roles = _roles_after(state)
            role = next(
                role for role, role_action in roles.items() if role_action == action
            )
        else:
            role = str(_meaning(action_labels(state)[action]))
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
