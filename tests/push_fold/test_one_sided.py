"""Guaranteed values of push/fold play, compared with linear programs per hand."""

import itertools

import numpy as np
import pytest
import scipy.optimize

from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.push_fold import one_sided, solve
from spiel_cr.push_fold.engine import Engine
from spiel_cr.push_fold.solve import SolveSettings
from spiel_cr.push_fold.tournament import TournamentSetting
from tests.push_fold.reference import order_chance, small_tables

TOTAL, SMALL, BIG = 12, 1, 2
CLASSES = 3
# The error of 2000 steps of regret matching is smaller; a missing bet costs more.
SOLVED = 2e-4


def hand_value(chips, on_small, worth, deals, strength):
    """Return the maximin value of one hand, by a linear program from the rules.

    Args:
      chips: Chips of the player who maximises.
      on_small: Whether this player has the small blind.
      worth: Value of this player by their chips after the hand.
      deals: Probabilities of deals, [C, C], this player's class first.
      strength: Result of `strength_classes`.
    """
    theirs, deep = TOTAL - chips, min(chips, TOTAL - chips)
    ours, other = (SMALL, BIG) if on_small else (BIG, SMALL)
    lost = worth[chips - min(ours, theirs)] if chips > ours else None
    # Bets of the opponent, with the loss of giving up later; None if not possible.
    if on_small:
        bets = {"blind": min(BIG, chips) if theirs > BIG else None}
    else:
        bets = {size: size for size in range(BIG, deep)} | {"all": None}
    names, classes = list(bets), range(CLASSES)
    go = {key: i for i, key in enumerate(itertools.product(names, classes))}
    rows, limits = [], []
    for h in classes:
        for bet, loss in bets.items():
            for quits in (False, True) if loss is not None else (False,):
                # u[h] <= sum over our hands of our values under this plan.
                row, constant = np.zeros(len(go) + CLASSES), 0.0
                row[len(go) + h] = 1
                for g in classes:
                    chance = deals[g, h]
                    if quits:
                        there = worth[chips + loss]
                    else:
                        there = sum(
                            order_chance(strength, (g, h), ranks) * worth[after]
                            for ranks, after in (
                                ((0, 0), chips),
                                ((0, 1), chips + deep),
                                ((1, 0), chips - deep),
                            )
                        )
                    away = there if lost is None else lost
                    row[go[bet, g]] -= chance * (there - away)
                    constant += chance * away
                rows.append(row)
                limits.append(constant)
        if not on_small and theirs > other:
            row = np.zeros(len(go) + CLASSES)
            row[len(go) + h] = 1
            rows.append(row)
            limits.append(deals[:, h].sum() * worth[chips + min(other, chips)])
    best = scipy.optimize.linprog(
        np.r_[np.zeros(len(go)), -np.ones(CLASSES)],
        np.array(rows),
        limits,
        bounds=[(0, 1)] * len(go) + [(None, None)] * CLASSES,
    )
    return -best.fun


@pytest.fixture(scope="module")
def maximin():
    """Return maximin values [TOTAL - 1, 2] by value iteration, as in `Guarantee`."""
    _, deals, strength = small_tables(1, CLASSES)
    values = np.tile(np.arange(TOTAL + 1.0) / TOTAL, (2, 1))
    change = 1.0
    while change > 1e-7:
        before = values.copy()
        for seat, chips in itertools.product((0, 1), range(1, TOTAL)):
            values[seat, chips] = hand_value(
                chips, seat == 0, values[1 - seat], deals.sum(axis=2), strength
            )
        change = np.abs(values - before).max()
    return values[:, 1:-1].T


@pytest.mark.slow
def test_guarantee_equals_linear_programs(maximin):
    tables, _, _ = small_tables(1, CLASSES)
    setting = TournamentSetting(TOTAL, 2, (SMALL, BIG), (1.0, 0.0))
    found = one_sided.guarantee(setting, tables, rounds=8, steps=2000)
    assert found.stacks.tolist() == list(range(1, TOTAL))
    # Tables are float32.
    assert (found.lower <= maximin + 2e-6).all()
    assert (found.upper >= maximin - 2e-6).all()
    assert found.lower == pytest.approx(maximin, abs=SOLVED)
    assert found.upper == pytest.approx(maximin, abs=SOLVED)
    # Raising and folding later has a positive value for the opponent.
    most = np.abs(found.gap).max()
    np.testing.assert_allclose(found.gap, 1 - maximin[::-1, ::-1] - maximin, atol=1e-3)
    assert found.gap.min() > -SOLVED and most == found.gap.max() > 20 * SOLVED
    # A player who is all-in by the blind does not fold: ours with 1 chip on the small
    # blind, or 1 or 2 on the big one, and the opponent with 1 on the small blind.
    big = found.profile[TOTAL - 1 :]
    offers = big.shape[1] // 3
    assert (found.profile[0, 0] == 1).all() and (big[:2, :offers] == 1).all()
    assert (big[-1, -1] == 0).all() and (big[-2, -1] != 1).any()


def test_guarantee_of_a_weak_strategy_is_its_exact_value(maximin):
    """The lower bound belongs to the computed strategy, not to the best one."""
    tables, _, _ = small_tables(1, CLASSES)
    setting = TournamentSetting(TOTAL, 2, (SMALL, BIG), (1.0, 0.0))
    found = one_sided.guarantee(setting, tables, rounds=1, steps=1)
    assert (found.lower < maximin + 2e-6).all()
    assert (found.lower < maximin - 0.01).any()


def test_guarantee_equals_push_fold_without_room_to_raise():
    """With five chips and blinds of 1 and 2, every raise is all-in."""
    tables, _, _ = small_tables(2, CLASSES)
    found = one_sided.guarantee(
        TournamentSetting(5, 2, (1, 2), (1.0, 0.0)), tables, rounds=8, steps=2000
    )
    settings = SolveSettings(rounds=12, steps=2000)
    both = solve.solve_tournament(
        [2, 3], [1], [1, 2], Engine(tables), settings=settings
    ).levels[0]
    ours = np.stack([both.values[:, 0], both.values[::-1, 1]], 1)
    np.testing.assert_allclose(found.lower, ours, atol=1e-3)
    np.testing.assert_allclose(found.gap, 0, atol=1e-3)


def test_rejects_three_players_zero_loops_and_many_states():
    tables, _, _ = small_tables(2, CLASSES)
    with pytest.raises(ValueError, match="two stacks"):
        one_sided.guarantee(TournamentSetting(9, 3, (1, 2), (3.0, 2.0, 1.0)), tables)
    for loops in ({"rounds": 0}, {"steps": 0}):
        with pytest.raises(ValueError, match="=0 must be a whole number from 1"):
            one_sided.guarantee(
                TournamentSetting(9, 2, (1, 2), (1.0, 0.0)), tables, **loops
            )
    with pytest.raises(GameTooLargeError, match="round stacks"):
        one_sided.guarantee(TournamentSetting(301, 2, (1, 2), (1.0, 0.0)), tables)
