"""Monte Carlo CFR: trajectories in batches or one by one, with baselines."""

from spiel_cr.solvers.mccfr.mccfr import make_solver

__all__ = ["make_solver"]
