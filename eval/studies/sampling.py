"""Study: how many iterations of MCCFR one with a baseline is worth, on Leduc poker."""

from collections.abc import Iterator, Sequence

import spiel_cr
from spiel_cr.games.tree.tree import CompiledGame
from spiel_cr.policies.result import CurvePoint
from spiel_cr.solvers.cfr.cfr_config import SAMPLED_PRESETS

from .study import Line, Study

_GAME = "leduc_poker"
# Half of what the paper's run with a baseline had; a minute or two each.
_ITERATIONS = 500_000
_SECONDS = 10.0
# As near to the paper as we come: uniform sampling and a trajectory per iteration and
# player; MCCFR against MCCFR+ with linear averages and a baseline. The paper's is the
# vectorised form: a sample updates all private hands of its public states. That is
# another algorithm, so its factor of 250 is no figure for ours, only its claims are.
_PLAIN = "os-mccfr(explore=uniform,epsilon=1,batch=1)"
_WITH = "vr-mccfr+(baseline={})"
_BASELINES = {
    "average": "above 1, and growing (Schmid et al. 2019: 250 after 1M iterations, but "
    "vectorised, all private hands of a public state a sample; others report 2)",
    "history": "more than the average baseline's (Davis et al. 2020)",
    "expected": "more than the average baseline's (Davis et al. 2020)",
}
# How far a run is when it is first looked at, and how often NashConv is computed.
_EARLY = 0.1
_LOOKS = 100
_CLAIMS_BY_SECONDS = {
    "os-mccfr": "what the others are measured by",
    "evr-mccfr": "below os-mccfr's (ours, with baselines as Schmid et al. 2019)",
}
_EVALUATE_EVERY = 50
# No setting of any algorithm was chosen on these.
_UNTUNED = ("python_princess_and_monster", "python_ii_goofspiel(num_cards=5)")
_COMPARED = ("os-mccfr", "vr-mccfr", "vr-mccfr+", "evr-mccfr")
# Of both players together.
_TRAJECTORIES = 1 << 20


def _run(share: float) -> Iterator[Line]:
    """By iterations, and by seconds with the presets."""
    tree = spiel_cr.compile_game(_GAME)
    iterations = max(100, int(share * _ITERATIONS))
    yield from _by_iterations(tree, iterations)
    yield from _by_seconds(tree, share * _SECONDS)
    for game in _UNTUNED:
        yield from _untuned(game, share)


def _by_iterations(tree: CompiledGame, iterations: int) -> Iterator[Line]:
    """When baselines get to where the run without one is early, and at its end."""
    early = int(_EARLY * iterations)
    plain = spiel_cr.solve(
        tree, _PLAIN, spiel_cr.Goal(iterations, eval_every=early), seed=1
    )
    goals = {early: plain.curve[0].nash_conv, iterations: plain.curve[-1].nash_conv}
    worth = {}
    for baseline, claim in _BASELINES.items():
        curve = spiel_cr.solve(
            tree,
            _WITH.format(baseline),
            spiel_cr.Goal(
                iterations, until=goals[iterations], eval_every=iterations // _LOOKS
            ),
            seed=1,
        ).curve
        first, last = (_worth(curve, *goal) for goal in goals.items())
        worth[baseline] = last
        agrees = last > worth["average"]
        if baseline == "average":
            agrees = 1 < last and first < last
        end = curve[-1]
        yield Line(
            f"how many iterations of MCCFR one with baseline={baseline} is worth",
            claim,
            f"{_said(first)} after {early:,}, {_said(last)} after {iterations:,}: "
            f"NashConv {end.nash_conv:.2e} after {end.iterations:,}, of MCCFR "
            f"{goals[iterations]:.2e} after {iterations:,}",
            agrees,
        )


def _worth(curve: Sequence[CurvePoint], iterations: int, nash_conv: float) -> float:
    """Iterations of MCCFR for one until this NashConv; 0: it was not reached."""
    reached = [p.iterations for p in curve if p.nash_conv <= nash_conv]
    return iterations / reached[0] if reached else 0.0


def _said(worth: float) -> str:
    return f"{worth:.3g}" if worth else "less than 1"


def _by_seconds(tree: CompiledGame, seconds: float) -> list[Line]:
    """NashConv on the way, batches as the presets have them."""
    curves = {
        algorithm: _curve(tree, algorithm, seconds) for algorithm in _CLAIMS_BY_SECONDS
    }
    last = {algorithm: curve[-1].nash_conv for algorithm, curve in curves.items()}
    per_iteration = {
        algorithm: 2 * SAMPLED_PRESETS[algorithm].batch for algorithm in curves
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


def _untuned(game: str, share: float) -> Iterator[Line]:
    """Each algorithm for as many trajectories, and for as many seconds."""
    tree = spiel_cr.compile_game(game)
    for algorithm in _COMPARED:
        each = 2 * SAMPLED_PRESETS[algorithm].batch
        counted = max(1, int(share * _TRAJECTORIES) // each)
        equal = spiel_cr.solve(tree, algorithm, counted, seed=1)
        timed = spiel_cr.solve(
            tree, algorithm, spiel_cr.Goal(seconds=share * _SECONDS), seed=1
        )
        yield Line(
            f"{algorithm} on {game}, on which nothing was tuned",
            "none",
            f"{equal.nash_conv():.2e} after {counted * each:,} trajectories; "
            f"{timed.nash_conv():.2e} after {timed.seconds:.3g} s, "
            f"{timed.iterations * each:,} trajectories",
            None,
        )


def _curve(tree: CompiledGame, algorithm: str, seconds: float) -> list[CurvePoint]:
    """Points near an eighth, a quarter, half and all of the time."""
    curve = spiel_cr.solve(
        tree,
        algorithm,
        spiel_cr.Goal(seconds=seconds, eval_every=_EVALUATE_EVERY),
        seed=1,
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
