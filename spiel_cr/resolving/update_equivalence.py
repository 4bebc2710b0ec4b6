"""Search by update equivalence: one step of a game-solving algorithm at a decision.

Sokota et al. 2024, "The Update-Equivalence Framework for Decision-Time Planning": at
its current decision only, a player takes one step of mirror descent from its blueprint
pi,

    pi'(a) ∝ pi(a) · exp(eta q(a)),

with q(a) the expected return under the player's belief if it plays a and both players
follow the blueprint afterwards. The paper's magnet is left out (its alpha is 0), also
in all measurements of this project. If such a player were queried at every decision, it
would play the result of one mirror descent step in the complete game. Utilities are
scaled to [-1, 1].

At decisions that the opponent's blueprint rarely reaches, q is unreliable: an opponent
that goes there on purpose has a different range than the belief. Therefore eta is
smaller there (`damping`), which is not in the paper.
"""

import math

import numpy as np
import pyspiel

from spiel_cr.games.opening.game_checks import utility_bounds


def mirror_step(
    blueprint: np.ndarray, values: np.ndarray, owner: np.ndarray, *, eta: float
) -> np.ndarray:
    """Take one step at many decisions.

    Args:
      blueprint: Probabilities of actions, float64 [n].
      values: q of each action, in [-1, 1] or at least on that scale, float64 [n].
      owner: Decision of each action, ascending from 0, integers [n].
      eta: Length of the step, at least 0.

    Returns:
      Probabilities, float64 [n]; actions with blueprint probability 0 keep it.
    """
    with np.errstate(divide="ignore"):
        score = np.log(blueprint) + eta * values
    first = np.flatnonzero(np.diff(owner, prepend=-1))
    played = np.exp(score - np.maximum.reduceat(score, first)[owner])
    return played / np.add.reduceat(played, first)[owner]


def largest_utility(game: pyspiel.Game) -> float:
    """Return the largest |utility| that a game declares; 1 if it is 0 or infinite."""
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
    """Return the share of its length that a step with a sampled q keeps.

    Let A(a) = q(a) - sum of pi q be the advantages, V = sum of pi A^2, and N the same
    sum for the errors of the advantages. A step of length c eta gains c eta V in
    expected return, whatever the noise, which is unbiased; but its distance from the
    blueprint (Kullback-Leibler) is c^2 eta^2 (V + N) / 2, with weight 1 / eta in mirror
    descent. So c = V / (V + N) is the best length. V + N is estimated by the square of
    the sampled advantages, and N by their variance over simulations, which is increased
    if these are few (the variance of Student's distribution). With pure noise the
    result is the blueprint, and with exact values the complete step.

    Args:
      blueprint: pi, float64 [A].
      sums: Sums over simulations of advantages and of their squares, float64 [2, A].
      count: Number of simulations.

    Returns:
      c, from 0 to 1; 0 for up to three simulations.
    """
    if count <= 3:
        return 0.0
    mean, squares = sums / count
    seen = float(blueprint @ mean**2)
    noise = float(blueprint @ np.maximum(squares - mean**2, 0)) / (count - 3)
    return max(0.0, 1 - noise / seen) if seen else 0.0
