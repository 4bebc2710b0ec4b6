"""Players of users, given as `module:name` in place of a bot's or policy's name."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyspiel
from open_spiel.python.policy import Policy

from spiel_cr.common import plugins
from spiel_cr.common.parameters import Parameters, parse
from spiel_cr.policies.policy_adapters import as_player, is_function_of_state

# What users write: `name(game, player, seed, **parameters)`.
Maker = Callable[..., pyspiel.Bot | Policy]


def check_plugin(text: str, label: str = "bot") -> None:
    """Raise an error if `load_plugin` cannot use the object that a string names.

    Args:
      text: The string, see `load_plugin`.
      label: Name of the argument, for errors.

    Raises:
      ValueError: If `plugins.import_user_modules` did not import the module; the module
        has no such name; the object is neither a policy, nor a class of policies or
        bots, nor a function with a parameter `game`, `player` or `seed`; or the
        function does not have a parameter that the string sets.
    """
    _find(parse(text, label))


def load_plugin(
    text: str, game: pyspiel.Game, player: int, seed: int
) -> pyspiel.Bot | Policy:
    """Load or make a bot or policy of a user.

    Args:
      text: "module:name" or "module:name(parameter=value,...)". The name is that of an
        OpenSpiel policy, a pair of policies, a function of a `state` that returns
        probabilities, a class of policies or bots, or a function that makes a player.
        Classes and functions of the last two kinds are called
        `name(game, player, seed, **parameters)`, with those of the three arguments that
        they have. Values that read as numbers, true or false are converted.
      game: The sequential game.
      player: The player whose moves a bot makes, 0 or 1.
      seed: Seed of all random choices of the player.

    Returns:
      The bot of that player, or a policy of both players.

    Raises:
      ValueError: See `check_plugin`; or if the function made an object that is neither
        a bot nor a policy, or a bot of the other player.
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
    loaded = as_player(player_object, game, player, f"bot={text!r}")
    if loaded is None:
        raise ValueError(
            f"bot={text!r} made a {type(player_object).__name__}; return a "
            f"pyspiel.Bot, a policy, a pair of policies, or a function of a state that "
            f"returns probabilities"
        )
    return loaded


def _is_policy(named: Any) -> bool:
    """Return whether an object is a policy, not a function that makes players."""
    if isinstance(named, Policy | pyspiel.Policy | Mapping | list | tuple):
        return True
    return is_function_of_state(named) and "state" in _parameters(named)


def _find(parameters: Parameters) -> Any:
    """Return the object that a string names, after a check of its parameters."""
    named = f"{parameters.kind}={parameters.text!r}"
    name = parameters.name.partition(":")[2]
    named_object = plugins.named_object(parameters.name, named)
    if _is_policy(named_object):
        names: tuple[str, ...] = ()
    elif callable(named_object):
        wanted = _parameters(named_object)
        if not _makes_players(named_object, wanted):
            raise ValueError(
                f"{named} has no parameter game, player or seed, so it cannot "
                f"make a player; write module:name of a function that makes a bot, "
                f"or an OpenSpiel policy: def {name}(game): return "
                f"MyPolicy(game, [0, 1])"
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
    """Return whether an object, not only imported by its module, makes players."""
    if inspect.isclass(maker):
        return issubclass(maker, (pyspiel.Bot, Policy))
    return bool({"game", "player", "seed"} & set(wanted))


def _parameters(maker: Maker) -> dict[str, inspect.Parameter]:
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
