"""Sampled CFR for tree-free games, with a growing table of infosets."""

from spiel_cr.solvers.mccfr.table.table_policy import TablePolicy

__all__ = ["TablePolicy"]
