"""Training curves of learned best responses, as in Timbers et al. 2022, Figure 1.

Leduc poker against a player that always folds (exact exploitability 1) and against the
average strategy of 7 iterations of CFR+ (about 1.01): what the response has found after
each round of learning, in both seats, beside the exact best response. Exploitability is
half of NashConv: the mean of what the responses to both seats of the opponent get.

Run `python -m benchmarks.learning_curves --help`.
"""

import argparse
import pathlib
import statistics
import sys
import time
from collections.abc import Iterator, Sequence

import jax

import spiel_cr
from benchmarks.document import draw_band, table
from benchmarks.frame import Benchmark, Parser, Row, group_by, say
from spiel_cr.compilation.tree import CompiledGame
from spiel_cr.eval.reporting.plots import picture
from spiel_cr.players.opponent_strings import load_opponent
from spiel_cr.policies.conversions import behaviour_from_policy
from spiel_cr.responses import learn_compiled
from spiel_cr.responses.ismcts_config import SearchConfig
from spiel_cr.responses.learning import LearningConfig, Stage

OPPONENTS = ("always_fold", "cfr+(iterations=7)")
_RESPONSES = {
    "search_value": "search with the network",
    "network_value": "network alone",
}


def _add_options(parser: Parser) -> None:
    parser.add_argument("--game", default="leduc_poker")
    parser.strings("--opponents", OPPONENTS, "who is responded to", metavar="OPPONENT")
    parser.number("--seeds", 3, "runs of each")
    parser.number("--rounds", 40, "of episodes and learning")
    parser.number("--episodes", 128, "of a round")
    parser.number("--steps", 200, "of the optimiser")
    parser.number("--simulations", 500, "of each information state searched")
    parser.number("--exploration", 2.0, "c of PUCT")
    parser.add_argument(
        "--figure",
        type=pathlib.Path,
        metavar="PATH",
        help="draw the curves, for instance docs/img/learning-curves.png",
    )


def _measure(options: argparse.Namespace) -> Iterator[Row]:
    tree = spiel_cr.compile_game(options.game)
    for opponent in options.opponents:
        for seed in range(options.seeds):
            for player in range(2):
                say(f"{opponent}, {seed=}, {player=}")
                yield _learn(tree, opponent, player, seed, options)


def markdown(rows: Sequence[Row]) -> str:
    """The last point of each run, as a table.

    Args:
      rows: of complete runs: both seats of each opponent and seed.
    """
    lines = []
    for row in rows:
        last = row["points"][-1]
        shares = {name: last[name] / last["exact_value"] for name in _RESPONSES}
        lines.append({**row, **last, **shares})
    columns = {
        "opponent": "{opponent}",
        "seat": "{player}",
        "seed": "{seed}",
        "search, share of exact": "{search_value:.3f}",
        "network, share of exact": "{network_value:.3f}",
        "exact value": "{exact_value:.4f}",
        "episodes": "{episodes}",
        "simulations": "{simulations}",
        "seconds": "{seconds:.0f}",
    }
    return table(lines, columns)


def draw(rows: Sequence[Row], options: argparse.Namespace) -> None:
    """One panel per opponent: exploitability found, by episodes; needs matplotlib.

    Args:
      rows: of complete runs: both seats of each opponent and seed.
      options: of the command; nothing is drawn without a path in `figure`.
    """
    if not options.figure:
        return
    opponents = group_by(rows, "opponent")
    size = 5.5 * len(opponents), 4.2
    with picture(options.figure, size=size, columns=len(opponents)) as axes:
        for axis, (opponent, mine) in zip(axes, opponents.items(), strict=True):
            episodes = [point["episodes"] for point in mine[0]["points"]]
            for field, title in _RESPONSES.items():
                found = list(zip(*_exploitabilities(mine, field), strict=True))
                draw_band(axis, episodes, found, statistics.fmean, title)
            exact = _exploitabilities(mine, "exact_value")[0][-1]
            axis.axhline(exact, ls="--", color="black", label="exact best response")
            axis.set_title(f"{mine[0]['game']}, {opponent}: exact {exact:.3f}")
            axis.set_xlabel("episodes in each seat")
            axis.legend(loc="lower right", fontsize="small")
        axes[0].set_ylabel("exploitability found (chips)")


def _learn(
    tree: CompiledGame,
    opponent: str,
    player: int,
    seed: int,
    options: argparse.Namespace,
) -> Row:
    policy = load_opponent(opponent, tree)
    behaviour = behaviour_from_policy(tree, policy)[1 - player]
    search = SearchConfig(options.simulations, exploration=options.exploration)
    config = LearningConfig(search, episodes=options.episodes, steps=options.steps)
    stages = [Stage(opponent, behaviour, options.rounds)]
    start = time.perf_counter()
    learned = learn_compiled.learn_response(
        tree, player, stages, config, seed=seed, progress=True
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
    for mine in group_by(rows, "seed").values():
        seats = {row["player"]: row["points"] for row in mine}
        pairs = zip(seats[0], seats[1], strict=True)
        found.append([(first[field] + second[field]) / 2 for first, second in pairs])
    return found


BENCHMARK = Benchmark(
    "learning_curves",
    "Training curves of learned best responses (needs flax and optax: pip install "
    "'spiel_cr[deep]').",
    _add_options,
    _measure,
    markdown,
    tables=None,
    page="best-responses.md",
    finish=draw,
    group=lambda row: (row["opponent"], row["seed"], row["player"]),
)
main = BENCHMARK.main

if __name__ == "__main__":
    sys.exit(main())
