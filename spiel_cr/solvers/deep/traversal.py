"""A batch of trajectories in lockstep, down and up again: advantages of visits.

With rho(a|h) the probability that a trajectory at h follows a, and any guess b of
player 0's utility,

    u(h, a) = b(h, a) + [a followed] / rho(a|h) * (u(ha) - b(h, a))
    u(h)    = sum over a of sigma(a|h) u(h, a)

are unbiased. At a decision of the updating player, u(h, a) - u(h), from its own
perspective, is the sampled advantage of a. Visits come by with the probability
pi(h) xi(h): the reach of everybody else, and the updating player's own reach under
exploration. Summed with the weight 1 / xi(h) (1 for external sampling, which follows
all of its actions), advantages estimate counterfactual regrets without bias; their
weighted mean is these over the reach of the others (Brown et al. 2019, Steinberger et
al. 2020).

Signs depend on the updating player alone and never on whose turn it was before: u is
player 0's utility all the way up.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from spiel_cr.common.draws import choose, labels, points
from spiel_cr.common.network_fits import Targets
from spiel_cr.games.simulation.simulator import Positions, Simulator
from spiel_cr.solvers.deep.deep_config import DeepConfig
from spiel_cr.solvers.deep.infosets import Knowledge, Seen
from spiel_cr.solvers.deep.reservoirs import Transitions

# Positions of a chunk. They take some 300 bytes each in games that are not compiled.
MOST_POSITIONS = 1 << 20
# Trajectories that tell how many positions the first chunk will have, and what it may
# have more than they say.
_PROBES, _MARGIN = 4, 2

# Strategies float64 [m, A] from a player and what it sees.
Strategy = Callable[[int, Seen], np.ndarray]
# Player 0's utility float64 [m, A] after each action, from rows of joint information.
Critic = Callable[[np.ndarray], np.ndarray]


class Task(NamedTuple):
    """What is sampled, for one player.

    Attributes:
      source: of histories.
      knowledge: of its positions.
      strategy: of both players.
      config: how: `sampling`, `epsilon`, `values`, `importance` and `draws`.
      player: whose advantages are sampled.
      critic: guesses of utilities; None: 0 everywhere.
    """

    source: Simulator
    knowledge: Knowledge
    strategy: Strategy
    config: DeepConfig
    player: int
    critic: Critic | None = None


class Traversal(NamedTuple):
    """What a batch has found.

    Attributes:
      advantages: at visits of the updating player; own perspective, the game's units.
      strategies: of the other player at its visits, as targets.
      moves: what was played, for a critic; None where none was asked.
      positions: decisions and ends that were visited.
    """

    advantages: Targets
    strategies: Targets
    moves: Transitions | None
    positions: int


class _Depth(NamedTuple):
    """The m decisions at one depth, and the k actions that are followed there.

    Attributes:
      live: int64 [m], their places among all positions of the depth.
      is_updating_player: bool [m], those of the updating player.
      decides: bool [m], where more than one action is legal.
      seen: for each player what it sees, at its decisions in their order.
      legal: bool [m, A].
      sigma: float64 [m, A].
      weight: float64 [m], one over the updating player's reach in sampling.
      joint: rows [m, ...] of joint information; None without a critic.
      parent: int64 [k], the decision that each followed action comes from.
      action: int64 [k], OpenSpiel's.
      rho: float64 [k], how likely it was followed.
      utility: float64 [n], of all positions: player 0's where the match is over.
      player: int8 [m], who decides.
    """

    live: np.ndarray
    is_updating_player: np.ndarray
    decides: np.ndarray
    seen: tuple[Seen, Seen]
    legal: np.ndarray
    sigma: np.ndarray
    weight: np.ndarray
    joint: np.ndarray | None
    parent: np.ndarray
    action: np.ndarray
    rho: np.ndarray
    utility: np.ndarray
    player: np.ndarray


def traverse(task: Task, count: int, random: np.random.Generator) -> Traversal:
    """Samples a batch of trajectories for one player.

    Args:
      task: what is sampled.
      count: trajectories; each has a deal of its own.
      random: advanced.
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
    task: Task, count: int, random: np.random.Generator, *, most: int = MOST_POSITIONS
) -> Iterator[Traversal]:
    """As `traverse`, in chunks that need little memory each.

    How many trajectories a chunk has is said by the positions of the one before it, and
    of the first chunk by a few trajectories that are thrown away, so that estimates
    stay unbiased. Where all fits, that is one chunk with the draws of `traverse`. Else
    draws are stratified within each chunk.

    Args:
      task: what is sampled; its strategy must stay the same until the last chunk.
      count: trajectories of all chunks.
      random: advanced.
      most: positions that a chunk shall have; it may have more, where trajectories
        differ, and has a trajectory at least.
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
    task: Task, count: int, random: np.random.Generator
) -> tuple[list[_Depth], Positions]:
    """The way down of some trajectories, and the positions where the last ones end."""
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
    task: Task, positions: Positions, weight: np.ndarray, random: np.random.Generator
) -> _Depth:
    """Asks for strategies at one depth, and draws what is followed."""
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
        # All of the updating player's, one of the others'.
        followed = np.where(is_updating_player[:, None], legal, False)
        others = np.flatnonzero(~is_updating_player)
        followed[others, action[others]] = True
        parent, action = np.nonzero(followed)
        rho = np.where(is_updating_player[parent], 1, rho[parent])
    else:
        share = np.where(is_updating_player & (num_legal > 1), config.epsilon, 0)[
            :, None
        ]
        mixed = (1 - share) * sigma + share * legal / num_legal[:, None]
        parent, action = np.arange(len(live)), choose(mixed, drawn)
        rho = mixed[parent, action]
    joint = None if task.critic is None else knowledge.joint(positions, live)
    return _Depth(
        *(
            live,
            is_updating_player,
            num_legal > 1,
            (seen[0], seen[1]),
            legal,
            sigma,
            weight[live],
        ),
        *(joint, parent, action, rho, positions.utility, acts),
    )


def _climb(task: Task, way: list[_Depth], ends: np.ndarray) -> list[np.ndarray]:
    """For each depth float64 [m, A], advantages of the updating player."""
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
    """The visits of one player where something is decided, of all depths."""
    parts = []
    for depth, target in zip(way, targets, strict=True):
        seen = depth.seen[player]
        acts = depth.is_updating_player if is_updating else ~depth.is_updating_player
        decides = depth.decides[acts]
        places = np.flatnonzero(acts)[decides]
        parts.append(
            Targets(
                seen.rows[decides],
                seen.legal[decides],
                target[places],
                depth.weight[places],
            )
        )
    if not parts:  # every match was over before a decision
        nothing = np.zeros((0, num_actions))
        return Targets(
            np.zeros(0, np.int64), nothing.astype(bool), nothing, np.zeros(0)
        )
    return Targets(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def _moves(way: list[_Depth], last: Positions, num_actions: int) -> Transitions:
    """Every followed action, and what came after it."""
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
        parts.append(
            Transitions(
                *(
                    rows_before,
                    depth.action.astype(np.int32),
                    utility.astype(np.float32),
                ),
                *(acts, after, legal),
            )
        )
    return Transitions(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
