"""Players as people give them: strings, policies, results, bots, functions."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.tree.compiler import Game
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.players import bot_strings, opponent_strings
from spiel_cr.players.bots import PolicyBot
from spiel_cr.players.opponents import BotPolicy
from spiel_cr.policies.bot_base import check_seat, gives_policy
from spiel_cr.policies.foreign import as_policy, probe
from spiel_cr.policies.result import Result

# A policy of both seats: a string, a result, an OpenSpiel policy of Python or C++, a
# pair of policies, a table by information state strings, or a function of a state.
GivenPolicy: TypeAlias = (
    str
    | openspiel_policy.Policy
    | pyspiel.Policy
    | Result
    | Sequence[Any]
    | Mapping[Any, Any]
    | Callable[[pyspiel.State], Any]
)
# Makes a bot of a seat and a seed.
BotMaker: TypeAlias = Callable[[int, int], pyspiel.Bot]
GivenPlayer: TypeAlias = GivenPolicy | pyspiel.Bot | BotMaker


def check_order(game: object, judged: object, call: str) -> None:
    """Refuses a game that stands behind who is to be judged.

    Args:
      game: what stands in the game's place.
      judged: what stands in the other one.
      call: what to write, for the error.
    """
    if _is_game(judged) and not _is_game(game):
        raise ValueError(f"the game comes first: {call}; exchange the two arguments")


def _is_game(given: object) -> bool:
    """Whether it is a game, or the string of one that is registered."""
    if isinstance(given, str):
        return given.partition("(")[0].strip() in pyspiel.registered_names()
    return isinstance(given, pyspiel.Game | GameTree)


def seat_bot(
    given: GivenPlayer, game: Game, seat: int, *, seed: int, name: str
) -> pyspiel.Bot:
    """A bot in a seat.

    Args:
      given: a string for `load_bot`, a policy, a result, a function that makes a bot of
        a seat and a seed, or a bot of that seat.
      game: for strings.
      seat: 0 or 1.
      seed: of what the bot draws; a bot that is given has its own.
      name: of the argument, for errors.

    Raises:
      ValueError: none of these, or a bot of the other seat.
    """
    if isinstance(given, str):
        return bot_strings.load_bot(game, given, seat, seed=seed)
    policy = read_policy(given, open_game(game).game, name=name)
    if policy is not None:
        if not seat:  # once for both seats
            probe(policy, open_game(game).game)
        return PolicyBot(seat, policy, seed=seed)
    return _seated(given, game, seat, seed, name)


def read_policy(
    given: object, game: pyspiel.Game, *, name: str = "policy"
) -> openspiel_policy.Policy | None:
    """Return a policy of both players; None: what was given is not a policy.

    Args:
      given: Anything but a string; see `foreign.as_policy`. Members of a pair may be
        strings that name policies.
      game: The sequential game.
      name: The argument's name, for errors.
    """
    pair = _pair(given)
    if pair is not None:
        given = [
            _named_policy(each, game) if isinstance(each, str) else each
            for each in pair
        ]
    return as_policy(given, game, name)


def _named_policy(text: str, game: pyspiel.Game) -> openspiel_policy.Policy:
    named = opponent_strings.read_opponent(text, game)
    return opponent_strings.policy_of(named, game, 0)


def _pair(given: object) -> tuple[object, object] | None:
    """Return the parts of players 0 and 1; None: what was given is not a pair."""
    if isinstance(given, Mapping) and set(given) == {0, 1}:
        return given[0], given[1]
    if isinstance(given, list | tuple) and len(given) == 2:
        return given[0], given[1]
    return None


def _seated(given: object, game: Game, seat: int, seed: int, name: str) -> pyspiel.Bot:
    """See `seat_bot`; of bots, functions that make bots, and pairs of these."""
    bot = given
    if (pair := _pair(given)) is not None:
        return seat_bot(pair[seat], game, seat, seed=seed, name=f"{name}[{seat}]")
    if not isinstance(given, pyspiel.Bot) and callable(given):
        _check_maker(given, name)
        bot = given(seat, seed)
    if not isinstance(bot, pyspiel.Bot):
        policy = None if bot is given else read_policy(bot, open_game(game).game)
        if policy is not None:
            return PolicyBot(seat, policy, seed=seed)
        raise ValueError(
            f"{name}={given!r} is no player; give a string such as "
            f"'resolving(iterations=100)', a policy, a pair of policies, a result of "
            f"solve, a bot, a function of (player, seed) that makes one, or a function "
            f"of a state that returns probabilities"
        )
    check_seat(bot, seat, name)
    return bot


def _check_maker(make: Callable[..., object], name: str) -> None:
    """Refuses a function that does not take a seat and a seed."""
    try:
        inspect.signature(make).bind(0, 0)
    except TypeError as error:
        raise ValueError(
            f"{name}={make!r}: {error}; give a function of (player, seed) that makes a "
            f"bot, or a function of a state that returns probabilities by action"
        ) from error
    except ValueError:  # of C++
        pass


def asked_player(
    given: GivenPlayer, game: pyspiel.Game, seat: int, *, seed: int
) -> tuple[openspiel_policy.Policy, tuple[pyspiel.Bot, pyspiel.Bot] | None]:
    """Return a policy as it is, and a bot as a policy of its answers.

    Args:
      given: Anything but a string.
      game: The sequential game.
      seat: The seat of a bot that has one; in the other seat it plays uniformly.
      seed: Seed for the bots' random choices.

    Returns:
      The policy of both seats; and the bots of player 0 and of player 1 if they are
      known by their moves alone, otherwise None.

    Raises:
      ValueError: If it is not a player, or a bot of the other seat.
    """
    policy = read_policy(given, game)
    if policy is not None:
        return policy, None
    if isinstance(given, pyspiel.Bot):
        check_seat(given, seat, "policy_or_bot")

    def make(player: int, seed: int) -> pyspiel.Bot:
        if isinstance(given, pyspiel.Bot) and player != seat:
            uniform = openspiel_policy.UniformRandomPolicy(game)
            return PolicyBot(player, uniform, seed=seed)
        return _seated(given, game, player, seed, "policy_or_bot")

    first, second = (make(player, seed + 1 + player) for player in (0, 1))
    tells = gives_policy(first) and gives_policy(second)
    return BotPolicy(game, make, seed=seed), None if tells else (first, second)
