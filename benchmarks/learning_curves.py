"""Training curves of learned best responses, as in Timbers et al. 2022, Figure 1.

Leduc poker against a player that always folds (exact exploitability 1) and against the
average strategy of 7 iterations of CFR+ (about 1.01): what the response has found after
each round of learning, in both seats, beside the exact best response. Exploitability is
half of NashConv: the mean of what the responses to both seats of the opponent get.

Run `python -m benchmarks.learning_curves --help`.
"""

import argparse
import json
import pathlib
import statistics
import sys
import time
from collections.abc import Sequence
from typing import Any

import jax

import spiel_cr
from benchmarks import conditions
from spiel_cr.compilation.tree import CompiledGame
from spiel_cr.players import opponent_strings
from spiel_cr.policies import conversions as policy_lib
from spiel_cr.responses import learn_compiled
from spiel_cr.responses.ismcts_config import SearchConfig
from spiel_cr.responses.learning import LearningConfig, Stage

OPPONENTS = ("always_fold", "cfr+(iterations=7)")
_RESPONSES = {
    "search_value": "search with the network",
    "network_value": "network alone",
}

Row = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """Learns, appends one JSON line a run, prints a table, draws the figure."""
    options = _parser().parse_args(arguments)
    out = pathlib.Path(options.out)
    rows: list[Row] = []
    if options.draw_only:
        rows = [json.loads(line) for line in out.read_text().splitlines()]
    else:
        out.parent.mkdir(parents=True, exist_ok=True)
        facts = conditions.facts()
        tree = spiel_cr.compile_game(options.game)
        for opponent in options.opponents:
            for seed in range(options.seeds):
                for player in range(2):
                    print(f"{opponent}, {seed=}, {player=}", file=sys.stderr)
                    row = {**facts, **_learn(tree, opponent, player, seed, options)}
                    rows.append(row)
                    with out.open("a") as lines:
                        print(json.dumps(row), file=lines)
    print(markdown(rows))
    if options.figure:
        draw(rows, options.figure)
    return 0


def markdown(rows: Sequence[Row]) -> str:
    """The last point of each run, as a table.

    Args:
      rows: of complete runs: both seats of each opponent and seed.
    """
    lines = [
        "| opponent | seat | seed | search, share of exact | network, share of exact "
        "| exact value | episodes | simulations | seconds |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        last = row["points"][-1]
        shares = [f"{last[name] / last['exact_value']:.3f}" for name in _RESPONSES]
        lines.append(
            f"| {row['opponent']} | {row['player']} | {row['seed']} | {shares[0]} | "
            f"{shares[1]} | {last['exact_value']:.4f} | {last['episodes']} | "
            f"{last['simulations']} | {row['seconds']:.0f} |"
        )
    return "\n".join(lines)


def draw(rows: Sequence[Row], path: pathlib.Path) -> None:
    """One panel an opponent: exploitability found, by episodes; needs matplotlib.

    Args:
      rows: of complete runs: both seats of each opponent and seed.
      path: of the figure.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    names = list(dict.fromkeys(row["opponent"] for row in rows))
    size = 5.5 * len(names), 4.2
    figure, grid = pyplot.subplots(1, len(names), figsize=size, squeeze=False)
    for axis, opponent in zip(grid[0], names, strict=True):
        mine = [row for row in rows if row["opponent"] == opponent]
        episodes = [point["episodes"] for point in mine[0]["points"]]
        for field, title in _RESPONSES.items():
            found = _exploitabilities(mine, field)
            middle = [statistics.mean(at) for at in zip(*found, strict=True)]
            (line,) = axis.plot(episodes, middle, marker=".", label=title)
            low, high = (
                [choose(at) for at in zip(*found, strict=True)] for choose in (min, max)
            )
            axis.fill_between(episodes, low, high, alpha=0.2, color=line.get_color())
        exact = _exploitabilities(mine, "exact_value")[0][-1]
        axis.axhline(exact, linestyle="--", color="black", label="exact best response")
        axis.set_title(f"{mine[0]['game']}, {opponent}: exact {exact:.3f}")
        axis.set_xlabel("episodes in each seat")
        axis.grid(True, alpha=0.4)
        axis.legend(loc="lower right", fontsize="small")
    grid[0][0].set_ylabel("exploitability found (chips)")
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.learning_curves",
        description="Training curves of learned best responses (needs flax and optax: "
        "pip install 'spiel_cr[deep]').",
    )
    parser.add_argument("--game", default="leduc_poker")
    parser.add_argument(
        "--opponents", nargs="+", default=list(OPPONENTS), metavar="OPPONENT"
    )
    parser.add_argument("--seeds", type=int, default=3, help="runs of each (default 3)")
    parser.add_argument(
        "--rounds", type=int, default=40, help="of episodes and learning (default 40)"
    )
    parser.add_argument(
        "--episodes", type=int, default=128, help="of a round (default 128)"
    )
    parser.add_argument(
        "--steps", type=int, default=200, help="of the optimiser (default 200)"
    )
    parser.add_argument(
        "--simulations",
        type=int,
        default=500,
        help="of each information state searched (default 500)",
    )
    parser.add_argument(
        "--exploration", type=float, default=2.0, help="c of PUCT (default 2)"
    )
    parser.add_argument(
        "--out",
        default="out/benchmarks/learning-curves.jsonl",
        help="JSON lines are appended here",
    )
    parser.add_argument(
        "--figure",
        type=pathlib.Path,
        metavar="PATH",
        help="draw the curves, for instance docs/img/learning-curves.png",
    )
    parser.add_argument(
        "--draw-only",
        action="store_true",
        help="learn nothing; table and figure of all lines in --out",
    )
    return parser


def _learn(
    tree: CompiledGame,
    opponent: str,
    player: int,
    seed: int,
    options: argparse.Namespace,
) -> Row:
    policy = opponent_strings.load_opponent(opponent, tree)
    behaviour = policy_lib.behaviour_from_policy(tree, policy)[1 - player]
    config = LearningConfig(
        search=SearchConfig(
            simulations=options.simulations, exploration=options.exploration
        ),
        episodes=options.episodes,
        steps=options.steps,
    )
    start = time.perf_counter()
    learned = learn_compiled.learn_response(
        tree,
        player,
        [Stage(opponent, behaviour, options.rounds)],
        config,
        seed=seed,
        progress=True,
    )
    return {
        "game": str(tree.game),
        "opponent": opponent,
        "player": player,
        "seed": seed,
        "config": repr(config),
        "device": str(jax.devices()[0]),
        "seconds": time.perf_counter() - start,
        "points": [point._asdict() for point in learned.curve],
    }


def _exploitabilities(rows: Sequence[Row], field: str) -> list[list[float]]:
    """For each seed the mean of both seats' values, point by point."""
    found = []
    for seed in dict.fromkeys(row["seed"] for row in rows):
        seats = {row["player"]: row["points"] for row in rows if row["seed"] == seed}
        found.append(
            [
                (first[field] + second[field]) / 2
                for first, second in zip(seats[0], seats[1], strict=True)
            ]
        )
    return found


if __name__ == "__main__":
    sys.exit(main())
