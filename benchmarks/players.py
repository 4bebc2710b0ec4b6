"""Players: exploitability, punctuality, gadgets and matches, as tables for the docs.

Run `python -m benchmarks.players --help`. See docs/playing.md for what is measured.
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from spiel_cr.eval.players import match as matches
from spiel_cr.eval.players import tournament, traversing

import spiel_cr
from benchmarks.document import grid
from benchmarks.frame import Benchmark, Parser, Row, images, say, sentence
from spiel_cr.compilation.tree import CompiledGame
from spiel_cr.resolving import clock


class Plan(NamedTuple):
    """How much a game gets.

    Attributes:
      matches: of each pair of bots in the tournament. More where returns vary more, or
        matches are shorter: the tournaments take about eleven minutes together.
      move_ms: milliseconds of a move; ten times that before the first match.
      batch: trajectories in an iteration of the sampling bots, whose iterations also
        pass over all infosets.
      everywhere: small enough to ask a player at every infoset; if not, it only plays.
    """

    matches: int
    move_ms: float = 50.0
    batch: int = 256
    everywhere: bool = True


PLANS = {
    "python_leduc_poker": Plan(120),
    "python_ii_goofspiel(num_cards=4)": Plan(40),
    "python_princess_and_monster(horizon=4)": Plan(50),
    "python_rock_paper_scissors(num_actions=5)": Plan(100),
    "python_latent_tic_tac_toe(conflict=keep)": Plan(
        16, move_ms=500.0, batch=4096, everywhere=False
    ),
    "kuhn_poker": Plan(120),
    "liars_dice(numdice=1,dice_sides=4)": Plan(60),
}
_FIXED = "resolving(iterations=300,gadget={})"
_GADGETS = ("cfrd", "maxmargin", "unsafe")
_DEPTHS = (1, 2, 4, 6, None)
# The same outcome sampling with and without aim; "MCCFR" is the one without.
_OOS = "oos(solver=os-mccfr(epsilon=0.4,exploration=0.01,batch={},delta={}),{})"
_EVERYWHERE = ("exploitability", "gadgets", "depths")


def _add_options(parser: Parser) -> None:
    parser.games(PLANS)
    parser.add_argument(
        "--move-ms", type=float, help="of a move (default 50, and 500 on large games)"
    )
    parser.number("--moves", 1000, "in matches over all games, for late answers")
    parser.add_argument(
        "--matches",
        type=int,
        help="of each pair of bots (default: a number for each game, 16 to 120)",
    )
    parser.number("--repeats", 3, "of clocked evaluations")
    parser.several("--parts", _parts(), "what to measure")


def _measure(options: argparse.Namespace) -> Iterator[Row]:
    moves = options.moves / len(options.games)
    for game in options.games:
        plan = PLANS.get(game, Plan(40))
        plan = plan._replace(
            move_ms=options.move_ms or plan.move_ms,
            matches=options.matches or plan.matches,
        )
        tree = spiel_cr.compile_game(game, observations=True)
        for part, measure in _parts(options.repeats, moves).items():
            if part in options.parts and (plan.everywhere or part not in _EVERYWHERE):
                say(f"{game}: {part}")
                shared = {"part": part, "game": game, "move_ms": plan.move_ms}
                yield {**shared, **measure(tree, plan)}


def _parts(
    repeats: int = 3, moves: float = 100
) -> dict[str, Callable[[CompiledGame, Plan], Row]]:
    """What is measured of each game, in this order."""
    return {
        "exploitability": lambda tree, plan: _exploitability(tree, plan, repeats),
        "gadgets": lambda tree, plan: _gadgets(tree),
        "depths": lambda tree, plan: _depths(tree),
        # As long as it takes elsewhere.
        "lateness": lambda tree, plan: _lateness(
            tree, plan, moves * min(1.0, 150 / plan.move_ms)
        ),
        "matches": _matches,
    }


def _budget(plan: Plan) -> str:
    return f"move_ms={plan.move_ms:g},init_ms={10 * plan.move_ms:g}"


def _evaluate(tree: CompiledGame, bot: str) -> traversing.Evaluation:
    first, second = (
        traversing.traverse(tree, spiel_cr.load_bot(bot, tree, seat))
        for seat in range(2)
    )
    return traversing.evaluate(tree, (first, second))


def _exploitability(tree: CompiledGame, plan: Plan, repeats: int) -> Row:
    """NashConv of a clocked resolving player, asked everywhere."""
    bot = f"resolving(solver=cfr+,{_budget(plan)})"
    found = [_evaluate(tree, bot) for _ in range(repeats)]
    values = [evaluation.nash_conv for evaluation in found]
    return {
        "bot": bot,
        "nash_conv": statistics.median(values),
        "all": values,
        "late_moves": sum(evaluation.late_moves for evaluation in found),
        "programs_compiled": sum(e.programs_compiled for e in found),
    }


def _gadgets(tree: CompiledGame) -> Row:
    """NashConv with each gadget, 300 iterations per solve."""
    return {
        gadget: _evaluate(tree, _FIXED.format(gadget)).nash_conv for gadget in _GADGETS
    }


def _depths(tree: CompiledGame) -> Row:
    """NashConv by depth of the lookahead, exact values of uniform play at its end."""
    found = {}
    for depth in _DEPTHS:
        limit = "" if depth is None else f",depth={depth}"
        bot = f"resolving(iterations=300{limit})"
        found[str(depth)] = _evaluate(tree, bot).nash_conv
    return {"nash_conv": found}


def _lateness(tree: CompiledGame, plan: Plan, moves: float) -> Row:
    """Moves in matches between two resolving players, by their own clocks."""
    config = spiel_cr.ResolvingConfig(move_ms=plan.move_ms, init_ms=10 * plan.move_ms)
    bots = [spiel_cr.ResolvingBot(tree, seat, config, seed=seat) for seat in range(2)]
    random = np.random.default_rng(0)
    played: list[clock.Statistics] = [bot.resolver.statistics for bot in bots]
    games = 0
    while sum(s.moves for s in played) < moves:
        matches.play_match(tree.game, bots, random)
        games += 1
    return {
        "matches": games,
        "moves": sum(s.moves for s in played),
        "solves": sum(s.solves for s in played),
        "late_moves": sum(s.late_moves for s in played),
        "max_ms": max(s.max_ms for s in played),
        "programs_compiled": sum(s.programs_compiled for s in played),
    }


def _matches(tree: CompiledGame, plan: Plan) -> Row:
    """A round robin at equal time a move."""
    budget = _budget(plan)
    bots = {
        "resolving": f"resolving(solver=cfr+,{budget})",
        "oos": _OOS.format(plan.batch, 0.9, budget),
        "mccfr": _OOS.format(plan.batch, 0, budget),
        "uniform": "uniform",
    }
    with tempfile.TemporaryDirectory() as folder:
        result = tournament.play_tournament(
            tree, list(bots.values()), plan.matches, folder
        )
    return {
        "names": list(bots),
        "bots": list(bots.values()),
        "matches": plan.matches,
        "mean": result.mean,
        "half_width": result.half_width,
        "late_moves": [effort.late_moves for effort in result.efforts],
        "max_ms": [effort.max_ms for effort in result.efforts],
        "programs_compiled": [effort.programs_compiled for effort in result.efforts],
    }


def _markdown(rows: Sequence[Row]) -> str:
    """All tables; parts that were not measured are left out."""
    tables = {
        "exploitability": _nash_conv_table,
        "depths": _depth_table,
        "lateness": _lateness_table,
        "matches": _match_tables,
    }
    text = [sentence(rows[0], ["cpu"]), ""]
    for part, table in tables.items():
        mine = [row for row in rows if row["part"] == part]
        if mine:
            text += table(mine, rows)
    return "\n".join(text)


def _nash_conv_table(clocked: Sequence[Row], rows: Sequence[Row]) -> list[str]:
    fixed = {row["game"]: row for row in rows if row["part"] == "gadgets"}
    move_ms, repeats = clocked[0]["move_ms"], len(clocked[0]["all"])
    gadgets = _GADGETS if fixed else ()
    return [
        f"NashConv by OpenSpiel of `resolving(solver=cfr+)`, {move_ms:g} ms a move and "
        f"ten times that at the start, asked everywhere (median of "
        f"{repeats} runs); and with 300 iterations per solve, by gadget:",
        "",
        grid(
            ["game", f"{move_ms:g} ms a move", *gadgets],
            [
                [
                    f"`{row['game']}`",
                    f"{row['nash_conv']:.1e}",
                    *(f"{fixed[row['game']][gadget]:.1e}" for gadget in gadgets),
                ]
                for row in clocked
            ],
        ),
        "![NashConv by gadget](img/gadgets.png)",
        "",
    ]


def _depth_table(mine: Sequence[Row], rows: Sequence[Row]) -> list[str]:
    return [
        "NashConv by depth of the lookahead, exact values of uniform play at its end, "
        "300 iterations per solve:",
        "",
        grid(
            ["game", *("none" if d is None else str(d) for d in _DEPTHS)],
            [
                [
                    f"`{row['game']}`",
                    *(f"{row['nash_conv'][str(d)]:.1e}" for d in _DEPTHS),
                ]
                for row in mine
            ],
        ),
    ]


def _lateness_table(mine: Sequence[Row], rows: Sequence[Row]) -> list[str]:
    columns = ("moves", "solves", "late_moves", "max_ms", "programs_compiled")
    return [
        "Two such players in matches:",
        "",
        grid(
            ["game", "ms a move", "moves", "solves", "late", "longest, ms", "compiled"],
            [
                [
                    f"`{row['game']}`",
                    f"{row['move_ms']:g}",
                    *(
                        f"{row[c]:.1f}" if c == "max_ms" else f"{row[c]}"
                        for c in columns
                    ),
                ]
                for row in mine
            ],
        ),
    ]


def _match_tables(mine: Sequence[Row], rows: Sequence[Row]) -> list[str]:
    text = [
        "Matches, the same time a move for all bots, ten times that at the start: mean "
        "return of row against column, ± half of a 95 % interval. `mccfr` is `oos` "
        "without aim.",
        "",
    ]
    for row in mine:
        late = sum(count or 0 for count in row["late_moves"])
        text += [
            f"`{row['game']}`, {row['move_ms']:g} ms a move, {row['matches']} matches "
            f"a pair, {late} late answers:",
            "",
            _round_robin(row),
        ]
    return text


def _draw(rows: Sequence[Row], options: argparse.Namespace) -> None:
    """NashConv of each gadget on each game, as bars; needs matplotlib."""
    mine = [row for row in rows if row["part"] == "gadgets"]
    if not mine or not options.markdown:
        return
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 4), layout="constrained")
    for k, gadget in enumerate(_GADGETS):
        places = np.arange(len(mine)) + 0.27 * (k - 1)
        axes.bar(places, [row[gadget] for row in mine], 0.25, label=gadget)
    axes.set_yscale("log")
    names = [row["game"].removeprefix("python_").replace("(", "\n(") for row in mine]
    axes.set_xticks(range(len(mine)), names, fontsize=7)
    axes.set_ylabel("NashConv (game's units)")
    axes.set_title("resolving, CFR+, 300 iterations per solve", fontsize=10)
    axes.legend()
    figure.savefig(images(options) / "gadgets.png", dpi=120)
    pyplot.close(figure)


def _round_robin(row: Row) -> str:
    names = row["names"]

    def cell(i: int, j: int) -> str:
        mean, half = row["mean"][i][j], row["half_width"][i][j]
        if mean is None:
            return "–"
        return f"{mean:+.2f} ± {half:.2f}" if half is not None else f"{mean:+.2f}"

    body = [
        [name, *(cell(i, j) for j in range(len(names)))] for i, name in enumerate(names)
    ]
    return grid(["", *names], body)


BENCHMARK = Benchmark(
    "players",
    "Measure spiel_cr's players: NashConv, late answers, matches.",
    _add_options,
    _measure,
    _markdown,
    tables="player",
    page="playing.md",
    finish=_draw,
    group=lambda row: (row["part"], row["game"]),
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
