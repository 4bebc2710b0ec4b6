"""Which updates a sampled solver makes: of visited infosets only, or of all."""

import math

import jax

from spiel_cr.cfr.config import MCCFRConfig

# A pass over this many entries of the tables takes about as long as batches of array
# code gain on a trajectory that is walked alone (measured on CPUs of two cores).
_ENTRIES_PER_TRAJECTORY = 100
# Of external sampling, whose array code is slower still: with 40 a walk takes an eighth
# of the CPU time (Leduc poker, batches of 64).
_ENTRIES_PER_BRANCHING = 10
# Averaging weights are (t / 2^16)^gamma: up to this gamma, in single precision, neither
# the first nor the sum of 2^31 of them is out of range.
_MAX_GAMMA = 5.0


def updates_of(
    config: MCCFRConfig,
    entries: int,
    *,
    targets: bool = False,
    buckets: bool = False,
) -> str:
    """ "visited" or "all".

    Args:
      config: the algorithm.
      entries: T, of tables over actions.
      targets: whether there is a target, see `sample_tree.build`.
      buckets: whether infosets share regrets.

    Raises:
      ValueError: "visited" was asked for and cannot be.
    """
    rule = config.rule
    external = config.scheme == "external"
    against = {
        f"scheme={config.scheme}": config.scheme == "average",
        "alpha": rule.alpha != math.inf,
        "beta (but -inf and inf)": not math.isinf(rule.beta),
        "predictive": rule.predictive,
        f"gamma above {_MAX_GAMMA:g}": config.gamma > _MAX_GAMMA,
        "baseline=oracle": config.baseline == "oracle",
        "scheme=external and a baseline": external and config.baseline != "none",
        "scheme=external and incremental=true": external and config.incremental,
        "scheme=external and a target": external and targets,
        "buckets": buckets,
    }
    reasons = [reason for reason, holds in against.items() if holds]
    if config.updates == "visited" and reasons:
        raise ValueError(
            f"updates=visited does not go with {', '.join(reasons)}; give updates=all "
            "or leave it out"
        )
    if config.updates != "auto":
        return config.updates
    if reasons or jax.default_backend() != "cpu":
        return "all"
    least = _ENTRIES_PER_BRANCHING if external else _ENTRIES_PER_TRAJECTORY
    large = entries >= least * config.batch
    return "visited" if large or config.batch == 1 else "all"
