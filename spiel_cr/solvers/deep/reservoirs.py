"""What networks are fitted to: samples of visits, sums per infoset, transitions."""

from collections.abc import Iterable
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from spiel_cr.common.network_fits import Targets
from spiel_cr.solvers.deep.deep_config import DeepConfig
from spiel_cr.solvers.deep.infosets import Knowledge

# A named tuple of arrays with equally many rows.
Rows = TypeVar("Rows", bound=Any)


def joined(chunks: Iterable[Targets]) -> Targets:
    """Return the visits of several chunks as one.

    Args:
      chunks: At least one. Chunks without visits may have rows of another shape.
    """
    first, *others = chunks
    some = [chunk for chunk in (first, *others) if len(chunk.weight)]
    if len(some) < 2:
        return some[0] if some else first
    arrays = zip(*some, strict=True)
    return Targets(*(np.concatenate(columns) for columns in arrays))


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


class Kept(Generic[Rows]):
    """Rows of arrays, so many at most; which ones stay is up to its kinds.

    Attributes:
      capacity: the most rows that are kept.
      num_seen: rows so far.
    """

    # What has the arrays.
    kind: type[Rows]

    def __init__(self, capacity: int) -> None:
        """Is empty; room is taken as rows come.

        Args:
          capacity: the most rows that are kept.
        """
        self.capacity, self.num_seen = capacity, 0
        self._arrays: list[np.ndarray] = []

    def __len__(self) -> int:
        return min(self.num_seen, self.capacity)

    def _put(self, rows: Rows, place: np.ndarray) -> None:
        """Takes in rows; those whose place is below the capacity are kept.

        Args:
          rows: n of them.
          place: int64 [n], of each; of equal places the last one stays.
        """
        if not self._arrays:
            self._arrays = [array[:0].copy() for array in rows]
        size = min(self.capacity, self.num_seen + len(place))
        if size > len(self._arrays[0]):
            room = min(self.capacity, max(size, 2 * len(self._arrays[0]), 1024))
            for k, array in enumerate(self._arrays):
                self._arrays[k] = np.zeros((room, *array.shape[1:]), array.dtype)
                self._arrays[k][: len(self)] = array[: len(self)]
        kept = np.flatnonzero(place < self.capacity)
        for array, new in zip(self._arrays, rows, strict=True):
            array[place[kept]] = new[kept]
        self.num_seen += len(place)

    def targets(self) -> Rows:
        """All that is kept; views, valid until the next rows come."""
        return self.kind(*(array[: len(self)] for array in self._arrays))

    def at(self, places: np.ndarray) -> Rows:
        """Some of them.

        Args:
          places: int64 [m], from 0 to below the number of those kept.
        """
        return self.kind(*(array[places] for array in self._arrays))

    def arrays(self) -> dict[str, np.ndarray]:
        """All there is, for `restore`."""
        kept = self.targets()._asdict() if self._arrays else {}
        return {"met": np.array(self.num_seen), **kept}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Puts back what `arrays` gave.

        Raises:
          ValueError: it is not of such a memory.
        """
        num_seen = int(arrays["met"])
        names = self.kind._fields if num_seen else ()
        size = min(num_seen, self.capacity)
        if num_seen < 0 or any(
            name not in arrays or len(arrays[name]) != size for name in names
        ):
            raise ValueError("the memory has another size")
        self.num_seen = num_seen
        self._arrays = [arrays[name].copy() for name in names]


class Reservoir(Kept[Targets]):
    """A uniform sample of all visits so far, without replacement (Vitter 1985, R).

    Targets are kept in single precision.

    A batch of visits is taken in at once: visit number i (from 1) goes to place i - 1
    while there is room; later to a uniformly drawn place of the first i, if that is one
    of the reservoir's. Where two of a batch draw one place, the later one stays.
    """

    kind = Targets

    def add(self, visits: Targets, random: np.random.Generator) -> None:
        """Takes in a batch of visits.

        Args:
          visits: of it.
          random: advanced.
        """
        count = len(visits.weight)
        if not count:
            return
        number = self.num_seen + np.arange(count)
        place = np.where(
            number < self.capacity,
            number,
            (random.random(count) * (number + 1)).astype(np.int64),
        )
        self._put(visits._replace(target=visits.target.astype(np.float32)), place)


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

    def add(self, visits: Targets, random: np.random.Generator | None = None) -> None:
        """Adds visits; their rows are infosets. Nothing is drawn."""
        count, target = len(self.weight), np.where(visits.legal, visits.target, 0)
        self.weight += np.bincount(visits.rows, visits.weight, count)
        self.total += sums_by_row(visits.rows, visits.weight[:, None] * target, count)

    def discount(self, factor: float) -> None:
        """Keeps what is positive, times a factor; weights shrink alike."""
        self.total = np.maximum(self.total, 0) * factor
        self.weight = self.weight * factor

    def mean(self) -> np.ndarray:
        """float64 [I, A], the weighted mean target; 0 where there was no visit."""
        safe_weight = np.where(self.weight > 0, self.weight, 1)
        return self.total / safe_weight[:, None]

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


def sums_by_row(rows: np.ndarray, numbers: np.ndarray, count: int) -> np.ndarray:
    """float64 [count, A], numbers [n, A] summed by the rows that they belong to."""
    columns = [np.bincount(rows, column, count) for column in numbers.T]
    return np.stack(columns, axis=1)


def per_infoset(visits: Targets, legal: np.ndarray | None) -> Targets:
    """Return the weighted mean of visits at each infoset, if infosets are numbered.

    The squared loss (and cross-entropy) on the result differs from that on the visits
    by a constant.

    Args:
      visits: Visits, whose rows are infosets if these are numbered.
      legal: Legal actions of infosets, bool [I, A]; None: visits are returned as they
        are.
    """
    if legal is None:
        return visits
    sums = Sums(legal)
    sums.add(visits)
    return sums.targets()


def balanced(targets: Targets, power: float) -> Targets:
    """Targets whose weights are taken to a power, where anything is known.

    Args:
      targets: a row per infoset of a compiled game.
      power: of the weights, see `config.DeepConfig.balance`.
    """
    has_weight = targets.weight > 0
    weight = np.where(has_weight, targets.weight, 1) ** power * has_weight
    return targets._replace(weight=weight)


def make_memory(
    knowledge: Knowledge, player: int, config: DeepConfig
) -> Reservoir | Sums:
    """The memory of a configuration, empty.

    Args:
      knowledge: what rows stand for.
      player: whose visits.
      config: the algorithm.
    """
    if config.memory == "exact":
        legal = knowledge.legal[player]
        assert legal is not None  # see `DeepConfig.needs_tree`
        return Sums(legal)
    return Reservoir(config.capacity)


def to_fit(
    samples: Reservoir | Sums, knowledge: Knowledge, player: int, balance: float
) -> Targets:
    """What a network is fitted to: of compiled games means per infoset, balanced.

    Args:
      samples: the memory.
      knowledge: what its rows stand for.
      player: whose they are.
      balance: see `config.DeepConfig`.
    """
    targets, legal = samples.targets(), knowledge.legal[player]
    if isinstance(samples, Reservoir):
        targets = per_infoset(targets, legal)
    return targets if legal is None else balanced(targets, balance)


class Replay(Kept[Transitions]):
    """The newest transitions."""

    kind = Transitions

    def add(self, moves: Transitions) -> None:
        """Takes in some transitions, instead of the oldest ones."""
        place = (self.num_seen + np.arange(len(moves.action))) % self.capacity
        if len(place):
            self._put(moves, place)
