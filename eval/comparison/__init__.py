"""Comparisons: every algorithm on every game, in runs that can be resumed."""
