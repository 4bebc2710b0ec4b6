"""Players of users, given as `module:name` in place of a bot's or policy's name."""

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pyspiel
from open_spiel.python.policy import Policy

from spiel_cr.common import plugins
from spiel_cr.common.parameters import parse
from spiel_cr.policies.policy_adapters import is_function_of_state, is_policy

# Makes a player from a sequential game, the player of a bot, and a seed.
Maker = Callable[[pyspiel.Game, int, int], Any]


def read_plugin(text: str, label: str = "bot") -> Maker:
    """Return the function that loads or makes a player of a user.

    Args:
      text: "module:name" or "module:name(parameter=value,...)". The name is that of an
        OpenSpiel policy, a pair of policies, a function of a `state` that returns
        probabilities, a class of policies or bots, or a function that makes a player.
        Classes and functions of the last two kinds are called
        `name(game, player, seed, **parameters)`, with those of the three arguments that
        they have. Values that read as numbers, true or false are converted.
      label: Name of the argument, for errors.

    Returns:
      A function whose result is a bot of the player, or a policy of both players in any
      form that `as_policy` accepts, unless the user's function returns another object.

    Raises:
      ValueError: If `plugins.import_user_modules` did not import the module; the module
        has no such name; the object is neither a policy, nor a class of policies or
        bots, nor a function with a parameter `game`, `player` or `seed`; or the
        function does not have a parameter that the string sets.
    """
    parameters = parse(text, label)
    named = f"{label}={text!r}"
    name = parameters.name.partition(":")[2]
    maker = plugins.named_object(parameters.name, named)
    wanted = _parameters(maker)
    if is_policy(maker) or (is_function_of_state(maker) and "state" in wanted):
        parameters.convert({})
        return lambda game, player, seed: maker
    if not callable(maker):
        raise ValueError(
            f"{named} is a {type(maker).__name__}; write module:name of a "
            f"function that makes a bot, or of an OpenSpiel policy"
        )
    if not _makes_players(maker, wanted):
        raise ValueError(
            f"{named} has no parameter game, player or seed, so it cannot "
            f"make a player; write module:name of a function that makes a bot, "
            f"or an OpenSpiel policy: def {name}(game): return "
            f"MyPolicy(game, [0, 1])"
        )
    accepts_all = any(p.kind is p.VAR_KEYWORD for p in wanted.values())
    if not accepts_all:
        names = set(wanted) - {"game", "player", "seed"}
        parameters.convert(dict.fromkeys(names, str))
    values = {name: _value(value) for name, value in parameters.values.items()}

    def make(game: pyspiel.Game, player: int, seed: int) -> Any:
        arguments = {"game": game, "player": player, "seed": seed}
        passed = {k: v for k, v in arguments.items() if accepts_all or k in wanted}
        return maker(**passed, **values)

    return make


def _makes_players(maker: Any, wanted: Iterable[str]) -> bool:
    """Return whether an object, not only imported by its module, makes players."""
    if inspect.isclass(maker):
        return issubclass(maker, (pyspiel.Bot, Policy))
    return bool({"game", "player", "seed"} & set(wanted))


def _parameters(maker: Any) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(maker).parameters)
    except (TypeError, ValueError):  # of C++
        return {}


def _value(text: str) -> str | int | float | bool:
    """Return a parameter's value as a number or Boolean, if it reads as one."""
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
