"""Exact values and best responses on a game in sequence form.

All functions keep node locks: a locked infoset plays its locked strategy (see
`games.sequence_form.locking`). Private functions use vectors by *position*, the
solver's order of a player's sequences and infosets (see `layout`).

The functions are fast enough for loops (convergence curves, stopping criteria, values
at subgame roots). Reported results of small games come from OpenSpiel's exact tools.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.common import memory
from spiel_cr.common.compilation_cache import caching
from spiel_cr.common.jax_utils import quick_options
from spiel_cr.common.pairs import ordered_pair, pair
from spiel_cr.games.sequence_form import layout, locking, treeplex
from spiel_cr.games.sequence_form.decisions import Decisions
from spiel_cr.policies.conversions import reach_from_behaviour

# Smallest number of both players' positions of a large game.
_LARGE = 2_000_000


def infoset_values(
    form: layout.SequenceForm,
    player: int,
    other_reach: np.ndarray,
    behaviour: np.ndarray | None = None,
) -> np.ndarray:
    """Compute counterfactual values of one player's infosets.

    Args:
      form: The game.
      player: The player of the infosets, whose utility it is.
      other_reach: The opponent's strategy in sequence form, float64 [S'].
      behaviour: The player's action probabilities, float64 [S]; by default those of a
        best response.

    Returns:
      The value of each logical infoset, weighted by the reach of opponent and chance,
      in the game's units, float64 [I + 1]. The last number is the game's value.
    """
    if form.arrays[player].ancestors:
        # In deep trees, numpy needs a few microseconds for a level, and a maximum has
        # no closed form, unlike `treeplex.expected_values`.
        total = _payoffs_against(form, player, other_reach)
        fixed = form.locks[player] if behaviour is None else behaviour
        values = best_values(form.decisions[player], total, fixed)
        return np.append(values, total[0])
    values, root = _as_arrays(form, player, other_reach, behaviour)
    return np.append(values[form.layouts[player].infosets], root)


def action_values(
    form: layout.SequenceForm,
    player: int,
    other_reach: np.ndarray,
    behaviour: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Compute counterfactual values of one player's actions, and of its infosets.

    For the arguments see `infoset_values`.

    Returns:
      float64 [S], the value of each sequence if the player follows `behaviour` after
      it; and float64 [I], the values of infosets.
    """
    if form.is_listed:  # and the function for infosets suffices
        decisions = form.decisions[player]
        total = _payoffs_against(form, player, other_reach)
        below = infoset_values(form, player, other_reach, behaviour)[:-1]
        np.add.at(total, decisions.parent, below)
        return total, below
    values, _, actions = _as_arrays(form, player, other_reach, behaviour, actions=True)
    positions = form.layouts[player]
    return actions[positions.sequences], values[positions.infosets]


def _payoffs_against(
    form: layout.SequenceForm, player: int, other_reach: np.ndarray
) -> np.ndarray:
    """Return the payoffs of terminals after each sequence of a player, float64 [S].

    They are weighted by the reach of opponent and chance.
    """
    rows, columns, values = form.payoffs
    first, second = ordered_pair(player, rows, columns)
    gain = values * other_reach[second] * (1 if player == 0 else -1)
    return np.bincount(first, gain, minlength=form.decisions[player].num_sequences)


def _as_arrays(
    form: layout.SequenceForm,
    player: int,
    other_reach: np.ndarray,
    behaviour: np.ndarray | None,
    *,
    actions: bool = False,
) -> list[np.ndarray]:
    """Compute `_values` of strategies by logical sequence, as numpy arrays."""
    positions, other = form.layouts[player], form.layouts[1 - player]
    chosen = None if behaviour is None else _by_position(positions, behaviour)
    reach = _by_position(other, other_reach)
    with caching(), jax.enable_x64(True):
        result = _evaluated(form, player, reach, chosen, actions=actions)
        return list(map(np.asarray, result))


def best_values(
    decisions: Decisions, total: np.ndarray, fixed: np.ndarray | None = None
) -> np.ndarray:
    """Compute a player's values at its infosets if it responds best below them.

    Args:
      decisions: The player's decision points.
      total: The payoffs where each sequence is the last one, in the player's utility,
        float64 [S], or float64 [S, R] for R cases. The values of the infosets that
        follow are added in place.
      fixed: Action probabilities at infosets where the player does not respond best,
        float64 [S]; NaN at the others. None: the player responds best at all of them.

    Returns:
      float64 [I], or float64 [I, R].
    """
    sizes = decisions.num_actions
    values = np.zeros((len(decisions), *total.shape[1:]))
    for infosets, sequences in decisions.upwards():
        begin = np.cumsum(sizes[infosets]) - sizes[infosets]
        best = np.maximum.reduceat(total[sequences], begin)
        if fixed is not None:
            means = np.add.reduceat(total[sequences] * fixed[sequences], begin)
            best = np.where(np.isnan(means), best, means)
        values[infosets] = best
        np.add.at(total, decisions.parent[infosets], best)
    return values


def best_response_value(
    form: layout.SequenceForm, player: int, other_reach: np.ndarray
) -> float:
    """Compute the best-response value of a player, in its utility.

    Args:
      form: The game.
      player: The responder.
      other_reach: The opponent's strategy in sequence form, float64 [S'].
    """
    return float(infoset_values(form, player, other_reach)[-1])


def best_response(
    form: layout.SequenceForm, player: int, other_reach: np.ndarray
) -> np.ndarray:
    """Compute a pure best response; it plays the first of equally good actions.

    Actions are equally good if their counterfactual values differ from the best one by
    rounding errors only: 1e-12 of that value, or of the largest payoff of a pair of
    sequences (including chance probabilities). The loss at an infoset is at most that.

    Args:
      form: The game.
      player: The responder.
      other_reach: The opponent's strategy in sequence form, float64 [S'].

    Returns:
      Probability of each sequence's last action, 0 or 1, float64 [S].
    """
    decisions = form.decisions[player]
    total, below = action_values(form, player, other_reach)
    owner = decisions.owner[1:]
    # Of actions that are equal up to rounding, the first one is played.
    rounding = 1e-12 * treeplex.largest_payoff(form.arrays[player])
    best = np.isclose(total[1:], below[owner], rtol=1e-12, atol=rounding)
    best_value = np.maximum.reduceat(total[1:], decisions.first_sequence - 1)
    best |= total[1:] == best_value[owner]
    return locking.kept(form, player, first_actions(decisions, best))


def first_actions(decisions: Decisions, allowed: np.ndarray) -> np.ndarray:
    """Return the strategy that plays the first allowed action of each infoset.

    Args:
      decisions: The player's decision points.
      allowed: Actions, bool [S - 1], or bool [S - 1, R] for R cases.

    Returns:
      Probability of each sequence's last action, 0 or 1, float64 [S] or [S, R].
    """
    count = len(allowed)
    numbers = np.arange(count).reshape(-1, *[1] * (allowed.ndim - 1))
    places = np.where(allowed, numbers, count)
    first = np.minimum.reduceat(places, decisions.first_sequence - 1)
    behaviour = np.ones((1 + count, *allowed.shape[1:]))
    behaviour[1:] = places == first[decisions.owner[1:]]
    return behaviour


def expected_value(
    form: layout.SequenceForm, reach: tuple[np.ndarray, np.ndarray]
) -> float:
    """Compute player 0's expected utility of strategies in sequence form, [S]."""
    if form.is_listed:  # and nothing needs to be compiled
        rows, columns, values = form.payoffs
        return float(np.sum(values * reach[0][rows] * reach[1][columns]))
    positions = map(_by_position, form.layouts, reach)
    with caching(), jax.enable_x64(True):
        return _expected_by_position(form, 0, *positions)


def nash_conv(form: layout.SequenceForm, reach: tuple[np.ndarray, np.ndarray]) -> float:
    """Compute the sum of both players' best-response gains (OpenSpiel's NashConv).

    Args:
      form: The game in sequence form. Best responses keep its locks. For the NashConv
        of a policy in the whole game, lift them first (`locking.lifted`).
      reach: Each player's strategy in sequence form, float64 [S].
    """
    return best_response_value(form, 0, reach[1]) + best_response_value(
        form, 1, reach[0]
    )


def bounds_of_averages(
    form: layout.SequenceForm, averages: tuple[np.ndarray, np.ndarray]
) -> tuple[float, float]:
    """Compute `value_bounds` of average strategies, as solvers store them.

    Args:
      form: The game.
      averages: Weighted sums of reach over iterations, [positions] of each player. Only
        the proportions at each infoset matter, so float32 suffices. The strategy is
        uniform at infosets with zeros.
    """
    values = []
    with caching(), jax.enable_x64(True):
        for player in range(2):
            other = 1 - player
            values.append(
                _value(form, player, _normalised_reach(form, other, averages[other]))
            )
        if not form.is_zero_sum:
            reach = [_normalised_reach(form, p, averages[p]) for p in range(2)]
            values[1] -= sum(_expected_by_position(form, p, *reach) for p in range(2))
    return -values[1], values[0]


def value_bounds(
    form: layout.SequenceForm, behaviour: tuple[np.ndarray, np.ndarray]
) -> tuple[float, float]:
    """Compute the least value of player 0's strategy, and the most against player 1's.

    Args:
      form: The game.
      behaviour: Probability of each sequence's last action, float [S] of each player.

    Returns:
      The value of player 0's strategy against a best response, and the best-response
      value against player 1's strategy, both in player 0's utility. If the game is not
      zero-sum, the first number is player 0's utility minus player 1's gain from a best
      response, so that the distances from that utility are both players' gains.
    """
    if form.evaluator is not None:
        first, second = form.evaluator.best_values(behaviour, form.locks)
        return -second, first
    values = []
    _trim(form)
    with caching(), jax.enable_x64(True):
        for player in (1, 0):
            other = 1 - player
            values.append(_value(form, player, _reach(form, other, behaviour[other])))
    if not form.is_zero_sum:
        values[0] -= sum(behaviour_value(form, behaviour, p) for p in range(2))
    return -values[0], values[1]


def behaviour_value(
    form: layout.SequenceForm, behaviour: tuple[np.ndarray, np.ndarray], player: int = 0
) -> float:
    """Compute a player's expected utility; for the arguments see `value_bounds`."""
    if form.evaluator is not None:
        value = form.evaluator.expected_value(behaviour)
        return -value if player else value
    with caching(), jax.enable_x64(True):
        reach = [_reach(form, p, behaviour[p]) for p in range(2)]
        _trim(form)
        return _expected_by_position(form, player, *reach)


def _expected_by_position(
    form: layout.SequenceForm, player: int, *reach: np.ndarray | jax.Array
) -> float:
    """Compute a player's expected utility from both players' reach by position."""
    tree, opponent = form.arrays[player], reach[1 - player]
    if not _is_large(form):
        return float(_expected(tree, reach[player], opponent))
    leaves = _of_large(treeplex.leaf_values, optimise=True)(tree, opponent)
    return float(_of_large(_expected_of_leaves)(tree, reach[player], leaves))


def _reach(form: layout.SequenceForm, player: int, behaviour: np.ndarray) -> jax.Array:
    """Return a player's reach from its action probabilities, float64 [positions]."""
    positions = _by_position(form.layouts[player], behaviour, behaviour.dtype)
    return _normalised_reach(form, player, positions)


def _by_position(
    positions: layout.PositionMap,
    values: np.ndarray,
    dtype: np.typing.DTypeLike = np.float64,
) -> np.ndarray:
    """Return numbers of sequences, [positions]; zeros at padding."""
    return positions.by_position(values.astype(dtype, copy=False))


def _value(form: layout.SequenceForm, player: int, reach: jax.Array) -> float:
    """Compute a best-response value from the opponent's reach by position."""
    if form.arrays[player].ancestors:
        other_reach = np.asarray(reach)[form.layouts[1 - player].sequences]
        return best_response_value(form, player, other_reach)
    value = float(_evaluated(form, player, reach)[1])
    _trim(form)
    return value


def _evaluated(
    form: layout.SequenceForm,
    player: int,
    other_reach: jax.Array | np.ndarray,
    behaviour: np.ndarray | None = None,
    *,
    actions: bool = False,
) -> tuple[jax.Array, ...]:
    """Compute `_values`, of large games by two functions that others share."""
    tree = form.arrays[player]
    if not _is_large(form):
        return _evaluate(tree, other_reach, behaviour, actions=actions)
    leaves = _of_large(treeplex.leaf_values, optimise=True)(tree, other_reach)
    return tuple(_of_large(values_of_leaves)(tree, leaves, behaviour, actions=actions))


def _is_large(form: layout.SequenceForm) -> bool:
    return sum(positions.size for positions in form.layouts) > _LARGE


def _trim(form: layout.SequenceForm) -> None:
    """Release memory between compiled functions of large games, which need much."""
    if _is_large(form):
        memory.trim()


def compilations() -> int:
    """Return how many functions this process has compiled for best responses."""
    programs: tuple[Any, ...] = (_evaluate, _of_large(values_of_leaves))
    return sum(run._cache_size() for run in programs)


def _values(
    tree: treeplex.Treeplex,
    other_reach: jax.Array,
    behaviour: jax.Array | None,
    *,
    actions: bool = False,
) -> tuple[jax.Array, ...]:
    """Compute values of all infosets by position, of the root, and maybe of actions."""
    leaves = treeplex.leaf_values(tree, other_reach)
    return values_of_leaves(tree, leaves, behaviour, actions=actions)


def values_of_leaves(
    tree: treeplex.Treeplex,
    leaves: jax.Array,
    behaviour: jax.Array | None,
    *,
    actions: bool = False,
) -> tuple[jax.Array, ...]:
    """Compute values of all infosets by position, of the root, and maybe of actions.

    Args:
      tree: Treeplex of the player.
      leaves: Payoffs after each sequence, see `treeplex.leaf_values`.
      behaviour: Strategy of the player by position; None: a best response.
      actions: Whether to return the values of actions, too.
    """
    child: treeplex.Level | None = None
    child_values: jax.Array | None = None
    chosen = None
    if behaviour is not None:
        chosen = treeplex.by_level(tree.levels, behaviour)
    values, all_actions = [], []
    for level in reversed(tree.levels):
        parts = []
        blocks = treeplex.values_below(level, leaves, child, child_values)
        if actions:
            all_actions.append(treeplex.join([block.reshape(-1) for block in blocks]))
        played = [] if chosen is None else level.split(chosen.pop())
        for number, (block, uniform) in enumerate(
            zip(blocks, level.uniform, strict=True)
        ):
            if chosen is None:
                best = jnp.where(uniform > 0, block, -jnp.inf).max(axis=0)
                # The first action of an infoset is legal unless it is padding.
                best = jnp.where(uniform[0] > 0, best, 0)
                locked = level.locked[number] if level.locked else None
                if locked is not None:
                    kept = (jnp.maximum(locked, 0) * block).sum(axis=0)
                    best = jnp.where(locked[0] >= 0, kept, best)
                parts.append(best)
            else:
                parts.append((played[number] * block).sum(axis=0))
        child, child_values = level, treeplex.join(parts)
        values.append(child_values)
    root = treeplex.root_value(tree, leaves)
    result = [jnp.zeros(0, leaves.dtype), root]
    if child_values is not None:
        result = [jnp.concatenate(values[::-1]), root + child_values.sum()]
    if actions:
        result.append(jnp.concatenate([result[1][None], *all_actions[::-1]]))
    return tuple(result)


_evaluate = jax.jit(_values, static_argnames="actions")


@functools.cache
def _of_large(run: Callable[..., Any], *, optimise: bool = False) -> Any:
    """Return a function for large games that compiles in a quarter of the time.

    With `optimise` it compiles in half of the time. Most of these functions wait for
    memory, so code without optimisation takes at most 50% longer.
    """
    return jax.jit(
        run,
        static_argnames="actions" if run is values_of_leaves else None,
        compiler_options=quick_options(optimise=optimise),
    )


def _normalised_reach(
    form: layout.SequenceForm, player: int, average: np.ndarray
) -> jax.Array:
    """Return the reach of a strategy given by sums of reach, float64 [positions]."""
    run = _of_large(_reach_of) if _is_large(form) else _reach_of_sums
    return jnp.asarray(run(form.arrays[player], average))


def _reach_of(tree: treeplex.Treeplex, average: jax.Array) -> jax.Array:
    return treeplex.reach(tree, strategy_of(tree, average.astype(jnp.float64)))


_reach_of_sums = jax.jit(_reach_of)


def strategy_of(tree: treeplex.Treeplex, sums: jax.Array) -> treeplex.Blocks:
    """Return the strategy proportional to sums of reach, uniform where they are 0.

    Args:
      tree: Treeplex of the player.
      sums: Reach, or sums of reach of several strategies, by position, float [S].
    """
    levels = []
    for level, part in zip(
        tree.levels, treeplex.by_level(tree.levels, sums), strict=True
    ):
        blocks = level.split(part)
        totals = [treeplex.sum_rows(block)[None] for block in blocks]
        played = [
            jnp.where(total > 0, block / jnp.where(total > 0, total, 1), uniform)
            for block, total, uniform in zip(blocks, totals, level.uniform, strict=True)
        ]
        levels.append(treeplex.keep_locked(level, played))
    return tuple(levels)


@jax.jit
def _expected(
    tree: treeplex.Treeplex, player_reach: jax.Array, other_reach: jax.Array
) -> jax.Array:
    """Compute the owner's expected utility from both players' reach by position."""
    leaves = treeplex.leaf_values(tree, other_reach)
    return _expected_of_leaves(tree, player_reach, leaves)


def _expected_of_leaves(
    tree: treeplex.Treeplex, player_reach: jax.Array, leaves: jax.Array
) -> jax.Array:
    """Compute `_expected` from the payoffs after each sequence, by position."""
    total = treeplex.root_value(tree, leaves)
    parts = treeplex.by_level(tree.levels, player_reach)
    for level, part in zip(tree.levels, parts, strict=True):
        total += (part * treeplex.leaves_of(level, leaves)).sum()
    return total


def reach_of(
    form: layout.SequenceForm, behaviour: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return both players' sequence forms from action probabilities, float64 [S]."""
    return pair(
        reach_from_behaviour(d, b)
        for d, b in zip(form.decisions, behaviour, strict=True)
    )
