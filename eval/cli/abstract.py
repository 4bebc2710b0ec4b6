"""The command `abstract`: put private states of a game into buckets.

With --budget, they are clustered; with --thresholds, similar ones are merged by the
approximate version of GameShrink, which cannot aim at a number of buckets. With
--iterations, the game of buckets is solved, and its strategy is evaluated in the
full game, where a best response sees its cards.

methods: {methods}

examples:
  spiel-cr abstract --game python_rhode_island_holdem --budget 13-50-250
  spiel-cr abstract --game 'python_leduc_poker(num_ranks=13)' --budget 5-20 \\
      --method win-probability --iterations 500
  spiel-cr abstract --game 'python_leduc_poker(num_ranks=13)' \\
      --thresholds 0-0.3 --iterations 500
"""

import dataclasses
import re
import time
from typing import Any

import spiel_cr
from spiel_cr.abstraction import buckets, gameshrink
from spiel_cr.abstraction.methods import METHODS
from spiel_cr.common.checks import check_iterations, read_budget
from spiel_cr.common.memory import Limit
from spiel_cr.common.messages import announce, one_line
from spiel_cr.common.parameters import read_settings
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.public_tree.public_tree_loading import public_tree_game
from spiel_cr.policies.best_responses import nash_conv, reach_of
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
    """

    game: str
    memory_limit: Limit = None
    seed: int = 0
    budget: str | None = None
    thresholds: str | None = None
    method: str = "potential-aware"
    iterations: int | None = None
    algorithm: str = "dcfr"


def run(arguments: Arguments) -> dict[str, object]:
    """Abstract a game."""
    if (arguments.budget is None) == (arguments.thresholds is None):
        raise ValueError(
            "--budget, --thresholds: give exactly one of them, such as --budget 5-20"
        )
    budget: tuple[int, ...] = ()
    thresholds: tuple[float, ...] = ()
    if arguments.thresholds is None:
        budget = read_budget(arguments.budget)
    else:
        thresholds = _read_thresholds(arguments.thresholds)
    method = read_settings(arguments.method, METHODS, "method")
    find(arguments.algorithm, families=(CFR,))
    if arguments.iterations is not None:
        check_iterations(arguments.iterations, name="--iterations")
    opened = open_game(arguments.game)
    limits = arguments.options("memory_limit")
    game = public_tree_game(opened, progress=True, **limits)
    report: dict[str, Any] = {"game": str(opened.game)}
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
        report |= _solve_buckets(game, partition, arguments)
        print(
            f"  NashConv   {report['nash_conv_of_buckets']:.6g} among buckets, "
            f"{report['nash_conv']:.6g} in the full game"
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
    game: PublicTreeGame, partition: gameshrink.Partition, arguments: Arguments
) -> dict[str, float]:
    """Solve the game of buckets, and compute NashConv there and in the full game."""
    announce("solving the game of buckets")
    result = spiel_cr.solve(
        gameshrink.coarsen(game, partition),
        arguments.algorithm,
        arguments.iterations,
        options=arguments.settings(spiel_cr.GameOptions),
        progress=True,
    )
    announce("evaluating in the full game")
    low, high = result.value_bounds()
    behaviour = gameshrink.lift(game, partition, result.sequence_form_and_average()[1])
    form = game.sequence_form
    return {
        "iterations": result.iterations,
        "nash_conv_of_buckets": high - low,
        "nash_conv": nash_conv(form, reach_of(form, behaviour)),
    }
