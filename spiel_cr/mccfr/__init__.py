"""Monte Carlo CFR: sampled trajectories in batches, baselines, and their variance."""

from spiel_cr.mccfr.mccfr import make_solver
from spiel_cr.mccfr.variance import Variance, estimate_variance

__all__ = ["Variance", "estimate_variance", "make_solver"]
