"""Positions from batched rules, compared with OpenSpiel's states."""

import numpy as np
import pyspiel
import pytest

from spiel_cr.common.errors import InvalidGameError
from spiel_cr.games.histories import TERMINAL
from spiel_cr.games.opening.opened import load_game
from spiel_cr.games.simulation.rules_source import RulesSource
from tests.support import games, reference, simulated, tabled

MATCHES = 12


@pytest.mark.parametrize(
    "game",
    [
        "phantom_ttt",
        "dark_hex(board_size=3,gameversion=adh)",
        games.goofspiel(5, "descending"),
    ],
)
def test_positions_equal_openspiel_states(game):
    """In random matches, keys are equal exactly if information states are equal."""
    source, random = simulated.source_of(game), np.random.default_rng(1)
    positions = source.start(MATCHES, random)
    states = [source.game.new_initial_state() for _ in range(MATCHES)]
    known: dict[tuple[int, str], tuple[int, ...]] = {}
    while True:
        assert positions.player.dtype == np.int8 and positions.key.dtype == np.uint64
        for i, state in enumerate(states):
            assert positions.player[i] == state.current_player()
            if state.is_terminal():
                assert positions.utility[i] == state.returns()[0]
                assert positions.num_actions[i] == 0
                continue
            assert positions.utility[i] == 0
            assert positions.num_actions[i] == len(state.legal_actions())
            key = tuple(positions.key[i].tolist())
            assert key == tuple(source.key_of(state).tolist())
            player = state.current_player()
            name = player, state.information_state_string(player)
            assert known.setdefault(name, key) == key
        live = np.flatnonzero(positions.player != TERMINAL)
        if not len(live):
            break
        # All matches continue in reverse order, the first one twice.
        parent = np.append(live, live[0])[::-1]
        chosen = random.integers(positions.num_actions[parent])
        states = [
            states[i].child(states[i].legal_actions()[a])
            for i, a in zip(parent, chosen, strict=True)
        ]
        before = positions.key.copy(), positions.player.copy()
        last = positions
        positions = source.step(last.states[parent], chosen, random)
        assert np.array_equal(last.key, before[0])
        assert np.array_equal(last.player, before[1])
    assert len(set(known.values())) == len(known) > 3 * MATCHES


def test_chance_outcomes_are_sampled_with_their_probabilities():
    """The test counts the cards of Kuhn poker, and the infosets after them.

    In 6,000 matches each of 3 cards is dealt 2,000 times, with standard deviation 37.
    One of them exceeds 6 standard deviations with a chance below 1e-8.
    """
    source = simulated.source_of("kuhn_poker")
    dealt = source.start(6000, np.random.default_rng(3))
    cards, counts = np.unique(dealt.key, axis=0, return_counts=True)
    assert len(cards) == 3 and (abs(counts - 2000) < 222).all()
    after = source.step(dealt.states, np.ones(6000, int), np.random.default_rng(1))
    assert len(np.unique(after.key, axis=0)) == 3
    again = source.start(6000, np.random.default_rng(3))
    assert np.array_equal(again.key, dealt.key)


def test_chance_between_decisions_is_sampled_evenly():
    """A point card is shown after each round; the 2 that are left are equally likely.

    The bound is 6 standard deviations.
    """
    game = games.goofspiel(3, "random")
    source, random = simulated.source_of(game), np.random.default_rng(3)
    positions = source.start(3000, random)
    assert (positions.player == 0).all()
    for _ in range(2):
        first = np.zeros(3000, np.int64)
        positions = source.step(positions.states, first, random)
    assert (positions.player == 0).all()
    shown, counts = np.unique(positions.key, axis=0, return_counts=True)
    # There are six pairs of the previous and the current card.
    assert len(shown) == 6 and (abs(counts - 500) < 6 * 20.4).all()


def test_keys_of_states_do_not_depend_on_earlier_queries():
    source = simulated.source_of("phantom_ttt")
    random, states = np.random.default_rng(2), []
    state = source.game.new_initial_state()
    while not state.is_terminal():
        if state.current_player() >= 0:
            states.append(state.clone())
        state.apply_action(int(random.choice(state.legal_actions())))
    forwards = [source.key_of(s).tolist() for s in states]
    fresh = simulated.source_of("phantom_ttt")
    backwards = [fresh.key_of(s).tolist() for s in states[::-1]]
    assert forwards == backwards[::-1] and len(forwards) > 1
    source.close()
    assert source.key_of(states[-1]).tolist() == forwards[-1]


def test_rejects_games_without_batched_rules():
    with pytest.raises(ValueError, match="kuhn_poker.* has no batched rules"):
        RulesSource(load_game("kuhn_poker"))


class _Broken(tabled.Tabled):
    """Batched rules of Kuhn poker with a fault."""

    def __init__(self, tree, fault: str) -> None:
        super().__init__(tree)
        self.fault = fault

    def legal_actions_mask(self, states):
        mask = super().legal_actions_mask(states)
        return mask & (self.fault != "moves" or self.current_player(states)[0] < 0)

    def chance_probabilities(self, states):
        odds = super().chance_probabilities(states)
        return odds * (0.9 if self.fault == "odds" else 1)


@pytest.mark.parametrize(
    ("fault", "said"),
    [("moves", "player 0 has no legal action"), ("odds", "must sum to 1")],
)
def test_rejects_invalid_batched_rules(fault, said):
    game = pyspiel.load_game("kuhn_poker")
    source = RulesSource(game, _Broken(reference.Tree(game), fault))
    with pytest.raises(InvalidGameError, match=said):
        source.start(5, np.random.default_rng(1))
