"""ISMCTS-BR: an approximate best response by batched search on a game tree.

Timbers et al. 2022, "Approximate exploitability: learning a best response", Algorithms
1 and 2: PUCT over the responder's information states, histories drawn from the exact
posterior at the root, the opponent's moves from its policy.

Deviations. The statistics of an information state do not depend on where a simulation
began, since beliefs do not depend on the responder's own play; so all searches of one
response share one table instead of reusing a tree within an episode. See
`ismcts_kernel.py` for the backup of values and for parallel simulations.
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.common.checks import check_seed
from spiel_cr.common.jax_utils import spread
from spiel_cr.common.messages import progress_bar
from spiel_cr.evaluation.response_config import SearchConfig
from spiel_cr.evaluation.responses import ismcts_kernel
from spiel_cr.evaluation.responses.ismcts_kernel import (
    Roots,
    SearchStatistics,
    SearchTree,
)
from spiel_cr.games.tree.tree import GameTree, Infosets
from spiel_cr.policies.conversions import pure_behaviour, reach_from_behaviour
from spiel_cr.policies.infoset_reach import others_reach

# Smallest number of rounds of the simulations of few roots, because the results of a
# round guide only later rounds.
_ROUNDS = 64
# Batches shrink in large steps, so that few functions are compiled.
_NARROWER = 16
# Smallest number of times that values are backed up in a search.
_LOOKS = 32


class TreeResponse(NamedTuple):
    """A response from a search.

    Attributes:
      player: The responder.
      behaviour: The response's action probabilities, float64 [S]; pure, and uniform at
        infosets that the response does not reach.
      table: Search statistics.
      simulations: Number of simulations.
    """

    player: int
    behaviour: np.ndarray
    table: SearchStatistics
    simulations: int


def search_response(
    tree: GameTree,
    player: int,
    other_behaviour: np.ndarray,
    config: SearchConfig | None = None,
    *,
    seed: int = 0,
    progress: bool | None = None,
) -> TreeResponse:
    """Search at all infosets that the response reaches, from the first to the last.

    At each level of the player's decisions, the infosets that the chosen actions and
    the opponent's play reach with positive probability are searched together. The most
    visited action of each is chosen. With `config.learn`, all infosets are searched
    before, from the last level to the first.

    Args:
      tree: The game tree.
      player: The responder.
      other_behaviour: The fixed opponent's action probabilities, float64 [S'].
      config: Settings of the search.
      seed: Seed for all random choices.
      progress: Whether to show a progress bar on stderr.

    Raises:
      ValueError: If `player` is not 0 or 1, `other_behaviour` is not a strategy, or
        there are more simulations than single precision can count.
    """
    config, seed = config or SearchConfig(), check_seed(seed)
    arrays = ismcts_kernel.build(tree, player, other_behaviour)
    _check_counts(arrays, config)
    infosets = tree.infosets[player]
    arrays = jax.device_put(arrays)
    prior = uniform_prior(arrays)
    table = empty_table(arrays)
    other_reach = reach_from_behaviour(tree.decisions[1 - player], other_behaviour)
    reached = others_reach(tree, player, other_reach) > 0
    decisions = infosets.decisions
    levels, parent = decisions.levels(), decisions.parent
    chosen = np.zeros(decisions.num_sequences, bool)
    chosen[0] = True
    key = jax.random.key(seed)
    simulations = 0
    learning = dataclasses.replace(config, simulations=config.learn or 1)
    choices = decisions.num_actions > 1
    # The last level comes first, so that its results are used at the levels above it.
    passes = [(n, True) for n in range(arrays.shape.depth) if config.learn][::-1]
    passes += [(n, False) for n in range(arrays.shape.depth)]
    for level, learns in progress_bar(
        passes, desc="searching", unit="level", progress=progress
    ):
        wanted = choices if learns else chosen[parent]
        roots = np.flatnonzero((levels == level) & reached & wanted)
        if not len(roots):
            continue
        key, use = jax.random.split(key)
        settings = learning if learns else config
        table, done = search(arrays, table, prior, roots, use, settings)
        simulations += done
        if not learns:
            chosen[_most_visited(infosets, table, roots)] = True
    behaviour = pure_behaviour(decisions, chosen)
    return TreeResponse(player, behaviour, table, simulations)


def search(
    arrays: SearchTree,
    table: SearchStatistics,
    prior: jax.Array,
    roots: np.ndarray,
    key: jax.Array,
    config: SearchConfig,
) -> tuple[SearchStatistics, int]:
    """Run `config.simulations` from each of some infosets.

    Args:
      arrays: The game, on the device.
      table: Search statistics so far.
      prior: P(a | s) by sequence, float [S + A].
      roots: Infosets at which simulations begin, int [R].
      key: Key of JAX's random numbers.
      config: Settings of the search.

    Returns:
      The new statistics, and the number of simulations.
    """
    total = len(roots) * config.simulations
    # Roots share a batch in powers of two, see `ismcts_kernel.search`.
    width = 1 << (config.batch.bit_length() - 1)
    while width > max(1, total // _ROUNDS):
        width = -(-width // _NARROWER)
    rounds = -(-total // width)
    # Padded to all infosets, so that one compiled function serves all levels.
    padded = np.zeros(len(table.reached), np.int32)
    padded[: len(roots)] = roots
    points = spread(2 * arrays.shape.depth + 1, width).astype(np.float32)
    work = len(table.reached) * arrays.shape.actions
    interval = min(-(-work // (4 * width)), max(1, rounds // _LOOKS))
    if config.batch == 1:
        # As in the textbook, every simulation uses the results of all earlier ones.
        interval = 1
    table = ismcts_kernel.run()(
        arrays,
        table,
        prior,
        Roots(jnp.asarray(padded), len(roots), rounds, interval),
        jnp.asarray(points),
        key,
        jnp.asarray(config.exploration * arrays.shape.half_range, table.visits.dtype),
    )
    return table, rounds * width


def uniform_prior(arrays: SearchTree) -> jax.Array:
    """Return a uniform prior P(a | s) by sequence, float [S + A]."""
    counts = np.asarray(arrays.actions)[:-1]
    prior = np.zeros(len(arrays.reward), np.asarray(arrays.reward).dtype)
    prior[1 : 1 + counts.sum()] = np.repeat(1 / counts, counts)
    return jnp.asarray(prior)


def empty_table(arrays: SearchTree) -> SearchStatistics:
    """Return statistics without simulations."""
    size, number = len(arrays.reward), len(arrays.parent)
    sizes = (size, size, number, number)
    return SearchStatistics(*(jnp.zeros(n, arrays.reward.dtype) for n in sizes))


def _check_counts(arrays: SearchTree, config: SearchConfig) -> None:
    """Raise ValueError if the table's floats cannot count the visits one by one."""
    visits = arrays.shape.depth * (config.simulations + config.learn)
    dtype = arrays.reward.dtype
    most = int(2 / np.finfo(dtype).eps)
    if visits > most:
        raise ValueError(
            f"simulations={config.simulations} and learn={config.learn} may visit an "
            f"action {visits:,} times; {dtype} can count to {most:,}; reduce both"
        )


def _most_visited(
    infosets: Infosets, table: SearchStatistics, roots: np.ndarray
) -> np.ndarray:
    """Return each root's most visited sequence, int [R]; of equal ones the better."""
    sequence, legal = ismcts_kernel.padded_sequences(infosets.decisions, roots)
    most = np.where(legal, np.asarray(table.visits)[sequence], -1)
    tied = (most == most.max(axis=1, keepdims=True)) & legal
    value = np.where(tied, np.asarray(table.value)[sequence], -np.inf)
    return sequence[np.arange(len(roots)), value.argmax(axis=1)]
