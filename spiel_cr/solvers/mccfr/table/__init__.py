"""Games that are never compiled: sampled CFR on a table of infosets that grows."""

from spiel_cr.solvers.mccfr.table.table_policy import TablePolicy

__all__ = ["TablePolicy"]
