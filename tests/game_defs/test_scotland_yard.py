"""Scotland Yard: rules, maps, sizes and values."""

import functools
import json
import tomllib
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyspiel
import pytest
from open_spiel.python.algorithms import exploitability

import spiel_cr
from game_defs import scotland_yard, scotland_yard_rules
from spiel_cr.games.tree import batched_check
from tests.support import game_contract, lp_reference
from tests.support.game_contract import Sizes

# Small enough to enumerate all histories. Each game contains every action of the map
# and a history of maximum length, so the sizes that the game reports must be exact.
SETTINGS = (
    "python_scotland_yard(map=square,rounds=3,detectives=1)",
    "python_scotland_yard(map=tripod,rounds=2,detectives=1)",
    "python_scotland_yard(map=tripod,rounds=3,detectives=2)",
    "python_scotland_yard(map=glasses,rounds=2,detectives=2)",
)
LARGE_SETTINGS = (
    "python_scotland_yard",
    "python_scotland_yard(map=glasses,rounds=7,detectives=1)",
    "python_scotland_yard(map=square,rounds=2,detectives=2)",
    "python_scotland_yard(map=tripod,rounds=50,detectives=2)",
)
MAPS = Path(__file__).parents[2] / "game_defs" / "maps"
KINDS = ("taxi", "bus", "underground")
# A map of five nodes in a row with the fugitive in the middle, without detectives.
PATH = {
    "nodes": 5,
    "taxi": [[1, 2], [2, 3], [3, 4], [4, 5]],
    "bus": [],
    "underground": [],
    "tickets": {"taxi": 9, "bus": 9, "underground": 9},
    "fugitive": [3],
    "start_public": True,
    "reveal": [],
}


def load(map_name: str, rounds: int, detectives: int) -> pyspiel.Game:
    return pyspiel.load_game(
        "python_scotland_yard",
        {"map": map_name, "rounds": rounds, "detectives": detectives},
    )


def read(map_name: str) -> dict[str, Any]:
    return json.loads((MAPS / f"{map_name}.json").read_text("utf-8"))


@pytest.fixture
def load_map(tmp_path, monkeypatch):
    """Return a function that loads games on other maps and checks batched rules."""

    def write_and_load(rounds: int, team: list[int], **changes: Any) -> pyspiel.Game:
        text = json.dumps(PATH | changes | {"detectives": team})
        (tmp_path / "made.json").write_text(text, "utf-8")
        game = load("made", rounds, len(team))
        batched_check.check(game, np.random.default_rng(1), rollouts=20)
        return game

    monkeypatch.setattr(scotland_yard, "MAPS", tmp_path)
    return write_and_load


def play(game: pyspiel.Game, moves: str) -> pyspiel.State:
    """Return the state after moves such as "taxi 2", separated by commas."""
    state = game.new_initial_state()
    for move in moves.split(", ") if moves else []:
        name = move.capitalize().replace(" ", " to " if "start" not in move else " on ")
        actions = {state.action_to_string(a): a for a in state.legal_actions()}
        state.apply_action(actions[name])
    return state


def names(state: pyspiel.State) -> set[str]:
    return {state.action_to_string(action) for action in state.legal_actions()}


def test_openspiel_api():
    game_string = "python_scotland_yard(map=tripod,rounds=3)"
    game_contract.check_api(game_string, slow_sizes("tripod", 3, 2))


# A slow reference, which derives every fact from the list of moves.


class Facts(NamedTuple):
    """Facts about a history.

    Attributes:
      mover: -1 for chance, otherwise the player to move; None at terminal histories.
      names: Names of the legal actions.
      utility: The fugitive's utility; 0 before the end.
      public: Public information.
      known: The information of each player.
    """

    mover: int | None
    names: frozenset[str]
    utility: int
    public: Hashable
    known: tuple[Hashable, Hashable]


class Move(NamedTuple):
    """The piece that moved (0 is the fugitive), its ticket, and its destination."""

    who: int
    kind: str
    node: int


def slow_facts(
    data: dict[str, Any], rounds: int, team: int, start: int, moves: list[Move]
) -> Facts:
    """Compute the facts after the moves."""

    def place(who: int) -> int:
        first = data["detectives"][who - 1] if who else start
        return [first, *(move.node for move in moves if move.who == who)][-1]

    mover = len(moves) % (team + 1)
    detectives = [place(who) for who in range(1, team + 1)]
    options = set()
    for kind in KINDS:
        used = len([m for m in moves if m.who == mover and m.kind == kind])
        if (kind != "taxi") if mover == 0 else (used >= data["tickets"][kind]):
            continue
        for edge in data[kind]:
            for here, there in (edge, reversed(edge)):
                if here == place(mover) and there not in detectives:
                    options.add(f"{kind.capitalize()} to {there}")
    if mover and not options:
        options = {"Stay"}

    caught = place(0) in detectives or (
        len(moves) < rounds * (team + 1) and mover == 0 and not options
    )
    escaped = not caught and len(moves) == rounds * (team + 1)
    sightings = [start] if data["start_public"] else []
    for number in data["reveal"]:
        if len(moves) >= number * (team + 1):
            sightings.append([m.node for m in moves if m.who == 0][number - 1])
    trips = tuple(move for move in moves if move.who)
    public = (len(moves), trips, tuple(sightings), caught)
    own = (start, tuple(move for move in moves if not move.who))
    over = caught or escaped
    return Facts(
        mover=None if over else int(mover > 0),
        names=frozenset() if over else frozenset(options),
        utility=-1 if caught else int(escaped),
        public=public,
        known=((own, public), public),
    )


@functools.cache
def slow_tree(map_name: str, rounds: int, team: int) -> dict[tuple[str, ...], Facts]:
    """Return all histories, as names of actions, with their facts."""
    data = read(map_name)
    tree = {}

    def grow(history: tuple[str, ...], start: int, moves: list[Move]) -> None:
        tree[history] = facts = slow_facts(data, rounds, team, start, moves)
        who = len(moves) % (team + 1)
        for name in facts.names:
            kind, _, node = name.partition(" to ")
            stays = [data["detectives"][who - 1]]
            stays += [move.node for move in moves if move.who == who]
            move = Move(who, kind.lower(), int(node) if node else stays[-1])
            grow((*history, name), start, [*moves, move])

    starts = data["fugitive"]
    if len(starts) > 1:
        draws = frozenset(f"Start on {start}" for start in starts)
        tree[()] = Facts(-1, draws, 0, "before", ("before", "before"))
    for start in starts:
        grow((f"Start on {start}",) if len(starts) > 1 else (), start, [])
    return tree


def slow_sizes(map_name: str, rounds: int, team: int) -> Sizes:
    facts = list(slow_tree(map_name, rounds, team).values())
    movers = [fact.mover for fact in facts]
    infosets = [
        len({fact.known[player] for fact in facts if fact.mover == player})
        for player in (0, 1)
    ]
    decisions = movers.count(0) + movers.count(1)
    return Sizes(movers.count(-1), decisions, movers.count(None), *infosets)


def states_with_facts(game_string: str) -> Iterator[tuple[pyspiel.State, Facts]]:
    """Yield every state of a game with its facts, matched by names of actions."""
    tree = game_contract.full_tree(game_string)
    parameters = tree.game.get_parameters()
    facts = slow_tree(*(parameters[key] for key in ("map", "rounds", "detectives")))
    assert len(tree.nodes) == len(facts)
    histories: list[tuple[str, ...]] = []
    for node in tree.nodes:
        history: tuple[str, ...] = ()
        if node.parent >= 0:
            name = tree.nodes[node.parent].state.action_to_string(node.action)
            history = (*histories[node.parent], name)
        histories.append(history)
        yield node.state, facts[history]


@pytest.mark.parametrize("game_string", SETTINGS)
def test_moves_and_terminal_states_equal_the_reference(game_string):
    utilities = set()
    for state, facts in states_with_facts(game_string):
        assert names(state) == facts.names
        assert state.is_terminal() == (facts.mover is None)
        assert state.returns() == [facts.utility, -facts.utility]
        if facts.mover is not None:
            assert state.current_player() == facts.mover
        utilities.add(facts.utility)
    assert utilities == {-1, 0, 1}


@pytest.mark.parametrize("game_string", SETTINGS)
def test_observations_equal_the_reference(game_string):
    facts = {tuple(s.history()): facts for s, facts in states_with_facts(game_string)}

    def known(history: list[int], player: int) -> Hashable:
        return facts[tuple(history)].known[player]

    def public(history: list[int], player: int) -> Hashable:
        return facts[tuple(history)].public

    tree = game_contract.full_tree(game_string)
    game_contract.check_knowledge(tree, known, public)


@pytest.mark.parametrize(
    "map_name, rounds, detectives",
    [
        ("square", 5, 1),
        ("square", 2, 2),
        ("tripod", 5, 1),
        ("tripod", 4, 2),
        ("glasses", 4, 1),
        pytest.param("glasses", 3, 2, marks=pytest.mark.slow),
    ],
)
def test_sizes_equal_the_reference(map_name, rounds, detectives):
    sizes = game_contract.measure(str(load(map_name, rounds, detectives)))
    assert sizes == slow_sizes(map_name, rounds, detectives)


def test_hand_computed_game_on_the_glasses():
    game = load("glasses", 3, 2)
    state = play(game, "")
    assert names(state) == {"Taxi to 4", "Taxi to 5", "Taxi to 7", "Taxi to 8"}
    state = play(game, "taxi 4")
    assert names(state) == {"Taxi to 2", "Taxi to 3", "Bus to 4"}
    assert play(game, "taxi 4, bus 4").returns() == [-1, 1]
    assert names(play(game, "taxi 5, taxi 2")) == {
        "Taxi to 9",
        "Taxi to 10",
        "Bus to 8",
    }
    state = play(game, "taxi 5, taxi 2, taxi 9")
    assert names(state) == {"Taxi to 3", "Taxi to 4", "Taxi to 6"}
    # The tube from 2 leads to 10, unless the other detective is there.
    state = play(game, "taxi 5, taxi 2, taxi 9, taxi 6")
    assert names(state) == {"Taxi to 1", "Taxi to 4", "Underground to 10"}
    state = play(game, "taxi 5, taxi 2, taxi 10, taxi 6")
    assert names(state) == {"Taxi to 1", "Taxi to 4"}
    moves = "taxi 5, taxi 2, taxi 10, taxi 6, taxi 4, taxi 8"
    assert names(play(game, moves)) == {"Taxi to 5", "Taxi to 7"}
    assert play(game, f"{moves}, taxi 5, taxi 5").returns() == [-1, 1]
    assert play(game, f"{moves}, taxi 5, taxi 2, taxi 7").returns() == [1, -1]


def test_the_fugitive_is_caught_when_it_cannot_move(load_map):
    # The bus takes the detective from 4 to 2, while the fugitive is at the end, on 1.
    changes = {"team": [4], "bus": [[2, 4]], "fugitive": [2]}
    game = load_map(2, **changes)
    moves = "taxi 1, bus 2"
    state = play(game, moves)
    assert state.is_terminal() and state.legal_actions() == []
    assert state.returns() == [-1, 1]
    assert "caught 1" in state.information_state_string(1)
    # After the last round, a fugitive that could not move has escaped.
    state = play(load_map(1, **changes), moves)
    assert state.returns() == [1, -1]
    assert "caught 0" in state.information_state_string(1)


def test_detectives_block_moves_and_stay_only_if_blocked(load_map):
    game = load_map(3, team=[1, 2])
    assert names(play(game, "")) == {"Taxi to 4"}  # not to 2
    state = play(game, "taxi 4")
    assert names(state) == {"Stay"}  # the first is shut in by the second
    assert state.legal_actions() == [scotland_yard_rules.STAY]
    state = play(game, "taxi 4, stay")
    assert names(state) == {"Taxi to 3"}  # not to 1, and no staying
    state = play(game, "taxi 4, stay, taxi 3")
    assert names(state) == {"Taxi to 5"}  # the fugitive, not to 3
    state = play(game, "taxi 4, stay, taxi 3, taxi 5")
    assert names(state) == {"Taxi to 2"}


def test_tickets_are_consumed(load_map):
    changes = {
        "bus": [[1, 2], [2, 4]],
        "tickets": {"taxi": 1, "bus": 1, "underground": 5},
        "fugitive": [5],
    }
    game = load_map(5, team=[1], **changes)
    # Two kinds of edges between the same nodes are two actions.
    assert names(play(game, "taxi 4")) == {"Taxi to 2", "Bus to 2"}
    state = play(game, "taxi 4, taxi 2, taxi 5")
    assert names(state) == {"Bus to 1", "Bus to 4"}
    assert "tickets 0, 1, 5" in state.observation_string(0)
    state = play(game, "taxi 4, bus 2, taxi 5")
    assert names(state) == {"Taxi to 1", "Taxi to 3"}
    state = play(game, "taxi 4, taxi 2, taxi 5, bus 1, taxi 4")
    assert names(state) == {"Stay"}
    assert "tickets 0, 0, 5" in state.observation_string(1)
    # Staying costs nothing, and the fugitive's taxis are free.
    state = play(game, "taxi 4, taxi 2, taxi 5, bus 1, taxi 4, stay, taxi 3, stay")
    assert names(state) == {"Taxi to 2", "Taxi to 4"}


def test_detectives_have_separate_tickets(load_map):
    tickets = {"taxi": 1, "bus": 0, "underground": 0}
    game = load_map(3, team=[2, 5], fugitive=[3], tickets=tickets)
    state = play(game, "taxi 4, taxi 1")
    assert names(state) == {"Taxi to 4"}
    assert "tickets 0, 0, 0, 1, 0, 0" in state.observation_string(0)
    # The fugitive and the detectives do not share tickets.
    state = play(load_map(3, team=[1], tickets=tickets), "taxi 4, taxi 2, taxi 5")
    assert names(state) == {"Stay"}


def test_fugitive_is_revealed_after_the_listed_rounds(load_map):
    taxi = [[1, 2], [2, 3], [3, 1], [4, 5]]
    game = load_map(4, team=[4], taxi=taxi, fugitive=[1], reveal=[1, 3, 9])
    seen = {
        "": "1",
        "taxi 2": "1",
        "taxi 2, taxi 5": "1, 2",
        "taxi 2, taxi 5, taxi 3": "1, 2",
        "taxi 2, taxi 5, taxi 3, taxi 4": "1, 2",
        "taxi 2, taxi 5, taxi 3, taxi 4, taxi 1": "1, 2",
        "taxi 2, taxi 5, taxi 3, taxi 4, taxi 1, taxi 5": "1, 2, 1",
    }
    for moves, nodes in seen.items():
        state = play(game, moves)
        for player in (0, 1):
            assert f" seen {nodes} trips" in state.information_state_string(player)
        last = nodes.split(", ")[-1]
        assert f" seen {last} detectives" in state.observation_string(1)
    # After the second round, the detectives do not know the node of the fugitive.
    unknown = [
        play(game, f"taxi 2, taxi 5, taxi {node}, taxi 4").information_state_string(1)
        for node in (1, 3)
    ]
    assert unknown[0] == unknown[1]


@pytest.mark.parametrize("start_public", [False, True])
def test_start_public_determines_whether_a_random_start_is_observed(
    load_map, start_public
):
    game = load_map(1, team=[1], fugitive=[3, 5], start_public=start_public)
    chance = game.new_initial_state()
    assert chance.is_chance_node()
    assert names(chance) == {"Start on 3", "Start on 5"}
    assert chance.chance_outcomes() == [(0, 0.5), (1, 0.5)]
    keys = [
        {play(game, f"start {node}").information_state_string(p) for node in (3, 5)}
        for p in (0, 1)
    ]
    assert len(keys[0]) == 2
    assert len(keys[1]) == 1 + start_public


def test_single_start_is_always_observed(load_map):
    game = load_map(1, team=[1], start_public=False)
    assert game.get_type().chance_mode == pyspiel.GameType.ChanceMode.DETERMINISTIC
    assert " seen 3 " in game.new_initial_state().information_state_string(1)


def value(map_name: str, rounds: int, detectives: int) -> float:
    """Return the value by spiel_cr's linear program, compared with `lp_reference`."""
    game = load(map_name, rounds, detectives)
    result = spiel_cr.solve(game, "lp")
    assert result.nash_conv() == pytest.approx(0, abs=1e-9)
    response = exploitability.best_response(game, result.average_policy(), 1)
    # At an equilibrium, the detectives' best-response value is minus the value.
    found = -response["best_response_value"]
    assert found == pytest.approx(lp_reference.game_value(game), abs=1e-7)
    return found


@pytest.mark.parametrize("rounds", [1, 2, 4, pytest.param(5, marks=pytest.mark.slow)])
def test_value_of_the_square(rounds):
    """In each round, a detective opposite the fugitive guesses left or right.

    A random guess succeeds with probability one half. After a wrong guess, they are
    opposite each other again. After four rounds, the detective has no ticket and must
    stay, so the fugitive escapes.
    """
    wanted = 2 * 0.5 ** min(rounds, 4) - 1
    assert value("square", rounds, 1) == pytest.approx(wanted, abs=1e-9)


def test_two_detectives_win_on_the_square():
    # A detective next to the fugitive leaves one free node, which the other one covers.
    assert value("square", 1, 2) == -1


# More rounds or detectives never help the fugitive, so these three values determine the
# values of all games with one or two detectives.
@pytest.mark.parametrize(
    "rounds, detectives, wanted",
    [(1, 1, 0), (2, 2, 0), pytest.param(3, 1, -1, marks=pytest.mark.slow)],
)
def test_value_of_the_tripod(rounds, detectives, wanted):
    """The fugitive must leave its tip, and the detective guesses which tip it was.

    After a wrong guess, the fugitive is known to be in the middle of an arm. In round
    2, the detective returns to the centre: either it catches the fugitive there, or the
    fugitive went back to its tip, which it must leave towards the detective in round 3.
    """
    assert value("tripod", rounds, detectives) == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize(
    "rounds, wanted",
    [(1, 1), *(pytest.param(*row, marks=pytest.mark.slow) for row in [(2, 1), (3, 0)])],
)
def test_value_of_the_glasses(rounds, wanted):
    assert value("glasses", rounds, 2) == pytest.approx(wanted, abs=1e-9)


@pytest.mark.slow
def test_sizes_and_value_of_the_default_game():
    game = pyspiel.load_game("python_scotland_yard")
    assert str(game) == str(load("glasses", 4, 2))
    # The game stays below 300,000 histories, so that it is solved in a few seconds.
    sizes = game_contract.measure(str(game))
    assert sizes == Sizes(0, 72100, 125646, infosets0=7750, infosets1=12425)
    assert lp_reference.game_value(game) == pytest.approx(-1 / 3, abs=1e-7)


@pytest.mark.parametrize("map_name", scotland_yard.map_names())
def test_bundled_maps_are_valid(map_name):
    data = read(map_name)
    assert data.keys() == PATH.keys() | {"about", "detectives", "places"}
    assert data["tickets"].keys() == set(KINDS)
    assert min(data["tickets"].values()) >= 0
    nodes = set(range(1, data["nodes"] + 1))
    for kind in KINDS:
        edges = [frozenset(edge) for edge in data[kind]]
        assert len(set(edges)) == len(edges)
        assert all(len(edge) == 2 and edge <= nodes for edge in edges)
    places = [*data["fugitive"], *data["detectives"]]
    assert data["fugitive"] and data["detectives"]
    assert len(set(places)) == len(places)
    assert set(places) <= nodes
    assert data["reveal"] == sorted(set(data["reveal"]) - {0})
    # The fugitive is not caught before the first move.
    for start in data["fugitive"]:
        ends = [set(edge) - {start} for edge in data["taxi"] if start in edge]
        assert any(end.isdisjoint(data["detectives"]) for end in ends)


def test_maps_are_included_in_the_package():
    project = tomllib.loads((MAPS.parent.parent / "pyproject.toml").read_text("utf-8"))
    shipped = project["tool"]["setuptools"]["package-data"]["game_defs"]
    assert "maps/*.json" in shipped
    assert {path.suffix for path in MAPS.iterdir()} == {".json"}


def test_glasses_map_is_symmetric():
    data = read("glasses")
    assert data["fugitive"] == [6] and data["detectives"] == [1, 11]
    for kind in KINDS:
        edges = {frozenset(edge) for edge in data[kind]}
        assert edges == {frozenset(12 - node for node in edge) for edge in edges}


@pytest.mark.parametrize("team", [[2], [3], [2, 4]])
def test_rejects_maps_that_catch_the_fugitive_before_the_first_move(load_map, team):
    with pytest.raises(ValueError, match=r"fugitive=\[\d\] is caught before"):
        load_map(2, team, fugitive=[3] if 2 not in team or 4 in team else [1])
