"""One batch of trajectories through a game that is not compiled, down and up again.

The mathematics is that of `mccfr.trajectories`: with rho(a|h) the probability that a
trajectory at h follows a, and any baseline b,

    u(h, a) = b(h, a) + [a followed] / rho(a|h) * (u(ha) - b(h, a))
    u(h)    = sum over a of sigma(a|h) u(h, a)

are unbiased, and so is w(h) (u(h, a) - u(h)) as what h adds to the counterfactual
regret of a; w(h) is the reach of the others over the probability that a trajectory
comes by. All trajectories of a batch move together, one decision at a time, and what is
read and written are the rows of the infosets that they meet.

Regrets of a batch are all taken at the same strategies: they are added on the way up.
An infoset that is not in the table is played uniformly. Trajectories for player i
insert the infosets of i alone; with one legal action nothing is decided, and no row is
made.

**Averages** are exact and cost nothing where no trajectory comes by. Let S(s) be the
sum over iterations so far of weight times own reach of the sequence s. It grows by that
of the iteration at the empty sequence. At an infoset I below s, the strategy sigma has
been the same since a trajectory was last here, so each S(I, a) lacks m sigma(a) with
m = S(s) - taken(I), where taken(I) is what S(s) was then. A trajectory takes that in on
its way down, before regrets change; parents come before children. `strategy.of_table`
does the same for all rows.

**Baselines** guess player 0's utility after an action, one for each entry of a row: the
decayed mean of what was sampled there, by trajectories of both players. (Schmid et al.
2019 keep one table for each player; their decay is per sample, and so it is here, as if
the mean of a batch had come so often.) Chance has none.
"""

from typing import NamedTuple

import numpy as np

from spiel_cr.cfr.config import MCCFRConfig
from spiel_cr.uncompiled import strategy
from spiel_cr.uncompiled.source import Positions, Source
from spiel_cr.uncompiled.table import Table

# Draws stay below 1 by more than the rounding error of a sum of probabilities.
_BELOW_ONE = 1 - 2.0**-40


class Counts(NamedTuple):
    """What a batch met.

    Attributes:
      met: decisions of the updating player, with more than one action.
      known: those among them whose infoset was in the table before.
      value: sum over trajectories of their estimates of player 0's utility.
    """

    met: int
    known: int
    value: float


class _Front(NamedTuple):
    """All visits at one depth, n of them, ended ones included.

    Attributes:
      positions: of the visits.
      weight: float64 [n], w(h) / B.
      own: float64 [n], own reach over the probability to come here, / B; None with
        exact averages.
      sequence: int64 [n], the entry of the updating player's last action.
      depth: int64 [n], rows of the updating player on the way.
      in_tree: bool [n], False below an infoset that the trajectory has added; None
        where all are added.
    """

    positions: Positions
    weight: np.ndarray
    own: np.ndarray | None
    sequence: np.ndarray
    depth: np.ndarray
    in_tree: np.ndarray | None


class _Visit(NamedTuple):
    """The m decisions at one depth, and the k actions that are followed there.

    Attributes:
      live: int64 [m], their places in the front.
      known: int64 [m'], those that have a row, as indices in `live`.
      updated: int64 [m''], those whose regrets are updated, likewise.
      entries: int64 [A, m], the entries of their rows; anything where there is no row.
      legal: bool [A, m].
      sigma: float64 [A, m], the strategy.
      weight: float64 [m], w(h) / B.
      parent: int64 [k] in `live`, of the followed actions; None: one each, in order.
      action: int64 [k].
      rho: float64 [k].
      utility: float64 [n], of the front.
    """

    live: np.ndarray
    known: np.ndarray
    updated: np.ndarray
    entries: np.ndarray
    legal: np.ndarray
    sigma: np.ndarray
    weight: np.ndarray
    parent: np.ndarray | None
    action: np.ndarray
    rho: np.ndarray
    utility: np.ndarray


class Trajectories:
    """A batch on its way.

    Attributes:
      counts: what it has met on the way down.
    """

    def __init__(
        self,
        source: Source,
        table: Table,
        config: MCCFRConfig,
        player: int,
        random: np.random.Generator,
        *,
        weight: float,
        most_visits: int,
    ) -> None:
        """Samples a batch of trajectories for one player, down to their ends.

        Infosets are inserted, and averages of the updating player's visited infosets
        take in what they lack. Regrets and baselines stay as they are until `climb`.

        Args:
          source: of histories.
          table: of both players' infosets. The player's empty sequence has taken in
            the iteration already.
          config: scheme, exploration, baselines, averages.
          player: whose values are sampled.
          random: advanced.
          weight: of the iteration in sampled averages.
          most_visits: how many visits, of all depths together, the memory holds.

        Raises:
          ValueError: external sampling branches into more visits than that.
        """
        self._table, self._config, self._player = table, config, player
        self._source, self._random = source, random
        self._weight, self._most_visits = weight, most_visits
        self._met = self._known = 0
        self._visits: list[_Visit] = []
        size = config.batch
        share = np.full(size, 1 / size)
        front = _Front(
            source.start(size, random),
            weight=share,
            own=share if config.averaging == "sampled" else None,
            sequence=np.full(size, player),
            depth=np.zeros(size, np.int64),
            in_tree=np.ones(size, bool) if config.incremental else None,
        )
        while (front.positions.player >= 0).any():
            front = self._descend(front)
        self._ends = front.positions.utility

    def _descend(self, front: _Front) -> _Front:
        """Chooses actions at one depth, and moves on."""
        table, config, positions = self._table, self._config, front.positions
        live = np.flatnonzero(positions.player >= 0)
        mine = positions.player[live] == self._player
        count = positions.num_actions[live].astype(np.int64)
        decides = count > 1
        tried = mine & decides
        if front.in_tree is not None:
            in_tree = front.in_tree[live]
            tried &= in_tree
        row, new = self._rows(front, live, decides, tried)
        known, updated = np.flatnonzero(row >= 0), np.flatnonzero(tried & (row >= 0))
        actions = np.arange(count.max())[:, None]
        legal = actions < count
        first = table.first.take(row, mode="wrap").astype(np.int64)
        entries = first + actions
        regret = np.where(row >= 0, table.regret.take(entries), 0)
        sigma = strategy.match(regret, legal, count, config.rule.exploration)
        self._take_in(front, live, updated, row, entries, legal, sigma)
        rho = sigma
        if config.scheme == "outcome":
            mixed = (1 - config.epsilon) * sigma + config.epsilon / count
            rho = np.where(tried & legal, mixed, sigma)
        chosen = _choose(rho, self._random)
        weight = front.weight[live]
        parent, action = None, chosen
        index = np.arange(len(live))
        if config.scheme == "external" and len(updated):
            each = np.ones(len(live), np.int64)
            each[updated] = count[updated]
            rho = rho.copy()
            rho[:, updated] = 1
            parent = index = np.repeat(index, each)
            place = np.arange(len(parent)) - np.repeat(np.cumsum(each) - each, each)
            action = np.where(each[parent] > 1, place, chosen[parent])
        followed = rho[action, index]
        visit = _Visit(
            *(live, known, updated, entries, legal, sigma, weight),
            *(parent, action, followed, positions.utility),
        )
        self._keep(visit)
        mine_below = mine[index]
        sampled = np.where(mine_below, followed, 1.0)
        own = front.own
        if own is not None:
            reach = np.where(mine_below, sigma[action, index], 1.0)
            own = own[live[index]] * reach / followed
        decided = (mine & (row >= 0))[index]
        below = entries[action, index]
        if front.in_tree is not None:
            in_tree = (in_tree & ~new)[index]
        return _Front(
            self._source.step(positions, live[index], action, self._random),
            weight=weight[index] / sampled,
            own=own,
            sequence=np.where(decided, below, front.sequence[live[index]]),
            depth=front.depth[live[index]] + decided,
            in_tree=None if front.in_tree is None else in_tree,
        )

    def _rows(
        self,
        front: _Front,
        live: np.ndarray,
        decides: np.ndarray,
        tried: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """int64 [m], each decision's row or -1; bool [m], where one was missing."""
        table, positions = self._table, front.positions
        row = np.full(len(live), -1)
        some = np.flatnonzero(decides)
        row[some] = table.find(positions.key[live[some]])
        new = tried & (row < 0)
        self._met += int(np.count_nonzero(tried))
        adds = np.flatnonzero(new)
        self._known += int(np.count_nonzero(tried)) - len(adds)
        if len(adds):
            at = live[adds]
            row[adds] = table.insert(
                positions.key[at],
                positions.num_actions[at],
                front.sequence[at],
                front.depth[at],
            )
        return row, new

    def _take_in(
        self,
        front: _Front,
        live: np.ndarray,
        updated: np.ndarray,
        row: np.ndarray,
        entries: np.ndarray,
        legal: np.ndarray,
        sigma: np.ndarray,
    ) -> None:
        """Averages of the infosets that are met; regrets that may not be negative."""
        if not len(updated):
            return
        table, rows = self._table, row[updated]
        np.add.at(table.visits, rows, np.uint32(1))
        action, place = np.nonzero(legal[:, updated])
        place = updated[place]
        entry = entries[action, place]
        if self._config.rule.beta == -np.inf:
            # Duplicates write the same.
            table.regret[entry] = table.regret[entry].clip(min=0)
        played = sigma[action, place]
        if front.own is not None:
            mass = self._weight * front.own[live]
            np.add.at(table.average, entry, (mass[place] * played).astype(np.float32))
            return
        reach = table.average[front.sequence[live[updated]]]
        lacks = np.zeros(len(live))
        lacks[updated] = reach - table.taken[rows]
        # Duplicates write the same, here, too: all is read before anything is written.
        table.average[entry] = table.average[entry] + lacks[place] * played
        table.taken[rows] = reach

    def _keep(self, visit: _Visit) -> None:
        self._visits.append(visit)
        self._most_visits -= len(visit.live)
        if self._most_visits < 0:
            raise ValueError(
                f"algorithm={self._config.name!r} follows all actions of a player, and "
                f"the memory does not hold them for batch={self._config.batch}; allow "
                f"more, or choose a smaller batch, incremental=true, or an algorithm "
                f"that follows one action, such as os-mccfr"
            )

    def climb(self) -> Counts:
        """Adds regrets, and teaches baselines, from the ends to the start.

        Returns:
          What the batch has met.
        """
        table, sign = self._table, 1 - 2 * self._player
        estimate = self._ends
        learned: list[tuple[np.ndarray, np.ndarray]] = []
        for visit in reversed(self._visits):
            index = visit.parent
            if index is None:
                index = np.arange(len(visit.live))
            width = visit.sigma.shape
            excess = estimate
            guess = np.zeros(width)
            if len(table.baseline):
                has = np.zeros(width[1], bool)
                has[visit.known] = True
                guess = np.where(
                    visit.legal & has, table.baseline.take(visit.entries), 0
                ).astype(float)
                taught = has[index]
                entry = visit.entries[visit.action[taught], index[taught]]
                learned.append((entry, estimate[taught]))
                excess = estimate - guess[visit.action, index]
            values = guess
            values[visit.action, index] += excess / visit.rho
            expected = (visit.sigma * values).sum(axis=0)
            if len(visit.updated):
                gain = (values - expected) * (sign * visit.weight)
                action, place = np.nonzero(visit.legal[:, visit.updated])
                place = visit.updated[place]
                np.add.at(
                    table.regret,
                    visit.entries[action, place],
                    gain[action, place].astype(np.float32),
                )
            estimate = visit.utility.copy()
            estimate[visit.live] = expected
        if learned:
            self._learn(
                np.concatenate([entry for entry, _ in learned]),
                np.concatenate([value for _, value in learned]),
            )
        return Counts(self._met, self._known, float(estimate.sum()))

    def _learn(self, entries: np.ndarray, values: np.ndarray) -> None:
        """Baselines move towards the means of the batch's samples."""
        entry, group, count = np.unique(
            entries, return_inverse=True, return_counts=True
        )
        mean = np.bincount(group, values) / count
        share = 1 - (1 - self._config.decay) ** count
        old = self._table.baseline[entry]
        self._table.baseline[entry] = old + share * (mean - old)


def _choose(probabilities: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """int64 [m], one action of each column of float64 [A, m]."""
    total = np.cumsum(probabilities, axis=0)
    point = random.random(total.shape[1]) * _BELOW_ONE * total[-1]
    return np.count_nonzero(total <= point, axis=0)
