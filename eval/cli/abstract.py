"""The command `abstract`: put private states of a game into buckets.

--budget clusters private states into a number of buckets. --thresholds merges similar
ones by the approximate version of GameShrink, in which the number of buckets cannot be
chosen. With --iterations, the game of buckets is solved, and its strategy is evaluated
in the full game, where a best response sees its cards.

With --early-rounds, only the first rounds are abstracted and solved, and play in later
rounds is fixed by --later, as in the first poker programs (GS1: check-down; GS2: a
policy). This usually loses much more than buckets in all rounds. --endgames solves the
last round again.

methods: {methods}

examples:
  spiel-cr abstract --game python_rhode_island_holdem --budget 13-50-250
  spiel-cr abstract --game 'python_leduc_poker(num_ranks=13)' --budget 5-20 \\
      --method win-probability --iterations 500
  spiel-cr abstract --game 'python_leduc_poker(num_ranks=13)' \\
      --thresholds 0-0.3 --iterations 500
  spiel-cr abstract --game 'python_leduc_poker(num_ranks=13)' --budget 5 \\
      --early-rounds 1 --later check-down --endgames unsafe --iterations 500
"""

import dataclasses
import re
import time
from typing import Any, Literal

import spiel_cr
from spiel_cr.abstraction import buckets, gameshrink
from spiel_cr.abstraction.methods import METHODS
from spiel_cr.common.checks import check_iterations, read_budget
from spiel_cr.common.memory import Limit
from spiel_cr.common.messages import announce, number_text, one_line
from spiel_cr.common.parameters import read_settings
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.public_tree.public_tree_loading import public_tree_game
from spiel_cr.policies.best_responses import nash_conv, reach_of
from spiel_cr.resolving import first_phase
from spiel_cr.resolving.public_endgames import solve_endgames
from spiel_cr.solvers.algorithms import CFR, find

from .command import Arguments

LISTS = {"methods": ", ".join(METHODS)}


@dataclasses.dataclass(kw_only=True)
class AbstractOptions:
    """Options of the command.

    Attributes:
      budget (N-N-...): Maximum number of buckets of a player in each round, joined by
        dashes.
      thresholds (X-X-...): Instead of a budget, the largest difference between shares
        of wins and losses of two merged private states in each round, joined by dashes.
      method: Features by which to cluster, with settings; see below.
      iterations: Solve the game of buckets with so many iterations.
      algorithm: Full-width algorithm for this.
      early_rounds: Abstract and solve only so many rounds; later play is fixed.
      later (check-down|uniform|FILE): Play in the later rounds; FILE is a policy of
        --save with --form public-tree.
      endgames: Solve the last round again: cfrd is safe, unsafe assumes that the
        opponent played the first rounds as the strategy does.
    """

    game: str
    memory_limit: Limit = None
    seed: int = 0
    budget: str | None = None
    thresholds: str | None = None
    method: str = "potential-aware"
    iterations: int | None = None
    algorithm: str = "dcfr"
    early_rounds: int | None = None
    later: str = first_phase.CHECK_DOWN
    endgames: Literal["cfrd", "unsafe"] | None = None


def run(arguments: Arguments) -> dict[str, object]:
    """Abstract a game."""
    texts = arguments.budget, arguments.thresholds
    budget = () if texts[0] is None else read_budget(texts[0])
    thresholds = () if texts[1] is None else _read_thresholds(texts[1])
    if bool(budget) == bool(thresholds):
        raise ValueError(
            "--budget, --thresholds: give exactly one of them, such as --budget 5-20"
        )
    method = read_settings(arguments.method, METHODS, "method")
    find(arguments.algorithm, families=(CFR,))
    if arguments.early_rounds is None:
        arguments.reject(AbstractOptions, ["later"], "needs --early-rounds", "add it")
    if arguments.iterations is None:
        arguments.reject(AbstractOptions, ["endgames"], "needs --iterations", "add it")
    else:
        check_iterations(arguments.iterations, name="--iterations")
    opened = open_game(arguments.game)
    limits = arguments.options("memory_limit")
    full_game = game = public_tree_game(opened, progress=True, **limits)
    if (rounds := arguments.early_rounds) is not None:
        game = first_phase.early_rounds(full_game, rounds, arguments.later)
    report: dict[str, Any] = {"game": str(opened.game)}
    report |= arguments.options("early_rounds", "later", "endgames")
    start = time.perf_counter()
    if thresholds:
        announce("merging private states")
        partition = gameshrink.histogram_partition(game, thresholds)
        report["thresholds"] = thresholds
    else:
        buckets.check_budget(game, budget)
        announce("clustering private states")
        partition, costs = buckets.abstract(game, budget, method, seed=arguments.seed)
        report |= {"budget": list(budget), "method": dataclasses.asdict(method)}
        report["costs"] = costs
    report |= {
        "seconds": time.perf_counter() - start,
        "signals": [game.num_private_states(player) for player in range(2)],
        "buckets": [partition.num_classes(player) for player in range(2)],
    }
    name = "GameShrink with thresholds" if thresholds else arguments.method
    print(f"{one_line(opened.game)}, by {name}")
    for r, counts in enumerate(zip(*report["signals"], strict=True)):
        kept = " / ".join(f"{report['buckets'][player][r]:,}" for player in range(2))
        states = " / ".join(f"{count:,}" for count in counts)
        print(f"  round {r}    {kept} buckets of {states} private states")
    if arguments.iterations is not None:
        report |= _solve_buckets(full_game, game, partition, arguments)
        print(
            f"  NashConv   {number_text(report['nash_conv_of_buckets'])} among "
            f"buckets, {number_text(report['nash_conv'])} in the full game"
        )
    return report


def _read_thresholds(text: str) -> tuple[float, ...]:
    """Return numbers by round from a text such as "0-0.3"."""
    parts = text.split("-")
    if not all(re.fullmatch(r"\d+(\.\d+)?|\.\d+", part, re.ASCII) for part in parts):
        raise ValueError(
            f"--thresholds: invalid numbers {text!r}; use decimal numbers of at least "
            f"0, joined by dashes, such as 0-0.3"
        )
    return tuple(float(part) for part in parts)


def _solve_buckets(
    full_game: PublicTreeGame,
    game: PublicTreeGame,
    partition: gameshrink.Partition,
    arguments: Arguments,
) -> dict[str, float]:
    """Solve the game of buckets, and compute NashConv there and in the full game.

    Args:
      full_game: The full game.
      game: The full game, or its early rounds.
      partition: Buckets of the private states of `game`.
      arguments: The options.
    """
    announce("solving the game of buckets")
    result = spiel_cr.solve(
        gameshrink.coarsen(game, partition),
        arguments.algorithm,
        arguments.iterations,
        options=arguments.settings(spiel_cr.GameOptions),
        progress=True,
    )
    low, high = result.value_bounds()
    behaviour = gameshrink.lift(game, partition, result.sequence_form_and_average()[1])
    if game is not full_game:
        behaviour = first_phase.with_later_rounds(full_game, behaviour, arguments.later)
    if arguments.endgames:
        announce("solving the endgames")
        behaviour = solve_endgames(
            full_game,
            behaviour,
            gadget=arguments.endgames,
            iterations=arguments.iterations,
            progress=True,
        )
    announce("evaluating in the full game")
    form = full_game.sequence_form
    return {
        "iterations": result.iterations,
        "nash_conv_of_buckets": high - low,
        "nash_conv": nash_conv(form, reach_of(form, behaviour)),
    }
