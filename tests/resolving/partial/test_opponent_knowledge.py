"""What both players may think possible, against enumeration of whole games."""

import dataclasses
import functools

import numpy as np
import pytest

import game_defs  # noqa: F401  registers the games
from spiel_cr.games.tree import compiler as tree_lib
from spiel_cr.players.partial_bots import PartialResolvingBot
from spiel_cr.policies import conversions as policy_lib
from spiel_cr.policies.best_responses import best_response_value
from spiel_cr.resolving.partial import opponent_knowledge
from spiel_cr.resolving.partial.partial_config import PartialConfig
from spiel_cr.resolving.partial.partial_resolver import PartialResolver
from spiel_cr.resolving.partial.partial_tree import PartialTree
from spiel_cr.resolving.partial.particle_belief import ParticleFilter, uniform_strategy
from spiel_cr.resolving.partial.solved_tree import SolvedTree
from spiel_cr.resolving.resolving_config import ResolvingConfig

PLAYERS = (0, 1)
GAMES = ["kuhn_poker", "python_leduc_poker", "python_ii_goofspiel(num_cards=4)"]
# Here a player may have to move again, which the other one may not see.
DARK = "dark_hex(num_rows=2,num_cols=2)"


@functools.cache
def compiled(name):
    return tree_lib.compile_game(name, observations=True, vectorised=False)


@functools.cache
def solved_tree(name, player, capacity):
    fragment = PartialTree.start(name, capacity, vectorised=False)
    fragment.grow()
    return SolvedTree.of(fragment, player)


def line(tree, history):
    """The histories on the way, from the last one up."""
    while history >= 0:
        yield int(history)
        history = tree.histories.parent[history]


@functools.cache
def reaches(name):
    """float64 [N], probability of each history if all play uniformly."""
    tree = compiled(name)
    histories = tree.histories
    moves = np.bincount(histories.parent[1:], minlength=len(histories))
    reach = histories.chance.copy()
    for h in range(len(reach)):
        for above in list(line(tree, h))[1:]:
            if histories.player[above] >= 0:
                reach[h] /= moves[above]
    return reach


def expected(name, player, infoset):
    """All roots by enumeration: {actions from the root: share}.

    All histories of the opponent's infosets at its turn; if it had none, all decisions
    of the player, the first on each line, where the opponent has matching the same.
    """
    tree, reach = compiled(name), reaches(name)
    histories = tree.histories
    own = np.flatnonzero((histories.player == player) & (histories.infoset == infoset))
    turns = set()
    for h in own:
        since = []
        for above in list(line(tree, h))[1:]:
            if histories.player[above] == player:
                break
            since.append(above)
        acted = [x for x in since if histories.player[x] == 1 - player]
        turns.add(int(histories.infoset[acted[-1]]) if acted else None)
    acts = histories.player == player
    if None not in turns:
        acts = histories.player == 1 - player
        found = np.flatnonzero(acts & np.isin(histories.infoset, list(turns)))
    else:
        matching = np.isin(histories.observations, histories.observations[own]) & acts
        above = {x for h in own for x in line(tree, h)} - set(own.tolist())
        found = [
            h
            for h in np.flatnonzero(matching)
            if h not in above
            and not any(x not in above and matching[x] for x in list(line(tree, h))[1:])
        ]
    total = reach[found].sum()
    return {tuple(histories.actions_to(int(h))): reach[h] / total for h in found}


def steps_to(tree, player, infoset):
    """The player's decisions on the way: [(action before, key), ...]."""
    infosets, steps = tree.infosets[player], []
    while True:
        parent = int(infosets.decisions.parent[infoset])
        action = int(infosets.actions[parent - 1]) if parent else None
        steps.append((action, infosets.keys[infoset]))
        if not parent:
            return steps[::-1]
        infoset = int(infosets.decisions.owner[parent])


def followed(name, player, steps, most=10**6):
    particles = ParticleFilter(
        *(PartialTree.start(name, 2, vectorised=False).simulator, player),
        strategies=(uniform_strategy, uniform_strategy),
        most=most,
        random=np.random.default_rng(0),
    )
    knowledge = opponent_knowledge.at_start(particles)
    for action, key in steps:
        knowledge = opponent_knowledge.follow(particles, knowledge, action, key)
    return knowledge


def as_found(knowledge):
    beliefs = knowledge.roots, knowledge.opponent_roots
    paths = [
        tuple(state.history()) for belief in beliefs for state in belief.nodes.states
    ]
    weights = np.concatenate([belief.weights for belief in beliefs])
    assert len(set(paths)) == len(paths)
    return dict(zip(paths, (weights / weights.sum()).tolist(), strict=True))


def some_infosets(name, player, count=15):
    number = len(compiled(name).infosets[player])
    return range(0, number, -(-number // count))


@pytest.mark.parametrize("player", PLAYERS)
@pytest.mark.parametrize("name", [*GAMES, DARK])
def test_roots_are_all_that_the_opponent_cannot_tell_apart(name, player):
    """In a partial tree that is the whole game, against uniform play."""
    tree, several = compiled(name), 0
    here = solved_tree(name, player, len(tree.histories))
    for infoset in some_infosets(name, player):
        at = here.find(tree.infosets[player].keys[infoset])
        found = opponent_knowledge.at_infoset(here, at, 1.0)
        assert as_found(found) == pytest.approx(expected(name, player, infoset))
        assert found.roots.weights.sum() == pytest.approx(1)
        several += len(found.opponent_roots.weights) > 0
    assert several


@pytest.mark.parametrize("player", PLAYERS)
@pytest.mark.parametrize("name", GAMES)
def test_followed_from_the_beginning(name, player):
    tree = compiled(name)
    for infoset in some_infosets(name, player):
        found = followed(name, player, steps_to(tree, player, infoset))
        assert as_found(found) == pytest.approx(expected(name, player, infoset))


def test_where_nobody_sees_failed_attempts():
    """phantom_ttt: followed, and in a tree that has all that is needed."""
    name, player = "phantom_ttt", 0
    here = solved_tree(name, player, 900)
    infosets = here.snapshot.tree.infosets[player]
    for infoset in np.flatnonzero(infosets.decisions.levels() == 1)[::9]:
        steps = steps_to(here.snapshot.tree, player, infoset)
        inside = opponent_knowledge.at_infoset(here, infoset, 1.0)
        found = followed(name, player, steps)
        assert as_found(found) == pytest.approx(as_found(inside))
        assert len(found.opponent_roots.weights) == 8
        assert (
            as_found(followed(name, player, steps, most=5)).keys()
            < as_found(inside).keys()
        )


def test_roots_are_shared(monkeypatch):
    here = solved_tree(GAMES[1], 1, 9457)
    at = int(np.flatnonzero(here.decomposition.own_layer > 1)[0])
    knowledge = opponent_knowledge.at_infoset(here, at, 0.5)
    random = np.random.default_rng(0)
    every = len(knowledge.roots.weights) + len(knowledge.opponent_roots.weights)
    for most, share, count in (
        (10**6, 0.5, every),
        (4, 0.5, 4),
        (4, 0, 4),
        (1, 0.9, 1),
    ):
        monkeypatch.setattr(opponent_knowledge, "OPPONENT_SHARE", share)
        nodes, weights = knowledge.draw_roots(most, random)
        assert len(nodes.player) == len(weights) <= count
        own = np.isin(nodes.label, knowledge.roots.nodes.label)
        assert own.all() and (weights > 0).all()
    monkeypatch.setattr(opponent_knowledge, "OPPONENT_SHARE", 0.0)
    nodes, weights = knowledge.draw_roots(10**6, random)
    np.testing.assert_array_equal(weights, knowledge.roots.weights)


@pytest.mark.parametrize("player", PLAYERS)
def test_trees_lead_from_the_roots_to_the_decision(player):
    """Also where chance moves after the opponent, or the player opens the game."""
    name = GAMES[1]
    here = solved_tree(name, player, len(compiled(name).histories))
    start, random = dataclasses.replace(here.partial, player=player), None
    dealt = 0
    for infoset in some_infosets(name, player):
        at = here.find(compiled(name).infosets[player].keys[infoset])
        knowledge = opponent_knowledge.at_infoset(here, at, 1.0)
        random = np.random.default_rng(0)
        for known in (knowledge, knowledge.at_decision):
            roots = known.draw_roots(10**6, random)
            tree, label = start.rooted_at(*roots), int(known.belief.nodes.label[0])
            assert not tree.grow_to(label, 10**4, deadline=0.0)
            assert tree.grow_to(label, 10**4)
            table = tree.table
            acts = (table.player == player) & (table.label == label)
            found = np.flatnonzero(acts[: table.used])
            assert len(found) == len(known.belief.weights)
            assert (table.first[found] > 0).all()
            dealt += (table.player[table.parent[found]] < 0).any()
    assert dealt > 5


@pytest.mark.slow
def test_what_the_player_hides_stays_hidden(monkeypatch):
    """Leduc poker, a new tree at each decision: how much worse than equilibrium.

    Without the opponent's own roots the opponent knows the player's card.
    """
    tree = compiled("python_leduc_poker")
    solve = PartialResolver._solve_decision

    def restart(self, stages, number):
        if not number:  # the start of the game answers it
            return solve(self, stages, number)
        self._knowledge = self._follow(stages, number)
        most = self.settings.max_histories
        if self._knowledge is not None:
            tree = self._restarted_tree(self._knowledge, most)
            self.counts.unsafe_restarts += self._solve(tree, None, most, None)

    monkeypatch.setattr(PartialResolver, "_solve_decision", restart)

    def exploitable(share):
        monkeypatch.setattr(opponent_knowledge, "OPPONENT_SHARE", share)
        total = 0.0
        for player, infosets in enumerate(tree.infosets):
            bot = PartialResolvingBot(
                tree.game,
                player,
                ResolvingConfig(iterations=150),
                partial=PartialConfig(3000, warmup_matches=0),
            )
            behaviour = np.zeros(infosets.decisions.num_sequences)
            for infoset, first in enumerate(infosets.decisions.first_sequence):
                state = tree.game.new_initial_state()
                for action in tree.histories.actions_to(int(infosets.history[infoset])):
                    state.apply_action(action)
                bot.restart()
                odds = [p for _, p in bot.get_policy(state)]
                behaviour[first : first + len(odds)] = odds
            assert bot.counts.unsafe_restarts > 50 and bot.counts.uniform == 0
            reach = policy_lib.reach_from_behaviour(infosets.decisions, behaviour)
            total += best_response_value(tree.form, 1 - player, reach)
        return total

    # Measured: 0.03 and 0.72.
    assert exploitable(0.5) < 0.1
    assert exploitable(0.0) > 0.3
