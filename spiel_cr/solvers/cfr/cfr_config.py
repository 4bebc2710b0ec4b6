"""Names and settings of the CFR family, sampled or not, as `name(parameter=value)`."""

import dataclasses
import math

from spiel_cr.common.checks import Wanted, check_number, check_settings
from spiel_cr.solvers.cfr.regret_matching import Rule


@dataclasses.dataclass(frozen=True)
class CFRConfig:
    """One member of the CFR family.

    Attributes:
      name: for people; the preset or the string it was made from. Two configurations
        that differ in name only are equal.
      rule: what happens to regrets.
      gamma: iteration t enters the average strategy with weight t^gamma: 0 the plain
        mean, 1 linear averaging.
      alternating: player 1 answers player 0's update of the same iteration (as in
        OpenSpiel's solvers); otherwise both answer the previous iteration.
    """

    name: str = dataclasses.field(compare=False)
    rule: Rule = Rule()
    gamma: float = 0.0
    alternating: bool = True

    def __post_init__(self) -> None:
        check_number(
            self.gamma, "gamma", "[0, inf)", remedy="it is averaging's exponent"
        )


# What settings of sampled members must be.
_WANTED: Wanted = {
    "scheme": ("outcome", "external", "average"),
    "baseline": ("none", "average", "expected"),
    "averaging": ("exact", "sampled"),
    "explore": ("uniform", "balanced"),
    "decay": "(0, 1]",
    "batch": range(1, (1 << 20) + 1),
    "threshold": "[0, inf)",
    "bonus": "(0, inf)",
}


@dataclasses.dataclass(frozen=True)
class MCCFRConfig:
    """One member of the Monte Carlo CFR family.

    Attributes:
      name, rule, gamma, alternating: as in `CFRConfig`; an iteration is one batch for
        each player.
      scheme: which actions of the updating player a trajectory follows: "outcome" one
        (Lanctot et al. 2009), "external" all (same paper), "average" those that the
        average strategy plays (Gibson et al. 2012).
      epsilon: outcome sampling: probability of an exploring action at the updating
        player's infosets; average-strategy sampling: least probability of an action.
      explore: how outcome sampling explores: "uniform" over actions, or "balanced", in
        proportion to how many of the player's sequences they lead to, which makes
        deep infosets likelier (Farina et al. 2020, "Stochastic regret minimization in
        extensive-form games").
      batch: trajectories of an iteration and player, sampled at the same strategies; 1
        is the textbook algorithm, but for its average (see `averaging`).
      baseline: control variate, see `baselines.py`.
      decay: how much of an "average" baseline one sample replaces.
      averaging: "exact" adds every iterate's whole sequence form to the average;
        "sampled" adds the visited infosets' only, of games that are not compiled:
        weighted by own reach over sampling probability (stochastically weighted
        averaging), in external sampling those where the other player acts.
      incremental: build the tree as trajectories go: each adds the first infoset that
        is not yet in it, and below plays on by the current strategies without exploring
        or updating; infosets that are not in the tree are uniform. Of games that are
        not compiled.
      delta: share of targeted trajectories, where a target is given.
      threshold, bonus: tau and beta of average-strategy sampling; by default the
        paper's, with which no action is left out before many iterations.
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

    def __post_init__(self) -> None:
        check_settings(self, _WANTED)
        check_number(
            self.gamma, "gamma", "[0, inf)", remedy="it is averaging's exponent"
        )
        check_number(
            self.epsilon,
            "epsilon",
            "(0, 1]",
            remedy="or some actions are never sampled",
        )
        check_number(
            self.delta, "delta", "[0, 1)", remedy="some trajectories must be free"
        )


# Published settings. OpenSpiel's CFRSolver and CFRPlusSolver are cfr and cfr+.
PRESETS: dict[str, CFRConfig] = {
    preset.name: preset
    for preset in (
        CFRConfig("cfr"),
        CFRConfig("cfr+", Rule(beta=-math.inf), gamma=1.0),
        CFRConfig("lcfr", Rule(alpha=1.0, beta=1.0), gamma=1.0),
        CFRConfig("dcfr", Rule(alpha=1.5, beta=0.0), gamma=2.0),
        # Over a fixed number of iterations; see docs/measurements/automatic.md.
        CFRConfig("hs-dcfr", Rule(alpha=3.5, beta=-3.0, ramp=300.0), gamma=3.0),
        CFRConfig("dcfr+", Rule(alpha=1.5, beta=-math.inf), gamma=4.0),
        CFRConfig("pcfr+", Rule(beta=-math.inf, predictive=True), gamma=2.0),
        CFRConfig("pcfr+30", Rule(beta=-math.inf, predictive=True), gamma=30.0),
        # Half a prediction and gamma are ours, see docs/measurements/automatic.md.
        CFRConfig(
            "sapcfr+", Rule(beta=-math.inf, predictive=True, prediction=0.5), gamma=15.0
        ),
        CFRConfig("pdcfr+", Rule(2.3, -math.inf, predictive=True), gamma=5.0),
    )
}
# The schemes are published, the batches are ours. `vr-mccfr` and `vr-mccfr+` have the
# settings of the two algorithms of Schmid et al. 2019 (average baselines of decay 0.5,
# uniform sampling, the latter with regret matching+ and linear averages), but for what
# docs/explanation/sampling.md says; a sample of theirs updates all private hands of a
# public state, one of these its trajectory.
# `evr-mccfr`, after its expected-value baselines (Davis et al. 2020), is our own choice
# of settings: exploration is balanced (Farina et al. 2020), averages weigh t^2 and a
# batch is large, all of it chosen by measuring on Leduc poker, goofspiel and liar's
# dice.
SAMPLED_PRESETS: dict[str, MCCFRConfig] = {
    preset.name: preset
    for preset in (
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
}
