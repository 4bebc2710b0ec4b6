"""Random strategies, and solvers by the algorithm's name."""

import numpy as np

from spiel_cr import poker
from spiel_cr.games.public_tree import public_tree_game
from spiel_cr.policies.form_policy import FormPolicy
from spiel_cr.solvers.algorithms import find
from spiel_cr.solvers.cfr import cfr


def random_behaviours(compiled, seed, *, zeros=False):
    """Return random action probabilities of each player; with `zeros`, some are 0."""
    rng = np.random.default_rng(seed)
    behaviours = []
    for infosets in compiled.infosets:
        behaviour = [np.ones(1)]
        for count in infosets.decisions.num_actions:
            weights = rng.exponential(size=count)
            if zeros:
                weights[rng.permutation(count)[: rng.integers(count)]] = 0.0
            behaviour.append(weights / weights.sum())
        behaviours.append(np.concatenate(behaviour))
    return tuple(behaviours)


def solver_of(form, name, **options):
    """Return a full-width solver; `options` are those of `cfr.make_solver`."""
    options = {"compile": "fast"} | options
    return cfr.make_solver(form, config=find(name).config, **options)


def forest_solver(name, iterations):
    """Return a function that solves forests as `resolve` does."""

    def solve(d, forest):
        solver = solver_of(forest.form, name, values=True, first=d.player)
        solver.run(iterations)
        return solver

    return solve


def everywhere(resolver, match=None, order=None):
    """Return a resolver's strategy, float64 [S], queried at every infoset."""
    match = resolver.match() if match is None else match
    decisions = resolver.decomposition.tree.infosets[resolver.player].decisions
    first = decisions.first_sequence
    behaviour = np.ones(decisions.num_sequences)
    for i in range(len(decisions)) if order is None else order:
        places = slice(first[i], first[i] + decisions.num_actions[i])
        behaviour[places] = resolver.strategy(match, i)
    return behaviour


def random_spot_policy(board, bets, ranges, first="oop"):
    """Return a random policy in which every hand mixes differently."""
    game = poker.spot(board, 20, 30, ranges=ranges, bets=bets, first=first)
    public_tree = public_tree_game(game)
    rng = np.random.default_rng(0)
    behaviours = []
    for own in public_tree.sequence_form.decisions:
        weights = rng.random(own.num_sequences)
        weights[0] = 1.0
        total = np.bincount(own.owner[1:], weights[1:])
        weights[1:] /= total[own.owner[1:]]
        behaviours.append(weights)
    return FormPolicy(public_tree, behaviours)
