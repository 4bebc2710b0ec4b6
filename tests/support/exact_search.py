"""Search by update equivalence with exact values, at all decisions of a game."""

import dataclasses

import numpy as np

from spiel_cr.common.jax_utils import typed
from spiel_cr.games.histories import TERMINAL
from spiel_cr.games.phantom.form import PhantomProduct
from spiel_cr.games.phantom.game import PhantomGame
from spiel_cr.games.sequence_form import layout
from spiel_cr.games.sequence_form.decisions import sum_payoffs
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.policies.best_responses import action_values, infoset_values, reach_of
from spiel_cr.policies.conversions import (
    Behaviours,
    reach_from_behaviour,
    uniform_behaviour,
)
from spiel_cr.resolving.update_equivalence import largest_utility, mirror_step


def expected_returns(
    laid: GameTree | PhantomGame, blueprint: Behaviours, player: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compute exact values of actions and the reach of their infosets.

    Args:
      laid: The whole game.
      blueprint: For each player float64 [S], action probabilities.
      player: The player whose values are computed.

    Returns:
      float64 [S - 1] each, by action: the player's expected utility, summed over all
      histories of the infoset, if it takes the action and both players then play the
      blueprint; the probability P of the infoset's observations if the opponent plays
      its blueprint; and U, the same if the opponent plays uniformly. The conditional
      expectation q is the first array divided by the second.
    """
    form = laid.sequence_form
    opponents = form.decisions[1 - player]
    reach = reach_of(form, blueprint)[1 - player]
    even = reach_from_behaviour(opponents, uniform_behaviour(opponents))
    values, _ = action_values(form, player, reach, blueprint[player])
    # The reach of an infoset is its value if all terminal utilities are 1.
    counting, own = _paying_one(laid, player), blueprint[player]
    owner = form.decisions[player].owner[1:]
    mass, uniform = (
        infoset_values(counting, player, weight, own)[:-1][owner]
        for weight in (reach, even)
    )
    return values[1:], mass, uniform


def trusted_values(
    laid: GameTree | PhantomGame, blueprint: Behaviours, player: int
) -> np.ndarray:
    """Compute the exact values that a step multiplies by eta.

    Args: as of `expected_returns`.

    Returns:
      float64 [S - 1], q of every action, in [-1, 1], times the damping at its infoset;
      0 at infosets that chance and the opponent never reach.
    """
    values, mass, uniform = expected_returns(laid, blueprint, player)
    # q is the value divided by `mass`; the damping is `mass` divided by `uniform`.
    most = np.maximum(mass, uniform)
    far = values / largest_utility(laid.game)
    return np.divide(far, most, out=np.zeros(len(most)), where=most > 0)


def search_everywhere(
    laid: GameTree | PhantomGame,
    blueprint: Behaviours,
    *,
    eta: float = 1.0,
) -> Behaviours:
    """Return the strategy of a search with exact values at all decisions.

    Args:
      laid: The whole game, as a game tree or in phantom form.
      blueprint: For each player float64 [S], action probabilities.
      eta: Step size.

    Returns:
      For each player float64 [S], the searched strategy.
    """
    first, second = (
        np.append(
            1.0,
            mirror_step(
                blueprint[player][1:],
                trusted_values(laid, blueprint, player),
                laid.sequence_form.decisions[player].owner[1:],
                eta=eta,
            ),
        )
        for player in range(2)
    )
    return first, second


def _paying_one(laid: GameTree | PhantomGame, player: int) -> layout.SequenceForm:
    """Return the game in which `player` has utility 1 at every terminal node."""
    form = laid.sequence_form
    if isinstance(laid, GameTree):
        histories = laid.histories
        ends = np.flatnonzero(histories.player == TERMINAL)
        first, second = histories.sequence[:, ends]
        paid = (1 - 2 * player) * histories.chance[ends]
        return layout.build(form.decisions, sum_payoffs(first, second, paid))
    (product,) = form.arrays[player].coupling
    assert isinstance(product, PhantomProduct)
    ones = np.ones(product.payoffs.shape)
    ones[-1] = 0.0  # padding
    counting = dataclasses.replace(product, payoffs=typed(ones))
    arrays = [tree._replace(coupling=(counting,)) for tree in form.arrays]
    constant = layout.constant((arrays[0], arrays[1]))
    return dataclasses.replace(form, list_arrays=constant)
