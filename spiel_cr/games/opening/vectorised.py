"""Vectorised games: a game's own rules on arrays of states, visited level by level.

OpenSpiel visits one state at a time, which takes a game written in Python tens of
microseconds. A game that can play its rules on many states at once says so by a method

    def vectorised(self) -> VectorisedGame | None: ...

of its `pyspiel.Game` class; `compile_game` then asks that object instead of the states.
None means that these parameters are not supported. `vectorised_check.check` compares
both ways. docs/vectorised-games.md has a complete example.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator
from importlib import metadata
from typing import NamedTuple, Protocol

import numpy as np
import pyspiel

from spiel_cr.common.errors import InvalidGameError
from spiel_cr.games.histories import CHANCE, TERMINAL
from spiel_cr.games.opening.game_checks import CHANCE_TOLERANCE, describe_history

# States taken at once: few enough that their children stay in a processor's cache.
_CHUNK = 1 << 14


class VectorisedGame(Protocol):
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
    alike when it forgets things (see `solvers.cfr.abstraction`). One whose actions are
    all public may declare what was dealt to whom (see `games.signals.declaring.rules`).
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
    information: tuple[np.ndarray | None, np.ndarray | None]
    observations: tuple[np.ndarray | None, np.ndarray | None]
    dropped: np.ndarray


class BrokenRulesError(InvalidGameError):
    """Rules on arrays break a promise at one history.

    Attributes:
      history: number of the history, or its index in the states that were given.
      action: the last action, if it is not in the history; -1: none.
      what: what is wrong there, with the value, and the remedy.
    """

    def __init__(
        self, game: pyspiel.Game, history: int, action: int, what: str
    ) -> None:
        after = "" if action < 0 else f" after action {action}"
        super().__init__(f"{game}: in a state of its vectorised game{after} {what}")
        self.history, self.action, self.what = history, action, what

    def at(self, game: pyspiel.Game, path: list[int]) -> InvalidGameError:
        """The same error with its place.

        Args:
          game: a sequential game.
          path: actions from the root to `history`.
        """
        path = path if self.action < 0 else [*path, self.action]
        place = describe_history(game, path)
        return InvalidGameError(f"{game}: {place} in its vectorised game {self.what}")


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


def of_game(game: pyspiel.Game) -> VectorisedGame | None:
    """The game's vectorised game, if it has one for these parameters.

    A game that OpenSpiel bundles has no method `vectorised`. For such games there are
    entry points of the group `spiel_cr.vectorised`, named after the game: functions of
    the loaded game that return its vectorised game or None.
    """
    make = getattr(game, "vectorised", None)
    if callable(make):
        own: VectorisedGame | None = make()
        return own
    bundled = _bundled(_short_name(game))
    return None if bundled is None else bundled(game)


def _short_name(game: pyspiel.Game) -> str:
    """Of a game, or of the one that was made turn-based."""
    name: str = game.get_type().short_name
    if name == "turn_based_simultaneous_game":
        name = game.get_parameters()["game"]["name"]
    return name


@functools.cache
def _bundled(name: str) -> Callable[[pyspiel.Game], VectorisedGame | None] | None:
    """What makes the vectorised game of a bundled game, if somebody wrote it."""
    for point in metadata.entry_points(group="spiel_cr.vectorised", name=name):
        make: Callable[[pyspiel.Game], VectorisedGame | None] = point.load()
        return make
    return None


def visits(
    game: pyspiel.Game, rules: VectorisedGame, *, observations: bool = False
) -> Iterator[Visit]:
    """Visits every history in breadth-first order, many at a time.

    Args:
      game: for messages.
      rules: its vectorised game.
      observations: also ask what the player who does not act has observed.

    Yields:
      Parts of one level each.

    Raises:
      InvalidGameError: the rules are not those of a game; names the history.
    """
    root = np.full(1, -1)
    start = _Children(rules.new_initial_states(), root, root, None, root[:0])
    try:
        visit, live = _visit(game, rules, start, 0, 0, observations)
    except BrokenRulesError as error:
        raise error.at(game, []) from error
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
                    children = _children(game, rules, block, some)
                    visit, live = _visit(
                        game, rules, children, depth, done, observations
                    )
                except BrokenRulesError as error:
                    path = _path_to(game, rules, error.history)
                    raise error.at(game, path) from error
                done += len(visit.parent)
                yield visit
                if len(live.number):
                    following.append(live)
        level = following


def below(
    game: pyspiel.Game,
    rules: VectorisedGame,
    states: np.ndarray,
    player: np.ndarray,
    *,
    observations: bool = False,
) -> tuple[np.ndarray, Visit]:
    """The children of some states that go on, those of each in the order of actions.

    Args:
      game: for messages.
      rules: its vectorised game.
      states: some.
      player: int8 [n], who acts at them.
      observations: also ask what the player who does not act has observed.

    Returns:
      The children, and what is to be known of them: `parent` is the index in `states`,
      `chance` the probability of the move, if chance made any.
    """
    live = _Live(states, np.arange(len(states)), player, None)
    children = _children(game, rules, live, slice(None))
    return children.states, _visit(game, rules, children, 0, 0, observations)[0]


def _children(
    game: pyspiel.Game, rules: VectorisedGame, block: _Live, some: slice
) -> _Children:
    """The children of some states, those of each state in the order of actions."""
    states, player = block.states[some], block.player[some]
    mask = rules.legal_actions_mask(states)
    if mask.dtype != bool or mask.ndim != 2 or len(mask) != len(states):
        raise _wrong(game, "legal_actions_mask", mask, f"bool [{len(states)}, A]")
    number = block.number[some]
    draws = player == CHANCE
    odds = dropped = np.zeros(0)
    if draws.any():
        legal = mask[draws]
        odds = _odds(game, rules, states[draws], legal, number[draws])
        if (impossible := legal & (odds == 0)).any():
            mask = mask.copy()
            dropped = number[draws][impossible.any(axis=1)]
            mask[draws] = odds > 0
    flat = np.flatnonzero(mask)  # several times faster than np.nonzero
    where = flat // mask.shape[1]
    action = flat - where * mask.shape[1]
    moves = np.zeros(len(states), bool)
    moves[where] = True
    if not moves.all():
        odd = int(np.argmin(moves))
        raise _no_action(game, int(number[odd]), int(player[odd]))
    chance = None if block.chance is None else block.chance[some][where]
    if draws.any():
        every = np.ones(mask.shape)
        every[draws] = odds
        factor = every[where, action]
        chance = factor if chance is None else chance * factor
    below = rules.child(states[where], action)
    if below.dtype != states.dtype or below.shape != (len(where), *states.shape[1:]):
        wanted = f"{states.dtype} {[len(where), *states.shape[1:]]}"
        raise _wrong(game, "child", below, f"{wanted}, as the states are")
    return _Children(below, number[where], action, chance, dropped.astype(np.int64))


def _odds(
    game: pyspiel.Game,
    rules: VectorisedGame,
    states: np.ndarray,
    mask: np.ndarray,
    number: np.ndarray,
) -> np.ndarray:
    """float64 [n, A], the checked odds of chance, 0 where an outcome is not legal."""
    given = np.asarray(rules.chance_probabilities(states))
    if given.shape != mask.shape or given.dtype.kind not in "fiu":
        wanted = f"float64 {list(mask.shape)}"
        raise _wrong(game, "chance_probabilities", given, wanted)
    some = mask.any(axis=1)
    if not some.all():
        raise _no_action(game, int(number[np.argmin(some)]), CHANCE)
    odds = np.where(mask, given, 0.0)
    fine = (odds >= 0).all(axis=1)  # false for NaN, too
    if not fine.all():
        odd = int(np.argmin(fine))
        outcome = int(np.argmin(odds[odd] >= 0))
        raise BrokenRulesError(
            *(game, int(number[odd]), -1),
            f"chance outcome {outcome} has probability {odds[odd, outcome]}; a "
            f"probability must lie in [0, 1]; correct chance_probabilities",
        )
    total = odds.sum(axis=1)
    fine = abs(total - 1) <= CHANCE_TOLERANCE
    if not fine.all():
        odd = int(np.argmin(fine))
        raise BrokenRulesError(
            *(game, int(number[odd]), -1),
            f"the probabilities of chance must sum to 1, and those of the legal "
            f"outcomes sum to {total[odd]}; correct chance_probabilities",
        )
    return odds


def _no_action(game: pyspiel.Game, history: int, player: int) -> BrokenRulesError:
    return BrokenRulesError(
        *(game, history, -1),
        f"player {player} has no legal action; a game without moves must be terminal "
        f"there; correct legal_actions_mask",
    )


def _path_to(game: pyspiel.Game, rules: VectorisedGame, history: int) -> list[int]:
    """Actions from the root to a history, by walking to it again."""
    parents, actions, known = [], [], 0
    walk = visits(game, rules)
    while known <= history:
        visit = next(walk)
        parents.append(visit.parent)
        actions.append(visit.action)
        known += len(visit.parent)
    parent, action = np.concatenate(parents), np.concatenate(actions)
    path = []
    while parent[history] >= 0:
        path.append(int(action[history]))
        history = int(parent[history])
    return path[::-1]


def _visit(
    game: pyspiel.Game,
    rules: VectorisedGame,
    children: _Children,
    depth: int,
    first: int,
    observations: bool,
) -> tuple[Visit, _Live]:
    """Asks all that is to be known of some histories, numbered from `first` on."""
    states, parent, action, chance, dropped = children
    given = np.asarray(rules.current_player(states))
    if given.shape != (len(states),) or given.dtype.kind not in "iu":
        raise _wrong(game, "current_player", given, f"integers [{len(states)}]")
    player = given.astype(np.int8)
    over = player == TERMINAL
    known = over | (player == 0) | (player == 1) | (player == CHANCE)
    if not (known & (given == player)).all():
        odd = int(np.argmin(known & (given == player)))
        raise BrokenRulesError(
            *(game, int(parent[odd]), int(action[odd])),
            f"current_player gives {given[odd]}; only players 0 and 1, chance "
            f"({CHANCE}) and the end of the game ({TERMINAL}) are supported; correct "
            f"current_player",
        )
    utility = np.zeros(len(states))
    if over.any():
        worth = np.asarray(rules.returns(states[over]))
        if worth.shape != (np.count_nonzero(over),) or worth.dtype.kind not in "fiu":
            wanted = f"float64 [{np.count_nonzero(over)}]"
            raise _wrong(game, "returns", worth, wanted)
        utility[over] = worth
        if not (finite := np.isfinite(utility)).all():
            odd = int(np.argmin(finite))
            raise BrokenRulesError(
                *(game, int(parent[odd]), int(action[odd])),
                f"player 0's utility is {utility[odd]}; payoffs must be finite "
                f"numbers; correct returns",
            )
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
        information[actor] = _keys(game, rules, acting, actor)
        if observations:
            with contextlib.suppress(pyspiel.SpielError):
                observed[1 - actor] = _keys(game, rules, acting, 1 - actor)
    visit = Visit(
        *(depth, parent, action, player, chance, utility),
        (information[0], information[1]),
        (observed[0], observed[1]),
        dropped,
    )
    return visit, live


def _keys(
    game: pyspiel.Game, rules: VectorisedGame, states: np.ndarray, player: int
) -> np.ndarray:
    """What a player knows, checked."""
    keys = rules.information_state(states, player)
    wrong = keys.dtype.kind not in "iu" or keys.ndim not in (1, 2)
    if wrong or len(keys) != len(states):
        raise _wrong(game, "information_state", keys, f"integers [{len(states)}, k]")
    return keys


def _wrong(
    game: pyspiel.Game, method: str, array: np.ndarray, wanted: str
) -> InvalidGameError:
    return InvalidGameError(
        f"{game}: {method} of the vectorised game gives {array.dtype} "
        f"{list(array.shape)}; it must give {wanted}"
    )
