"""Signal forms found in compiled games: what they are, and what is refused."""

import dataclasses

import numpy as np
import pyspiel
import pytest

from spiel_cr.compilation.compiler import compile_game
from spiel_cr.compilation.tree import CHANCE, TERMINAL
from spiel_cr.policies import best_responses
from spiel_cr.policies.conversions import reach_from_behaviour
from spiel_cr.signals import form
from spiel_cr.signals.detecting import detection, factors
from tests.support import games
from tests.support.made_games import MadeGame, Node
from tests.support.strategies import random_behaviours, solver_of

LEDUC_WITHOUT_SUITS = "leduc_poker(suit_isomorphism=true)"

# Public nodes, signals by round, kernels, leaves that pay something, counted by hand. A
# round of Leduc has 6 decisions, 4 folds and 5 ways on: 10 + 5 * 15 nodes. Liar's dice
# with n sides has 2n bids, 2^2n rising lists of them, and a leaf where one that is not
# empty is doubted: each last bid has a kernel.
SHAPES = [
    ("kuhn_poker", 9, [3], 2, 5),
    ("leduc_poker", 85, [6, 30], 3, 49),
    (LEDUC_WITHOUT_SUITS, 85, [3, 9], 3, 49),
    ("liars_dice(numdice=1,dice_sides=4)", 511, [4], 8, 255),
    # No cards at all: one signal that tells nothing.
    ("nim(pile_sizes=1;2;3)", 447, [1], 1, 182),
    ("liars_dice", 8191, [6], 12, 4095),
]


@pytest.mark.parametrize(
    ("string", "nodes", "signals", "kernels", "leaves"),
    SHAPES,
)
def test_shape(string, nodes, signals, kernels, leaves):
    tree = compile_game(string)
    game = detection.detect(tree)
    assert len(game.betting) == nodes
    assert game.num_signals(0) == game.num_signals(1) == signals
    assert (len(game.kernels), len(game.terms.leaf)) == (kernels, leaves)
    assert len(np.unique(game.terms.leaf)) == leaves
    for kernel in game.kernels:
        # Probabilities of deals times who wins.
        assert np.abs(kernel.coordinates().values).sum() <= 1 + 1e-12


def test_stakes_are_what_is_won():
    kuhn = detection.detect(games.compiled("kuhn"))
    assert sorted(np.abs(kuhn.terms.stake)) == [1, 1, 1, 2, 2]
    leduc = detection.detect(games.compiled("leduc"))
    # Antes of 1, raises of 2 and 4.
    assert set(np.abs(leduc.terms.stake)) == {1, 3, 5, 7, 9, 11, 13}


def value_of(detected, behaviours):
    """Player 0's expected utility, leaf by leaf and card by card.

    Args:
      detected: the signal form.
      behaviours: each player's, by the signal form's sequences.
    """
    game, betting = detected.game, detected.game.betting
    children = np.bincount(betting.parent[1:], minlength=len(betting))
    first = []
    for player in range(2):
        hands = np.array(game.num_signals(player))[betting.round]
        own = hands * children * (betting.player == player)
        first.append(1 + np.cumsum(own) - own)

    def probability(player, node, signal):
        if not node:
            return 1.0
        above = betting.parent[node]
        signal = climb(player, signal, betting.round[node], betting.round[above])
        chosen = 1.0
        if betting.player[above] == player:
            rank = np.flatnonzero(betting.parent == above).tolist().index(node)
            place = first[player][above] + signal * children[above] + rank
            chosen = behaviours[player][place]
        return chosen * probability(player, above, signal)

    def climb(player, signal, later, earlier):
        for r in range(later, earlier, -1):
            signal = game.parents[player][r][signal]
        return signal

    total = 0.0
    for leaf, kernel, stake in zip(*game.terms, strict=True):
        for one, other, entry in zip(*game.kernels[kernel].coordinates(), strict=True):
            reach = probability(0, leaf, one) * probability(1, leaf, other)
            total += stake * entry * reach
    return total


@pytest.mark.parametrize("name", ["kuhn", "leduc7", "nim"])
def test_same_value(name):
    """Random strategies, carried over by `sequences`, win what they win."""
    tree = games.compiled(name)
    detected = detection.locate(tree)
    behaviours = random_behaviours(tree, 3)
    moved = []
    for behaviour, sequences in zip(behaviours, detected.sequences, strict=True):
        assert (np.sort(sequences) == np.arange(len(behaviour))).all()
        other = np.empty_like(behaviour)
        other[sequences] = behaviour
        moved.append(other)
    reach = tuple(
        reach_from_behaviour(own.decisions, behaviour)
        for own, behaviour in zip(tree.infosets, behaviours, strict=True)
    )
    expected = best_responses.expected_value(tree.form, reach)
    assert value_of(detected, moved) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", ["kuhn", "leduc13", "liars_dice_1x4"])
def test_reader_and_map(name):
    """Signals of states, by their chance moves, are those of their infosets."""
    tree = games.compiled(name)
    detected = detection.locate(tree)
    game, betting = detected.game, detected.game.betting
    for player, own in enumerate(tree.infosets):
        numbers = detected.infosets[player]
        assert (np.sort(numbers) == np.arange(len(own))).all()
        hands = np.array(game.num_signals(player))[betting.round]
        hands = np.where(betting.player == player, hands, 0)
        before = np.cumsum(hands) - hands
        for i in range(0, len(own), 7):
            state = tree.state_at(own.history[i])
            node = 0
            for move in state.full_history():
                if move.player >= 0:
                    node = int(
                        np.flatnonzero(
                            (betting.parent == node) & (betting.action == move.action)
                        )[0]
                    )
            signal = game.reader.signal(state, player)
            assert before[node] + signal == numbers[i]


def test_reader_at_ends_and_in_between():
    game = detection.detect(games.compiled("leduc7"))
    state = game.game.new_initial_state()
    with pytest.raises(ValueError, match="player 1 has no signal at the history"):
        game.reader.signal(state, 1)
    for action in (0, 1, 1, 1):  # two cards; both call
        assert action in state.legal_actions()
        state.apply_action(action)
    assert state.is_chance_node()
    state.apply_action(0)
    while not state.is_terminal():
        state.apply_action(state.legal_actions()[-1])
    names = [game.reader.name(p, 1, game.reader.signal(state, p)) for p in (0, 1)]
    assert names == ["Deal 0 | Deal 0", "Deal 1 | Deal 0"]


def test_names():
    reader = detection.detect(games.compiled("leduc")).reader
    assert [reader.name(1, 0, k) for k in range(6)] == list("012345")
    assert reader.name(0, 1, 0) == "0 | 1" and reader.name(0, 1, 29) == "5 | 4"
    nim = detection.detect(games.compiled("nim")).reader
    assert nim.name(0, 0, 0) == "signal 0"


@pytest.mark.parametrize(
    ("string", "products"),
    [
        *(("kuhn_poker", products) for products in (False, True)),
        ("liars_dice(numdice=1,dice_sides=4)", True),
        pytest.param("leduc_poker", True, marks=pytest.mark.slow),
        pytest.param(games.BY_NAME["leduc13"].string, True, marks=pytest.mark.slow),
        pytest.param(games.BY_NAME["leduc13"].string, False, marks=pytest.mark.slow),
        pytest.param("liars_dice", True, marks=pytest.mark.slow),
    ],
)
def test_same_iterates(string, products):
    """Twenty iterations of CFR+ are the same up to rounding, far below 1e-9."""
    tree = compile_game(string)
    detected = detection.locate(tree)
    signal_form = form.form_of(detected.game, products=products)
    compiled, ours = (solver_of(f, "cfr+") for f in (tree.form, signal_form))
    compiled.run(20)
    ours.run(20)
    for player, sequences in enumerate(detected.sequences):
        for one, other in (
            (compiled.average(player), ours.average(player)[sequences]),
            (
                compiled.current_behaviour(player),
                ours.current_behaviour(player)[sequences],
            ),
        ):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-9)
        assert ours.average(player)[1:].std() > 0


HIDDEN = "does not see every action of the other player"


@pytest.mark.parametrize(
    "name",
    [
        *("goofspiel4", "ii_goofspiel4", "dark_hex", "princess4", "matrix_rps"),
        *("oshi_zumo", "goofspiel3_simultaneous"),
    ],
)
def test_games_of_hidden_actions_are_refused(name):
    with pytest.raises(ValueError, match=HIDDEN):
        detection.detect(games.compiled(name))


def base(path):
    """Player 0 gets one of two cards and acts, then player 1, who has seen it act."""
    if not path:
        return Node(CHANCE, (0, 1), chance=(0.5, 0.5))
    card, *moves = path
    infos = (f"{card} {moves}", f"{moves}")
    if len(moves) < 2:
        return Node(len(moves), (0, 1), infos)
    return Node(TERMINAL, utility=(1 + moves[0]) * (1 - 2 * (card ^ moves[1])))


def actions_by_card(path):
    node = base(path)
    return node._replace(actions=(0, 1)[: 1 + path[0]]) if len(path) == 1 else node


def other_actions_by_card(path):
    if len(path) == 1:
        return base(path)._replace(actions=(2 * path[0], 2 * path[0] + 1))
    if len(path) == 2:
        return base(path)._replace(infos=(f"{path}", f"{path[1:]}"))
    return base((path[0], path[1] % 2, *path[2:])) if path else base(path)


def ends_by_card(path):
    return Node(TERMINAL, utility=2) if path[1:] == (0,) and path[0] else base(path)


def deals_by_card(path):
    if path[:2] == (1, 0):
        if len(path) == 2:
            return Node(CHANCE, (0, 1), chance=(0.5, 0.5))
        return base((*path[:2], *path[3:]))
    return base(path)


def deals_by_action(path):
    """A card that nobody sees, worth nothing, of other odds after action 1."""
    if len(path) == 2:
        odds = (0.5, 0.5) if path[1] else (0.25, 0.75)
        return Node(CHANCE, (0, 1), chance=odds)
    return base((*path[:2], *path[3:]))


def cards_by_action(path):
    if len(path) == 2:
        return Node(CHANCE, (path[1], 2), chance=(0.5, 0.5))
    return base((*path[:2], *path[3:]))


def shown_by_action(path):
    """Action 1 shows player 0's card."""
    node = base(path)
    if len(path) == 2 and path[1]:
        return node._replace(infos=(node.infos[0], f"{path}"))
    if path[1:2] == (0,) and len(path) == 3:
        return Node(1, (0, 1), (node.infos[0], f"again {path[1:]}"))
    return base(path[:3]) if len(path) > 3 else node


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        (actions_by_card, "what player 0 may do after no action depends on its cards"),
        (other_actions_by_card, "what player 0 may do after no action depends"),
        (
            ends_by_card,
            r"who acts after the players' actions \[0\] depends on the deal",
        ),
        (deals_by_card, r"how much is dealt after the players' actions \[0\] depends"),
        (deals_by_action, r"what chance deals depends on .* actions \[0\] and after"),
        (cards_by_action, r"what chance deals depends on .* actions \[0\] and after"),
        (shown_by_action, r"player 1 does not know the same of the deal after"),
    ],
)
def test_made_games_are_refused(rules, reason):
    with pytest.raises(ValueError, match=f"is no signal game: {reason}"):
        detection.detect(compile_game(MadeGame(rules, "made")))


def test_the_base_of_made_games_is_a_signal_game():
    """So what was refused above is what was changed."""
    game = detection.detect(compile_game(MadeGame(base, "made")))
    assert game.num_signals(0) == [2] and game.num_signals(1) == [1]
    assert len(game.kernels) == 1
    assert sorted(game.terms.stake) == [-2, -1, 1, 2]


def test_what_does_not_rebuild_the_payoffs_is_refused(monkeypatch):
    factorise = factors.factorise

    def wrong(*args):
        kernels, terms = factorise(*args)
        return kernels, terms._replace(stake=terms.stake * (1 + 1e-11))

    tree = games.compiled("kuhn")
    detection.detect(tree)
    monkeypatch.setattr(factors, "factorise", wrong)
    with pytest.raises(ValueError, match="payoffs that are built .* are off by"):
        detection.detect(tree)


def test_partial_trees_are_refused():
    tree = games.compiled("kuhn")
    frontier = np.zeros(len(tree.histories), bool)
    with pytest.raises(ValueError, match="compiled in part only"):
        detection.detect(dataclasses.replace(tree, frontier=frontier))


def test_zero_probability_is_no_matter():
    """Outcomes that never come are not dealt, and readers say so."""

    def rules(path):
        if not path:
            return Node(CHANCE, (0, 1, 2), chance=(0.5, 0.5, 0.0))
        return base((path[0] % 2, *path[1:]))

    game = detection.detect(compile_game(MadeGame(rules, "made")))
    assert game.num_signals(0) == [2]
    state = game.game.new_initial_state()
    state.apply_action(2)
    with pytest.raises(ValueError, match="has no signal at the history"):
        game.reader.signal(state, 0)
    assert isinstance(game.game, pyspiel.Game)
