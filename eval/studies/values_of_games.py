"""Reproductions of published values and equilibria of games."""

_KUHN_VALUE = -1 / 18
# Iterative solvers end far closer to the equilibrium; errors are far larger.
_TOLERANCE = 2e-3
