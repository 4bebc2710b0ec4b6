"""Players: exploitability, punctuality, gadgets and matches, as tables for the docs.

Run `python -m benchmarks.players --help`. See docs/playing.md for what is measured.
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

import spiel_cr
from benchmarks.document import Column, grid, image_path, interval, table
from benchmarks.frame import Benchmark, Parser, Row, group_by, say, sentence
from spiel_cr.compilation.tree import CompiledGame
from spiel_cr.eval.players import match as matches
from spiel_cr.eval.players import tournament, traversing
from spiel_cr.eval.reporting.plots import picture


class Plan(NamedTuple):
    """How much a game gets.

    Attributes:
      matches: of each pair of bots in the tournament. More where returns vary more, or
        matches are shorter: the tournaments take about eleven minutes together.
      move_ms: milliseconds of a move; ten times that before the first match.
      batch: trajectories in an iteration of the sampling bots, whose iterations also
        pass over all infosets.
      everywhere: small enough to ask a player at every infoset; if not, it only plays.
      repeats: of clocked evaluations.
      moves: in matches, for late answers.
    """

    matches: int
    move_ms: float = 50.0
    batch: int = 256
    everywhere: bool = True
    repeats: int = 3
    moves: float = 100

    @property
    def budget(self) -> str:
        """Parameters of bots with a clock."""
        return f"move_ms={self.move_ms:g},init_ms={10 * self.move_ms:g}"


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
_GADGETS = ("cfrd", "maxmargin", "unsafe")
_DEPTHS = (1, 2, 4, 6, None)
# The same outcome sampling with and without aim; "MCCFR" is the one without.
_OOS = "oos(solver=os-mccfr(epsilon=0.4,exploration=0.01,batch={},delta={}),{})"


def _add_options(parser: Parser) -> None:
    parser.games(PLANS)
    parser.number("--move-ms", None, "of a move; default: 50, and 500 on large games")
    parser.number("--moves", 1000, "in matches over all games, for late answers")
    words = "of each pair of bots; default: a number for each game, 16 to 120"
    parser.number("--matches", None, words, kind=int)
    parser.number("--repeats", 3, "of clocked evaluations")
    parser.several("--parts", _PARTS, "what to measure")


def _measure(options: argparse.Namespace) -> Iterator[Row]:
    for game in options.games:
        plan = PLANS.get(game, Plan(40))
        plan = plan._replace(
            move_ms=options.move_ms or plan.move_ms,
            matches=options.matches or plan.matches,
            repeats=options.repeats,
            moves=options.moves / len(options.games),
        )
        tree = spiel_cr.compile_game(game, observations=True)
        for name, part in _PARTS.items():
            if name in options.parts and (plan.everywhere or not part.everywhere):
                say(f"{game}: {name}")
                shared = {"part": name, "game": game, "move_ms": plan.move_ms}
                yield {**shared, **part.measure(tree, plan)}


def _exploitability(tree: CompiledGame, plan: Plan) -> Row:
    """NashConv of a clocked resolving player, asked everywhere."""
    bot = f"resolving(solver=cfr+,{plan.budget})"
    found = [traversing.evaluate_bot(tree, bot) for _ in range(plan.repeats)]
    values = [evaluation.nash_conv for evaluation in found]
    return {
        "bot": bot,
        "nash_conv": statistics.median(values),
        "all": values,
        "late_moves": sum(evaluation.late_moves for evaluation in found),
        "programs_compiled": sum(e.programs_compiled for e in found),
    }


def _fixed(tree: CompiledGame, settings: str) -> float:
    """NashConv with 300 iterations per solve."""
    bot = f"resolving(iterations=300{settings})"
    return traversing.evaluate_bot(tree, bot).nash_conv


def _gadgets(tree: CompiledGame, plan: Plan) -> Row:
    """NashConv with each gadget."""
    return {gadget: _fixed(tree, f",gadget={gadget}") for gadget in _GADGETS}


def _depths(tree: CompiledGame, plan: Plan) -> Row:
    """NashConv by depth of the lookahead, exact values of uniform play at its end."""
    limits = {depth: f",depth={depth}" if depth else "" for depth in _DEPTHS}
    return {"nash_conv": {str(d): _fixed(tree, limits[d]) for d in _DEPTHS}}


def _lateness(tree: CompiledGame, plan: Plan) -> Row:
    """Moves in matches between two resolving players, by their own clocks."""
    config = spiel_cr.ResolvingConfig(move_ms=plan.move_ms, init_ms=10 * plan.move_ms)
    bots = [spiel_cr.ResolvingBot(tree, seat, config, seed=seat) for seat in range(2)]
    random = np.random.default_rng(0)
    played = [bot.resolver.statistics for bot in bots]
    # Where moves take longer, fewer of them: as long as it takes elsewhere.
    moves, number = plan.moves * min(1.0, 150 / plan.move_ms), 0
    while sum(s.moves for s in played) < moves:
        matches.play_match(tree.game, bots, random)
        number += 1
    counted = "moves", "solves", "late_moves", "programs_compiled"
    return {
        "matches": number,
        **{name: sum(getattr(s, name) for s in played) for name in counted},
        "max_ms": max(s.max_ms for s in played),
    }


def _matches(tree: CompiledGame, plan: Plan) -> Row:
    """A round robin at equal time per move."""
    budget = plan.budget
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
        **{
            name: [getattr(effort, name) for effort in result.efforts]
            for name in ("late_moves", "max_ms", "programs_compiled")
        },
    }


def _markdown(rows: Sequence[Row]) -> str:
    """All tables; parts that were not measured are left out."""
    parts = group_by(rows, "part")
    text = [f"{sentence(rows[0], ['cpu'])}\n"]
    for name, part in _PARTS.items():
        if name in parts and part.tables is not None:
            text += part.tables(parts[name], parts)
    return "\n".join(text)


def _nash_conv_table(mine: Sequence[Row], parts: Mapping[str, list[Row]]) -> list[str]:
    fixed = {row["game"]: row for row in parts.get("gadgets", [])}
    columns: dict[str, Column] = {
        "game": "`{game}`",
        f"{mine[0]['move_ms']:g} ms per move": "{nash_conv:.1e}",
    }
    if fixed:
        columns |= {gadget: f"{{fixed[{gadget}]:.1e}}" for gadget in _GADGETS}
    lines = [{**row, "fixed": fixed.get(row["game"])} for row in mine]
    return [
        f"NashConv by OpenSpiel of `resolving(solver=cfr+)`, {mine[0]['move_ms']:g} ms "
        f"per move and ten times that at the start, asked everywhere (median of "
        f"{len(mine[0]['all'])} runs); and with 300 iterations per solve, by gadget:\n",
        table(lines, columns),
        "![NashConv by gadget](img/gadgets.png)\n",
    ]


def _depth_table(mine: Sequence[Row], parts: Mapping[str, list[Row]]) -> list[str]:
    # A field of a template cannot be a number.
    lines = [
        {**row, **{f"at {depth}": x for depth, x in row["nash_conv"].items()}}
        for row in mine
    ]
    columns = {"none" if d is None else str(d): f"{{at {d}:.1e}}" for d in _DEPTHS}
    return [
        "NashConv by depth of the lookahead, exact values of uniform play at its end, "
        "300 iterations per solve:\n",
        table(lines, {"game": "`{game}`", **columns}),
    ]


def _lateness_table(mine: Sequence[Row], parts: Mapping[str, list[Row]]) -> list[str]:
    columns = {
        "game": "`{game}`",
        "ms per move": "{move_ms:g}",
        "moves": "{moves}",
        "solves": "{solves}",
        "late": "{late_moves}",
        "longest, ms": "{max_ms:.1f}",
        "compiled": "{programs_compiled}",
    }
    return ["Two such players in matches:\n", table(mine, columns)]


def _match_tables(mine: Sequence[Row], parts: Mapping[str, list[Row]]) -> list[str]:
    text = [
        "Matches, the same time per move for all bots, ten times that at the start: "
        "mean return of row against column, ± half of a 95 % interval. `mccfr` is "
        "`oos` without aim.\n"
    ]
    title = "`{game}`, {move_ms:g} ms per move, {matches} matches per pair, "
    for row in mine:
        late = sum(count or 0 for count in row["late_moves"])
        text += [f"{title.format_map(row)}{late} late answers:\n", _round_robin(row)]
    return text


def _draw(rows: Sequence[Row], options: argparse.Namespace) -> None:
    """NashConv of each gadget on each game, as bars; needs matplotlib."""
    mine = [row for row in rows if row["part"] == "gadgets"]
    if not mine or not options.markdown:
        return
    with picture(image_path(options, "gadgets.png"), size=(9, 4)) as (axis,):
        for k, gadget in enumerate(_GADGETS):
            places = np.arange(len(mine)) + 0.27 * (k - 1)
            axis.bar(places, [row[gadget] for row in mine], 0.25, label=gadget)
        axis.set_yscale("log")
        names = [row["game"].removeprefix("python_") for row in mine]
        names = [name.replace("(", "\n(") for name in names]
        axis.set_xticks(range(len(mine)), names, fontsize=7)
        axis.set_ylabel("NashConv (game's units)")
        axis.set_title("resolving, CFR+, 300 iterations per solve", fontsize=10)
        axis.legend()


def _round_robin(row: Row) -> str:
    entries = [
        ["–" if m is None else interval(m, h) for m, h in zip(*line, strict=True)]
        for line in zip(row["mean"], row["half_width"], strict=True)
    ]
    body = [[name, *line] for name, line in zip(row["names"], entries, strict=True)]
    return grid(["", *row["names"]], body)


class _Part(NamedTuple):
    """How a part is measured and written.

    Attributes:
      measure: one game.
      tables: of its rows, beside those of the other parts.
      everywhere: whether it asks a player at every infoset.
    """

    measure: Callable[[CompiledGame, Plan], Row]
    tables: Callable[[Sequence[Row], Mapping[str, list[Row]]], list[str]] | None
    everywhere: bool = False


# In this order.
_PARTS = {
    "exploitability": _Part(_exploitability, _nash_conv_table, everywhere=True),
    "gadgets": _Part(_gadgets, None, everywhere=True),
    "depths": _Part(_depths, _depth_table, everywhere=True),
    "lateness": _Part(_lateness, _lateness_table),
    "matches": _Part(_matches, _match_tables),
}

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
