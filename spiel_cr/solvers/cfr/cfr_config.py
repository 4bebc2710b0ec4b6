"""Settings and presets of full-width and Monte Carlo CFR algorithms."""

import dataclasses
import math
from typing import Any

import numpy as np

from spiel_cr.common.checks import Wanted, check_settings
from spiel_cr.common.parameters import by_name
from spiel_cr.solvers.cfr import volatility
from spiel_cr.solvers.cfr.regret_matching import Rule, UserFunction


@dataclasses.dataclass(frozen=True)
class CFRConfig:
    """Settings of a full-width CFR algorithm.

    Attributes:
      name: Name for messages: the preset, or the string that the settings were read
        from. Settings that differ only in the name are equal.
      rule: Regret rule.
      gamma: Exponent of averaging: iteration t has weight t^gamma; 0 is the plain mean,
        1 linear averaging.
      alternating: Whether player 1 responds to player 0's update of the same iteration
        (as in OpenSpiel's solvers); otherwise both respond to the previous iteration.
      weights: Averaging weights in place of t^gamma: a function from the number t of
        the iteration, a float scalar from 1, to its weight, which is at least 0; or its
        name, "module:function", in a module that was imported with --import. While all
        weights are 0, the average is the last strategy.
    """

    name: str = dataclasses.field(compare=False)
    rule: Rule = Rule()
    gamma: float = 0.0
    alternating: bool = True
    weights: Any = None

    def __post_init__(self) -> None:
        check_settings(self, {"gamma": "[0, inf)"})
        _read_functions(self, "weights")
        if self.rule.weighs_infosets and (self.gamma or self.weights):
            raise ValueError(
                f"algorithm={self.name!r}: the rule has averaging weights; leave "
                f"gamma and weights out"
            )


def _read_functions(config: Any, *names: str) -> None:
    """Convert settings that name functions to `UserFunction`; check the weights."""
    for name in names:
        function = UserFunction.read(getattr(config, name), name)
        object.__setattr__(config, name, function)
    if config.weights is None:
        return
    for t in (1, 2, 1000):
        weight = np.asarray(config.weights.call(np.float64(t)))
        if weight.shape or not 0 <= weight < np.inf:
            raise ValueError(
                f"weights={config.weights!r}: the weight of iteration {t} is {weight}; "
                f"return a finite number that is at least 0"
            )


# Settings that are functions of a user.
USER_FUNCTIONS = ("weights", "sampling", "learning")
# Valid values of the settings of Monte Carlo CFR.
_WANTED: Wanted = {
    "scheme": ("outcome", "external", "average"),
    "baseline": ("none", "average", "expected"),
    "averaging": ("exact", "sampled"),
    "explore": ("uniform", "balanced"),
    "decay": "(0, 1]",
    "batch": range(1, (1 << 20) + 1),
    "threshold": "[0, inf)",
    "bonus": "(0, inf)",
    "gamma": "[0, inf)",
    "epsilon": "(0, 1]",
    "delta": "[0, 1)",
}


@dataclasses.dataclass(frozen=True)
class MCCFRConfig:
    """Settings of a Monte Carlo CFR algorithm.

    Attributes:
      name: Name for messages, as in `CFRConfig`.
      rule: Regret rule.
      gamma: Exponent of averaging, as in `CFRConfig`; an iteration is one batch for
        each player.
      alternating: Whether player 1 responds to player 0's update of the same iteration.
      scheme: Actions of the updating player that a trajectory follows: "outcome" one
        (Lanctot et al. 2009), "external" all (same paper), "average" those that the
        average strategy plays (Gibson et al. 2012).
      epsilon: Probability of an exploring action at the updating player's infosets in
        outcome sampling; least probability of an action in average-strategy sampling.
      explore: Exploration of outcome sampling: "uniform" over actions, or "balanced",
        in proportion to how many of the player's sequences they lead to, which makes
        deep infosets likelier (Farina et al. 2020, "Stochastic regret minimization in
        extensive-form games").
      batch: Number of trajectories per iteration and player, sampled at the same
        strategies; 1 is the textbook algorithm except for its average (see
        `averaging`).
      baseline: Control variate, see `baselines.py`.
      decay: Share of an "average" baseline that one sample replaces.
      averaging: "exact" adds every iterate's complete sequence form to the average;
        "sampled" adds that of visited infosets only, in simulated games: weighted by
        own reach over sampling probability (stochastically weighted averaging), in
        external sampling at infosets where the other player acts.
      incremental: Whether the tree grows with trajectories, in simulated games: each
        adds the first infoset that is not yet in it. Below, it follows the current
        strategies without exploring or updating; infosets that are not in the tree are
        uniform.
      delta: Share of targeted trajectories, if there is a target.
      threshold, bonus: tau and beta of average-strategy sampling; by default the
        paper's, with which no action is left out before many iterations.
      weights: Averaging weights in place of t^gamma, as in `CFRConfig`.
      sampling: Sampling scheme in place of `epsilon` and `explore`: a function of the
        current strategy and the uniform strategy, float [A, n] each, at the infosets
        where the updating player acts. It returns the probability with which each
        action is sampled, float [A, n], positive wherever the current strategy is; or
        its name, as for `weights`. Only for outcome sampling.
      learning: Update of an "average" baseline in place of `decay`: a function
        (old, mean, count) of the old baseline, the mean of the values sampled in this
        iteration (player 0's utility) and their number, float [T] each, over all
        infoset-action pairs and outcomes of chance. It returns the new baseline,
        float [T]; or its name, as for `weights`. Where the count is 0, the old
        baseline is kept.
    """

    name: str = dataclasses.field(compare=False)
    rule: Rule = Rule()
    gamma: float = 0.0
    alternating: bool = True
    scheme: str = dataclasses.field(default="outcome", metadata={"fixed": True})
    epsilon: float = 0.6
    explore: str = "uniform"
    batch: int = 1024
    baseline: str = "none"
    decay: float = 0.5
    averaging: str = "exact"
    incremental: bool = False
    delta: float = 0.9
    threshold: float = 1000.0
    bonus: float = 1e6
    weights: Any = None
    sampling: Any = None
    learning: Any = None

    def __post_init__(self) -> None:
        check_settings(self, _WANTED)
        _read_functions(self, *USER_FUNCTIONS)
        if self.rule.custom is not None and self.rule.custom[2:] != (None, False):
            raise ValueError(
                f"algorithm={self.name!r}: rules with averaging weights or raw payoffs "
                f"need a full-width algorithm; use CFRConfig"
            )
        if self.sampling is not None and self.scheme != "outcome":
            raise ValueError(
                f"sampling={self.sampling!r}: scheme={self.scheme!r} has no sampling "
                f"probabilities of the updating player; use scheme='outcome'"
            )
        if self.learning is not None and self.baseline != "average":
            raise ValueError(
                f"learning={self.learning!r}: baseline={self.baseline!r} is not "
                f"learned from means; use baseline='average'"
            )

    @property
    def user_functions(self) -> list[str]:
        """Names of the settings that are functions of a user."""
        return [name for name in USER_FUNCTIONS if getattr(self, name) is not None]

    @property
    def simulated_only(self) -> list[str]:
        """Settings that only simulated games support, as "averaging=sampled"."""
        incremental = ["incremental=true"] if self.incremental else []
        return incremental + ["averaging=sampled"] * (self.averaging == "sampled")


# Published settings. OpenSpiel's CFRSolver and CFRPlusSolver are cfr and cfr+.
PRESETS: dict[str, CFRConfig] = by_name(
    CFRConfig("cfr"),
    CFRConfig("cfr+", Rule(beta=-math.inf), gamma=1.0),
    CFRConfig("lcfr", Rule(alpha=1.0, beta=1.0), gamma=1.0),
    CFRConfig("dcfr", Rule(alpha=1.5, beta=0.0), gamma=2.0),
    # Over a fixed number of iterations; see docs/benchmarks/tabular-solvers.md.
    CFRConfig("hs-dcfr", Rule(alpha=3.5, beta=-3.0, ramp=300.0), gamma=3.0),
    CFRConfig("dcfr+", Rule(alpha=1.5, beta=-math.inf), gamma=4.0),
    CFRConfig("pcfr+", Rule(beta=-math.inf, predictive=True), gamma=2.0),
    CFRConfig("pcfr+30", Rule(beta=-math.inf, predictive=True), gamma=30.0),
    # Prediction and gamma are chosen here, see docs/benchmarks/tabular-solvers.md.
    CFRConfig(
        "sapcfr+", Rule(beta=-math.inf, predictive=True, prediction=0.5), gamma=15.0
    ),
    CFRConfig("pdcfr+", Rule(2.3, -math.inf, predictive=True), gamma=5.0),
    CFRConfig("vad-cfr", Rule(custom=volatility.RULE)),
)
# The schemes are published; the batches are not. `vr-mccfr` and `vr-mccfr+` have the
# settings of the two algorithms of Schmid et al. 2019 (average baselines of decay 0.5,
# uniform sampling, the latter with regret matching+ and linear averages), with the
# deviations that docs/explanation/sampling.md lists. Their samples update all private
# hands of a public state; samples here update one trajectory.
# `evr-mccfr` is named after its expected-value baselines (Davis et al. 2020). Its other
# settings were chosen by measurements on Leduc poker, goofspiel and liar's dice:
# balanced exploration (Farina et al. 2020), averaging weights t^2, and a large batch.
SAMPLED_PRESETS: dict[str, MCCFRConfig] = by_name(
    MCCFRConfig("os-mccfr"),
    MCCFRConfig("es-mccfr", scheme="external", batch=64),
    MCCFRConfig("as-mccfr", scheme="average", epsilon=0.05, batch=64),
    MCCFRConfig("vr-mccfr", baseline="average", epsilon=1.0, batch=1),
    MCCFRConfig(
        "vr-mccfr+",
        Rule(beta=-math.inf),
        gamma=1.0,
        baseline="average",
        epsilon=1.0,
        batch=1,
    ),
    MCCFRConfig(
        "evr-mccfr",
        Rule(beta=-math.inf),
        gamma=2.0,
        baseline="expected",
        explore="balanced",
        epsilon=0.8,
        batch=4096,
    ),
)
