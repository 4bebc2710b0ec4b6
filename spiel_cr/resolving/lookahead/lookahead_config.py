"""Settings of re-solving players in games that are too large to build."""

import dataclasses

from open_spiel.python.policy import Policy

from spiel_cr.common.checks import COUNT, check_settings
from spiel_cr.resolving.lookahead.blueprint import check_blueprint
from spiel_cr.resolving.resolving_config import ResolvingConfig


@dataclasses.dataclass(frozen=True)
class LookaheadConfig:
    """Settings of the lookahead trees that follow a match.

    Attributes:
      max_histories: Maximum number of histories of a tree, N.
      blueprint: Strategy of both players for the complete game, used wherever no
        accepted solution exists: an OpenSpiel policy or the path of a policy file.
        None: the player samples a blueprint at construction, without building the game
        tree.
      blueprint_iterations: Number of batches of trajectories for sampling a blueprint.
        With a time limit, half of the time before the first match is used instead.
      k: Number of continuation strategies among which the opponent chooses at the
        leaves of a tree. None: the blueprint, and one for each action, but at most 16
        in addition to the blueprint.
      rollouts: Number of rollouts per history and continuation strategy. None: 100, or
        10 with a time limit.
      warmup_matches: Number of matches played at construction, which measure the shapes
        of subgames and the duration of solves.
    """

    max_histories: int
    blueprint: str | Policy | None = None
    blueprint_iterations: int = 500
    k: int | None = None
    rollouts: int | None = None
    warmup_matches: int = 3

    def __post_init__(self) -> None:
        check_settings(self, {"max_histories blueprint_iterations": COUNT})
        check_settings(self, {"k rollouts": COUNT}, optional=True)
        check_settings(self, {"warmup_matches": range(2**31)})
        check_blueprint(self.blueprint)

    def check(self, resolving: ResolvingConfig) -> None:
        """Raise ValueError if settings do not support lookahead trees."""
        needed = {"depth": None, "values": "iterates"}
        for name, value in needed.items():
            setting = getattr(resolving, name)
            if setting not in (value, None):
                raise ValueError(
                    f"{name}={setting!r} does not go with max_histories, which needs "
                    f"{name}={value!r}: the lookahead ends at a lookahead tree's "
                    f"frontier; leave {name} out"
                )
        if resolving.sampled is not None:
            raise ValueError(
                f"solver={resolving.solver!r}: lookahead trees need full-width "
                f"solvers; choose one such as cfr+"
            )
