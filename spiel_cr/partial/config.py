"""Third stage: how a player resolves in a game too large to be compiled whole."""

import dataclasses

from spiel_cr.common.checks import check_iterations
from spiel_cr.partial.simulator import EdgeValue, parse_edge
from spiel_cr.resolving.config import ResolvingConfig


@dataclasses.dataclass(frozen=True)
class PartialConfig:
    """How a part of the game grows while it is played.

    Attributes:
      max_histories: N, the most histories that a part ever has.
      edge: what histories at its edge are worth, see `growing.PartialTree`. More
        rollouts take time, and make fewer mistakes (docs/partial.md has figures).
      roots: a subgame is resolved as one if its roots are at most this share of the
        histories that the move has room for; else the part begins anew with what is
        thought possible.
      again: at a decision that an earlier solve has answered, the part is made anew if
        that solve had less than this share of the histories that there is room for
        after it; 0: never.
      beliefs: the most histories to think possible at a time; of more, some are drawn.
      mix: share of uniform play in how both players are believed to have played.
      neighbours: share, from 0 to less than 1, of the roots of a part made anew that
        the opponent thinks possible and the player does not (`growing_possible.py`).
      growing: share of a move's time for growing the part; the rest is for solving it.
      warmup: matches played at construction, to learn what rooms and how much time
        subgames take.
    """

    max_histories: int
    edge: str | EdgeValue = "rollout(n=4)"
    roots: float = 0.003
    again: float = 0.5
    beliefs: int = 1000
    mix: float = 0.05
    neighbours: float = 0.5
    growing: float = 0.7
    warmup: int = 3

    def __post_init__(self) -> None:
        for name in ("max_histories", "beliefs"):
            check_iterations(getattr(self, name), name=name)
        if self.warmup < 0:
            raise ValueError(f"warmup={self.warmup!r} must be a number from 0 up")
        parse_edge(self.edge)
        for name in ("roots", "again", "mix"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name}={getattr(self, name)!r} must be from 0 to 1")
        if not 0 <= self.neighbours < 1:
            raise ValueError(
                f"neighbours={self.neighbours!r} must be from 0 to less than 1: some "
                f"roots are the player's own"
            )
        if not 0 < self.growing < 1:
            raise ValueError(
                f"growing={self.growing!r} must lie between 0 and 1: a move's time is "
                f"for growing and for solving"
            )

    def check(self, resolving: ResolvingConfig) -> None:
        """Raises ValueError where settings do not go with a growing part."""
        if resolving.sampled is not None:
            raise ValueError(
                f"max_histories needs a full-width solver, not {resolving.solver!r}"
            )
        if resolving.gadget != "cfrd" or resolving.depth is not None:
            raise ValueError(
                "max_histories needs gadget='cfrd' and no depth: the part's edge is "
                "where the lookahead ends"
            )
        if resolving.values not in (None, "iterates"):
            raise ValueError(
                f"max_histories needs values='iterates', not {resolving.values!r}"
            )
