"""What a player saw and did along a history."""

from collections.abc import Sequence
from typing import NamedTuple

import pyspiel


class Stage(NamedTuple):
    """What a player saw between two of its decisions.

    Attributes:
      seen: its information-state strings at the nodes after its own last action, each
        once while it stays the same; the last one is that of its next decision.
      action: what it did there; None where it is to act now.
    """

    seen: tuple[str, ...]
    action: int | None


def observations(
    state: pyspiel.State, player: int, *, waiting: bool = True
) -> list[Stage]:
    """What a player has seen on the way to its decision at `state`.

    Args:
      state: the player is to act. Only what its information-state strings tell, and its
        own actions, is used.
      player: whose view.
      waiting: also look at the strings where it does not act.

    Raises:
      ValueError: the player is not to act.
      pyspiel.SpielError: the game has no strings where the player does not act.
    """
    if state.current_player() != player:
        raise ValueError(
            f"state: player {state.current_player()} is to act there; a belief is "
            f"formed at player {player}'s own decisions"
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
    """Whether a view goes on from an earlier one of the same match.

    What the player did at the last decision of the earlier view was not known then.
    """
    last = len(earlier) - 1
    return last < 0 or (
        len(stages) > last
        and list(earlier[:-1]) == list(stages[:last])
        and earlier[-1].seen == stages[last].seen
    )


def place_in(seen: Sequence[str], above: int, text: str) -> int:
    """How far in the strings of a stage a view is, one node further.

    Args:
      seen: of the stage.
      above: how far the view was; -1: at the beginning of the stage.
      text: the player's string one node further.

    Returns:
      `above` where nothing has changed, the next place where the next string is seen,
      else -1: the view is another one.
    """
    if above >= 0 and seen[above] == text:
        return above
    if above + 1 < len(seen) and seen[above + 1] == text:
        return above + 1
    return -1
