"""The algorithms of `solve` that iterate on a whole game, by name."""

from spiel_cr.cfr.config import CFRConfig, MCCFRConfig, parse_any
from spiel_cr.first_order.config import (
    FirstOrderConfig,
    is_first_order,
    parse_first_order,
)


def parse_whole(
    algorithm: str | CFRConfig | MCCFRConfig | FirstOrderConfig, name: str = "algorithm"
) -> CFRConfig | MCCFRConfig | FirstOrderConfig:
    """Reads the CFR family, sampled or not, and first-order methods.

    Args:
      algorithm: as for `cfr.config.parse_any`, or for
        `first_order.config.parse_first_order`.
      name: of the argument, for errors.

    Raises:
      ValueError: unknown algorithm or parameter, or a value out of range.
    """
    if isinstance(algorithm, FirstOrderConfig):
        return algorithm
    if isinstance(algorithm, str) and is_first_order(algorithm):
        return parse_first_order(algorithm, name)
    return parse_any(algorithm, name)
