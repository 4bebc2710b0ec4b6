"""Continual re-solving of complete games, and of single subgames during a match."""

from spiel_cr.policies.leaf_values import LeafValue
from spiel_cr.resolving.continual import resolve
from spiel_cr.resolving.resolver import Resolver
from spiel_cr.resolving.resolving_config import ResolvingConfig

__all__ = ["LeafValue", "Resolver", "ResolvingConfig", "resolve"]
