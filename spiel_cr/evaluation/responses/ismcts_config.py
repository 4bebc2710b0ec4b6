"""Settings of searched best responses."""

import dataclasses

from spiel_cr.common.checks import check_choice, check_iterations, check_number

HISTORIES = ("all", "drawn")


@dataclasses.dataclass(frozen=True)
class SearchConfig:
    """How ISMCTS-BR searches (Timbers et al. 2022, Algorithms 1 and 2).

    Attributes:
      simulations: from each information state that is searched.
      learn: simulations from *every* information state that the opponent's play can
        lead to, from the last decisions to the first, before those: what follows an
        action has then been searched before it is tried, a value function learned as a
        table. On compiled games only; 0: none.
      exploration: c of PUCT, in units of half the range of the game's utilities: an
        action a at s is worth Q(s, a) + c P(a | s) sqrt(N(s)) / (1 + N(s, a)).
      batch: on compiled games, at most this many simulations side by side, rounded
        down to a power of two; 1 is the textbook algorithm, slow. Fewer are used while
        few information states are searched.
      histories: on states, what a simulation follows: "all", the whole belief of an
        information state with all that the opponent and chance may do, where the belief
        is small enough (`belief_search.py`); "drawn", one history, as in the
        paper, with moves that are drawn. Where beliefs are too large, it is "drawn" in
        any case.
      max_nodes: on states, most information states in the tree. A full tree does not
        grow; if it is full when a search begins, it is dropped first. With "all", what
        follows an information state joins the tree as a whole, and may overfill it.
    """

    simulations: int = 1000
    learn: int = 0
    exploration: float = 4.0
    batch: int = 4096
    max_nodes: int = 200_000
    histories: str = "all"

    def __post_init__(self) -> None:
        for name in ("simulations", "batch", "max_nodes"):
            check_iterations(getattr(self, name), name=name)
        if self.learn:
            check_iterations(self.learn, name="learn")
        check_number(self.exploration, "exploration", "(0, inf)")
        check_choice(self.histories, "histories", HISTORIES)
