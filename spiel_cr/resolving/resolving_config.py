"""Settings of continual re-solving."""

import dataclasses
from collections.abc import Iterable
from typing import Literal, get_args

from spiel_cr.common.checks import check_choice
from spiel_cr.policies.leaf_values import HistoryValues
from spiel_cr.resolving.clock import check_budget
from spiel_cr.resolving.gadget_infosets import Gadget
from spiel_cr.resolving.leaves.leaf_strings import DepthUnit, check_lookahead, is_fixed
from spiel_cr.solvers.algorithms import CFR, MCCFR, find
from spiel_cr.solvers.automatic import OF_SUBGAMES
from spiel_cr.solvers.cfr.cfr_config import CFRConfig, MCCFRConfig
from spiel_cr.solvers.representation import TREE

Values = Literal["iterates", "best_response"]


@dataclasses.dataclass(frozen=True)
class ResolvingConfig:
    """Settings of a continual re-solving player.

    Attributes:
      solver: Algorithm of every solve, see `algorithms.find`; "auto" is
        `automatic.OF_SUBGAMES`. Of the sampling algorithms those that follow one action
        at a time (outcome sampling) are supported, with the gadget cfrd and without a
        depth; see `subgame_sampling.py`.
      iterations: Number of iterations of every solve; a maximum with a time limit. The
        root of a game without a game tree has ten times as many.
      move_ms: Time limit per move in milliseconds. If None, there is no limit.
      init_ms: Time limit in milliseconds for solving the game before the first move. If
        None, as long as the iterations take, or the time of ten moves.
      gadget: Gadget game that keeps the opponent from gaining, see
        `gadget_infosets.py`.
      values: Opponent's values at the next layer's augmented infosets: "iterates", the
        mean over the iterates (sampling solvers estimate it without bias), or
        "best_response", those of a best response to the average strategy. If None,
        "iterates" for full-width solvers, "best_response" for sampling solvers
        (docs/explanation/resolving.md).
      depth: Number of moves or rounds that every solve looks ahead from the subgame's
        roots, see `truncate_layer`. If None, to the end of the game.
      depth_unit: Unit of `depth`: moves, including those of chance, or rounds, which
        end where chance moves after a decision.
      leaf: Value of a history at which the lookahead ends, see `leaf_strings.LEAVES`.
        If None, "uniform". Continuations require values of the iterates.
      target: Whether a sampling solver starts a share `delta` of its trajectories at
        the player's current infoset, and not at all roots of the subgame (the targeting
        of Lisý et al. 2015 in re-solved subgames; Schlindenbuch 2019). Estimates stay
        unbiased; the rest of the subgame, which the constraints depend on, is sampled
        less (docs/explanation/resolving.md).

    Example:
      >>> import spiel_cr
      >>> config = spiel_cr.ResolvingConfig(solver="cfr+", iterations=200)
      >>> result = spiel_cr.resolve("kuhn_poker", config)
      >>> spiel_cr.nash_conv("kuhn_poker", result) < 0.05
      True
    """

    solver: str | CFRConfig = "auto"
    iterations: int | None = None
    move_ms: float | None = None
    init_ms: float | None = None
    gadget: Gadget = "cfrd"
    values: Values | None = None
    depth: int | None = None
    depth_unit: DepthUnit = "moves"
    leaf: str | HistoryValues | None = None
    target: bool = False

    def __post_init__(self) -> None:
        self._check_solver()
        self._check_leaf()
        check_choice(self.gadget, "gadget", get_args(Gadget))
        check_choice(self.values, "values", (*get_args(Values), None))
        times = self.move_ms, self.init_ms
        check_budget("resolving", "iterations", self.iterations, *times)

    def algorithm(self, form: str) -> CFRConfig | MCCFRConfig:
        """Return the solver's settings for games in a form, "tree" or "public-tree"."""
        solver = OF_SUBGAMES[form] if self.solver == "auto" else self.solver
        return find(solver, "solver", (CFR, MCCFR)).config

    @property
    def sampled(self) -> MCCFRConfig | None:
        """The solver's settings if it samples."""
        config = self.algorithm(TREE)
        return config if isinstance(config, MCCFRConfig) else None

    def changed(self, *names: str) -> list[str]:
        """Return which of some settings differ from their defaults."""
        defaults = {field.name: field.default for field in dataclasses.fields(self)}
        # For full-width solvers, "iterates" is the same as the default.
        same = {"values": "iterates"}
        return [
            name
            for name in names
            if getattr(self, name) not in (defaults[name], same.get(name))
        ]

    def reject(self, names: Iterable[str], reason: str) -> None:
        """Raise ValueError with a reason for the first of some settings, if any."""
        for name in names:
            raise ValueError(f"{name}={getattr(self, name)!r}{reason}")

    @property
    def tree_only(self) -> list[str]:
        """Changed settings that public-tree form does not support."""
        sampled = [] if self.sampled is None else ["solver"]
        return sampled + self.changed("gadget", "depth", "values")

    @property
    def public_tree_error(self) -> str | None:
        """Error message for public-tree form; None if it supports the settings."""
        for name in self.tree_only:
            return (
                f"{name}={getattr(self, name)!r}: re-solving in public-tree form "
                f"supports only full-width solvers, the gadget cfrd, no depth limit "
                f"and values of the iterates; leave {name} out, or use the OpenSpiel "
                f"game with form='tree'"
            )
        return None

    @property
    def match_only(self) -> list[str]:
        """Changed settings that only players in a match have."""
        return self.changed("move_ms", "init_ms", "values", "target")

    @property
    def is_exact(self) -> bool:
        """Whether the result is reproducible: no time limit and no sampling."""
        return self.move_ms is None and self.init_ms is None and not self.sampled

    def _check_solver(self) -> None:
        """Raise ValueError if the sampler of subgames does not support a setting."""
        check_choice(self.target, "target", (True, False))
        sampled = self.sampled
        if self.target and not (sampled and sampled.delta):
            raise ValueError(
                f"target=True: solver={self.solver!r} has no targeted trajectories; "
                f"leave target out, or use outcome sampling with a positive delta, "
                f"such as solver='os-mccfr'"
            )
        if sampled is None:
            if self.algorithm(TREE).rule.weighs_infosets:
                raise ValueError(
                    f"solver={self.solver!r}: its averages weigh infosets differently, "
                    f"so there are no mean values for constraints; use one such as "
                    f"'cfr+'"
                )
            return
        scheme = [] if sampled.scheme == "outcome" else [f"scheme={sampled.scheme!r}"]
        custom = [f"a function as {name}" for name in sampled.user_functions]
        custom += ["a custom rule"] if sampled.rule.custom else []
        for setting in scheme + sampled.simulated_only + custom:
            raise ValueError(
                f"solver={self.solver!r} has {setting}; re-solving supports only "
                f"full-width solvers and outcome sampling: use one such as cfr+ or "
                f"os-mccfr"
            )
        self.reject(
            self.changed("gadget", "depth"),
            f" needs a full-width solver, not {self.solver!r}; use one such as cfr+",
        )

    def _check_leaf(self) -> None:
        """Raise an error if the lookahead is invalid or its leaf value unsupported."""
        check_lookahead(self.depth, self.depth_unit, self.leaf)
        if self.by_best_response and not is_fixed(self.leaf):
            raise ValueError(
                f"values={self.values!r} is not supported with leaf={self.leaf!r}: "
                f"with a blueprint, constraints are best-response values already; "
                f"leave values out"
            )

    @property
    def by_best_response(self) -> bool:
        """Whether the opponent's values are those of a best response."""
        if self.values is None:
            return self.sampled is not None
        return self.values == "best_response"


def full_game_settings(
    algorithm: str | CFRConfig | ResolvingConfig, iterations: int | None
) -> ResolvingConfig:
    """Return the settings for re-solving a complete game, from arguments of `resolve`.

    Args:
      algorithm: Algorithm, or all settings.
      iterations: Number of iterations of every solve; None: 1000, or that of the
        settings.

    Returns:
      Settings with a full-width solver and a number of iterations.

    Raises:
      OSError, ValueError: If a value is invalid, both arguments have a number of
        iterations, or a setting is only for players in a match.
    """
    if not isinstance(algorithm, ResolvingConfig):
        solver = find(algorithm, families=(CFR,)).config
        solver = algorithm if algorithm == "auto" else solver
        return ResolvingConfig(solver, 1000 if iterations is None else iterations)
    if iterations is not None:
        raise ValueError(
            f"iterations={iterations!r}: the ResolvingConfig has its own number of "
            f"iterations; set it there"
        )
    algorithm.reject(
        algorithm.match_only,
        " is for players in a match; leave it out of the settings to re-solve a "
        "complete game, or use a ResolvingBot",
    )
    if algorithm.iterations is None:
        raise ValueError(
            "iterations=None: a complete game cannot be re-solved with a time limit "
            "only; set the number of iterations of each solve"
        )
    find(algorithm.solver, "solver", (CFR,))
    return algorithm
