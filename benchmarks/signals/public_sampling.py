"""Public sampling on Leduc poker: variance and NashConv by trajectories and by seconds.

`python -m benchmarks.signals.public_sampling` prints JSON lines. What is asked: whether
baselines in the vector form lower the variance of sampled values to a thousandth, and
whether an iteration of MCCFR+ with them is worth 250 of MCCFR without (Schmid et al.
2019). Seconds are those of the process's CPU time, without compiling.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from spiel_cr.cfr.config import parse_sampled
from spiel_cr.cfr.solver import Solver
from spiel_cr.compilation.compiler import compile_game
from spiel_cr.mccfr import mccfr
from spiel_cr.mccfr import variance as scalar_variance
from spiel_cr.policies import best_responses
from spiel_cr.public_sampling import config, solver, variance
from spiel_cr.signals.detecting import detection
from spiel_cr.signals.detecting.located import Detected

# Uniform sampling throughout, as published; the first is without baselines.
_PUBLIC = (
    "public-vr(baseline=none)",
    "public-vr",
    "public-vr+(baseline=none)",
    "public-vr+",
    "public-os",
    "public-es",
)
# One trajectory per iteration and player, whose cards are sampled as well.
_SCALAR = (
    "os-mccfr(explore=uniform,epsilon=1,batch=1)",
    "vr-mccfr",
    "vr-mccfr+",
    "evr-mccfr(batch=1)",
)
# Of these runs the variance is measured, on the way.
_MEASURED = ("public-vr", "public-vr+")
_POINTS_PER_DECADE = 8
_LATE = 10_000


def main() -> None:
    """Prints JSON lines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--game", default="leduc_poker")
    parser.add_argument("--iterations", type=int, default=1_000_000)
    parser.add_argument("--samples", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--algorithms", nargs="+", default=(*_PUBLIC, *_SCALAR))
    given = parser.parse_args()
    tree = compile_game(given.game)
    detected = detection.locate(tree)
    curves = {}
    for algorithm in given.algorithms:
        public = algorithm.partition("(")[0] in config.PRESETS
        made: Solver = (
            solver.make_solver(detected.game, algorithm, seed=given.seed)
            if public
            else mccfr.make_solver(
                tree, config=parse_sampled(algorithm), seed=given.seed
            )
        )

        def nash_conv(made: Solver = made, public: bool = public) -> float:
            reach = [made.average(player) for player in range(2)]
            if public:
                pairs = zip(reach, detected.sequences, strict=True)
                reach = [own[places] for own, places in pairs]
            return best_responses.nash_conv(tree.form, (reach[0], reach[1]))

        curve = []
        for point in _run(made, given.iterations, nash_conv):
            curve.append(point)
            _say(game=given.game, seed=given.seed, algorithm=algorithm, **point)
            if algorithm in _MEASURED and _decade(point["iterations"]):
                for line in _variances(tree, detected, made, given.samples):
                    _say(run=algorithm, iterations=point["iterations"], **line)
        curves[algorithm] = curve
    for plain in set(curves) & {_PUBLIC[0], _SCALAR[0]}:
        for algorithm, curve in curves.items():
            _say(plain=plain, algorithm=algorithm, **_worth(curves[plain], curve))


def _run(
    made: Solver, iterations: int, nash_conv: Callable[[], float]
) -> Iterator[dict[str, Any]]:
    """Points of a curve, evenly spread by the logarithm of iterations."""
    decades = np.log10(iterations) - 2
    counts = np.logspace(2, 2 + decades, 1 + round(_POINTS_PER_DECADE * decades))
    used = 0.0
    for count in np.round(counts).astype(int).tolist():
        started = time.process_time()
        made.run(count - made.iterations)
        used += time.process_time() - started
        yield {"iterations": count, "cpu_seconds": used, "nash_conv": nash_conv()}


def _decade(iterations: int) -> bool:
    return 10 ** round(np.log10(iterations)) == iterations


def _variances(
    tree: Any, detected: Detected, made: Solver, samples: int
) -> Iterator[dict[str, Any]]:
    """With the run's own baselines, without, with exact ones; and card by card."""
    for name, settings in (
        ("none", {"algorithm": "public-vr(baseline=none)"}),
        ("average", {}),
        ("oracle", {"oracle": True}),
    ):
        found = variance.estimate_variance(made, samples=samples, **settings)
        yield {
            "form": "public",
            "baseline": name,
            "total": np.mean(found.total),
            "values": np.mean(found.values),
            "root": np.mean(found.root),
        }
    behaviours = [
        made.current_behaviour(player)[detected.sequences[player]]
        for player in range(2)
    ]
    # Baselines of theirs that a batch has learnt at these strategies, card by card.
    for name in ("none", "average") if made.iterations >= _LATE else ():
        scalar = scalar_variance.estimate_variance(
            tree,
            f"os-mccfr(explore=uniform,epsilon=1,batch=1024,baseline={name})",
            (behaviours[0], behaviours[1]),
            samples=samples // 10,
        )
        yield {
            "form": "scalar",
            "baseline": name,
            "total": scalar.mean_total,
            "values": scalar.mean_values,
            "root": np.mean(scalar.root),
        }


def _worth(plain: list[dict[str, Any]], other: list[dict[str, Any]]) -> dict[str, Any]:
    """How many iterations and seconds of a plain run one of another is worth, where
    the plain run is at its end."""
    end = plain[-1]
    reached = [point for point in other if point["nash_conv"] <= end["nash_conv"]]
    if not reached:
        return {"goal": end["nash_conv"], "iterations_worth": None}
    first = reached[0]
    return {
        "goal": end["nash_conv"],
        "iterations_worth": end["iterations"] / first["iterations"],
        "seconds_worth": end["cpu_seconds"] / first["cpu_seconds"],
    }


def _say(**line: Any) -> None:
    print(json.dumps({k: v if v is None else _plain(v) for k, v in line.items()}))


def _plain(value: Any) -> Any:
    return float(f"{value:.4g}") if isinstance(value, float | np.floating) else value


if __name__ == "__main__":
    main()
