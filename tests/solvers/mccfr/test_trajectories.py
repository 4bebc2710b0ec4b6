"""Sampled trajectories, compared with exact enumeration and with a slow recursion.

Trajectories are sampled in batches, or by walks of one trajectory at a time.

All tests use double precision. Sums have at most some thousand terms of size 100 or
less, so 1e-10 is far above rounding errors; any wrong probability has an effect of at
least 1e-3.
"""

import dataclasses
import functools
import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spiel_cr.games.tree.tree import GameTree
from spiel_cr.games.tree.tree_builder import build_tree
from spiel_cr.solvers.cfr import cfr_config as algorithm
from spiel_cr.solvers.mccfr import (
    baselines,
    branching_walk,
    descent,
    flat_tree,
    sample_tree,
    trajectories,
    walk,
)
from tests.support import games, reference, sampling_reference

TOLERANCE = 1e-10
PLAYERS = (0, 1)
STRINGS = {"kuhn": "kuhn_poker", "goofspiel3": games.goofspiel(3, "descending")}
LEARNED = ("average", "expected")
BASELINES = ("none", *LEARNED)
TOGETHER = ("outcome", "balanced")
SCHEMES = {
    "outcome": {"scheme": "outcome", "epsilon": 0.3},
    "balanced": {"scheme": "outcome", "epsilon": 0.8, "explore": "balanced"},
    "external": {"scheme": "external"},
    "average": {"scheme": "average", "epsilon": 0.1, "threshold": 1.5, "bonus": 0.5},
}
# The second game takes long to compile.
ONE_GAME = pytest.mark.parametrize(
    "name", ["kuhn", pytest.param("goofspiel3", marks=pytest.mark.slow)]
)
DELTA = 0.7
# Trajectories that are sampled at a time, so that every call has the same shapes.
CHUNK = 256


class Setup(NamedTuple):
    """A game with random strategies, as a game tree and as a reference tree.

    Attributes:
      compiled: The game tree.
      tree: The game for the reference.
      policy: Random strategies.
      past: Random sums of past strategies.
      guesses: Random baselines by history of `tree`.
      shared: Random baselines that are equal at all histories of an infoset.
      number: For each history of `tree`, the index of the history in `compiled`.
    """

    compiled: GameTree
    tree: reference.Tree
    policy: reference.Policy
    past: reference.Policy
    guesses: list[float]
    shared: list[float]
    number: list[int]


@functools.cache
def setup(name: str) -> Setup:
    """Set up a game; in goofspiel every third infoset has an action never played."""
    rng = np.random.default_rng(20)
    compiled = build_tree(STRINGS[name])
    tree = reference.Tree(compiled.game)
    policy, past, by_action = {}, {}, {}
    for i, key in enumerate(tree.infosets):
        actions = tree.actions(key)
        weights = rng.uniform(0.1, 1, len(actions))
        if name == "goofspiel3" and i % 3 == 0:
            weights[rng.integers(len(actions))] = 0
        policy[key] = dict(zip(actions, weights / weights.sum(), strict=True))
        past[key] = dict(zip(actions, rng.uniform(0, 1, len(actions)), strict=True))
        by_action[key] = dict(zip(actions, rng.uniform(-2, 2, 9), strict=False))
    guesses = list(rng.uniform(-2, 2, len(tree.nodes)))
    shared = list(guesses)
    for node in tree.nodes:
        for action, child in node.children.items():
            if node.key is not None:
                shared[child] = by_action[node.key][action]
    paths = {
        tuple(compiled.histories.actions_to(h)): h
        for h in range(len(compiled.histories))
    }
    number = [paths[node.path] for node in tree.nodes]
    return Setup(compiled, tree, policy, past, guesses, shared, number)


@functools.cache
def target(name: str) -> frozenset[int]:
    """Return two histories in the middle of the game and a terminal one."""
    tree = setup(name).tree
    deep = [i for i, node in enumerate(tree.nodes) if len(node.path) == 3]
    over = [i for i, node in enumerate(tree.nodes) if not node.children]
    return frozenset((deep[1], deep[-2], over[len(over) // 2]))


def config_of(scheme: str, **options) -> algorithm.MCCFRConfig:
    base = algorithm.SAMPLED_PRESETS["os-mccfr"]
    return dataclasses.replace(base, **(SCHEMES[scheme] | options))


@functools.cache
def rules_of(
    name: str, scheme: str, player: int, targeted: bool = False
) -> sampling_reference.Rules:
    game, config = setup(name), config_of(scheme)
    return sampling_reference.Rules(
        *(game.tree, game.policy, player, config.scheme, config.epsilon),
        balanced=config.explore == "balanced",
        cumulative=game.past,
        threshold=config.threshold,
        bonus=config.bonus,
        target=target(name) if targeted else frozenset(),
        delta=DELTA if targeted else 0.0,
    )


class Walks(NamedTuple):
    """All trajectories: float [L, D], bool [L], float [L], and their histories."""

    draws: np.ndarray
    targeted: np.ndarray
    shares: np.ndarray
    followed: list[frozenset[int]]


@functools.cache
def walks_of(rules: sampling_reference.Rules) -> Walks:
    kinds = [(True, rules.delta), (False, 1 - rules.delta)]
    rows = [
        (walk, kind, walk.share * share)
        for kind, share in kinds
        if share
        for walk in sampling_reference.walks(rules, kind)
    ]
    walks, kinds_of, shares = zip(*rows, strict=True)
    assert sum(shares) == pytest.approx(1, abs=1e-12)
    assert len({(walk.followed, kind) for walk, kind, _ in rows}) > 1
    return Walks(
        np.array([walk.draws for walk in walks]),
        np.array(kinds_of),
        np.array(shares),
        [walk.followed for walk in walks],
    )


def marked(game: Setup, nodes: frozenset[int]) -> np.ndarray | None:
    """Return a mask of histories for `flat_tree.build`, bool [N], or None if empty."""
    mask = np.zeros(len(game.compiled.histories), bool)
    mask[[game.number[i] for i in nodes]] = True
    return mask if nodes else None


class Sampler:
    """`trajectories.sample` with a reference's strategies and baselines.

    Nothing is jitted: operations are compiled once for all schemes.
    """

    def __init__(self, name, rules, config):
        self.game, self.rules, self.config = setup(name), rules, config
        self.host, self.plan = sample_tree.build(self.game.compiled)
        self.width = max(shape.width for shape in self.plan)
        self.entries = len(self.host.balanced) - self.width
        start = self.game.compiled.histories.level_start
        depth = np.searchsorted(start, self.game.number, side="right") - 1
        self.places = [
            (int(d), int(h - start[d]))
            for h, d in zip(self.game.number, depth, strict=True)
        ]
        self.arrays = jax.device_put(self.host)
        # The empty sequence is always played.
        strategy = self.by_entry(rules.strategy).at[0].set(1)
        self.batch = descent.Batch(
            strategy=strategy,
            explore=self.arrays.balanced if config.explore == "balanced" else None,
            stride=1,
            player=rules.player,
            config=config,
        )
        self.start = self.baseline()

    def row(self, index: int) -> int:
        depth, place = self.places[index]
        return int(self.host.levels[depth].row[place])

    def child(self, index: int) -> tuple[int, int]:
        """Return the level above a history, and the history's index in its level."""
        depth, place = self.places[index]
        return depth - 1, place

    def by_entry(self, numbers) -> jax.Array:
        """Return a table of numbers by history and action, float [T + A]."""
        table = np.zeros(self.entries + self.width)
        for index in range(len(self.game.tree.nodes)):
            for a, number in enumerate(numbers(index).values()):
                table[self.row(index) + a] = number
        return jnp.asarray(table)

    def baseline(self):
        kind = self.config.baseline
        if kind == "average":
            nodes, guesses = self.game.tree.nodes, self.game.shared
            return self.by_entry(
                lambda i: {a: guesses[c] for a, c in nodes[i].children.items()}
            )
        tables = baselines.init(kind, self.host, self.plan, np.dtype(float))
        if tables is not None:
            for index in range(1, len(self.game.tree.nodes)):
                above, place = self.child(index)
                tables[above][place] = self.game.guesses[index]
        return jax.device_put(tables)

    @property
    def guesses(self) -> list[float] | None:
        """The reference's copy of the baselines."""
        kinds = {"none": None, "average": self.game.shared}
        return kinds.get(self.config.baseline, self.game.guesses)

    def sample_each(self, walks: Walks) -> trajectories.Sample:
        """Sample each trajectory in a separate batch; NumPy arrays with walks first."""

        def one(draws):
            return self.sample_batch(draws[:, None], jnp.ones(1))

        parts = []
        for begin in range(0, len(walks.draws), CHUNK):
            draws = walks.draws[begin : begin + CHUNK]
            missing = CHUNK - len(draws)
            sample = jax.vmap(one)(jnp.asarray(np.pad(draws, ((0, missing), (0, 0)))))
            kept = CHUNK - missing
            parts.append([np.asarray(x)[:kept] for x in jax.tree.leaves(sample)])
            structure = jax.tree.structure(sample)
        joined = [np.concatenate(leaves) for leaves in zip(*parts, strict=True)]
        return jax.tree.unflatten(structure, joined)

    def sample_batch(self, draws, shares) -> trajectories.Sample:
        return trajectories.sample(
            *(self.arrays, self.plan, self.batch, self.start, draws, shares)
        )

    def values(self, by_action: dict[tuple, float]) -> np.ndarray:
        """Return a table of the reference's values, float [T + A]."""
        table = np.zeros(self.entries + self.width)
        for (key, action), value in by_action.items():
            index = self.game.tree.infosets[key][0]
            at = list(self.game.tree.nodes[index].children).index(action)
            table[self.row(index) + at] = value
        return table


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE)


def check_unbiased(sampler, walks, sample):
    rules = sampler.rules
    expected = sampler.values(sampling_reference.counterfactual(rules))
    close(walks.shares @ sample.values, expected)
    value = reference.value_at(rules.tree, rules.policy)
    close(walks.shares @ sample.roots[:, 0], value)


def check_each(sampler, walks, sample):
    """Compare about 40 single trajectories with the reference."""
    for i in range(0, len(walks.shares), 1 + len(walks.shares) // 40):
        expected = sampling_reference.estimate(
            sampler.rules, walks.followed[i], sampler.guesses
        )
        close(sample.values[i], sampler.values(expected.values))
        close(sample.roots[i], expected.at[0])


# The quick tests cover both kinds of exploration, and baselines by entry ("average")
# and by history ("expected"); all others are slow.
QUICK = {
    ("kuhn", "outcome", "none"),
    ("kuhn", "outcome", "average"),
    ("kuhn", "balanced", "expected"),
}
ROWS = [
    pytest.param(*row, marks=() if row in QUICK else pytest.mark.slow)
    for row in itertools.product(STRINGS, TOGETHER, BASELINES)
]


@pytest.mark.parametrize(("name", "scheme", "baseline"), ROWS)
def test_batched_estimates_are_unbiased(name, scheme, baseline):
    """All trajectories are enumerated with their probabilities, for both players."""
    for player in PLAYERS:
        rules = rules_of(name, scheme, player)
        config = config_of(scheme, baseline=baseline, batch=1)
        with jax.enable_x64(True):
            sampler, walks = Sampler(name, rules, config), walks_of(rules)
            sample = sampler.sample_each(walks)
        check_unbiased(sampler, walks, sample)
        check_each(sampler, walks, sample)
        assert np.ptp(sample.roots) > 0.1


@pytest.mark.parametrize("name", STRINGS)
def test_outcome_sampling_equals_the_textbook_estimate(name):
    """In Lanctot et al. (2009), it is a utility divided by a probability."""
    for player in PLAYERS:
        rules = rules_of(name, "outcome", player)
        config = config_of("outcome", batch=1)
        with jax.enable_x64(True):
            sampler, walks = Sampler(name, rules, config), walks_of(rules)
            sample = sampler.sample_each(walks)
        for followed, values in zip(walks.followed, sample.values, strict=True):
            expected = sampling_reference.textbook_outcome(rules, followed)
            close(values, sampler.values(expected))


@pytest.mark.slow
def test_batch_equals_the_sum_of_its_trajectories():
    rng = np.random.default_rng(3)
    size, scheme = 7, "outcome"
    rules = rules_of("kuhn", scheme, 1)
    draws = rng.uniform(size=(sampling_reference.depths(rules.tree), size))
    shares = rng.uniform(size=size)
    config = config_of(scheme, baseline="average", decay=0.3, batch=size)
    with jax.enable_x64(True):
        sampler = Sampler("kuhn", rules, config)
        sample = sampler.sample_batch(jnp.asarray(draws), jnp.asarray(shares))
    found = sampling_reference.simulate(rules, draws, np.zeros(size, bool))
    estimates = [sampling_reference.estimate(rules, f, sampler.guesses) for f in found]
    expected = sum(
        share * sampler.values(e.values)
        for share, e in zip(shares, estimates, strict=True)
    )
    close(sample.values, expected)
    close(sample.roots, [e.at[0] for e in estimates])
    # Baselines move as if the mean occurred as often as the action was followed.
    repeated = 0
    for (index, place), children in children_by_action(rules.tree).items():
        seen = [e.at[c] for c in children for e in estimates if c in e.at]
        old = sampler.guesses[children[0]]
        mean = np.mean(seen) if seen else old
        new = old + (1 - 0.7 ** len(seen)) * (mean - old)
        close(sample.baseline[sampler.row(index) + place], new)
        repeated += len(seen) > 1
    assert repeated


def children_by_action(tree) -> dict[tuple[int, int], list[int]]:
    """Return the histories after each action of an infoset or of a chance history.

    The keys are the first of these histories and the number of the action.
    """
    firsts: dict = {}
    found: dict[tuple[int, int], list[int]] = {}
    for index, node in enumerate(tree.nodes):
        first = firsts.setdefault(node.key or index, index)
        for place, child in enumerate(node.children.values()):
            found.setdefault((first, place), []).append(child)
    return found


def learned(sampler, followed) -> list[float]:
    """Compute the baselines at all histories after one trajectory."""
    rules, kind, decay = sampler.rules, sampler.config.baseline, sampler.config.decay
    nodes, old = rules.tree.nodes, sampler.guesses
    new, at = list(old), sampling_reference.estimate(rules, followed, old).at
    if kind == "average":
        for children in children_by_action(rules.tree).values():
            seen = [at[c] for c in children if c in followed]
            for c in children if seen else ():
                share = 1 - (1 - decay) ** len(seen)
                new[c] += share * (np.mean(seen) - old[c])
    else:
        for i in sorted(followed - {0}, key=lambda i: -len(nodes[i].path)):
            below = nodes[i].children
            weights = rules.strategy(i) if below else {}
            new[i] = sum(weights[a] * new[c] for a, c in below.items())
            new[i] += nodes[i].utility
    return new


@pytest.mark.parametrize("kind", LEARNED)
@ONE_GAME
def test_baselines_after_a_trajectory_equal_the_reference(name, kind):
    for player in PLAYERS:
        rules = rules_of(name, "outcome", player)
        config = config_of("outcome", baseline=kind, decay=0.3, batch=1)
        with jax.enable_x64(True):
            sampler, walks = Sampler(name, rules, config), walks_of(rules)
            sample = sampler.sample_each(walks)
        nodes = rules.tree.nodes
        for number in range(0, len(walks.shares), 3):
            expected = learned(sampler, walks.followed[number])
            for index, node in enumerate(nodes):
                for a, child in enumerate(node.children.values()):
                    if kind == "average":
                        found = sample.baseline[number, sampler.row(index) + a]
                    else:
                        above, place = sampler.child(child)
                        found = sample.baseline[above][number, place]
                    assert found == pytest.approx(expected[child], abs=TOLERANCE), (
                        f"walk {number}: after {node.path}, action {a}"
                    )


class Walker:
    """Walks of one trajectory at a time, with a reference's strategies and baselines.

    Attributes:
      maps: Sampler of batches, which maps histories to entries of tables.
      given: Inputs of a walk, except for draws.
    """

    def __init__(self, name, rules, config):
        self.maps, self.config = Sampler(name, rules, config), config
        tree = self.maps.game.compiled
        self.flat = flat_tree.build(
            *(tree, sample_tree.columns_of(tree)),
            target=marked(self.maps.game, rules.target),
        )
        strategy = np.array(self.maps.batch.strategy)[: self.maps.entries]
        self.given = walk.WalkInputs(
            tree=jax.device_put(self.flat),
            strategy=jnp.asarray(strategy),
            draws=None,
            targeted=None,
            share=jnp.ones(()),
            player=jnp.int32(rules.player),
            past=self.past(rules, strategy) if config.scheme == "average" else None,
        )

    def past(self, rules, strategy) -> walk.Past:
        """Return sums of past strategies, of which random parts are still missing."""
        maps, flat, rng = self.maps, self.flat, np.random.default_rng(8)
        nodes = maps.game.tree.nodes
        past = np.array(
            maps.by_entry(
                lambda i: (
                    rules.cumulative[nodes[i].key]
                    if nodes[i].player == rules.player
                    else {}
                )
            )
        )[: maps.entries]
        first = maps.game.compiled.infosets[0].decisions.num_sequences
        start = past[rules.player * first] = 1.7
        sums, taken = past.copy(), np.zeros(len(flat.first))
        for point in np.flatnonzero(flat.code % 4 == rules.player):
            missing = rng.uniform(0, 0.2)
            taken[point] = past[flat.parent[point]] - missing
            begin = flat.first[point]
            rows = slice(begin, begin + flat.code[point] // 4)
            sums[rows] -= missing * strategy[rows]
        low = [rng.uniform(-0.1, 0.1, len(high)) for high in (sums, taken)]
        return walk.Past(
            *(walk.DoubleSums(jnp.asarray(sums - low[0]), jnp.asarray(low[0])),),
            *(walk.DoubleSums(jnp.asarray(taken - low[1]), jnp.asarray(low[1])),),
            *(jnp.asarray(start), jnp.ones(())),
        )

    @property
    def scratch(self) -> walk.Scratch:
        points = len(self.flat.first)
        return walk.Scratch(
            pending=jnp.zeros(self.maps.entries),
            listed=jnp.zeros(points, bool),
            points=jnp.zeros(points, jnp.int32),
            length=jnp.int32(0),
        )

    def baseline(self) -> jax.Array | None:
        """Return the reference's baselines by entry or history."""
        start = self.maps.start
        if isinstance(start, tuple):
            guesses = np.zeros(len(self.flat.point))
            guesses[self.maps.game.number] = self.maps.game.guesses
            start = jnp.asarray(guesses)
        return start

    def sample_several(self, draws, arrivals=None, scratch=None, share=1.0):
        """Sample one trajectory that follows several actions."""
        if arrivals is None:
            arrivals = jnp.zeros(len(self.maps.plan), jnp.int32)
        given = self.given._replace(draws=draws[:-1], share=jnp.asarray(share))
        return branching_walk.sample(
            *(given, arrivals, scratch or self.scratch, self.config)
        )

    def map_each(self, function, *arguments):
        """Apply a function to trajectories one after another; return NumPy arrays."""
        run = jax.jit(lambda *a: jax.lax.map(lambda row: function(*row), a))
        return jax.tree.map(np.asarray, run(*map(jnp.asarray, arguments)))


@pytest.mark.parametrize("scheme", ["external", "average"])
@ONE_GAME
def test_walks_that_follow_several_actions_are_unbiased(name, scheme):
    """Each walk gives the estimates of the reference, as in batches."""
    for player in PLAYERS:
        rules = rules_of(name, scheme, player)
        config = config_of(scheme, batch=1)
        with jax.enable_x64(True):
            walker, walks = Walker(name, rules, config), walks_of(rules)
            _, scratch = walker.map_each(walker.sample_several, walks.draws)
        values = walker.maps.values(sampling_reference.counterfactual(rules))
        close(walks.shares @ scratch.pending, values[: walker.maps.entries])
        assert np.ptp(scratch.pending, axis=0).max() > 0.1
        for i in range(0, len(walks.shares), 1 + len(walks.shares) // 40):
            found = sampling_reference.estimate(rules, walks.followed[i], None)
            expected = walker.maps.values(found.values)
            close(scratch.pending[i], expected[: walker.maps.entries])


@pytest.mark.parametrize("scheme", ["external", "average"])
def test_walks_of_a_batch_add_up_to_the_batch(scheme):
    """Visits of different walks have different places in the list of all visits."""
    rng, size = np.random.default_rng(3), 7
    rules = rules_of("kuhn", scheme, 1)
    draws = rng.uniform(size=(sampling_reference.depths(rules.tree), size))
    shares = rng.uniform(size=size)
    with jax.enable_x64(True):
        walker = Walker("kuhn", rules, config_of(scheme, batch=size))
        several, after = jax.jit(walker.sample_several), (None, None)
        for column, share in zip(draws.T, shares, strict=True):
            after = several(jnp.asarray(column), *after, share)
    found = sampling_reference.simulate(rules, draws, np.zeros(size, bool))
    expected = sum(
        share * walker.maps.values(sampling_reference.estimate(rules, f, None).values)
        for share, f in zip(shares, found, strict=True)
    )
    close(np.asarray(after[1].pending), expected[: walker.maps.entries])


WALKS = [("kuhn", "outcome", "none", False), ("kuhn", "outcome", "none", True)]
WALKS += [("kuhn", "balanced", "expected", True)]
WALKS += [
    pytest.param("goofspiel3", *row, marks=pytest.mark.slow)
    for row in (("outcome", "average", True), ("balanced", "expected", False))
]


@pytest.mark.parametrize(("name", "scheme", "baseline", "targeted"), WALKS)
def test_walks_that_follow_one_action_are_unbiased(name, scheme, baseline, targeted):
    """Walks produce regrets: values minus the strategy's expected value."""
    for player in PLAYERS:
        rules = rules_of(name, scheme, player, targeted)
        config = config_of(scheme, baseline=baseline, delta=DELTA, batch=1)
        with jax.enable_x64(True):
            walker, walks = Walker(name, rules, config), walks_of(rules)

            def one(draws, aimed, walker=walker):
                given = walker.given._replace(draws=draws[:-1])
                if walker.flat.target is not None:
                    given = given._replace(targeted=aimed)
                found = walk.outcome(
                    *(given, walker.baseline(), walker.scratch, walker.config)
                )
                return found[1].pending, found[2]

            pending, roots = walker.map_each(one, walks.draws, walks.targeted)
        expected = sampling_reference.counterfactual(rules)
        close(walks.shares @ pending, regrets(walker, expected))
        close(walks.shares @ roots, reference.value_at(rules.tree, rules.policy))
        for i in range(0, len(walks.shares), 1 + len(walks.shares) // 40):
            found = sampling_reference.estimate(
                *(rules, walks.followed[i], walker.maps.guesses)
            )
            close(pending[i], regrets(walker, found.values))
            close(roots[i], found.at[0])
            if baseline == "none":
                textbook = sampling_reference.textbook_outcome(rules, walks.followed[i])
                close(pending[i], regrets(walker, textbook))


def regrets(walker, values):
    """Return values of actions minus the strategy's expected value, float [T]."""
    maps, strategy = walker.maps, np.asarray(walker.given.strategy)
    table, flat = maps.values(values)[: maps.entries].copy(), walker.flat
    for point in np.flatnonzero(flat.code % 4 == maps.rules.player):
        begin = flat.first[point]
        rows = slice(begin, begin + flat.code[point] // 4)
        table[rows] -= strategy[rows] @ table[rows]
    return table


def test_draws_of_visits_are_fine_grained_in_single_precision():
    """A rare action has the right frequency at all places of a large batch."""
    size, rare = 1 << 16, 1e-3
    draw = np.random.default_rng(5).uniform(size=size).astype(np.float32)
    places = np.arange(size, dtype=np.int32) + (1 << 20)
    with jax.enable_x64(False):
        shifted = np.asarray(branching_walk._shifted(draw, places))
    assert ((shifted >= 0) & (shifted < 1)).all()
    # Standard error of the share: sqrt(rare / size) is 1.2e-4; four of them.
    assert (shifted < rare).mean() == pytest.approx(rare, abs=5e-4)
