"""Exact solution by linear programming in sequence form.

Koller, Megiddo & von Stengel 1996, "Efficient computation of equilibria for extensive
two-person games": one sparse program a player, its own realisation plan against the
opponent's best response in dual form. On small games this is the fastest way there is,
and it is the ground truth of the tests.
"""

import numpy as np
from scipy import optimize, sparse

from spiel_cr.sequence_form import layout
from spiel_cr.sequence_form.decisions import Decisions


def realisation_plan(
    form: layout.SequenceForm, player: int
) -> tuple[np.ndarray, float, int]:
    """A maximin strategy of one player.

    Maximises the value q of the opponent's decision tree at its root, subject to: x is
    a realisation plan of `player`, and no opponent's infoset is worth more to `player`
    than any of its actions.

    Args:
      form: the game.
      player: whose strategy.

    Returns:
      The strategy in sequence form, float64 [S]; its guaranteed expected utility for
      `player`; and the number of simplex iterations.

    Raises:
      RuntimeError: HiGHS found no optimum.
    """
    own, other = form.decisions[player], form.decisions[1 - player]
    own_count, other_count = own.num_sequences, other.num_sequences
    rows, columns, values = form.payoffs
    if player == 1:
        rows, columns, values = columns, rows, -values
    # payoff[s', s]: what `player` gets where the sequences end together.
    payoff = sparse.csr_array((values, (columns, rows)), shape=(other_count, own_count))
    plan = _flow(own)
    # tree[j, s']: +1 where infoset j of the opponent follows s', -1 where it owns s'.
    tree = _flow(other)
    # For every sequence s' of the opponent but the empty one, with q in the game's
    # units: q[owner of s'] - (sum of q after s') - payoff[s'] x <= 0.
    dual = -tree.T.tocsr()
    inequality = sparse.hstack([-payoff[1:], dual[1:]], format="csr")
    nothing = sparse.csr_array((len(own), len(other)))
    equality = sparse.hstack([plan, nothing], format="csr")
    size = own_count + len(other)
    root = sparse.csr_array(([1.0], ([0], [0])), shape=(1, size))
    objective = -np.append(payoff[[0]].toarray(), tree[:, [0]].toarray())
    solution = optimize.linprog(
        objective,
        A_ub=inequality,
        b_ub=np.zeros(other_count - 1),
        A_eq=sparse.vstack([root, equality], format="csr"),
        b_eq=np.concatenate([np.ones(1), np.zeros(len(own))]),
        bounds=[(0, None)] * own_count + [(None, None)] * len(other),
        method="highs-ds",
    )
    if not solution.success:
        raise RuntimeError(f"HiGHS found no optimum: {solution.message}")
    reach = np.maximum(solution.x[:own_count], 0.0)
    return reach, float(-solution.fun), int(solution.nit)


def _flow(decisions: Decisions) -> sparse.csr_array:
    """[I, S]: +1 at each infoset's parent sequence, -1 at its own sequences."""
    infosets = np.arange(len(decisions))
    owner = decisions.owner[1:]
    signs = np.concatenate([np.ones(len(infosets)), -np.ones(len(owner))])
    rows = np.concatenate([infosets, owner])
    columns = np.concatenate([decisions.parent, 1 + np.arange(len(owner))])
    shape = len(infosets), decisions.num_sequences
    return sparse.csr_array((signs, (rows, columns)), shape=shape)
