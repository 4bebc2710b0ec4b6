"""Foundations without knowledge of game trees: arrays, files, limits and checks."""

__all__: list[str] = []
