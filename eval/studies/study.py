"""Studies that recompute published figures, and lines of their tables."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from spiel_cr.common.executor import IN_PROCESS, Executor, in_order


class StudyLine(NamedTuple):
    """A published figure and the recomputed one.

    Attributes:
      quantity: Quantity that is compared.
      published: Published figure and its source, or a claim.
      computed: Recomputed figure.
      agrees: Whether the two agree within the tolerance of the study; None if they
        cannot be compared, for the reason in `published`.
    """

    quantity: str
    published: str
    computed: str
    agrees: bool | None


class Study(NamedTuple):
    """A reproduction of published results.

    Attributes:
      name: Name of the study.
      text: One line of help.
      source: Source of the published figures.
      run: Function of a module that computes the lines of a part, from the share of the
        default size and the arguments of the part.
      parts: Arguments of the independent parts, in the order of their lines.
    """

    name: str
    text: str
    source: str
    run: Callable[..., Iterable[StudyLine]]
    parts: Sequence[tuple[Any, ...]]

    def lines(
        self, share: float, executor: Executor = IN_PROCESS
    ) -> Iterator[StudyLine]:
        """Yield the lines of all parts.

        Args:
          share: Share of the default size.
          executor: Executor of the parts; each part is a task.
        """
        tasks = dict(enumerate(self.parts))
        computed = executor.map(_computing, (self.run, share), tasks)
        for lines in in_order(computed, tasks):
            yield from lines


def _computing(
    run: Callable[..., Iterable[StudyLine]], share: float
) -> Callable[..., Any]:
    return lambda part: tuple(run(share, *part))
