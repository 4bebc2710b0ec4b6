"""Benchmark of responders in hold'em: what is reported is unbiased and hardly noisy."""

import functools

import numpy as np
import pyspiel
import pytest
from open_spiel.python import policy as policy_lib

from benchmarks import holdem
from benchmarks.holdem_judge import Judge
from spiel_cr.eval.players import match as matches
from spiel_cr.players.bots import PolicyBot
from spiel_cr.responses import opponents


@functools.cache
def hold_em():
    return pyspiel.load_game(holdem.HOLDEM)


def dealt(cards, moves=()):
    """After these moves; cards are taken in order where chance deals."""
    state, moves, cards = hold_em().new_initial_state(), list(moves), list(cards)
    while not state.is_terminal():
        source = cards if state.is_chance_node() else moves
        if not source:
            break
        state.apply_action(source.pop(0))
    return state


def value_of(policies, seat):
    """Exact, of policies that look at no card: showdowns are worth 0 on average."""

    def value(state):
        if state.is_terminal():
            folded = state.history()[-1] == 0
            return state.player_return(seat) if folded else 0.0
        if state.is_chance_node():
            return value(state.child(state.legal_actions()[0]))
        chosen = policies[state.current_player()].action_probabilities(state)
        return sum(p * value(state.child(a)) for a, p in chosen.items() if p)

    return value(hold_em().new_initial_state())


def against_uniform(responder, seat):
    policies = [policy_lib.UniformRandomPolicy(hold_em())] * 2
    policies[seat] = opponents.chump(hold_em(), responder)
    return policies


@pytest.mark.parametrize("seat", [0, 1])
def test_the_baseline_is_judged_exactly(seat):
    """No match of it differs from its value."""
    policies = against_uniform("always_raise", seat)
    judge = Judge(hold_em(), policies[1 - seat], seat, samples=10)
    exact = value_of(policies, seat)
    assert exact > 20
    assert judge.start() == pytest.approx(exact, abs=1e-9)
    for moves in ((), (1, 2), (2, 2)):
        state = dealt(range(4), moves)
        if state.current_player() == seat:
            assert judge.advantage(state, 2) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(("responder", "seat"), [("always_call", 0), ("call_raise", 1)])
def test_others_are_judged_without_bias(responder, seat):
    """By the exact value of policies that look at no card, and with less variance.

    Bound: 4 standard errors; once in 16 000 seeds by chance.
    """
    policies = against_uniform(responder, seat)
    judge = Judge(hold_em(), policies[1 - seat], seat, seed=3, samples=20)
    bots = [PolicyBot(p, policies[p]) for p in (0, 1)]
    random = np.random.default_rng(4)
    expected, returns = [], []
    for _ in range(800):
        gains = [judge.start()]

        def add(state, player, action, gains=gains):
            if player == seat:
                gains.append(judge.advantage(state, action))

        match = matches.play_match(hold_em(), bots, random, observers=[add])
        expected.append(sum(gains))
        returns.append(match.returns[seat])
    error = np.std(expected, ddof=1) / np.sqrt(len(expected))
    assert abs(np.mean(expected) - value_of(policies, seat)) < 4 * error
    # Such deviate from the baseline at every other decision; good responders seldom.
    assert np.std(expected) < 0.9 * np.std(returns)


def test_equities():
    """Two aces and 7-2 of two suits, before the flop, against a random hand.

    Published: 0.852 and 0.346; the standard error is 0.015.
    """
    aces, poor = [48, 49], [0, 22]
    judge = Judge(hold_em(), policy_lib.UniformRandomPolicy(hold_em()), 0)
    assert judge._equity(dealt([*aces, 10, 20])) == pytest.approx(0.852, abs=0.04)
    assert judge._equity(dealt([*poor, 10, 20])) == pytest.approx(0.346, abs=0.05)
    # Who folds gives up more with the better hand.
    given_up = [-judge.advantage(dealt([*own, 10, 20], [2]), 0) for own in (aces, poor)]
    assert given_up[0] > given_up[1] + 10


def test_the_opponents_cards_are_not_looked_at():
    uniform = policy_lib.UniformRandomPolicy(hold_em())
    for seat, moves in ((0, (1,)), (1, ())):
        found = set()
        for hidden in ([10, 20], [48, 44]):
            hands = [hidden, hidden]
            hands[seat] = [0, 5]
            judge = Judge(hold_em(), uniform, seat, samples=50)
            state = dealt([*hands[0], *hands[1]], moves)
            assert state.current_player() == seat
            found.add(judge.advantage(state, 1))
        assert len(found) == 1 and found != {0.0}


def test_the_benchmark(tmp_path, capsys):
    """A deal of hold'em; a run that was stopped while writing goes on from there."""
    out = tmp_path / "matches.jsonl"
    given = ["--opponents", "uniform", "--responders", "ismcts", "lbr", "--deals", "1"]
    given += ["--simulations", "4", "--rollouts", "2", "--out", str(tmp_path)]
    tables = []
    for _ in range(2):
        assert holdem.main(given) == 0
        tables.append(capsys.readouterr().out.splitlines()[:5])
        # Two responders, two seats.
        assert len(out.read_text().splitlines()) == 2 * 2
        out.write_text(out.read_text()[:-20])
    assert tables[0] == tables[1] and "`uniform`" in tables[0][-1]
    with pytest.raises(SystemExit, match="holds a run with seed=0, not 1"):
        holdem.main([*given, "--seed", "1"])


@pytest.mark.slow
def test_learned_responders_are_kept_and_play_on_the_same_deals(tmp_path, capsys):
    given = ["--opponents", "always_raise", "--responders", "gradient", "lbr"]
    given += ["--deals", "2", "--rollouts", "2", "--learn-seconds", "5"]
    given += ["--out", str(tmp_path)]
    assert holdem.main(given) == 0
    table = capsys.readouterr().out
    assert "policy gradients − LBR" in table and "ISMCTS" not in table
    files = sorted(tmp_path.glob("always_raise-*.npz"))
    assert len(files) == 2
    learned = [path.read_bytes() for path in files]
    (tmp_path / "matches.jsonl").unlink()
    assert holdem.main(given) == 0
    # The networks play again, and are not learned again.
    again = capsys.readouterr().out
    assert [path.read_bytes() for path in files] == learned
    assert (
        again.splitlines()[4].split("|")[2:3] == table.splitlines()[4].split("|")[2:3]
    )
