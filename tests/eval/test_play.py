"""Single matches: the referee, a person at the terminal, and the command `play`."""

import io

import numpy as np
import pyspiel
import pytest

import spiel_cr
from spiel_cr.eval.cli import play as play_command
from spiel_cr.evaluation import referee
from tests.support.commands import outputs, rejection, report
from tests.support.scripted import Opinionated, Scripted

KUHN = "kuhn_poker"
SOLVED = "solved(solver=cfr+,iterations=50)"
GOOFSPIEL = "goofspiel(num_cards=3,imp_info=true,points_order=descending)"


def first(state):
    return state.legal_actions()[0]


def last(state):
    return state.legal_actions()[-1]


def play(game, bots, seed=0, **options):
    return referee.play_match(game, bots, np.random.default_rng(seed), **options)


def uniform(game):
    return [spiel_cr.load_bot(game, "uniform", seat) for seat in (0, 1)]


def test_match_has_legal_actions_and_the_games_returns():
    for seed in range(20):
        match = play(KUHN, uniform(KUHN), seed)
        state = pyspiel.load_game(KUHN).new_initial_state()
        movers = []
        for action in match.actions:
            movers.append(state.current_player())
            assert action in state.legal_actions()
            state.apply_action(action)
        assert state.is_terminal()
        assert match.returns == tuple(state.returns())
        for seat in (0, 1):
            assert len(match.seconds[seat]) == movers.count(seat)
            assert all(0 <= s < 10 for s in match.seconds[seat])


def test_bots_are_informed_once_of_each_move_of_others():
    seen = []
    bots = [Scripted(last), Scripted(first)]
    match = play(KUHN, bots, observers=[lambda s, p, a: seen.append((p, a))])
    # Two deals, a bet, a fold.
    assert [player for player, _ in seen] == [-1, -1, 0, 1]
    assert [action for _, action in seen] == list(match.actions)
    assert match.actions[2:] == (1, 0)
    assert match.returns == (1.0, -1.0)
    for seat, bot in enumerate(bots):
        assert bot.restarts == 1
        assert bot.heard == [move for move in seen if move[0] != seat]


def test_same_random_numbers_give_the_same_match():
    assert play(KUHN, uniform(KUHN), 3).actions == play(KUHN, uniform(KUHN), 3).actions
    found = {play(KUHN, uniform(KUHN), seed).actions for seed in range(20)}
    assert len(found) > 3


def test_match_does_not_depend_on_previous_matches():
    bots = uniform(KUHN)
    for seed in range(5):
        play(KUHN, bots, seed)
    assert play(KUHN, bots, 9).actions == play(KUHN, uniform(KUHN), 9).actions


def test_chance_seed_determines_the_deal_for_all_players():
    deals = set()
    for seed in range(5):
        for choose in (first, last):
            chance = np.random.default_rng(7)
            bots = [Scripted(choose), uniform(KUHN)[1]]
            deals.add(play(KUHN, bots, seed, chance=chance).actions[:2])
    assert len(deals) == 1


def test_action_frequencies_match_the_policy():
    # 4 standard errors: one false alarm in 16,000 seeds.
    rng, n, p = np.random.default_rng(0), 2000, 0.3
    bots = [Opinionated([(0, 1 - p), (1, p)]), Scripted(first)]
    bets = sum(referee.play_match(KUHN, bots, rng).actions[2] for _ in range(n))
    assert abs(bets / n - p) < 4 * np.sqrt(p * (1 - p) / n)


def test_actions_of_probability_zero_are_not_played():
    bots = [Opinionated([(0, 0.0), (1, 1.0)]), Opinionated([(0, 1.0), (1, 0.0)], 1)]
    for seed in range(20):
        assert play(KUHN, bots, seed).actions[2:] == (1, 0)


def test_simultaneous_moves_are_played_in_turns():
    # Both bid equal cards in every round, which is a draw.
    match = play(GOOFSPIEL, [Scripted(last), Scripted(last)])
    assert match.returns == (0.0, 0.0)
    assert play(GOOFSPIEL, [Scripted(last), Scripted(first)]).returns == (1.0, -1.0)


def test_match_on_a_game_tree_equals_match_on_the_game():
    tree = spiel_cr.build_tree(KUHN)
    assert play(tree, uniform(tree), 5).actions == play(KUHN, uniform(KUHN), 5).actions


@pytest.mark.parametrize("seat", (0, 1))
@pytest.mark.parametrize("action", (7, -1, None))
def test_rejects_illegal_actions(seat, action):
    bots = [Scripted(first), Scripted(first)]
    bots[seat] = Scripted(lambda state: action)
    with pytest.raises(ValueError, match=rf"player {seat}.*illegal.*\[0, 1\]") as error:
        play(KUHN, bots)
    assert repr(action) in str(error.value)
    assert "Scripted" in str(error.value)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ([(7, 1.0)], r"actions \[7\] are illegal"),
        ([(0, 0.5), (1, 0.4)], "sum to 1"),
        ([(0, -0.5), (1, 1.5)], "at least 0"),
        ([(0, float("nan")), (1, 1.0)], "probabilities"),
        ([], "probabilities"),
    ],
)
def test_rejects_invalid_policies(policy, message):
    with pytest.raises(ValueError, match=message):
        play(KUHN, [Opinionated(policy), Scripted(first)])


def test_rejects_three_bots():
    with pytest.raises(ValueError, match="a match needs two bots, not 3"):
        play(KUHN, [Scripted(first)] * 3)


def at_terminal(bots, answers, *, game=KUHN, seed=0):
    """Play with a person's answers; return the match and the printed text."""
    out = io.StringIO()
    series = play_command.play(
        game, bots, seed=seed, source=io.StringIO(answers), out=out
    )
    return series.played[0].match if series.played else None, out.getvalue()


def test_person_chooses_actions_by_name_or_number():
    by_name, text = at_terminal(["human", "uniform"], "bet\n")
    assert at_terminal(["human", "uniform"], "PASS\n" * 2)[0].actions[2] == 0
    by_number, _ = at_terminal(["human", "uniform"], "1\n")
    assert by_name == by_number._replace(seconds=by_name.seconds)
    assert by_name.actions[2] == 1
    for name in ("0  Check", "1  Bet", "q quits"):
        assert name in text
    for seat, bot in enumerate(("human", "uniform")):
        assert f"player {seat}, {bot}: {by_name.returns[seat]:+g}" in text


def test_person_sees_only_their_own_information():
    """Two deals that the person cannot distinguish look the same until the end."""
    seen = {}
    for seed in range(40):
        match, text = at_terminal(["human", "uniform"], "bet\n", seed=seed)
        mine, theirs = match.actions[:2]
        shown = text.partition("\n")[2].partition("player 0, human:")[0]
        seen.setdefault(mine, {}).setdefault(theirs, shown)
        assert f"\nbot: ?  put in 1\nyou: {'JQK'[mine]}♠  put in 1\n" in shown
    assert len(seen) == 3
    for card in seen:
        assert len(seen[card]) == 2
        assert len(set(seen[card].values())) == 1
    assert len({next(iter(shown.values())) for shown in seen.values()}) == 3


def test_person_plays_in_the_second_seat():
    match, text = at_terminal(["uniform", "human"], "pass\n" * 2)
    assert "you are player 1" in text
    assert match.actions[3] == 0


def test_hidden_moves_are_shown_only_after_the_match():
    _, text = at_terminal(["uniform", "human"], "0\n1\n2\n" * 3, game=GOOFSPIEL)
    before, _, after = text.partition("all moves:")
    assert "[P1]Bid" in before
    assert "[P0]Bid" not in before and "player 0: " not in before
    assert "[P0]Bid" in after


def test_opponents_moves_are_named_and_cards_revealed():
    """Actions of poker are public; the deal is printed after the match."""
    match, text = at_terminal(["uniform", "human"], "pass\n", seed=4)
    before, _, after = text.partition("all moves:")
    name = ("Pass", "Bet")[match.actions[2]]
    assert f"\nplayer 0: {name}\n" in before
    assert "Deal" not in before
    for card in match.actions[:2]:
        assert f"chance: Deal:{card}" in after


def test_several_matches_swap_seats_and_keep_a_score():
    out = io.StringIO()
    source = io.StringIO("bet\n" * 8)
    bots = ["human", "uniform"]
    series = play_command.play(KUHN, bots, seed=3, matches=4, source=source, out=out)
    assert [p.bots for p in series.played] == [
        ("human", "uniform"),
        ("uniform", "human"),
    ] * 2
    won = sum(p.match.returns[p.bots.index("human")] for p in series.played)
    assert series.totals() == (won, -won)
    assert f"score after 4: human {won:+g}, uniform {-won:+g}" in out.getvalue()
    # The first match depends only on the seed, and the deals differ.
    assert (
        series.played[0].match.actions == at_terminal(bots, "bet\n", seed=3)[0].actions
    )
    assert len({p.match.actions[:2] for p in series.played}) > 1


def test_invalid_answers_are_explained_and_repeated():
    match, text = at_terminal(["human", "uniform"], "7\nraise\n\n²\nbet\n")
    assert match.actions[2] == 1
    for answer in ("7", "raise", "", "²"):
        assert f"{answer!r} is not a legal action" in text
    assert text.count("one of the numbers 0, 1 or the name") == 4


@pytest.mark.parametrize("answers", ("q\n", "QUIT\n", "", "raise\nq\n"))
def test_person_can_leave_the_match(answers):
    match, text = at_terminal(["human", "uniform"], answers)
    assert match is None
    assert "you left" in text


def test_match_of_two_bots_is_printed_move_by_move():
    match, text = at_terminal(["uniform", "uniform"], "")
    game = pyspiel.load_game(KUHN)
    state = game.new_initial_state()
    lines = iter(text.splitlines()[1:])
    for action in match.actions:
        player = state.current_player()
        who = "chance" if player < 0 else f"player {player}, uniform"
        assert next(lines) == f"{who}: {state.action_to_string(player, action)}"
        state.apply_action(action)
    assert len(list(lines)) == 2


@pytest.mark.parametrize("bots", (["uniform", "uniform"], ["human", "uniform"]))
def test_game_tree_is_not_built_if_no_player_needs_it(nothing_is_compiled, bots):
    match, text = at_terminal(
        bots, "4\n0\n8\n2\n6\n1\n3\n5\n7\n" * 9, game="phantom_ttt"
    )
    assert match is not None and text.startswith("phantom_ttt(), seed 0")


def test_play_command_reports_a_reproducible_match_of_bots(capsys):
    words = ("play", "--game", KUHN, "--bots", f"uniform;{SOLVED}")
    found = report(capsys, *words, "--seed", 4)
    assert found.keys() == {"game", "bots", "seed", "matches", "totals"}
    (match,) = found["matches"]
    assert match.keys() == {"bots", "actions", "returns"}
    assert sum(match["returns"]) == 0 and match["returns"] == found["totals"]
    assert report(capsys, *words, "--seed", 4) == found
    # Without --seed, the seed is random and reported, so the match can be repeated.
    other = report(capsys, *words)
    assert report(capsys, *words, "--seed", other["seed"]) == other


def test_play_command_reads_moves_from_stdin(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("0\nq\n"))
    words = ("--bots", "resolving(solver=cfr+,iterations=20);human", "--seed", 1)
    found, out, _ = outputs(capsys, "play", "--game", KUHN, *words)
    assert "you are player 1" in out
    (match,) = found["matches"]
    assert match["actions"][3] == 0


def test_beliefs_are_printed_after_the_match(capsys):
    bots = "resolving(iterations=20);uniform"
    words = ["play", "--game", KUHN, "--bots", bots, "--seed", 1]
    _, out, _ = outputs(capsys, *words, "--beliefs")
    moves, beliefs = out.split("player 0 at its first move:")
    assert "player 1, uniform:" in moves
    assert "its own range: J 33.3%, K 33.3%, Q 33.3%" in beliefs
    # Before the opponent's first move, two cards are left.
    first = beliefs.splitlines()[1]
    assert first.count("50.0%") == 2 and "NashConv of its last subgame" in beliefs
    assert "range" not in outputs(capsys, *words)[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--bots", "uniform;uniform"], "none of the bots 'uniform;uniform' has"),
        (["--bots", "human;oos(iterations=1)", "--web"], "omit --beliefs"),
    ],
)
def test_beliefs_need_a_bot_and_a_terminal(capsys, words, message):
    assert message in rejection(capsys, "play", "--game", KUHN, *words, "--beliefs")
