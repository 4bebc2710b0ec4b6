"""Training data of networks: samples of visits, sums per infoset, transitions."""

from collections.abc import Iterable
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from spiel_cr.common.network_fits import Targets
from spiel_cr.solvers.deep.deep_config import DeepConfig
from spiel_cr.solvers.deep.infosets import Knowledge

# Named tuple of arrays with the same number of rows.
Rows = TypeVar("Rows", bound=Any)


def joined(chunks: Iterable[Targets]) -> Targets:
    """Return the visits of several chunks as one.

    Args:
      chunks: Chunks of visits, at least one. Chunks without visits may have rows of
        another shape.
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
      rows: Joint information, [n, ...].
      action: Action that was played, numbered as in OpenSpiel, int32 [n].
      utility: Player 0's utility if the game was over then, otherwise 0, float32 [n].
      player: Player who decides next, int8 [n]; negative: the game was over.
      next_rows: Joint information after the move, [n, ...]; arbitrary if the game was
        over.
      next_legal: Legal actions after the move, bool [n, A].
    """

    rows: np.ndarray
    action: np.ndarray
    utility: np.ndarray
    player: np.ndarray
    next_rows: np.ndarray
    next_legal: np.ndarray


class Kept(Generic[Rows]):
    """Rows of arrays up to a capacity; subclasses choose the rows that remain.

    Attributes:
      capacity: Maximum number of rows.
      num_seen: Number of rows so far.
    """

    # Class of the rows.
    kind: type[Rows]

    def __init__(self, capacity: int) -> None:
        """Create an empty memory, which grows with the rows.

        Args:
          capacity: Maximum number of rows.
        """
        self.capacity, self.num_seen = capacity, 0
        self._arrays: list[np.ndarray] = []

    def __len__(self) -> int:
        return min(self.num_seen, self.capacity)

    def _put(self, rows: Rows, place: np.ndarray) -> None:
        """Store the rows whose place is below the capacity.

        Args:
          rows: Named tuple of arrays with n rows.
          place: Place of each row, int64 [n]; of rows with equal places the last one
            remains.
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
        """Return all rows; views, valid until the next rows are stored."""
        return self.kind(*(array[: len(self)] for array in self._arrays))

    def at(self, places: np.ndarray) -> Rows:
        """Return some rows.

        Args:
          places: Numbers of rows, int64 [m].
        """
        return self.kind(*(array[places] for array in self._arrays))

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all arrays that `restore` needs."""
        kept = self.targets()._asdict() if self._arrays else {}
        return {"num_seen": np.array(self.num_seen), **kept}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Restore the state that `arrays` returned.

        Raises:
          ValueError: If the arrays do not belong to such a memory.
        """
        num_seen = int(arrays["num_seen"])
        names = self.kind._fields if num_seen else ()
        size = min(num_seen, self.capacity)
        if num_seen < 0 or any(
            name not in arrays or len(arrays[name]) != size for name in names
        ):
            raise ValueError("the state of the memory has another size")
        self.num_seen = num_seen
        self._arrays = [arrays[name].copy() for name in names]


class Reservoir(Kept[Targets]):
    """Uniform sample of all visits so far, without replacement (Vitter 1985, R).

    Targets are stored in single precision.

    A batch of visits is added at once. Visit number i (from 1) is stored at place i - 1
    while there is room. A later visit draws one of the first i places uniformly, and
    replaces the visit there if the place is below the capacity. If two visits of a
    batch draw the same place, the later one remains.
    """

    kind = Targets

    def add(self, visits: Targets, random: np.random.Generator) -> None:
        """Store a batch of visits.

        Args:
          visits: Visits with their targets.
          random: Random number generator, which is advanced.
        """
        count = len(visits.weight)
        if not count:
            return
        number = self.num_seen + np.arange(count)
        drawn = (random.random(count) * (number + 1)).astype(np.int64)
        place = np.where(number < self.capacity, number, drawn)
        self._put(visits._replace(target=visits.target.astype(np.float32)), place)


class InfosetSums:
    """Sums of weight and of weight · target per infoset of a game tree.

    They are sufficient statistics of the squared loss on all visits so far.

    Attributes:
      legal: Legal actions, bool [I, A].
      total: Sum of weight · target, float64 [I, A].
      weight: Sum of weights, float64 [I].
    """

    def __init__(self, legal: np.ndarray) -> None:
        """Create sums of zero.

        Args:
          legal: Legal actions, bool [I, A].
        """
        self.legal = legal
        self.total = np.zeros(legal.shape)
        self.weight = np.zeros(len(legal))

    def add(self, visits: Targets, random: np.random.Generator | None = None) -> None:
        """Add visits, whose rows are infosets; no random numbers are drawn."""
        count, target = len(self.weight), np.where(visits.legal, visits.target, 0)
        self.weight += np.bincount(visits.rows, visits.weight, count)
        self.total += sums_by_row(visits.rows, visits.weight[:, None] * target, count)

    def discount(self, factor: float) -> None:
        """Multiply positive sums and weights by a factor; set negative sums to 0."""
        self.total = np.maximum(self.total, 0) * factor
        self.weight = self.weight * factor

    def mean(self) -> np.ndarray:
        """Return the weighted mean target, float64 [I, A]; 0 without visits."""
        safe_weight = np.where(self.weight > 0, self.weight, 1)
        return self.total / safe_weight[:, None]

    def targets(self) -> Targets:
        """Return one row for each infoset."""
        rows = np.arange(len(self.weight))
        return Targets(rows, self.legal, self.mean(), self.weight)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all arrays that `restore` needs."""
        return {"total": self.total, "weight": self.weight}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Restore the state that `arrays` returned.

        Raises:
          ValueError: If the arrays belong to another game.
        """
        total, weight = arrays["total"], arrays["weight"]
        if total.shape != self.total.shape or weight.shape != self.weight.shape:
            raise ValueError("the sums belong to another game")
        self.total, self.weight = total.copy(), weight.copy()


def sums_by_row(rows: np.ndarray, numbers: np.ndarray, count: int) -> np.ndarray:
    """Return numbers [n, A] summed by their rows, float64 [count, A]."""
    columns = [np.bincount(rows, column, count) for column in numbers.T]
    return np.stack(columns, axis=1)


def per_infoset(visits: Targets, legal: np.ndarray | None) -> Targets:
    """Return the weighted mean of visits at each infoset, if infosets are numbered.

    The squared loss (and cross-entropy) on the result differs from that on the visits
    by a constant.

    Args:
      visits: Visits, whose rows are infosets if these are numbered.
      legal: Legal actions of infosets, bool [I, A]; None: visits are returned
        unchanged.
    """
    if legal is None:
        return visits
    sums = InfosetSums(legal)
    sums.add(visits)
    return sums.targets()


def balanced(targets: Targets, power: float) -> Targets:
    """Return targets whose positive weights are raised to a power.

    Args:
      targets: Targets with one row for each infoset of a game tree.
      power: Exponent of the weights, see `config.DeepConfig.balance`.
    """
    has_weight = targets.weight > 0
    weight = np.where(has_weight, targets.weight, 1) ** power * has_weight
    return targets._replace(weight=weight)


def make_memory(
    knowledge: Knowledge, player: int, config: DeepConfig
) -> Reservoir | InfosetSums:
    """Return the empty memory of a configuration.

    Args:
      knowledge: Meaning of rows.
      player: Player whose visits are stored.
      config: Settings of the algorithm.
    """
    if config.memory == "exact":
        legal = knowledge.legal[player]
        assert legal is not None  # `DeepConfig.needs_tree` ensures it.
        return InfosetSums(legal)
    return Reservoir(config.capacity)


def to_fit(
    samples: Reservoir | InfosetSums, knowledge: Knowledge, player: int, balance: float
) -> Targets:
    """Return the targets of a fit: for game trees balanced means per infoset.

    Args:
      samples: Memory of visits.
      knowledge: Meaning of its rows.
      player: Player whose visits are stored.
      balance: Exponent of the weights, see `config.DeepConfig`.
    """
    targets, legal = samples.targets(), knowledge.legal[player]
    if isinstance(samples, Reservoir):
        targets = per_infoset(targets, legal)
    return targets if legal is None else balanced(targets, balance)


class Replay(Kept[Transitions]):
    """Memory of the newest transitions."""

    kind = Transitions

    def add(self, moves: Transitions) -> None:
        """Store transitions in place of the oldest ones."""
        place = (self.num_seen + np.arange(len(moves.action))) % self.capacity
        if len(place):
            self._put(moves, place)
