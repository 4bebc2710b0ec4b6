"""Public nodes of public trees by the names of the actions that lead there."""

import re

import numpy as np
import pyspiel

from spiel_cr.common.checks import check_integer
from spiel_cr.games.histories import after_deals
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.policies.form_policy import FormPolicy

# Words for the same move, in games that use only one of them.
_SAME = {"check": "call", "bet": "raise", "call": "check", "raise": "bet"}


def find_node(policy: FormPolicy, words: str) -> tuple[int, tuple[str, ...]]:
    """Find a public node by the names or numbers of the actions that lead there.

    Args:
      policy: A policy of a public-tree game.
      words: Actions, see `find_actions`.

    Returns:
      The node, and the names of the actions.

    Raises:
      ValueError: If an action does not exist, or no player acts there.
    """
    actions, path = find_actions(policy.game, words)
    return policy.form.betting.node_after(actions), path


def node_probabilities(policy: FormPolicy, node: int) -> np.ndarray:
    """Return the strategy at a public node: a view [H, A], a row per private state.

    Args:
      policy: A policy of a public-tree game.
      node: A public node at which a player acts.

    Raises:
      ValueError: If the node does not exist, or no player acts there.
    """
    betting = policy.form.betting
    node = check_integer(node, "node", 0, len(betting) - 1)
    player = int(betting.player[node])
    if player not in (0, 1):
        raise ValueError(f"node={node} is terminal; choose a decision node")
    block: np.ndarray = policy.form.public_decisions[player].block(
        policy.behaviour[player], node
    )
    return block


def find_actions(game: pyspiel.Game, words: str) -> tuple[list[int], tuple[str, ...]]:
    """Find players' actions by their names or numbers.

    Args:
      game: A game of public actions.
      words: Names or numbers of actions without deals, such as "check bet" or "1,2".
        If the game uses only one of the names check and call, or bet and raise, the
        other name is accepted, too.

    Returns:
      OpenSpiel's actions, and their names.

    Raises:
      ValueError: If an action does not exist, or no player acts after them.
    """
    state = after_deals(game.new_initial_state())
    actions: list[int] = []
    path: list[str] = []
    for word in re.split(r"[\s,]+", words.strip()) if words.strip() else ():
        if state.is_terminal():
            raise ValueError(
                f"node={words!r}: the game has ended after {' '.join(path)}, before "
                f"{word!r}; remove this action and all actions after it"
            )
        names = action_names(state)
        action = _find_action(word, names)
        if action is None:
            raise ValueError(
                f"node={words!r}: after {' '.join(path) or 'the deal'} the action "
                f"{word!r} does not exist; choose among {', '.join(names.values())}"
            )
        actions.append(action)
        path.append(names[action])
        state.apply_action(action)
        after_deals(state)
    if state.is_terminal():
        raise ValueError(
            f"node={words!r}: the game ends there; give a node where a player acts"
        )
    return actions, tuple(path)


def action_labels(state: pyspiel.State) -> dict[int, str]:
    """Return the names of the legal actions: "player=1 move=Fold" becomes "fold"."""
    player = state.current_player()
    if player < 0:
        return {}
    names = {a: state.action_to_string(player, a) for a in state.legal_actions()}
    return {a: name.rpartition("move=")[2].strip().lower() for a, name in names.items()}


def action_names(state: pyspiel.State) -> dict[int, str]:
    """Return the names of the legal actions, each as a single word."""
    return {a: re.sub(r"\s+", "-", x) for a, x in action_labels(state).items()}


def _find_action(word: str, names: dict[int, str]) -> int | None:
    if word.isascii() and word.isdecimal() and int(word) in names:
        return int(word)
    for wanted in (word.lower(), _SAME.get(word.lower())):
        matches = [action for action, name in names.items() if name == wanted]
        if matches:
            return matches[0]
    return None


def names_at(game: PublicTreeGame, node: int) -> dict[int, str]:
    """Return the names of the actions at a public node, in ascending order."""
    state = after_deals(game.game.new_initial_state())
    for action in game.betting.path(node):
        state.apply_action(action)
        after_deals(state)
    return action_names(state)
