"""Drawings of positions show only the information of a player."""

import json
import random

import numpy as np
import pyspiel
import pytest

import game_defs  # noqa: F401  (registers the games)
from game_defs import scotland_yard
from spiel_cr.eval.table import families

SMALL = [
    "kuhn_poker",
    "python_leduc_poker",
    "leduc_poker",
    "python_ii_goofspiel(num_cards=3)",
    "python_princess_and_monster(horizon=4)",
    "python_rock_paper_scissors(num_actions=5)",
    "python_scotland_yard(map=tripod,rounds=2)",
    "liars_dice(numdice=1,dice_sides=3)",
    "python_latent_tic_tac_toe(conflict=keep)",
    "phantom_ttt",
    "dark_hex(num_rows=3,num_cols=2)",
    "python_rhode_island_holdem(num_ranks=3,num_suits=3)",
    # A game without a special drawing: its text is shown instead.
    "nim(pile_sizes=1;2)",
]


def random_matches(string, matches):
    """Yield the states before each move of random matches, and the terminal state."""
    game = pyspiel.load_game(string)
    for seed in range(matches):
        draw, state, on_the_way = random.Random(seed), game.new_initial_state(), []
        while not state.is_terminal():
            if not state.is_chance_node():
                on_the_way.append(state.clone())
            state.apply_action(draw.choice(state.legal_actions()))
        yield on_the_way, state


def drawing_of(state, player):
    drawn = families.draw(state, player)
    return json.dumps([drawn.parts, drawn.labels], sort_keys=True)


def clickable_actions(part):
    """Return the actions that a person can click in a part."""
    cells = [c for row in part.get("rows", []) for c in row]
    found = [c.get("action") for c in part.get("cards", []) + cells]
    found += [node["action"] for node in part.get("nodes", [])]
    return {action for action in found if action is not None}


@pytest.mark.parametrize("string", SMALL)
def test_every_position_is_drawn_with_legal_actions_only(string):
    for on_the_way, end in random_matches(string, 4):
        for state in on_the_way:
            for player in (0, 1):
                drawn = families.draw(state, player)
                legal = state.legal_actions(player)
                offered = set().union(*map(clickable_actions, drawn.parts)) | set(
                    drawn.labels
                )
                assert offered <= set(legal), (string, state.history())
                assert drawn.parts
        for player in (0, 1):
            assert drawing_of(end, player)
            assert families.draw(end, player, reveal=True).parts


@pytest.mark.parametrize("name", ["kuhn", "goofspiel3", "princess"])
def test_histories_of_one_infoset_have_equal_drawings(name):
    """All histories of the game are drawn for the acting player."""
    strings = {
        "kuhn": "kuhn_poker",
        "goofspiel3": "python_ii_goofspiel(num_cards=3)",
        "princess": "python_princess_and_monster(horizon=2,rows=2,columns=2)",
    }
    seen = {}
    stack = [pyspiel.load_game(strings[name]).new_initial_state()]
    while stack:
        state = stack.pop()
        if state.is_terminal():
            continue
        player = state.current_player()
        if player >= 0:
            key = player, state.information_state_string(player)
            seen.setdefault(key, set()).add(drawing_of(state, player))
        stack += [state.child(action) for action in state.legal_actions()]
    assert all(len(drawings) == 1 for drawings in seen.values())
    assert len(set().union(*seen.values())) == len(seen)


def test_opponents_cards_are_shown_only_at_the_end():
    state = pyspiel.load_game("kuhn_poker").new_initial_state()
    for action in (2, 0):
        state.apply_action(action)
    bot = families.draw(state, 0).parts[0]["sides"][1]
    assert bot["cards"] == [{"back": True}]
    with pytest.raises(ValueError, match="wait until its end"):
        families.draw(state, 0, reveal=True)
    for action in (1, 0):
        state.apply_action(action)
    (card,) = families.draw(state, 0, reveal=True).parts[0]["sides"][1]["cards"]
    assert card["text"] == "J"


@pytest.mark.parametrize(
    "string",
    [
        "kuhn_poker",
        "leduc_poker",
        "python_leduc_poker",
        "python_rhode_island_holdem(num_ranks=3,num_suits=2)",
    ],
)
def test_poker_actions_and_pot_match_openspiel(string):
    """Actions are named from the moves, and contributions sum to the pot."""
    for path, end in random_matches(string, 30):
        for state in [*path[1:], end]:
            for player in range(2):
                drawn = families.draw(state, player).parts[0]
                said = [words for words in drawn["actions"] if words]
                assert sum(said, []) == spoken_actions(state, player)
                if drawn["pot"] is not None and drawn["sides"][0]["chips"][:3] == "put":
                    put = [int(s["chips"].split()[-1]) for s in drawn["sides"]]
                    assert sum(put) == drawn["pot"]


def spoken_actions(state, player):
    """Return the moves of a state in the terms of poker, such as "bot raises"."""
    kuhn = state.get_game().get_type().short_name == "kuhn_poker"
    at, said, raised = state.get_game().new_initial_state(), [], False
    for action in state.history():
        mover = at.current_player()
        if mover < 0:
            # Public cards start a new round.
            raised = False
        else:
            name = at.action_to_string(mover, action)
            calls = {"Pass": ("check", "fold"), "Bet": ("bet", "call")}
            if not kuhn:
                calls = {"Call": ("check", "call"), "Raise": ("bet", "raise")}
            word = calls.get(name, ("fold", "fold"))[raised]
            raised |= word in ("bet", "raise")
            said.append(f"you {word}" if mover == player else f"bot {word}s")
        at.apply_action(action)
    return said


def test_rock_paper_scissors_names_match_the_payoffs():
    """The payoffs of the game determine which sign beats which."""
    game = pyspiel.load_game("python_rock_paper_scissors")
    names = families.draw(game.new_initial_state(), 0).labels
    beats = {("Rock", "Scissors"), ("Scissors", "Paper"), ("Paper", "Rock")}
    for first in range(3):
        for second in range(3):
            state = game.new_initial_state()
            state.apply_action(first)
            state.apply_action(second)
            wins = (names[first], names[second]) in beats
            assert (state.returns()[0] > 0) == wins


def test_hex_names_the_sides_to_connect():
    """Player 0 wins with a line from top to bottom."""
    game = pyspiel.load_game("dark_hex(num_rows=3,num_cols=3)")
    state = game.new_initial_state()
    for action in (1, 0, 4, 3, 7):
        state.apply_action(action)
    assert state.is_terminal() and state.returns()[0] == 1
    for player, goal in enumerate(("top and bottom", "left and right")):
        facts = families.draw(state, player, reveal=True).parts[0]["items"]
        assert ["You join", goal] in facts


@pytest.mark.parametrize("path", sorted(scotland_yard.MAPS.glob("*.json")), ids=str)
def test_nodes_of_maps_do_not_overlap(path):
    data = json.loads(path.read_text("utf-8"))
    places = np.array(data["places"])
    assert places.shape == (data["nodes"], 2)
    assert (places >= 0).all() and (places <= 1).all()
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)
    assert apart[~np.eye(len(places), dtype=bool)].min() > 0.1
