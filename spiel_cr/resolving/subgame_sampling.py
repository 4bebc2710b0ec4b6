"""Outcome sampling of one subgame: a program of loops over padded tables.

Monte Carlo CFR as in `mccfr` (Lanctot et al. 2009; baselines after Schmid et al. 2019
and Davis et al. 2020), written for subgames, which are met once and solved for
milliseconds: depths, players and iterations are loops, not operations written out, so a
program compiles in about a second, and serves every subgame that fits into its shape.
What differs from `mccfr` besides:

  - A trajectory starts at one of the subgame's roots. At the gadget above it the
    opponent always follows, and what terminating is worth is known, so nothing is
    sampled there. For the resolving player's updates roots are drawn in proportion to
    how often the opponent follows, too.
  - Sampled values of the opponent are also kept where its augmented infosets of the
    next layer are: its mean counterfactual values there under the iterates, which the
    next gadget needs. They are unbiased.

Tables have a column for each of R rows (infosets of both players, augmented infosets,
histories of chance) and A entries in each, the actions.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.cfr import regret_matching
from spiel_cr.cfr.config import MCCFRConfig
from spiel_cr.common.jax_utils import quick_options
from spiel_cr.mccfr.sample_tree import take
from spiel_cr.sequence_form import treeplex

TERMINATE, FOLLOW = 0, 1
# Draws stay below 1 by more than the rounding error of a sum of probabilities.
_BELOW_ONE = 1 - 2.0**-22


class SubgameTree(NamedTuple):
    """A subgame, padded: N histories, R rows, K roots, G augmented infosets below.

    Every N, R, K and G includes at least one place that stands for "none", the last.

    Attributes:
      first_child: int32 [N], the first of a history's children, which are consecutive.
      row: int32 [N], the row of its actions; R - 1 where the game is over.
      num_actions: int32 [N], number of actions; 0 where the game is over.
      player: int32 [N], who acts: 0, 1, 2 chance, 3 nobody.
      utility: float [N], player 0's utility at terminals over `Layout.scale`, else 0.
      target: bool [N + A] or None, what targeted trajectories may visit.
      beyond: int32 [N], the next layer's augmented infoset that the history belongs to;
        G - 1 without.
      owner: int32 [R], the player whose row it is; 2 chance and padding.
      uniform: float [A, R], uniform strategies at players' rows and probabilities at
        those of chance; 0 at padding.
      explore: float [A, R], how outcome sampling explores.
      parent: int32 [R], entry of the owner's last action in a flat table (action times
        R plus row); A R for none in this subgame.
      root: int32 [K], the roots.
      gadget: int32 [K], the row of each root's augmented infoset; R - 1 without.
      share: float [K], reach of each root by chance and the resolving player, over
        their sum.
      terminate: float [K], player 0's utility, in the units of `utility`, where the
        opponent terminates.
      resolving: int32 scalar, i, the resolving player.
      depths: int32 scalar, the largest number of actions after a root.
      levels: int32 scalar, the largest number of i's infosets on a way down.
    """

    first_child: jax.Array
    row: jax.Array
    num_actions: jax.Array
    player: jax.Array
    utility: jax.Array
    target: jax.Array | None
    beyond: jax.Array
    owner: jax.Array
    uniform: jax.Array
    explore: jax.Array
    parent: jax.Array
    root: jax.Array
    gadget: jax.Array
    share: jax.Array
    terminate: jax.Array
    resolving: jax.Array
    depths: jax.Array
    levels: jax.Array


class Problem(NamedTuple):
    """A subgame and the random points that all subgames share.

    Attributes:
      tree: the subgame.
      points: float [D + 2, B], evenly spread points of which each batch uses a randomly
        shifted copy; zeros where draws are independent. D depths at most.
    """

    tree: SubgameTree
    points: jax.Array


class SubgameState(NamedTuple):
    """State of a sampled solve of a subgame.

    Attributes:
      regrets, strategy: float [A, R], cumulative regrets and the current strategies;
        chance's probabilities in its own rows.
      average: float [A, R], i's weighted mean sequence form; with sampled averaging
        its mean contribution to each action. 0 in all other rows.
      values: float [G], o's mean counterfactual values at the augmented infosets below
        under the iterates, over the roots' reach and `Layout.scale`.
      baseline: float [N + A], [A, R] or [0], see `mccfr/baselines.py`.
      iteration: int32 scalar, iterations done.
      weight: float scalar, sum of their averaging weights in units of the last one.
      key: uint32 [2], of JAX's random numbers to come.
    """

    regrets: jax.Array
    strategy: jax.Array
    average: jax.Array
    values: jax.Array
    baseline: jax.Array
    iteration: jax.Array
    weight: jax.Array
    key: jax.Array


class _Way(NamedTuple):
    """Visits of B trajectories at D depths.

    Attributes:
      history: int32 [D, B].
      chosen: int32 [D, B], the followed action.
      rho: float [D, B], the probability that a trajectory there follows it.
      weight: float [D, B], reach of the others over the probability that a trajectory
        comes there, times its share of the batch.
      own: float [D, B], own reach instead; only where averages are sampled.
    """

    history: jax.Array
    chosen: jax.Array
    rho: jax.Array
    weight: jax.Array
    own: jax.Array | None


class _Front(NamedTuple):
    """Where B trajectories are on the way down; weights by free ones' probabilities.

    Attributes:
      history: int32 [B].
      weight, own: float [B], see `_Way`.
      ratio: float [B], targeted over free probability to come here; None without
        targets.
    """

    history: jax.Array
    weight: jax.Array
    own: jax.Array | None
    ratio: jax.Array | None


class _Sums(NamedTuple):
    """What a batch adds up on its way back.

    Attributes:
      estimate: float [B], player 0's sampled utility at the depth below.
      below: float [B], expected baselines' value there.
      values: float [A R], counterfactual values of the updating player's actions.
      visits: float [R], own reach over sampling probability, by row; only where
        averages are sampled.
      beyond: float [G], counterfactual values at augmented infosets of the next layer.
      baseline: the new table.
      sums, counts: float, like `baseline`: what "average" and "history" saw.
    """

    estimate: jax.Array
    below: jax.Array
    values: jax.Array
    visits: jax.Array | None
    beyond: jax.Array
    baseline: jax.Array
    sums: jax.Array
    counts: jax.Array


def init(
    tree: SubgameTree, groups: int, config: MCCFRConfig, *, seed: int
) -> SubgameState:
    """Uniform strategies, zero regrets and baselines; numpy arrays.

    Args:
      tree: the subgame, numpy arrays.
      groups: G, the number of augmented infosets below, padding included.
      config: algorithm.
      seed: of all random numbers.
    """
    zeros: Any = np.zeros_like(tree.uniform)
    dtype, width = zeros.dtype, len(zeros)
    sizes = {"none": 0, "average": zeros.size}
    entries = sizes.get(config.baseline, len(tree.row) + width)
    return SubgameState(
        regrets=zeros,
        strategy=tree.uniform,
        average=zeros,
        values=np.zeros(groups, dtype),  # type: ignore[arg-type]
        baseline=np.zeros(entries, dtype),  # type: ignore[arg-type]
        iteration=np.zeros((), np.int32),  # type: ignore[arg-type]
        weight=np.zeros((), dtype),  # type: ignore[arg-type]
        key=np.asarray(jax.random.key_data(jax.random.key(seed))),  # type: ignore[arg-type]
    )


def step(problem: Problem, state: SubgameState, config: MCCFRConfig) -> SubgameState:
    """One iteration: a batch of trajectories and an update for each player."""
    t = (state.iteration + 1).astype(state.weight.dtype)
    weight = 1 + state.weight * ((t - 1) / t) ** config.gamma
    state = state._replace(iteration=state.iteration + 1, weight=weight)
    before = state.strategy

    def half(p: jax.Array, now: SubgameState) -> SubgameState:
        played = now.strategy if config.alternating else before
        return _update(problem, now, played, p, config)

    return jax.lax.fori_loop(0, 2, half, state)


def _update(
    problem: Problem,
    state: SubgameState,
    strategy: jax.Array,
    player: jax.Array,
    config: MCCFRConfig,
) -> SubgameState:
    """Regrets, next strategy and averages of one player, from one batch."""
    tree = problem.tree
    key, mine = jax.random.split(jax.random.wrap_key_data(state.key))
    draws = _draw(problem.points, mine, config)
    sums = _sample(tree, state, strategy, draws, player, config)
    values = sums.values.reshape(strategy.shape)
    means = treeplex.sum_rows(strategy * values)
    t = state.iteration.astype(strategy.dtype)
    padding = tree.uniform == 0
    regrets, matched = regret_matching.update(
        config.rule,
        state.regrets,
        jnp.where(padding, 0, values - means[None]),
        tree.uniform,
        jnp.where(padding, jnp.inf, 0),
        t,
    )
    own = (tree.owner == player)[None]
    resolves = player == tree.resolving
    share = 1 / state.weight
    if sums.visits is None:
        added = jax.lax.cond(
            resolves, lambda: _reach(tree, state.strategy), lambda: state.average
        )
    else:
        added = sums.visits[None] * state.strategy
    average = state.average + share * (added - state.average)
    mean_values = state.values + share * (sums.beyond - state.values)
    return state._replace(
        regrets=jnp.where(own, regrets, state.regrets),
        strategy=jnp.where(own, matched, state.strategy),
        average=jnp.where(own & resolves, average, state.average),
        values=jnp.where(resolves, state.values, mean_values),
        baseline=sums.baseline,
        key=jax.random.key_data(key),
    )


def _draw(points: jax.Array, key: jax.Array, config: MCCFRConfig) -> jax.Array:
    """float [D + 2, B] in [0, 1), independent over depths; see `mccfr`."""
    if config.draws == "sobol":
        shift = jax.random.uniform(key, (len(points), 1), points.dtype)
        return (points + shift) % 1
    return jax.random.uniform(key, points.shape, points.dtype)


def _reach(tree: SubgameTree, strategy: jax.Array) -> jax.Array:
    """float [A, R], the sequence form of players' strategies, by i's levels."""

    def deeper(_: jax.Array, reach: jax.Array) -> jax.Array:
        above = jnp.append(reach.reshape(-1), 1.0)[tree.parent]
        return strategy * above[None]

    return jax.lax.fori_loop(1, tree.levels, deeper, strategy)


def _sample(
    tree: SubgameTree,
    state: SubgameState,
    strategy: jax.Array,
    draws: jax.Array,
    player: jax.Array,
    config: MCCFRConfig,
) -> _Sums:
    """Samples a batch of trajectories for one player's update.

    Args:
      tree: the subgame.
      state: of the solve; its baselines are read, and learned anew.
      strategy: float [A, R], what is played.
      draws: float [D + 2, B], from `_draw`: one row a depth, roots, who is targeted.
      player: int32 scalar, whose values are sampled.
      config: exploration and baselines.
    """
    targeted = draws[-1] < config.delta
    place, front = _start(tree, strategy, draws[-2], targeted, player, config)
    begun = front
    whole, real = (len(draws) - 2, draws.shape[1]), draws.dtype
    way = _Way(
        history=jnp.zeros(whole, jnp.int32),
        chosen=jnp.zeros(whole, jnp.int32),
        rho=jnp.zeros(whole, real),
        weight=jnp.zeros(whole, real),
        own=None if front.own is None else jnp.zeros(whole, real),
    )

    def down(d: jax.Array, carried: tuple[_Front, _Way]) -> tuple[_Front, _Way]:
        ahead, way = carried
        visit, ahead = _descend(
            tree, strategy, ahead, draws[d], targeted, player, config
        )
        return ahead, jax.tree.map(lambda rows, row: rows.at[d].set(row), way, visit)

    front, way = jax.lax.fori_loop(0, tree.depths, down, (front, way))
    estimate = tree.utility[front.history]
    learned = config.baseline in ("average", "history")
    nothing = jnp.zeros(len(state.baseline) if learned else 0, real)
    sums = _Sums(
        estimate=estimate,
        below=estimate,
        values=jnp.zeros(strategy.size, real),
        visits=None if way.own is None else jnp.zeros(len(tree.owner), real),
        beyond=jnp.zeros_like(state.values),
        baseline=state.baseline,
        sums=nothing,
        counts=nothing,
    )

    def up(k: jax.Array, sums: _Sums) -> _Sums:
        visit = jax.tree.map(lambda rows: rows[tree.depths - 1 - k], way)
        return _climb(tree, strategy, state.baseline, visit, sums, player, config)

    sums = jax.lax.fori_loop(0, tree.depths, up, sums)
    # At the gadget: terminating is worth what is given, following what was sampled.
    ratio = (
        1.0 if begun.ratio is None else config.delta * begun.ratio + 1 - config.delta
    )
    weight = begun.weight / ratio * (1 - 2 * player)
    gadget, rows = tree.gadget[place], len(tree.owner)
    values = sums.values.at[gadget + TERMINATE * rows].add(
        weight * tree.terminate[place]
    )
    values = values.at[gadget + FOLLOW * rows].add(weight * sums.estimate)
    sums = sums._replace(values=values)
    if config.baseline != "average":
        return sums
    # As if the mean of the batch came as often as the entry was visited.
    share = 1 - (1 - config.decay) ** sums.counts
    mean = sums.sums / jnp.maximum(sums.counts, 1)
    return sums._replace(baseline=state.baseline + share * (mean - state.baseline))


def _start(
    tree: SubgameTree,
    strategy: jax.Array,
    draw: jax.Array,
    targeted: jax.Array,
    player: jax.Array,
    config: MCCFRConfig,
) -> tuple[jax.Array, _Front]:
    """int32 [B], the root of each trajectory; and all trajectories there.

    Args:
      tree: the subgame.
      strategy: float [A, R], what is played.
      draw: float [B] in [0, 1).
      targeted: bool [B], who is targeted.
      player: int32 scalar, whose values are sampled.
      config: with exact averages, roots are drawn by the opponent's reach, too, for the
        resolving player's updates. Sampled averages must not depend on it.
    """
    resolves = player == tree.resolving
    gadget = tree.gadget
    follow = jnp.where(gadget < len(tree.owner) - 1, strategy[FOLLOW, gadget], 1)
    chance, total = tree.share, jnp.ones((), draw.dtype)
    if config.averaging == "exact":
        reach = jnp.where(resolves, tree.share * follow, tree.share)
        total = reach.sum()
        chance = jnp.where(total > 0, reach / jnp.where(total > 0, total, 1), chance)
    place, ratio = _locate(chance, draw), None
    if tree.target is not None:
        allowed = tree.target[tree.root]
        mass = (chance * allowed).sum()
        gain = jnp.where(mass > 0, allowed / jnp.where(mass > 0, mass, 1), 1)
        place = jnp.where(targeted, _locate(chance * gain, draw), place)
        ratio = gain[place]
    weight = jnp.full(draw.shape, total / draw.size, draw.dtype)
    own = None
    if config.averaging == "sampled":
        weight = jnp.where(resolves, weight * follow[place], weight)
        own = 1 / (draw.size * chance[place])
    return place, _Front(tree.root[place], weight, own, ratio)


def _descend(
    tree: SubgameTree,
    strategy: jax.Array,
    front: _Front,
    draw: jax.Array,
    targeted: jax.Array,
    player: jax.Array,
    config: MCCFRConfig,
) -> tuple[_Way, _Front]:
    """Chooses an action for each trajectory and moves on; those that are over stay."""
    history = front.history
    row, over = tree.row[history], tree.num_actions[history] == 0
    first, own = tree.first_child[history], tree.player[history] == player
    entries = _entries(tree, row)
    sigma = strategy.reshape(-1)[entries]
    explored = config.epsilon * tree.explore.reshape(-1)[entries]
    rho = jnp.where(own[None], (1 - config.epsilon) * sigma + explored, sigma)
    gain, likely = None, rho
    if tree.target is not None:
        actions = jnp.arange(len(rho), dtype=jnp.int32)[:, None]
        allowed = tree.target[first[None] + actions]
        mass = treeplex.sum_rows(jnp.where(allowed, rho, 0))
        gain = allowed / jnp.where(mass == 0, 1, mass)[None]
        gain = jnp.where(mass[None] > 0, gain, 1)
        likely = jnp.where(targeted[None], rho * gain, rho)
    chosen = _choose(likely, draw)
    taken = jnp.where(over, 1, take(rho, chosen))
    rate, weight, ratio, mine = taken, front.weight, None, front.own
    if front.ratio is not None and gain is not None:
        # Free and targeted trajectories together: see `descent.py`.
        ratio = front.ratio * jnp.where(over, 1, take(gain, chosen))
        mixed = config.delta * front.ratio + 1 - config.delta
        rate = taken * (config.delta * ratio + 1 - config.delta) / mixed
        weight = weight / mixed
        mine = None if mine is None else mine / mixed
    visit = _Way(history, chosen, rate, weight, mine)
    ahead = _Front(
        history=jnp.where(over, history, first + chosen),
        weight=jnp.where(own, front.weight / taken, front.weight),
        own=front.own,
        ratio=ratio,
    )
    if front.own is not None:
        played = jnp.where(own, take(sigma, chosen), 1)
        ahead = ahead._replace(own=front.own * played / taken)
    return visit, ahead


def _climb(
    tree: SubgameTree,
    strategy: jax.Array,
    baseline: jax.Array,
    visit: _Way,
    sums: _Sums,
    player: jax.Array,
    config: MCCFRConfig,
) -> _Sums:
    """Values of one depth from those below.

    Args:
      tree: the subgame.
      strategy: float [A, R], what was played.
      baseline: before this batch.
      visit: [B], one depth.
      sums: so far.
      player: int32 scalar, whose values are sampled.
      config: baselines.
    """
    history, chosen = visit.history, visit.chosen
    row, over = tree.row[history], tree.num_actions[history] == 0
    entries = _entries(tree, row)
    sigma = strategy.reshape(-1)[entries]
    actions = jnp.arange(len(sigma), dtype=jnp.int32)[:, None]
    legal = actions < tree.num_actions[history][None]
    rows = tree.first_child[history][None] + actions
    if config.baseline == "average":
        rows = entries
    followed = actions == chosen[None]
    guess = jnp.zeros_like(sigma)
    if config.baseline != "none":
        guess = jnp.where(legal, baseline[rows], 0)
    excess = (sums.estimate - take(guess, chosen)) / visit.rho
    added = guess + jnp.where(followed, excess[None], 0)
    expected = jnp.where(over, tree.utility[history], treeplex.sum_rows(sigma * added))
    weight = visit.weight * (1 - 2 * player)
    mine = jnp.where(tree.player[history] == player, weight, 0)
    if config.baseline == "none":
        values = sums.values.at[take(entries, chosen)].add(mine * excess)
    else:
        values = sums.values.at[entries].add(mine[None] * added)
    visits = sums.visits
    if visits is not None and visit.own is not None:
        own = jnp.where(tree.player[history] == player, visit.own, 0)
        visits = visits.at[row].add(own)
    sums = sums._replace(
        values=values,
        visits=visits,
        beyond=sums.beyond.at[tree.beyond[history]].add(weight * expected),
    )
    # What is over teaches nothing: the last entry is read by nobody.
    last = len(baseline) - 1
    entry = jnp.where(over, last, take(rows, chosen)) if len(baseline) else chosen
    if config.baseline in ("average", "history"):
        counts = sums.counts.at[entry].add(1)
        if config.baseline == "average":
            seen = sums.sums.at[entry].add(sums.estimate)
            sums = sums._replace(sums=seen, counts=counts)
        else:
            count = counts[entry]
            share = (1 - (1 - config.decay) ** count) / count
            learned = share * (sums.estimate - baseline[entry])
            table = sums.baseline.at[entry].add(learned)
            sums = sums._replace(baseline=table, counts=counts)
    elif config.baseline == "expected":
        table = sums.baseline.at[entry].set(sums.below)
        fresh = treeplex.sum_rows(sigma * jnp.where(legal, table[rows], 0))
        below = jnp.where(over, tree.utility[history], fresh)
        sums = sums._replace(baseline=table, below=below)
    return sums._replace(estimate=expected)


def _entries(tree: SubgameTree, row: jax.Array) -> jax.Array:
    """int32 [A, B], where flat tables have the actions of some rows."""
    width, rows = tree.uniform.shape
    return row[None] + rows * jnp.arange(width, dtype=jnp.int32)[:, None]


def _locate(chance: jax.Array, draw: jax.Array) -> jax.Array:
    """int32 [B], places drawn with probabilities [K]."""
    reached = jnp.cumsum(chance)
    draw = jnp.minimum(draw, _BELOW_ONE) * reached[-1]
    place = jnp.searchsorted(reached, draw, side="right")
    return jnp.minimum(place, len(chance) - 1).astype(jnp.int32)


def _choose(probabilities: jax.Array, draw: jax.Array) -> jax.Array:
    """int32 [B], an action of each column of [A, B], whose sums may miss one."""
    draw = jnp.minimum(draw, _BELOW_ONE) * treeplex.sum_rows(probabilities)
    below, chosen = jnp.zeros_like(draw), jnp.zeros(draw.shape, jnp.int32)
    for a in range(len(probabilities) - 1):
        below = below + probabilities[a]
        chosen = chosen + (draw >= below)
    return chosen


def _iterate(
    problem: Problem, state: SubgameState, iterations: jax.Array, *, config: MCCFRConfig
) -> SubgameState:
    return jax.lax.fori_loop(
        0, iterations, lambda _, now: step(problem, now, config), state
    )


@functools.cache
def program() -> Any:
    """`(problem, state, iterations, *, config)` to the state afterwards, jitted."""
    return jax.jit(_iterate, static_argnames="config", compiler_options=quick_options())


def programs() -> int:
    """How many programs this process has compiled for sampled subgames."""
    return int(program()._cache_size())
