"""Studies: what every one of them offers, and a line of its table."""

from collections.abc import Callable, Iterable
from typing import NamedTuple


class Line(NamedTuple):
    """A published figure beside ours.

    Attributes:
      what: is compared.
      published: the figure as it was published, and by whom; or a claim.
      ours: the figure computed now.
      agrees: whether the two agree within what the study states; None: there is nothing
        that ours could be held against, and `published` says why: no figure, another
        experiment, or a faulty program's.
    """

    what: str
    published: str
    ours: str
    agrees: bool | None


class Study(NamedTuple):
    """A study.

    Attributes:
      name: what users write.
      text: one line of help.
      source: of the published figures.
      run: computes the lines; takes the share of the default size, 1 for all of it.
    """

    name: str
    text: str
    source: str
    run: Callable[[float], Iterable[Line]]
