"""Study: how many iterations of MCCFR one with a baseline is worth, on Leduc poker."""

import spiel_cr
from eval.studies.study import Line, Study
from spiel_cr.result import CurvePoint

__all__ = ["STUDY"]

_GAME = "leduc_poker"
# Half the paper's run; a minute or less each.
_ITERATIONS = 500_000
_SECONDS = 10.0
# One trajectory an iteration and player, as in the paper: MCCFR+ with uniform
# exploration and linear averages.
_PAPERS = "vr-mccfr(gamma=1,explore=uniform,epsilon=0.6,batch=1,baseline={})"
_BASELINES = {
    "average": "250: 1M iterations as good as 250M without (Schmid et al. 2019, "
    "VR-MCCFR+); others report 2",
    "history": "more than the average baseline's (Davis et al. 2020)",
    "expected": "more than the average baseline's (Davis et al. 2020)",
}
_PUBLISHED = 250
# A ratio of two noisy runs: less than a tenth of what was published is another result.
_CLOSE = 0.1
_CLAIMS_BY_SECONDS = {
    "os-mccfr": "what the others are measured by",
    "vr-mccfr": "below os-mccfr's (Schmid et al. 2019)",
}
_EVALUATE_EVERY = 50


def _run(share: float) -> list[Line]:
    """By iterations as in the paper, and by seconds with the presets."""
    tree = spiel_cr.compile_game(_GAME)
    iterations = max(100, int(share * _ITERATIONS))
    return [*_by_iterations(tree, iterations), *_by_seconds(tree, share * _SECONDS)]


def _by_iterations(tree: spiel_cr.CompiledGame, iterations: int) -> list[Line]:
    """When baselines get to where the run without one ends."""
    plain = spiel_cr.solve(tree, _PAPERS.format("none"), iterations, seed=1)
    until = plain.nash_conv()
    lines, worth = [], {}
    for baseline, claim in _BASELINES.items():
        algorithm = _PAPERS.format(baseline)
        result = spiel_cr.solve(tree, algorithm, iterations, until=until, seed=1)
        reached = result.nash_conv()
        worth[baseline] = iterations / result.iterations if reached <= until else 0.0
        least = _CLOSE * _PUBLISHED if baseline == "average" else worth["average"]
        said = f"{worth[baseline]:.3g}" if worth[baseline] else "less than 1"
        lines.append(
            Line(
                f"how many iterations without baseline one with baseline={baseline} "
                f"is worth",
                claim,
                f"{said}: NashConv {reached:.2e} after {result.iterations:,}, without "
                f"{until:.2e} after {iterations:,}",
                worth[baseline] > least,
            )
        )
    return lines


def _by_seconds(tree: spiel_cr.CompiledGame, seconds: float) -> list[Line]:
    """NashConv on the way, batches as the presets have them."""
    curves = {
        algorithm: _curve(tree, algorithm, seconds) for algorithm in _CLAIMS_BY_SECONDS
    }
    last = {algorithm: curve[-1].nash_conv for algorithm, curve in curves.items()}
    per_iteration = {
        algorithm: 2 * spiel_cr.SAMPLED_PRESETS[algorithm].batch for algorithm in curves
    }
    return [
        Line(
            f"{algorithm}, NashConv by seconds",
            claim,
            "; ".join(
                f"{point.nash_conv:.2e} after {point.seconds:.3g} s, "
                f"{point.iterations * per_iteration[algorithm]:,} trajectories"
                for point in curves[algorithm]
            ),
            None if algorithm == "os-mccfr" else last[algorithm] < last["os-mccfr"],
        )
        for algorithm, claim in _CLAIMS_BY_SECONDS.items()
    ]


def _curve(
    tree: spiel_cr.CompiledGame, algorithm: str, seconds: float
) -> list[CurvePoint]:
    """Points near an eighth, a quarter, half and all of the time."""
    curve = spiel_cr.solve(
        tree, algorithm, seconds=seconds, eval_every=_EVALUATE_EVERY, seed=1
    ).curve
    # Each point once, though a short run may have few.
    near = {
        min(curve, key=lambda point: abs(point.seconds - due)): None
        for due in (seconds / 8, seconds / 4, seconds / 2, curve[-1].seconds)
    }
    return list(near)


STUDY = Study(
    "sampling",
    "what baselines do for the convergence of outcome sampling",
    "Schmid et al. 2019, 'Variance reduction in Monte Carlo counterfactual regret "
    "minimization (VR-MCCFR) for extensive form games using baselines'",
    _run,
)
