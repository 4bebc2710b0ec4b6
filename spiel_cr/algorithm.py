"""Names and settings of full-width algorithms, in OpenSpiel's parameter syntax."""

import dataclasses
import math
from typing import Any

import numpy as np
import pyspiel

from spiel_cr import regret

__all__ = ["PRESETS", "CFRConfig", "check_dtype", "parse_algorithm"]


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
    rule: regret.Rule
    gamma: float = 0.0
    alternating: bool = True

    def __post_init__(self) -> None:
        if not 0 <= self.gamma < math.inf:
            raise ValueError(
                f"gamma={self.gamma} (averaging exponent) must be finite and >= 0"
            )


def _preset(name: str, gamma: float, **rule: float | bool) -> CFRConfig:
    return CFRConfig(name=name, gamma=gamma, rule=regret.Rule(**rule))  # type: ignore[arg-type]


# Published defaults. OpenSpiel's CFRSolver and CFRPlusSolver are cfr and cfr+.
PRESETS: dict[str, CFRConfig] = {
    preset.name: preset
    for preset in (
        _preset("cfr", 0.0),
        _preset("cfr+", 1.0, beta=-math.inf),
        _preset("lcfr", 1.0, alpha=1.0, beta=1.0),
        _preset("dcfr", 2.0, alpha=1.5, beta=0.0),
        _preset("pcfr+", 2.0, beta=-math.inf, predictive=True),
        _preset("pdcfr+", 5.0, alpha=2.3, beta=-math.inf, predictive=True),
    )
}

_PARAMETERS = ("alpha", "beta", "gamma", "predictive", "exploration", "alternating")


def parse_algorithm(algorithm: str | CFRConfig) -> CFRConfig:
    """Reads a string like "cfr+" or "dcfr(alpha=1.5,beta=0,gamma=2)".

    Args:
      algorithm: a preset's name, with any of the parameters alpha, beta, gamma,
        exploration (numbers; alpha and beta also inf, beta also -inf), predictive and
        alternating (booleans) in brackets; a CFRConfig is returned as it is.

    Raises:
      ValueError: unknown algorithm or parameter, or a value out of range.
    """
    if isinstance(algorithm, CFRConfig):
        return algorithm
    if not isinstance(algorithm, str):
        raise ValueError(
            f"algorithm={algorithm!r} must be a string such as 'cfr+' or a CFRConfig"
        )
    try:
        given = dict(pyspiel.game_parameters_from_string(algorithm))
    except (pyspiel.SpielError, RuntimeError) as error:
        raise ValueError(
            f"algorithm={algorithm!r} cannot be read: {error}; write name or "
            f"name(parameter=value,...)"
        ) from error
    name = given.pop("name", "")
    if name == "lp":
        raise ValueError(
            "algorithm='lp' solves whole games only: use it with solve, and without "
            "parameters"
        )
    if name not in PRESETS:
        raise ValueError(
            f"algorithm={algorithm!r}: there is no algorithm {name!r}; choose one of "
            f"{', '.join(PRESETS)} ; solve also takes lp"
        )
    preset = PRESETS[name]
    unknown = sorted(set(given) - set(_PARAMETERS))
    if unknown:
        raise ValueError(
            f"algorithm={algorithm!r}: unknown parameter {unknown[0]!r}; {name} takes "
            f"{', '.join(_PARAMETERS)}"
        )
    if len(given) != algorithm.count("="):
        raise ValueError(
            f"algorithm={algorithm!r}: every parameter needs a value, as in gamma=2"
        )
    values: dict[str, Any] = {
        key: _value(algorithm, key, value) for key, value in given.items()
    }
    own: dict[str, Any] = {
        key: values.pop(key) for key in ("gamma", "alternating") if key in values
    }
    rule = dataclasses.replace(preset.rule, **values)
    own.update(name=algorithm, rule=rule)
    return dataclasses.replace(preset, **own)


def _value(algorithm: str, key: str, value: object) -> float | bool:
    """Checks and converts one parameter; inf and booleans may arrive as strings."""
    if key in ("predictive", "alternating"):
        if isinstance(value, bool):
            return value
        raise ValueError(
            f"algorithm={algorithm!r}: {key}={value!r} must be true or false"
        )
    try:
        if isinstance(value, bool):
            raise TypeError(value)
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ValueError(
            f"algorithm={algorithm!r}: {key}={value!r} must be a number"
        ) from None


def check_dtype(dtype: np.typing.DTypeLike) -> np.dtype:
    """Returns float32 or float64 or raises ValueError."""
    try:
        found = np.dtype(dtype)
    except TypeError:
        found = None
    if found not in (np.float32, np.float64):
        raise ValueError(f"dtype={found or dtype} must be float32 or float64")
    return found
