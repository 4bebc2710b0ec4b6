"""Sampling of batches of trajectories in lockstep, and advantages at their decisions.

Let rho(a|h) be the probability that a trajectory at h follows a, and b any estimate of
player 0's utility. Then

    u(h, a) = b(h, a) + [a followed] / rho(a|h) * (u(ha) - b(h, a))
    u(h)    = sum over a of sigma(a|h) u(h, a)

are unbiased. At a decision of the updating player, u(h, a) - u(h), from the player's
own perspective, is the sampled advantage of a. A trajectory visits h with probability
pi(h) xi(h): the reach of the others, and the updating player's own reach under
exploration. Sums of advantages with the weight 1 / xi(h) are unbiased estimates of
counterfactual regrets. (The weight is 1 in external sampling, which follows all of the
player's actions.) The weighted mean of advantages is the regret divided by the reach of
the others (Brown et al. 2019, Steinberger et al. 2020).

The sign depends only on the updating player and never on the player who acts: u is
player 0's utility throughout the backward pass.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from spiel_cr.common.draws import choose, labels, points
from spiel_cr.common.network_fits import Targets
from spiel_cr.games.simulation.simulator import Positions, Simulator
from spiel_cr.solvers.deep.deep_config import DeepConfig
from spiel_cr.solvers.deep.infosets import ActingInfosets, Knowledge
from spiel_cr.solvers.deep.reservoirs import Transitions

# Maximum number of positions of a chunk. Each uses about 300 bytes in tree-free games.
MOST_POSITIONS = 1 << 20
# Number of trajectories that are sampled to predict the positions per trajectory of the
# first chunk, and a safety factor for the prediction.
_PROBES, _MARGIN = 4, 2

# Function that returns strategies, float64 [m, A], from a player and its information.
Strategy = Callable[[int, ActingInfosets], np.ndarray]
# Function that returns player 0's utility after each action, float64 [m, A], from rows
# of joint information.
Critic = Callable[[np.ndarray], np.ndarray]


class PlayerSampling(NamedTuple):
    """Settings of the sampling for one player.

    Attributes:
      source: Simulator of the game.
      knowledge: Information at the simulator's positions.
      strategy: Strategy of both players.
      config: Settings, of which sampling uses `sampling`, `epsilon`, `values`,
        `importance` and `draws`.
      player: Player whose advantages are sampled.
      critic: Estimates of utilities; None: 0 everywhere.
    """

    source: Simulator
    knowledge: Knowledge
    strategy: Strategy
    config: DeepConfig
    player: int
    critic: Critic | None = None


class Traversal(NamedTuple):
    """Result of a batch.

    Attributes:
      advantages: Advantages at visits of the updating player, from the player's own
        perspective, in the game's units.
      strategies: Strategies of the other player at its visits, as targets.
      moves: Followed actions, for a critic; None if there is no critic.
      positions: Number of visited decisions and terminal nodes.
    """

    advantages: Targets
    strategies: Targets
    moves: Transitions | None
    positions: int


class _Depth(NamedTuple):
    """The m decisions at one depth, and the k actions that are followed there.

    Attributes:
      live: Indices of the decisions among all positions of the depth, int64 [m].
      is_updating_player: Mask of the updating player's decisions, bool [m].
      decides: Mask of decisions with more than one legal action, bool [m].
      seen: Information of each player at its decisions, in their order.
      legal: Mask of legal actions, bool [m, A].
      sigma: Strategy, float64 [m, A].
      weight: Reciprocal of the updating player's reach in sampling, float64 [m].
      joint: Rows of joint information, [m, ...]; None without a critic.
      parent: Decision of each followed action, int64 [k].
      action: Followed action, numbered as in OpenSpiel, int64 [k].
      rho: Probability of following the action, float64 [k].
      utility: Player 0's utility at finished matches among all positions, float64 [n].
      player: Player who decides, int8 [m].
    """

    live: np.ndarray
    is_updating_player: np.ndarray
    decides: np.ndarray
    seen: tuple[ActingInfosets, ActingInfosets]
    legal: np.ndarray
    sigma: np.ndarray
    weight: np.ndarray
    joint: np.ndarray | None
    parent: np.ndarray
    action: np.ndarray
    rho: np.ndarray
    utility: np.ndarray
    player: np.ndarray


def traverse(
    task: PlayerSampling, count: int, random: np.random.Generator
) -> Traversal:
    """Sample a batch of trajectories for one player.

    Args:
      task: Settings of the sampling.
      count: Number of trajectories, each with an independent deal.
      random: Random number generator, which is advanced.
    """
    way, positions = _descend(task, count, random)
    touched = count + sum(len(depth.parent) for depth in way)
    moves = None
    if task.critic is not None and way:
        moves = _moves(way, positions, task.knowledge.num_actions)
    gains = _climb(task, way, positions.utility)
    if not task.config.importance:
        way = [depth._replace(weight=np.ones(len(depth.live))) for depth in way]
    sigmas, actions = [depth.sigma for depth in way], task.knowledge.num_actions
    return Traversal(
        _gather(way, gains, task.player, actions, is_updating=True),
        _gather(way, sigmas, 1 - task.player, actions, is_updating=False),
        moves,
        touched,
    )


def in_chunks(
    task: PlayerSampling,
    count: int,
    random: np.random.Generator,
    *,
    most: int = MOST_POSITIONS,
) -> Iterator[Traversal]:
    """Yield the results of `traverse` in chunks that need little memory each.

    The number of trajectories of a chunk depends on the number of positions of the
    previous chunk. For the first chunk, a few additional trajectories are sampled and
    discarded, so that estimates remain unbiased. If all trajectories fit, there is one
    chunk with the random numbers of `traverse`. Otherwise, draws are stratified within
    each chunk.

    Args:
      task: Settings of the sampling; the strategy must not change before the last
        chunk.
      count: Number of trajectories of all chunks.
      random: Random number generator, which is advanced.
      most: Target for the number of positions of a chunk. A chunk has at least one
        trajectory, and it may exceed the target because trajectories differ.
    """
    each = 0.0
    length = task.source.game.max_game_length()
    wide = 1
    if task.config.sampling == "external":
        wide = task.source.max_actions ** min(length, 64)
    if count > _PROBES and count * (length + 1) * wide > most:
        probe = task._replace(critic=None)
        way, _ = _descend(probe, _PROBES, np.random.default_rng(0))
        each = _MARGIN * (1 + sum(len(depth.parent) for depth in way) / _PROBES)
    while count:
        size = count if count * each <= most else max(1, int(most / each))
        traversal = traverse(task, size, random)
        yield traversal
        each = traversal.positions / size
        count -= size


def _descend(
    task: PlayerSampling, count: int, random: np.random.Generator
) -> tuple[list[_Depth], Positions]:
    """Sample trajectories; return their decisions by depth and final positions."""
    positions = task.source.start(count, random)
    weight = np.ones(count)
    way: list[_Depth] = []
    while (positions.player >= 0).any():
        depth = _decide(task, positions, weight, random)
        way.append(depth)
        parent, action = depth.parent, depth.action
        rank = np.cumsum(depth.legal, axis=1)[parent, action] - 1
        positions = task.source.step(positions.states[depth.live[parent]], rank, random)
        is_updating_player = depth.is_updating_player[parent]
        weight = depth.weight[parent] / np.where(is_updating_player, depth.rho, 1)
    return way, positions


def _decide(
    task: PlayerSampling,
    positions: Positions,
    weight: np.ndarray,
    random: np.random.Generator,
) -> _Depth:
    """Query the strategies at one depth and sample the actions to follow."""
    knowledge, config = task.knowledge, task.config
    live = np.flatnonzero(positions.player >= 0)
    acts = positions.player[live]
    legal = np.zeros((len(live), knowledge.num_actions), bool)
    sigma = np.zeros(legal.shape)
    seen = []
    for one in range(2):
        places = np.flatnonzero(acts == one)
        seen_by_player = knowledge.seen(positions, live[places], one)
        seen.append(seen_by_player)
        if len(places):
            legal[places] = seen_by_player.legal
            sigma[places] = task.strategy(one, seen_by_player)
    is_updating_player = acts == task.player
    stratified = config.draws == "stratified"
    drawn = points(labels(positions.key[live]), random, stratified=stratified)
    num_legal = legal.sum(axis=1)
    if config.sampling == "external":
        parent = np.arange(len(live))
        action = choose(sigma, drawn)
        rho = sigma[parent, action]
        # All actions of the updating player are followed, and one of the others.
        followed = np.where(is_updating_player[:, None], legal, False)
        others = np.flatnonzero(~is_updating_player)
        followed[others, action[others]] = True
        parent, action = np.nonzero(followed)
        rho = np.where(is_updating_player[parent], 1, rho[parent])
    else:
        explores = (is_updating_player & (num_legal > 1))[:, None]
        share = np.where(explores, config.epsilon, 0)
        mixed = (1 - share) * sigma + share * legal / num_legal[:, None]
        parent, action = np.arange(len(live)), choose(mixed, drawn)
        rho = mixed[parent, action]
    joint = None if task.critic is None else knowledge.joint(positions, live)
    return _Depth(
        *(live, is_updating_player, num_legal > 1, (seen[0], seen[1]), legal, sigma),
        weight[live],
        *(joint, parent, action, rho, positions.utility, acts),
    )


def _climb(
    task: PlayerSampling, way: list[_Depth], ends: np.ndarray
) -> list[np.ndarray]:
    """Return the updating player's advantages at each depth, float64 [m, A]."""
    estimate, sign = ends, 1 - 2 * task.player
    gains = []
    for depth in reversed(way):
        parent, action = depth.parent, depth.action
        values = np.zeros(depth.sigma.shape)
        if task.critic is not None and depth.joint is not None:
            values = np.where(depth.legal, task.critic(depth.joint), 0)
        if task.config.values != "critic":
            guess = values[parent, action]
            values[parent, action] += (estimate - guess) / depth.rho
        expected = (depth.sigma * values).sum(axis=1)
        gains.append(sign * (values - expected[:, None]))
        estimate = depth.utility.copy()
        estimate[depth.live] = expected
    return gains[::-1]


def _gather(
    way: list[_Depth],
    targets: list[np.ndarray],
    player: int,
    num_actions: int,
    *,
    is_updating: bool,
) -> Targets:
    """Return the visits of one player with more than one action, of all depths."""
    parts = []
    for depth, target in zip(way, targets, strict=True):
        seen = depth.seen[player]
        acts = depth.is_updating_player if is_updating else ~depth.is_updating_player
        decides = depth.decides[acts]
        places = np.flatnonzero(acts)[decides]
        rows, legal = seen.rows[decides], seen.legal[decides]
        parts.append(Targets(rows, legal, target[places], depth.weight[places]))
    if not parts:  # every match ended before a decision
        rows, nothing = np.zeros(0, np.int64), np.zeros((0, num_actions))
        return Targets(rows, nothing.astype(bool), nothing, np.zeros(0))
    return Targets(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def _moves(way: list[_Depth], last: Positions, num_actions: int) -> Transitions:
    """Return every followed action together with the next decision."""
    parts = []
    for number, depth in enumerate(way):
        count = len(depth.parent)
        rows = depth.joint
        assert rows is not None
        rows_before = rows[depth.parent]
        acts = np.full(count, -1, np.int8)
        legal = np.zeros((count, num_actions), bool)
        after = np.zeros_like(rows_before)
        utility = last.utility
        if number + 1 < len(way):
            following = way[number + 1]
            utility = following.utility
            acts[following.live] = following.player
            legal[following.live] = following.legal
            after[following.live] = following.joint
        action, utility = depth.action.astype(np.int32), utility.astype(np.float32)
        parts.append(Transitions(rows_before, action, utility, acts, after, legal))
    return Transitions(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
