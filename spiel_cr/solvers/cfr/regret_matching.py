"""Regret matching rules: pure updates of one [A, n] block of infosets.

One rule with a few settings (`Rule`) covers all CFR variants. The settings determine
the treatment of negative regrets, the discount of old regrets, and whether the next
strategy anticipates that the last regret repeats.
"""

import dataclasses
import hashlib
import math
import types
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from spiel_cr.common import plugins
from spiel_cr.common.checks import check_number
from spiel_cr.games.sequence_form import treeplex


class CustomRule(NamedTuple):
    """A custom regret rule, which replaces the built-in ones.

    The rule is called once per block of infosets and iteration, under jit, as
    `update(state, instantaneous, uniform, iteration)`:

      state: State that the last call returned, an array or a tuple of arrays; at first
        the result of `start(uniform)`.
      instantaneous: Counterfactual value of each action minus that of the infoset,
        float [A, n], in units of 2^`Solver.exponent` (payoffs are below about 1); 0 at
        padding, and where it is smaller than rounding errors.
      uniform: Uniform strategy, float [A, n]; 0 at padding.
      iteration: Number of the iteration, from 1, float scalar.

    It returns the new state and weights of actions, float [A, n]. The next strategy is
    proportional to the positive weights of legal actions, or uniform if no weight is
    positive.

    Attributes:
      update: The function.
      start: Function from `uniform` to the first state; by default zeros [A, n].
    """

    update: Callable[[Any, jax.Array, jax.Array, jax.Array], tuple[Any, jax.Array]]
    start: Callable[[jax.Array], Any] | None = None

    def __repr__(self) -> str:
        """Return the name and a digest of the code, without captured values."""
        return _fingerprint(self)

    @property
    def name(self) -> str:
        """Name of the function, for messages."""
        return _function_name(self.update)

    def first(self, uniform: Any) -> Any:
        """Return the first state of a block."""
        return uniform * 0 if self.start is None else self.start(uniform)

    def step(
        self,
        state: Any,
        instantaneous: jax.Array,
        uniform: jax.Array,
        tolerance: jax.Array,
        iteration: jax.Array,
    ) -> tuple[Any, jax.Array]:
        """Return the new state and the next strategy.

        Args:
          state: State of the rule.
          instantaneous: Instantaneous regrets, float [A, n].
          uniform: Uniform strategy, float [A, n].
          tolerance: Size up to which regrets are treated as zero, float [A, n].
          iteration: Number of the iteration, from 1, float scalar.
        """
        # Padding has an infinite tolerance.
        rounded = jnp.abs(instantaneous) <= tolerance
        gains = jnp.where(rounded, 0, instantaneous)
        state, weights = self.update(state, gains, uniform, iteration)
        legal = jnp.where(uniform > 0, weights, 0)
        return state, match(_PLAIN, legal, uniform)


class UserFunction(NamedTuple):
    """A user's function in the settings of an algorithm, such as averaging weights.

    Attributes:
      call: The function, which JAX traces.
    """

    call: Callable[..., Any]

    def __repr__(self) -> str:
        """Return the name and a digest of the code, without captured values."""
        return _fingerprint(self)

    @classmethod
    def read(cls, setting: Any, name: str) -> "UserFunction | None":
        """Read a setting: a function, its "module:name" in an imported module, or None.

        Raises:
          ValueError: If it is something else.
        """
        if setting is None or isinstance(setting, UserFunction):
            return setting
        label = f"{name}={setting!r}"
        if isinstance(setting, str):
            setting = plugins.named_object(setting, label)
        if not callable(setting):
            raise ValueError(f"{label}: not a function; use one that JAX can trace")
        return cls(setting)


def _fingerprint(functions: Sequence[Any]) -> str:
    """Return the first function's name and a digest of the code of all functions."""
    codes = [_code_text(getattr(part, "__code__", None)) for part in functions]
    digest = hashlib.sha256(repr(codes).encode()).hexdigest()[:16]
    return f"{_function_name(functions[0])}:{digest}"


def _function_name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _code_text(code: Any) -> Any:
    """Return a description of a function's code that is the same in all processes."""
    if not isinstance(code, types.CodeType):
        return repr(code)
    return code.co_code, code.co_names, [_code_text(value) for value in code.co_consts]


@dataclasses.dataclass(frozen=True)
class Rule:
    """Settings of regret matching.

    Attributes:
      alpha: Exponent of the discount of positive regrets, which are multiplied by
        t^alpha / (t^alpha + 1) after iteration t (discounted CFR, Brown & Sandholm
        2019, "Solving imperfect-information games via discounted regret minimization");
        inf: no discount.
      beta: Exponent of the discount of negative regrets; -inf: they are set to zero
        (regret matching+, Tammelin 2014, "Solving large imperfect information games
        using CFR+"), inf: they are kept.
      predictive: Whether the next strategy is chosen as if the last instantaneous
        regret occurred again (Farina et al. 2021, "Faster game solving via predictive
        Blackwell approachability", PCFR+; with finite alpha PDCFR+, Xu et al. 2024).
      prediction: Share of the last regret that a predictive rule expects again; below
        1, bad predictions do less harm (Meng et al. 2025, "Faster game solving via
        asymmetry of step sizes", SAPCFR+).
      exploration: Weight of the uniform strategy in a mixture with the matched strategy
        (explorative regret matching).
      ramp: Number of first iterations in which alpha moves from 1 to its value, and
        beta from -1, in equal steps (hyperparameter schedules, Zhang, McAleer &
        Sandholm 2024, where the schedule covers the complete run); 0: constant from the
        start.
      custom: Custom rule, which replaces all other settings.
    """

    alpha: float = math.inf
    beta: float = math.inf
    predictive: bool = False
    prediction: float = 1.0
    exploration: float = 0.0
    ramp: float = 0.0
    custom: CustomRule | None = dataclasses.field(
        default=None, metadata={"fixed": True}
    )

    def __post_init__(self) -> None:
        if math.isnan(self.alpha) or self.alpha == -math.inf:
            raise ValueError(
                f"alpha={self.alpha}: use a number, or inf for no discount"
            )
        if math.isnan(self.beta):
            raise ValueError(
                f"beta={self.beta}: use a number, inf to keep negative regrets, or "
                f"-inf to set them to zero"
            )
        check_number(self.ramp, "ramp", "[0, inf)")
        if self.ramp and (math.isinf(self.alpha) or math.isinf(self.beta)):
            raise ValueError(
                f"ramp={self.ramp}: a ramp requires finite alpha and beta; make both "
                f"finite, or set ramp=0"
            )
        check_number(self.prediction, "prediction", "(0, 1]")
        check_number(self.exploration, "exploration", "[0, 1]")

    def discounts(self, iteration: Any) -> tuple[Any, Any]:
        """Return the discounts of positive and negative regrets after an iteration.

        Args:
          iteration: Number of the iteration, from 1, as a float scalar of NumPy or JAX.
        """
        alpha: Any = self.alpha
        beta: Any = self.beta
        if self.ramp:
            share = (iteration / self.ramp).clip(max=1)
            alpha, beta = 1 + (alpha - 1) * share, -1 + (beta + 1) * share
        return discount(alpha, iteration), discount(beta, iteration)

    @property
    def touches_all(self) -> tuple[str, ...]:
        """Settings that also change unvisited infosets, such as "alpha=1.5"."""
        changed = {
            "alpha": self.alpha != math.inf,
            "beta": not math.isinf(self.beta),
            "predictive": self.predictive,
            "custom": self.custom is not None,
        }
        return tuple(
            f"{name}={str(getattr(self, name)).lower()}"
            for name, holds in changed.items()
            if holds
        )


_PLAIN = Rule()


def match(rule: Rule, regrets: jax.Array, uniform: jax.Array) -> jax.Array:
    """Return the strategy proportional to positive regrets, or uniform without any.

    Args:
      rule: Settings.
      regrets: Cumulative regrets, float [A, n], 0 at padding.
      uniform: Uniform strategy, float [A, n], 0 at padding.

    Returns:
      A distribution in each column (Hart & Mas-Colell 2000), float [A, n].
    """
    # On CPUs, the code that XLA compiles for jnp.maximum is slower by up to a half.
    positive = jnp.where(regrets > 0, regrets, 0)
    total = treeplex.sum_rows(positive)[None]
    # The inner `where` avoids 0/0 in the branch that is not selected.
    matched = positive / jnp.where(total > 0, total, 1)
    strategy = jnp.where(total > 0, matched, uniform)
    if rule.exploration:
        strategy = (1 - rule.exploration) * strategy + rule.exploration * uniform
    return strategy


def update_blocks(
    rule: Rule,
    regrets: Sequence[jax.Array],
    strategy: Sequence[jax.Array],
    instantaneous: Sequence[jax.Array],
    uniform: Sequence[jax.Array],
    tolerance: Sequence[jax.Array],
    iteration: jax.Array,
) -> tuple[tuple[jax.Array, ...], tuple[jax.Array, ...]]:
    """Apply `update` to several blocks; return the new regrets and next strategies.

    Blocks with a single action do not change, so the same array objects are returned.
    If equal new arrays were returned, XLA would copy them in each iteration, which took
    a third of the time on liar's dice.
    """
    columns = zip(regrets, strategy, instantaneous, uniform, tolerance, strict=True)
    blocks = [
        (old, kept)
        if len(kept) == 1
        else update(rule, old, new, even, small, iteration)
        for old, kept, new, even, small in columns
    ]
    return tuple(block[0] for block in blocks), tuple(block[1] for block in blocks)


def update(
    rule: Rule,
    regrets: jax.Array,
    instantaneous: jax.Array,
    uniform: jax.Array,
    tolerance: jax.Array,
    iteration: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """Add the regrets of one iteration and match the sums.

    Args:
      rule: Settings.
      regrets: Cumulative counterfactual regrets in any unit, float [A, n]; for a custom
        rule, its state.
      instantaneous: Action value minus infoset value, float [A, n]; arbitrary at
        padding.
      uniform: Uniform strategy, float [A, n], 0 at padding.
      tolerance: Size up to which regrets are treated as zero in the first iteration,
        float [A, n]; it grows with the square root of the iteration. Without it,
        rounding errors of sums that cancel would decide ties, and turn a uniform
        strategy into a pure one. Infinite at padding.
      iteration: Number of the iteration that gave `instantaneous`, from 1, float
        scalar.

    Returns:
      The new cumulative regrets and the next strategy, both float [A, n].
    """
    if rule.custom is not None:
        return rule.custom.step(regrets, instantaneous, uniform, tolerance, iteration)
    # Sums of t terms carry about sqrt(t) times the rounding error of one.
    tolerance = tolerance * jnp.sqrt(iteration)
    regrets = regrets + instantaneous
    if rule.beta == -math.inf:
        regrets = jnp.where(regrets > tolerance, regrets, 0)
    else:
        regrets = jnp.where(jnp.abs(regrets) > tolerance, regrets, 0)
    if rule.alpha != math.inf or rule.beta not in (math.inf, -math.inf):
        up, down = rule.discounts(iteration)
        regrets = regrets * jnp.where(regrets > 0, up, down)
    predicted = regrets
    if rule.predictive:
        predicted = regrets + rule.prediction * instantaneous
        predicted = jnp.where(predicted > tolerance, predicted, 0)
    return regrets, match(rule, predicted, uniform)


def discount(exponent: float | jax.Array, iteration: Any) -> Any:
    """Return t^exponent / (t^exponent + 1), the discount of regrets after iteration t.

    An exponent of inf gives exactly 1 and one of -inf exactly 0, also after the first
    iteration, where the formula has no limit: 1^inf / (1^inf + 1) would be 1/2.

    Args:
      exponent: A number, inf or -inf; a traced array must be finite.
      iteration: Number of the iteration, from 1, as a float scalar of NumPy or JAX.

    Returns:
      float scalar of the type of `iteration`, in [0, 1].
    """
    if not isinstance(exponent, jax.Array) and math.isinf(exponent):
        return iteration * 0 + (exponent > 0)
    # The reciprocal form avoids inf / inf if t^exponent overflows.
    return 1 / (1 + iteration**-exponent)
