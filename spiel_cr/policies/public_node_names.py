"""Public nodes of signal games by the names of the actions that lead there."""

import re

import numpy as np
import pyspiel

from spiel_cr.common.checks import check_integer
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.policies.form_policy import FormPolicy

# Words for the same move, where a game has only one of them.
_SAME = {"check": "call", "bet": "raise", "call": "check", "raise": "bet"}


def find_node(policy: FormPolicy, words: str) -> tuple[int, tuple[str, ...]]:
    """A public node by the names or numbers of the actions that lead there.

    Args:
      policy: of the game.
      words: as of `find_actions`.

    Returns:
      The node, and the names of the actions.

    Raises:
      ValueError: there is no such action, or nobody acts there.
    """
    actions, path = find_actions(policy.game, words)
    return policy.form.finder.after(actions), path


def node_probabilities(policy: FormPolicy, node: int) -> np.ndarray:
    """Return the strategy at a public node: a view [H, A], a row per private state.

    Args:
      policy: A policy of a public-tree game.
      node: A public node at which a player acts.

    Raises:
      ValueError: If there is no such node, or no player acts there.
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
    """Players' actions by their names or numbers.

    Args:
      game: whose actions are public.
      words: such as "check bet" or "1,2"; deals are left out. Names are those of the
        game's actions; of check and call, and of bet and raise, either is taken where
        the game has one of them only.

    Returns:
      OpenSpiel's actions, and their names.

    Raises:
      ValueError: there is no such action, or nobody acts after them.
    """
    state = after_deals(game.new_initial_state())
    actions: list[int] = []
    path: list[str] = []
    for word in re.split(r"[\s,]+", words.strip()) if words.strip() else ():
        if state.is_terminal():
            raise ValueError(
                f"node={words!r}: the game has ended after {' '.join(path)}, so there "
                f"is no action {word!r} there; leave it out, and what comes after it"
            )
        names = action_names(state)
        action = _find_action(word, names)
        if action is None:
            raise ValueError(
                f"node={words!r}: after {' '.join(path) or 'the deal'} there is no "
                f"action {word!r}; choose among {', '.join(names.values())}"
            )
        actions.append(action)
        path.append(names[action])
        state.apply_action(action)
        after_deals(state)
    if state.is_terminal():
        raise ValueError(
            f"node={words!r}: the game ends there; give a node where somebody acts"
        )
    return actions, tuple(path)


def after_deals(state: pyspiel.State) -> pyspiel.State:
    """Takes the first possible outcome of every deal.

    Public actions do not depend on deals. Outcomes of probability zero are left out:
    OpenSpiel lists some that it refuses.
    """
    while state.is_chance_node():
        outcomes = state.chance_outcomes()
        state.apply_action(next(action for action, chance in outcomes if chance > 0))
    return state


def action_labels(state: pyspiel.State) -> dict[int, str]:
    """The legal actions by name: "player=1 move=Fold" is "fold"."""
    player = state.current_player()
    if player < 0:
        return {}
    names = {a: state.action_to_string(player, a) for a in state.legal_actions()}
    return {a: name.rpartition("move=")[2].strip().lower() for a, name in names.items()}


def action_names(state: pyspiel.State) -> dict[int, str]:
    """The same, each in one word."""
    return {a: re.sub(r"\s+", "-", x) for a, x in action_labels(state).items()}


def _find_action(word: str, names: dict[int, str]) -> int | None:
    if word.isascii() and word.isdecimal() and int(word) in names:
        return int(word)
    for wanted in (word.lower(), _SAME.get(word.lower())):
        matches = [action for action, name in names.items() if name == wanted]
        if matches:
            return matches[0]
    return None


def names_at(signals: PublicTreeGame, node: int) -> dict[int, str]:
    """The names of the actions at a public node, in ascending order of actions."""
    state = after_deals(signals.game.new_initial_state())
    for action in signals.betting.path(node):
        state.apply_action(action)
        after_deals(state)
    return action_names(state)
