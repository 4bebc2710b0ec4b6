"""Fourth stage: settings of searched best responses."""

import dataclasses
import math

from spiel_cr.common.checks import check_iterations

POSTERIORS = ("exact", "uniform")


@dataclasses.dataclass(frozen=True)
class SearchConfig:
    """How ISMCTS-BR searches (Timbers et al. 2022, Algorithms 1 and 2).

    Attributes:
      simulations: from each information state that is searched.
      learn: simulations from *every* information state that the opponent's play can
        lead to, from the last decisions to the first, before those: what follows an
        action has then been searched before it is tried, a value function learned as a
        table. On compiled games only; 0: none.
      exploration: c of PUCT, in units of half the range of the game's utilities: an
        action a at s is worth Q(s, a) + c P(a | s) sqrt(N(s)) / (1 + N(s, a)).
      posterior: where a simulation's history comes from: "exact", the responder's
        belief given the opponent's policy; "uniform", all consistent histories alike
        (to show why not; without `learn`).
      batch: on compiled games, at most so many simulations side by side; 1 is the
        textbook algorithm, slow. Fewer are used while few information states are
        searched.
    """

    simulations: int = 1000
    learn: int = 0
    exploration: float = 4.0
    posterior: str = "exact"
    batch: int = 4096

    def __post_init__(self) -> None:
        check_iterations(self.simulations, name="simulations")
        check_iterations(self.batch, name="batch")
        if self.learn:
            check_iterations(self.learn, name="learn")
        if not (math.isfinite(self.exploration) and self.exploration >= 0):
            raise ValueError(
                f"exploration={self.exploration!r} must be at least 0 and finite"
            )
        if self.learn and self.posterior == "uniform":
            raise ValueError(
                f"learn={self.learn} with posterior='uniform': what is learned at an "
                f"infoset serves those above it only if all believe the same; leave one"
            )
        if self.posterior not in POSTERIORS:
            raise ValueError(
                f"posterior={self.posterior!r}; choose one of {', '.join(POSTERIORS)}"
            )
