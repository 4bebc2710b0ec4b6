"""Players of lookahead trees: how exploitable they are, and matches.

A player is asked at every infoset of a game that can still be compiled whole, and
OpenSpiel judges the strategy that it answers with. Games that are too large for that
are played in: against OpenSpiel's search with as much time per move, and against
uniform play, in alternating seats.
"""

import argparse
import itertools
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyspiel
from open_spiel.python.algorithms import ismcts, mcts
from open_spiel.python.policy import UniformRandomPolicy

import spiel_cr
from benchmarks.document import PEAK, Column, over_seeds
from benchmarks.frame import Benchmark, Option, Part, Row, Table, product
from benchmarks.games import game_of, string_of
from spiel_cr.common.memory import peak_bytes
from spiel_cr.common.statistics import mean_and_half_width
from spiel_cr.evaluation import evaluate, traversal
from spiel_cr.evaluation.referee import play_match
from spiel_cr.policies.beliefs.state_posterior import StatePosterior

# The histories that lookahead trees may have: a ninth of all, a quarter, a half.
SIZES = {
    "ii_goofspiel4": (250, 557, 1114),
    "leduc": (1050, 2364, 4728),
    "liars_dice4": (909, 2045, 4090),
    "leduc_9_chips": (180, 405, 810),
    "ii_goofspiel5": (6192, 13932, 27865),
}
OPPONENTS = {"ismcts": "OpenSpiel's ISMCTSBot", "uniform": "uniform random"}
# Histories that the ISMCTSBot's samples are drawn from.
_WORLDS = 2000
# Simulations of a search at first, and matches that say how many there is time for.
_PILOT, _PILOTS = 50, 4
_COUNTED = ("moves", "late_moves", "programs_compiled")
OPTIONS = {
    "games": Option(tuple(SIZES), "of part exploitability"),
    "sizes": Option((), "histories of a tree (default: by game)", kind=int),
    "iterations": Option((100,), "per solve of part exploitability, without a clock"),
    "clocks": Option(
        (), "milliseconds per move of part exploitability (default: none)", kind=float
    ),
    "blueprints": Option(
        (10, 100, 1000), "iterations of CFR+; 0: the player's own", least=0
    ),
    "settings": Option((), "of all bots, such as gadget=maxmargin", kind=str),
    "seeds": Option(4, "of each bot of part exploitability"),
    "large": Option(("phantom_ttt", "ii_goofspiel7"), "of part matches"),
    "bots": Option((), "of part matches, with move_ms (default: of trees)", kind=str),
    "opponents": Option(tuple(OPPONENTS), "of part matches", tuple(OPPONENTS)),
    "matches": Option(200, "against each opponent, seats in turn", least=2),
    "move_ms": Option(1000.0, "milliseconds of a move in matches"),
    "max_histories": Option(200_000, "of the lookahead tree in matches"),
}


def measure(game: str, bot: str, blueprint: int, seed: int) -> Row:
    """NashConv of a bot by asking it everywhere.

    Args:
      game: OpenSpiel string or short name.
      bot: for `spiel_cr.load_bot`, without its blueprint.
      blueprint: its iterations of CFR+ on the whole game; 0: the player makes one.
      seed: of both seats.
    """
    tree = spiel_cr.build_tree(string_of(game), observations=True)
    begun, of_blueprint = time.perf_counter(), None
    with tempfile.TemporaryDirectory() as folder:
        if blueprint:
            solved = spiel_cr.solve(tree, "cfr+", blueprint)
            of_blueprint = solved.nash_conv()
            solved.save(f"{folder}/blueprint.npz")
            bot = f"{bot[:-1]},blueprint={folder}/blueprint.npz)"
        first, second = (
            traversal.traverse(tree, spiel_cr.load_bot(tree, bot, seat, seed=seed))
            for seat in range(2)
        )
    evaluation = evaluate.evaluate_strategies(tree, (first, second))
    return {
        "histories": len(tree.histories),
        "of_blueprint": of_blueprint,
        "nash_conv": evaluation.nash_conv,
        **{name: evaluation.statistics[name] for name in _COUNTED},
        "max_ms": evaluation.statistics["max_ms"],
        "mean_ms": 1000 * evaluation.seconds / evaluation.statistics["moves"],
        "seconds": time.perf_counter() - begun,
        "peak_bytes": peak_bytes(),
    }


class Worlds:
    """Histories for a search to sample from, for games without a resampler.

    They are those that give the player its information, weighted by chance and uniform
    play of the opponent; of very many, some are drawn.
    """

    def __init__(self, game: pyspiel.Game, seed: int) -> None:
        """Knows nothing yet.

        Args:
          game: a sequential game.
          seed: of the draws.
        """
        self._random = np.random.default_rng(seed)
        self._beliefs = [
            StatePosterior(
                game,
                player,
                UniformRandomPolicy(game),
                max_histories=_WORLDS,
                particles=_WORLDS,
                seed=seed,
            )
            for player in range(2)
        ]

    def __call__(self, state: pyspiel.State, player: int) -> pyspiel.State:
        """A history that the player thinks possible at a state where it acts."""
        self._beliefs[player].update(state)
        return self._beliefs[player].sample(self._random)


def search(game: pyspiel.Game, simulations: int, seed: int) -> pyspiel.Bot:
    """OpenSpiel's ISMCTSBot in Python: that in C++ plays neither of the games.

    Args:
      game: a sequential game.
      simulations: a move.
      seed: of all that it draws.
    """
    random = np.random.RandomState(seed)
    evaluator = mcts.RandomRolloutEvaluator(n_rollouts=1, random_state=random)
    bot = ismcts.ISMCTSBot(game, evaluator, 2.0, simulations, random_state=random)
    bot.set_resampler(Worlds(game, seed))
    return bot


def simulations_of(game: pyspiel.Game, move_ms: float) -> int:
    """How many simulations take the search as much time as a move has, on average.

    Later moves take less time than first ones, so it is asked at all moves of matches
    against itself; by fewer simulations than `_PILOT` nothing can be said.
    """
    simulations = _PILOT
    for _ in range(_PILOTS):
        bots = [search(game, simulations, seat) for seat in range(2)]
        match = play_match(game, bots, np.random.default_rng(0))
        mean = statistics.fmean(itertools.chain(*match.seconds))
        simulations = max(_PILOT, int(simulations * move_ms / 1000 / mean))
    return simulations


def measure_matches(
    game: str, bot: str, opponent: str, move_ms: float, matches: int
) -> Row:
    """Plays matches, seats in turn.

    Two matches, one in each seat, are one observation: what a seat is worth is no part
    of its spread. What is drawn in a pair does not depend on those before it.

    Args:
      game: OpenSpiel string or short name.
      bot: for `spiel_cr.load_bot`.
      opponent: one of `OPPONENTS`.
      move_ms: milliseconds of a move, for both.
      matches: to play; an odd number is rounded up.

    Raises:
      IllegalMoveError: somebody chose what it may not.
    """
    loaded = game_of(game)
    begun = time.perf_counter()
    ours = [spiel_cr.load_bot(loaded, bot, seat, seed=seat) for seat in range(2)]
    made, simulations = time.perf_counter() - begun, None
    if opponent == "ismcts":
        simulations = simulations_of(loaded, move_ms)
    returns: list[list[float]] = []
    spent: list[list[float]] = [[], []]
    for number in range((matches + 1) // 2):
        returns.append([])
        for seat in range(2):
            other = spiel_cr.load_bot(loaded, "uniform", 1 - seat, seed=number)
            if simulations is not None:
                other = search(loaded, simulations, number)
            pair = [ours[0], other] if seat == 0 else [other, ours[1]]
            match = play_match(loaded, pair, np.random.default_rng([number, seat]))
            returns[-1].append(match.returns[seat])
            spent[0] += match.seconds[seat]
            spent[1] += match.seconds[1 - seat]
    mean, half_width = mean_and_half_width([statistics.fmean(pair) for pair in returns])
    every = np.array(returns)
    return {
        "simulations": simulations,
        "mean": mean,
        "half_width": half_width,
        "won": float((every > 0).mean()),
        "drawn": float((every == 0).mean()),
        "by_seat": every.mean(axis=0).tolist(),
        **{k: sum(getattr(one.statistics, k) for one in ours) for k in _COUNTED},
        "late_by_10_ms": sum(1000 * seconds > move_ms + 10 for seconds in spent[0]),
        "max_ms": 1000 * max(spent[0]),
        "mean_ms": 1000 * statistics.fmean(spent[0]),
        "opponent_ms": 1000 * statistics.fmean(spent[1]),
        **_answers(ours),
        "seconds_to_make": made,
        "peak_bytes": peak_bytes(),
    }


def _answers(bots: Sequence[pyspiel.Bot]) -> Row:
    """How players of lookahead trees came to their answers; of others there is none."""
    counts = [vars(bot.counts) for bot in bots if hasattr(bot, "counts")]
    if not counts:
        return {"counts": {}, "most_histories": 0}
    most = "most_histories"
    names = counts[0].keys() - {most}
    return {
        "counts": {name: sum(one[name] for one in counts) for name in sorted(names)},
        most: max(one[most] for one in counts),
    }


def _string(*settings: str) -> str:
    return f"resolving({','.join(settings)})"


def _plan(options: argparse.Namespace) -> Iterator[Row]:
    for game in options.games:
        budgets = [f"move_ms={ms:g}" for ms in options.clocks]
        bots = [
            _string(f"max_histories={size}", budget, *options.settings)
            for budget in budgets or [f"iterations={n}" for n in options.iterations]
            for size in options.sizes or SIZES.get(game, (1000,))
        ]
        yield from product(
            game=[game],
            blueprint=options.blueprints,
            bot=bots,
            seed=range(options.seeds),
        )


def _plan_matches(options: argparse.Namespace) -> list[Row]:
    budget = f"max_histories={options.max_histories}", f"move_ms={options.move_ms:g}"
    return product(
        game=options.large,
        bot=options.bots or [_string(*budget, *options.settings)],
        opponent=options.opponents,
        move_ms=[options.move_ms],
        matches=[options.matches],
    )


def _of_seeds(rows: Sequence[Row]) -> list[Row]:
    return over_seeds(rows, ("game", "bot", "blueprint"))


def _each_seed(row: Mapping[str, Any]) -> str:
    values = sorted(run["nash_conv"] for run in row["each"])
    each = " ".join(f"{value:.3g}" for value in values)
    return f"**{statistics.fmean(values):.3g}** ({each})"


def _ways(row: Mapping[str, Any]) -> str:
    """How often the player came to its answers in which way."""
    ways = (f"{key.replace('_', ' ')} {n}" for key, n in row["counts"].items() if n)
    return ", ".join(ways) or "–"


def _late(row: Mapping[str, Any]) -> str:
    """How many answers of all seeds took longer than a move may, and the slowest."""
    if "move_ms" not in row["bot"]:
        return "–"
    each: Sequence[Row] = row["each"]
    late = sum(run["late_moves"] for run in each)
    moves, slowest = sum(r["moves"] for r in each), max(r["max_ms"] for r in each)
    return f"{late} of {moves:,}; {slowest:.0f} ms"


_ASKED: dict[str, Column] = {
    "game": "{game}",
    "player": "`{bot}`",
    "histories of the game": "{histories:,}",
    "blueprint": "{blueprint}",
    "its NashConv": lambda row: (
        "–" if row["of_blueprint"] is None else f"{row['of_blueprint']:.3g}"
    ),
    "NashConv: mean (each seed)": _each_seed,
    "ms per answer": "{mean_ms:.0f}",
    "late; slowest": _late,
    **PEAK,
}
_WHO: dict[str, Column] = {
    "game": "{game}",
    "player": "`{bot}`",
    "against": lambda row: OPPONENTS[row["opponent"]],
}
_RESULTS: dict[str, Column] = {
    **_WHO,
    "matches": "{matches}",
    "mean return": "{mean:+.3f} ± {half_width:.3f}",
    "won": "{won:.1%}",
    "drawn": "{drawn:.1%}",
    "as player 0": "{by_seat[0]:+.3f}",
    "as player 1": "{by_seat[1]:+.3f}",
    "ms per move": "{mean_ms:.0f}",
    "its ms per move": "{opponent_ms:.1f}",
    "its simulations": "{simulations:,}",
}
_CONDUCT: dict[str, Column] = {
    **_WHO,
    "moves": "{moves}",
    "late": "{late_moves}",
    "by 10 ms": "{late_by_10_ms}",
    "slowest, ms": "{max_ms:.0f}",
    "programs compiled": "{programs_compiled}",
    "how answered": _ways,
    "most histories": "{most_histories:,}",
    **PEAK,
}
BENCHMARK = Benchmark(
    "partial",
    "NashConv of players of lookahead trees, and matches in games that are too large.",
    OPTIONS,
    {
        "exploitability": Part(
            measure,
            _plan,
            (Table("NashConv, asked everywhere.", _ASKED, 2, _of_seeds),),
        ),
        "matches": Part(
            measure_matches,
            _plan_matches,
            (
                Table("Matches.", _RESULTS, 3),
                Table("Conduct of the players.", _CONDUCT, 3),
            ),
            budget=("matches",),
        ),
    },
)
