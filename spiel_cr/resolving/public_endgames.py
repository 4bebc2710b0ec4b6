"""Endgames in two phases: a complete strategy, and another solve of its last round.

Gilpin & Sandholm 2006 and 2007 (GS1, GS2) compute the strategy of the early rounds in
an abstraction, and solve the last round with all private states when it is reached.
They assume that the opponent plays the same strategy in the early rounds, and weight
its hands by Bayes' rule. This is *unsafe*, because the opponent may deviate. A gadget
game (Burch, Johanson & Bowling 2014) is *safe*: the opponent may choose the value of
its best response to the first strategy instead, so in an exact solution it gains
nothing.

All endgames at all public states are solved, so NashConv of the combination is exact.
A *layer* consists of the endgames in which the player has made the same number of
decisions before. All endgames of a layer are one game in sequence form, with all boards
next to each other; Rhode Island Hold'em has eight layers.
"""

import functools
from collections.abc import Iterator, Sequence

import numpy as np

from spiel_cr.common.checks import check_choice, check_dtype, check_iterations
from spiel_cr.common.messages import progress_bar
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.sequence_form.layout import SequenceForm
from spiel_cr.policies import best_responses, conversions
from spiel_cr.resolving.public_decomposition import (
    PublicDecomposition,
    decompose_public,
)
from spiel_cr.resolving.public_gadget import PublicSubgame, cut_public
from spiel_cr.solvers.algorithms import CFR, find
from spiel_cr.solvers.cfr import cfr

GADGETS = ("cfrd", "unsafe")


def solve_endgames(
    game: PublicTreeGame,
    behaviour: Sequence[np.ndarray],
    *,
    gadget: str = "cfrd",
    algorithm: str = "cfr+",
    iterations: int,
    dtype: np.typing.DTypeLike = np.float64,
    progress: bool | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Solve the last round of a public-tree game again, for both players.

    Args:
      game: The complete game.
      behaviour: Probability of each sequence's last action for each player, float [S],
        such as the result of `gameshrink.lift`.
      gadget: "cfrd" is safe; "unsafe" assumes that the opponent plays `behaviour`.
      algorithm: Algorithm of the CFR family.
      iterations: Number of iterations for the endgames of each layer of decisions.
      dtype: Arithmetic of the iterations, float64 or float32.
      progress: Whether to show a progress bar on stderr.

    Returns:
      Action probabilities of each player, float64 [S]: `behaviour` with other
      probabilities in the last round.

    Raises:
      ValueError: If the gadget, algorithm or dtype does not exist; or if a player first
        acts in the last round, so that no phase precedes it.
    """
    check_iterations(iterations)
    check_choice(gadget, "gadget", GADGETS)
    config, dtype = find(algorithm, families=(CFR,)).config, check_dtype(dtype)
    base = [np.asarray(row, np.float64) for row in behaviour]
    combined = [row.copy() for row in base]
    cuts = [decompose_public(game, player) for player in range(2)]
    roots = [endgame_roots(d) for d in cuts]
    layers = sum(
        len(np.unique(d.layer[d.roots[some]]))
        for d, some in zip(cuts, roots, strict=True)
    )
    with progress_bar(total=layers * iterations, progress=progress) as bar:

        def advance(count: int) -> None:
            bar.update(count)

        for d, some in zip(cuts, roots, strict=True):
            for subgame, form in _forms(d, some, base, gadget):
                solver = cfr.make_solver(
                    form,
                    config=config,
                    dtype=dtype,
                    compile=cfr.compile_for(form, iterations),
                )
                solver.run(iterations, after_chunk=advance)
                owner = d.decisions.owner[1:]
                inside = np.append(False, np.isin(owner, subgame.infosets))
                solved = solver.average_behaviour(d.player)[1:]
                combined[d.player][inside] = solved
    return combined[0], combined[1]


def endgame_roots(d: PublicDecomposition) -> np.ndarray:
    """Return the player's first decisions of the last round, int32.

    They are indices of `d.roots`.

    Raises:
      ValueError: If one of them is the player's first decision of all.
    """
    betting, last = d.game.betting, d.game.num_rounds - 1
    acted = np.zeros(len(betting), bool)
    for node in range(1, len(betting)):
        above = betting.parent[node]
        acts = betting.player[above] == d.player and betting.round[above] == last
        acted[node] = acted[above] or acts
    endgames = np.flatnonzero((betting.round[d.roots] == last) & ~acted[d.roots])
    if (d.layer[d.roots[endgames]] == 1).any():
        raise ValueError(
            f"{d.game.game}: player {d.player} first acts in the last round {last}, so "
            "no phase precedes the endgame; use a game with several rounds"
        )
    return endgames.astype(np.int32)


def _forms(
    d: PublicDecomposition, roots: np.ndarray, base: Sequence[np.ndarray], gadget: str
) -> Iterator[tuple[PublicSubgame, SequenceForm]]:
    """Yield the endgames of one player by layer; `roots` as in `endgame_roots`."""
    i = d.player
    reach = conversions.reach_from_behaviour(d.decisions, base[i])
    for layer in np.unique(d.layer[d.roots[roots]]).tolist():
        tops = roots[d.layer[d.roots[roots]] == layer]
        if gadget == "unsafe":
            subgame = cut_public(d, layer, tops, gadget=False)
            ranges = [
                [_range(d, base[p], p, node) for node in d.roots[tops].tolist()]
                for p in range(2)
            ]
            yield subgame, subgame.form_by_beliefs(ranges)
        else:
            subgame = cut_public(d, layer, tops)
            opening_reach = reach[d.decisions.parent[subgame.openings]]
            values = _values(d, subgame, opening_reach, base[i])
            yield subgame, subgame.form(opening_reach, values)


def _values(
    d: PublicDecomposition, subgame: PublicSubgame, reach: np.ndarray, base: np.ndarray
) -> np.ndarray:
    """Return a best response's values at the gadget, in o's utility, float64 [g]."""
    i, count = d.player, len(subgame.augmented)
    # With this value, a best response never terminates. It enters a maximum only, so it
    # causes no rounding errors.
    form = subgame.form(reach, np.full(count, -1e30))
    inside = np.isin(d.decisions.owner[1:], subgame.infosets)
    behaviour = np.append(1.0, base[1:][inside])
    reach = conversions.reach_from_behaviour(form.decisions[i], behaviour)
    return best_responses.infoset_values(form, 1 - i, reach)[:count]


def _range(
    d: PublicDecomposition, behaviour: np.ndarray, player: int, node: int
) -> np.ndarray:
    """Return a player's reach of a public node, float64 [H]; ones if it is zero."""
    decisions = d.game.public_decisions[player]
    strategy_at = functools.partial(decisions.block, behaviour)
    reach = d.game.reach_at(player, node, strategy_at)
    return reach if reach.any() else np.ones_like(reach)
