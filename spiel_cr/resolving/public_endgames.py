"""Endgames in two phases: a whole strategy, and its last round solved anew.

Gilpin & Sandholm 2006 and 2007 (GS1, GS2): what is played in the early rounds comes
from an abstraction; the last round is solved with all signals when it is reached. They
took the opponent to play the early rounds as we do, and weighed its hands by Bayes'
rule. That is *unsafe*: the opponent need not. *Safe* is a gadget game (Burch, Johanson
& Bowling 2014): the opponent may take what a best response to the first strategy gets
instead, so that solved to the end it never gains.

All endgames are asked for at once, at every public state, so NashConv of the
combination is exact.
"""

from collections.abc import Sequence

import numpy as np

from spiel_cr.cfr import cfr
from spiel_cr.cfr.config import CFRConfig, parse_algorithm
from spiel_cr.common.checks import check_choice, check_iterations
from spiel_cr.policies import best_responses, conversions
from spiel_cr.resolving.public_gadget import PublicSubgame, cut_public
from spiel_cr.resolving.public_layers import PublicDecomposition, decompose_public
from spiel_cr.sequence_form.layout import SequenceForm
from spiel_cr.signals import public_nodes
from spiel_cr.signals.game import SignalGame

GADGETS = ("cfrd", "unsafe")


def solve_endgames(
    game: SignalGame,
    behaviour: Sequence[np.ndarray],
    *,
    gadget: str = "cfrd",
    algorithm: str = "cfr+",
    iterations: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Solves the last round of a signal game anew, for both players.

    Args:
      game: the whole game.
      behaviour: for each player float [S], action probabilities by logical sequence,
        such as `gameshrink.lift` gives.
      gadget: "cfrd" is safe; "unsafe" believes that the opponent plays `behaviour`.
      algorithm: of the CFR family.
      iterations: of it, for the endgames of each layer of decisions.

    Returns:
      For each player float64 [S]: `behaviour` with other probabilities in the last
      round.

    Raises:
      ValueError: there is no such gadget or algorithm, or some player first acts in the
        last round, so that there is no phase before it.
    """
    check_choice(gadget, "gadget", GADGETS)
    check_iterations(iterations)
    config = parse_algorithm(algorithm)
    given = [np.asarray(own, np.float64) for own in behaviour]
    first, second = (
        _one_player(decompose_public(game, i), given, gadget, config, iterations)
        for i in range(2)
    )
    return first, second


def endgame_roots(d: PublicDecomposition) -> np.ndarray:
    """int32, which of `d.roots` are the player's first decisions of the last round.

    Raises:
      ValueError: one of them is the player's first decision at all.
    """
    betting, last = d.game.betting, d.game.num_rounds - 1
    acted = np.zeros(len(betting), bool)
    for node in range(1, len(betting)):
        above = betting.parent[node]
        acts = betting.player[above] == d.player and betting.round[above] == last
        acted[node] = acted[above] or acts
    found = np.flatnonzero((betting.round[d.roots] == last) & ~acted[d.roots])
    if (d.layer[d.roots[found]] == 1).any():
        raise ValueError(
            f"{d.game.game}: player {d.player} first acts in the last round {last}, so "
            "there is no phase before the endgame; give a game of several rounds"
        )
    return found.astype(np.int32)


def _one_player(
    d: PublicDecomposition,
    given: Sequence[np.ndarray],
    gadget: str,
    config: CFRConfig,
    iterations: int,
) -> np.ndarray:
    """float64 [S], the player's behaviour with its endgames solved."""
    i, found = d.player, given[d.player].copy()
    reach = conversions.reach_from_behaviour(d.decisions, given[i])
    roots = endgame_roots(d)
    for layer in np.unique(d.layer[d.roots[roots]]).tolist():
        mine = roots[d.layer[d.roots[roots]] == layer]
        if gadget == "unsafe":
            subgame = cut_public(d, layer, mine, gadget=False)
            ranges = [
                [_reach(d, given[p], p, node) for node in d.roots[mine].tolist()]
                for p in range(2)
            ]
            form = subgame.form_by_beliefs(ranges)
        else:
            subgame = cut_public(d, layer, mine)
            own = reach[d.decisions.parent[subgame.openings]]
            form = subgame.form(own, _values(d, subgame, own, given[i]))
        inside = np.append(False, np.isin(d.decisions.owner[1:], subgame.own))
        found[inside] = _solved(form, i, config, iterations)
    return found


def _solved(
    form: SequenceForm, player: int, config: CFRConfig, iterations: int
) -> np.ndarray:
    """float64 [S - 1], the player's average behaviour."""
    solver = cfr.make_solver(
        form, config=config, compile=cfr.compile_for(form, iterations)
    )
    solver.run(iterations)
    return solver.average_behaviour(player)[1:]


def _values(
    d: PublicDecomposition, subgame: PublicSubgame, own: np.ndarray, given: np.ndarray
) -> np.ndarray:
    """float64 [g], what a best response gets at the gadget, in o's utility."""
    i, count = d.player, len(subgame.augmented)
    # Nobody terminates for this; a maximum, so nothing is rounded.
    form = subgame.form(own, np.full(count, -1e30))
    inside = np.isin(d.decisions.owner[1:], subgame.own)
    behaviour = np.append(1.0, given[1:][inside])
    reach = conversions.reach_from_behaviour(form.decisions[i], behaviour)
    return best_responses.infoset_values(form, 1 - i, reach)[:count]


def _reach(
    d: PublicDecomposition, given: np.ndarray, player: int, node: int
) -> np.ndarray:
    """float64 [H], a player's reach of a public node, by signal; ones if it is none."""
    game, betting = d.game, d.game.betting
    decisions = public_nodes.public_decisions(game, player)
    round_ = int(betting.round[node])
    reach = np.ones(game.num_signals(player)[round_])
    while betting.parent[node] >= 0:
        above = int(betting.parent[node])
        if betting.player[above] == player:
            then = game.ancestors(player, round_, int(betting.round[above]))
            reach *= decisions.block(given, above)[then, d.index[node]]
        node = above
    return reach if reach.any() else np.ones_like(reach)
