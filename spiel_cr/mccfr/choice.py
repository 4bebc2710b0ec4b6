"""Which updates a sampled solver makes: of visited infosets only, or of all."""

import math

import jax

from spiel_cr.cfr.config import MCCFRConfig

# A pass over this many entries of the tables takes about as long as batches of array
# code gain on a trajectory that is walked alone (measured on CPUs of two cores).
_ENTRIES_PER_TRAJECTORY = 100
# Averaging weights are (t / 2^16)^gamma: up to this gamma, in single precision, neither
# the first nor the sum of 2^31 of them is out of range.
_MAX_GAMMA = 5.0


def updates_of(config: MCCFRConfig, entries: int, *, buckets: bool = False) -> str:
    """ "visited" or "all".

    Args:
      config: the algorithm.
      entries: T, of tables over actions.
      buckets: whether infosets share regrets.

    Raises:
      ValueError: "visited" was asked for and cannot be.
    """
    rule = config.rule
    against = {
        f"scheme={config.scheme}": config.scheme != "outcome",
        "alpha": rule.alpha != math.inf,
        "beta (but -inf and inf)": not math.isinf(rule.beta),
        "predictive": rule.predictive,
        f"gamma above {_MAX_GAMMA:g}": config.gamma > _MAX_GAMMA,
        "baseline=oracle": config.baseline == "oracle",
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
    large = entries >= _ENTRIES_PER_TRAJECTORY * config.batch
    return "visited" if large or config.batch == 1 else "all"
