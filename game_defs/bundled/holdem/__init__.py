"""Public trees and batched rules of two-player `universal_poker`."""

from game_defs.bundled.holdem.batched_rules import batched_universal_poker
from game_defs.bundled.holdem.declaration import public_tree_of_universal_poker

__all__ = ["public_tree_of_universal_poker", "batched_universal_poker"]
