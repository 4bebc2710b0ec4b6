"""Players that users wrote: `module:name` in the place of a bot's or policy's name."""

import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyspiel
from open_spiel.python.policy import Policy

from spiel_cr.common import plugins
from spiel_cr.common.parameters import Parameters, parse
from spiel_cr.policies.bot_base import check_seat
from spiel_cr.policies.policy_adapters import as_policy, is_function_of_state

# What users write: `name(game, player, seed, **parameters)`.
Maker = Callable[..., pyspiel.Bot | Policy]


def check_plugin(text: str, what: str = "bot") -> None:
    """Looks up what a string names, and refuses what `load_plugin` cannot use.

    Args:
      text: as for `load_plugin`.
      what: whose string it is, for errors.

    Raises:
      ValueError: `plugins.import_user_modules` did not import its module; no such
        name; it is neither policy, nor a class of these or of bots, nor a function that
        takes a game, player or seed; or parameters that its function has not.
    """
    _find(parse(text, what))


def load_plugin(
    text: str, game: pyspiel.Game, player: int, seed: int
) -> pyspiel.Bot | Policy:
    """A bot or policy that a user wrote.

    Args:
      text: "module:name" or "module:name(parameter=value,...)". The name is an
        OpenSpiel policy, a class of these, a pair of policies, a function of a
        `state` that returns probabilities, or another function. The latter and classes
        are called `name(game, player, seed, **parameters)`, without those of the three
        that they have not. Values are numbers, true or false where they look like that.
      game: a sequential game.
      player: the seat, 0 or 1.
      seed: of all that it draws.

    Returns:
      The bot, or the policy, which is of both seats.

    Raises:
      ValueError: As `check_plugin`; or if what it makes is neither a bot nor a
        policy, or is a bot of the other player.
    """
    found = parse(text, "bot")
    maker = _find(found)
    made: Any = maker
    if not _is_policy(maker):
        known = {"game": game, "player": player, "seed": seed}
        wanted = _parameters(maker)
        if not any(p.kind is p.VAR_KEYWORD for p in wanted.values()):
            known = {name: value for name, value in known.items() if name in wanted}
        made = maker(**known, **{k: _value(v) for k, v in found.values.items()})
    if isinstance(made, pyspiel.Bot):
        check_seat(made, player, f"bot={text!r}")
        return made
    policy = as_policy(made, game, f"bot={text!r}")
    if policy is None:
        raise ValueError(
            f"bot={text!r} made a {type(made).__name__}; return a pyspiel.Bot, a "
            f"policy, a pair of policies, or a function of a state that returns "
            f"probabilities"
        )
    return policy


def _is_policy(named: Any) -> bool:
    """Return whether a name stands for a policy, and not for what makes players."""
    if isinstance(named, Policy | pyspiel.Policy | Mapping | list | tuple):
        return True
    return is_function_of_state(named) and "state" in _parameters(named)


def _find(found: Parameters) -> Any:
    """The object that a string names; its parameters fit."""
    module_name, _, name = found.name.partition(":")
    named = f"{found.kind}={found.text!r}"
    if not plugins.was_named(module_name):
        raise ValueError(
            f"{named}: module {module_name!r} was not imported; write "
            f"module:name of a function or policy, and name its module or file with "
            f"--import (in Python: spiel_cr.common.plugins.import_user_modules)"
        )
    try:
        made: Any = importlib.import_module(module_name)
        for attribute in name.split("."):
            made = getattr(made, attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(
            f"{named}: {error}; write module:name of a function or policy, "
            f"and import its file before (--import FILE)"
        ) from error
    if _is_policy(made):
        names: tuple[str, ...] = ()
    elif callable(made):
        wanted = _parameters(made)
        if not _makes_players(made, wanted):
            raise ValueError(
                f"{named} takes none of game, player, seed, so it is not called; "
                f"write module:name of a function that makes a bot, or an OpenSpiel "
                f"policy: def {name}(game): return MyPolicy(game, [0, 1])"
            )
        if any(p.kind is p.VAR_KEYWORD for p in wanted.values()):
            return made
        names = tuple(set(wanted) - {"game", "player", "seed"})
    else:
        raise ValueError(
            f"{named} is a {type(made).__name__}; write module:name of a "
            f"function that makes a bot, or of an OpenSpiel policy"
        )
    found.convert(dict.fromkeys(names, str))
    return made


def _makes_players(made: Maker, wanted: Iterable[str]) -> bool:
    """Whether something may be called: nothing that a module merely imports."""
    if inspect.isclass(made):
        return issubclass(made, (pyspiel.Bot, Policy))
    return bool({"game", "player", "seed"} & set(wanted))


def _parameters(maker: Maker) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(maker).parameters)
    except (TypeError, ValueError):  # of C++
        return {}


def _value(text: str) -> str | int | float | bool:
    """A parameter's value as what it looks like."""
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
