"""Settings of players in games too large to be compiled whole."""

import dataclasses

from open_spiel.python.policy import Policy

from spiel_cr.common.checks import COUNT, check_settings, check_whole
from spiel_cr.resolving.lookahead.blueprint import check_blueprint
from spiel_cr.resolving.resolving_config import ResolvingConfig


@dataclasses.dataclass(frozen=True)
class LookaheadConfig:
    """How lookahead trees follow a match.

    Attributes:
      max_histories: N, the most histories that a tree ever has.
      blueprint: a strategy of both players in the whole game, which is played where
        nothing better is solved: an OpenSpiel policy or the path of a policy file.
        None: the player samples one when it is made, without compiling the game.
      blueprint_iterations: batches that it samples for that; under a clock instead half
        of the time before the first match.
      k: continuations of the blueprint among which the opponent chooses where a tree
        ends; None: the blueprint, and one for each action, at most 16 of them.
      rollouts: of each of them, from each history; None: 100, or 10 under a clock.
      warmup_matches: matches played at construction, to learn what shapes subgames have
        and how much time they take.
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
        check_whole(self.warmup_matches, "warmup_matches", 0)
        check_blueprint(self.blueprint)

    def check(self, resolving: ResolvingConfig) -> None:
        """Raises ValueError where settings do not go with lookahead trees."""
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
