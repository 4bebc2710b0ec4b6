"""Independent reference: the value of a two-player zero-sum game by linear programming.

The sequence form (Koller, Megiddo and von Stengel, "Efficient computation of equilibria
for extensive two-person games", 1996), built by a plain recursion over pyspiel states
and solved by SciPy. It shares no code with the packages under test.
"""

import collections
from typing import NamedTuple

import numpy as np
import pyspiel
import scipy.optimize
import scipy.sparse

_EMPTY = 0  # every player's sequence of no actions


class _SequenceForm(NamedTuple):
    """Sequence form of a game, filled by `_collect`; pairs have one entry per player.

    Attributes:
      infosets: Number of each infoset by information state string.
      parents: The sequence that leads to each infoset.
      origins: The infoset that each sequence leaves; -1 for the empty one.
      sequences: Number of the sequence by (infoset, action).
      payoffs: Player 0's utility times chance, by (sequence of 0, sequence of 1).
    """

    infosets: tuple[dict[str, int], dict[str, int]]
    parents: tuple[list[int], list[int]]
    origins: tuple[list[int], list[int]]
    sequences: tuple[dict[tuple[int, int], int], dict[tuple[int, int], int]]
    payoffs: dict[tuple[int, int], float]


def game_value(game: pyspiel.Game) -> float:
    """Return the value of a game for player 0.

    Args:
      game: A sequential two-player zero-sum game with perfect recall, small enough to
        visit each of its histories.

    Returns:
      The value, to the accuracy of the solver: 1e-7 relative to the utilities.
    """
    form = _SequenceForm(
        ({}, {}), ([], []), ([-1], [-1]), ({}, {}), collections.defaultdict(float)
    )
    _collect(form, game.new_initial_state(), (_EMPTY, _EMPTY), 1.0)

    # Variables: x, the realisation weight of each sequence of player 0, then v, the
    # value of each infoset of player 1, then the value at the root. Maximise the last.
    num_x = len(form.origins[0])
    num_v = len(form.parents[1])
    root = num_x + num_v

    # Player 1 picks the worst for player 0: the value where a sequence leaves is at
    # most what comes after it, the payoffs and the infosets it leads to.
    rows, columns, entries = [], [], []

    def put(row: int, column: int, entry: float) -> None:
        rows.append(row)
        columns.append(column)
        entries.append(entry)

    for sequence, origin in enumerate(form.origins[1]):
        put(sequence, root if sequence == _EMPTY else num_x + origin, 1.0)
    for infoset, parent in enumerate(form.parents[1]):
        put(parent, num_x + infoset, -1.0)
    for (sequence0, sequence1), payoff in form.payoffs.items():
        put(sequence1, sequence0, -payoff)
    num_rows = len(form.origins[1])
    at_most = scipy.sparse.csr_array(
        (entries, (rows, columns)), shape=(num_rows, root + 1)
    )

    # The weights of player 0: 1 at first, then split among the actions of an infoset.
    rows, columns, entries = [], [], []
    num_infosets = len(form.parents[0])
    put(num_infosets, _EMPTY, 1.0)
    for infoset, parent in enumerate(form.parents[0]):
        put(infoset, parent, -1.0)
    for sequence, origin in enumerate(form.origins[0]):
        if sequence != _EMPTY:
            put(origin, sequence, 1.0)
    equal = scipy.sparse.csr_array(
        (entries, (rows, columns)), shape=(num_infosets + 1, root + 1)
    )
    totals = np.zeros(num_infosets + 1)
    totals[num_infosets] = 1.0

    objective = np.zeros(root + 1)
    objective[root] = -1.0
    solution = scipy.optimize.linprog(
        objective,
        A_ub=at_most,
        b_ub=np.zeros(num_rows),
        A_eq=equal,
        b_eq=totals,
        bounds=[(0.0, None)] * num_x + [(None, None)] * (num_v + 1),
        method="highs-ds",
    )
    if not solution.success:
        raise RuntimeError(f"linprog failed on {game}: {solution.message}")
    return 0.0 - float(solution.fun)  # never -0.0


def _collect(
    form: _SequenceForm, state: pyspiel.State, last: tuple[int, int], chance: float
) -> None:
    """Add the histories from `state` on, which the sequences `last` reach."""
    if state.is_terminal():
        form.payoffs[last] += chance * state.returns()[0]
        return
    if state.is_chance_node():
        for action, probability in state.chance_outcomes():
            _collect(form, state.child(action), last, chance * probability)
        return
    player = state.current_player()
    infosets, parents = form.infosets[player], form.parents[player]
    infoset = infosets.setdefault(state.information_state_string(), len(infosets))
    if infoset == len(parents):
        parents.append(last[player])
    if parents[infoset] != last[player]:
        raise ValueError(f"imperfect recall at {state.information_state_string()!r}")
    for action in state.legal_actions():
        sequences, origins = form.sequences[player], form.origins[player]
        sequence = sequences.setdefault((infoset, action), len(origins))
        if sequence == len(origins):
            origins.append(infoset)
        after = (sequence, last[1]) if player == 0 else (last[0], sequence)
        _collect(form, state.child(action), after, chance)
