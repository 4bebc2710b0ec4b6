"""A player's observations and actions along a history."""

from collections.abc import Sequence
from typing import NamedTuple

import pyspiel


class Stage(NamedTuple):
    """A player's observations between two of its decisions.

    Attributes:
      seen: The player's information-state strings at the nodes after its last action,
        without consecutive repetitions; the last one is that of its next decision.
      action: The player's action at that decision; None at the current decision.
    """

    seen: tuple[str, ...]
    action: int | None


def observations(
    state: pyspiel.State, player: int, *, waiting: bool = True
) -> list[Stage]:
    """Return a player's observations up to its decision at `state`.

    Args:
      state: Decision of the player. Only the player's information-state strings and
        actions are used.
      player: Player whose observations are returned.
      waiting: Whether to include the strings at nodes where the player does not act.

    Raises:
      ValueError: If the player does not act at the state.
      pyspiel.SpielError: If the game has no strings at nodes where the player does not
        act.
    """
    if state.current_player() != player:
        raise ValueError(
            f"state: player {state.current_player()} acts there; give a decision of "
            f"player {player}, because beliefs are computed at its decisions"
        )
    replay = state.get_game().new_initial_state()
    stages: list[Stage] = []
    seen: list[str] = []
    for action in [*state.history(), None]:
        acts = replay.current_player() == player
        if acts or waiting:
            text = replay.information_state_string(player)
            if not seen or seen[-1] != text:
                seen.append(text)
        if acts:
            stages.append(Stage(tuple(seen), action))
            seen = []
        if action is not None:
            replay.apply_action(action)
    return stages


def continues(earlier: Sequence[Stage], stages: Sequence[Stage]) -> bool:
    """Return whether observations continue earlier ones of the same match.

    The player's action at the last decision of the earlier observations is not
    compared.
    """
    last = len(earlier) - 1
    return last < 0 or (
        len(stages) > last
        and list(earlier[:-1]) == list(stages[:last])
        and earlier[-1].seen == stages[last].seen
    )


def place_in(seen: Sequence[str], above: int, text: str) -> int:
    """Return the position in the strings of a stage after one more node.

    Args:
      seen: Strings of the stage.
      above: Position before the node; -1: at the beginning of the stage.
      text: The player's string at the node.

    Returns:
      `above` if the string has not changed, the next position if the next string is
      observed, otherwise -1: the observations differ.
    """
    if above >= 0 and seen[above] == text:
        return above
    if above + 1 < len(seen) and seen[above + 1] == text:
        return above + 1
    return -1
