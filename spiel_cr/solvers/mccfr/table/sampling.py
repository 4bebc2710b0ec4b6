"""Batches of trajectories in a tree-free game: a descent and a backward pass.

The mathematics is that of `solvers.mccfr.trajectories`. With rho(a|h) the probability
that a trajectory at h follows a, and any baseline b, the estimates

    u(h, a) = b(h, a) + [a followed] / rho(a|h) * (u(ha) - b(h, a))
    u(h)    = sum over a of sigma(a|h) u(h, a)

are unbiased. Let w(h) be the reach of the others divided by the probability that a
trajectory visits h. Then w(h) (u(h, a) - u(h)) is an unbiased estimate of the
contribution of h to the counterfactual regret of a. All trajectories of a batch move
together, one decision at a time. They read and write only the rows of the infosets that
they visit.

All regrets of a batch use the same strategies, because they are added in the backward
pass. The strategy at an infoset that is not in the table is uniform. Trajectories for
player i insert only infosets of player i. Decisions with one legal action need no row.

**Averages** are exact, and infosets that no trajectory visits cost nothing. Let S(s) be
the sum of weight times the player's own reach of the sequence s over the iterations so
far. In each iteration, S of the empty sequence increases by the iteration's weight. Let
I be an infoset after s. Its strategy sigma has not changed since a trajectory last
visited I, so each S(I, a) lacks m sigma(a) with m = S(s) - taken(I), where taken(I)
is the value of S(s) at that visit. A trajectory adds this part during the descent,
before regrets change. Parents precede children. `strategy.of_table` does the same for
all rows.

Sampled averages (`averaging=sampled`) of external sampling add weight times sigma at
the other player's decisions (Lanctot et al. 2009). The other player's actions are
sampled from its strategy, so the number of visits is proportional to its own reach.
Sampled averages of outcome sampling add weight times sigma over the probability of the
sampled actions at each visit, as OpenSpiel's do. A history to which the other player's
strategy never leads is never visited. At an infoset, the weight of an iteration is
therefore own reach times the chance probability of only those histories that the other
player can reach in this iteration. If this set changes between iterations, which
happens once the other player stops playing some actions, these averages are biased.

**Baselines** estimate player 0's utility after an action, with one entry for each entry
of a row: the decayed mean of the values sampled there, by trajectories of both players.
Schmid et al. 2019 use one table for each player. Their decay is per sample, and so is
this one: the mean of a batch counts as often as the batch has samples. Chance nodes
have no baselines.
"""

from typing import NamedTuple

import numpy as np

from spiel_cr.common.draws import choose
from spiel_cr.games.simulation import recall_checks
from spiel_cr.games.simulation.simulator import Positions, Simulator
from spiel_cr.solvers.cfr.cfr_config import MCCFRConfig
from spiel_cr.solvers.mccfr.table import strategy
from spiel_cr.solvers.mccfr.table.table import InfosetTable

# Importance weights grow with every move of a match and would overflow in matches of a
# thousand moves. They are clipped to this maximum, which biases estimates only below
# histories with a sampling probability of less than its reciprocal. With an iteration's
# weight (below 2^32) and 2^31 iterations, averages and regrets stay below 2^128, the
# range of float32.
_MOST_WEIGHT, _MOST_GAIN = 2.0**64, 2.0**96


class _DepthVisits(NamedTuple):
    """All n visits at one depth, including finished matches.

    Attributes:
      positions: Positions of the visits.
      weight: Importance weight w(h) / B, float64 [n].
      player_reach: Own reach divided by the probability that both players' sampled
        actions lead here and by B, float64 [n]; None except for sampled averages of
        outcome sampling. (The probability of chance is the same in all iterations and
        cancels.)
      sequence: Entry of the updating player's last action, int64 [n].
      depth: Number of earlier rows of the updating player, int64 [n].
      in_tree: False below an infoset that the trajectory has added, bool [n]; None if
        all infosets are added.
    """

    positions: Positions
    weight: np.ndarray
    player_reach: np.ndarray | None
    sequence: np.ndarray
    depth: np.ndarray
    in_tree: np.ndarray | None


class _Decisions(NamedTuple):
    """The m decisions of a batch at one depth.

    Attributes:
      live: Indices of the decisions in the visits, int64 [m].
      is_updating_player: Mask of the updating player's decisions, bool [m].
      row: Row of the infoset, int64 [m]; -1 if it has none.
      new: Mask of the updating player's decisions without a row before, bool [m].
      tried: Mask of decisions where the updating player has a choice and explores, bool
        [m].
      updated: Indices in `live` of the decisions to update, int64 [u]: those in `tried`
        with a row.
      num_actions: Number of legal actions, int64 [m].
      legal: Mask of legal actions, bool [A, m].
      entries: Entries of the rows, int64 [A, m]; arbitrary without a row.
      sigma: Strategy, float64 [A, m].
      weight: Importance weight w(h) / B, float64 [m].
      utility: Player 0's utility of finished matches in the visits, float64 [n].
    """

    live: np.ndarray
    is_updating_player: np.ndarray
    row: np.ndarray
    new: np.ndarray
    tried: np.ndarray
    updated: np.ndarray
    num_actions: np.ndarray
    legal: np.ndarray
    entries: np.ndarray
    sigma: np.ndarray
    weight: np.ndarray
    utility: np.ndarray


class _Followed(NamedTuple):
    """The k followed actions at one depth, in the order of the next visits.

    Attributes:
      parent: Decision of each action, int64 [k].
      action: Followed action, int64 [k].
      rho: Probability with which it was followed, float64 [k].
    """

    parent: np.ndarray
    action: np.ndarray
    rho: np.ndarray


class Trajectories:
    """Batch of trajectories for one player's update."""

    def __init__(
        self,
        source: Simulator,
        table: InfosetTable,
        config: MCCFRConfig,
        player: int,
        random: np.random.Generator,
        *,
        weight: float,
        most_visits: int,
    ) -> None:
        """Sample a batch of trajectories for one player until all matches have ended.

        Infosets are inserted, and the averages of the updating player's visited
        infosets are updated. Regrets and baselines do not change until `climb`.

        Args:
          source: Simulator of the game.
          table: Infosets of both players. The sum of the player's empty sequence must
            already include the iteration.
          config: Settings of the sampling scheme, exploration, baselines and averages.
          player: Player whose values are sampled.
          random: Random number generator, which is advanced.
          weight: Weight of the iteration in sampled averages.
          most_visits: Maximum number of visits of all depths that fit in memory. If
            following all actions could exceed it, external sampling follows one action,
            as outcome sampling does.

        Raises:
          ImperfectRecallError: If an infoset follows different own actions.
          InvalidGameError: If an infoset has different numbers of actions.
        """
        self._source, self._table, self._config = source, table, config
        self._player, self._random = player, random
        self._weight, self._most_visits = weight, most_visits
        self._num_decisions = self._num_hits = 0
        self._narrowed = False
        self._way: list[tuple[_Decisions, _Followed]] = []
        size = config.batch
        share = np.full(size, 1 / size)
        by_reach = config.averaging == "sampled" and config.scheme == "outcome"
        visits = _DepthVisits(
            source.start(size, random),
            weight=share,
            player_reach=share if by_reach else None,
            sequence=np.full(size, player),
            depth=np.zeros(size, np.int64),
            in_tree=np.ones(size, bool) if config.incremental else None,
        )
        while (visits.positions.player >= 0).any():
            decisions = self._look_up(visits)
            self._take_in(visits, decisions)
            followed = self._follow(decisions)
            self._way.append((decisions, followed))
            visits = self._advance(visits, decisions, followed)
        self._ends = visits.positions.utility

    def _look_up(self, visits: _DepthVisits) -> _Decisions:
        """Find the rows of all decisions, insert missing rows, compute strategies."""
        table, positions = self._table, visits.positions
        live = np.flatnonzero(positions.player >= 0)
        is_updating_player = positions.player[live] == self._player
        count = positions.num_actions[live].astype(np.int64)
        decides = np.flatnonzero(count > 1)
        tried = is_updating_player & (count > 1)
        if visits.in_tree is not None:
            tried &= visits.in_tree[live]
        row = np.full(len(live), -1)
        row[decides] = table.find(positions.key[live[decides]])
        new = tried & (row < 0)
        adds = np.flatnonzero(new)
        if len(adds):
            at = live[adds]
            row[adds] = table.insert(
                positions.key[at], count[adds], visits.sequence[at], visits.depth[at]
            )
        self._num_decisions += int(np.count_nonzero(tried))
        self._num_hits += int(np.count_nonzero(tried)) - len(adds)
        actions = np.arange(count.max())[:, None]
        legal = actions < count
        has = row >= 0
        entries = table.first.take(row, mode="wrap").astype(np.int64) + actions
        regret = np.where(has, table.regret.take(entries), 0)
        return _Decisions(
            live=live,
            is_updating_player=is_updating_player,
            row=row,
            new=new,
            tried=tried,
            updated=np.flatnonzero(tried & has),
            num_actions=count,
            legal=legal,
            entries=entries,
            sigma=strategy.match(regret, legal, count, self._config.rule.exploration),
            weight=visits.weight[live],
            utility=positions.utility,
        )

    def _take_in(self, visits: _DepthVisits, decisions: _Decisions) -> None:
        """Update the averages of the infosets that are updated."""
        table, updated = self._table, decisions.updated
        rows = decisions.row[updated]
        places = decisions.live[updated]
        sequence = visits.sequence[places]
        has, sampled = decisions.row >= 0, self._config.averaging == "sampled"
        recall_checks.check_recall(
            self._source,
            same_actions=table.count[decisions.row[has]] == decisions.num_actions[has],
            # Sampled averages do not depend on earlier actions.
            same_sequence=sampled or table.parent[rows] == sequence,
        )
        np.add.at(table.visits, rows, np.uint32(1))
        missing = np.zeros(len(decisions.live))
        if sampled:
            reach = visits.player_reach
            share = decisions.weight if reach is None else reach[decisions.live]
            if self._config.scheme == "external":
                updated = np.flatnonzero(~decisions.is_updating_player & has)
            missing[updated] = self._weight * share[updated]
            entry, place, sigma = _flat(decisions, updated)
            entries, group, _ = _groups(entry)
            table.average[entries] += np.bincount(group, missing[place] * sigma)
            return
        entry, place, sigma = _flat(decisions, updated)
        reach = table.average[sequence]
        missing[updated] = reach - table.taken[rows]
        # Duplicates write equal values, because all values are read first.
        table.average[entry] = table.average[entry] + missing[place] * sigma
        table.taken[rows] = reach

    def _follow(self, decisions: _Decisions) -> _Followed:
        """Sample actions; external sampling follows all actions at updated infosets."""
        config, sigma, updated = self._config, decisions.sigma, decisions.updated
        mixed = (1 - config.epsilon) * sigma + config.epsilon / decisions.num_actions
        rho = np.where(decisions.tried & decisions.legal, mixed, sigma)
        points = self._random.random(len(decisions.live))
        parent, action = np.arange(len(points)), choose(rho, points, axis=0)
        self._most_visits -= len(parent)
        if config.scheme == "external" and len(updated):
            each = np.ones(len(parent), np.int64)
            each[updated] = decisions.num_actions[updated]
            if self._holds(int(each.sum())):
                rho[:, updated] = 1
                parent = np.repeat(parent, each)
                place = np.arange(len(parent)) - (np.cumsum(each) - each)[parent]
                action = np.where(each[parent] > 1, place, action[parent])
        return _Followed(parent, action, rho[action, parent])

    def _holds(self, visits: int) -> bool:
        """Return True if some visits and all visits below them fit in memory."""
        left = max(1, self._source.game.max_game_length() - len(self._way))
        fits = visits * left <= self._most_visits
        self._narrowed |= not fits
        return fits

    def _advance(
        self, visits: _DepthVisits, decisions: _Decisions, followed: _Followed
    ) -> _DepthVisits:
        """Play the followed actions and return the visits at the next depth."""
        parent, action, rho = followed
        places = decisions.live[parent]
        is_updating_player = decisions.is_updating_player[parent]
        player_reach = visits.player_reach
        if player_reach is not None:
            reach = np.where(is_updating_player, decisions.sigma[action, parent], 1)
            player_reach = np.minimum(player_reach[places] * reach / rho, _MOST_WEIGHT)
        decided = is_updating_player & (decisions.row >= 0)[parent]
        below = decisions.entries[action, parent]
        in_tree = visits.in_tree
        if in_tree is not None:
            in_tree = in_tree[places] & ~decisions.new[parent]
        # The others sample from sigma, so for their actions sigma / rho is 1.
        weight = decisions.weight[parent] / np.where(is_updating_player, rho, 1)
        return _DepthVisits(
            self._source.step(visits.positions.states[places], action, self._random),
            weight=np.minimum(weight, _MOST_WEIGHT),
            player_reach=player_reach,
            sequence=np.where(decided, below, visits.sequence[places]),
            depth=visits.depth[places] + decided,
            in_tree=in_tree,
        )

    def climb(self) -> tuple[int, int, bool]:
        """Add regrets and update baselines from the last depth to the first.

        Returns:
          The number of decisions of the updating player with more than one action, the
          number of those whose infoset was in the table before, and True if external
          sampling has followed only one action at some decision because of the memory
          limit.
        """
        estimate, sign = self._ends, 1 - 2 * self._player
        learned: list[tuple[np.ndarray, np.ndarray]] = []
        gains: list[np.ndarray] = []
        for decisions, (parent, action, rho) in reversed(self._way):
            values = self._baselines(decisions)
            if len(self._table.baseline):
                taught = decisions.row[parent] >= 0
                entry = decisions.entries[action[taught], parent[taught]]
                learned.append((entry, estimate[taught]))
            values[action, parent] += (estimate - values[action, parent]) / rho
            expected = (decisions.sigma * values).sum(axis=0)
            expected = expected.clip(-_MOST_WEIGHT, _MOST_WEIGHT)
            gain = (values - expected) * (sign * decisions.weight)
            gains.append(gain[:, decisions.updated])
            estimate = decisions.utility.copy()
            estimate[decisions.live] = expected
        self._add_regrets(gains[::-1])
        if learned:
            entries, samples = zip(*learned, strict=True)
            self._learn(np.concatenate(entries), np.concatenate(samples))
        return (self._num_decisions, self._num_hits, self._narrowed)

    def _baselines(self, decisions: _Decisions) -> np.ndarray:
        """Return estimates of player 0's utility after each action, float64 [A, m]."""
        table = self._table.baseline
        if not len(table):
            return np.zeros(decisions.sigma.shape)
        has = decisions.legal & (decisions.row >= 0)
        return np.where(has, table.take(decisions.entries), 0).astype(np.float64)

    def _add_regrets(self, gains: list[np.ndarray]) -> None:
        """Add the regrets of all visits of an infoset to its row.

        A batch visits the same infoset many times, with small regrets. They are first
        summed in float64.

        Args:
          gains: Regrets of the updated infosets at each depth, float64 [A, u] each.
        """
        table, way = self._table, self._way
        if not way:  # every match of the batch ended before a decision
            return
        rows = [decisions.row[decisions.updated] for decisions, _ in way]
        rows_visited, group, _ = _groups(np.concatenate(rows))
        width = max(len(gain) for gain in gains)
        sums = np.zeros((width, len(rows_visited)))
        ends = np.cumsum([len(row) for row in rows])
        for gain, end in zip(gains, ends, strict=True):
            at = group[end - gain.shape[1] : end]
            for summed, gained in zip(sums, gain, strict=False):
                summed += np.bincount(at, gained, len(rows_visited))
        action, at = np.nonzero(np.arange(width)[:, None] < table.count[rows_visited])
        entry = table.first[rows_visited][at].astype(np.int64) + action
        gained = sums[action, at].clip(-_MOST_GAIN, _MOST_GAIN)
        regret = table.regret[entry] + gained
        if self._config.rule.beta == -np.inf:
            regret = regret.clip(min=0)
        table.regret[entry] = regret

    def _learn(self, entries: np.ndarray, values: np.ndarray) -> None:
        """Move baselines towards the means of the batch's samples."""
        entry, group, count = _groups(entries)
        mean = np.bincount(group, values) / count
        share = 1 - (1 - self._config.decay) ** count
        old = self._table.baseline[entry]
        self._table.baseline[entry] = old + share * (mean - old)


def _groups(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the distinct numbers of int64 [n], the group of each, and group sizes."""
    return np.unique(numbers, return_inverse=True, return_counts=True)


def _flat(
    decisions: _Decisions, some: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the strategies of some decisions as one vector.

    Args:
      decisions: Decisions at one depth.
      some: Decisions that have rows, int64 [k].

    Returns:
      The entries, the decisions that they belong to, and probabilities.
    """
    action, place = np.nonzero(decisions.legal[:, some])
    place = some[place]
    return decisions.entries[action, place], place, decisions.sigma[action, place]
