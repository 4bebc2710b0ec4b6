"""Study: how much baselines lower the variance of outcome sampling on Leduc poker."""

import numpy as np

import spiel_cr
from eval.studies.study import Line, Study

__all__ = ["STUDY"]

_SAMPLES = 4_000
_LEARNING = 40_000


def _run(share: float) -> list[Line]:
    """At one fixed strategy, so that nothing but the baseline differs."""
    tree = spiel_cr.compile_game("leduc_poker")
    fixed = spiel_cr.solve(tree, "cfr+", 20).average
    samples, learning = (max(512, int(share * n)) for n in (_SAMPLES, _LEARNING))
    found = {}
    for baseline in ("none", "average", "history", "oracle"):
        measured = spiel_cr.estimate_variance(
            tree,
            f"os-mccfr(baseline={baseline})",
            fixed,
            samples=samples,
            learning=learning,
            seed=1,
        )
        total = float(np.mean([own.mean() for own in measured.total]))
        found[baseline] = total, float(np.mean(measured.root))
    plain = found["none"]
    claims = {
        "average": "up to a thousandth during a run (Schmid et al. 2019)",
        "history": "a tenth (Davis et al. 2020, learned history baseline)",
        "oracle": "the least that any baseline can leave",
    }
    lines = []
    for baseline, claim in claims.items():
        total, root = found[baseline]
        lines.append(
            Line(
                f"variance with baseline={baseline}, as a share of that without",
                claim,
                f"infosets' values {total / plain[0]:.3g}, "
                f"the game's {root / plain[1]:.3g}",
                None,
            )
        )
    return lines


STUDY = Study(
    "variance",
    "what baselines do for the variance of sampling",
    "Schmid et al. 2019 (VR-MCCFR); Davis et al. 2020, 'Low-variance and zero-variance "
    "baselines for extensive-form games'",
    _run,
)
