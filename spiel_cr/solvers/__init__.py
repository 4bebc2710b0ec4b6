"""Solvers of complete games, and the function `solve.solve` that runs any of them."""

__all__: list[str] = []
