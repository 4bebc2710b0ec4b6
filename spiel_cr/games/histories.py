"""Arrays of a game's histories, and functions that replay histories as states."""

import dataclasses
import itertools
from collections.abc import Iterable, Iterator

import numpy as np
import pyspiel

from spiel_cr.common.messages import short_repr

CHANCE = int(pyspiel.PlayerId.CHANCE)
TERMINAL = int(pyspiel.PlayerId.TERMINAL)


@dataclasses.dataclass(frozen=True, repr=False)
class Histories:
    """Every history of a game, breadth-first, with contiguous children.

    Attributes:
      parent: Index of the parent history, int32 [N]; -1 at a root.
      action: OpenSpiel's action that leads to the history, in the smallest sufficient
        type of int8, int16 and int32 [N]; -1 at a root.
      player: Player that acts, int8 [N]: 0, 1, CHANCE or TERMINAL.
      infoset: Infoset of the acting player, int32 [N]; -1 if no player decides.
      observations: Number of the observation of the player that does *not* act
        (`information_state_string(other)`) at decisions, int32 [N]; -1 at other
        histories. None if observations were not requested, or the game does not provide
        them.
      sequence: Last sequence of each player, int32 [2, N].
      chance: Probability of the chance outcomes between the root and the history, times
        the weight of the root, float64 [N]. A read-only view of a single 1 if all are
        1.
      utility: Utility of player 0 at terminal histories, 0 at other histories, float64
        [N], in the game's units.
      level_start: Offsets of the depths, int64 [D + 1]: the histories of depth d are
        `level_start[d]:level_start[d + 1]`.
      dropped: Chance nodes that have outcomes of probability zero, int32, ascending.
        The arrays do not contain these outcomes. Empty in lookahead trees, which omit
        such outcomes, too.
    """

    __repr__ = short_repr

    parent: np.ndarray
    action: np.ndarray
    player: np.ndarray
    infoset: np.ndarray
    observations: np.ndarray | None
    sequence: np.ndarray
    chance: np.ndarray
    utility: np.ndarray
    level_start: np.ndarray
    dropped: np.ndarray = dataclasses.field(
        default_factory=lambda: np.zeros(0, np.int32)
    )

    def __len__(self) -> int:
        return len(self.parent)

    @property
    def by_depth(self) -> list[slice]:
        """Slice of the histories of each depth, from depth 0."""
        return [slice(*ends) for ends in itertools.pairwise(self.level_start.tolist())]

    def actions_to(self, history: int) -> list[int]:
        """Return OpenSpiel's actions (chance included) from the root to a history."""
        return actions_to(self.parent, self.action, history)

    def paths_to(self, histories: np.ndarray) -> np.ndarray:
        """Return the actions from the root to each of many histories, padded with -1.

        Args:
          histories: Indices of histories, integers [n].

        Returns:
          An array of the type of `action` [n, D - 1], or [n, 1] if all histories are
          roots.
        """
        depth = np.searchsorted(self.level_start, histories, side="right") - 1
        width = max(1, int(depth.max(initial=0)))
        paths = np.full((len(histories), width), -1, self.action.dtype)
        above = np.asarray(histories)
        rows = np.flatnonzero(depth)
        while len(rows):
            paths[rows, depth[rows] - 1] = self.action[above[rows]]
            above = np.where(depth > 0, self.parent[above], above)
            depth = depth - 1
            rows = np.flatnonzero(depth > 0)
        return paths


def actions_to(parent: np.ndarray, action: np.ndarray, history: int) -> list[int]:
    """Return the actions from the root to a history, for arrays as in `Histories`."""
    actions = []
    while parent[history] >= 0:
        actions.append(int(action[history]))
        history = int(parent[history])
    return actions[::-1]


def state_after(game: pyspiel.Game, actions: Iterable[int]) -> pyspiel.State:
    """Return a new state of a game after some actions, chance included."""
    state = game.new_initial_state()
    for action in actions:
        state.apply_action(int(action))
    return state


def moves_along(
    game: pyspiel.Game, actions: Iterable[int]
) -> Iterator[tuple[pyspiel.State, int]]:
    """Yield each action with the state before it.

    The state is changed by the next action."""
    state = game.new_initial_state()
    for action in actions:
        yield state, action
        state.apply_action(action)


def after_deals(state: pyspiel.State) -> pyspiel.State:
    """Apply the first possible outcome of every deal to a state, and return the state.

    Public actions do not depend on deals. Outcomes of probability zero are skipped,
    because OpenSpiel lists some that it does not accept.
    """
    while state.is_chance_node():
        outcomes = state.chance_outcomes()
        state.apply_action(next(action for action, chance in outcomes if chance > 0))
    return state


def string_at(game: pyspiel.Game, actions: Iterable[int], player: int) -> str:
    """Return a player's information state string after actions, chance included."""
    return state_after(game, actions).information_state_string(player)


def states_at(
    game: pyspiel.Game, histories: Histories, numbers: np.ndarray
) -> Iterator[tuple[int, pyspiel.State]]:
    """Yield the states at many histories, depth-first; shared states are created once.

    Args:
      game: A sequential game.
      histories: The histories of the game.
      numbers: Indices of histories, integers [n].

    Yields:
      The index of each element of `numbers`, in any order, and the state there, which
      must not be changed.
    """
    visited = np.zeros(len(histories), bool)
    new = np.unique(numbers)
    while len(new):
        visited[new] = True
        above = np.unique(histories.parent[new])
        new = above[(above >= 0) & ~visited[np.maximum(above, 0)]]
    nodes = np.flatnonzero(visited)
    actions = histories.action[nodes].tolist()
    order = np.argsort(numbers, kind="stable")
    begin = np.searchsorted(np.asarray(numbers)[order], nodes).tolist() + [len(order)]
    # Children are contiguous and in the order of their parents; roots come first.
    parent = histories.parent[nodes]
    above = np.where(parent < 0, -1, np.searchsorted(nodes, parent))
    child = np.searchsorted(above, np.arange(len(nodes) + 1)).tolist()
    stack: list[tuple[int, pyspiel.State | None]]
    stack = [(root, None) for root in reversed(range(child[0] if child else 0))]
    while stack:
        node, before = stack.pop()
        if before is None:
            state = game.new_initial_state()
        else:
            state = before.child(actions[node])
        for index in order[begin[node] : begin[node + 1]].tolist():
            yield index, state
        stack += ((n, state) for n in reversed(range(child[node], child[node + 1])))


def states_in_order(
    game: pyspiel.Game, histories: Histories, numbers: Iterable[int]
) -> Iterator[pyspiel.State]:
    """Yield the state at each of many histories, in the order of the argument.

    If a history follows the previous one, only the moves between them are played.

    Args:
      game: A sequential game.
      histories: The histories of the game.
      numbers: Indices of histories.

    Yields:
      A new state at each of them.
    """
    parent, last, before = histories.parent, -1, game.new_initial_state()
    for number in numbers:
        actions, above = [], int(number)
        while above != last and parent[above] >= 0:
            actions.append(int(histories.action[above]))
            above = int(parent[above])
        state = before if above == last else game.new_initial_state()
        for action in reversed(actions):
            state.apply_action(action)
        # The caller may change the state, so a copy is kept.
        last, before = int(number), state.clone()
        yield state


def states_along(
    game: pyspiel.Game, paths: np.ndarray
) -> Iterator[tuple[int, pyspiel.State]]:
    """Yield the state at the end of each of many paths.

    Paths with a common beginning share its states, so each state is created once.

    Args:
      game: A sequential game.
      paths: Actions from the root, chance included, padded with -1: integers [paths,
        D].

    Yields:
      The index of each path, in any order, and the state after it, which must not be
      changed.
    """
    states = [game.new_initial_state()]
    last = np.full(paths.shape[1], -1)
    for number in np.lexsort(paths.T[::-1]) if len(paths) else ():
        path = paths[number]
        differs = np.flatnonzero(np.append(path != last, True))[0]
        del states[differs + 1 :]
        for action in path[differs : np.count_nonzero(path >= 0)].tolist():
            states.append(states[-1].child(action))
        yield int(number), states[-1]
        last = path
