"""Search by update equivalence: at a decision, one step of a whole game's algorithm.

Sokota et al. 2024, "The Update-Equivalence Framework for Decision-Time Planning": a
player takes one step of magnetic mirror descent from its blueprint pi, where it is to
act and nowhere else,

    pi'(a) ∝ (pi(a) · exp(eta q(a)) · rho(a)^(alpha eta))^(1 / (1 + alpha eta))

with q(a) its expected return, over what it believes, if it does a and both play the
blueprint from there on; and rho the magnet, uniform here, so that it cancels. Asked at
every decision of the game, such a player is one step of the whole game's mirror
descent, which `search_everywhere` makes with exact q. Utilities are scaled to [-1, 1].
"""

import dataclasses

import numpy as np
import pyspiel

from spiel_cr.common.jax_utils import typed
from spiel_cr.games.histories import TERMINAL
from spiel_cr.games.opening.game_checks import utility_bounds
from spiel_cr.games.sequence_form import layout
from spiel_cr.games.sequence_form.decisions import sum_payoffs
from spiel_cr.games.tree.tree import CompiledGame
from spiel_cr.games.worlds.form import WorldProduct
from spiel_cr.games.worlds.game import WorldGame
from spiel_cr.policies.best_responses import action_values, infoset_values, reach_of
from spiel_cr.policies.conversions import Behaviours


def mirror_step(
    blueprint: np.ndarray,
    values: np.ndarray,
    owner: np.ndarray,
    *,
    eta: float | np.ndarray,
    alpha: float = 0.0,
) -> np.ndarray:
    """One step at many decisions, those of each side by side.

    Args:
      blueprint: float64 [n], probabilities of actions.
      values: float64 [n], their q, in [-1, 1] or at least on that scale.
      owner: integers [n], ascending from 0, whose actions these are.
      eta: the step's length, at least 0; one, or float64 [n].
      alpha: how much the uniform magnet pulls, at least 0.

    Returns:
      float64 [n], probabilities; actions that the blueprint never takes stay so.
    """
    with np.errstate(divide="ignore"):
        score = (np.log(blueprint) + eta * values) / (1 + alpha * eta)
    first = np.flatnonzero(np.diff(owner, prepend=-1))
    played = np.exp(score - np.maximum.reduceat(score, first)[owner])
    return played / np.add.reduceat(played, first)[owner]


def largest_utility(game: pyspiel.Game) -> float:
    """The largest |utility| that a game declares; 1 where that is 0 or infinite."""
    return max(map(abs, utility_bounds(game) or (1.0,))) or 1.0


def exact_values(
    laid: CompiledGame | WorldGame, blueprint: Behaviours, player: int
) -> np.ndarray:
    """q of every action of a player, exactly; see the module.

    Args:
      laid: the whole game.
      blueprint: for each player float64 [S], action probabilities.
      player: whose.

    Returns:
      float64 [S - 1], in [-1, 1]; 0 where chance and the other player never lead to.
    """
    form = laid.form
    reach = reach_of(form, blueprint)[1 - player]
    values, _ = action_values(form, player, reach, blueprint[player])
    # What all histories of an infoset have together: its value if every end pays 1.
    mass = infoset_values(_paying_one(laid, player), player, reach, blueprint[player])[
        :-1
    ]
    mass = mass[form.decisions[player].owner[1:]] * largest_utility(laid.game)
    return np.divide(values[1:], mass, out=np.zeros(len(mass)), where=mass > 0)


def search_everywhere(
    laid: CompiledGame | WorldGame,
    blueprint: Behaviours,
    *,
    eta: float = 1.0,
    alpha: float = 0.0,
) -> Behaviours:
    """What a player with exact q plays that searches at all of its decisions.

    Args:
      laid: the whole game, compiled or in the form of worlds.
      blueprint: for each player float64 [S], action probabilities.
      eta: the step's length.
      alpha: how much the uniform magnet pulls.

    Returns:
      For each player float64 [S], to be judged as any strategy.
    """
    first, second = (
        np.append(
            1.0,
            mirror_step(
                blueprint[player][1:],
                exact_values(laid, blueprint, player),
                laid.form.decisions[player].owner[1:],
                eta=eta,
                alpha=alpha,
            ),
        )
        for player in range(2)
    )
    return first, second


def _paying_one(laid: CompiledGame | WorldGame, player: int) -> layout.SequenceForm:
    """The same game where `player` gets 1 at every end."""
    form = laid.form
    if isinstance(laid, CompiledGame):
        histories = laid.histories
        ends = np.flatnonzero(histories.player == TERMINAL)
        first, second = histories.sequence[:, ends]
        paid = (1 - 2 * player) * histories.chance[ends]
        return layout.build(form.decisions, sum_payoffs(first, second, paid))
    (product,) = form.arrays[player].coupling
    assert isinstance(product, WorldProduct)
    ones = np.ones(product.payoff.shape)
    ones[-1] = 0.0  # padding
    counting = dataclasses.replace(product, payoff=typed(ones))
    arrays = [tree._replace(coupling=(counting,)) for tree in form.arrays]
    return dataclasses.replace(form, arrays=(arrays[0], arrays[1]))


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
