"""Search by update equivalence: at a decision, one step of a whole game's algorithm.

Sokota et al. 2024, "The Update-Equivalence Framework for Decision-Time Planning": a
player takes one step of mirror descent from its blueprint pi, where it is to act and
nowhere else,

    pi'(a) ∝ pi(a) · exp(eta q(a))

with q(a) its expected return, over what it believes, if it does a and both play the
blueprint from there on. The paper's magnet is left out (its alpha is 0), as in all of
our figures. Asked at every decision of the game, such a player is one step of the whole
game's mirror descent. Utilities are scaled to [-1, 1].

Where the opponent's blueprint hardly ever leads, q is worth little: an opponent that
goes there on purpose holds other cards than the belief says. So eta is smaller there
(`damping`), which is not in the paper.
"""

import math

import numpy as np
import pyspiel

from spiel_cr.games.opening.game_checks import utility_bounds


def mirror_step(
    blueprint: np.ndarray,
    values: np.ndarray,
    owner: np.ndarray,
    *,
    eta: float,
) -> np.ndarray:
    """One step at many decisions, those of each side by side.

    Args:
      blueprint: float64 [n], probabilities of actions.
      values: float64 [n], their q, in [-1, 1] or at least on that scale.
      owner: integers [n], ascending from 0, whose actions these are.
      eta: the step's length, at least 0.

    Returns:
      float64 [n], probabilities; actions that the blueprint never takes stay so.
    """
    with np.errstate(divide="ignore"):
        score = np.log(blueprint) + eta * values
    first = np.flatnonzero(np.diff(owner, prepend=-1))
    played = np.exp(score - np.maximum.reduceat(score, first)[owner])
    return played / np.add.reduceat(played, first)[owner]


def largest_utility(game: pyspiel.Game) -> float:
    """The largest |utility| that a game declares; 1 where that is 0 or infinite."""
    return max(map(abs, utility_bounds(game) or (1.0,))) or 1.0


def damping(log_reach: float, log_uniform: float) -> float:
    """Return P / U, at most 1: the share that is kept of a step.

    P is the probability of the player's information if the opponent plays its
    blueprint, U the same for a uniform opponent. Without this damping, a good blueprint
    becomes a bad player: on 5-card II-goofspiel with eta = 1 and exact values, NashConv
    0.0064 becomes 0.37, and 0.0065 with damping. It is not in the paper.

    Args:
      log_reach: Logarithm of P; -inf if the blueprint never leads there.
      log_uniform: Logarithm of U; -inf if no history was found, which counts as rare.
    """
    return math.exp(min(0.0, log_reach - log_uniform)) if log_reach > -math.inf else 0.0


def shrinkage(blueprint: np.ndarray, sums: np.ndarray, count: int) -> float:
    """How much of its length is left of a step whose q was sampled.

    Let A(a) = q(a) - sum of pi q be the advantages, V = sum of pi A^2, and N the same
    of their errors. A step of length c eta gains c eta V in expected return, whatever
    the noise, which is unbiased; but it moves c^2 eta^2 (V + N) / 2 away from the
    blueprint (Kullback-Leibler), which mirror descent prices at 1 / eta. So
    c = V / (V + N) is best. V + N is what is seen of the square; N is estimated by the
    spread over simulations, and larger where these are few (the variance of Student's
    distribution). Pure noise leaves the blueprint, exact values the whole step.

    Args:
      blueprint: float64 [A], pi.
      sums: float64 [2, A], over simulations, of advantages and of their squares.
      count: of simulations.

    Returns:
      c, from 0 to 1; 0 up to three simulations.
    """
    if count <= 3:
        return 0.0
    mean, squares = sums / count
    seen = float(blueprint @ mean**2)
    noise = float(blueprint @ np.maximum(squares - mean**2, 0)) / (count - 3)
    return max(0.0, 1 - noise / seen) if seen else 0.0
