"""Players from the arguments of users, and bots and policies made from them.

A player is a string of `player_strings`, a policy, a pair of policies or bots, a
result, a bot, or a function.
"""

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.common.memory import Limit, parse_limit
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.phantom.game import phantom_game
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.games.tree.tree_builder import Game
from spiel_cr.players import bots
from spiel_cr.players.player_strings import (
    PlayerSpec,
    is_player,
    policy_spec,
    read_string,
)
from spiel_cr.policies.bot_base import as_bot, check_seat, gives_policy
from spiel_cr.policies.policy_adapters import JointPolicy, as_policy, pair_of, probe
from spiel_cr.policies.result import Result
from spiel_cr.solvers.representation import (
    PHANTOM,
    PUBLIC_TREE,
    SIMULATOR,
    FormRequirements,
    GameOptions,
    RepresentedGame,
    SimulatedGame,
    represent,
)

# Memory limit of a game that bots share, as text for messages.
MEMORY_LIMIT = "4GB"

# A policy of both players: a string, a result, an OpenSpiel policy of Python or C++, a
# pair of policies, a table by information state strings, or a function of a state.
PolicyLike: TypeAlias = (
    str
    | openspiel_policy.Policy
    | pyspiel.Policy
    | Result
    | Sequence[Any]
    | Mapping[Any, Any]
    | Callable[[pyspiel.State], Any]
)
# A function that makes a bot from the index of its player and a seed.
BotMaker: TypeAlias = Callable[[int, int], pyspiel.Bot]
PlayerLike: TypeAlias = PolicyLike | pyspiel.Bot | BotMaker


def check_order(game: object, player: object, call: str) -> None:
    """Raise an error if a game and a player were exchanged.

    Args:
      game: The argument that should be a game.
      player: The argument that should be a player.
      call: The correct call, for the error.
    """
    if _is_game(player) and not _is_game(game):
        raise ValueError(f"the game comes first: {call}; exchange the two arguments")


def _is_game(argument: object) -> bool:
    """Return whether an argument is a game, or the string of a registered one."""
    if isinstance(argument, str):
        return argument.partition("(")[0].strip() in pyspiel.registered_names()
    return isinstance(argument, pyspiel.Game | GameTree)


def read_player(
    player: Any, game: Any, *, name: str = "policy", seat: int | None = None
) -> PlayerSpec:
    """Check a player of any kind; no game is built.

    Args:
      player: A string, or one of the objects of `PlayerLike`.
      game: The game in any form.
      name: The argument's name, for errors.
      seat: The player whose moves a bot makes; a bot for one player then plays
        uniformly as the other one. None: a bot is an error in the other seat.

    Raises:
      OSError: If a policy file cannot be read.
      ValueError: If the argument is not a player of the game.
    """
    plain = open_game(game).game
    if isinstance(player, str):
        return read_string(player, name, plain)
    if (pair := pair_of(player)) is not None:
        members = (
            read_player(member, plain, name=f"{name}[{index}]")
            for index, member in enumerate(pair)
        )
        return _pair_spec(plain, tuple(members))
    policy = as_policy(player, plain, name)
    if policy is not None:
        return policy_spec(type(player).__name__, lambda game, seed: policy)

    make: Callable[[int, int], Any]
    if (bot := as_bot(player)) is not None:
        if seat is not None:
            check_seat(bot, seat, name)

        def make(index: int, seed: int) -> pyspiel.Bot:
            is_other = seat not in (None, index)
            return bots.uniform_bot(plain, index, seed=seed) if is_other else bot

    elif callable(player):
        _check_maker(player, name)
        make = player
    else:
        raise ValueError(
            f"{name}={player!r} is not a player; give a string such as "
            f"'resolving(iterations=100)', a policy, a pair of policies, a result of "
            f"solve, a bot, a function of (player, seed) that makes one, or a function "
            f"of a state that returns probabilities"
        )

    def make_bot(game: Any, index: int, seed: int) -> pyspiel.Bot:
        return bots.bot_of(make(index, seed), plain, index, seed, name)

    return _ObjectSpec(type(player).__name__, make_bot)


class _ObjectSpec(PlayerSpec):
    """A bot, or a function that makes bots."""

    def bot_behind(self, game: Any, player: int, seed: int) -> pyspiel.Bot | None:
        """See `PlayerSpec`; None if the bot provides its probabilities."""
        bot = self.make_bot(game, player, seed + 1 + player)
        return None if gives_policy(bot) else bot


@dataclasses.dataclass(frozen=True)
class _PairSpec(PlayerSpec):
    """A pair of players, one for each player of the game."""

    members: tuple[PlayerSpec, ...] = ()

    def bot_behind(self, game: Any, player: int, seed: int) -> pyspiel.Bot | None:
        """See `PlayerSpec`."""
        return self.members[player].bot_behind(game, player, seed)


def _pair_spec(game: pyspiel.Game, members: tuple[PlayerSpec, ...]) -> PlayerSpec:
    """Return the spec of a pair of players of a sequential game."""

    def make_policy(form: Any, seed: int) -> openspiel_policy.Policy:
        first, second = (member.policy(form, seed) for member in members)
        return JointPolicy(game, (first, second))

    return _PairSpec(
        f"({members[0].name}, {members[1].name})",
        lambda form, player, seed: members[player].make_bot(form, player, seed),
        make_policy,
        needs_tree=any(member.needs_tree for member in members),
        simulates=all(m.simulates for m in members if m.needs_tree),
        is_exact=all(member.is_exact for member in members),
        members=members,
    )


def _check_maker(make: Callable[..., object], name: str) -> None:
    """Raise an error if a function does not accept a player and a seed."""
    try:
        inspect.signature(make).bind(0, 0)
    except TypeError as error:
        raise ValueError(
            f"{name}={make!r}: {error}; give a function of (player, seed) that makes a "
            f"bot, or a function of a state that returns probabilities by action"
        ) from error
    except ValueError:  # of C++
        pass


def make_bot(
    player: PlayerLike, game: Any, seat: int, *, seed: int, name: str = "bot"
) -> pyspiel.Bot:
    """Make the bot that plays as one player of a game.

    Args:
      player: Any player.
      game: The game: a string, OpenSpiel's, or the form that the player needs.
      seat: The player whose moves it makes, 0 or 1.
      seed: Seed of the bot's random choices; a bot that is an object has its own.
      name: The argument's name, for errors.

    Raises:
      OSError: If a policy file cannot be read.
      ValueError: If the argument is not a player of the game, or is a bot of the other
        player.
    """
    spec = read_player(player, game, name=name)
    if not seat and not isinstance(player, str):  # once for both players
        policy = spec.make_policy(game, seed)
        if policy is not None:
            probe(policy, open_game(game).game)
    return spec.make_bot(game, seat, seed)


def load_bot(game: Any, bot: str, player: int, *, seed: int = 0) -> pyspiel.Bot:
    """Make a bot from a string such as "resolving(solver=cfr+,move_ms=100)".

    Args:
      game: OpenSpiel game string, game, or a form of it; a game tree that was built
        with `observations=True` serves several bots.
      bot: Name and parameters in OpenSpiel's syntax. Parameters of a solver follow its
        name in parentheses: solver=evr-mccfr(batch=512). Other strings are an algorithm
        with its iterations, "cfr+(iterations=10)"; a fixed policy of poker; the path of
        a policy file that ends in .npz; or the module and name of a bot or policy that
        you wrote, "module:name" (see `player_strings.read_plugin`).
      player: The player whose moves it makes, 0 or 1.
      seed: Seed of all random choices of the bot.

    Raises:
      OSError: If a file cannot be read.
      ValueError: If the bot or a parameter is unknown, a value is bad, or game and bot
        are exchanged.

    Returns:
      The bot.

    Example:
      >>> import spiel_cr
      >>> bot = spiel_cr.load_bot("kuhn_poker", "resolving(iterations=100)", player=0)
      >>> state = spiel_cr.load_game("kuhn_poker").new_initial_state()
      >>> state.apply_action(2), state.apply_action(0)
      (None, None)
      >>> bot.step(state) in state.legal_actions()
      True
    """
    if isinstance(game, str) and is_player(game):
        raise ValueError(
            f"game={game!r} is a bot; the game comes first: load_bot(game, bot, player)"
        )
    return read_string(bot, "bot").make_bot(game, player, seed)


def prepare(
    game: Game, players: Sequence[object], *, memory_limit: Limit = MEMORY_LIMIT
) -> RepresentedGame | pyspiel.Game:
    """Build a game in the form that players share, unless none of them needs one.

    A phantom game is built if a player is a policy file of one. If all players that
    need the game tree can resolve the public-tree form of a large game that declares
    it, that form is built. If the tree is too large, and all these
    players are solutions of algorithms that sample, the game is simulated.

    Args:
      game: OpenSpiel game string, game, or game tree (with `observations=True`).
      players: Players, of which only strings may need a form of the game.
      memory_limit: Largest memory for the game, as in `build_tree`.

    Raises:
      ValueError: If a player needs the game tree, and that exceeds the limit; or the
        game is not supported.
      pyspiel.SpielError: If OpenSpiel does not know the game.
    """
    if isinstance(game, GameTree):
        return game
    opened = open_game(game)
    # An invalid limit is an error even if no game is built.
    parse_limit(memory_limit)
    specs = [read_string(text, "bot") for text in players if isinstance(text, str)]
    files = [spec.file for spec in specs if spec.file is not None]
    specs = [spec for spec in specs if spec.needs_tree]
    if not specs:
        # The bots of both players share the phantom form of their policy.
        shares = any(file.is_of_phantom_game for file in files)
        return phantom_game(opened) if shares else opened.game
    rejected = dict.fromkeys((PHANTOM, SIMULATOR), "")
    if not all(spec.resolves_public_tree for spec in specs):
        rejected[PUBLIC_TREE] = ""
    options = GameOptions(memory_limit=memory_limit)
    try:
        return represent(
            opened, options, FormRequirements(rejected, observations=True)
        )[0]
    except GameTooLargeError as error:
        unable = [spec for spec in specs if not spec.simulates]
        if not unable:
            return SimulatedGame(opened.game)
        name = unable[0].name
        remedy = ""
        if name.strip().startswith("resolving"):
            remedy = (
                "; or let the bot play on lookahead trees: resolving(max_histories=N)"
            )
        raise ValueError(
            f"bot={name!r} needs the game tree: {error}{remedy}"
        ) from error
