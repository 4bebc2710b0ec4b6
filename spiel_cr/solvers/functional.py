"""Pure JAX functions on the arrays of a game: payoffs, CFR, values and NashConv.

All functions can be used under `jit`, `vmap` and `grad`. `GameArrays` holds a game; its
`payoffs` are one vector, which may be mapped over or differentiated. A strategy is a
pair of arrays by *position*, the solver's order of a player's sequences (see `layout`).
An entry is the product of the player's own action probabilities up to each position,
with 1 at the first one (the empty sequence). Arrays have JAX's default precision, which
is float64 if `jax_enable_x64` is set and float32 otherwise.
"""

import dataclasses
import functools
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from open_spiel.python import policy as openspiel_policy

from spiel_cr.games.histories import TERMINAL
from spiel_cr.games.sequence_form import layout, treeplex
from spiel_cr.games.sequence_form.decisions import Payoffs, sum_payoffs
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.policies.best_responses import values_of_leaves
from spiel_cr.policies.conversions import behaviour_from_reach, tabular_policy
from spiel_cr.solvers.algorithms import CFR, find
from spiel_cr.solvers.cfr import cfr
from spiel_cr.solvers.cfr.regret_matching import Rule, match
from spiel_cr.solvers.cfr.regret_matching import WeighedState as Weighed
from spiel_cr.solvers.first_order.primal_dual import gradient
from spiel_cr.solvers.representation import FormRequirements, GameOptions, represent

# Reach of each player by position.
Strategies: TypeAlias = tuple[jax.Array, jax.Array]


class GameArrays(NamedTuple):
    """A game tree as arrays.

    Attributes:
      payoffs: Player 0's utility at each terminal history, in the order of
        `tree.histories`, float [Z]. In a matrix game, these are the rows of the matrix
        one after another.
      chance: Probability of the chance outcomes that lead to each terminal history,
        float [Z].
      pairs: Number of the pair of last sequences of each terminal history, from 1,
        int32 [Z].
      templates: Treeplex of each player, whose payoffs are numbers of pairs; 0 at
        padding.
    """

    payoffs: jax.Array
    chance: jax.Array
    pairs: jax.Array
    templates: cfr.Trees

    def trees(self) -> cfr.Trees:
        """Return the players' treeplexes with the payoffs, for `cfr.step`."""
        totals = jnp.zeros(len(self.payoffs) + 1, self.payoffs.dtype)
        totals = totals.at[self.pairs].add(self.chance * self.payoffs)
        return _filled(self.templates[0], totals), _filled(self.templates[1], -totals)


def _filled(template: treeplex.Treeplex, totals: jax.Array) -> treeplex.Treeplex:
    groups: Any = template.coupling
    coupling = tuple(
        dataclasses.replace(group, payoffs=totals[group.payoffs]) for group in groups
    )
    return template._replace(coupling=coupling)


def arrays(game: Any) -> GameArrays:
    """Represent a game as arrays, on JAX's default device.

    Args:
      game: OpenSpiel game string, game, or game tree.

    Raises:
      ValueError: If a player makes more than 32 decisions in a row that form a deep
        tree, whose levels are not separate arrays.

    Example:
      >>> import spiel_cr
      >>> from spiel_cr.solvers import functional
      >>> game = functional.arrays("kuhn_poker")
      >>> game.payoffs.shape
      (30,)
      >>> state = functional.solve(game, "cfr+", 1000)
      >>> strategies = functional.average(state)
      >>> round(float(functional.value(game, strategies)), 3)
      -0.056
    """
    tree: Any = represent(game, GameOptions("tree"), FormRequirements({}))[0]
    histories = tree.histories
    over = histories.player == TERMINAL
    rows, columns = histories.sequence[:, over]
    width = np.int64(tree.decisions[1].num_sequences)
    _, pairs = np.unique(rows * width + columns, return_inverse=True)
    pairs = pairs.reshape(-1) + 1
    chance, payoffs = histories.chance[over], histories.utility[over]
    first = np.unique(pairs, return_index=True)[1]
    coupling = Payoffs(rows[first], columns[first], pairs[first].astype(float))
    paid = sum_payoffs(rows, columns, chance * payoffs)
    below = layout.sizes_of(tree.decisions, paid)
    form = layout.build(tree.decisions, coupling, below=below)
    if any(template.ancestors for template in form.arrays):
        raise ValueError(
            f"game={tree.game}: the tree is too deep for separate arrays of its "
            f"levels; use spiel_cr.solve"
        )
    numbers: Any = pairs.astype(np.int32)
    templates: Any = tuple(
        template._replace(coupling=tuple(map(_numbered, template.coupling)))
        for template in form.arrays
    )
    return jax.device_put(GameArrays(payoffs, chance, numbers, templates))


def _numbered(group: Any) -> treeplex.RowGroup:
    """Return a group of the coupling with whole numbers in place of payoffs."""
    numbers: Any = np.abs(group.payoffs).astype(np.int32)
    return treeplex.RowGroup(group.columns, numbers)


def init(game: GameArrays, algorithm: Any = "cfr+") -> cfr.CFRState:
    """Return the first state: uniform strategies and zero regrets.

    Args:
      game: The game.
      algorithm: Full-width algorithm of `spiel_cr.solve`: a name, settings, or a rule.
    """
    config = find(algorithm, families=(CFR,)).config
    return cfr.init(game.trees(), custom=config.rule.custom)


def step(
    game: GameArrays, state: cfr.CFRState, algorithm: Any = "cfr+"
) -> cfr.CFRState:
    """Perform one iteration of CFR, which updates both players.

    Args:
      game: The game. Its payoffs should be below about 1000 in float32.
      state: State before the iteration.
      algorithm: The algorithm, as for `init`; static under `jit`.
    """
    config = find(algorithm, families=(CFR,)).config
    return cfr.step(game.trees(), state, config=config)


def solve(game: GameArrays, algorithm: Any, iterations: int) -> cfr.CFRState:
    """Perform several iterations from the first state.

    Args:
      game: The game.
      algorithm: The algorithm, as for `init`; static under `jit`.
      iterations: Number of iterations; static under `jit`.

    Returns:
      The last state. Reverse-mode differentiation stores all states in between.
    """
    config, trees = find(algorithm, families=(CFR,)).config, game.trees()

    def one(state: cfr.CFRState, _: None) -> tuple[cfr.CFRState, None]:
        return cfr.step(trees, state, config=config), None

    return jax.lax.scan(one, init(game, algorithm), length=iterations)[0]


def average(state: cfr.CFRState, game: GameArrays | None = None) -> Strategies:
    """Return the average strategies of a state, float [positions] of each player.

    Args:
      state: State of CFR.
      game: The game; required for a rule whose averaging weights depend on the infoset,
        such as "vad-cfr". With a game, probabilities are normalised at each infoset,
        which changes the averages of other rules by rounding errors only.

    Raises:
      ValueError: If the game is needed.
    """
    first, second = (player.average for player in state.players)
    if game is not None:
        one, other = game.trees()
        return _normalised(one, first), _normalised(other, second)
    states = jax.tree.leaves(state.players, is_leaf=lambda x: isinstance(x, Weighed))
    if any(isinstance(part, Weighed) for part in states):
        raise ValueError(
            "game=None: the averaging weights of the rule depend on the infoset; call "
            "average(state, game)"
        )
    return first, second


def _normalised(tree: treeplex.Treeplex, sums: jax.Array) -> jax.Array:
    """Return the reach of strategies proportional to sums at each infoset."""
    levels = zip(tree.levels, treeplex.by_level(tree.levels, sums), strict=True)
    strategy = tuple(
        tuple(map(functools.partial(match, Rule()), level.split(part), level.uniform))
        for level, part in levels
    )
    return treeplex.reach(tree, strategy)


def value(game: GameArrays, strategies: Strategies) -> jax.Array:
    """Return player 0's expected payoff, a scalar in the units of the payoffs."""
    return strategies[0] @ gradient(game.trees()[0], strategies[1])


def best_response_value(
    game: GameArrays, strategies: Strategies, player: int
) -> jax.Array:
    """Return a player's payoff by a best response to the other one, a scalar.

    Args:
      game: The game.
      strategies: Strategies of both players; only the opponent's is used.
      player: The player that responds, 0 or 1.
    """
    tree = game.trees()[player]
    leaves = treeplex.leaf_values(tree, strategies[1 - player])
    return values_of_leaves(tree, leaves, None)[1]


def nash_conv(game: GameArrays, strategies: Strategies) -> jax.Array:
    """Return NashConv, the sum of both players' gains by best responses, a scalar."""
    first, second = (best_response_value(game, strategies, p) for p in range(2))
    return first + second


def policy(tree: GameTree, strategies: Strategies) -> openspiel_policy.TabularPolicy:
    """Return strategies as a policy of OpenSpiel.

    Args:
      tree: The game tree from which the arrays were made.
      strategies: Strategies of both players.
    """
    reach = (
        np.asarray(strategy, np.float64)[positions.sequences]
        for strategy, positions in zip(
            strategies, tree.sequence_form.layouts, strict=True
        )
    )
    first, second = map(behaviour_from_reach, tree.decisions, reach)
    return tabular_policy(tree, (first, second))
