"""Fourth stage: opponents from strings."""

from collections.abc import Callable

import pyspiel
from open_spiel.python import policy as policy_lib

from spiel_cr.cfr import config as algorithm_lib
from spiel_cr.common.checks import check_iterations
from spiel_cr.compilation import loading
from spiel_cr.compilation.compiler import Game, as_compiled
from spiel_cr.compilation.tree import CompiledGame
from spiel_cr.players import bot_strings, bots
from spiel_cr.policies import result
from spiel_cr.responses.opponents import CHUMPS, BotPolicy, chump
from spiel_cr.solving.whole_game import solve


def load_opponent(
    text: str,
    game: Game,
    *,
    seed: int = 0,
    memory_limit: int | str | None = None,
) -> policy_lib.Policy:
    """An opponent from a string.

    Args:
      text: "uniform"; one of `CHUMPS`; an algorithm with its iterations, such as
        "cfr+(iterations=10)", whose average strategy is taken ("lp" needs none); the
        path of an .npz file that `SolveResult.save` or --save wrote; or a bot of
        `load_bot`, such as "resolving(iterations=100)", asked at each information
        state.
      game: OpenSpiel game string, game, or compiled game (with `observations=True` it
        serves bots as well). It is compiled if an algorithm, file or bot needs it.
      seed: of sampled algorithms and of bots.
      memory_limit: bytes, or a size like "3GB"; refuse to compile larger games.

    Raises:
      ValueError: no such opponent, a game too large for it, a bad parameter, or a
        chump in a game that is not poker.
      FileNotFoundError: no such file.
      pyspiel.SpielError: OpenSpiel does not know the game.
    """
    text = text.strip()
    loaded = game.game if isinstance(game, CompiledGame) else game
    if text == "uniform":
        return policy_lib.UniformRandomPolicy(loading.load_game(loaded))
    if text in CHUMPS:
        return chump(loaded, text)

    def compiled() -> CompiledGame:
        return as_compiled(game, observations=True, memory_limit=memory_limit)

    if text.endswith(".npz"):
        return result.load_policy(text, compiled())
    name = text.partition("(")[0].strip()
    if name in bot_strings.BOTS:
        # A player that grows a part of the game compiles it itself.
        whole = "max_histories=" in text
        return _from_bot(text, loaded if whole else compiled(), seed)
    algorithms = (*algorithm_lib.PRESETS, *algorithm_lib.SAMPLED_PRESETS, "lp")
    if name in algorithms:
        return _from_algorithm(text, compiled(), seed)
    raise ValueError(
        f"opponent={text!r}: there is no such opponent; choose uniform, one of "
        f"{', '.join(CHUMPS)}, an algorithm such as cfr+(iterations=10) (one of "
        f"{', '.join(algorithms)}), the path of a policy file that ends in .npz, or a "
        f"bot: {', '.join(bot_strings.BOTS)}"
    )


def _from_algorithm(text: str, game: Game, seed: int) -> policy_lib.Policy:
    if text == "lp":
        return solve(game, "lp", seed=seed).average_policy()
    try:
        given = dict(pyspiel.game_parameters_from_string(text))
    except (pyspiel.SpielError, RuntimeError) as error:
        raise ValueError(
            f"opponent={text!r} cannot be read: {error}; write "
            f"name(parameter=value,...)"
        ) from error
    iterations = given.pop("iterations", None)
    if iterations is None:
        raise ValueError(
            f"opponent={text!r}: how many iterations? Write, for instance, "
            f"{text.rstrip(')') + (',' if '(' in text else '(')}iterations=10)"
        )
    check_iterations(iterations)
    algorithm = pyspiel.game_parameters_to_string(given)
    solution = solve(
        game, algorithm.removesuffix("()"), iterations=iterations, seed=seed
    )
    return solution.average_policy()


def _maker(text: str, game: Game) -> Callable[[int, int], pyspiel.Bot]:
    def make_bot(player: int, seed: int) -> pyspiel.Bot:
        return bot_strings.load_bot(text, game, player, seed=seed)

    return make_bot


def _from_bot(text: str, game: Game, seed: int) -> BotPolicy:
    loaded = game.game if isinstance(game, CompiledGame) else game
    opponent = BotPolicy(loaded, _maker(text, game), seed=seed)
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
    if text.partition("(")[0].strip() not in bot_strings.BOTS or text == "uniform":
        return None
    bot = bot_strings.load_bot(text, game, player, seed=seed)
    if isinstance(bot, bots.PolicyBot):
        return None
    if isinstance(bot, bots.ResolvingBot):
        config = bot.resolver.config
        if config.move_ms is None and config.init_ms is None and not config.sampled:
            return None
    return bot
