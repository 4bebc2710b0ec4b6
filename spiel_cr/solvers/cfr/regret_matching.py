"""Regret matching rules: pure updates of one [A, n] block of infosets.

The whole CFR family is one rule with a few settings (`Rule`): what happens to negative
regrets, how old regrets fade, and whether the next strategy anticipates that the last
regret repeats.
"""

import dataclasses
import hashlib
import math
import types
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from spiel_cr.common.checks import check_number
from spiel_cr.games.sequence_form import treeplex


class CustomRule(NamedTuple):
    """A user's rule, in the place of those that settings make.

    It is called once a block of infosets and iteration, under jit, as
    `update(state, instantaneous, uniform, iteration)`:

      state: what it returned the last time, an array or several in a tuple; at first
        what `start` makes of `uniform`.
      instantaneous: float [A, n], action value minus infoset value, counterfactual, in
        units of 2^`Solver.exponent` (payoffs are below about 1); 0 at padding, and
        where it is smaller than rounding errors.
      uniform: float [A, n], the uniform strategy; 0 marks padding.
      iteration: float scalar, from 1.

    It returns the new state and weights of actions, float [A, n]: the next strategy is
    in proportion to the positive ones of legal actions, uniform where there are none.

    Attributes:
      update: the function.
      start: from `uniform` to the first state; by default zeros [A, n].
    """

    update: Callable[[Any, jax.Array, jax.Array, jax.Array], tuple[Any, jax.Array]]
    start: Callable[[jax.Array], Any] | None = None

    def __repr__(self) -> str:
        """Name and a digest of what the functions do, but for values from outside."""
        codes = [_code_text(getattr(part, "__code__", None)) for part in self]
        digest = hashlib.sha256(repr(codes).encode()).hexdigest()[:16]
        return f"{self.name}:{digest}"

    @property
    def name(self) -> str:
        """Of the function, for people."""
        return getattr(self.update, "__name__", type(self.update).__name__)

    def first(self, uniform: Any) -> Any:
        """The first state of a block."""
        return uniform * 0 if self.start is None else self.start(uniform)

    def step(
        self,
        state: Any,
        instantaneous: jax.Array,
        uniform: jax.Array,
        tolerance: jax.Array,
        iteration: jax.Array,
    ) -> tuple[Any, jax.Array]:
        """The new state and the next strategy; arguments as of `update`."""
        # Padding has an infinite tolerance.
        rounded = jnp.abs(instantaneous) <= tolerance
        gains = jnp.where(rounded, 0, instantaneous)
        state, weights = self.update(state, gains, uniform, iteration)
        legal = jnp.where(uniform > 0, weights, 0)
        return state, match(_PLAIN, legal, uniform)


def _code_text(code: Any) -> Any:
    """What a function does, as text that is the same in all processes."""
    if not isinstance(code, types.CodeType):
        return repr(code)
    return code.co_code, code.co_names, [_code_text(value) for value in code.co_consts]


@dataclasses.dataclass(frozen=True)
class Rule:
    """Settings of regret matching.

    Attributes:
      alpha: positive regrets are multiplied by t^alpha / (t^alpha + 1) after iteration
        t (discounted CFR, Brown & Sandholm 2019, "Solving imperfect-information games
        via discounted regret minimization"); inf: no discount.
      beta: the same for negative regrets; -inf: they are set to zero (regret
        matching+, Tammelin 2014, "Solving large imperfect information games using
        CFR+"), inf: they are kept.
      predictive: choose the next strategy as if the last instantaneous regret came once
        more (Farina et al. 2021, "Faster game solving via predictive Blackwell
        approachability", PCFR+; with alpha finite PDCFR+, Xu et al. 2024).
      prediction: where it is predictive, how much of that regret is expected to come
        once more; below 1 bad predictions do less harm (Meng et al. 2025, "Faster game
        solving via asymmetry of step sizes", SAPCFR+).
      exploration: mix the matched strategy with this much of the uniform one
        (explorative regret matching).
      ramp: in the first iterations, as many as this, alpha comes to its value from 1,
        and beta from -1, in equal steps (hyperparameter schedules, Zhang, McAleer &
        Sandholm 2024, there over all of a run); 0: they have it from the start.
      custom: a user's rule, which takes the place of all these.
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
            raise ValueError(f"ramp={self.ramp}: use finite alpha and beta, or ramp=0")
        check_number(self.prediction, "prediction", "(0, 1]")
        check_number(self.exploration, "exploration", "[0, 1]")

    @property
    def touches_all(self) -> tuple[str, ...]:
        """Settings that change what was not visited, as "alpha=1.5"; mostly none."""
        changed = {
            "alpha": self.alpha != math.inf,
            "beta": not math.isinf(self.beta),
            "predictive": self.predictive,
        }
        return tuple(
            f"{name}={str(getattr(self, name)).lower()}"
            for name, holds in changed.items()
            if holds
        )


_PLAIN = Rule()


def match(rule: Rule, regrets: jax.Array, uniform: jax.Array) -> jax.Array:
    """The strategy in proportion to positive regrets; uniform where there are none.

    Args:
      rule: settings.
      regrets: float [A, n], 0 at padding.
      uniform: float [A, n], the uniform strategy, 0 at padding.

    Returns:
      float [A, n], a distribution in every column (Hart & Mas-Colell 2000).
    """
    # XLA makes slower code of jnp.maximum on CPUs, by up to a half.
    positive = jnp.where(regrets > 0, regrets, 0)
    total = treeplex.sum_rows(positive)[None]
    # The inner where keeps 0/0 out of the branch that is not taken.
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
    """`update` for several blocks: new regrets and next strategies.

    Where there is a single action nothing changes, and the arrays themselves are passed
    on: another array with the same numbers would be copied in every iteration, which
    took a third of the time on liar's dice.
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
    """Adds one iteration's regrets and matches them.

    Args:
      rule: settings.
      regrets: float [A, n], cumulative, counterfactual, in any unit; of a user's rule
        its state.
      instantaneous: float [A, n], action value minus infoset value; at padding
        anything.
      uniform: float [A, n], the uniform strategy, 0 at padding.
      tolerance: float [A, n], regrets up to this size are taken for zero: what rounding
        leaves of sums that cancel would otherwise decide ties, and turn a uniform
        strategy into a pure one. For one iteration; grows with the square root of t.
        Infinite at padding.
      iteration: float scalar, the iteration that gave `instantaneous`, from 1.

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
        alpha: float | jax.Array = rule.alpha
        beta: float | jax.Array = rule.beta
        if rule.ramp:
            share = jnp.minimum(iteration / rule.ramp, 1)
            alpha, beta = 1 + (alpha - 1) * share, -1 + (beta + 1) * share
        up, down = discount(alpha, iteration), discount(beta, iteration)
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
      iteration: float scalar, a NumPy number or a JAX array, from 1.

    Returns:
      float scalar of the type of `iteration`, in [0, 1].
    """
    if not isinstance(exponent, jax.Array) and math.isinf(exponent):
        return iteration * 0 + (exponent > 0)
    # The reciprocal form: t^exponent could overflow and make inf / inf.
    return 1 / (1 + iteration**-exponent)
