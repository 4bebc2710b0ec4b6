"""Monte Carlo CFR by public trajectories, for all private hands at once."""

from spiel_cr.public_sampling.config import PRESETS, PublicConfig, parse_public
from spiel_cr.public_sampling.solver import make_solver
from spiel_cr.public_sampling.variance import Variance, estimate_variance

__all__ = [
    "PRESETS",
    "PublicConfig",
    "Variance",
    "estimate_variance",
    "make_solver",
    "parse_public",
]
