"""Settings of players in games too large to be compiled whole."""

import dataclasses
import functools

from spiel_cr.common.checks import check_iterations, check_whole
from spiel_cr.policies.leaf_values import HistoryValues
from spiel_cr.resolving.leaves.continuations import Continuations
from spiel_cr.resolving.leaves.leaf_strings import parse_leaf
from spiel_cr.resolving.partial.blueprint import check_blueprint_file
from spiel_cr.resolving.resolving_config import ResolvingConfig


@dataclasses.dataclass(frozen=True)
class PartialConfig:
    """How partial trees follow a match.

    Attributes:
      max_histories: N, the most histories that a tree ever has.
      leaf: what histories at the frontier are worth, see `PartialTree.start`. More
        rollouts take time, and make fewer mistakes (docs/partial.md has figures).
      until_end: solve only trees that reach the end of the game; where there is no
        capacity or time for one, and before that, play the blueprint of
        leaf=continuations(path=...).
      warmup_matches: matches played at construction, to learn what shapes subgames have
        and how much time they take.
    """

    max_histories: int
    leaf: str | HistoryValues = "rollouts(n=4)"
    until_end: bool = False
    warmup_matches: int = 3

    def __post_init__(self) -> None:
        check_iterations(self.max_histories, name="max_histories")
        check_whole(self.warmup_matches, "warmup_matches", 0)
        self.read_leaf()
        if self.until_end and not self.has_blueprint:
            raise ValueError(
                f"until_end=True plays a blueprint elsewhere, and leaf={self.leaf!r} "
                f"has none; give leaf=continuations(path=FILE), or leave until_end out"
            )

    @functools.cached_property
    def has_blueprint(self) -> bool:
        """Whether leaf values come with a strategy of the whole game."""
        return isinstance(self.read_leaf(), Continuations)

    def read_leaf(self) -> HistoryValues:
        """The leaf value; of a string a new one.

        Raises:
          ValueError, OSError, DamagedFileError: as `parse_leaf`.
        """
        leaf = parse_leaf(self.leaf, compiled=False, check_policy=check_blueprint_file)
        assert isinstance(leaf, HistoryValues)
        return leaf

    def check(self, resolving: ResolvingConfig) -> None:
        """Raises ValueError where settings do not go with partial trees."""
        needed = {"depth": None, "values": "iterates"}
        for name, value in needed.items():
            given = getattr(resolving, name)
            if given not in (value, None):
                raise ValueError(
                    f"{name}={given!r} does not go with max_histories, which needs "
                    f"{name}={value!r}: the lookahead ends at a partial tree's "
                    f"frontier; leave {name} out"
                )
