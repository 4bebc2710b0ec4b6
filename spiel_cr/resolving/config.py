"""Third stage: how a continually resolving player thinks, as configuration."""

import dataclasses
import math
from typing import Literal, get_args

from spiel_cr.cfr import config as algorithm_lib
from spiel_cr.common.checks import check_iterations
from spiel_cr.policies.leaf_values import LeafValue, parse_leaf

Gadget = Literal["cfrd", "maxmargin", "unsafe"]
Values = Literal["iterates", "best_response"]
Subgames = Literal["observations", "sequences"]


@dataclasses.dataclass(frozen=True)
class ResolvingConfig:
    """How a resolving player thinks.

    Attributes:
      solver: algorithm of every solve, see `algorithm.parse_any`. Sampled ones follow
        both of the opponent's choices at every gate; they take the gadget cfrd, no
        depth, and no values by iterates.
      iterations: of every solve; at most, where there is a time budget too.
      move_ms: milliseconds for a move; None: no clock.
      init_ms: milliseconds for the solve of the whole game before the first move; None:
        as long as the iterations take, or ten moves' time.
      gadget: see `layer.py`.
      subgames: "observations" by what players are told, "sequences" by what they did
        themselves and knew when they did it (coarser; Burch et al. 2014).
      values: what the opponent's values at the next layer's augmented infosets are:
        its mean values under the "iterates" (full-width solvers; their default), or
        those of its "best_response" to the average strategy (sampled solvers' default).
      depth: look so many moves ahead of the subgame's roots (in the first layer: of
        the start of the game), see `look_ahead`; None: to the end of the game.
      leaf: what the game is worth where the lookahead ends, see `parse_leaf`.
      target: aim sampled solvers at the player's current infoset, with the share
        `delta` of their trajectories.
    """

    solver: str = "cfr+"
    iterations: int | None = None
    move_ms: float | None = None
    init_ms: float | None = None
    gadget: Gadget = "cfrd"
    subgames: Subgames = "observations"
    values: Values | None = None
    depth: int | None = None
    leaf: str | LeafValue = "uniform"
    target: bool = False

    def __post_init__(self) -> None:
        self._check_solver()
        parse_leaf(self.leaf)
        if self.depth is not None:
            check_iterations(self.depth, name="depth")
        choices = {
            "gadget": Gadget,
            "subgames": Subgames,
            "values": Values,
        }
        for name, allowed in choices.items():
            given = getattr(self, name)
            if given not in get_args(allowed) and (name, given) != ("values", None):
                raise ValueError(
                    f"{name}={given!r} must be one of {', '.join(get_args(allowed))}"
                )
        if self.iterations is not None:
            check_iterations(self.iterations)
        for name in ("move_ms", "init_ms"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise ValueError(
                    f"{name}={value!r} milliseconds must be positive and finite; leave "
                    f"it out for no clock"
                )
        if self.iterations is None and self.move_ms is None:
            raise ValueError(
                "a resolving player needs a budget: give iterations, move_ms, or both"
            )

    @property
    def sampled(self) -> algorithm_lib.MCCFRConfig | None:
        """The solver's settings if it samples."""
        config = algorithm_lib.parse_any(self.solver)
        return config if isinstance(config, algorithm_lib.MCCFRConfig) else None

    def _check_solver(self) -> None:
        if self.sampled is None:
            if self.target:
                raise ValueError(
                    f"target=true aims trajectories, and solver={self.solver!r} has "
                    f"none; leave it out"
                )
            return
        assert self.sampled is not None
        if self.target and not self.sampled.delta:
            raise ValueError(
                f"target=true needs trajectories to aim; solver={self.solver!r} has "
                f"delta=0"
            )
        for name, wrong in (("values", "iterates"), ("gadget", "maxmargin")):
            if getattr(self, name) == wrong:
                raise ValueError(
                    f"{name}={wrong!r} needs a full-width solver, not {self.solver!r}"
                )
        if self.gadget == "unsafe" or self.depth is not None:
            raise ValueError(
                f"gadget='unsafe' and depth need a full-width solver, not "
                f"{self.solver!r}"
            )
