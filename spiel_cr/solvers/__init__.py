"""Solvers of whole games, and the one way to run them."""

__all__: list[str] = []
