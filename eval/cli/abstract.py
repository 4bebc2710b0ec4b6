"""The command `abstract`: lossy abstraction of a game's signals.

examples:
  spiel-cr abstract --game python_rhode_island_holdem --budget 13-50-250
  spiel-cr abstract --game 'python_leduc_poker(num_ranks=13)' --budget 5-20 \\
      --method win-probability --iterations 500

With --iterations the game of buckets is solved, and its strategy judged in the whole
game, where a best response sees its cards.
"""

import dataclasses
import time
from typing import Any

import numpy as np

import spiel_cr
from spiel_cr.abstraction import buckets, gameshrink
from spiel_cr.abstraction.methods import METHODS
from spiel_cr.common.checks import check_iterations, read_budget
from spiel_cr.common.messages import announce, one_line
from spiel_cr.common.parameters import read_settings
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.public_tree.public_tree_loading import public_tree_game
from spiel_cr.policies import best_responses, conversions
from spiel_cr.solvers.algorithms import CFR, find

from .command import Arguments, Commands, add_command


def add(commands: Commands) -> None:
    """Adds the command."""
    text = "put a game's signals into buckets, and say what that loses"
    parser = add_command(commands, "abstract", _abstract, text, __doc__)
    for flag in ("--game", "--memory-limit", "--seed"):
        parser.option(flag)
    text = "the most buckets of a player in each round, joined by dashes"
    parser.option("--budget", text, required=True, metavar="N-N-...")
    names = ", ".join(METHODS)
    text = f"by what signals are clustered, with settings: {names}"
    parser.option("--method", text, "potential-aware")
    parser.option("--iterations", "solve the game of buckets for as many iterations")
    parser.option("--algorithm", "of the CFR family, to solve it by", "dcfr")


def _abstract(arguments: Arguments) -> dict[str, object]:
    budget = read_budget(arguments.budget)
    method = read_settings(arguments.method, METHODS, "method")
    find(arguments.algorithm, families=(CFR,))
    if arguments.iterations is not None:
        check_iterations(arguments.iterations, name="--iterations")
    opened = open_game(arguments.game)
    limits = arguments.given("memory_limit")
    signals = public_tree_game(opened, progress=True, **limits)
    buckets.check_budget(signals, budget)
    announce("putting signals into buckets")
    started = time.perf_counter()
    found = buckets.abstract(signals, budget, method, seed=arguments.seed)
    row: dict[str, Any] = {
        "game": str(opened.game),
        "budget": list(budget),
        "method": dataclasses.asdict(method),
        "seconds": time.perf_counter() - started,
        "signals": [signals.num_private_states(player) for player in range(2)],
        "buckets": [found.partition.num_classes(player) for player in range(2)],
        "costs": found.costs,
    }
    print(f"{one_line(opened.game)}, by {arguments.method}")
    for r, counts in enumerate(zip(*row["signals"], strict=True)):
        kept = " / ".join(f"{row['buckets'][player][r]:,}" for player in range(2))
        all_of = " / ".join(f"{count:,}" for count in counts)
        print(f"  round {r}    {kept} buckets of {all_of} signals")
    if arguments.iterations is not None:
        row |= _solved(signals, found.partition, arguments)
        print(
            f"  NashConv   {row['nash_conv_of_buckets']:.6g} among buckets, "
            f"{row['nash_conv']:.6g} in the whole game"
        )
    return row


def _solved(
    signals: PublicTreeGame, partition: gameshrink.Partition, arguments: Arguments
) -> dict[str, float]:
    """Solves the game of buckets; both NashConvs, in the game's units."""
    announce("solving the game of buckets")
    result = spiel_cr.solve(
        gameshrink.coarsen(signals, partition),
        arguments.algorithm,
        arguments.iterations,
        options=spiel_cr.GameOptions(memory_limit=arguments.memory_limit),
        progress=True,
    )
    announce("evaluating in the whole game")
    low, high = result.value_bounds()
    lifted = gameshrink.lift(signals, partition, result.sequence_form_and_average()[1])
    return {
        "iterations": result.iterations,
        "nash_conv_of_buckets": high - low,
        "nash_conv": whole_nash_conv(signals, lifted),
    }


def whole_nash_conv(
    signals: PublicTreeGame, behaviour: tuple[np.ndarray, np.ndarray]
) -> float:
    """Exact NashConv in the whole game of action probabilities by logical sequence."""
    form = signals.sequence_form
    first, second = (
        conversions.reach_from_behaviour(own, np.asarray(mine, np.float64))
        for own, mine in zip(form.decisions, behaviour, strict=True)
    )
    return best_responses.nash_conv(form, (first, second))
