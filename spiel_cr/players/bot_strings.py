"""Bots from strings, in OpenSpiel's parameter syntax."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pyspiel
from open_spiel.python.policy import Policy, UniformRandomPolicy

from spiel_cr.common.checks import check_iterations
from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.common.memory import Limit, parse_limit
from spiel_cr.common.parameters import parse, table_of
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.tree.compiler import Game, as_tree
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.players import bots, partial_bots
from spiel_cr.players.bots import PolicyBot, shared_public_tree
from spiel_cr.players.honest import HonestPolicy
from spiel_cr.players.own_players import check_own, is_own, load_own
from spiel_cr.players.search_bot import SearchBot, SearchBotConfig
from spiel_cr.resolving.lookahead.lookahead_config import LookaheadConfig
from spiel_cr.resolving.resolving_config import ResolvingConfig
from spiel_cr.solvers.algorithms import AUTO, CFR, LP, MCCFR, find
from spiel_cr.solvers.deep import network_policy
from spiel_cr.solvers.policy_files import check_policy_file, load_policy, needs_tree
from spiel_cr.solvers.representation import PUBLIC_TREE, GameOptions, Need, choose_form
from spiel_cr.solvers.run import Goal
from spiel_cr.solvers.solve import solve, task_of

# What a game that bots share may take by default, as text for people.
MEMORY_LIMIT = "4GB"

_RESOLVING = table_of(ResolvingConfig)
_PARTIAL = table_of(LookaheadConfig)


# Makes a bot of a game, a seat and a seed.
_Make = Callable[[Game, int, int], pyspiel.Bot]


class NamedBot(NamedTuple):
    """A bot that a string names: checked, and not made yet.

    Attributes:
      make: the bot of a game, a seat and a seed.
      whole: whether it plays on the compiled game.
      signals: whether a game in the form of signals does as well.
      exact: whether it plays one strategy, whatever the seed and the time it has.
      policy: of a game and a seed: what it plays in both seats, where that is known
        without asking it; else None.
    """

    make: _Make
    whole: bool = True
    signals: bool = False
    exact: bool = False
    policy: Callable[[Game, int], Policy | None] = lambda game, seed: None


def _partial(given: dict[str, Any]) -> LookaheadConfig | None:
    """Takes the settings of lookahead trees out; None: the game is compiled whole."""
    if "max_histories" in given:
        if "leaf" in given:
            raise ValueError(
                f"leaf={given['leaf']!r} does not go with max_histories: a lookahead "
                f"end in continuations of the blueprint; give blueprint, k or rollouts"
            )
        named = [name for name in _PARTIAL if name in given]
        return LookaheadConfig(**{name: given.pop(name) for name in named})
    if wrong := [name for name in given if name not in _RESOLVING]:
        raise ValueError(
            f"{', '.join(f'{name}={given[name]!r}' for name in wrong)}: only for "
            f"lookahead trees; give max_histories, too"
        )
    return None


def _resolving(given: dict[str, Any]) -> NamedBot:
    partial = _partial(given)
    if not {"iterations", "move_ms"} & set(given):
        given["move_ms"] = 100.0 if partial is None else 1000.0
    if partial is not None:
        given.setdefault("solver", partial_bots.DEFAULT_SOLVER)
        given.setdefault("gadget", partial_bots.DEFAULT_GADGET)
    config = ResolvingConfig(**given)
    if partial is None:
        return NamedBot(
            lambda game, player, seed: bots.ResolvingBot(
                game, player, config, seed=seed
            ),
            signals=not config.tree_only,
            exact=config.is_exact,
        )
    partial.check(config)
    return NamedBot(
        lambda game, player, seed: partial_bots.LookaheadResolvingBot(
            open_game(game).game, player, config, partial=partial, seed=seed
        ),
        whole=False,
    )


def _oos(given: dict[str, Any]) -> NamedBot:
    if "iterations" in given:
        given.setdefault("move_ms", None)
    config = bots.OOSConfig(**given)
    return NamedBot(
        lambda game, player, seed: bots.OOSBot(game, player, config, seed=seed)
    )


def _search(given: dict[str, Any]) -> NamedBot:
    if not {"simulations", "move_ms"} & set(given):
        given["move_ms"] = 100.0
    config = SearchBotConfig(**given)
    path = config.blueprint
    return NamedBot(
        lambda game, player, seed: SearchBot(game, player, config, seed=seed),
        whole=isinstance(path, str) and needs_tree(path),
    )


def plays(policy: Callable[[Game, int], Policy], *, whole: bool) -> NamedBot:
    """A bot that plays a policy, made of a game and a seed."""
    return NamedBot(
        lambda game, player, seed: PolicyBot(player, policy(game, seed), seed=seed),
        whole=whole,
        exact=True,
        policy=policy,
    )


def solved(given: dict[str, Any]) -> NamedBot:
    """Plays what `solve` finds; given its algorithm as `solver`, and its budget."""
    algorithm = given.pop("solver", "auto")
    find(algorithm, "solver", (AUTO, CFR, MCCFR, LP))
    goal = Goal(**given)
    task_of(algorithm, goal)

    def policy(game: Game, seed: int) -> Policy:
        whole = bots.build_whole(game)
        return solve(whole, algorithm, goal, seed=seed).average_policy()

    return plays(policy, whole=True)


def saved(given: dict[str, Any]) -> NamedBot:
    """Plays a policy from the file `path`."""
    path = given["path"]
    check_policy_file(path)
    whole = needs_tree(path)

    def policy(game: Game, seed: int) -> Policy:
        return load_policy(path, bots.build_whole(game) if whole else game)

    return plays(policy, whole=whole)


def _honest(given: dict[str, Any]) -> NamedBot:
    check_iterations(given.get("rollouts", 1), name="rollouts")

    return plays(
        lambda game, seed: HonestPolicy(open_game(game).game, seed=seed, **given),
        whole=False,
    )


def _deep(given: dict[str, Any]) -> NamedBot:
    path = given["path"]
    network_policy.check_file(path)

    def policy(game: Game, seed: int) -> network_policy.DeepPolicy:
        return network_policy.load_deep_policy(path, open_game(game).game)

    return plays(policy, whole=False)


def _own(text: str, what: str) -> NamedBot:
    """A bot that a user wrote, or one that plays a policy of theirs."""
    check_own(text, what)

    def make(game: Game, player: int, seed: int) -> pyspiel.Bot:
        made = load_own(text, open_game(game).game, player, seed)
        return PolicyBot(player, made, seed=seed) if isinstance(made, Policy) else made

    def policy(game: Game, seed: int) -> Policy | None:
        made = load_own(text, open_game(game).game, 0, seed)
        return made if isinstance(made, Policy) else None

    return NamedBot(make, whole=False, policy=policy)


def _uniform(given: dict[str, Any]) -> NamedBot:
    return plays(
        lambda game, seed: UniformRandomPolicy(open_game(game).game), whole=False
    )


@dataclasses.dataclass(frozen=True)
class _Kind:
    """A bot by name: its parameters with their types, and who checks them."""

    read: Callable[[dict[str, Any]], NamedBot]
    parameters: dict[str, Any]
    text: str


BOTS: dict[str, _Kind] = {
    "resolving": _Kind(_resolving, {**_RESOLVING, **_PARTIAL}, "continual resolving"),
    "search": _Kind(
        _search, table_of(SearchBotConfig), "one step from a blueprint, by rollouts"
    ),
    "oos": _Kind(_oos, table_of(bots.OOSConfig), "online outcome sampling"),
    "solved": _Kind(
        solved,
        {"solver": str, "iterations": int, "seconds": float},
        "plays the solution that a solver finds beforehand",
    ),
    "policy": _Kind(
        saved, {"path": str}, "plays a policy from a file of --save; in short PATH.npz"
    ),
    "honest": _Kind(
        _honest,
        {"rollouts": int},
        "poker: calls if it wins half of its rollouts, else folds",
    ),
    "deep": _Kind(
        _deep,
        {"path": str},
        "plays networks from a file",
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
    game: Game, players: Sequence[object], *, memory_limit: Limit = MEMORY_LIMIT
) -> GameTree | pyspiel.Game:
    """Compiles a game for bots that share it, unless none of them needs it whole.

    A large game that declares its signals is not compiled where all bots that need it
    whole resolve it, and can do so in that form.

    Args:
      game: OpenSpiel game string, game, or compiled game (with `observations=True`).
      players: strings for `load_bot`; what is no string, or names a bot of a user's
        own, needs no compiled game.
      memory_limit: refuse to compile larger games; as for `build_tree`.

    Raises:
      ValueError: a bot needs the whole game, and that is larger than the limit; or the
        game is not for us.
      pyspiel.SpielError: OpenSpiel does not know the game.
    """
    if isinstance(game, GameTree):
        return game
    opened = open_game(game)
    # A bad size is refused though nothing is compiled.
    parse_limit(memory_limit)
    strings = [text for text in players if isinstance(text, str)]
    named = {text: read_bot(text) for text in strings if bot_name(text) in BOTS}
    whole = [text for text, bot in named.items() if bot.whole]
    if not whole:
        return opened.game
    on_signals = all(named[text].signals for text in whole)
    try:
        if (
            on_signals
            and choose_form(opened, GameOptions(), Need({})).form == PUBLIC_TREE
        ):
            shared_public_tree(str(opened.game), memory_limit)
            return opened.game
        return as_tree(opened.game, observations=True, memory_limit=memory_limit)
    except GameTooLargeError as error:
        name = bot_name(whole[0])
        remedy = ""
        if "max_histories" in BOTS[name].parameters:
            remedy = (
                f", or let the bot play on lookahead trees: {name}(max_histories=N)"
            )
        raise ValueError(
            f"bot={whole[0]!r} needs the whole game, and {error}{remedy}"
        ) from error


def bot_name(text: str) -> str:
    """The name in a bot's string, or what stands in its place; of a file "policy"."""
    return "policy" if is_file(text) else text.partition("(")[0].strip()


def is_file(text: str) -> bool:
    """Whether a string is the path of a policy file, short for policy(path=...)."""
    named = text.partition("(")[0].strip() in BOTS
    return text.strip().endswith(".npz") and not named


def is_bot(text: str) -> bool:
    """Whether a string names a bot, ours or one of a user's own."""
    return bot_name(text) in BOTS or is_own(text)


def load_bot(game: Game, text: str, player: int, *, seed: int = 0) -> pyspiel.Bot:
    """Makes a bot from a string like "resolving(solver=cfr+,move_ms=100)".

    Args:
      game: OpenSpiel game string, game, or compiled game; compiled with
        `observations=True` it serves several bots.
      text: name and parameters in OpenSpiel's syntax. A solver with parameters of its
        own is written with them: solver=evr-mccfr(batch=512). Or a bot or policy of
        one's own by its module, "module:name", see `own_players.load_own`; or the path
        of a policy file that ends in .npz.
      player: the seat, 0 or 1.
      seed: of everything that the bot draws.

    Raises:
      ValueError: unknown bot or parameter, a bad value, or game and bot in each other's
        place.
    """
    if isinstance(game, str) and is_bot(game):
        raise ValueError(
            f"game={game!r} is a bot; the game comes first: load_bot(game, bot, player)"
        )
    return read_bot(text).make(game, player, seed)


def read_bot(text: str, what: str = "bot") -> NamedBot:
    """Refuses what `load_bot` refuses whatever the game; nothing is compiled.

    Args:
      text: as for `load_bot`.
      what: whose string it is, for errors of users' own.

    Raises:
      OSError, ValueError: as `load_bot`.
    """
    if isinstance(text, str) and is_file(text):
        return saved({"path": text.strip()})
    if isinstance(text, str) and is_own(text):
        return _own(text, what)
    parameters = parse(text, "bot")
    if parameters.name not in BOTS:
        raise ValueError(
            f"bot={text!r}: there is no bot {parameters.name!r}; choose one of "
            f"{', '.join(BOTS)}, or one of your own, module:name"
        )
    kind, name = BOTS[parameters.name], parameters.name
    given = parameters.convert(kind.parameters)
    if "path" in kind.parameters and "path" not in given:
        raise ValueError(f"bot={name!r} needs a file; write {name}(path=FILE.npz)")
    return kind.read(given)
