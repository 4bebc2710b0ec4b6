"""Monte Carlo CFR by public trajectories, for all private hands at once."""

from spiel_cr.solvers.mccfr.public.public_solver import make_solver

__all__ = ["make_solver"]
