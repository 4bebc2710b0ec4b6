"""Solutions of subgames that are kept from match to match."""

from typing import NamedTuple

from spiel_cr.resolving.partial.solved_tree import SolvedTree

# By the id of what was solved before, and the number of its roots.
_Key = tuple[int, int]


class _Known(NamedTuple):
    """A solution, with what was solved before, so that its id stays taken."""

    before: SolvedTree
    solved: SolvedTree


class KeptSolutions:
    """Solutions, each by what was solved before and by the roots of its subgame.

    Where there is no room for another one, those go that it does not follow from: asked
    subgame by subgame, a player solves each of them once.

    Attributes:
      most: so many histories they have at most in all (6 kB each). Where more labels
        are met while they are kept, all are forgotten.
    """

    def __init__(self, start: SolvedTree, most: int = 1 << 17) -> None:
        """None yet.

        Args:
          start: what every match begins with; it stays.
          most: histories in all; 0: nothing is kept.
        """
        self.most = most
        self._start = start
        self._known: dict[_Key, _Known] = {}
        # Which solution it is, by its id.
        self._keys: dict[int, _Key] = {}
        self._histories = 0

    def __len__(self) -> int:
        return len(self._known)

    def find(self, before: SolvedTree, number: int) -> SolvedTree | None:
        """The solution of a subgame; None: it is not known.

        Args:
          before: what was solved before.
          number: of the subgame's roots, see `PartialTree.number_of`.
        """
        known = self._known.get((id(before), number))
        return None if known is None else known.solved

    def keep(self, before: SolvedTree, number: int, solved: SolvedTree) -> None:
        """Keeps the solution of a subgame, if there is room for it.

        Args:
          before: what was solved before. Below what is neither the start nor kept
            itself, nothing is found again, and nothing is kept.
          number: of the subgame's roots, see `PartialTree.number_of`.
          solved: the solution.
        """
        if before is not self._start and id(before) not in self._keys:
            return
        size = len(solved.partial)
        if self._histories + size > self.most:
            self._forget_all_but(before)
        if self._histories + size > self.most:
            return
        key = id(before), number
        self._known[key] = _Known(before, solved)
        self._keys[id(solved)] = key
        self._histories += size

    def forget_if_full(self, labels: int) -> None:
        """Forgets all solutions, if there was no capacity for labels.

        Args:
          labels: how many were met since the start.
        """
        if labels > self.most:
            self._forget_all_but(self._start)

    def _forget_all_but(self, solved: SolvedTree) -> None:
        """Forgets all but a solution and those that it follows from."""
        way = []
        while solved is not self._start:
            way.append(self._keys[id(solved)])
            solved = self._known[way[-1]].before
        self._known = {key: self._known[key] for key in reversed(way)}
        self._keys = {id(known.solved): key for key, known in self._known.items()}
        self._histories = sum(
            len(known.solved.partial) for known in self._known.values()
        )
