"""Enumeration of a game through OpenSpiel's states, which works for every game."""

import struct
from collections.abc import Callable

import numpy as np
import pyspiel

from spiel_cr.common.arrays import places_in
from spiel_cr.common.errors import too_many_histories
from spiel_cr.games.histories import CHANCE, TERMINAL, Histories
from spiel_cr.games.opening import game_checks
from spiel_cr.games.tree.tree import MAX_HISTORIES

# Record of each state, in the order of visits.
_RECORD = np.dtype(
    [
        *((name, "=i4") for name in ("parent", "action", "depth")),
        *(("player", "=i1"), ("chance", "=f8"), ("utility", "=f8")),
        *(("label", "=i4"), ("other_label", "=i4")),
    ]
)
# Number of visits between two calls of `watch`. It is small because some games have
# large states on the stack: a thousand visits can need a gigabyte.
_WATCHED = 16
_PACK = struct.Struct("=iiibddii").pack


def walk(
    game: pyspiel.Game,
    *,
    observations: bool = False,
    max_histories: int = MAX_HISTORIES,
    watch: Callable[[int], None] | None = None,
) -> tuple[Histories, tuple[list[str], list[str]]]:
    """Visit every state of a sequential game exactly once.

    Args:
      game: Sequential game.
      observations: Whether to record the observations of the player who does not act.
      max_histories: Largest number of histories.
      watch: Function that is called regularly with the number of histories so far.

    Returns:
      All histories, as `numbering.number` expects them, and for each player the
      information-state string of each label.

    Raises:
      InvalidGameError: If the acting player is not 0, 1 or chance, a player has no
        legal action or one action twice, chance probabilities are invalid, or returns
        do not sum to zero. The message names the history.
      TooManyHistoriesError: If there are more than `max_histories` histories.
    """
    records, node = bytearray(), -1
    # Each player's strings and their numbers, where it acts and where it does not.
    numbers: tuple[dict[str, int], dict[str, int]] = ({}, {})
    observed: tuple[dict[str, int], dict[str, int]] = ({}, {})
    dropped: list[int] = []
    # Depth-first: whole levels of states would need too much memory.
    stack = [(game.new_initial_state(), -1, -1, 1.0, 0)]
    while stack:
        state, parent, action, chance, depth = stack.pop()
        node += 1
        if node == max_histories:
            raise too_many_histories(game, max_histories)
        if watch is not None and not node % _WATCHED:
            watch(node)
        player = state.current_player()
        label = other_label = -1
        utility = 0.0
        if player == 0 or player == 1:
            label = _label(numbers, state, player)
            if observations:
                try:
                    other_label = _label(observed, state, 1 - player)
                except pyspiel.SpielError:  # the game does not provide that
                    observations = False
            legal = state.legal_actions()
            if not legal:
                raise game_checks.no_action(state, player)
            for act in reversed(legal):
                stack.append((state.child(act), node, act, chance, depth + 1))
        elif player == CHANCE:
            chance_outcomes = state.chance_outcomes()
            outcomes = game_checks.possible_outcomes(state, chance_outcomes)
            if len(outcomes) < len(chance_outcomes):
                dropped.append(node)
            for act, p in reversed(outcomes):
                stack.append((state.child(act), node, act, chance * p, depth + 1))
        elif player == TERMINAL:
            utilities = state.returns()
            if len(utilities) != 2 or utilities[0] + utilities[1] != 0:
                utilities = game_checks.checked_returns(state, utilities)
            utility = utilities[0]
        else:
            raise game_checks.wrong_player(state, player)
        try:
            records += _PACK(
                *(parent, action, depth, player, chance, utility, label, other_label)
            )
        except struct.error as error:
            raise game_checks.wrong_action(state, action) from error
    histories = _breadth_first(records, dropped, observations)
    game_checks.check_moves(game, histories)
    return histories, (list(numbers[0]), list(numbers[1]))


def _label(
    labels: tuple[dict[str, int], dict[str, int]], state: pyspiel.State, player: int
) -> int:
    """Return the number of a player's string at a state, in the order of visits."""
    of = labels[player]
    return of.setdefault(state.information_state_string(player), len(of))


def _breadth_first(
    records: bytearray, dropped: list[int], observations: bool
) -> Histories:
    """Convert the records of a depth-first walk to histories, depth by depth.

    Args:
      records: Records of all states, packed as `_RECORD`, in the order of visits.
      dropped: Numbers, in that order, of chance nodes with impossible outcomes.
      observations: Whether the other player's observations were recorded throughout.
    """
    walked = np.frombuffer(records, _RECORD)
    order = np.argsort(walked["depth"], kind="stable")
    rank = places_in(order, len(order))
    above, depths = walked["parent"][order], walked["depth"][order]
    return Histories(
        parent=np.where(above >= 0, rank[above], np.int32(-1)),
        action=walked["action"][order],
        player=walked["player"][order],
        infoset=walked["label"][order],
        observations=walked["other_label"][order] if observations else None,
        sequence=np.zeros((2, 0), np.int32),
        chance=walked["chance"][order],
        utility=walked["utility"][order],
        level_start=np.searchsorted(depths, np.arange(int(depths[-1]) + 2)),
        dropped=np.sort(rank[dropped]),
    )
