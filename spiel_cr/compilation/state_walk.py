"""The walk that suits every game: each of OpenSpiel's states is visited once."""

from array import array

import numpy as np
import pyspiel

from spiel_cr.compilation.tree import (
    CHANCE,
    MAX_HISTORIES,
    TERMINAL,
    Histories,
    too_many,
)


def walk(
    game: pyspiel.Game,
    *,
    observations: bool = False,
    max_histories: int = MAX_HISTORIES,
) -> tuple[Histories, tuple[list[str], list[str]]]:
    """Visits every state of a sequential game exactly once.

    Args:
      game: a sequential game.
      observations: also record what the player who does not act has observed.
      max_histories: refuse games with more histories than this.

    Returns:
      All histories as `numbering.number` takes them, and for each player the
      information-state string of each label.

    Raises:
      ValueError: somebody else acts than players 0 and 1 and chance, or a player has
        nothing to do.
      TooManyHistoriesError: there are more than `max_histories` histories.
    """
    walking = _Walk(game, observations, max_histories)
    walking.run()
    return walking.finish()


class _Walk:
    """Depth-first walk: whole levels of states would need too much memory."""

    def __init__(
        self, game: pyspiel.Game, observations: bool, max_histories: int
    ) -> None:
        self._game = game
        self._limit = max_histories
        self._observations = observations
        self._labels: tuple[dict[str, int], dict[str, int]] = ({}, {})
        self._other_labels: tuple[dict[str, int], dict[str, int]] = ({}, {})
        self._parent = array("i")
        self._action = array("i")
        self._player = array("b")
        self._label = array("i")
        self._other_label = array("i")
        self._chance = array("d")
        self._utility = array("d")
        self._depth = array("i")

    def run(self) -> None:
        """Visits everything, in preorder."""
        stack = [(self._game.new_initial_state(), -1, -1, 1.0, 0)]
        pop, push = stack.pop, stack.append
        while stack:
            state, parent, action, chance, depth = pop()
            node = len(self._parent)
            if node == self._limit:
                raise too_many(self._game, self._limit)
            player = state.current_player()
            self._parent.append(parent)
            self._action.append(action)
            self._player.append(player)
            self._chance.append(chance)
            self._depth.append(depth)
            if player >= 0:
                self._label.append(self._inform(state, player))
                self._other_label.append(self._observe(state, 1 - player))
                self._utility.append(0.0)
                for act in reversed(self._legal_actions(state, player)):
                    push((state.child(act), node, act, chance, depth + 1))
                continue
            self._label.append(-1)
            self._other_label.append(-1)
            if player == TERMINAL:
                self._utility.append(state.player_return(0))
            elif player == CHANCE:
                self._utility.append(0.0)
                for act, p in reversed(state.chance_outcomes()):
                    push((state.child(act), node, act, chance * p, depth + 1))
            else:
                raise ValueError(
                    f"{self._game}: a state has current player {player}; only "
                    f"players 0 and 1, chance and terminal states are supported"
                )

    def _legal_actions(self, state: pyspiel.State, player: int) -> list[int]:
        legal: list[int] = state.legal_actions()
        if not legal:
            raise ValueError(
                f"{self._game}: player {player} has no legal action at information "
                f"state {state.information_state_string(player)!r}; a game without "
                f"moves must be terminal there"
            )
        return legal

    def _inform(self, state: pyspiel.State, player: int) -> int:
        """A number for the information of the player who acts."""
        labels = self._labels[player]
        return labels.setdefault(state.information_state_string(player), len(labels))

    def _observe(self, state: pyspiel.State, other: int) -> int:
        """A number for what the player who does not act has observed."""
        if not self._observations:
            return -1
        try:
            string = state.information_state_string(other)
        except pyspiel.SpielError:
            self._observations = False
            return -1
        labels = self._other_labels[other]
        return labels.setdefault(string, len(labels))

    def finish(self) -> tuple[Histories, tuple[list[str], list[str]]]:
        """Sorts the histories breadth-first."""
        depth = np.frombuffer(self._depth, np.int32)
        order = np.argsort(depth, kind="stable")
        rank = np.empty(len(order), np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)

        def sort(column: array) -> np.ndarray:
            return np.frombuffer(column, column.typecode)[order]

        parent = sort(self._parent)
        histories = Histories(
            parent=np.where(parent >= 0, rank[parent], np.int32(-1)),
            action=sort(self._action),
            player=sort(self._player),
            infoset=sort(self._label),
            observations=sort(self._other_label) if self._observations else None,
            sequence=np.zeros((2, 0), np.int32),
            chance=sort(self._chance),
            utility=sort(self._utility),
            level_start=np.searchsorted(depth[order], np.arange(int(depth.max()) + 2)),
        )
        return histories, (list(self._labels[0]), list(self._labels[1]))
