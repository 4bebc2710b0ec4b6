"""Rules of a hand: pots, side pots, odd chips, places, and moving blinds."""

import math

import numpy as np
import pytest

from spiel_cr.push_fold import rules
from spiel_cr.push_fold.rules import Outcome

BLINDS = (1, 2)
F, J = False, True


@pytest.mark.parametrize(
    ("stacks", "jams", "ranks", "after"),
    [
        # All fold; a steal; a call; uncovered chips are returned.
        ((9, 9, 9), (F, F, F), (), {(9, 8, 10): 1}),
        ((9, 9, 9), (J, F, F), (), {(12, 8, 7): 1}),
        ((5, 9, 9), (J, F, J), (0, 1), {(11, 8, 4): 1}),
        ((5, 9, 9), (J, F, J), (1, 0), {(0, 8, 15 - 1): 1} | {(0, 8, 15): 1}),
        # The shortest stack wins the main pot, and the second-best hand the side pot.
        ((3, 5, 9), (J, J, J), (0, 1, 2), {(9, 4, 4): 1}),
        ((3, 5, 9), (J, J, J), (2, 1, 0), {(0, 0, 17): 1}),
        # Two players share 7 chips: the odd chip is drawn by lot.
        ((3, 9, 3), (J, F, J), (0, 0), {(4, 8, 3): 0.5, (3, 8, 4): 0.5}),
        # A big blind with one chip wins one chip from each player.
        ((9, 9, 1), (J, F, J), (1, 0), {(8, 8, 3): 1}),
        # Two all-ins below the big blind: its uncovered chips are returned.
        ((1, 1, 9), (J, J, F), (0, 1), {(3, 0, 8): 1}),
        ((1, 1, 9), (J, J, F), (1, 0), {(0, 3, 8): 1}),
        # A steal of one chip wins one chip of each blind.
        ((1, 9, 9), (J, F, F), (), {(3, 8, 8): 1}),
        ((9, 9), (F, F), (), {(8, 10): 1}),
        # The big blind covers no more than the small blind has.
        ((1, 9), (F, F), (), {(0, 10): 1}),
    ],
)
def test_settle_pays_pots_side_pots_and_odd_chips(stacks, jams, ranks, after):
    after = {k: v for k, v in after.items() if sum(k) == sum(stacks)}
    found = rules.settle(stacks, BLINDS, Outcome(jams, ranks))
    assert {key: chance for chance, key in found} == pytest.approx(after)


@pytest.mark.parametrize("players", [2, 3])
def test_settle_conserves_chips_and_probability(players):
    for stacks in rules.all_stacks(8, players).tolist():
        for end in rules.outcomes(players):
            found = rules.settle(stacks, BLINDS, end)
            assert math.isclose(sum(chance for chance, _ in found), 1)
            for _, after in found:
                assert sum(after) == 8 and min(after) >= 0
            # A player who is not in the pot wins nothing.
            for p, jam in enumerate(end.jams):
                if not jam and any(end.jams):
                    assert all(after[p] <= stacks[p] for _, after in found)


@pytest.mark.parametrize(
    ("before", "after", "stacks", "position", "prize"),
    [
        ((4, 4, 4), (3, 4, 5), (4, 5, 3), (2, 0, 1), (0, 0, 0)),
        ((4, 4, 4), (0, 7, 5), (5, 7), (-1, 1, 0), (20, 0, 0)),
        ((4, 4, 4), (7, 0, 5), (5, 7), (1, -1, 0), (0, 20, 0)),
        ((4, 4, 4), (7, 5, 0), (5, 7), (1, 0, -1), (0, 0, 20)),
        # Two players finish: more chips before give the higher place; equal ones share.
        ((2, 4, 6), (0, 0, 12), (12,), (-1, -1, 0), (20, 30, 50)),
        ((3, 3, 6), (0, 0, 12), (12,), (-1, -1, 0), (25, 25, 50)),
        ((4, 4), (3, 5), (5, 3), (1, 0), (0, 0)),
        ((4, 4), (0, 8), (8,), (-1, 0), (30, 50)),
    ],
)
def test_move_on_pays_prizes_and_moves_the_blinds(
    before, after, stacks, position, prize
):
    prizes = (50.0, 30.0, 20.0)[: len(before)]
    assert rules.move_on(before, after, prizes) == (stacks, position, prize)


def test_numbers_of_states_outcomes_and_infosets():
    assert len(rules.all_stacks(45, 3)) == 946
    assert len(rules.all_stacks(45, 2)) == 44
    assert [len(rules.outcomes(n)) for n in (2, 3)] == [5, 25]
    assert [len(rules.infosets(n)) for n in (2, 3)] == [2, 6]
    assert rules.forced((5, 1, 2), BLINDS) == (F, J, J, J, J, J)
    assert rules.forced((1, 2, 3), BLINDS) == (F,) * 6
    assert np.ptp(rules.all_stacks(9, 3).sum(axis=1)) == 0
