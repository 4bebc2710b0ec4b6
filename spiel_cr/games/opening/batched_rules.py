"""Batched rules of games, and visits of all their histories level by level.

OpenSpiel visits one state at a time, which takes a game written in Python tens of
microseconds. A game that can play its rules on many states at once says so by a method

    def batched_rules(self) -> BatchedRules | None: ...

of its `pyspiel.Game` class; `build_tree` then asks that object instead of the states.
None means that these parameters are not supported. `batched_check.check` compares
both ways. docs/how-to/batched-rules.md has a complete example.
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import pyspiel

from spiel_cr.common import plugins
from spiel_cr.common.errors import InvalidGameError
from spiel_cr.common.messages import one_line
from spiel_cr.games.histories import CHANCE, TERMINAL
from spiel_cr.games.opening.game_checks import (
    CHANCE_TOLERANCE,
    describe_history,
    payoff_offset,
)

# States taken at once: few enough that their children stay in a processor's cache.
_CHUNK = 1 << 14


class BatchedRules(Protocol):
    """The rules of a sequential two-player game on arrays of states.

    `states` is an array whose first axis is the states; what lies behind that, and its
    dtype (which may be structured), is up to the game. Methods are named after those of
    `pyspiel.State` and mean the same, for n states at once. They must not change
    `states`. A game may also have

        information_state_strings(states, player) -> Sequence[str]

    with the strings of `pyspiel.State.information_state_string`, which are otherwise
    asked of OpenSpiel's states, one by one,

        information_state_tensor(states, player) -> np.ndarray

    with the tensors of `pyspiel.State.information_state_tensor`, [n, F], float32, or
    bool where all numbers are 0 or 1, asked at decisions of both players (see
    `solvers.deep.tensors`), and

        bucket_key(states, player) -> np.ndarray

    with integers [n] or [n, k] that are equal where `player`, who acts, is to play
    alike when it forgets things (see `solvers.cfr.bucket_labels`). One that puts hands
    into buckets has

        bucketed(counts, arrays, tick) -> BatchedRules
        bucket_bytes() -> int

    (see `games.simulation.boards.BoardRules`). One whose actions
    are all public may declare what was dealt to whom (see
    `games.public_tree.declaration.public_tree_rules`).
    """

    def new_initial_states(self) -> np.ndarray:
        """The initial state, as an array of one."""

    def current_player(self, states: np.ndarray) -> np.ndarray:
        """Integers [n]: 0, 1, or pyspiel's CHANCE or TERMINAL."""

    def legal_actions_mask(self, states: np.ndarray) -> np.ndarray:
        """bool [n, A], the legal actions, or outcomes of chance; never terminal."""

    def chance_probabilities(self, states: np.ndarray) -> np.ndarray:
        """float64 [n, A], of each outcome; asked at chance nodes only."""

    def child(self, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """The n states after `actions`, int64 [n], one at each state."""

    def returns(self, states: np.ndarray) -> np.ndarray:
        """float64 [n], player 0's utility; asked at terminal states only."""

    def information_state(self, states: np.ndarray, player: int) -> np.ndarray:
        """Integers [n] or [n, k], equal exactly where the player's information is.

        Asked at decisions of `player`, and, for the observations of `player`, at those
        of the other player, too; where the game's states raise `pyspiel.SpielError`
        then, this must, too. Both kinds are numbered apart.
        """


class Visit(NamedTuple):
    """Some histories of one level, in order, as `visits` meets them.

    Attributes:
      depth: of all of them.
      parent: int64 [n], index of the parent history; -1 at the root.
      action: int64 [n], the action that leads here; -1 at the root.
      player: int8 [n], who acts.
      chance: float64 [n], or None if no chance node is above any of them.
      utility: float64 [n], player 0's at terminals, else 0.
      information: for each player what it knows where it acts, in order, as the game
        gives it; None if it never acts.
      observations: for each player what it has observed where the other one acts,
        likewise; None also if that was not asked for or the game does not provide it.
      dropped: int64, histories of the level above that have outcomes of chance without
        probability, which are left out.
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
    """Batched rules break a promise at one history.

    Attributes:
      history: number of the history, or its index in the states that were given.
      action: the last action, if it is not in the history; -1: none.
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
        """The same error where states were given that stand for histories.

        Args:
          history: integers [n], the histories that the states stand for.
          action: integers [n], after which actions; None: after none.
        """
        after = -1 if action is None else int(action[self.history])
        number = int(history[self.history])
        return BrokenRulesError(self._game, self._what, number, after)

    def at(self, path: list[int]) -> InvalidGameError:
        """The same error with its place: actions from the root to `history`."""
        path = path if self.action < 0 else [*path, self.action]
        place = describe_history(self._game, path)
        return InvalidGameError(
            f"{self._game}: {place} in its batched rules {self._what}"
        )


class CheckedRules(NamedTuple):
    """Batched rules whose answers are checked when they are asked.

    Methods raise InvalidGameError where an array is of another kind, and
    BrokenRulesError where what it says of one state cannot be.

    Attributes:
      game: for messages.
      rules: the game's batched rules.
    """

    game: pyspiel.Game
    rules: BatchedRules

    def players(self, states: np.ndarray) -> np.ndarray:
        """int8 [n], who acts: 0, 1, CHANCE or TERMINAL."""
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
        """bool [n, A], legal actions, or outcomes of chance."""
        mask = self.rules.legal_actions_mask(states)
        if mask.dtype != bool or mask.ndim != 2 or len(mask) != len(states):
            raise self._wrong("legal_actions_mask", mask, f"bool [{len(states)}, A]")
        return mask

    def chance_probabilities(
        self, states: np.ndarray, legal: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the probabilities of chance outcomes, float64 [n, A], 0 if not legal.

        Args:
          states: at chance nodes.
          legal: what `legal` gives, if that was asked.
        """
        legal = self.legal(states) if legal is None else legal
        answer = self.rules.chance_probabilities(states)
        answer = self._array("chance_probabilities", answer, legal.shape, "fiu")
        probabilities = np.where(legal, answer, 0.0)
        near = abs(probabilities.sum(axis=1) - 1) <= CHANCE_TOLERANCE
        if near.all() and (probabilities >= 0).all():
            return probabilities
        # False for NaN, too.
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
        """float64 [n], player 0's at ends."""
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
        """Integers [n] or [n, k], what a player knows."""
        return self._integers("information_state", states, player)

    def rows(self, method: str, states: np.ndarray, *player: int) -> np.ndarray:
        """int64 [n, k], what a method says of states in integers."""
        keys = self._integers(method, states, *player)
        return keys.reshape(len(states), -1).astype(np.int64, copy=False)

    def child(self, states: np.ndarray, action: np.ndarray) -> np.ndarray:
        """The states after actions."""
        below = self.rules.child(states, action)
        if below.dtype != states.dtype or below.shape != states.shape:
            wanted = f"{states.dtype} {list(states.shape)}, as the states are"
            raise self._wrong("child", below, wanted)
        return below

    def stuck(self, state: int, player: int) -> BrokenRulesError:
        """The error to raise where a player is to act and cannot."""
        problem = (
            f"player {player} has no legal action; a game without moves must be "
            f"terminal there; correct legal_actions_mask"
        )
        return self.broken(problem, state)

    def broken(self, problem: str, state: int) -> BrokenRulesError:
        """The error to raise where something is wrong at one of the states."""
        return BrokenRulesError(self.game, problem, state)

    def _integers(self, method: str, states: np.ndarray, *player: int) -> np.ndarray:
        """Integers [n] or [n, k], as a method gives them."""
        keys = np.asarray(getattr(self.rules, method)(states, *player))
        count, integers = len(states), keys.dtype.kind in "iu"
        if not integers or keys.ndim not in (1, 2) or len(keys) != count:
            raise self._wrong(method, keys, f"integers [{count}] or [{count}, k]")
        return keys

    def _array(
        self, method: str, answer: np.ndarray, shape: tuple[int, ...], kinds: str
    ) -> np.ndarray:
        """An array of this shape, of one of these kinds of numbers."""
        array = np.asarray(answer)
        if array.shape != shape or array.dtype.kind not in kinds:
            numbers = "float64" if "f" in kinds else "integers"
            raise self._wrong(method, array, f"{numbers} {list(shape)}")
        return array

    def _wrong(self, method: str, array: np.ndarray, wanted: str) -> InvalidGameError:
        return InvalidGameError(
            f"{one_line(self.game)}: {method} of the batched rules gives "
            f"{array.dtype} "
            f"{list(array.shape)}; it must give {wanted}"
        )


class _Live(NamedTuple):
    """States that go on, their numbers as histories, and chance as in `Visit`."""

    states: np.ndarray
    number: np.ndarray
    player: np.ndarray
    chance: np.ndarray | None


class _Children(NamedTuple):
    """States and how they were reached, as in `Visit`."""

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
) -> Iterator[Visit]:
    """Visits every history in breadth-first order, many at a time.

    Args:
      game: for messages.
      rules: its batched rules.
      observations: also ask what the player who does not act has observed.

    Yields:
      Parts of one level each.

    Raises:
      InvalidGameError: the rules are not those of a game; names the history.
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
        while level:  # taken from its end, so that memory is given back on the way
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
) -> tuple[np.ndarray, Visit]:
    """The children of some states that go on, those of each in the order of actions.

    Args:
      game: for messages.
      rules: its batched rules.
      states: some.
      player: int8 [n], who acts at them.
      observations: also ask what the player who does not act has observed.

    Returns:
      The children, and what is to be known of them: `parent` is the index in `states`,
      `chance` the probability of the move, if chance made any.
    """
    checked = CheckedRules(game, rules)
    live = _Live(states, np.arange(len(states)), player, None)
    children = _children(checked, live, slice(None))
    return children.states, _visit(checked, children, 0, 0, observations)[0]


def _children(checked: CheckedRules, block: _Live, some: slice) -> _Children:
    """The children of some states, those of each state in the order of actions."""
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
    """Actions from the root to a history, by walking to it again."""
    parents, actions, count = [], [], 0
    walk = visits(game, rules)
    while count <= history:
        visit = next(walk)
        parents.append(visit.parent)
        actions.append(visit.action)
        count += len(visit.parent)
    parent, action = np.concatenate(parents), np.concatenate(actions)
    path = []
    while parent[history] >= 0:
        path.append(int(action[history]))
        history = int(parent[history])
    return path[::-1]


def _visit(
    checked: CheckedRules,
    children: _Children,
    depth: int,
    first: int,
    observations: bool,
) -> tuple[Visit, _Live]:
    """Asks all that is to be known of some histories, numbered from `first` on."""
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
    return Visit(depth, parent, action, *attributes), live
