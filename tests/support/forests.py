"""Values of forests of gadget games under given strategies."""

import numpy as np

from spiel_cr.policies.conversions import reach_from_behaviour


def forest_reach(forest, d, behaviours, follow):
    """Return the reach in the forest of behaviours of the whole game."""
    result = [np.empty(0), np.empty(0)]
    for p in range(2):
        whole = d.tree.infosets[p].decisions
        first = whole.first_sequence
        form = forest.form.decisions[p]
        behaviour = [np.ones(1)]
        numbers = forest.infosets if p == d.player else forest.other
        if p != d.player:
            for f in follow:
                behaviour.append(np.array([1 - f, f]))
        for i in numbers:
            row = slice(first[i], first[i] + whole.num_actions[i])
            behaviour.append(behaviours[p][row])
        if p != d.player:
            behaviour.append(np.ones(len(forest.next_augmented)))
        result[p] = reach_from_behaviour(form, np.concatenate(behaviour))
    return result


def forest_value(forest, reach):
    rows, columns, values = forest.form.payoffs
    return float(np.sum(values * reach[0][rows] * reach[1][columns]))
