"""Which updates a sampled solver makes: of visited infosets only, or of all."""

import jax

from spiel_cr.solvers.cfr.cfr_config import MCCFRConfig

# A pass over this many entries of the tables takes about as long as batches of array
# code gain on a trajectory that is walked alone (measured on CPUs of two cores).
_ENTRIES_PER_TRAJECTORY = 100
# Averaging weights are (t / 2^16)^gamma: up to this gamma, in single precision, neither
# the first nor the sum of 2^31 of them is out of range.
_MAX_GAMMA = 5.0


def visits_only(
    config: MCCFRConfig, entries: int, *, targets: bool = False, buckets: bool = False
) -> bool:
    """Whether trajectories are walked one by one, and only what they visit is updated.

    Args:
      config: the algorithm.
      entries: T, of tables over actions.
      targets: whether there is a target, see `flat_tree.build`.
      buckets: whether infosets share regrets.

    Raises:
      ValueError: settings that need both ways, or neither has.
    """
    branches = config.scheme != "outcome"
    for setting in config.simulated_only:
        raise ValueError(
            f"algorithm={config.name!r}: {setting} is for games that are not "
            f"compiled; leave it out, or give form='simulator' (--form simulator)"
        )
    alone = {f"scheme={config.scheme}": branches, "a target": targets}
    together = {
        **dict.fromkeys(config.rule.touches_all, True),
        f"gamma above {_MAX_GAMMA:g}": config.gamma > _MAX_GAMMA,
        "buckets": buckets,
        "a baseline": branches and config.baseline != "none",
        "a target": branches and targets,
        "a device that is no CPU (JAX_PLATFORMS=cpu)": jax.default_backend() != "cpu",
    }
    needs_walks = [reason for reason, holds in alone.items() if holds]
    needs_batches = [reason for reason, holds in together.items() if holds]
    if needs_walks and needs_batches:
        raise ValueError(
            f"algorithm={config.name!r}: {needs_walks[0]} does not go with "
            f"{', '.join(needs_batches)}; leave one of them out"
        )
    if needs_walks or needs_batches:
        return not needs_batches
    return config.batch == 1 or entries >= _ENTRIES_PER_TRAJECTORY * config.batch
