"""Study: hyper-parameters, one at a time: regret rules, averages, sampling, targets."""

import statistics

import game_defs  # noqa: F401  registers the project's games
import spiel_cr

from ..players.traversing import evaluate_bot
from .study import Line, Study

_GAME = "leduc_poker"
_SMALL_GAME = "python_leduc_poker"
_ITERATIONS = 1_000
_BATCHES = 300
_SEARCH_ITERATIONS = 10
_SEEDS = 3

_RULES = {"RM": "cfr", "RM+": "cfr+", "DCFR's": "dcfr"}
_EXPONENTS = (0, 1, 2, 5)
_EXPLORATION = (0.2, 0.4, 0.6, 0.8)
_TARGETING = (0.0, 0.5, 0.9)
_BASELINES = ("none", "average", "history", "expected")


def _run(share: float) -> list[Line]:
    """What is not swept stays as the preset has it."""
    tree = spiel_cr.compile_game(_GAME)
    return [
        *_full_width(tree, max(10, int(share * _ITERATIONS))),
        *_sampled(tree, max(2, int(share * _BATCHES))),
        _targeting(max(1, int(share * _SEARCH_ITERATIONS))),
    ]


def _full_width(tree: spiel_cr.CompiledGame, iterations: int) -> list[Line]:
    """Every regret rule with every averaging exponent."""
    found = {
        rule: {
            exponent: spiel_cr.solve(
                tree, f"{preset}(gamma={exponent})", iterations
            ).nash_conv()
            for exponent in _EXPONENTS
        }
        for rule, preset in _RULES.items()
    }
    plain, plus, discounted = found.values()
    claims = {
        "RM": ("slower than RM+ (Tammelin 2014)", plain[0] > plus[1]),
        "RM+": ("better with 1 than with 0 (Tammelin 2014)", plus[1] < plus[0]),
        "DCFR's": (
            "with 2 better than RM+ with 1 (Brown and Sandholm 2019)",
            discounted[2] < plus[1],
        ),
    }
    what = f"regrets by {{}}, averaging exponent, {iterations} iterations"
    return [
        Line(what.format(rule), claim, _shown(found[rule]), agrees)
        for rule, (claim, agrees) in claims.items()
    ]


def _sampled(tree: spiel_cr.CompiledGame, iterations: int) -> list[Line]:
    """Exploration and baselines of outcome sampling."""
    explored = {
        epsilon: _median(tree, f"os-mccfr(epsilon={epsilon})", iterations)
        for epsilon in _EXPLORATION
    }
    based = {
        baseline: _median(tree, f"evr-mccfr(baseline={baseline})", iterations)
        for baseline in _BASELINES
    }
    after = f"{iterations} batches, median of {_SEEDS} seeds"
    return [
        Line(
            f"outcome sampling, exploration, {after}",
            "used: 0.6 (Lanctot et al. 2009), 0.4 (Lisy et al. 2015)",
            _shown(explored),
            None,
        ),
        Line(
            f"evr-mccfr (our settings), baseline, {after}",
            "average better than none (Schmid et al. 2019), "
            "history better than average (Davis et al. 2020)",
            _shown(based),
            based["history"] < based["average"] < based["none"],
        ),
    ]


def _targeting(iterations: int) -> Line:
    """Online outcome sampling, asked at every infoset."""
    tree = spiel_cr.compile_game(_SMALL_GAME, observations=True)
    found = {}
    for delta in _TARGETING:
        solver = f"os-mccfr(epsilon=0.4,exploration=0.01,batch=256,delta={delta})"
        bot = f"oos(solver={solver},iterations={iterations})"
        found[delta] = statistics.median(
            evaluate_bot(tree, bot, seeds=(2 * seed, 2 * seed + 1)).nash_conv
            for seed in range(_SEEDS)
        )
    return Line(
        f"online outcome sampling, targeted share, {iterations} batches per infoset, "
        f"median of {_SEEDS} seeds",
        "used: 0.9 in matches, 0.5 for exploitability (Lisy et al. 2015)",
        _shown(found),
        None,
    )


def _median(tree: spiel_cr.CompiledGame, algorithm: str, iterations: int) -> float:
    """NashConv, median over seeds."""
    return statistics.median(
        spiel_cr.solve(tree, algorithm, iterations, seed=seed).nash_conv()
        for seed in range(_SEEDS)
    )


def _shown(found: dict[str, float] | dict[int, float] | dict[float, float]) -> str:
    """NashConv by setting."""
    return ", ".join(f"{key}: {value:.2e}" for key, value in found.items())


STUDY = Study(
    "sweeps",
    "hyper-parameters on Leduc poker, one at a time, by NashConv",
    "Tammelin 2014 (CFR+); Brown and Sandholm 2019 (DCFR); Lanctot et al. 2009 "
    "(MCCFR); Lisy et al. 2015 (OOS); Schmid et al. 2019 (VR-MCCFR); Davis et al. 2020",
    _run,
)
