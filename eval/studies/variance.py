"""Study: how much baselines lower the variance of outcome sampling on Leduc poker."""

from collections.abc import Iterator

import numpy as np

import spiel_cr

from .study import Line, Study

_SAMPLES = 4_000
_LEARNING = 40_000
# Neither figure is of what is measured here, so there is no verdict on them.
_CLAIMS = {
    "average": "up to a thousandth (Schmid et al. 2019): not comparable, during a run "
    "and vectorised, where ours is at one strategy, a trajectory at a time",
    "history": "a tenth (Davis et al. 2020, learned history baseline): not comparable, "
    "known to us second-hand, without its setting",
    "oracle": "the least of all, as it knows the values",
}


def _run(share: float) -> Iterator[Line]:
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
    least = [min(values) for values in zip(*found.values(), strict=True)]
    for baseline, claim in _CLAIMS.items():
        total, root = found[baseline]
        yield Line(
            f"variance with baseline={baseline}, as a share of that without",
            claim,
            f"infosets' values {total / plain[0]:.3g}, "
            f"the game's {root / plain[1]:.3g}",
            [total, root] == least if baseline == "oracle" else None,
        )


STUDY = Study(
    "variance",
    "what baselines do for the variance of sampling",
    "Schmid et al. 2019 (VR-MCCFR); Davis et al. 2020, 'Low-variance and zero-variance "
    "baselines for extensive-form games'",
    _run,
)
