"""Vectorised games: a game's own rules on arrays of states, visited level by level.

OpenSpiel visits one state at a time, which takes a game written in Python tens of
microseconds. A game that can play its rules on many states at once says so by a method

    def vectorised(self) -> VectorisedGame | None: ...

of its `pyspiel.Game` class; `compile_game` then asks that object instead of the states.
None means that these parameters are not supported. `vectorised_check.check` compares
both ways. docs/vectorised-games.md has a complete example.
"""

import contextlib
from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np
import pyspiel

from spiel_cr.compilation.tree import CHANCE, TERMINAL

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
    asked of OpenSpiel's states, one by one, and

        bucket_key(states, player) -> np.ndarray

    with integers [n] or [n, k] that are equal where `player`, who acts, is to play
    alike when it forgets things (see `cfr.abstraction`).
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
    """

    depth: int
    parent: np.ndarray
    action: np.ndarray
    player: np.ndarray
    chance: np.ndarray | None
    utility: np.ndarray
    information: tuple[np.ndarray | None, np.ndarray | None]
    observations: tuple[np.ndarray | None, np.ndarray | None]


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


def of_game(game: pyspiel.Game) -> VectorisedGame | None:
    """The game's vectorised game, if it has one for these parameters."""
    make = getattr(game, "vectorised", None)
    rules: VectorisedGame | None = make() if callable(make) else None
    return rules


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
    """
    root = np.full(1, -1)
    start = _Children(rules.new_initial_states(), root, root, None)
    visit, live = _visit(game, rules, start, 0, 0, observations)
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
                children = _children(game, rules, block, some)
                visit, live = _visit(game, rules, children, depth, done, observations)
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
    flat = np.flatnonzero(mask)  # several times faster than np.nonzero
    where = flat // mask.shape[1]
    action = flat - where * mask.shape[1]
    moves = np.zeros(len(states), bool)
    moves[where] = True
    if not moves.all():
        raise ValueError(
            f"{game}: player {player[~moves][0]} has no legal action in a state of its "
            f"vectorised game; a game without moves must be terminal there"
        )
    chance = None if block.chance is None else block.chance[some][where]
    draws = player == CHANCE
    if draws.any():
        odds = rules.chance_probabilities(states[draws])
        if odds.shape != (np.count_nonzero(draws), mask.shape[1]):
            wanted = f"float64 [{np.count_nonzero(draws)}, {mask.shape[1]}]"
            raise _wrong(game, "chance_probabilities", odds, wanted)
        total = np.where(mask[draws], odds, 0.0).sum(axis=1)
        if not np.allclose(total, 1.0, rtol=0, atol=1e-9):
            raise ValueError(
                f"{game}: chance_probabilities of the legal outcomes must sum to 1; a "
                f"state of the vectorised game has {total[np.argmax(abs(total - 1))]}"
            )
        every = np.ones(mask.shape)
        every[draws] = odds
        factor = every[where, action]
        chance = factor if chance is None else chance * factor
    below = rules.child(states[where], action)
    if below.dtype != states.dtype or below.shape != (len(where), *states.shape[1:]):
        wanted = f"{states.dtype} {[len(where), *states.shape[1:]]}"
        raise _wrong(game, "child", below, f"{wanted}, as the states are")
    return _Children(below, block.number[some][where], action, chance)


def _visit(
    game: pyspiel.Game,
    rules: VectorisedGame,
    children: _Children,
    depth: int,
    first: int,
    observations: bool,
) -> tuple[Visit, _Live]:
    """Asks all that is to be known of some histories, numbered from `first` on."""
    states, parent, action, chance = children
    given = np.asarray(rules.current_player(states))
    if given.shape != (len(states),) or given.dtype.kind not in "iu":
        raise _wrong(game, "current_player", given, f"integers [{len(states)}]")
    player = given.astype(np.int8)
    over = player == TERMINAL
    known = over | (player == 0) | (player == 1) | (player == CHANCE)
    if not known.all():
        raise ValueError(
            f"{game}: current_player of the vectorised game gives {given[~known][0]}; "
            f"only players 0 and 1, chance and terminal states are supported"
        )
    utility = np.zeros(len(states))
    if over.any():
        utility[over] = rules.returns(states[over])
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
) -> ValueError:
    return ValueError(
        f"{game}: {method} of the vectorised game gives {array.dtype} "
        f"{list(array.shape)}; it must give {wanted}"
    )
