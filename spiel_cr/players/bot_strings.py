"""Bots from strings, in OpenSpiel's parameter syntax."""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyspiel

from spiel_cr.cfr.config import parse_any, parse_sampled
from spiel_cr.common.checks import check_iterations
from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.common.memory import Limit, parse_limit
from spiel_cr.common.parameters import parse, table_of
from spiel_cr.compilation import loading
from spiel_cr.compilation.compiler import Game, as_compiled
from spiel_cr.compilation.tree import CompiledGame
from spiel_cr.deep.policy import check_file, load_deep_policy
from spiel_cr.partial.config import PartialConfig
from spiel_cr.players import bots
from spiel_cr.players.bots import PolicyBot
from spiel_cr.players.honest import HonestPolicy
from spiel_cr.players.iterate_bot import IterateBot
from spiel_cr.players.own_players import check_own, is_own, load_own
from spiel_cr.players.partial_bots import (
    DEFAULT_GADGET,
    DEFAULT_SOLVER,
    PartialOOSBot,
    PartialResolvingBot,
)
from spiel_cr.players.resolving_seats import suits_signals
from spiel_cr.resolving.config import ResolvingConfig
from spiel_cr.signals import finding
from spiel_cr.solving.policy_files import (
    check_policy_file,
    load_policy,
    needs_compiled,
)
from spiel_cr.solving.whole_game import check_arguments, solve

# What a game that bots share may take by default, as text for people.
MEMORY_LIMIT = "4GB"

_RESOLVING = table_of(ResolvingConfig)
_PARTIAL = table_of(PartialConfig)
_OOS = {name: _RESOLVING[name] for name in ("solver", "iterations", "move_ms")}
_OOS |= {"init_ms": float, "target": str, "iteration_weight": float}
_OOS |= {"forget_matches": bool}
# What a sampler on partial trees makes use of: it has no clock.
_PARTIAL_OOS = {"solver", "iterations", "max_histories", "leaf"}
_PARTIAL_OOS |= {"max_particles", "uniform_share", "opponent_share"}


def _partial(given: dict[str, Any], names: Mapping[str, Any]) -> PartialConfig | None:
    """Takes the settings of partial trees out; None: the game is compiled whole."""
    if "max_histories" in given:
        mine = [name for name in _PARTIAL if name in given]
        return PartialConfig(**{name: given.pop(name) for name in mine})
    if wrong := [name for name in given if name not in names]:
        raise ValueError(
            f"{', '.join(f'{name}={given[name]!r}' for name in wrong)}: only for "
            f"partial trees; give max_histories, too"
        )
    return None


# Bots that never ask for the compiled game.
_NEED_NO_TREE = ("uniform", "honest", "deep")

# Makes a bot of a game, a seat and a seed.
_Make = Callable[[Game, int, int], pyspiel.Bot]


def _resolving(given: dict[str, Any]) -> _Make:
    partial = _partial(given, _RESOLVING)
    if not {"iterations", "move_ms"} & set(given):
        given["move_ms"] = 100.0 if partial is None else 1000.0
    if partial is not None:
        given.setdefault("solver", DEFAULT_SOLVER)
        given.setdefault("gadget", DEFAULT_GADGET)
    config = ResolvingConfig(**given)
    if partial is None:
        return lambda game, player, seed: bots.ResolvingBot(
            game, player, config, seed=seed
        )
    partial.check(config)
    return lambda game, player, seed: PartialResolvingBot(
        bots.plain_game(game), player, config, partial=partial, seed=seed
    )


def _oos(given: dict[str, Any]) -> _Make:
    if "max_histories" in given and (wrong := sorted(set(given) - _PARTIAL_OOS)):
        said = ", ".join(f"{name}={given[name]!r}" for name in wrong)
        raise ValueError(
            f"{said}: oos takes no such parameter together with max_histories; leave "
            f"one of them out"
        )
    partial = _partial(given, _OOS)
    if partial is not None:
        if "solver" in given:
            parse_sampled(given["solver"])
        check_iterations(given.get("iterations", 1))
        return lambda game, player, seed: PartialOOSBot(
            bots.plain_game(game), player, partial=partial, seed=seed, **given
        )
    if "iterations" in given:
        given.setdefault("move_ms", None)
    bots.check_oos(**given)
    return lambda game, player, seed: bots.OOSBot(game, player, seed=seed, **given)


def _solved(given: dict[str, Any]) -> _Make:
    algorithm = given.pop("solver", "cfr+")
    if algorithm != "lp":
        parse_any(algorithm, "solver")
    check_arguments(algorithm, **given)

    def make(game: Game, player: int, seed: int) -> PolicyBot:
        solution = solve(bots.compile_whole(game), algorithm, seed=seed, **given)
        return PolicyBot(player, solution.average_policy(), seed=seed)

    return make


def _saved(given: dict[str, Any]) -> _Make:
    if "path" not in given:
        raise ValueError("bot='policy' needs a file; write policy(path=FILE.npz)")
    path = given["path"]
    check_policy_file(path)
    whole = needs_compiled(path)

    def make(game: Game, player: int, seed: int) -> PolicyBot:
        policy = load_policy(path, bots.compile_whole(game) if whole else game)
        return PolicyBot(player, policy, seed=seed)

    return make


def _honest(given: dict[str, Any]) -> _Make:
    check_iterations(given.get("rollouts", 1), name="rollouts")

    def make(game: Game, player: int, seed: int) -> PolicyBot:
        policy = HonestPolicy(bots.plain_game(game), seed=seed, **given)
        return PolicyBot(player, policy, seed=seed)

    return make


def _deep(given: dict[str, Any]) -> _Make:
    if "path" not in given:
        raise ValueError("bot='deep' needs a file; write deep(path=FILE.npz)")
    path, draws = given["path"], given.get("draw", False)
    check_file(path)

    def make(game: Game, player: int, seed: int) -> PolicyBot | IterateBot:
        policy = load_deep_policy(path, bots.plain_game(game))
        if draws:
            return IterateBot(player, policy, seed=seed)
        return PolicyBot(player, policy, seed=seed)

    return make


def _own(text: str, game: Game, player: int, seed: int) -> pyspiel.Bot:
    """A bot that a user wrote, or one that plays a policy of theirs."""
    made = load_own(text, bots.plain_game(game), player, seed)
    return made if isinstance(made, pyspiel.Bot) else PolicyBot(player, made, seed=seed)


def _uniform(given: dict[str, Any]) -> _Make:
    return lambda game, player, seed: bots.uniform_bot(game, player, seed=seed)


@dataclasses.dataclass(frozen=True)
class _Kind:
    """A bot by name: its parameters with their types, and who checks them."""

    read: Callable[[dict[str, Any]], _Make]
    parameters: dict[str, Any]
    text: str


BOTS: dict[str, _Kind] = {
    "resolving": _Kind(_resolving, {**_RESOLVING, **_PARTIAL}, "continual resolving"),
    "oos": _Kind(_oos, {**_OOS, **_PARTIAL}, "online outcome sampling"),
    "solved": _Kind(
        _solved,
        {"solver": str, "iterations": int, "seconds": float},
        "plays the solution that a solver finds beforehand",
    ),
    "policy": _Kind(_saved, {"path": str}, "plays a policy from a file of --save"),
    "honest": _Kind(
        _honest,
        {"rollouts": int},
        "poker: calls if it wins half of its rollouts, else folds",
    ),
    "deep": _Kind(
        _deep,
        {"path": str, "draw": bool},
        "plays networks from a file; draw=true: one iterate of a bank per match",
    ),
    "uniform": _Kind(_uniform, {}, "plays all actions alike"),
}


def describe_bots() -> str:
    """One line for each kind of bot, for help texts."""
    lines = [
        f"  {name}({', '.join(kind.parameters)}): {kind.text}"
        for name, kind in BOTS.items()
    ]
    own = "  module:name(...): one of your own, see --import"
    return "\n".join([*lines, own])


def prepare(
    game: Game, strings: Sequence[str], *, memory_limit: Limit = MEMORY_LIMIT
) -> CompiledGame | pyspiel.Game:
    """Compiles a game for bots that share it, unless none of them needs it whole.

    A large game that declares its signals is not compiled where all bots that need it
    whole resolve it, and can do so in that form.

    Args:
      game: OpenSpiel game string, game, or compiled game (with `observations=True`).
      strings: bots for `load_bot`; other ones need no compiled game.
      memory_limit: refuse to compile larger games; as for `compile_game`.

    Raises:
      ValueError: a bot needs the whole game, and that is larger than the limit; or the
        game is not for us.
      pyspiel.SpielError: OpenSpiel does not know the game.
    """
    if isinstance(game, CompiledGame):
        return game
    loaded = loading.load_game(game)
    # A bad size is refused though nothing is compiled.
    parse_limit(memory_limit)
    whole = [bot for bot in strings if needs_whole(bot)]
    if not whole or (
        all(_may_take_signals(bot) for bot in whole)
        and finding.prefer(loaded, memory_limit).signals
    ):
        return loaded
    try:
        return as_compiled(loaded, observations=True, memory_limit=memory_limit)
    except GameTooLargeError as error:
        name = bot_name(whole[0])
        remedy = ""
        if "max_histories" in BOTS[name].parameters:
            remedy = f", or let the bot play on partial trees: {name}(max_histories=N)"
        raise ValueError(
            f"bot={whole[0]!r} needs the whole game, and {error}{remedy}"
        ) from error


def bot_name(text: str) -> str:
    """The name in a bot's string, or what stands in its place."""
    return text.partition("(")[0].strip()


def needs_whole(bot: str) -> bool:
    """Whether a bot plays on the compiled game; a misspelt one does not play."""
    if bot_name(bot) not in BOTS or bot_name(bot) in _NEED_NO_TREE:
        return False
    given = parse(bot, "bot").given
    if bot_name(bot) == "policy":
        return "path" in given and needs_compiled(given["path"])
    return "max_histories" not in given


def _may_take_signals(bot: str) -> bool:
    """Whether a bot that needs the whole game may play on its signal form instead."""
    if bot_name(bot) != "resolving":
        return False
    given = parse(bot, "bot").convert(_RESOLVING)
    return suits_signals(ResolvingConfig(**{"iterations": 1, **given}))


def load_bot(text: str, game: Game, player: int, *, seed: int = 0) -> pyspiel.Bot:
    """Makes a bot from a string like "resolving(solver=cfr+,move_ms=100)".

    Args:
      text: name and parameters in OpenSpiel's syntax. A solver with parameters of its
        own is written with them: solver=evr-mccfr(batch=512). Or a bot or policy of
        one's own by its module, "module:name", see `own_players.load_own`.
      game: OpenSpiel game string, game, or compiled game; compiled with
        `observations=True` it serves several bots.
      player: the seat, 0 or 1.
      seed: of everything that the bot draws.

    Raises:
      ValueError: unknown bot or parameter, a bad value, or a game compiled in part for
        a bot that needs all of it.
    """
    return _read(text)(game, player, seed)


def check_bot(text: str) -> None:
    """Refuses what `load_bot` refuses whatever the game; nothing is compiled.

    Args:
      text: as for `load_bot`.

    Raises:
      OSError, ValueError: as `load_bot`.
    """
    _read(text)


def _read(text: str) -> _Make:
    if isinstance(text, str) and is_own(text):
        check_own(text)
        return functools.partial(_own, text)
    found = parse(text, "bot")
    if found.name not in BOTS:
        raise ValueError(
            f"bot={text!r}: there is no bot {found.name!r}; choose one of "
            f"{', '.join(BOTS)}, or one of your own, module:name"
        )
    kind = BOTS[found.name]
    return kind.read(found.convert(kind.parameters))
