"""Players: exploitability, punctuality, gadgets and matches, as tables for the docs.

Run `python -m benchmarks.players --help`. See docs/playing.md for what is measured.
"""

import argparse
import json
import pathlib
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import game_defs  # noqa: F401  registers the project's games
import spiel_cr
from benchmarks import conditions, document
from eval import matches, tournament, traversing
from spiel_cr import clock
from spiel_cr import tree as tree_lib

__all__ = ["GAMES", "MARKS", "main"]

MARKS = document.Marks("<!-- player tables: begin -->", "<!-- player tables: end -->")
GAMES = (
    "python_leduc_poker",
    "python_ii_goofspiel(num_cards=4)",
    "python_princess_and_monster(horizon=4)",
    "python_rock_paper_scissors(num_actions=5)",
    "kuhn_poker",
    "liars_dice(numdice=1,dice_sides=4)",
)
_FIXED = "resolving(iterations=300,gadget={})"
_GADGETS = ("cfrd", "maxmargin", "unsafe")
_DEPTHS = (1, 2, 4, 6, None)
# The same outcome sampling with and without aim; "MCCFR" is the one without.
_OOS = "oos(solver=os-mccfr(epsilon=0.4,exploration=0.01,batch=256,delta={}),{})"

Row = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, appends facts as JSON lines, prints tables."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.players",
        description="Measure spiel_cr's players: NashConv, late answers, matches.",
    )
    parser.add_argument("--games", nargs="+", default=list(GAMES), metavar="GAME")
    parser.add_argument(
        "--move-ms", type=float, default=50.0, help="of a move (default 50)"
    )
    parser.add_argument(
        "--moves",
        type=int,
        default=1000,
        help="in matches over all games, for late answers (default 1000)",
    )
    parser.add_argument(
        "--matches", type=int, default=40, help="of each pair of bots (default 40)"
    )
    parser.add_argument(
        "--repeats", type=int, default=3, help="of clocked evaluations (default 3)"
    )
    parser.add_argument("--out", default="out/benchmarks/players.jsonl")
    document.add_option(parser, MARKS)
    options = parser.parse_args(arguments)
    facts = conditions.facts()
    out = pathlib.Path(options.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    budget = f"move_ms={options.move_ms:g},init_ms={10 * options.move_ms:g}"
    rows: list[Row] = []
    parts: tuple[tuple[str, Callable[[str, tree_lib.CompiledGame], Row]], ...] = (
        ("exploitability", lambda g, t: _exploitability(g, t, budget, options.repeats)),
        ("gadgets", _gadgets),
        ("depths", _depths),
        (
            "lateness",
            lambda g, t: _lateness(g, t, budget, options.moves / len(options.games)),
        ),
        ("matches", lambda g, t: _matches(g, t, budget, options.matches)),
    )
    for game in options.games:
        tree = spiel_cr.compile_game(game, observed=True)
        for part, measure in parts:
            print(f"{game}: {part}", file=sys.stderr, flush=True)
            row = {**facts, "part": part, "game": game, **measure(game, tree)}
            rows.append(row)
            with out.open("a") as lines:
                print(json.dumps(row), file=lines)
    text = _markdown(rows, options.move_ms)
    print(text)
    if options.markdown:
        document.write(options.markdown, text, MARKS)
        _draw(rows, options.markdown.parent / "img" / "gadgets.png")
    return 0


def _evaluate(tree: tree_lib.CompiledGame, bot: str) -> traversing.Evaluation:
    first, second = (
        traversing.traverse(tree, spiel_cr.load_bot(bot, tree, seat))
        for seat in range(2)
    )
    return traversing.evaluate(tree, (first, second))


def _exploitability(
    game: str, tree: tree_lib.CompiledGame, budget: str, repeats: int
) -> Row:
    """NashConv of a clocked resolving player, asked everywhere."""
    bot = f"resolving(solver=cfr+,{budget})"
    found = [_evaluate(tree, bot) for _ in range(repeats)]
    values = [evaluation.nash_conv for evaluation in found]
    return {
        "bot": bot,
        "nash_conv": statistics.median(values),
        "all": values,
        "late_moves": sum(evaluation.late_moves for evaluation in found),
        "programs_compiled": sum(e.programs_compiled for e in found),
    }


def _gadgets(game: str, tree: tree_lib.CompiledGame) -> Row:
    """NashConv with each gadget, 300 iterations a solve."""
    return {
        gadget: _evaluate(tree, _FIXED.format(gadget)).nash_conv for gadget in _GADGETS
    }


def _depths(game: str, tree: tree_lib.CompiledGame) -> Row:
    """NashConv by depth of the lookahead, exact values of uniform play at its end."""
    found = {}
    for depth in _DEPTHS:
        limit = "" if depth is None else f",depth={depth}"
        bot = f"resolving(iterations=300{limit})"
        found[str(depth)] = _evaluate(tree, bot).nash_conv
    return {"nash_conv": found}


def _lateness(game: str, tree: tree_lib.CompiledGame, budget: str, moves: float) -> Row:
    """Moves in matches between two resolving players, by their own clocks."""
    bots = [
        spiel_cr.ResolvingBot(tree, seat, _config(budget), seed=seat)
        for seat in range(2)
    ]
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


def _config(budget: str) -> spiel_cr.ResolvingConfig:
    given = dict(part.split("=") for part in budget.split(","))
    return spiel_cr.ResolvingConfig(
        move_ms=float(given["move_ms"]), init_ms=float(given["init_ms"])
    )


def _matches(game: str, tree: tree_lib.CompiledGame, budget: str, count: int) -> Row:
    """A round robin at equal time a move."""
    bots = {
        "resolving": f"resolving(solver=cfr+,{budget})",
        "oos": _OOS.format(0.9, budget),
        "mccfr": _OOS.format(0, budget),
        "uniform": "uniform",
    }
    with tempfile.TemporaryDirectory() as folder:
        result = tournament.play_tournament(tree, list(bots.values()), count, folder)
    return {
        "names": list(bots),
        "bots": list(bots.values()),
        "matches": count,
        "mean": result.mean,
        "half_width": result.half_width,
    }


def _markdown(rows: Sequence[Row], move_ms: float) -> str:
    of = {
        part: [row for row in rows if row["part"] == part]
        for part in ("exploitability", "gadgets", "depths", "lateness", "matches")
    }
    repeats = len(of["exploitability"][0]["all"])
    text = [conditions.sentence(rows[0], ["cpu"]), ""]
    text += [
        f"NashConv by OpenSpiel of `resolving(solver=cfr+)`, {move_ms:g} ms a move and "
        f"ten times that at the start, asked everywhere (median of "
        f"{repeats} runs); and with 300 iterations a solve, by gadget:",
        "",
        document.grid(
            ["game", f"{move_ms:g} ms a move", *_GADGETS],
            [
                [
                    f"`{clocked['game']}`",
                    f"{clocked['nash_conv']:.1e}",
                    *(f"{fixed[gadget]:.1e}" for gadget in _GADGETS),
                ]
                for clocked, fixed in zip(
                    of["exploitability"], of["gadgets"], strict=True
                )
            ],
        ),
        "![NashConv by gadget](img/gadgets.png)",
        "",
        "NashConv by depth of the lookahead, exact values of uniform play at its end, "
        "300 iterations a solve:",
        "",
        document.grid(
            ["game", *("none" if d is None else str(d) for d in _DEPTHS)],
            [
                [
                    f"`{row['game']}`",
                    *(f"{row['nash_conv'][str(d)]:.1e}" for d in _DEPTHS),
                ]
                for row in of["depths"]
            ],
        ),
        f"Two such players in matches, {move_ms:g} ms a move:",
        "",
        document.grid(
            ["game", "moves", "solves", "late", "longest, ms", "programs compiled"],
            [
                [
                    f"`{row['game']}`",
                    str(row["moves"]),
                    str(row["solves"]),
                    str(row["late_moves"]),
                    f"{row['max_ms']:.1f}",
                    str(row["programs_compiled"]),
                ]
                for row in of["lateness"]
            ],
        ),
        f"Matches at {move_ms:g} ms a move, {of['matches'][0]['matches']} a pair: mean "
        f"return of row against column, ± half of a 95 % interval. `mccfr` is "
        f"`oos` without aim.",
        "",
    ]
    for row in of["matches"]:
        text += [f"`{row['game']}`", "", _round_robin(row)]
    return "\n".join(text)


def _draw(rows: Sequence[Row], path: pathlib.Path) -> None:
    """NashConv of each gadget on each game, as bars; needs matplotlib."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    mine = [row for row in rows if row["part"] == "gadgets"]
    figure, axes = pyplot.subplots(figsize=(9, 4), layout="constrained")
    for k, gadget in enumerate(_GADGETS):
        places = np.arange(len(mine)) + 0.27 * (k - 1)
        axes.bar(places, [row[gadget] for row in mine], 0.25, label=gadget)
    axes.set_yscale("log")
    names = [row["game"].removeprefix("python_").replace("(", "\n(") for row in mine]
    axes.set_xticks(range(len(mine)), names, fontsize=7)
    axes.set_ylabel("NashConv (game's units)")
    axes.set_title("resolving, CFR+, 300 iterations a solve", fontsize=10)
    axes.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
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
    return document.grid(["", *names], body)


if __name__ == "__main__":
    sys.exit(main())
