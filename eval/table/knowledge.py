"""What a player knows of a match: which moves of the opponent it has seen."""

from collections.abc import Iterator

import numpy as np
import pyspiel

from spiel_cr.games.tree.tree import CompiledGame

from . import families


class Knowledge:
    """Names the opponent's moves that a player cannot but know.

    In a compiled game these are the moves that are the same in all histories that the
    player cannot tell apart. Other games must be known to show all actions; of the
    rest nothing is named, and the player's information state says what it says.
    """

    def __init__(
        self, game: CompiledGame | pyspiel.Game, *, drawn: bool = False
    ) -> None:
        """Takes the game; its infosets are sorted when they are asked for.

        Args:
          game: compiled, or OpenSpiel's.
          drawn: call moves as drawings do, and not as the game does.
        """
        self._drawn = drawn
        self._tree = game if isinstance(game, CompiledGame) else None
        plain = game.game if isinstance(game, CompiledGame) else game
        self._open = families.shows_actions(plain)
        self._numbers: list[dict[str, int]] = []
        self._members: list[tuple[np.ndarray, np.ndarray]] = []

    def opponents_moves(self, state: pyspiel.State, player: int) -> list[str]:
        """The opponent's moves since the player's last one, as far as it knows them.

        Args:
          state: a decision of the player, or the end, where all is known.
          player: 0 or 1.

        Returns:
          Names, in the order of the moves; nothing where the player does not know how
          many there were.
        """
        moves = list(moves_of(state, drawn=self._drawn))
        last = max(
            (place for place, (mover, _, _) in enumerate(moves) if mover == player),
            default=-1,
        )
        made = [
            (a, name) for mover, a, name in moves[last + 1 :] if mover == 1 - player
        ]
        if self._open or state.is_terminal():
            return [name for _, name in made]
        if self._tree is None or not made:
            return []
        known = self._common(state, player)
        if known is None:
            return []
        pairs = zip(made, known, strict=True)
        return [name for (_, name), common in pairs if common]

    def histories(self, state: pyspiel.State, player: int) -> np.ndarray:
        """int [n], the histories of the player's infoset at a decision.

        Raises:
          ValueError: the game is not compiled.
        """
        if self._tree is None:
            raise ValueError("game: it is not compiled; give a compiled game")
        if not self._numbers:
            self._sort(self._tree)
        number = self._numbers[player][state.information_state_string(player)]
        start, members = self._members[player]
        return members[start[number] : start[number + 1]]

    def _sort(self, tree: CompiledGame) -> None:
        histories = tree.histories
        for player, infosets in enumerate(tree.infosets):
            numbers = {key: number for number, key in enumerate(infosets.keys)}
            self._numbers.append(numbers)
            own = np.flatnonzero(histories.player == player)
            of = histories.infoset[own]
            order = np.argsort(of, kind="stable")
            start = np.searchsorted(of[order], np.arange(len(infosets) + 1))
            self._members.append((start, own[order]))

    def _common(self, state: pyspiel.State, player: int) -> list[bool] | None:
        """Of each of the opponent's moves whether it is the same in all histories.

        None: not even their number is.
        """
        assert self._tree is not None
        histories = self._tree.histories
        at = self.histories(state, player)
        sequence = histories.sequence[player]
        # All go up together, a step at a time, until the player's own last move.
        above, mine = at.copy(), sequence[at]
        columns: list[list[int]] = [[] for _ in at]
        going = np.ones(len(at), bool)
        while going.any():
            parent = histories.parent[above]
            going &= (parent >= 0) & (sequence[np.maximum(parent, 0)] == mine)
            for place in np.flatnonzero(going):
                if histories.player[parent[place]] == 1 - player:
                    columns[place].append(int(histories.action[above[place]]))
            above = np.where(going, parent, above)
        if len({len(column) for column in columns}) != 1:
            return None
        rows = zip(*columns, strict=True)
        return [len(set(row)) == 1 for row in rows][::-1]


def moves_of(
    state: pyspiel.State, *, drawn: bool = False
) -> Iterator[tuple[int, int, str]]:
    """(player, action, name) of each move that led to a state; chance is -1.

    Args:
      state: any.
      drawn: with the names of drawings, and not the game's.
    """
    at = state.get_game().new_initial_state()
    for action in state.history():
        player = at.current_player()
        own = at.action_to_string(player, action)
        yield player, action, families.name_of(at, action) if drawn else own
        at.apply_action(action)
