"""Fourth stage: bots from strings, in OpenSpiel's parameter syntax."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import pyspiel

from spiel_cr.common import memory
from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.compilation import loading
from spiel_cr.compilation.compiler import Game, as_compiled
from spiel_cr.compilation.tree import CompiledGame
from spiel_cr.partial.config import PartialConfig
from spiel_cr.players.bots import (
    OOSBot,
    PolicyBot,
    ResolvingBot,
    check_whole,
    uniform_bot,
)
from spiel_cr.players.partial_bots import PartialOOSBot, PartialResolvingBot
from spiel_cr.policies import result
from spiel_cr.resolving import resolver
from spiel_cr.solving.whole_game import solve

# What a game that bots share may take by default, as text for people.
MEMORY_LIMIT = "4GB"


def _resolving(
    game: Game, player: int, seed: int, given: dict[str, Any]
) -> pyspiel.Bot:
    growing = _growing(given, "leaf")
    if not {"iterations", "move_ms"} & set(given):
        given["move_ms"] = 100.0 if growing is None else 1000.0
    if growing is not None:
        config = resolver.ResolvingConfig(**given)
        whole = _not_compiled(game)
        return PartialResolvingBot(whole, player, config, partial=growing, seed=seed)
    config = resolver.ResolvingConfig(**given)
    return ResolvingBot(game, player, config, seed=seed)


def _growing(given: dict[str, Any], shared: str = "") -> PartialConfig | None:
    """Takes the settings of partial trees out, if there are to be any."""
    if "max_histories" not in given:
        wrong = [name for name in _PART if name in given and name != shared]
        if wrong:
            raise ValueError(
                f"{', '.join(wrong)}: only for partial trees; give max_histories, too"
            )
        return None
    return PartialConfig(**{name: given.pop(name) for name in _PART if name in given})


def _not_compiled(game: Game) -> str | pyspiel.Game:
    """The game itself, whose parts the bot compiles."""
    return game.game if isinstance(game, CompiledGame) else game


def _oos(game: Game, player: int, seed: int, given: dict[str, Any]) -> pyspiel.Bot:
    unused = {
        "max_root_share",
        "reuse_share",
        "expansion_share",
        "warmup_matches",
    } & set(given)
    growing = _growing(given)
    if growing is not None:
        wrong = sorted(unused | (set(given) - {"solver", "iterations"}))
        if wrong:
            raise ValueError(f"{', '.join(wrong)}: not with max_histories in oos")
        whole = _not_compiled(game)
        return PartialOOSBot(whole, player, partial=growing, seed=seed, **given)
    if "iterations" in given and "move_ms" not in given:
        given["move_ms"] = None
    return OOSBot(game, player, seed=seed, **given)


def _solved(game: Game, player: int, seed: int, given: dict[str, Any]) -> PolicyBot:
    check_whole(game)
    algorithm = given.pop("solver", "cfr+")
    tree = as_compiled(game)
    solution = solve(tree, algorithm, seed=seed, **given)
    return PolicyBot(player, solution.average_policy(), seed=seed)


def _saved(game: Game, player: int, seed: int, given: dict[str, Any]) -> PolicyBot:
    if "path" not in given:
        raise ValueError("bot='policy' needs a file; write policy(path=FILE.npz)")
    check_whole(game)
    tree = as_compiled(game)
    return PolicyBot(player, result.load_policy(given["path"], tree), seed=seed)


def _uniform(game: Game, player: int, seed: int, given: dict[str, Any]) -> PolicyBot:
    return uniform_bot(game, player, seed=seed)


@dataclasses.dataclass(frozen=True)
class _Kind:
    """A bot by name: its parameters with their types, and how it is made."""

    make: Callable[[Game, int, int, dict[str, Any]], pyspiel.Bot]
    parameters: dict[str, type]
    text: str


# Settings of players on partial trees, see `partial/config.py`.
_PART: dict[str, type] = {
    "max_histories": int,
    "leaf": str,
    "max_root_share": float,
    "reuse_share": float,
    "max_particles": int,
    "uniform_share": float,
    "opponent_share": float,
    "expansion_share": float,
    "warmup_matches": int,
}
_BUDGET: dict[str, type] = {"iterations": int, "move_ms": float, "init_ms": float}

BOTS: dict[str, _Kind] = {
    "resolving": _Kind(
        _resolving,
        {
            "solver": str,
            **_BUDGET,
            "gadget": str,
            "subgames": str,
            "values": str,
            "depth": int,
            "leaf": str,
            "target": bool,
            **_PART,
        },
        "continual resolving",
    ),
    "oos": _Kind(
        _oos,
        {"solver": str, **_BUDGET, "target": str, "iteration_weight": float, **_PART},
        "online outcome sampling",
    ),
    "solved": _Kind(
        _solved,
        {"solver": str, "iterations": int, "seconds": float},
        "plays the solution that a solver finds beforehand",
    ),
    "policy": _Kind(_saved, {"path": str}, "plays a policy from a file of --save"),
    "uniform": _Kind(_uniform, {}, "plays all actions alike"),
}


def describe_bots() -> str:
    """One line for each kind of bot, for help texts."""
    return "\n".join(
        f"  {name}({', '.join(kind.parameters)}): {kind.text}"
        for name, kind in BOTS.items()
    )


def prepare(
    game: Game,
    bots: Sequence[str],
    *,
    memory_limit: int | str | None = MEMORY_LIMIT,
) -> CompiledGame | pyspiel.Game:
    """Compiles a game for bots that share it, unless none of them needs it whole.

    Args:
      game: OpenSpiel game string, game, or compiled game (with `observations=True`).
      bots: strings for `load_bot`; other ones need no compiled game.
      memory_limit: bytes, or a size like "3GB"; refuse to compile larger games.

    Raises:
      ValueError: a bot needs the whole game, and that is larger than the limit; or the
        game is not for us.
      pyspiel.SpielError: OpenSpiel does not know the game.
    """
    if isinstance(game, CompiledGame):
        return game
    loaded = loading.load_game(game)
    # A bad size is refused though nothing is compiled.
    limit = None if memory_limit is None else memory.parse_size(memory_limit)
    whole = [bot for bot in bots if _needs_whole(bot)]
    if not whole:
        return loaded
    try:
        return as_compiled(loaded, observations=True, memory_limit=limit)
    except GameTooLargeError as error:
        name = whole[0].partition("(")[0].strip()
        part = ""
        if "max_histories" in BOTS[name].parameters:
            part = f", or let the bot play on a part of it: {name}(max_histories=N,...)"
        raise ValueError(
            f"bot={whole[0]!r} needs the whole game, and {error}{part}"
        ) from error


def _needs_whole(bot: str) -> bool:
    """Whether a bot plays on the compiled game; a misspelt one does not play."""
    name = bot.partition("(")[0].strip()
    return name in BOTS and name != "uniform" and "max_histories=" not in bot


def load_bot(text: str, game: Game, player: int, *, seed: int = 0) -> pyspiel.Bot:
    """Makes a bot from a string like "resolving(solver=cfr+,move_ms=100)".

    Args:
      text: name and parameters in OpenSpiel's syntax. A solver with parameters of its
        own is written with them: solver=vr-mccfr(batch=512).
      game: OpenSpiel game string, game, or compiled game; compiled with
        `observations=True` it serves several bots.
      player: the seat, 0 or 1.
      seed: of everything that the bot draws.

    Raises:
      ValueError: unknown bot or parameter, a bad value, or a game compiled in part for
        a bot that needs all of it.
    """
    try:
        given: dict[str, Any] = dict(pyspiel.game_parameters_from_string(text))
    except (pyspiel.SpielError, RuntimeError) as error:
        raise ValueError(
            f"bot={text!r} cannot be read: {error}; write name or "
            f"name(parameter=value,...)"
        ) from error
    name = given.pop("name", "")
    if name not in BOTS:
        raise ValueError(
            f"bot={text!r}: there is no bot {name!r}; choose one of {', '.join(BOTS)}"
        )
    kind = BOTS[name]
    for key, value in given.items():
        if key not in kind.parameters:
            raise ValueError(
                f"bot={text!r}: unknown parameter {key!r}; {name} takes "
                f"{', '.join(kind.parameters) or 'none'}"
            )
        given[key] = _convert(text, key, value, kind.parameters[key])
    return kind.make(game, player, seed, given)


def _convert(text: str, key: str, value: Any, to: type) -> Any:
    """Checks a parameter's type; a solver with parameters arrives as a dictionary."""
    if to is str:
        if isinstance(value, dict):
            return pyspiel.game_parameters_to_string(value)
        return str(value)
    if to is bool:
        if isinstance(value, bool):
            return value
        raise ValueError(f"bot={text!r}: {key}={value!r} must be true or false")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"bot={text!r}: {key}={value!r} must be a number")
    if to is int and value != int(value):
        raise ValueError(f"bot={text!r}: {key}={value!r} must be a whole number")
    return to(value)
