"""Choice between updating only visited infosets and updating all infosets."""

import jax

from spiel_cr.solvers.cfr.cfr_config import MCCFRConfig

# A batch of array code saves, per trajectory, about as much time as one pass over this
# many entries of the tables costs (measured on CPUs with two cores).
_ENTRIES_PER_TRAJECTORY = 100
# Averaging weights are (t / 2^16)^gamma. Up to this gamma, neither the first weight nor
# the sum of 2^31 weights is outside the range of single precision.
_MAX_GAMMA = 5.0


def visits_only(
    config: MCCFRConfig, entries: int, *, targets: bool = False, buckets: bool = False
) -> bool:
    """Return True if the solver updates only the infosets that trajectories visit.

    Such a solver simulates one trajectory after another (`visited.py`). The alternative
    simulates batches with array operations and updates all infosets (`mccfr.py`).

    Args:
      config: Settings of the algorithm.
      entries: Number T of entries of the tables over actions.
      targets: True if trajectories are directed to a target, see `flat_tree.build`.
      buckets: True if infosets share regrets.

    Raises:
      ValueError: If a setting needs a simulator, or if two settings need different
        solvers.
    """
    branches = config.scheme != "outcome"
    for setting in config.simulated_only:
        raise ValueError(
            f"algorithm={config.name!r}: {setting} requires a simulator; "
            f"remove the setting, or use form='simulator' (--form simulator)"
        )
    alone = {f"scheme={config.scheme}": branches, "a target": targets}
    together = {
        **dict.fromkeys(config.rule.touches_all, True),
        **dict.fromkeys((f"a function as {x}" for x in config.user_functions), True),
        f"gamma above {_MAX_GAMMA:g}": config.gamma > _MAX_GAMMA,
        "buckets": buckets,
        "a baseline": branches and config.baseline != "none",
        "a target": branches and targets,
        "a device other than the CPU (JAX_PLATFORMS=cpu)": jax.default_backend()
        != "cpu",
    }
    needs_walks = [reason for reason, holds in alone.items() if holds]
    needs_batches = [reason for reason, holds in together.items() if holds]
    if needs_walks and needs_batches:
        raise ValueError(
            f"algorithm={config.name!r}: {needs_walks[0]} cannot be combined "
            f"with {', '.join(needs_batches)}; remove one of these settings"
        )
    if needs_walks or needs_batches:
        return not needs_batches
    return config.batch == 1 or entries >= _ENTRIES_PER_TRAJECTORY * config.batch
