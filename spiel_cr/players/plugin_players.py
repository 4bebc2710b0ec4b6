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


def check_plugin(text: str, label: str = "bot") -> None:
    """Looks up what a string names, and refuses what `load_plugin` cannot use.

    Args:
      text: as for `load_plugin`.
      label: whose string it is, for errors.

    Raises:
      ValueError: `plugins.import_user_modules` did not import its module; no such
        name; it is neither policy, nor a class of these or of bots, nor a function that
        takes a game, player or seed; or parameters that its function has not.
    """
    _find(parse(text, label))


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
    parameters = parse(text, "bot")
    maker = _find(parameters)
    player_object: Any = maker
    if not _is_policy(maker):
        arguments = {"game": game, "player": player, "seed": seed}
        wanted = _parameters(maker)
        if not any(p.kind is p.VAR_KEYWORD for p in wanted.values()):
            arguments = {
                name: value for name, value in arguments.items() if name in wanted
            }
        player_object = maker(
            **arguments, **{k: _value(v) for k, v in parameters.values.items()}
        )
    if isinstance(player_object, pyspiel.Bot):
        check_seat(player_object, player, f"bot={text!r}")
        return player_object
    policy = as_policy(player_object, game, f"bot={text!r}")
    if policy is None:
        raise ValueError(
            f"bot={text!r} made a {type(player_object).__name__}; return a "
            f"pyspiel.Bot, a policy, a pair of policies, or a function of a state that "
            f"returns probabilities"
        )
    return policy


def _is_policy(named: Any) -> bool:
    """Return whether a name stands for a policy, and not for what makes players."""
    if isinstance(named, Policy | pyspiel.Policy | Mapping | list | tuple):
        return True
    return is_function_of_state(named) and "state" in _parameters(named)


def _find(parameters: Parameters) -> Any:
    """The object that a string names; its parameters fit."""
    module_name, _, name = parameters.name.partition(":")
    named = f"{parameters.kind}={parameters.text!r}"
    if not plugins.was_named(module_name):
        raise ValueError(
            f"{named}: module {module_name!r} was not imported; write "
            f"module:name of a function or policy, and name its module or file with "
            f"--import (in Python: spiel_cr.common.plugins.import_user_modules)"
        )
    try:
        named_object: Any = importlib.import_module(module_name)
        for attribute in name.split("."):
            named_object = getattr(named_object, attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(
            f"{named}: {error}; write module:name of a function or policy, "
            f"and import its file before (--import FILE)"
        ) from error
    if _is_policy(named_object):
        names: tuple[str, ...] = ()
    elif callable(named_object):
        wanted = _parameters(named_object)
        if not _makes_players(named_object, wanted):
            raise ValueError(
                f"{named} takes none of game, player, seed, so it is not called; "
                f"write module:name of a function that makes a bot, or an OpenSpiel "
                f"policy: def {name}(game): return MyPolicy(game, [0, 1])"
            )
        if any(p.kind is p.VAR_KEYWORD for p in wanted.values()):
            return named_object
        names = tuple(set(wanted) - {"game", "player", "seed"})
    else:
        raise ValueError(
            f"{named} is a {type(named_object).__name__}; write module:name of a "
            f"function that makes a bot, or of an OpenSpiel policy"
        )
    parameters.convert(dict.fromkeys(names, str))
    return named_object


def _makes_players(maker: Maker, wanted: Iterable[str]) -> bool:
    """Whether something may be called: nothing that a module merely imports."""
    if inspect.isclass(maker):
        return issubclass(maker, (pyspiel.Bot, Policy))
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
