"""Batched rules of games, and visits of all their histories level by level.

OpenSpiel visits one state at a time, which takes tens of microseconds for a game that
is written in Python. A game that can apply its rules to many states at once provides a
method

    def batched_rules(self) -> BatchedRules | None: ...

of its `pyspiel.Game` class. `build_tree` then queries the returned object instead of
the states. None means that the game's parameters are not supported.
`batched_check.check` compares both. docs/how-to/batched-rules.md has a complete
example.
"""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import pyspiel

from spiel_cr.common import plugins
from spiel_cr.common.errors import InvalidGameError
from spiel_cr.common.messages import one_line
from spiel_cr.games.histories import CHANCE, TERMINAL, actions_to
from spiel_cr.games.opening.game_checks import (
    CHANCE_TOLERANCE,
    describe_history,
    payoff_offset,
)

# Number of states per call, so that their children fit into a processor's cache.
_CHUNK = 1 << 14


class BatchedRules(Protocol):
    """The rules of a sequential two-player game on arrays of states.

    `states` is an array with one state per index of its first axis. The game chooses
    its other axes and its dtype, which may be structured. Methods are named after those
    of `pyspiel.State` and have the same meaning, for n states at once. They must not
    change `states`. A game may also have

        information_state_strings(states, player) -> Sequence[str]

    with the strings of `pyspiel.State.information_state_string`, which are otherwise
    queried from OpenSpiel's states, one by one;

        information_state_tensor(states, player) -> np.ndarray

    with the tensors of `pyspiel.State.information_state_tensor`, [n, F], float32, or
    bool if all numbers are 0 or 1, queried at decisions of both players (see
    `solvers.deep.tensors`); and

        bucket_key(states, player) -> np.ndarray

    with integers [n] or [n, k] that are equal if `player`, who acts, must use the same
    strategy under imperfect recall (see `solvers.cfr.bucket_labels`). Rules that put
    hands into buckets have

        bucketed(counts, arrays, tick) -> BatchedRules
        bucket_bytes() -> int

    (see `games.simulation.boards.BoardRules`). A game whose actions are all public may
    declare its dealt private information (see
    `games.public_tree.declaration.public_tree_rules`).
    """

    def new_initial_states(self) -> np.ndarray:
        """Return the initial state, as an array of one state."""

    def current_player(self, states: np.ndarray) -> np.ndarray:
        """Return acting players, integers [n]: 0, 1, or pyspiel's CHANCE, TERMINAL."""

    def legal_actions_mask(self, states: np.ndarray) -> np.ndarray:
        """Return legal actions or outcomes, bool [n, A]; not called at terminals."""

    def chance_probabilities(self, states: np.ndarray) -> np.ndarray:
        """Return outcome probabilities, float64 [n, A]; called at chance nodes only."""

    def child(self, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Return the states after `actions`, int64 [n], one action for each state."""

    def returns(self, states: np.ndarray) -> np.ndarray:
        """Return player 0's utility, float64 [n]; called at terminal states only."""

    def information_state(self, states: np.ndarray, player: int) -> np.ndarray:
        """Return information as integers [n] or [n, k]; equal means indistinguishable.

        The method is called at decisions of `player`. For the observations of `player`,
        it is also called at decisions of the other player; if the game's states raise
        `pyspiel.SpielError` there, this method must do so, too. Both kinds of
        information are numbered separately.
        """


class VisitedHistories(NamedTuple):
    """Several histories of one level, in the order in which `visits` yields them.

    Attributes:
      depth: Depth of all these histories.
      parent: Index of the parent history, int64 [n]; -1 at the root.
      action: Action that leads to the history, int64 [n]; -1 at the root.
      player: Player that acts, int8 [n].
      chance: Probability of the chance outcomes on the path, float64 [n]. None if no
        chance node precedes any of the histories.
      utility: Utility of player 0 at terminal histories, 0 at others, float64 [n].
      information: Information of each player at the histories where it acts, in order,
        as the game returns it. None for a player that never acts.
      observations: Observation of each player at the histories where the other player
        acts, in the same format. None also if observations were not requested or the
        game does not provide them.
      dropped: Histories of the level above that have chance outcomes of probability
        zero, int64. These outcomes are omitted.
    """

    depth: int
    parent: np.ndarray
    action: np.ndarray
    player: np.ndarray
    chance: np.ndarray | None
    utility: np.ndarray
    information: Sequence[np.ndarray | None]
    observations: Sequence[np.ndarray | None]
    dropped: np.ndarray


class BrokenRulesError(InvalidGameError):
    """Batched rules violate a requirement at one history.

    Attributes:
      history: Number of the history, or its index in the queried states.
      action: Last action, if it is not part of the history; -1: none.
    """

    def __init__(
        self, game: pyspiel.Game, problem: str, history: int, action: int = -1
    ) -> None:
        after = "" if action < 0 else f" after action {action}"
        super().__init__(
            f"{one_line(game)}: in a state of its batched rules{after} {problem}"
        )
        self.history, self.action = history, action
        self._game, self._what = game, problem

    def of(
        self, history: np.ndarray, action: np.ndarray | None = None
    ) -> "BrokenRulesError":
        """Return the same error with the history that the queried state represents.

        Args:
          history: Histories that the states represent, integers [n].
          action: Actions after these histories, integers [n]. If None, the states are
            the histories themselves.
        """
        after = -1 if action is None else int(action[self.history])
        number = int(history[self.history])
        return BrokenRulesError(self._game, self._what, number, after)

    def at(self, path: list[int]) -> InvalidGameError:
        """Return the same error with the actions from the root to `history`."""
        path = path if self.action < 0 else [*path, self.action]
        place = describe_history(self._game, path)
        return InvalidGameError(
            f"{self._game}: {place} in its batched rules {self._what}"
        )


class CheckedRules(NamedTuple):
    """Batched rules with checks of every returned array.

    Methods raise InvalidGameError if an array has an invalid shape or dtype, and
    BrokenRulesError if the values for one state are invalid.

    Attributes:
      game: Game, for messages.
      rules: The game's batched rules.
    """

    game: pyspiel.Game
    rules: BatchedRules

    def players(self, states: np.ndarray) -> np.ndarray:
        """Return the acting players, int8 [n]: 0, 1, CHANCE or TERMINAL."""
        players = self.rules.current_player(states)
        players = self._array("current_player", players, (len(states),), "iu")
        supported = np.isin(players, (0, 1, CHANCE, TERMINAL))
        if not supported.all():
            odd = int(np.argmin(supported))
            raise self.broken(
                f"current_player gives {players[odd]}; only players 0 and 1, chance "
                f"({CHANCE}) and the end of the game ({TERMINAL}) are supported; "
                f"correct current_player",
                odd,
            )
        return players.astype(np.int8)

    def legal(self, states: np.ndarray) -> np.ndarray:
        """Return legal actions or chance outcomes, bool [n, A]."""
        mask = self.rules.legal_actions_mask(states)
        if mask.dtype != bool or mask.ndim != 2 or len(mask) != len(states):
            raise self._wrong("legal_actions_mask", mask, f"bool [{len(states)}, A]")
        return mask

    def chance_probabilities(
        self, states: np.ndarray, legal: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the probabilities of chance outcomes, float64 [n, A], 0 if not legal.

        Args:
          states: States at chance nodes.
          legal: Result of `legal` for these states, if it is already known.
        """
        legal = self.legal(states) if legal is None else legal
        answer = self.rules.chance_probabilities(states)
        answer = self._array("chance_probabilities", answer, legal.shape, "fiu")
        probabilities = np.where(legal, answer, 0.0)
        near = abs(probabilities.sum(axis=1) - 1) <= CHANCE_TOLERANCE
        if near.all() and (probabilities >= 0).all():
            return probabilities
        # The comparison is false for NaN, too.
        odd = int(np.argmin(near & (probabilities >= 0).all(axis=1)))
        if not legal[odd].any():
            raise self.stuck(odd, CHANCE)
        if not (probabilities[odd] >= 0).all():
            outcome = int(np.argmin(probabilities[odd] >= 0))
            value = probabilities[odd, outcome]
            raise self.broken(
                f"chance outcome {outcome} has probability {value}; a "
                f"probability must lie in [0, 1]; correct chance_probabilities",
                odd,
            )
        raise self.broken(
            f"the probabilities of chance must sum to 1, and those of the legal "
            f"outcomes sum to {probabilities[odd].sum()}; correct chance_probabilities",
            odd,
        )

    def utility(self, states: np.ndarray) -> np.ndarray:
        """Return player 0's utility at terminal states, float64 [n]."""
        utility = self.rules.returns(states)
        utility = self._array("returns", utility, (len(states),), "fiu")
        if not (finite := np.isfinite(utility)).all():
            odd = int(np.argmin(finite))
            raise self.broken(
                f"player 0's utility is {utility[odd]}; payoffs must be finite "
                f"numbers; correct returns",
                odd,
            )
        return utility.astype(np.float64, copy=False)

    def information(self, states: np.ndarray, player: int) -> np.ndarray:
        """Return the information of a player, integers [n] or [n, k]."""
        return self._integers("information_state", states, player)

    def rows(self, method: str, states: np.ndarray, *player: int) -> np.ndarray:
        """Return the result of a method that returns integers, as int64 [n, k]."""
        keys = self._integers(method, states, *player)
        return keys.reshape(len(states), -1).astype(np.int64, copy=False)

    def child(self, states: np.ndarray, action: np.ndarray) -> np.ndarray:
        """Return the states after actions."""
        below = self.rules.child(states, action)
        if below.dtype != states.dtype or below.shape != states.shape:
            wanted = f"{states.dtype} {list(states.shape)}, as the states are"
            raise self._wrong("child", below, wanted)
        return below

    def play(self, states: np.ndarray, actions: Iterable[int]) -> np.ndarray:
        """Return the states after the same actions at all of them."""
        for action in actions:
            states = self.rules.child(states, np.full(len(states), action))
        return states

    def outcomes(
        self, states: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return the states after each possible outcome at each chance node.

        Returns:
          The states, the index of the node and the outcome before each, int64, and its
          probability, float64.
        """
        probabilities = self.chance_probabilities(states)
        where, outcome = np.divmod(
            np.flatnonzero(probabilities > 0), probabilities.shape[1]
        )
        below = self.rules.child(states[where], outcome)
        return below, where, outcome, probabilities[where, outcome]

    def stuck(self, state: int, player: int) -> BrokenRulesError:
        """Return the error for a player that is to act without a legal action."""
        problem = (
            f"player {player} has no legal action; a game without moves must be "
            f"terminal there; correct legal_actions_mask"
        )
        return self.broken(problem, state)

    def broken(self, problem: str, state: int) -> BrokenRulesError:
        """Return the error for a problem at one of the states."""
        return BrokenRulesError(self.game, problem, state)

    def _integers(self, method: str, states: np.ndarray, *player: int) -> np.ndarray:
        """Return the checked result of a method, integers [n] or [n, k]."""
        keys = np.asarray(getattr(self.rules, method)(states, *player))
        count, integers = len(states), keys.dtype.kind in "iu"
        if not integers or keys.ndim not in (1, 2) or len(keys) != count:
            raise self._wrong(method, keys, f"integers [{count}] or [{count}, k]")
        return keys

    def _array(
        self, method: str, answer: np.ndarray, shape: tuple[int, ...], kinds: str
    ) -> np.ndarray:
        """Return an array after a check of its shape and of its kind of numbers."""
        array = np.asarray(answer)
        if array.shape != shape or array.dtype.kind not in kinds:
            numbers = "float64" if "f" in kinds else "integers"
            raise self._wrong(method, array, f"{numbers} {list(shape)}")
        return array

    def _wrong(self, method: str, array: np.ndarray, wanted: str) -> InvalidGameError:
        return InvalidGameError(
            f"{one_line(self.game)}: {method} of the batched rules gives {array.dtype} "
            f"{list(array.shape)}; it must give {wanted}"
        )


class _Live(NamedTuple):
    """States that are not terminal, and their data; see `VisitedHistories`."""

    states: np.ndarray
    number: np.ndarray
    player: np.ndarray
    chance: np.ndarray | None


class _Children(NamedTuple):
    """Child states with the parent and the action of each, as in `VisitedHistories`."""

    states: np.ndarray
    parent: np.ndarray
    action: np.ndarray
    chance: np.ndarray | None
    dropped: np.ndarray


def of_game(game: pyspiel.Game) -> BatchedRules | None:
    """Return a game's batched rules, or None if it has none for its parameters.

    Those of constant-sum games are not used, because their payoffs are not zero-sum.

    A game that OpenSpiel bundles has no method `batched_rules`. For such games there
    are entry points of the group `spiel_cr.batched_rules`, named after the game:
    functions of the loaded game that return its batched rules or None.
    """
    if payoff_offset(game):
        return None
    make = getattr(game, "batched_rules", None)
    if callable(make):
        return make()
    name: str = game.get_type().short_name
    if name == "turn_based_simultaneous_game":
        name = game.get_parameters()["game"]["name"]
    bundled = plugins.registered("spiel_cr.batched_rules", name)
    return None if bundled is None else bundled(game)


def visits(
    game: pyspiel.Game, rules: BatchedRules, *, observations: bool = False
) -> Iterator[VisitedHistories]:
    """Visit every history in breadth-first order, many at a time.

    Args:
      game: Game, for messages.
      rules: The game's batched rules.
      observations: Whether to query the observations of the player that does not act.

    Yields:
      Parts of one level each.

    Raises:
      InvalidGameError: If the rules are invalid; the message names the history.
    """
    checked, root = CheckedRules(game, rules), np.full(1, -1)
    start = _Children(rules.new_initial_states(), root, root, None, root[:0])
    try:
        visit, live = _visit(checked, start, 0, 0, observations)
    except BrokenRulesError as error:
        raise error.at([]) from error
    yield visit
    done, depth, level = 1, 0, [live]
    while level:
        depth += 1
        following: list[_Live] = []
        level.reverse()
        while level:  # from the end, so that memory is released during the walk
            block = level.pop()
            for begin in range(0, len(block.number), _CHUNK):
                some = slice(begin, begin + _CHUNK)
                try:
                    children = _children(checked, block, some)
                    visit, live = _visit(checked, children, depth, done, observations)
                except BrokenRulesError as error:
                    raise error.at(_path_to(game, rules, error.history)) from error
                done += len(visit.parent)
                yield visit
                if len(live.number):
                    following.append(live)
        level = following


def below(
    game: pyspiel.Game,
    rules: BatchedRules,
    states: np.ndarray,
    player: np.ndarray,
    *,
    observations: bool = False,
) -> tuple[np.ndarray, VisitedHistories]:
    """Return the children of some states, sorted by state and action.

    Args:
      game: Game, for messages.
      rules: The game's batched rules.
      states: States that are not terminal.
      player: Player that acts at each of them, int8 [n].
      observations: Whether to query the observations of the player that does not act.

    Returns:
      The children, and their data: `parent` is the index in `states`, and `chance` the
      probability of the last move, if chance made any of the moves.
    """
    checked = CheckedRules(game, rules)
    live = _Live(states, np.arange(len(states)), player, None)
    children = _children(checked, live, slice(None))
    return children.states, _visit(checked, children, 0, 0, observations)[0]


def _children(checked: CheckedRules, block: _Live, some: slice) -> _Children:
    """Return the children of some states, sorted by state and action."""
    states, number, player = (part[some] for part in block[:3])
    mask = checked.legal(states)
    draws = player == CHANCE
    dropped = np.zeros(0, np.int64)
    if draws.any():
        legal = mask[draws]
        try:
            probabilities = checked.chance_probabilities(states[draws], legal)
        except BrokenRulesError as error:
            raise error.of(number[draws]) from error
        if (impossible := legal & (probabilities == 0)).any():
            mask = mask.copy()
            dropped = number[draws][impossible.any(axis=1)].astype(np.int64)
            mask[draws] = probabilities > 0
    flat = np.flatnonzero(mask)  # several times faster than np.nonzero
    where = flat // mask.shape[1]
    action = flat - where * mask.shape[1]
    moves = np.zeros(len(states), bool)
    moves[where] = True
    if not moves.all():
        odd = int(np.argmin(moves))
        raise checked.stuck(odd, int(player[odd])).of(number)
    chance = None if block.chance is None else block.chance[some][where]
    if draws.any():
        every = np.ones(mask.shape)
        every[draws] = probabilities
        factor = every[where, action]
        chance = factor if chance is None else chance * factor
    below = checked.child(states[where], action)
    return _Children(below, number[where], action, chance, dropped)


def _path_to(game: pyspiel.Game, rules: BatchedRules, history: int) -> list[int]:
    """Return the actions from the root to a history, by another walk to it."""
    parents, actions, count = [], [], 0
    walk = visits(game, rules)
    while count <= history:
        visit = next(walk)
        parents.append(visit.parent)
        actions.append(visit.action)
        count += len(visit.parent)
    return actions_to(np.concatenate(parents), np.concatenate(actions), history)


def _visit(
    checked: CheckedRules,
    children: _Children,
    depth: int,
    first: int,
    observations: bool,
) -> tuple[VisitedHistories, _Live]:
    """Query all data of some histories, which are numbered from `first`."""
    states, parent, action, chance, dropped = children
    try:
        player = checked.players(states)
    except BrokenRulesError as error:
        raise error.of(parent, action) from error
    utility = np.zeros(len(states))
    over = player == TERMINAL
    if over.any():
        try:
            utility[over] = checked.utility(states[over])
        except BrokenRulesError as error:
            raise error.of(parent[over], action[over]) from error
    goes_on = np.flatnonzero(~over)
    live = _Live(
        states[goes_on],
        first + goes_on,
        player[goes_on],
        None if chance is None else chance[goes_on],
    )
    information: list[np.ndarray | None] = [None, None]
    observed: list[np.ndarray | None] = [None, None]
    for actor in range(2):
        acts = live.player == actor
        if not acts.any():
            continue
        acting = live.states if acts.all() else live.states[acts]
        information[actor] = checked.information(acting, actor)
        if observations:
            with contextlib.suppress(pyspiel.SpielError):
                observed[1 - actor] = checked.information(acting, 1 - actor)
    attributes = (player, chance, utility, information, observed, dropped)
    return VisitedHistories(depth, parent, action, *attributes), live
