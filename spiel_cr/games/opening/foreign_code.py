"""Faults in games, policies and bots that users wrote, reported as such.

`diagnosis` turns an exception into an error about the user's code, if that is where the
fault is. There are two kinds of faults. The first one raised the exception: the
traceback passes through the user's code. The second one returned an invalid value,
on which other code failed later: the game is then examined state by state, until a
method returns a value that it must not return.

Public functions of `spiel_cr`, worker processes and the command line call `diagnosis`
for all exceptions that leave them. Valid games therefore run without further checks,
except that loading a user's game examines a few of its histories.
"""

import contextlib
import functools
import importlib
import numbers
import os
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, FrameType
from typing import Any, ParamSpec, TypeVar

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.common import plugins
from spiel_cr.common.errors import InvalidGameError, InvalidPolicyError
from spiel_cr.common.messages import one_line
from spiel_cr.games.histories import CHANCE, TERMINAL
from spiel_cr.games.opening import game_checks
from spiel_cr.games.opening.game_checks import describe_history

_P = ParamSpec("_P")
_R = TypeVar("_R")
# Histories at which a game is examined after an error.
_MOST_EXAMINED = 100_000
_LONGEST_VALUE = 80
_LARGEST_ACTION = 2**31 - 1
_LIBRARIES = tuple(
    os.path.join(sysconfig.get_paths()[name], "")
    for name in ("stdlib", "purelib", "platlib")
)
_FRAMEWORK = (*plugins.PACKAGES, "open_spiel")
_OF_MACHINE = (MemoryError, OSError)


def reporting(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Decorate a public function so that it reports faults in users' code as such.

    Functions that JAX compiles during the call are cached in files.
    """

    @functools.wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            with _caching():
                return function(*args, **kwargs)
        except BaseException as error:
            if (fault := diagnosis(error)) is None:
                raise
            raise fault from error

    return call


def _caching() -> contextlib.AbstractContextManager[None]:
    """Return `compilation_cache.caching`, unless the function does not use JAX."""
    if "jax" not in sys.modules:  # Its import would take a second.
        return contextlib.nullcontext()
    return importlib.import_module("spiel_cr.common.compilation_cache").caching()


def diagnosis(error: BaseException) -> ValueError | None:
    """Return the error to raise if the fault is in a user's code.

    Args:
      error: An exception with its traceback.

    Returns:
      InvalidGameError for games, InvalidPolicyError for policies and bots. None if the
      exception is about something else, such as an argument or the machine.
    """
    if isinstance(error, KeyboardInterrupt) and not plugins.is_raised(error):
        return None  # a signal
    if isinstance(error, ValueError) and plugins.is_deliberate(error):
        return None
    frames = [(frame, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    if not isinstance(error, MemoryError):
        for number, (frame, _) in enumerate(frames):
            if number and _is_foreign(frame):
                return _raised(error, frames, number)
    if not isinstance(error, Exception) or isinstance(error, _OF_MACHINE):
        return None
    game = next(_games(frame for frame, _ in reversed(frames)), None)
    return None if game is None else examine(game)


plugins.diagnoses.append(diagnosis)


def _raised(
    error: BaseException, frames: list[tuple[FrameType, int]], number: int
) -> ValueError | None:
    """Return the error about an exception that passed through a user's code.

    Args:
      error: The exception.
      frames: Frames of its traceback, with line numbers.
      number: Index of the first frame of the user's code.
    """
    frame, caller = frames[number][0], frames[number - 1][0]
    owner = _owner(frame)
    package = ".".join(str(caller.f_globals.get("__name__")).split(".")[:2])
    is_player = isinstance(owner, pyspiel.Bot | openspiel_policy.Policy)
    is_player |= package in ("spiel_cr.policies", "spiel_cr.players")
    is_game = isinstance(owner, pyspiel.Game | pyspiel.State)
    is_game |= owner is not None and package == "spiel_cr.games"
    if not (is_game or is_player):
        return None
    if owner is None and isinstance(error, OSError):
        return None
    inner = next(each for each in reversed(frames) if _is_foreign(each[0]))
    file, line = inner[0].f_code.co_filename, inner[1]
    cause = f"{type(error).__name__}: {error}".rstrip(": ")
    values = frame.f_locals.values()
    state = next((each for each in values if isinstance(each, pyspiel.State)), None)
    kind = InvalidGameError if is_game else InvalidPolicyError
    return kind(
        f"{_place(state, frame)}{_called(frame)} raised {one_line(cause)} ({file}, "
        f"line {line}), which is not part of spiel_cr; correct it there"
    )


def _owner(frame: FrameType) -> Any:
    """Return the object whose method a frame executes; None in a function."""
    names = frame.f_code.co_varnames[:1]
    return frame.f_locals.get("self") if names == ("self",) else None


def _is_foreign(frame: FrameType) -> bool:
    """Return whether a frame executes code of a user, and not of a library."""
    name = str(frame.f_globals.get("__name__"))
    package = name.partition(".")[0]
    if package in _FRAMEWORK:
        return False
    if package in plugins.user_modules:
        return True
    return not frame.f_code.co_filename.startswith((*_LIBRARIES, "<frozen", "<string"))


def is_foreign_game(game: object) -> bool:
    """Return whether a game is an object of a user's class."""
    package = type(game).__module__.partition(".")[0]
    return isinstance(game, pyspiel.Game) and package not in (*_FRAMEWORK, "pyspiel")


def _games(frames: Iterator[FrameType]) -> Iterator[pyspiel.Game]:
    """Yield games of users' classes to which local variables of frames refer."""
    for frame in frames:
        for value in tuple(frame.f_locals.values()):
            owned = getattr(value, "game", None)
            for game in (value, owned, getattr(owned, "game", None)):
                if is_foreign_game(game):
                    assert isinstance(game, pyspiel.Game)
                    yield game


def _called(frame: FrameType) -> str:
    """Return the call of a frame as text, with the arguments that are numbers."""
    code = frame.f_code
    names = code.co_varnames[: code.co_argcount]
    values = [frame.f_locals.get(name) for name in names]
    shown = ", ".join(str(v) for v in values if isinstance(v, numbers.Number))
    return f"{code.co_qualname}({shown})"


def _place(state: pyspiel.State | None, frame: FrameType | None = None) -> str:
    """Return the game and the history of a state, as the beginning of a message."""
    if state is None:
        game = next(_games(iter([frame] if frame else [])), None)
        return "" if game is None else f"{_name(game)}: "
    game = state.get_game()
    return f"{_name(game)}: {describe_history(game, state.history())} "


def _name(game: pyspiel.Game) -> str:
    return one_line(game.get_type().short_name)


def examine(game: pyspiel.Game, most: int = _MOST_EXAMINED) -> InvalidGameError | None:
    """Examine what a game's methods return, and return the error about the first fault.

    Args:
      game: A sequential game that is written in Python.
      most: Number of histories to examine, depth-first.
    """
    try:
        state = _Examined(game, None).call("new_initial_state")
        if not isinstance(state, pyspiel.State):
            raise _Examined(game, None).wrong("new_initial_state", state, "a State")
        stack = [state]
        while stack and (most := most - 1) >= 0:
            state = stack.pop()
            stack += reversed(_Examined(game, state).children())
    except InvalidGameError as fault:
        return fault
    return None


class _Examined:
    """A game at one of its states, whose methods are called and checked."""

    def __init__(self, game: pyspiel.Game, state: pyspiel.State | None) -> None:
        self._game, self._state = game, state
        self._owner = game if state is None else state

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method; an exception becomes an error about the game."""
        try:
            return getattr(self._owner, method)(*arguments)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) and not plugins.is_raised(error):
                raise
            values = getattr(self._state, "__dict__", {}).values()
            kept = any(isinstance(value, pyspiel.Game) for value in values)
            if isinstance(error, pyspiel.SpielError) and kept:
                raise self._kept() from error
            raise self.wrong(method, error, "") from error

    def wrong(self, method: str, value: Any, requirement: str) -> InvalidGameError:
        """Return the error about a method.

        Args:
          method: Name of the method.
          value: The value that it returned, or the exception that it raised.
          requirement: Description of a valid return value, for the message.
        """
        if isinstance(value, BaseException):
            entries = traceback.walk_tb(value.__traceback__)
            raised = [(f.f_code.co_filename, n) for f, n in entries if _is_foreign(f)]
            text = f"raised {type(value).__name__}: {one_line(value)}"
            where = self._where(method, raised)
        else:
            text, where = f"returned {_shown(value)}", self._where(method)
        needed = f"it must return {requirement}; " if requirement else ""
        start = _place(self._state) or f"{_name(self._game)}: "
        return InvalidGameError(
            f"{start}{type(self._owner).__name__}.{method} {text} ({where}); "
            f"{needed}correct the game"
        )

    def _where(self, method: str, raised: Sequence[tuple[str, int]] = ()) -> str:
        """Return the file and the line of a method, or of the last place in a list."""
        code = getattr(getattr(type(self._owner), method, None), "__code__", None)
        if raised:
            file, line = raised[-1]
        elif isinstance(code, CodeType):
            file, line = code.co_filename, code.co_firstlineno
        else:
            return type(self._owner).__module__
        return f"{file}, line {line}"

    def _check(self, method: str, check: Callable[..., _R], *arguments: Any) -> _R:
        """Call a check of `game_checks`, whose error then names method and line."""
        try:
            return check(self._state, *arguments)
        except InvalidGameError as error:
            owner = type(self._owner).__name__
            place = f"{owner}.{method}, {self._where(method)}"
            raise InvalidGameError(f"{error} ({place})") from error

    def _kept(self) -> InvalidGameError:
        name = type(self._state).__name__
        return InvalidGameError(
            f"{_name(self._game)}: {name} keeps its game in an attribute, which "
            f"OpenSpiel copies with each state, by the game's registered name; "
            f"register the game, or do not keep it in the state (use self.get_game())"
        )

    def _needs(self, method: str, value: Any, valid: bool, requirement: str) -> None:
        if not valid:
            raise self.wrong(method, value, requirement)

    def children(self) -> list[pyspiel.State]:
        """Check all methods at the state, and return the states that follow it."""
        state = self._state
        assert state is not None
        player = self.call("current_player")
        valid = isinstance(player, numbers.Integral | pyspiel.PlayerId)
        valid = valid and int(player) in (0, 1, CHANCE, TERMINAL)
        requirement = f"0, 1, {CHANCE} (chance) or {TERMINAL} (the end)"
        self._needs("current_player", player, valid, requirement)
        over = self.call("is_terminal")
        valid = isinstance(over, bool | np.bool_ | int)
        self._needs("is_terminal", over, valid, "True or False")
        if int(player) == TERMINAL:
            self._check_returns()
            return []
        actions = (
            self._outcomes() if int(player) == CHANCE else self._decision(int(player))
        )
        children = []
        for action in actions:
            child = self.call("clone")
            try:
                child.apply_action(int(action))
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):
                    raise
                raise self.wrong("_apply_action", error, "") from error
            children.append(child)
        return children

    def _check_returns(self) -> None:
        values = self.call("returns")
        valid = _is_list(values) and all(_is_number(value) for value in values)
        self._needs("returns", values, valid, "two numbers, one for each player")
        self._check("returns", game_checks.checked_returns, values)

    def _outcomes(self) -> list[int]:
        method = "chance_outcomes"
        outcomes = self.call(method)
        valid = _is_list(outcomes) and all(
            _is_list(each)
            and len(each) == 2
            and _is_action(each[0])
            and _is_number(each[1])
            for each in outcomes
        )
        requirement = "a list of pairs: the number of an outcome and its probability"
        self._needs(method, outcomes, valid, requirement)
        check = game_checks.possible_outcomes
        return [int(action) for action, _ in self._check(method, check, outcomes)]

    def _decision(self, player: int) -> list[int]:
        text = self.call("information_state_string", player)
        self._needs("information_state_string", text, isinstance(text, str), "a string")
        overrides = hasattr(type(self._owner), "_legal_actions")
        method = "_legal_actions" if overrides else "legal_actions"
        actions = self.call(method, player)
        valid = _is_list(actions) and all(map(_is_action, actions))
        valid = valid and len(set(actions)) == len(actions)
        requirement = "a list of different whole numbers from 0 to 2^31 - 1"
        self._needs(method, actions, valid, requirement)
        if not len(actions):
            self._check(method, _stuck, player)
        return [int(action) for action in actions]


def _stuck(state: pyspiel.State, player: int) -> None:
    raise game_checks.no_action(state, player)


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple | range) or (
        isinstance(value, np.ndarray) and value.ndim > 0
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real)


def _is_action(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and 0 <= int(value) <= _LARGEST_ACTION


def _shown(value: Any) -> str:
    """Return a short text of any value, also of one that cannot be printed."""
    try:
        text = one_line(repr(value))
    except Exception:
        text = f"an object of type {type(value).__name__}"
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."
