"""Players as people give them: strings, policies, results, bots, functions."""

import inspect
from collections.abc import Callable
from typing import TypeAlias

import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.games.tree.compiler import Game
from spiel_cr.games.tree.tree import CompiledGame
from spiel_cr.players import bot_strings
from spiel_cr.players.bots import PolicyBot
from spiel_cr.players.opponents import BotPolicy
from spiel_cr.policies.bot_base import check_seat
from spiel_cr.policies.result import Result

# A policy of both seats.
GivenPolicy: TypeAlias = str | openspiel_policy.Policy | Result
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
    return isinstance(given, pyspiel.Game | CompiledGame)


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
    if isinstance(given, Result):
        given = given.average_policy()
    return _seated(given, seat, seed, name)


def _seated(given: object, seat: int, seed: int, name: str) -> pyspiel.Bot:
    """See `seat_bot`; of anything but strings and results."""
    if isinstance(given, openspiel_policy.Policy):
        return PolicyBot(seat, given, seed=seed)
    bot = given
    if not isinstance(given, pyspiel.Bot) and callable(given):
        _check_maker(given, name)
        bot = given(seat, seed)
    if not isinstance(bot, pyspiel.Bot):
        raise ValueError(
            f"{name}={given!r} is no player; give a string such as "
            f"'resolving(iterations=100)', a policy, a result of solve, a bot, or a "
            f"function of (player, seed) that makes one"
        )
    check_seat(bot, seat, name)
    return bot


def _check_maker(make: Callable[..., object], name: str) -> None:
    """Refuses a function that does not take a seat and a seed."""
    try:
        inspect.signature(make).bind(0, 0)
    except TypeError as error:
        raise ValueError(
            f"{name}={make!r}: {error}; a function must be (player, seed) -> bot; of a "
            f"function of states make an OpenSpiel policy: subclass "
            f"open_spiel.python.policy.Policy"
        ) from error
    except ValueError:  # of C++
        pass


def asked_player(
    given: GivenPlayer, game: pyspiel.Game, seat: int, *, seed: int
) -> tuple[openspiel_policy.Policy, tuple[pyspiel.Bot, pyspiel.Bot] | None]:
    """A policy as it is; a bot by what it answers, see `BotPolicy`.

    Args:
      given: no string, and no result.
      game: sequential.
      seat: of a bot that has one; in the other seat it plays uniformly.
      seed: of what bots draw.

    Returns:
      The policy of both seats; and the bots of player 0 and of player 1 where these are
      known by their moves alone, else None.

    Raises:
      ValueError: no player, or a bot of the other seat.
    """
    if isinstance(given, openspiel_policy.Policy):
        return given, None
    if isinstance(given, pyspiel.Bot):
        check_seat(given, seat, "policy_or_bot")

    def make(player: int, seed: int) -> pyspiel.Bot:
        absent = isinstance(given, pyspiel.Bot) and player != seat
        who = openspiel_policy.UniformRandomPolicy(game) if absent else given
        return _seated(who, player, seed, "policy_or_bot")

    first, second = (make(player, seed + 1 + player) for player in (0, 1))
    tells = first.provides_policy() and second.provides_policy()
    return BotPolicy(game, make, seed=seed), None if tells else (first, second)
