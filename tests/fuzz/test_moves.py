"""The referee of `moves`, and a few hundred moves of many bots."""

import pytest

from spiel_cr.policies.bot_base import PolicyPlayer
from tests.fuzz import bots_and_games, moves
from tests.fuzz.bots_and_games import BY_CLOCK, BY_ITERATIONS, Kind


def chunk(game, kind, most_moves, seed=0):
    answers = []
    with bots_and_games.table(game) as table:
        row = moves.play_chunk(
            table, kind, seed=seed, most_moves=most_moves, answers=answers
        )
    return row, answers


def kind_of(game, name):
    return next(k for k in BY_ITERATIONS[game] if k.name.startswith(name))


# Here one player does not know whether the other may choose, so that it cannot count
# turns, and the game has no layers to resolve. All bots play the other games below.
_NO_LAYERS = "restricted_nash_response(game=kuhn_poker(),p=0.5)"
REJECTED = {
    _NO_LAYERS: {
        kind.name
        for kind in BY_ITERATIONS[_NO_LAYERS]
        if kind.name.startswith("resolving(") or "max_histories" in kind.name
    }
}


# Bots that solve compile functions for seconds; only a slow test has all bots.
QUICK = [
    ("kuhn_poker", "uniform"),
    ("kuhn_poker", "best response"),
    ("kuhn_poker", "ismcts-br"),
    ("kuhn_poker", "lbr"),
    ("matrix_rps", "resolving(iterations=2)"),
    ("battleship", "ismcts-br"),
    ("clobber", "lbr"),
    ("phantom_ttt", "uniform"),
]


@pytest.mark.parametrize(("game", "name"), QUICK)
def test_moves_are_legal_and_matches_end(game, name):
    game = next(string for string in BY_ITERATIONS if string.startswith(game))
    row, answers = chunk(game, kind_of(game, name), 40)
    assert not row["faults"]
    assert row["moves"] >= 40 and len(answers) == row["moves"]
    # The same seed gives the same moves.
    again = [action for action, _ in chunk(game, kind_of(game, name), 40)[1]]
    assert again == [action for action, _ in answers]


@pytest.mark.slow
@pytest.mark.parametrize(
    "game", [list(BY_ITERATIONS)[k] for k in (0, 3, 8, 12, 24)] + [_NO_LAYERS]
)
def test_all_bots_play_legal_reproducible_moves(game):
    """Up to 4,000 moves per game, by bots without a time limit."""
    refused = set()
    for kind in BY_ITERATIONS[game]:
        most = min(4000 // len(BY_ITERATIONS[game]) + 1, kind.moves)
        rows = [chunk(game, kind, most) for _ in range(2 if most < 500 else 1)]
        assert not any(row["faults"] for row, _ in rows)
        found = [[action for action, _ in answers] for _, answers in rows]
        assert all(same == found[0] for same in found), kind.name
        if rows[0][0]["outcome"].endswith("refused"):
            refused.add(kind.name)
        else:
            assert all(row["moves"] >= most for row, _ in rows), kind.name
    assert refused == REJECTED.get(game, set())


def test_every_bot_plays_in_many_games():
    names = {
        kind.name.split("(")[0] for kinds in BY_ITERATIONS.values() for kind in kinds
    }
    for name in names:
        games = [
            g
            for g, kinds in BY_ITERATIONS.items()
            if any(k.name.startswith(name) for k in kinds)
        ]
        # Honest players support only poker, and networks need tensors.
        assert len(games) >= {"honest": 4, "deep": 20}.get(name, 25), name
    assert all(kind.move_ms == 50 for kinds in BY_CLOCK.values() for kind in kinds)


class FaultyPlayer(PolicyPlayer):
    """A uniform player with one fault."""

    def __init__(self, player, change):
        super().__init__(player)
        self._change, self._asked = change, 0

    def get_policy(self, state):
        self._asked += 1
        legal = state.legal_actions()
        policy = [(action, 1 / len(legal)) for action in legal]
        if self._change == "state":
            state.apply_action(state.legal_actions()[0])
        if self._change == "illegal":
            policy = [(action + 1, odds) for action, odds in policy]
        if self._change == "sum":
            policy = [(action, odds / 2) for action, odds in policy]
        if self._change == "negative":
            policy = [(policy[0][0], -0.5), (policy[1][0], 1.5)]
        if self._change == "differs":
            policy = [
                (policy[0][0], 1 / self._asked),
                (policy[1][0], 1 - 1 / self._asked),
            ]
        return policy

    def choose(self, state, policy):
        return 7 if self._change == "action" else super().choose(state, policy)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("state", "state was changed"),
        ("illegal", "are legal"),
        ("sum", "no distribution"),
        ("negative", "no distribution"),
        ("differs", "after a restart"),
        ("action", "action 7"),
    ],
)
def test_referee_reports_faulty_players(change, words):
    kind = Kind(
        "bad", lambda table, seat, seed: FaultyPlayer(seat, change), 9, repeats=True
    )
    row, _ = chunk("kuhn_poker", kind, 30)
    assert row["faults"] and words in row["faults"][0]


def test_referee_reports_games_that_are_not_zero_sum():
    game = "bargaining(max_turns=2)"
    # Bots of the library reject the game.
    kind = Kind("uniform", lambda table, seat, seed: FaultyPlayer(seat, "nothing"), 9)
    row, _ = chunk(game, kind, 60)
    assert any("do not sum to zero" in fault for fault in row["faults"])
