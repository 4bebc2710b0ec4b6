"""Search by update equivalence with exact values, at all decisions of a game."""

import dataclasses
import functools

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
    """What actions are worth and how likely their infosets are, exactly.

    Args:
      laid: the whole game.
      blueprint: for each player float64 [S], action probabilities.
      player: whose.

    Returns:
      float64 [S - 1] each, by action: the player's expected utility, over all histories
      of the infoset together, if it does that and both play the blueprint from there
      on; and of its infoset P, the probability of all that the player was told if the
      opponent plays its blueprint, and U, the same if it plays uniformly. What the
      player expects where it is told so, q, is the first divided by the second.
    """
    form = laid.sequence_form
    opponents = form.decisions[1 - player]
    reach = reach_of(form, blueprint)[1 - player]
    even = reach_from_behaviour(opponents, uniform_behaviour(opponents))
    values, _ = action_values(form, player, reach, blueprint[player])
    # What all histories of an infoset have together: its value if every end pays 1.
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
    """What a step multiplies by eta, exactly; see `resolving.update_equivalence`.

    Args: as of `expected_returns`.

    Returns:
      float64 [S - 1], q of every action, in [-1, 1], times the trust at its infoset; 0
      where chance and the other player never lead to.
    """
    values, mass, uniform = expected_returns(laid, blueprint, player)
    # q is the value divided by `mass`, and the trust is `mass` divided by `uniform`.
    most = np.maximum(mass, uniform)
    far = values / largest_utility(laid.game)
    return np.divide(far, most, out=np.zeros(len(most)), where=most > 0)


def search_everywhere(
    laid: GameTree | PhantomGame,
    blueprint: Behaviours,
    *,
    eta: float = 1.0,
) -> Behaviours:
    """What a player with exact q plays that searches at all of its decisions.

    Args:
      laid: the whole game, compiled or in the form of worlds.
      blueprint: for each player float64 [S], action probabilities.
      eta: the step's length.

    Returns:
      For each player float64 [S], to be judged as any strategy.
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
    """The same game where `player` gets 1 at every end."""
    form = laid.sequence_form
    if isinstance(laid, GameTree):
        histories = laid.histories
        ends = np.flatnonzero(histories.player == TERMINAL)
        first, second = histories.sequence[:, ends]
        paid = (1 - 2 * player) * histories.chance[ends]
        return layout.build(form.decisions, sum_payoffs(first, second, paid))
    (product,) = form.arrays[player].coupling
    assert isinstance(product, PhantomProduct)
    ones = np.ones(product.payoff.shape)
    ones[-1] = 0.0  # padding
    counting = dataclasses.replace(product, payoff=typed(ones))
    arrays = [tree._replace(coupling=(counting,)) for tree in form.arrays]
    constant = functools.partial(layout.constant, (arrays[0], arrays[1]))
    return dataclasses.replace(form, list_arrays=constant)
