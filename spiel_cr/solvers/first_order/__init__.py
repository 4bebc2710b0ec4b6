"""First-order methods on the treeplex: primal-dual steps."""

from spiel_cr.solvers.first_order.solvers import make_solver

__all__ = ["make_solver"]
