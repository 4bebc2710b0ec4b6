"""Search for the numbers of a regret rule over several games, and tests on others."""

import copy
import functools
import inspect
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from spiel_cr.common.jax_utils import precision
from spiel_cr.common.parameters import read_number
from spiel_cr.solvers import functional
from spiel_cr.solvers.cfr import cfr
from spiel_cr.solvers.cfr.cfr_config import CFRConfig

# Number of settings that are iterated together; more of them do not fit in the cache.
_BATCH = 16
# Smaller values of NashConv count as this one; they are rounding errors.
LEAST = 1e-12

Ranges = Mapping[str, tuple[float, float]]


class Fold(NamedTuple):
    """Games that were held out, and the setting that was chosen without them.

    Attributes:
      held_out: Indices of the games.
      chosen: Index of the setting with the least geometric mean on the other games.
      ranks: Rank of the chosen setting among all settings on each game held out, from
        1; the number of settings with a lower NashConv, plus 1.
    """

    held_out: list[int]
    chosen: int
    ranks: list[int]


def read_ranges(text: str, config: CFRConfig) -> Ranges:
    """Read the ranges of numbers, such as "alpha=0..5;gamma=0..10".

    Args:
      text: Ranges, separated by semicolons.
      config: The algorithm, whose default numbers must be finite.

    Raises:
      ValueError: If the text or a range is invalid, or the algorithm has no such
        number.
    """
    defaults, ranges = _numbers(config), {}
    finite = [name for name in defaults if math.isfinite(defaults[name])]
    for part in text.split(";"):
        name, _, both = part.partition("=")
        low, dots, high = both.partition("..")
        name = name.strip()
        if name not in finite:
            raise ValueError(
                f"numbers={text!r}: {config.name} has no finite number {name!r}; "
                f"choose among {', '.join(finite) or 'those of another algorithm'}"
            )
        try:
            least, most = read_number(low), read_number(high)
        except ValueError:
            dots = ""
        if not dots or name in ranges or not -math.inf < least < most < math.inf:
            raise ValueError(
                f"numbers={text!r}: {part!r} is not a range; write each name once, as "
                f"in alpha=0..5"
            )
        ranges[name] = least, most
    return ranges


def _numbers(config: CFRConfig) -> dict[str, float]:
    """Return the numbers of an algorithm by name: settings, or a function's keywords.

    The keyword-only parameters of a user's rule with a number as default are its
    numbers.
    """
    rule, numbers = config.rule, {"gamma": config.gamma}
    averages_itself = rule.weighs_infosets or config.weights is not None
    if averages_itself:
        numbers = {}
    if rule.custom is None:
        names = ("alpha", "beta", "exploration", *("prediction",) * rule.predictive)
        return {**{name: getattr(rule, name) for name in names}, **numbers}
    for function in (rule.custom.update, rule.custom.averaging):
        for parameter in _keywords(function):
            if parameter.name == "gamma" and not averages_itself:
                raise ValueError(
                    f"algorithm={config.name!r}: the keyword gamma of the rule has the "
                    f"name of the averaging exponent; rename it"
                )
            numbers[parameter.name] = parameter.default
    return numbers


def _keywords(function: Any) -> list[inspect.Parameter]:
    """Return the keyword-only parameters of a function whose defaults are numbers."""
    parameters = inspect.signature(function).parameters.values() if function else ()
    return [
        parameter
        for parameter in parameters
        if parameter.kind is parameter.KEYWORD_ONLY
        and isinstance(parameter.default, int | float)
        and not isinstance(parameter.default, bool)
    ]


def with_numbers(config: CFRConfig, numbers: Mapping[str, Any]) -> CFRConfig:
    """Return an algorithm with other numbers, which may be traced by JAX.

    Args:
      config: The algorithm.
      numbers: Numbers by name, as in `read_ranges`.
    """
    # Traced numbers cannot pass the checks of the classes.
    config, rule = copy.copy(config), copy.copy(config.rule)
    for name in numbers.keys() & {"gamma"}:
        object.__setattr__(config, name, numbers[name])
    if rule.custom is None:
        for name in numbers.keys() - {"gamma"}:
            object.__setattr__(rule, name, numbers[name])
    else:
        functions: dict[str, Any] = {}
        for field in ("update", "averaging"):
            if (function := getattr(rule.custom, field)) is not None:
                names = [parameter.name for parameter in _keywords(function)]
                fixed = {name: numbers[name] for name in names if name in numbers}
                functions[field] = functools.partial(function, **fixed)
        object.__setattr__(rule, "custom", rule.custom._replace(**functions))
    object.__setattr__(config, "rule", rule)
    return config


def draw_settings(
    config: CFRConfig, ranges: Ranges, count: int, seed: int
) -> np.ndarray:
    """Return settings, float64 [count, numbers]; the first is the default.

    Args:
      config: The algorithm.
      ranges: Least and largest value of each number; others are drawn uniformly.
      count: Number of settings.
      seed: Seed of the random draws.
    """
    low, high = np.array([*ranges.values()]).T
    drawn = np.random.default_rng(seed).uniform(low, high, (count, len(ranges)))
    defaults = _numbers(config)
    drawn[0] = [defaults[name] for name in ranges]
    return drawn


def nash_convs(
    game: Any,
    config: CFRConfig,
    names: Sequence[str],
    settings: np.ndarray,
    iterations: int,
) -> np.ndarray:
    """Return the NashConv of the average strategy with each setting, float64 [K].

    Args:
      game: OpenSpiel game string, game, or game tree.
      config: The algorithm.
      names: Names of the numbers.
      settings: Values of the numbers, float64 [K, numbers].
      iterations: Number of iterations.
    """

    def one(game: functional.GameArrays, values: jax.Array) -> jax.Array:
        numbered = with_numbers(config, dict(zip(names, values, strict=True)))
        trees, custom = game.trees(), numbered.rule.custom
        state = jax.lax.fori_loop(
            *(0, iterations, lambda _, now: cfr.step(trees, now, config=numbered)),
            cfr.init(trees, custom=custom),
        )
        return functional.nash_conv(game, functional.average(state, game))

    @jax.jit
    def all_of(game: functional.GameArrays, settings: jax.Array) -> jax.Array:
        function = functools.partial(one, game)
        return jax.lax.map(function, settings, batch_size=_BATCH)

    with precision(np.dtype(np.float64)):
        values = np.asarray(all_of(functional.arrays(game), settings))
    # Settings that diverge must not be chosen.
    return np.nan_to_num(values, nan=np.finfo(values.dtype).max)


def geometric_mean(nash_convs: np.ndarray) -> np.ndarray:
    """Return geometric means over the last axis; rounding errors count as 1e-12."""
    return np.exp(np.log(np.maximum(nash_convs, LEAST)).mean(axis=-1))


def cross_validate(nash_convs: np.ndarray, folds: int) -> list[Fold]:
    """Choose a setting without each of several folds of games, and rank it on them.

    Args:
      nash_convs: NashConv of K settings on G games, float64 [K, G].
      folds: Number of folds, 0 or at least 2; game g belongs to fold g modulo this
        number.
    """
    fold_of = np.arange(nash_convs.shape[1]) % max(folds, 1)
    results = []
    for fold in range(folds):
        chosen = int(geometric_mean(nash_convs[:, fold_of != fold]).argmin())
        held_out = np.flatnonzero(fold_of == fold)
        floored = np.maximum(nash_convs[:, held_out], LEAST)
        ranks = 1 + (floored < floored[chosen]).sum(axis=0)
        results.append(Fold(held_out.tolist(), chosen, ranks.tolist()))
    return results
