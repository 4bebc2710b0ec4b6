"""Monte Carlo CFR with public trajectories, for all private states at once."""

from spiel_cr.solvers.mccfr.public.public_solver import make_solver

__all__ = ["make_solver"]
