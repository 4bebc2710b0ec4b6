"""Studies: what every one of them offers, and a line of its table."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from spiel_cr.common.executor import IN_PROCESS, Executor, in_order


class Line(NamedTuple):
    """A published figure beside ours.

    Attributes:
      quantity: is compared.
      published: the figure as it was published, and by whom; or a claim.
      computed: the figure computed now.
      agrees: whether the two agree within what the study states; None: there is nothing
        that ours could be held against, and `published` says why: no figure, another
        experiment, or a faulty program's.
    """

    quantity: str
    published: str
    computed: str
    agrees: bool | None


class Study(NamedTuple):
    """A study.

    Attributes:
      name: what users write.
      text: one line of help.
      source: of the published figures.
      run: computes the lines of a part; takes the share of the default size, 1 for all
        of it, and what tells the part. A function of a module.
      parts: what tells them, in the order of their lines; none needs another.
    """

    name: str
    text: str
    source: str
    run: Callable[..., Iterable[Line]]
    parts: Sequence[tuple[Any, ...]]

    def lines(self, share: float, executor: Executor = IN_PROCESS) -> Iterator[Line]:
        """Compute the lines.

        Args:
          share: of the default size.
          executor: where; each part is a task.
        """
        tasks = dict(enumerate(self.parts))
        computed = executor.map(_computing, (self.run, share), tasks)
        for lines in in_order(computed, tasks):
            yield from lines


def _computing(run: Callable[..., Iterable[Line]], share: float) -> Callable[..., Any]:
    return lambda part: tuple(run(share, *part))
