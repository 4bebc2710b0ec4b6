"""What the actions of a game of poker mean: fold, check, call, raise.

OpenSpiel's actions are numbers, and games name them. A game is poker if the names of
its actions say so; see `PokerRoles`.
"""

import pyspiel

from spiel_cr.games.histories import moves_along
from spiel_cr.policies.public_node_names import action_labels
from spiel_cr.policies.rollouts import first_decision

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
      two_actions: the actions are pass and bet, which mean different things after a
        bet.
      free_folds: a player may fold where there is nothing to call.
    """

    def __init__(self, game: pyspiel.Game) -> None:
        """Looks at the first decision.

        Args:
          game: a sequential game.

        Raises:
          NotPokerError: the actions have other names.
        """
        first = first_decision(game)
        labels = set(action_labels(first).values())
        self.two_actions = labels == {"pass", "bet"}
        meanings = {_meaning(label) for label in labels}
        if not self.two_actions and not ("call" in meanings and meanings <= set(ROLES)):
            raise NotPokerError(
                f"{game} is not a game of poker: the first player chooses among "
                f"{', '.join(sorted(labels)) or 'nothing'}; chumps need actions named "
                f"fold, call (or check) and raise (or bet), as in leduc_poker, "
                f"universal_poker or kuhn_poker"
            )
        self.free_folds = False
        if not self.two_actions:
            # Blinds are called once; who may fold then has nothing to call.
            first.apply_action(self.by_role(first)["call"])
            self.free_folds = "fold" in self.by_role(first)

    def by_role(self, state: pyspiel.State) -> dict[str, int]:
        """The legal action of each role that there is; nothing where chance acts."""
        if self.two_actions and state.current_player() >= 0:
            return _roles_after(state)
        roles: dict[str, int] = {}
        labels = action_labels(state)
        for action in sorted(labels):
            roles.setdefault(str(_meaning(labels[action])), action)
        return roles

    def meaning(self, state: pyspiel.State, action: int) -> str:
        """What an action is at a decision, one of `MEANINGS`.

        Args:
          state: before the action.
          action: a legal one; all sizes of bets are raises.
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
        """Whether the player to act has to put in something to stay."""
        if "fold" not in self.by_role(state):
            return False
        return not self.free_folds or self._was_raised(state)

    def _was_raised(self, state: pyspiel.State) -> bool:
        """Whether the last raise since the last deal was the opponent's."""
        raiser = -1
        for before, action in moves_along(state.get_game(), state.history()):
            player = before.current_player()
            if player < 0:
                raiser = -1
            elif _meaning(action_labels(before)[action]) == "raise":
                raiser = player
        return raiser not in (-1, state.current_player())


def _meaning(label: str) -> str | None:
    """fold, call, raise, or None for what chumps never do."""
    word = label.rstrip("0123456789 ")
    if word in ("call", "check"):
        return "call"
    if word in ("raise", "bet", "allin", "halfpot"):
        return "raise"
    return "fold" if word == "fold" else None


def _roles_after(state: pyspiel.State) -> dict[str, int]:
    """Roles in Kuhn poker, where a bet turns check | bet into fold | call."""
    names = {name: action for action, name in action_labels(state).items()}
    moves = [step.action for step in state.full_history() if step.player >= 0]
    if names["bet"] in moves:
        return {"fold": names["pass"], "call": names["bet"]}
    return {"call": names["pass"], "raise": names["bet"]}
