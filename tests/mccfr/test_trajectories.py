"""Sampled trajectories: unbiased by exact enumeration, and one by one by a recursion.

All in double precision. Sums have at most some thousand terms of size 100 or less, so
1e-10 is far above rounding; a wrong probability anywhere shows as 1e-3 or more.
"""

import dataclasses
import functools
import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from spiel_cr.cfr import config as algorithm
from spiel_cr.compilation.compiler import compile_game
from spiel_cr.compilation.tree import CompiledGame
from spiel_cr.mccfr import baselines, descent, sample_tree, trajectories
from tests.support import games, reference, sampling_reference

TOLERANCE = 1e-10
PLAYERS = (0, 1)
STRINGS = {"kuhn": "kuhn_poker", "goofspiel3": games.goofspiel(3, "descending")}
LEARNED = ("average", "history", "expected")
BASELINES = ("none", *LEARNED, "oracle")
SCHEMES = {
    "outcome": {"scheme": "outcome", "epsilon": 0.3},
    "balanced": {"scheme": "outcome", "epsilon": 0.8, "explore": "balanced"},
    "external": {"scheme": "external"},
    "average": {"scheme": "average", "epsilon": 0.1, "threshold": 1.5, "bonus": 0.5},
}
DELTA = 0.7
# Trajectories that are sampled at a time, so that every call has the same shapes.
CHUNK = 256


class Setup(NamedTuple):
    """A game with random strategies, and where things are in both ways to hold it.

    Attributes:
      compiled: the game.
      tree: the same for the reference.
      policy: random strategies.
      past: random sums of past strategies.
      guesses: random baselines by history of `tree`.
      shared: the same, equal at all histories of an infoset.
      number: history of `compiled` of each history of `tree`.
    """

    compiled: CompiledGame
    tree: reference.Tree
    policy: reference.Policy
    past: reference.Policy
    guesses: list[float]
    shared: list[float]
    number: list[int]


@functools.cache
def setup(name: str) -> Setup:
    """On goofspiel every third infoset has an action that is never played."""
    rng = np.random.default_rng(20)
    compiled = compile_game(STRINGS[name])
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
    """Two histories in the middle and a terminal one."""
    tree = setup(name).tree
    deep = [i for i, node in enumerate(tree.nodes) if len(node.path) == 3]
    over = [i for i, node in enumerate(tree.nodes) if not node.children]
    return frozenset((deep[1], deep[-2], over[len(over) // 2]))


def config_of(scheme: str, **options) -> algorithm.MCCFRConfig:
    base = algorithm.SAMPLED_PRESETS["os-mccfr"]
    return dataclasses.replace(base, **(SCHEMES[scheme] | options))


@functools.cache
def rules_of(
    name: str,
    scheme: str,
    player: int,
    targeted: bool = False,
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
    """All trajectories: float [L, D], bool [L], float [L], and what they visit."""

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
    """bool [N] for `sample_tree.build`; None for no history."""
    mask = np.zeros(len(game.compiled.histories), bool)
    mask[[game.number[i] for i in nodes]] = True
    return mask if nodes else None


class Sampler:
    """`trajectories.sample` with a reference's strategies and baselines.

    Nothing is jitted: operations are compiled once for all schemes.
    """

    def __init__(self, name, rules, config):
        self.game, self.rules, self.config = setup(name), rules, config
        mask = marked(self.game, rules.target)
        self.host, self.plan = sample_tree.build(self.game.compiled, target=mask)
        self.width = max(shape.width for shape in self.plan)
        self.entries = len(self.host.row_of)
        start = self.game.compiled.histories.level_start
        depth = np.searchsorted(start, self.game.number, side="right") - 1
        self.places = [
            (int(d), int(h - start[d]))
            for h, d in zip(self.game.number, depth, strict=True)
        ]
        self.arrays = jax.device_put(self.host)
        # The empty sequence is always played.
        strategy = self.by_entry(rules.strategy).at[0].set(1)
        past = {p: rules.cumulative for p in (rules.player,)}
        self.tables = descent.Tables(
            strategy=strategy,
            cumulative=self.by_entry(
                lambda i: past.get(self.game.tree.nodes[i].player, {}).get(
                    self.game.tree.nodes[i].key, {}
                )
            ),
            baseline=self.baseline(strategy),
            known=None,
        )

    def row(self, index: int) -> int:
        depth, place = self.places[index]
        return int(self.host.levels[depth].row[place])

    def child(self, index: int) -> tuple[int, int]:
        """Level above, and index in the level of a history."""
        depth, place = self.places[index]
        return depth - 1, place

    def by_entry(self, numbers) -> jax.Array:
        """float [T + A] of numbers by history and action."""
        table = np.zeros(self.entries + self.width)
        for index in range(len(self.game.tree.nodes)):
            for a, number in enumerate(numbers(index).values()):
                table[self.row(index) + a] = number
        return jnp.asarray(table)

    def baseline(self, strategy):
        kind = self.config.baseline
        if kind == "oracle":
            return baselines.refresh(self.arrays, self.plan, strategy)
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
        if self.config.baseline == "oracle":
            nodes = range(len(self.game.tree.nodes))
            return [
                reference.value_at(self.game.tree, self.game.policy, i) for i in nodes
            ]
        kinds = {"none": None, "average": self.game.shared}
        return kinds.get(self.config.baseline, self.game.guesses)

    def each(self, walks: Walks) -> trajectories.Sample:
        """Every trajectory in a batch of its own; numpy, walks first."""

        def one(draws, targeted):
            aimed = targeted[None] if self.rules.delta else None
            return self.together(draws[:, None], aimed, jnp.ones(1))

        parts = []
        for begin in range(0, len(walks.draws), CHUNK):
            here = slice(begin, begin + CHUNK)
            draws, targeted = walks.draws[here], walks.targeted[here]
            missing = CHUNK - len(draws)
            draws = np.pad(draws, ((0, missing), (0, 0)))
            aimed = np.pad(targeted, (0, missing))
            sample = jax.vmap(one)(jnp.asarray(draws), jnp.asarray(aimed))
            kept = CHUNK - missing
            parts.append([np.asarray(x)[:kept] for x in jax.tree.leaves(sample)])
            structure = jax.tree.structure(sample)
        joined = [np.concatenate(leaves) for leaves in zip(*parts, strict=True)]
        return jax.tree.unflatten(structure, joined)

    def together(self, draws, targeted, shares) -> trajectories.Sample:
        return trajectories.sample(
            *(self.arrays, self.tables, draws, targeted, shares),
            plan=self.plan,
            player=self.rules.player,
            config=self.config,
        )

    def values(self, by_action: dict[tuple, float]) -> np.ndarray:
        """float [T + A] of the reference's values."""
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
    """Trajectory by trajectory, every so many of them."""
    for i in range(0, len(walks.shares), 1 + len(walks.shares) // 40):
        expected = sampling_reference.estimate(
            sampler.rules, walks.followed[i], sampler.guesses
        )
        close(sample.values[i], sampler.values(expected.values))
        close(sample.roots[i], expected.at[0])


# What is always tried; the rest is slow. One followed action (outcome sampling) is
# tried with and without targets, several (external) with them, and both layouts of
# baselines, by entry ("average") and by history (the others).
QUICK = {
    "kuhn": {
        ("outcome", "none", False),
        ("outcome", "average", True),
        ("external", "history", True),
        ("balanced", "expected", True),
    },
    "goofspiel3": {("outcome", "average", True)},
}


def rows():
    for row in itertools.product(STRINGS, SCHEMES, BASELINES, (False, True)):
        quick = row[1:] in QUICK[row[0]]
        yield pytest.param(*row, marks=() if quick else pytest.mark.slow)


@pytest.mark.parametrize(("name", "scheme", "baseline", "targeted"), list(rows()))
def test_unbiased(name, scheme, baseline, targeted):
    """Every way that a trajectory can take, times its probability; both players."""
    for player in PLAYERS:
        rules = rules_of(name, scheme, player, targeted)
        averaging = "sampled" if targeted else "exact"
        config = config_of(
            scheme, baseline=baseline, delta=DELTA, averaging=averaging, batch=1
        )
        with jax.enable_x64(True):
            sampler, walks = Sampler(name, rules, config), walks_of(rules)
            sample = sampler.each(walks)
        check_unbiased(sampler, walks, sample)
        check_each(sampler, walks, sample)
        spread = np.ptp(sample.roots)
        if baseline == "oracle":
            assert spread < TOLERANCE
        else:
            assert spread > 0.1
        if targeted:
            check_visits(sampler, walks, sample)


def check_visits(sampler, walks, sample):
    """Each history of an infoset that can be visited adds the own reach, on average.

    As in OpenSpiel's outcome sampling; the others' zeros make it less than the number
    of histories.
    """
    tree, rules = sampler.game.tree, sampler.rules
    expected = np.zeros(sampler.entries + sampler.width)
    for key, histories in tree.infosets.items():
        if key[0] == rules.player:
            own = tree.own_reach(histories[0], rules.player, rules.policy)
            can = [
                sampling_reference.visit_probability(rules, i) > 0 for i in histories
            ]
            expected[sampler.row(histories[0])] = own * sum(can)
    close(walks.shares @ sample.visits, expected)


@pytest.mark.parametrize("targeted", [False, True])
@pytest.mark.parametrize("name", STRINGS)
def test_outcome_sampling_is_the_textbooks(name, targeted):
    """Lanctot et al. 2009: one utility over one probability."""
    for player in PLAYERS:
        rules = rules_of(name, "outcome", player, targeted)
        config = config_of("outcome", delta=DELTA, batch=1)
        with jax.enable_x64(True):
            sampler, walks = Sampler(name, rules, config), walks_of(rules)
            sample = sampler.each(walks)
        for followed, values in zip(walks.followed, sample.values, strict=True):
            expected = sampling_reference.textbook_outcome(rules, followed)
            close(values, sampler.values(expected))


@pytest.mark.parametrize(
    ("scheme", "targeted"),
    [
        pytest.param("outcome", True, marks=pytest.mark.slow),
        pytest.param("external", False, marks=pytest.mark.slow),
        pytest.param("average", True, marks=pytest.mark.slow),
    ],
)
def test_a_batch_is_the_sum_of_its_trajectories(scheme, targeted):
    """Trajectories that split share the places of the next depth with all others."""
    rng = np.random.default_rng(3)
    size = 7
    rules = rules_of("kuhn", scheme, 1, targeted)
    draws = rng.uniform(size=(sampling_reference.depths(rules.tree), size))
    aimed = rng.uniform(size=size) < 0.5 if targeted else np.zeros(size, bool)
    shares = rng.uniform(size=size)
    config = config_of(scheme, baseline="history", decay=0.3, delta=DELTA, batch=size)
    with jax.enable_x64(True):
        sampler = Sampler("kuhn", rules, config)
        sample = sampler.together(
            jnp.asarray(draws), jnp.asarray(aimed) if targeted else None, shares
        )
    found = sampling_reference.simulate(rules, draws, aimed)
    estimates = [sampling_reference.estimate(rules, f, sampler.guesses) for f in found]
    expected = sum(
        share * sampler.values(e.values)
        for share, e in zip(shares, estimates, strict=True)
    )
    close(sample.values, expected)
    close(sample.roots, [e.at[0] for e in estimates])
    # As if the mean came as often as the history was visited.
    repeated = 0
    for i in range(1, len(rules.tree.nodes)):
        seen = [e.at[i] for e in estimates if i in e.at]
        old = sampler.guesses[i]
        mean = np.mean(seen) if seen else old
        above, place = sampler.child(i)
        new = old + (1 - 0.7 ** len(seen)) * (mean - old)
        close(sample.baseline[above][place], new)
        repeated += len(seen) > 1
    assert repeated


def learned(sampler, followed) -> list[float]:
    """The baselines at all histories after one trajectory."""
    rules, kind, decay = sampler.rules, sampler.config.baseline, sampler.config.decay
    nodes, old = rules.tree.nodes, sampler.guesses
    new, at = list(old), sampling_reference.estimate(rules, followed, old).at
    if kind == "history":
        for i in followed - {0}:
            new[i] += decay * (at[i] - old[i])
    elif kind == "average":
        owner = {c: (i, a) for i, n in enumerate(nodes) for a, c in n.children.items()}
        alike: dict[tuple, list[int]] = {}
        for child, (above, action) in owner.items():
            alike.setdefault((nodes[above].key or above, action), []).append(child)
        for children in alike.values():
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


@pytest.mark.parametrize(
    ("name", "scheme", "kind"),
    [
        *[("kuhn", "outcome", kind) for kind in LEARNED],
        *[("goofspiel3", "outcome", kind) for kind in LEARNED],
        # The operations of these compile for long.
        pytest.param("kuhn", "external", "expected", marks=pytest.mark.slow),
        pytest.param("kuhn", "external", "average", marks=pytest.mark.slow),
        pytest.param("kuhn", "external", "history", marks=pytest.mark.slow),
    ],
)
def test_baselines_learn(name, scheme, kind):
    for player in PLAYERS:
        rules = rules_of(name, scheme, player)
        config = config_of(scheme, baseline=kind, decay=0.3, batch=1)
        with jax.enable_x64(True):
            sampler, walks = Sampler(name, rules, config), walks_of(rules)
            sample = sampler.each(walks)
        nodes = rules.tree.nodes
        for walk in range(0, len(walks.shares), 3):
            expected = learned(sampler, walks.followed[walk])
            for index, node in enumerate(nodes):
                for a, child in enumerate(node.children.values()):
                    if kind == "average":
                        found = sample.baseline[walk, sampler.row(index) + a]
                    else:
                        above, place = sampler.child(child)
                        found = sample.baseline[above][walk, place]
                    assert found == pytest.approx(expected[child], abs=TOLERANCE), (
                        f"walk {walk}: after {node.path}, action {a}"
                    )


@pytest.mark.slow
def test_draws_stay_fine_in_single_precision():
    """A rare action comes as often as it should, at every place of a large batch.

    The two histories of the opponent get the same independent draws, shifted by place;
    the tolerance is four standard errors.
    """
    size, rare = 1 << 16, 1e-3
    game = setup("kuhn")
    rules = rules_of("kuhn", "external", 0)
    sampler = Sampler("kuhn", rules, config_of("external"))
    depth = 3
    strategy = np.array(sampler.tables.strategy)
    assert strategy[0] == 1
    for i, node in enumerate(game.tree.nodes):
        if node.player == 1:
            strategy[sampler.row(i)] = rare
            strategy[sampler.row(i) + 1] = 1 - rare
    draws = np.random.default_rng(5).uniform(size=(len(sampler.plan), size))
    with jax.enable_x64(False):
        host = jax.tree.map(
            lambda x: x.astype(np.float32) if x.dtype == float else x, sampler.host
        )
        tables = descent.Tables(jnp.float32(strategy), None, None, None)
        config = config_of("external", batch=size)
        batch = descent.Batch(
            *(jax.device_put(host), tables, None, sampler.plan, 0, config, size)
        )
        front = descent.top(batch, jnp.full(size, 1 / size, jnp.float32))
        for d in range(depth + 1):
            visit, _, front = descent.descend(batch, None, front, jnp.float32(draws), d)
    chosen = np.asarray(visit.chosen)
    assert len(chosen) == 2 * size
    # Independent draws: standard error of the share sqrt(rare / (2 size)) is 9e-5, at
    # most sqrt(2) times as much where pairs agree; four of them.
    share = (chosen == 0).mean()
    assert share == pytest.approx(rare, abs=5e-4)
