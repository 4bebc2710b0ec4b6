"""Trees that end in public states, valued by both players' ranges."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import game_defs  # noqa: F401
from spiel_cr.cfr import cfr
from spiel_cr.cfr.config import parse_algorithm
from spiel_cr.compilation.compiler import compile_game
from spiel_cr.eval.players import traversing
from spiel_cr.lookahead.exact import ExactBelow, ExactValues
from spiel_cr.lookahead.frontier import Frontier, FrontierFunction
from spiel_cr.partial.config import PartialConfig
from spiel_cr.partial.cut_off.places import cut_place
from spiel_cr.partial.solved_tree import SolvedTree
from spiel_cr.partial.tree import PartialTree
from spiel_cr.players import PartialResolvingBot
from spiel_cr.resolving.config import ResolvingConfig
from spiel_cr.resolving.decomposition import decompose
from spiel_cr.resolving.gadget import attach_cut, build_forest
from spiel_cr.resolving.lookahead import look_ahead

GAME = "python_ii_goofspiel(num_cards=3)"


class ExactAtCuts:
    """Solves what lies below a cut, in the game compiled whole."""

    def __init__(self, depth: int, iterations: int) -> None:
        self.tree = compile_game(GAME, observations=True)
        self.depth, self.exact = depth, ExactValues(iterations)
        whole = PartialTree.start(GAME, len(self.tree.histories))
        whole.grow()
        states = whole.table.states[whole.rows(whole.compile().ids)]
        self.history = {state.tobytes(): k for k, state in enumerate(states)}
        self.asked = 0

    def check_game(self, game):
        assert str(game).startswith("python_ii_goofspiel(num_cards=3")

    def next_cut(self, moves):
        return self.depth if moves < self.depth else None

    def lay_out_frontier(self, frontier: Frontier, capacity=None):
        self.asked += 1
        at = np.array([self.history[state.tobytes()] for state in frontier.states])
        states = dataclasses.replace(frontier.public, history=at)
        below = self.exact.lay_out(self.tree, states)
        counts = tuple(map(len, states.infosets))
        return Padded(below, counts, counts if capacity is None else capacity.sizes)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Padded:
    """Values of ranges that are longer than needed."""

    below: ExactBelow
    counts: tuple[int, int] = dataclasses.field(metadata={"static": True})
    sizes: tuple[int, int] = dataclasses.field(metadata={"static": True})

    def values(self, player, ranges):
        short = [own[:count] for own, count in zip(ranges, self.counts, strict=True)]
        found = self.below.values(player, (short[0], short[1]))
        return jnp.pad(found, (0, self.sizes[player] - self.counts[player]))

    def largest(self):
        return self.below.largest()

    def rescaled(self, exponent):
        return dataclasses.replace(self, below=self.below.rescaled(exponent))


def trunk(player, ends, most=1000):
    tree = PartialTree.start(GAME, most, player=player, ends=ends)
    tree.grow(guided=True)
    return tree


def test_a_tree_ends_at_a_cut_and_goes_on_beyond_it():
    ends = ExactAtCuts(2, 1)
    assert isinstance(ends, FrontierFunction)
    tree = trunk(0, ends)
    assert (len(tree), tree.can_grow, tree.is_whole) == (1 + 3 + 9, False, False)
    snapshot = tree.compile()
    assert len(snapshot.cut) == 9
    assert (snapshot.tree.histories.utility[snapshot.cut] == 0).all()
    # Who won the first round is told: 3 pairs of cards for either, and a tie of each.
    solved = SolvedTree.of(tree, 0)
    cut = cut_place(solved, solved.forest())
    assert cut is not None
    sizes = np.bincount(cut.frontier.public.root_state)
    assert sorted(sizes.tolist()) == [1, 1, 1, 3, 3]
    for p in range(2):
        assert len(cut.frontier.public.infosets[p]) == 7
    public = cut.frontier.public
    chosen = public.root_state == int(sizes.argmax())
    ids = tree.table.id[public.history[chosen]]
    below = tree.focus_below(ids)
    below.grow()
    assert not below.can_grow and not len(below.table.cuts())
    # Of each pair 2 cards each are left: 1 + 2 + 4 + 4 + 4 histories.
    # What player 0 did else is a stub.
    assert len(below) == 1 + 3 + 2 * 3 + 3 * 14
    assert len(tree.table.cuts()) == 9


@pytest.mark.slow  # compiles for seconds
@pytest.mark.parametrize("player", [0, 1])
def test_the_first_layer_is_that_of_the_lookahead(player):
    """The same game, the same values: by the frontier, and by the whole game."""
    ends = ExactAtCuts(2, 40)
    solved = SolvedTree.of(trunk(player, ends), player)
    game = solved.forest()
    cut = cut_place(solved, game)
    below = ends.lay_out_frontier(cut.frontier)
    solver = cfr.make_solver(
        attach_cut(game.form, below, cut.sequences, cut.weights),
        config=parse_algorithm("cfr+"),
        values=True,
    )
    solver.run(40)
    role = decompose(ends.tree, 0)
    lookahead = look_ahead(role, 1, 2, ends.exact, unit="moves_from_start")
    whole = build_forest(role, 1, np.ones(1), np.zeros(99), lookahead)
    other = cfr.make_solver(whole.form, config=parse_algorithm("cfr+"), values=True)
    other.run(40)
    for p in range(2):
        mine, theirs = (each.average_behaviour(p)[1:4] for each in (solver, other))
        assert mine == pytest.approx(theirs, abs=1e-9)


@pytest.mark.slow  # compiles for seconds
def test_a_player_with_exact_values_is_hard_to_exploit():
    """Without values below its cut a player would be exploited by 1 or more."""
    tree, behaviours = compile_game(GAME), []
    config = ResolvingConfig("cfr+", iterations=100, gadget="maxmargin")
    for player in range(2):
        ends = ExactAtCuts(2, 100)
        # There is no room for the game: 73 histories.
        settings = PartialConfig(60, leaf=ends, warmup_matches=0)
        bot = PartialResolvingBot(GAME, player, config, partial=settings)
        behaviours.append(traversing.traverse(tree, bot))
        counts = bot.agent.counts
        assert counts.frontier_resolves and not counts.unsafe_restarts
        assert not (counts.fallback or counts.uniform) and ends.asked
    found = traversing.evaluate(tree, (behaviours[0], behaviours[1]))
    assert found.nash_conv < 0.01
