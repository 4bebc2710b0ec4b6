"""Players from strings: bots, policies, algorithms, files, and objects of users.

One grammar is valid wherever a player is: the name of a player with parameters in
OpenSpiel's syntax, such as "resolving(move_ms=100)"; an algorithm with its iterations,
such as "cfr+(iterations=10)", whose average strategy plays; a fixed policy of poker,
such as "always_call"; the path of a policy file, which ends in .npz; or
"module:name(...)" for a player that a user wrote. Agents in other programs are
"process(command=...)" and "http(url=...)".
"""

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import pyspiel
from open_spiel.python.policy import Policy, UniformRandomPolicy

from spiel_cr.common import plugins
from spiel_cr.common.checks import check_iterations
from spiel_cr.common.parameters import Parameters, parse, table_of
from spiel_cr.games.opening.opened import Openable, open_game
from spiel_cr.games.public_tree.public_tree_loading import public_tree_game
from spiel_cr.games.tree.tree_builder import as_tree
from spiel_cr.players import bots
from spiel_cr.players.agent_bot import AgentBot, AgentConfig
from spiel_cr.players.bots import PolicyBot
from spiel_cr.players.fixed_policies import FIXED_POLICIES, FixedPolicy
from spiel_cr.players.honest_policy import HonestPolicy
from spiel_cr.players.search_bot import SearchBot, SearchBotConfig
from spiel_cr.policies.bot_policies import BotPolicy
from spiel_cr.policies.form_policy import CanonicalPolicy
from spiel_cr.policies.policy_adapters import (
    as_policy,
    is_function_of_state,
    is_policy,
)
from spiel_cr.resolving.continual import need_of
from spiel_cr.resolving.lookahead.lookahead_config import LookaheadConfig
from spiel_cr.resolving.resolving_config import ResolvingConfig
from spiel_cr.solvers.algorithms import AUTO, CFR, LP, MCCFR, find
from spiel_cr.solvers.policy_files import PolicyFile, read_policy_file
from spiel_cr.solvers.representation import SIMULATOR, SimulatedGame, represent
from spiel_cr.solvers.run import Goal
from spiel_cr.solvers.solve import solve, task_of

_RESOLVING = table_of(ResolvingConfig)
_LOOKAHEAD = table_of(LookaheadConfig)
_AGENT = table_of(AgentConfig)
_OF_PROGRAMS, _OF_ADDRESSES = ("command", "new_process"), ("url", "allow_remote")
_ALGORITHMS = (*CFR.presets, *MCCFR.presets, *LP.presets)


@dataclasses.dataclass(frozen=True)
class PlayerSpec:
    """A player that was read from a string or an object, and is not made yet.

    Attributes:
      name: Name of the player, as users write it.
      make_bot: Makes a bot from a game, the player's index and a seed.
      make_policy: Makes the policy of both players from a game and a seed; returns None
        if it is known by the answers of its bots alone.
      needs_tree: Whether it plays on the built game tree.
      simulates: Whether a `SimulatedGame` serves it instead, if the tree is too large.
      resolves_public_tree: Whether the public-tree form does as well.
      is_exact: Whether it plays one strategy, whatever the seed and its time.
      file: Policy file that the player plays; None for other players.
      agent: Settings of an agent in another program; None for other players.
    """

    name: str
    make_bot: Callable[[Any, int, int], pyspiel.Bot]
    make_policy: Callable[[Any, int], Policy | None] = lambda game, seed: None
    needs_tree: bool = False
    simulates: bool = False
    resolves_public_tree: bool = False
    is_exact: bool = False
    file: PolicyFile | None = None
    agent: AgentConfig | None = None

    def policy(
        self,
        game: Openable,
        seed: int,
        *,
        lazy: bool = True,
    ) -> Policy:
        """Make the policy of both players; a bot's answers are its policy.

        Args:
          game: The game; in the form that the player needs.
          seed: Seed of sampled algorithms and of bots.
          lazy: Whether a bot is made at the first query. Otherwise a bot that cannot
            play the game is an error now.
        """
        policy = self.make_policy(game, seed)
        if policy is not None:
            return policy
        make = functools.partial(self.make_bot, game)
        bot_policy = BotPolicy(open_game(game).game, make, seed=seed)
        if self.is_exact:
            bot_policy.recipe = _policy_again, self.name, game, seed
        if not lazy:
            bot_policy.bot(0)
        return bot_policy

    def bot_behind(self, game: Any, player: int, seed: int) -> pyspiel.Bot | None:
        """Make the bot itself, if its policy is only an estimate; otherwise None."""
        if self.is_exact:
            return None
        sequence = np.random.SeedSequence([seed, 2, 1 - player])
        bot = self.make_bot(game, player, int(sequence.generate_state(1)[0] >> 1))
        return bot if bots.policy_of(bot) is None else None  # a user's policy

    def bots_behind(
        self, game: Openable, seed: int
    ) -> tuple[pyspiel.Bot, pyspiel.Bot] | None:
        """Make the bots themselves, if their policy is only an estimate of them.

        Args:
          game: The game; in the form that the player needs.
          seed: Seed of the estimate. The bots have other seeds, because the estimate is
            biased towards the moves that were drawn for it.

        Returns:
          The bots of players 0 and 1; None if `policy` is exact.
        """
        pair = [self.bot_behind(game, player, seed) for player in range(2)]
        if pair == [None, None]:
            return None
        first, second = (
            self.make_bot(game, player, seed + 1 + player) if bot is None else bot
            for player, bot in enumerate(pair)
        )
        return first, second


def _policy_again(text: str, game: Openable, seed: int) -> Policy:
    return read_string(text).policy(game, seed)


def policy_spec(
    name: str, make: Callable[[Any, int], Policy], **facts: Any
) -> PlayerSpec:
    """Return the spec of a player that follows a policy, made from a game and a seed.

    Args:
      name: Name of the player, as users write it.
      make: Makes the policy.
      **facts: More attributes of the spec.
    """

    def make_bot(game: Openable, player: int, seed: int) -> PolicyBot:
        return PolicyBot(player, make(game, seed), seed=seed)

    return PlayerSpec(name, make_bot, make, is_exact=True, **facts)


def _lookahead_config(values: dict[str, Any]) -> LookaheadConfig | None:
    """Remove and return the settings of lookahead trees; None if there are none."""
    if "max_histories" in values:
        if "leaf" in values:
            raise ValueError(
                f"leaf={values['leaf']!r} cannot be combined with max_histories, "
                f"because a lookahead tree ends in continuations of the blueprint; "
                f"use blueprint, k or rollouts"
            )
        names = [name for name in _LOOKAHEAD if name in values]
        return LookaheadConfig(**{name: values.pop(name) for name in names})
    if wrong := [name for name in values if name not in _RESOLVING]:
        raise ValueError(
            f"{', '.join(f'{name}={values[name]!r}' for name in wrong)}: only for "
            f"lookahead trees; give max_histories, too"
        )
    return None


def _resolving(text: str, values: dict[str, Any]) -> PlayerSpec:
    lookahead = _lookahead_config(values)
    if not {"iterations", "move_ms"} & set(values):
        values["move_ms"] = 100.0 if lookahead is None else 1000.0
    if lookahead is not None:
        values.setdefault("solver", bots.DEFAULT_SOLVER)
        values.setdefault("gadget", bots.DEFAULT_GADGET)
    config = ResolvingConfig(**values)
    if lookahead is None:
        forms: list[tuple[Any, Any]] = []

        def make_bot(game: Any, player: int, seed: int) -> pyspiel.Bot:
            # The bots of both players share the form of the game.
            if not forms or forms[0][0] is not game:
                forms[:] = [(game, represent(game, None, need_of(config))[0])]
            return bots.ResolvingBot(forms[0][1], player, config, seed=seed)

        return PlayerSpec(
            text,
            make_bot,
            needs_tree=True,
            resolves_public_tree=not config.tree_only,
            is_exact=config.is_exact,
        )
    lookahead.check(config)
    return PlayerSpec(
        text,
        lambda game, player, seed: bots.LookaheadResolvingBot(
            open_game(game).game, player, config, lookahead=lookahead, seed=seed
        ),
    )


def _oos(text: str, values: dict[str, Any]) -> PlayerSpec:
    if "iterations" in values:
        values.setdefault("move_ms", None)
    config = bots.OOSConfig(**values)
    return PlayerSpec(
        text,
        lambda game, player, seed: bots.OOSBot(game, player, config, seed=seed),
        needs_tree=True,
    )


def _search(text: str, values: dict[str, Any]) -> PlayerSpec:
    if not {"simulations", "move_ms"} & set(values):
        values["move_ms"] = 100.0
    config = SearchBotConfig(**values)
    path = config.blueprint
    return PlayerSpec(
        text,
        lambda game, player, seed: SearchBot(game, player, config, seed=seed),
        needs_tree=isinstance(path, str) and read_policy_file(path).needs_tree,
    )


def _solved(text: str, values: dict[str, Any]) -> PlayerSpec:
    """Return the spec of a solution: `solver` is the algorithm, `values` the budget."""
    algorithm = values.pop("solver", "auto")
    find(algorithm, "solver", (AUTO, CFR, MCCFR, LP))
    goal = Goal(**values)
    rejected = task_of(algorithm, goal).need().rejected

    def make(game: Any, seed: int) -> Policy:
        form = game
        if not isinstance(game, SimulatedGame):
            form = as_tree(game, observations=True)
        return solve(form, algorithm, goal, seed=seed).average_policy()

    return policy_spec(text, make, needs_tree=True, simulates=SIMULATOR not in rejected)


def _file(text: str, values: dict[str, Any]) -> PlayerSpec:
    file = read_policy_file(values["path"])
    file.check()

    def make(game: Any, seed: int) -> Policy:
        return file.load(as_tree(game, observations=True) if file.needs_tree else game)

    return policy_spec(text, make, needs_tree=file.needs_tree, file=file)


def _honest(text: str, values: dict[str, Any]) -> PlayerSpec:
    check_iterations(values.get("rollouts", 1), name="rollouts")
    return policy_spec(
        text,
        lambda game, seed: HonestPolicy(open_game(game).game, seed=seed, **values),
    )


def _canonical(text: str, values: dict[str, Any]) -> PlayerSpec:
    if "policy" not in values:
        raise ValueError(f"{text!r} needs a policy; write canonical(policy=FILE.npz)")
    inner = read_string(values["policy"])

    def make(game: Any, seed: int) -> Policy:
        form = public_tree_game(open_game(game).game)
        return CanonicalPolicy(inner.policy(form.game, seed), form)

    return policy_spec(text, make)


def _uniform(text: str, values: dict[str, Any]) -> PlayerSpec:
    return policy_spec(
        text, lambda game, seed: UniformRandomPolicy(open_game(game).game)
    )


def _agent(text: str, values: dict[str, Any]) -> PlayerSpec:
    config = AgentConfig(**values)
    return PlayerSpec(text, functools.partial(AgentBot, config=config), agent=config)


class _Kind(NamedTuple):
    """Players of one name.

    Attributes:
      read: Makes the spec from the string and the values of its parameters, which it
        checks.
      parameters: Their types.
      text: Description for help texts.
    """

    read: Callable[[str, dict[str, Any]], PlayerSpec]
    parameters: dict[str, Any]
    text: str


PLAYERS: dict[str, _Kind] = {
    "resolving": _Kind(_resolving, {**_RESOLVING, **_LOOKAHEAD}, "continual resolving"),
    "search": _Kind(
        _search, table_of(SearchBotConfig), "one step from a blueprint, by rollouts"
    ),
    "oos": _Kind(_oos, table_of(bots.OOSConfig), "online outcome sampling"),
    "solved": _Kind(
        _solved,
        {"solver": str, "iterations": int, "seconds": float},
        "plays the solution that a solver finds beforehand",
    ),
    "policy": _Kind(
        _file, {"path": str}, "plays a policy from a file of --save; in short PATH.npz"
    ),
    "honest": _Kind(
        _honest,
        {"rollouts": int},
        "poker: calls if it wins half of its rollouts, otherwise folds",
    ),
    "deep": _Kind(_file, {"path": str}, "plays networks from a file"),
    "canonical": _Kind(
        _canonical,
        {"policy": str},
        "plays a policy with suits exchanged such that equivalent deals are the same",
    ),
    "uniform": _Kind(_uniform, {}, "plays all actions alike"),
    "process": _Kind(
        _agent,
        {name: kind for name, kind in _AGENT.items() if name not in _OF_ADDRESSES},
        "an agent in another program, which reads and writes JSON lines",
    ),
    "http": _Kind(
        _agent,
        {name: kind for name, kind in _AGENT.items() if name not in _OF_PROGRAMS},
        "an agent at an address",
    ),
}


def describe_players() -> str:
    """Return a line of help for each kind of player."""
    lines = [
        f"  {name}({', '.join(kind.parameters)}): {kind.text}"
        for name, kind in PLAYERS.items()
    ]
    lines.append("  module:name(...): your own bot or policy, see --import")
    return "\n".join(lines)


def is_path(text: str) -> bool:
    """Return whether a string is the path of a policy file."""
    return text.strip().endswith((".npz", ".csv")) and _name(text) not in PLAYERS


def _name(text: str) -> str:
    return text.partition("(")[0].strip()


def is_player(text: str) -> bool:
    """Return whether a string has the name of a player, or is the path of a file."""
    name = _name(text)
    registered = name in (*PLAYERS, *_ALGORITHMS, *FIXED_POLICIES)
    return registered or ":" in name or is_path(text)


def read_string(
    text: str, name: str = "policy", game: pyspiel.Game | None = None
) -> PlayerSpec:
    """Check a player's string; no game is built.

    Args:
      text: A string of the grammar above.
      name: The argument's name, for errors.
      game: The game; None: whether the player suits the game is checked later.

    Raises:
      OSError: If a file cannot be read.
      ValueError: If the string does not name a player, or a parameter is invalid.
    """
    if not isinstance(text, str):
        parse(text, name)  # raises
    stripped, kind = text.strip(), _name(text)
    if is_path(text):
        return _file(text, {"path": stripped})
    if ":" in kind:
        return _plugin(stripped, name)
    if stripped in FIXED_POLICIES:
        if game is not None:
            FixedPolicy(game, stripped)  # raises
        return policy_spec(
            text, lambda game, seed: FixedPolicy(open_game(game).game, stripped)
        )
    if kind in _ALGORITHMS:
        return _solved(text, _algorithm(stripped, name))
    parameters = parse(stripped, name)
    if kind not in PLAYERS:
        raise ValueError(
            f"{name}={text!r}: the player {kind!r} does not exist; choose one of "
            f"{', '.join(PLAYERS)}, a fixed policy of poker "
            f"({', '.join(FIXED_POLICIES)}), an algorithm such as "
            f"cfr+(iterations=10) (one of {', '.join(_ALGORITHMS)}), the path of a "
            f"policy file (.npz or .csv), or module:name of an object that you wrote"
        )
    values = parameters.convert(PLAYERS[kind].parameters)
    if "path" in PLAYERS[kind].parameters and "path" not in values:
        raise ValueError(f"{name}={kind!r} needs a file; write {kind}(path=FILE.npz)")
    return PLAYERS[kind].read(text, values)


def _algorithm(text: str, name: str) -> dict[str, Any]:
    """Return the parameters of "solved" for an algorithm with its iterations."""
    if text == "lp":
        return {"solver": text, "iterations": None}
    parameters: Parameters = parse(text, name)
    if "iterations" not in parameters.values:
        example = text.rstrip(")") + ("," if "(" in text else "(") + "iterations=10)"
        raise ValueError(
            f"{name}={text!r}: the number of iterations is missing; write, for "
            f"example, {example}"
        )
    types = {**dict.fromkeys(parameters.values, str), "iterations": int}
    return {
        "solver": parameters.without("iterations"),
        "iterations": parameters.convert(types)["iterations"],
    }


def _plugin(text: str, name: str) -> PlayerSpec:
    """Return the spec of a bot or policy that a user wrote."""
    make, label = read_plugin(text, name), f"bot={text!r}"

    def make_bot(game: Openable, player: int, seed: int) -> pyspiel.Bot:
        plain = open_game(game).game
        return bots.bot_of(make(plain, player, seed), plain, player, seed, label)

    def make_policy(game: Openable, seed: int) -> Policy | None:
        plain = open_game(game).game
        return as_policy(make(plain, 0, seed), plain, label)

    return PlayerSpec(text, make_bot, make_policy)


def read_plugin(
    text: str, label: str = "bot"
) -> Callable[[pyspiel.Game, int, int], Any]:
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
      A function of a sequential game, the player of a bot, and a seed. Its result is a
      bot, or a policy of both players in any form that `as_policy` accepts, unless the
      user's function returns another object.

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
