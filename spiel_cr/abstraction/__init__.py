"""Lossy abstraction of games in public-tree form, by clustering within a budget."""

from spiel_cr.abstraction.buckets import (
    Abstraction,
    abstract,
    infoset_buckets,
)
from spiel_cr.abstraction.methods import METHODS, Method
from spiel_cr.common.checks import read_budget

__all__ = [
    "METHODS",
    "Abstraction",
    "Method",
    "abstract",
    "infoset_buckets",
    "read_budget",
]
