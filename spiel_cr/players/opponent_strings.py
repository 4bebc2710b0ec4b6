"""Opponents from strings."""

import numpy as np
import pyspiel
from open_spiel.python.policy import Policy

from spiel_cr.common.parameters import parse
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.players import bot_strings
from spiel_cr.players.bot_strings import BOTS, NamedBot, bot_name
from spiel_cr.players.bots import PolicyBot
from spiel_cr.players.opponents import CHUMPS, BotPolicy, chump
from spiel_cr.solvers.algorithms import CFR, LP, MCCFR
from spiel_cr.solvers.policy_files import is_of_public_tree

_ALGORITHMS = (*CFR.presets, *MCCFR.presets, *LP.presets)


def policy_of(
    named: NamedBot,
    game: GameTree | pyspiel.Game,
    seed: int,
    *,
    asked_here: bool = True,
) -> Policy:
    """What a named player plays in both seats; a bot is asked, see `BotPolicy`.

    Args:
      named: from `read_opponent`.
      game: compiled if it plays on the whole of it.
      seed: of sampled algorithms and of bots.
      asked_here: make a bot now; else only when it is needed.
    """
    policy = named.policy(game, seed)
    if policy is not None:
        return policy
    asked = BotPolicy(
        game.game if isinstance(game, GameTree) else game,
        lambda player, seed: named.make(game, player, seed),
        seed=seed,
    )
    if asked_here:
        # What the game makes wrong is refused now.
        asked.bot(0)
    return asked


def read_opponent(text: str, game: pyspiel.Game) -> NamedBot:
    """Reads a string, and compiles nothing.

    Args:
      text: "uniform"; one of `CHUMPS`; an algorithm with its iterations, such as
        "cfr+(iterations=10)", whose average strategy is taken ("lp" needs none); the
        path of an .npz file that --save wrote, or `save` of a result; or a bot of
        `load_bot`, such as "resolving(iterations=100)", asked at each information
        state.
      game: sequential; only fixed players of poker look at it.

    Raises:
      ValueError: no such opponent, a bad parameter, or a chump in a game that is not
        poker.
      FileNotFoundError: no such file.
    """
    text = text.strip()
    if text in CHUMPS:
        policy = chump(game, text)
        return bot_strings.plays(lambda game, seed: policy, whole=False)
    if bot_strings.is_bot(text):
        return bot_strings.read_bot(text, "policy")
    if bot_name(text) in _ALGORITHMS:
        algorithm, iterations = _read_algorithm(text)
        return bot_strings.solved({"solver": algorithm, "iterations": iterations})
    raise ValueError(
        f"opponent={text!r}: there is no such opponent; choose uniform, one of "
        f"{', '.join(CHUMPS)}, an algorithm such as cfr+(iterations=10) (one of "
        f"{', '.join(_ALGORITHMS)}), the path of a policy file that ends in .npz, "
        f"or a bot: {', '.join(BOTS)}, or module:name of your own"
    )


def public_tree_file(text: str) -> str | None:
    """The file of a policy of a signal game that a string names; None: it names none.

    Args:
      text: as for `read_opponent`, checked: a path, or "policy(path=...)".

    Raises:
      OSError, CorruptFileError: the file cannot be read, or is none of ours.
    """
    path: str | None = text.strip()
    if bot_name(text) == "policy" and not bot_strings.is_file(text):
        path = parse(text, "bot").values.get("path")
    if path is None or not path.endswith(".npz"):
        return None
    return path if is_of_public_tree(path) else None


def _read_algorithm(text: str) -> tuple[str, int | None]:
    """The algorithm in a string, and its iterations; linear programming needs none."""
    if text == "lp":
        return "lp", None
    found = parse(text, "opponent")
    if "iterations" not in found.values:
        raise ValueError(
            f"opponent={text!r}: how many iterations? Write, for instance, "
            f"{text.rstrip(')') + (',' if '(' in text else '(')}iterations=10)"
        )
    types = {**dict.fromkeys(found.values, str), "iterations": int}
    return found.without("iterations"), found.convert(types)["iterations"]


def rivals_of(
    named: NamedBot, game: GameTree | pyspiel.Game, seed: int
) -> tuple[pyspiel.Bot, pyspiel.Bot] | None:
    """The bots themselves, where their policy is only an estimate of them.

    Args:
      named: from `read_opponent`.
      game: as for `policy_of`.
      seed: of the estimate. The bots have others, since what that happened to draw is
        not their style.

    Returns:
      Those of player 0 and of player 1; None where `policy_of` gives a policy that is
      exact: no bot, a bot with a fixed strategy, or one whose resolving depends on the
      number of iterations only.
    """
    if named.exact:
        return None
    seeds = (
        np.random.SeedSequence([seed, 2, 1 - seat]).generate_state(1)[0] >> 1
        for seat in (0, 1)
    )
    first, second = (named.make(game, seat, int(own)) for seat, own in enumerate(seeds))
    # A user's policy.
    policies = isinstance(first, PolicyBot) or isinstance(second, PolicyBot)
    return None if policies else (first, second)
