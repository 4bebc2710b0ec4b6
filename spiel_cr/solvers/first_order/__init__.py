"""First-order methods for the saddle-point problem of both players' sequence forms."""

from spiel_cr.solvers.first_order.solvers import make_solver

__all__ = ["make_solver"]
