"""Opponents from strings."""

import pyspiel
from open_spiel.python.policy import Policy, UniformRandomPolicy

from spiel_cr.cfr.config import ALGORITHMS
from spiel_cr.common.memory import Limit
from spiel_cr.common.parameters import parse
from spiel_cr.compilation import loading
from spiel_cr.compilation.compiler import Game, as_compiled
from spiel_cr.compilation.tree import CompiledGame
from spiel_cr.deep.policy import load_deep_policy
from spiel_cr.players.bot_strings import (
    BOTS,
    bot_name,
    check_bot,
    load_bot,
    needs_whole,
)
from spiel_cr.players.bots import PolicyBot, ResolvingBot, plain_game
from spiel_cr.players.iterate_bot import IterateBot
from spiel_cr.players.own_players import is_own, load_own
from spiel_cr.responses.opponents import CHUMPS, BotPolicy, chump
from spiel_cr.solving.policy_files import (
    check_policy_file,
    is_of_signals,
    load_policy,
    needs_compiled,
)
from spiel_cr.solving.whole_game import check_arguments, solve

_ALGORITHMS = (*ALGORITHMS, "lp")


def load_opponent(
    text: str, game: Game, *, seed: int = 0, memory_limit: Limit = None
) -> Policy:
    """An opponent from a string.

    Args:
      text: "uniform"; one of `CHUMPS`; an algorithm with its iterations, such as
        "cfr+(iterations=10)", whose average strategy is taken ("lp" needs none); the
        path of an .npz file that --save wrote, or `save` of a result; or a bot of
        `load_bot`, such as "resolving(iterations=100)", asked at each information
        state.
      game: OpenSpiel game string, game, or compiled game (with `observations=True` it
        serves bots as well). It is compiled if an algorithm, file or bot needs it.
      seed: of sampled algorithms and of bots.
      memory_limit: refuse to compile larger games; as for `compile_game`.

    Raises:
      ValueError: no such opponent, a game too large for it, a bad parameter, or a
        chump in a game that is not poker.
      FileNotFoundError: no such file.
      pyspiel.SpielError: OpenSpiel does not know the game.
    """
    check_opponent(text, game)
    text = text.strip()
    plain = plain_game(game)
    if text == "uniform":
        return UniformRandomPolicy(loading.load_game(plain))
    if text in CHUMPS:
        return chump(plain, text)

    def compiled() -> CompiledGame:
        return as_compiled(game, observations=True, memory_limit=memory_limit)

    if text.endswith(".npz"):
        return load_policy(text, compiled() if needs_compiled(text) else game)
    if bot_name(text) == "deep":
        # Also where the bot draws an iterate per match: over matches it plays this.
        return load_deep_policy(parse(text, "opponent").given["path"], plain)
    if is_own(text):
        own = load_own(text, plain, 0, seed)
        if isinstance(own, Policy):
            return own
    if bot_name(text) in BOTS or is_own(text):
        return _from_bot(text, compiled() if needs_whole(text) else plain, seed)
    algorithm, iterations = _read_algorithm(text)
    return solve(compiled(), algorithm, iterations, seed=seed).average_policy()


def check_opponent(text: str, game: Game) -> None:
    """Refuses what `load_opponent` refuses before it compiles the game.

    Args:
      text: as for `load_opponent`.
      game: as there; only fixed players of poker look at it.

    Raises:
      OSError, ValueError, pyspiel.SpielError: as `load_opponent`.
    """
    text = text.strip()
    if text in CHUMPS:
        chump(plain_game(game), text)
    elif text.endswith(".npz"):
        check_policy_file(text)
    elif bot_name(text) in BOTS or is_own(text):
        check_bot(text)
    elif bot_name(text) in _ALGORITHMS:
        check_arguments(*_read_algorithm(text))
    else:
        raise ValueError(
            f"opponent={text!r}: there is no such opponent; choose uniform, one of "
            f"{', '.join(CHUMPS)}, an algorithm such as cfr+(iterations=10) (one of "
            f"{', '.join(_ALGORITHMS)}), the path of a policy file that ends in .npz, "
            f"or a bot: {', '.join(BOTS)}, or module:name of your own"
        )


def signal_file(text: str) -> str | None:
    """The file of a policy of a signal game that a string names; None: it names none.

    Args:
      text: as for `load_opponent`, checked: a path, or "policy(path=...)".

    Raises:
      OSError, DamagedFileError: the file cannot be read, or is none of ours.
    """
    path: str | None = text.strip()
    if bot_name(text) == "policy":
        path = parse(text, "bot").given.get("path")
    if path is None or not path.endswith(".npz"):
        return None
    return path if is_of_signals(path) else None


def _read_algorithm(text: str) -> tuple[str, int | None]:
    """The algorithm in a string, and its iterations; linear programming needs none."""
    if text == "lp":
        return "lp", None
    found = parse(text, "opponent")
    if "iterations" not in found.given:
        raise ValueError(
            f"opponent={text!r}: how many iterations? Write, for instance, "
            f"{text.rstrip(')') + (',' if '(' in text else '(')}iterations=10)"
        )
    types = {**dict.fromkeys(found.given, str), "iterations": int}
    return found.without("iterations"), found.convert(types)["iterations"]


def _from_bot(text: str, game: Game, seed: int) -> BotPolicy:
    def make_bot(player: int, seed: int) -> pyspiel.Bot:
        return load_bot(text, game, player, seed=seed)

    opponent = BotPolicy(plain_game(game), make_bot, seed=seed)
    # A misspelt bot is refused now.
    opponent.bot(0)
    return opponent


def load_rival(
    text: str, game: Game, player: int, *, seed: int = 0
) -> pyspiel.Bot | None:
    """The bot itself that a string names, where its policy is only an estimate of it.

    Args:
      text: as for `load_opponent`.
      game: as there.
      player: the seat.
      seed: of the bot; another one than the estimate's makes what it draws independent
        of that.

    Returns:
      None where `load_opponent` gives a policy that is exact: no bot, a bot with a
      fixed strategy, or one whose resolving depends on the number of iterations only.
    """
    text = text.strip()
    known = bot_name(text) in BOTS or is_own(text)
    if not known or text == "uniform":
        return None
    bot = load_bot(text, game, player, seed=seed)
    if isinstance(bot, PolicyBot | IterateBot):
        return None
    if isinstance(bot, ResolvingBot):
        config = bot.resolver.config
        if config.move_ms is None and config.init_ms is None and not config.sampled:
            return None
    return bot
