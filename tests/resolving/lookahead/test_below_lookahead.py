"""Best responses of the opponent that continue below a lookahead tree."""

import contextlib
import dataclasses
import functools

import numpy as np
import pytest
from open_spiel.python.policy import UniformRandomPolicy

from spiel_cr import build_tree, solve
from spiel_cr.common.errors import UncountableTurnsError
from spiel_cr.games.histories import CHANCE, TERMINAL
from spiel_cr.policies.queries import query
from spiel_cr.resolving.constraints import OpponentResponses
from spiel_cr.resolving.decomposition import decompose
from spiel_cr.resolving.leaves.rollout_values import Rollouts
from spiel_cr.resolving.lookahead.blueprint import Blueprint
from spiel_cr.resolving.lookahead.lookahead_tree import LookaheadTree
from spiel_cr.resolving.lookahead.solved_lookahead import SolvedLookahead
from tests.support import games, lookahead_trees, made_games
from tests.support.made_games import Node

# Sums of hundreds of doubles of size 1.
TOLERANCE = 1e-12


def started(name, player, histories, walk, batched_rules=True):
    """Return an unsolved lookahead tree of some histories from the start of a game."""
    policy = solve(games.compiled(name), "cfr+", 3).average_policy()
    start = LookaheadTree.start(
        games.compiled(name).game,
        histories,
        leaf=Rollouts(policy, 2, 1, seed=0),
        player=player,
        batched_rules=batched_rules,
    )
    blueprint = Blueprint(policy, start.simulator.source.rules)
    start = dataclasses.replace(start, blueprint=blueprint)
    start.grow(histories)
    return SolvedLookahead.of(start, player, blueprint, walk=walk), policy


@pytest.mark.parametrize("batched_rules", [True, False])
@pytest.mark.parametrize("player", [0, 1])
@pytest.mark.parametrize("name", ["leduc7", "goofspiel4", "liars_dice_1x4"])
def test_constraints_equal_best_response_values_of_the_whole_game(
    name, player, batched_rules
):
    tree = games.compiled(name)
    solved, policy = started(
        name, player, len(tree.histories) // 3, 10_000, batched_rules
    )
    assert solved.exact and solved.snapshot.tree.frontier.any()
    behaviour = query(tree, policy)[player]
    d = decompose(tree, player)
    values = OpponentResponses(d).values(behaviour)
    np.testing.assert_allclose(solved.constraints[-1], values[-1], atol=TOLERANCE)
    # The lookahead tree has all roots of the first layer.
    first, mine = d.augmented_layer == 1, solved.decomposition.augmented_layer == 1
    whole = np.sort(values[:-1][first])
    found = np.sort(solved.constraints[:-1][mine])
    np.testing.assert_allclose(found, whole, atol=TOLERANCE)


def by_infosets(lookahead, most, random):
    """Expand random infosets, with the histories that must be expanded together."""
    table = lookahead.table
    while table.used < most and len(frontier := table.frontier()):
        infosets = table.infosets(frontier)
        expanded = table.infosets(np.flatnonzero(table.first[: table.used] >= 0))
        due = np.isin(infosets, expanded) | (table.player[frontier] == CHANCE)
        if not due.any():
            due = infosets == random.choice(infosets)
        table.expand_rows(lookahead.simulator, frontier[due])


def a_third_of(tree, random, *, entire_states):
    """Return a tree of a third of a game for player 0, with the uniform blueprint."""
    count = len(tree.histories)
    start = lookahead_trees.start(tree.game, count, player=0)
    uniform = Blueprint(UniformRandomPolicy(tree.game), start.simulator.source.rules)
    if entire_states:
        start.grow(count // 3)
    else:
        by_infosets(start, count // 3, random)
    return SolvedLookahead.of(start, 0, uniform, walk=100_000)


def change(solved, game, infosets, random):
    """Play randomly at some infosets of a tree, and uniformly elsewhere.

    Args:
      solved: The lookahead tree.
      game: `Decomposition` of the whole game.
      infosets: Infosets of the player in the lookahead tree.
      random: Random generator.

    Returns:
      float64 [S], action probabilities in the tree, and the same for the whole game.
    """
    own, behaviour = game.tree.infosets[0], solved.behaviour.copy()
    whole = np.append(
        1.0, np.repeat(1 / own.decisions.num_actions, own.decisions.num_actions)
    )
    keys = solved.snapshot.tree.infosets[0].keys
    for infoset in infosets:
        place = solved.decomposition.decisions.sequences_of(np.array([infoset]))
        behaviour[place] = random.dirichlet(np.full(len(place), 0.5))
        first = own.decisions.first_sequence[own.keys.index(keys[infoset])]
        whole[first : first + len(place)] = behaviour[place]
    return behaviour, whole


@pytest.mark.parametrize("name", ["leduc7", "liars_dice_1x4"])
def test_trees_that_split_infosets_are_not_checked(name):
    """The incumbent strategy would apply to infosets that are partly in the tree."""
    random = np.random.default_rng(0)
    tree = games.compiled(name)
    assert not a_third_of(tree, random, entire_states=False).exact
    solved = a_third_of(tree, random, entire_states=True)
    assert solved.exact and len(solved.lookahead.table.frontier())
    game, own = decompose(tree, 0), solved.snapshot.tree.infosets[0]
    behaviour, whole = change(solved, game, range(len(own)), random)
    said, true = (
        solved.responses.values(behaviour),
        OpponentResponses(game).values(whole),
    )
    assert said[-1] == pytest.approx(true[-1], abs=TOLERANCE)


FORGETS = {"depth": 7, "max_actions": 3, "remembered": 0.2, "transient": 0.9}
UNCOUNTED = {"depth": 8, "turns": "by history", "remembered": 0.3, "transient": 0.5}


@functools.cache
def random_trees(name):
    """Return random games of at least 30 histories, with player 0's decompositions."""
    # Most games with imperfect recall can be checked, and a third of the others.
    kind, count = {"forgets": (FORGETS, 30), "uncounted": (UNCOUNTED, 60)}[name]
    found = []
    for seed in range(count):
        tree = build_tree(made_games.random_game(seed, **kind), observations=True)
        if len(tree.histories) >= 30:
            with contextlib.suppress(UncountableTurnsError):
                found.append((tree, decompose(tree, 0)))
    return found


@pytest.mark.parametrize("entire_states", [True, False])
@pytest.mark.parametrize("kind", ["forgets", "uncounted"])
def test_strategies_within_the_constraints_are_never_worse(kind, entire_states):
    """In these games players forget observations or cannot count turns."""
    random, checked, kept = np.random.default_rng(0), 0, 0
    for tree, game in random_trees(kind):
        solved = a_third_of(tree, random, entire_states=entire_states)
        if not solved.exact:
            continue
        checked += 1
        d, responses, in_game = (
            solved.decomposition,
            solved.responses,
            OpponentResponses(game),
        )
        for subgame in range(d.player_subgame.max(initial=-1) + 1):
            mine = np.flatnonzero(d.player_subgame == subgame)
            for _ in range(10):
                behaviour, whole = change(solved, game, mine, random)
                said, true = responses.values(behaviour), in_game.values(whole)
                assert said[-1] == pytest.approx(true[-1], abs=TOLERANCE)
                exceeds = responses.exceeds(solved.constraints, said)[:-1]
                if not exceeds[d.augmented_subgame == subgame].any():
                    kept += 1
                    assert true[-1] <= solved.constraints[-1] + TOLERANCE
    assert checked >= 10 and kept >= 200


def test_responses_end_at_the_frontier_above_the_walk_limit():
    solved, _ = started("leduc7", 0, 200, 200)
    assert not solved.exact
    labels = solved.lookahead.simulator.acting_labels
    known = [len(own) for own in labels]
    again = SolvedLookahead.of(
        solved.lookahead, 0, solved.lookahead.blueprint, walk=2000
    )
    # With one rollout per history, the opponent's choice is often wrong.
    assert again.exact and abs(again.constraints[-1] - solved.constraints[-1]) > 0.01
    assert [len(own) for own in labels] == known


def hidden_failure(path):
    """Player 1 observes player 0's first action, but not whether player 0 acts again.

    Player 0 acts again if its first action fails.
    """
    mine = "m" + "".join(map(str, path[:1]))
    if len(path) < 2:
        return Node(0 if not path else CHANCE, (0, 1), (mine, mine), 0.0, (0.6, 0.4))
    failed = path[1]
    info = f"{mine} {failed} " + "".join(map(str, path[2 : 2 + failed])), mine
    if len(path) < 3 + failed:
        return Node(0 if failed > len(path) - 2 else 1, (0, 1), info)
    gains = ((1.0, 0.0), (0.0, 1.5), (1.4, 0.0))[failed * (1 + path[2])]
    return Node(TERMINAL, utility=-gains[path[-1]])


@pytest.mark.parametrize("whole", [False, True])
def test_subgames_that_share_opponent_infosets_with_others_are_not_solved(whole):
    """Player 1 has the same infoset with and without a failure of player 0."""
    game = made_games.MadeGame(hidden_failure, "hidden_failure")
    decompose(build_tree(game), 0)
    start = lookahead_trees.start(game, 24, player=0)
    uniform = Blueprint(UniformRandomPolicy(game), start.simulator.source.rules)
    place, ids = start, start.table.id[:1]
    for number, key in enumerate(("m", "m0 1 ")):
        begins = number == 0
        place, ids, _ = place.next_public_state(ids, key, most=24, begins=begins)
    subgame = place.focus(ids)
    subgame.table.expand_rows(subgame.simulator, subgame.rows(ids))
    if whole:
        subgame.grow(24)
    assert len(subgame.table.frontier()) == (0 if whole else 2)
    solved = SolvedLookahead.of(subgame, 0, uniform, roots=ids, walk=100)
    # The complete subgame cannot be solved; the smaller tree cannot be checked.
    assert solved is None if whole else not solved.exact
