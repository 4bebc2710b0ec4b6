"""The public states at which a game's lookaheads end, each kind of game below once."""

import dataclasses
from typing import NamedTuple

import numpy as np

from spiel_cr.games.tree.tree import CompiledGame
from spiel_cr.resolving.decomposition import Decomposition, decompose
from spiel_cr.resolving.leaves.features import alike
from spiel_cr.resolving.leaves.leaf_strings import DepthUnit
from spiel_cr.resolving.leaves.public_states import PublicStates
from spiel_cr.resolving.lookahead import states_at_cut


class Twin(NamedTuple):
    """The state that stands for a public state.

    Attributes:
      part: index of the part.
      state: index of the state in the part.
    """

    part: int
    state: int


@dataclasses.dataclass(frozen=True)
class Cuts:
    """All public states at which lookaheads of a game end, in both roles.

    Attributes:
      tree: the compiled game.
      depth, unit: of the lookaheads, see `look_ahead`.
      roles: the game's decompositions for player 0 and 1.
      parts: public states of one role and layer each, none below another; no two of all
        are alike (see `features.alike`).
      twins: for each role, what stands for the state of a number.
    """

    tree: CompiledGame
    depth: int
    unit: DepthUnit
    roles: tuple[Decomposition, Decomposition]
    parts: tuple[PublicStates, ...]
    twins: tuple[dict[int, Twin], dict[int, Twin]]

    @property
    def text(self) -> str:
        """Where lookaheads end, for files."""
        return f"{self.depth} {self.unit}"


def find_cuts(tree: CompiledGame, depth: int, unit: DepthUnit) -> Cuts:
    """Finds where lookaheads of some depth end.

    Args:
      tree: compiled with `observations=True`.
      depth, unit: of lookaheads, see `look_ahead`.

    Raises:
      ValueError: none of them ends before the game does, or see `decompose` and
        `look_ahead`.
    """
    parts: list[PublicStates] = []
    roles, twins = [], []
    for player in range(2):
        role = decompose(tree, player)
        roles.append(role)
        mine: dict[int, Twin] = {}
        known: dict[bytes, Twin] = {}
        for layer in range(1, role.num_layers + 1):
            found = states_at_cut(role, layer, depth, unit)
            if found is None:
                continue
            # A layer's lookaheads end in several layers where turns are irregular.
            at = np.zeros(len(found), np.int32)
            at[found.root_state] = role.layer[found.history]
            for number in np.unique(at):
                states = found.select(found.numbers[at == number])
                keys = [bytes(key) for key in alike(tree, states)]
                new = {key: k for k, key in reversed(list(enumerate(keys)))}
                fresh = sorted(k for key, k in new.items() if key not in known)
                if fresh:
                    for place, k in enumerate(fresh):
                        known[keys[k]] = Twin(len(parts), place)
                    parts.append(states.select(states.numbers[fresh]))
                for state, key in zip(states.numbers.tolist(), keys, strict=True):
                    mine.setdefault(state, known[key])
        twins.append(mine)
    if not parts:
        raise ValueError(
            f"depth={depth} ({unit}): every lookahead reaches the end of {tree.game}, "
            f"so no values are needed; take a smaller depth"
        )
    return Cuts(
        tree,
        depth,
        unit,
        roles=(roles[0], roles[1]),
        parts=tuple(parts),
        twins=(twins[0], twins[1]),
    )
