"""What networks are fitted to: samples of visits, sums per infoset, transitions."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from spiel_cr.common.fits import Targets


def joined(chunks: Iterable[Targets]) -> Targets:
    """The visits of several chunks as one.

    Args:
      chunks: one at least.
    """
    first, *others = chunks
    if not others:
        return first
    arrays = zip(first, *others, strict=True)
    return Targets(*(np.concatenate(own) for own in arrays))


class Reservoir:
    """A uniform sample of all visits so far, without replacement (Vitter 1985, R).

    Targets are kept in single precision.

    A batch of visits is taken in at once: visit number i (from 1) goes to place i - 1
    while there is room; later to a uniformly drawn place of the first i, if that is one
    of the reservoir's. Where two of a batch draw one place, the later one stays.

    Attributes:
      capacity: the most visits that are kept.
      met: visits so far.
    """

    def __init__(self, capacity: int) -> None:
        """Is empty; room is taken with the first visits.

        Args:
          capacity: the most visits that are kept.
        """
        self.capacity, self.met = capacity, 0
        self._arrays: list[np.ndarray] = []

    def __len__(self) -> int:
        return min(self.met, self.capacity)

    def add(self, visits: Targets, random: np.random.Generator) -> None:
        """Takes in a batch of visits.

        Args:
          visits: of it.
          random: advanced.
        """
        count = len(visits.weight)
        if not count:
            return
        visits = visits._replace(target=visits.target.astype(np.float32))
        if not self._arrays:
            self._arrays = [own[:0].copy() for own in visits]
        self._grow(min(self.capacity, self.met + count))
        number = self.met + np.arange(count)
        place = np.where(
            number < self.capacity,
            number,
            (random.random(count) * (number + 1)).astype(np.int64),
        )
        kept = np.flatnonzero(place < self.capacity)
        for own, new in zip(self._arrays, visits, strict=True):
            # Of equal places the last one is written last.
            own[place[kept]] = new[kept]
        self.met += count

    def _grow(self, size: int) -> None:
        """Makes room, twice as much each time."""
        room = len(self._arrays[0])
        if size <= room:
            return
        room = min(self.capacity, max(size, 2 * room, 1024))
        for k, own in enumerate(self._arrays):
            larger = np.zeros((room, *own.shape[1:]), own.dtype)
            larger[: len(self)] = own[: len(self)]
            self._arrays[k] = larger

    def targets(self) -> Targets:
        """All that is kept; views, valid until the next visits come."""
        return Targets(*(own[: len(self)] for own in self._arrays))

    def arrays(self) -> dict[str, np.ndarray]:
        """All there is, for `restore`."""
        named = zip(
            Targets._fields, self.targets() if self._arrays else (), strict=False
        )
        return {"met": np.array(self.met), **dict(named)}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Puts back what `arrays` gave.

        Raises:
          ValueError: it is not of such a reservoir.
        """
        met = int(arrays["met"])
        names = Targets._fields
        if met < 0 or (
            met
            and any(
                name not in arrays or len(arrays[name]) != min(met, self.capacity)
                for name in names
            )
        ):
            raise ValueError("the reservoir has another size")
        self.met = met
        self._arrays = [arrays[name].copy() for name in names] if met else []


class Sums:
    """Sums of weight and of weight · target per infoset of a compiled game.

    They are sufficient statistics of the squared loss on all visits there ever were.

    Attributes:
      legal: bool [I, A].
      total: float64 [I, A], the sum of weight · target.
      weight: float64 [I], the sum of weights.
    """

    def __init__(self, legal: np.ndarray) -> None:
        """Starts at zero.

        Args:
          legal: bool [I, A].
        """
        self.legal = legal
        self.total = np.zeros(legal.shape)
        self.weight = np.zeros(len(legal))

    def add(self, visits: Targets) -> None:
        """Adds visits; their rows are infosets."""
        count = len(self.weight)
        self.weight += np.bincount(visits.rows, visits.weight, count)
        for action in range(self.legal.shape[1]):
            target = np.where(visits.legal[:, action], visits.target[:, action], 0)
            gain = visits.weight * target
            self.total[:, action] += np.bincount(visits.rows, gain, count)

    def discount(self, factor: float) -> None:
        """Keeps what is positive, times a factor; weights shrink alike."""
        self.total = np.maximum(self.total, 0) * factor
        self.weight = self.weight * factor

    def mean(self) -> np.ndarray:
        """float64 [I, A], the weighted mean target; 0 where there was no visit."""
        known = np.where(self.weight > 0, self.weight, 1)
        mean: np.ndarray = self.total / known[:, None]
        return mean

    def targets(self) -> Targets:
        """A row per infoset."""
        rows = np.arange(len(self.weight))
        return Targets(rows, self.legal, self.mean(), self.weight)

    def arrays(self) -> dict[str, np.ndarray]:
        """All there is, for `restore`."""
        return {"total": self.total, "weight": self.weight}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Puts back what `arrays` gave.

        Raises:
          ValueError: it is not of such a game.
        """
        total, weight = arrays["total"], arrays["weight"]
        if total.shape != self.total.shape or weight.shape != self.weight.shape:
            raise ValueError("the sums are of another game")
        self.total, self.weight = total.copy(), weight.copy()


def per_infoset(visits: Targets, legal: np.ndarray) -> Targets:
    """The weighted mean of visits at each infoset of a compiled game.

    The squared loss (and cross-entropy) on the result differs from that on the visits
    by a constant.

    Args:
      visits: their rows are infosets.
      legal: bool [I, A].
    """
    sums = Sums(legal)
    sums.add(visits)
    return sums.targets()


def balanced(targets: Targets, power: float) -> Targets:
    """Targets whose weights are taken to a power, where anything is known.

    Args:
      targets: a row per infoset of a compiled game.
      power: of the weights, see `config.DeepConfig.balance`.
    """
    known = targets.weight > 0
    weight = np.where(known, targets.weight, 1) ** power * known
    return targets._replace(weight=weight)


class Transitions(NamedTuple):
    """Moves that a critic learns from.

    Attributes:
      rows: [n, ...], joint information.
      action: int32 [n], OpenSpiel's, what was played.
      utility: float32 [n], player 0's where the game was over then, else 0.
      player: int8 [n], who decides next; negative: the game was over.
      next_rows: [n, ...], those after the move; anything where the game was over.
      next_legal: bool [n, A], there.
    """

    rows: np.ndarray
    action: np.ndarray
    utility: np.ndarray
    player: np.ndarray
    next_rows: np.ndarray
    next_legal: np.ndarray


class Replay:
    """The newest transitions.

    Attributes:
      capacity: the most that are kept.
      met: transitions so far.
    """

    def __init__(self, capacity: int) -> None:
        """Is empty.

        Args:
          capacity: the most transitions that are kept.
        """
        self.capacity, self.met = capacity, 0
        self._arrays: list[np.ndarray] = []

    def __len__(self) -> int:
        return min(self.met, self.capacity)

    def add(self, moves: Transitions) -> None:
        """Takes in some transitions, instead of the oldest ones."""
        count = len(moves.action)
        if not count:
            return
        if not self._arrays:
            self._arrays = [
                np.zeros((self.capacity, *own.shape[1:]), own.dtype) for own in moves
            ]
        last = slice(max(0, count - self.capacity), None)
        place = (self.met + np.arange(count)[last]) % self.capacity
        for own, new in zip(self._arrays, moves, strict=True):
            own[place] = new[last]
        self.met += count

    def at(self, places: np.ndarray) -> Transitions:
        """Some of them.

        Args:
          places: int64 [m], from 0 to below the number of those kept.
        """
        return Transitions(*(own[places] for own in self._arrays))

    def arrays(self) -> dict[str, np.ndarray]:
        """All there is, for `restore`."""
        size = len(self)
        named = zip(Transitions._fields, self._arrays, strict=False)
        return {"met": np.array(self.met), **{name: own[:size] for name, own in named}}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Puts back what `arrays` gave.

        Raises:
          ValueError: it is not of such a replay buffer.
        """
        met = int(arrays["met"])
        self.met, self._arrays = met, []
        if not met:
            return
        for name in Transitions._fields:
            if name not in arrays or len(arrays[name]) != len(self):
                raise ValueError("the replay buffer has another size")
            own = arrays[name]
            room = np.zeros((self.capacity, *own.shape[1:]), own.dtype)
            room[: len(own)] = own
            self._arrays.append(room)
