"""Solutions of subgames that are kept from match to match."""

from spiel_cr.partial.solved_tree import SolvedTree


class KeptSolutions:
    """Solutions, each by what was solved before and by the roots of its subgame.

    Attributes:
      most: so many histories they have at most in all (6 kB each), and no more labels
        are met while they are kept; then all are forgotten.
    """

    def __init__(self, start: SolvedTree, most: int = 1 << 16) -> None:
        """None yet.

        Args:
          start: what every match begins with; it stays.
          most: histories in all; 0: nothing is kept.
        """
        self.most = most
        self._start = start
        # With what was solved before, so that its id stays taken.
        self._known: dict[tuple[int, int], tuple[SolvedTree, SolvedTree]] = {}
        self._ids: set[int] = set()
        self._histories, self._is_full = 0, False

    def __len__(self) -> int:
        return len(self._known)

    def find(self, before: SolvedTree, number: int) -> SolvedTree | None:
        """The solution of a subgame; None: it is not known.

        Args:
          before: what was solved before.
          number: of the subgame's roots, see `PartialTree.number_of`.
        """
        known = self._known.get((id(before), number))
        return None if known is None else known[1]

    def keep(self, before: SolvedTree, number: int, solved: SolvedTree) -> None:
        """Keeps the solution of a subgame, if there is room for it.

        Args:
          before: what was solved before. Below what is neither the start nor kept
            itself, nothing is found again, and nothing is kept.
          number: of the subgame's roots, see `PartialTree.number_of`.
          solved: the solution.
        """
        if before is not self._start and id(before) not in self._ids:
            return
        size = len(solved.partial)
        if self._histories + size > self.most:
            self._is_full = True
            return
        self._known[id(before), number] = before, solved
        self._ids.add(id(solved))
        self._histories += size

    def forget_if_full(self, labels: int) -> None:
        """Forgets all solutions, if there was no capacity for one or for labels.

        Args:
          labels: how many were met since the start.
        """
        if self._is_full or labels > self.most:
            self._known.clear()
            self._ids.clear()
            self._histories, self._is_full = 0, False
