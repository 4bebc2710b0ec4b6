"""Names and settings of the CFR family, sampled or not, as `name(parameter=value)`."""

import dataclasses
import math

from spiel_cr.common.checks import Wanted, check_number, check_settings
from spiel_cr.common.parameters import parse, table_of
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
        check_number(self.gamma, "gamma", "[0, inf)", why="it is averaging's exponent")


# What settings of sampled members must be.
_WANTED: Wanted = {
    "scheme": ("outcome", "external", "average"),
    "baseline": ("none", "average", "history", "expected"),
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
      decay: how much of an "average" or "history" baseline one sample replaces.
      averaging: "exact" adds every iterate's whole sequence form to the average;
        "sampled" adds the visited infosets' only, weighted by own reach over sampling
        probability (stochastically weighted averaging).
      incremental: build the tree as trajectories go: each adds the first infoset that
        is not yet in it, and below plays on by the current strategies without exploring
        or updating; infosets that are not in the tree are uniform.
      delta: share of targeted trajectories, where a target is given.
      threshold, bonus: tau and beta of average-strategy sampling; by default the
        paper's, with which no action is left out before many iterations.
    """

    name: str = dataclasses.field(compare=False)
    rule: Rule = Rule()
    gamma: float = 0.0
    alternating: bool = True
    scheme: str = "outcome"
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
        check_number(self.gamma, "gamma", "[0, inf)", why="it is averaging's exponent")
        check_number(
            self.epsilon, "epsilon", "(0, 1]", why="or some actions are never sampled"
        )
        check_number(
            self.delta, "delta", "[0, 1)", why="some trajectories must be free"
        )


# Published settings. OpenSpiel's CFRSolver and CFRPlusSolver are cfr and cfr+.
PRESETS: dict[str, CFRConfig] = {
    preset.name: preset
    for preset in (
        CFRConfig("cfr"),
        CFRConfig("cfr+", Rule(beta=-math.inf), gamma=1.0),
        CFRConfig("lcfr", Rule(alpha=1.0, beta=1.0), gamma=1.0),
        CFRConfig("dcfr", Rule(alpha=1.5, beta=0.0), gamma=2.0),
        CFRConfig("pcfr+", Rule(beta=-math.inf, predictive=True), gamma=2.0),
        CFRConfig("pcfr+30", Rule(beta=-math.inf, predictive=True), gamma=30.0),
        CFRConfig("pdcfr+", Rule(2.3, -math.inf, predictive=True), gamma=5.0),
    )
}
# The schemes are published, the batches are ours. `vr-mccfr` and `vr-mccfr+` have the
# settings of the two algorithms of Schmid et al. 2019 (average baselines of decay 0.5,
# uniform sampling, the latter with regret matching+ and linear averages), but for what
# docs/sampling.md says; a sample of theirs updates all private hands of a public state,
# one of these its trajectory.
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
ALGORITHMS: dict[str, CFRConfig | MCCFRConfig] = {**PRESETS, **SAMPLED_PRESETS}

# First-order methods (see `solvers.first_order.config`), which only `solve` takes.
WHOLE_GAMES = ("egt", "iterated-smoothing", "pdhg")

# What may be written in brackets. A preset says what the others are.
_RULE = table_of(Rule)
_FULL_WIDTH = {**_RULE, **table_of(CFRConfig, leave_out=("name", "rule"))}
_SAMPLED = {**_RULE, **table_of(MCCFRConfig, leave_out=("name", "rule", "scheme"))}


def parse_algorithm(algorithm: str | CFRConfig, name: str = "algorithm") -> CFRConfig:
    """Reads a string like "cfr+" or "dcfr(alpha=1.5,beta=0,gamma=2)".

    Args:
      algorithm: a preset's name, with any of the parameters alpha, beta, gamma,
        exploration (numbers; alpha and beta also inf, beta also -inf), predictive and
        alternating (booleans) in brackets; a CFRConfig is returned as it is.
      name: of the argument, for errors.

    Raises:
      ValueError: unknown algorithm or parameter, or a value out of range.
    """
    config = parse_any(algorithm, name)
    if isinstance(config, MCCFRConfig):
        raise ValueError(
            f"{name}={algorithm!r} samples; here a full-width algorithm is needed: "
            f"choose one of "
            f"{', '.join(PRESETS)}"
        )
    return config


def parse_sampled(algorithm: str | MCCFRConfig, name: str = "solver") -> MCCFRConfig:
    """Reads a sampled algorithm, see `parse_any`.

    Args:
      algorithm: as there.
      name: of the argument, for errors.

    Raises:
      ValueError: a full-width one, or as `parse_any`.
    """
    config = parse_any(algorithm, name)
    if isinstance(config, MCCFRConfig):
        return config
    raise ValueError(
        f"{name}={algorithm!r} does not sample; choose one of "
        f"{', '.join(SAMPLED_PRESETS)}"
    )


def parse_any(
    algorithm: str | CFRConfig | MCCFRConfig, name: str = "algorithm"
) -> CFRConfig | MCCFRConfig:
    """Reads full-width algorithms and sampled ones.

    Args:
      algorithm: as for `parse_algorithm`, or a sampled preset's name, as in
        "evr-mccfr(epsilon=0.6,baseline=average,decay=0.5,batch=1024)", with the
        parameters of `MCCFRConfig` besides those of the regret rule; a configuration
        is returned as it is.
      name: of the argument, for errors.

    Raises:
      ValueError: unknown algorithm or parameter, or a value out of range.
    """
    if isinstance(algorithm, CFRConfig | MCCFRConfig):
        return algorithm
    if not isinstance(algorithm, str):
        raise ValueError(
            f"{name}={algorithm!r} must be a string such as 'cfr+', or a "
            f"CFRConfig or MCCFRConfig"
        )
    parameters = parse(algorithm, name)
    preset_name = parameters.name
    if preset_name == "lp":
        raise ValueError(
            f"{name}='lp' solves whole games only: use it with solve, and without "
            "parameters"
        )
    if preset_name in WHOLE_GAMES:
        raise ValueError(
            f"{name}={algorithm!r} solves whole games only: use it with solve, or take "
            f"'cfr+' here"
        )
    preset = ALGORITHMS.get(preset_name)
    if preset is None:
        raise ValueError(
            f"{name}={algorithm!r}: there is no algorithm {preset_name!r}; choose "
            f"one of "
            f"{', '.join(ALGORITHMS)}; solve also takes lp, "
            f"{', '.join(WHOLE_GAMES)}"
        )
    table = _FULL_WIDTH if isinstance(preset, CFRConfig) else _SAMPLED
    values = parameters.convert(table)
    rule = {key: values.pop(key) for key in list(values) if key in _RULE}
    values.update(name=algorithm, rule=dataclasses.replace(preset.rule, **rule))
    return dataclasses.replace(preset, **values)
