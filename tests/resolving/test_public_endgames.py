"""Endgames solved in a second phase, safely with a gadget or unsafely from beliefs."""

import numpy as np
import pytest

import game_defs  # noqa: F401
import spiel_cr
from spiel_cr.abstraction import buckets, gameshrink
from spiel_cr.games.public_tree.public_tree_loading import public_tree_game
from spiel_cr.policies import best_responses, conversions
from spiel_cr.resolving import public_endgames

SMALL = "python_rhode_island_holdem(num_ranks=4,num_suits=2,max_bets=1)"


def best_values(game, behaviour):
    """Return the best-response values of player 0 and player 1 against `behaviour`."""
    form = game.sequence_form
    reach = [
        conversions.reach_from_behaviour(own, np.asarray(mine, float))
        for own, mine in zip(form.decisions, behaviour, strict=True)
    ]
    return [best_responses.best_response_value(form, p, reach[1 - p]) for p in range(2)]


@pytest.mark.slow
def test_safe_endgames_lower_and_unsafe_ones_raise_exploitability():
    """Compare the best-response values before and after solving the endgames."""
    game = public_tree_game(SMALL)
    method = "potential-aware(distance=earth-movers)"
    partition = buckets.abstract(game, (3, 5, 10), method).partition
    smaller = gameshrink.coarsen(game, partition)
    average = spiel_cr.solve(smaller, "cfr+", 300).average
    lifted = gameshrink.lift(game, partition, average)
    before = best_values(game, lifted)
    safe = public_endgames.solve_endgames(game, lifted, iterations=100)
    after = best_values(game, safe)
    # 100 iterations leave a small error in each solve.
    assert after[0] <= before[0] + 0.01 and after[1] <= before[1] + 0.01
    assert sum(after) < 0.9 * sum(before)
    unsafe = public_endgames.solve_endgames(
        game, lifted, gadget="unsafe", iterations=100
    )
    # Unsafe endgames have no guarantee; here they raise exploitability.
    assert sum(after) <= sum(before) <= sum(best_values(game, unsafe))
    for player in range(2):
        check_early_rounds(game, player, lifted[player], safe[player])


@pytest.mark.slow
def test_unsafe_endgames_can_be_less_exploitable_than_safe_ones():
    """With buckets that ignore the board, both players stay safe with a gadget."""
    game = public_tree_game(SMALL.replace("num_ranks=4", "num_ranks=3"))
    labels = []
    for parents in game.parents:
        own = [np.arange(len(parents[0]), dtype=np.int32)]
        for parent in parents[1:]:
            own.append(own[-1][parent])
        labels.append(own)
    partition = gameshrink.Partition(labels)
    smaller = gameshrink.coarsen(game, partition)
    average = spiel_cr.solve(smaller, "cfr+", 300).average
    lifted = gameshrink.lift(game, partition, average)
    before = best_values(game, lifted)
    safe, unsafe = (
        best_values(
            game,
            public_endgames.solve_endgames(game, lifted, gadget=name, iterations=300),
        )
        for name in ("cfrd", "unsafe")
    )
    # 300 iterations leave a small error in each solve.
    assert safe[0] <= before[0] + 0.01 and safe[1] <= before[1] + 0.01
    assert sum(unsafe) < sum(safe)


def check_early_rounds(game, player, before, after):
    """Check that only the strategy of the last round has changed."""
    decisions = game.public_decisions[player]
    changed = [
        not np.array_equal(decisions.block(before, n), decisions.block(after, n))
        for n in decisions.node
    ]
    last = game.betting.round[decisions.node] == game.num_rounds - 1
    assert not np.array(changed)[~last].any() and np.array(changed)[last].all()


def test_rejects_unknown_gadgets_and_zero_iterations():
    game = public_tree_game(SMALL)
    behaviour = [
        conversions.uniform_behaviour(own) for own in game.sequence_form.decisions
    ]
    with pytest.raises(ValueError, match="gadget='safe'"):
        public_endgames.solve_endgames(game, behaviour, gadget="safe", iterations=1)
    with pytest.raises(ValueError, match="iterations=0"):
        public_endgames.solve_endgames(game, behaviour, iterations=0)


LEDUC = "python_leduc_poker(stack0=5,stack1=5,num_ranks=3)"


def uniform(game):
    return [conversions.uniform_behaviour(own) for own in game.sequence_form.decisions]


def test_float32_endgames_lower_exploitability():
    game = public_tree_game(LEDUC)
    given = uniform(game)
    before = best_values(game, given)
    found = public_endgames.solve_endgames(
        game, given, algorithm="dcfr", dtype="float32", iterations=100
    )
    after = best_values(game, found)
    # 100 iterations leave a small error.
    assert after[0] <= before[0] + 0.01 and after[1] <= before[1] + 0.01
    assert sum(after) < 0.9 * sum(before)
