"""Value networks: what holds of any weights, public states that are alike, the file."""

import dataclasses
import functools
import types

import jax
import numpy as np
import pytest

from spiel_cr.common import memory, storage
from spiel_cr.common.errors import DamagedFileError, GameTooLargeError
from spiel_cr.games.tree import compiler
from spiel_cr.games.tree.fingerprints import fingerprint
from spiel_cr.resolving import compiled_subgames, continual, resolver
from spiel_cr.resolving.decomposition import decompose
from spiel_cr.resolving.leaves import ExactValues, features, set_network
from spiel_cr.resolving.leaves.features import alike, infoset_features, tell_apart
from spiel_cr.resolving.leaves.leaf_strings import parse_leaf
from spiel_cr.resolving.leaves.network_values import (
    NetworkValues,
    known_states,
    load_network,
)
from spiel_cr.resolving.lookahead import public_states_of, warn_if_never_cut
from spiel_cr.resolving.resolving_config import ResolvingConfig
from spiel_cr.solvers import footprint
from spiel_cr.solvers.laying_out import Layout
from tests.support import games
from tests.support.forests import values_of

LIARS = "liars_dice(numdice=1,dice_sides=3)"


@functools.cache
def compiled(name):
    if name == "liars3":
        return compiler.compile_game(LIARS, observations=True)
    return games.compiled(name)


def layer_states(name, player, layer=2):
    d = decompose(compiled(name), player)
    states = public_states_of(d)
    mine = states.root_state[d.layer[states.history] == layer]
    return states.select(states.numbers[np.unique(mine)])


def untrained(name, states, *, seed=0, pairs=0):
    """A network of random weights that knows some public states."""
    tree = compiled(name)
    known = known_states([(tree, states)])
    architecture = set_network.Architecture(known.rows.shape[1], 16, 1, pairs)
    return NetworkValues(
        architecture,
        set_network.initial(architecture, seed),
        known,
        scale=float(np.abs(tree.histories.utility).max()),
        game=str(tree.game),
        seal=fingerprint(tree),
        cut="1 moves",
    )


def said_of(known, tree, states):
    return known.features(states, known.find(tree, states))


def random_ranges(states, seed=0, zeros=False):
    rng = np.random.default_rng(seed)
    ranges = [rng.uniform(size=len(infosets)) for infosets in states.infosets]
    if zeros:
        ranges = [r * (rng.uniform(size=len(r)) < 0.5) for r in ranges]
    return ranges[0], ranges[1]


@pytest.mark.parametrize(
    ("name", "pairs"),
    [
        pytest.param("kuhn", 0, marks=pytest.mark.slow),
        ("kuhn", 3),
        pytest.param("ii_goofspiel4", 0, marks=pytest.mark.slow),
        pytest.param("ii_goofspiel4", 3, marks=pytest.mark.slow),
    ],
)
def test_any_weights_give_zero_sum_values_that_scale_with_the_other_range(name, pairs):
    states = layer_states(name, 0)
    network = untrained(name, states, pairs=pairs)
    below = network.lay_out(compiled(name), states)
    ranges = random_ranges(states)
    first, second = values_of(below, ranges)
    gains = [
        np.bincount(states.state[p], ranges[p] * own)
        for p, own in enumerate((first, second))
    ]
    assert np.abs(gains[0]).min() > 1e-6
    # Sums in single precision of values relative to the largest utility.
    mass = np.bincount(
        states.root_state,
        states.chance * ranges[0][states.place[0]] * ranges[1][states.place[1]],
    )
    assert np.abs(gains[0] + gains[1]).max() < 1e-5 * network.scale * mass.max()
    scaled = values_of(below, (ranges[0] * 1e-30, ranges[1] * 3))
    assert scaled[0] == pytest.approx(3 * first, rel=1e-5, abs=1e-9)
    assert scaled[1] == pytest.approx(1e-30 * second, rel=1e-5, abs=1e-39)
    largest = max(np.abs(first).max(), np.abs(second).max())
    ones = tuple(np.ones_like(own) for own in ranges)
    assert max(np.abs(own).max() for own in values_of(below, ones)) <= below.largest()
    halved = values_of(below.rescaled(1), ranges)
    assert np.abs(halved[0]).max() == pytest.approx(np.abs(first).max() / 2, rel=1e-6)
    assert largest > 0


@pytest.mark.slow  # compiles for seconds
def test_values_are_zero_where_the_other_never_is_and_finite_where_oneself_is_not():
    states = layer_states("leduc7", 1)
    below = untrained("leduc7", states).lay_out(compiled("leduc7"), states)
    none = np.zeros(len(states.infosets[0]))
    ones = np.ones(len(states.infosets[1]))
    first, second = values_of(below, (none, ones))
    assert np.isfinite(first).all() and (first != 0).all()
    assert (second == 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("pairs", [0, 3])
def test_the_order_of_infosets_does_not_matter(pairs):
    states = layer_states("kuhn", 0)
    network = untrained("kuhn", states, pairs=pairs)
    rng = np.random.default_rng(1)
    # Infosets change places within their states.
    order = [np.lexsort((rng.random(len(own)), own)) for own in states.state]
    back = [np.argsort(own) for own in order]
    said = said_of(network.known, compiled("kuhn"), states)
    assert any((np.diff(own) < 0).any() for own in order)
    shuffled = dataclasses.replace(
        states,
        infosets=tuple(
            own[new] for own, new in zip(states.infosets, order, strict=True)
        ),
        place=np.stack([back[p][states.place[p]] for p in range(2)]).astype(np.int32),
    )
    ranges = random_ranges(states, zeros=True)
    found = []
    for some, rows, given in (
        (states, said, ranges),
        (
            shuffled,
            [said[p][order[p]] for p in range(2)],
            [ranges[p][order[p]] for p in range(2)],
        ),
    ):
        places = set_network.find_places(some)
        embedded = tuple(
            set_network.embed(network.parameters, rows[p], p) for p in range(2)
        )
        own = set_network.both_values(
            network.parameters, embedded, places, tuple(given)
        )
        found.append([np.asarray(q * u) for q, u in own])
    for p in range(2):
        assert found[0][p][order[p]] == pytest.approx(found[1][p], rel=1e-4, abs=1e-6)


@pytest.mark.slow  # compiles for seconds
def test_padding_changes_no_value():
    states = layer_states("ii_goofspiel4", 0)
    network = untrained("ii_goofspiel4", states)
    tree = compiled("ii_goofspiel4")
    selections = [states.select([number]) for number in states.numbers]
    alone = network.lay_out_alike(tree, states, selections)
    shapes = {str(jax.tree.map(np.shape, below)) for below in alone}
    assert len(selections) > 1 and len(shapes) == 1
    ranges = random_ranges(states)
    both = values_of(network.lay_out(tree, states), ranges)
    for k, below in enumerate(alone):
        mine = [states.state[p] == k for p in range(2)]
        given = []
        for p in range(2):
            given.append(np.zeros(len(below.embedded[p].value)))
            given[p][: mine[p].sum()] = ranges[p][mine[p]]
        padded = values_of(below, tuple(given))
        for p in range(2):
            assert np.isfinite(padded[p]).all()
            assert padded[p][: mine[p].sum()] == pytest.approx(
                both[p][mine[p]], rel=1e-4, abs=1e-7
            )


@pytest.mark.slow  # compiles for seconds
def test_states_that_are_alike_have_the_same_exact_values():
    tree, states = compiled("liars3"), layer_states("liars3", 0)
    keys = [bytes(key) for key in alike(tree, states)]
    assert 1 < len(set(keys)) < len(keys)
    below = ExactValues(20).lay_out(tree, states)
    rng = np.random.default_rng(0)
    one = [rng.uniform(size=3) for _ in range(2)]
    ranges = tuple(np.tile(own, len(states)) for own in one)
    values = values_of(below, ranges)
    for p in range(2):
        rows = values[p].reshape(len(states), 3)
        for key in set(keys):
            mine = rows[[k for k, other in enumerate(keys) if other == key]]
            assert np.abs(mine - mine[0]).max() < 1e-12
    different = [values[0][3 * keys.index(key)] for key in set(keys)]
    assert len(set(np.round(different, 9))) > 1


@pytest.mark.parametrize("strings", [False, True])
def test_features_tell_the_infosets_of_a_state_apart(strings):
    for name in ("kuhn", "ii_goofspiel4"):
        states = layer_states(name, 0)
        rows = infoset_features(compiled(name), states, strings=strings)
        assert tell_apart(rows, states)
        doubled = tuple(np.zeros_like(own) for own in rows)
        assert not tell_apart(doubled, states)


def test_without_tensors_strings_are_read(monkeypatch):
    """Also where tensors have one size for each player or part, but not the same."""
    states = layer_states("kuhn", 0)
    rows = infoset_features(compiled("kuhn"), states, strings=True)
    for size_of in (lambda player: 0, lambda player: 3 + player):

        def tensor(state, player, size_of=size_of):
            row = np.zeros(size_of(player), np.float32)
            row[:1] = hash(state.information_state_string(player)) % 2**16
            return row

        monkeypatch.setattr(features, "_tensor", tensor)
        known = known_states([(compiled("kuhn"), states)])
        for p, own in enumerate(said_of(known, compiled("kuhn"), states)):
            assert np.array_equal(own, rows[p])


def test_a_game_without_tensors_is_not_asked_for_them(monkeypatch):
    """OpenSpiel would write to stderr at each infoset."""
    tree, states = compiled("kuhn"), layer_states("kuhn", 0)
    kind = types.SimpleNamespace(provides_information_state_tensor=False)
    asked = []
    monkeypatch.setattr(features, "_tensor", lambda *_: asked.append(_))
    game = types.SimpleNamespace(
        get_type=lambda: kind, num_distinct_actions=tree.game.num_distinct_actions
    )
    blind = dataclasses.replace(tree, game=game)
    with pytest.raises(ValueError, match="no information_state_tensor.*string"):
        infoset_features(blind, states, strings=False)
    assert not asked


def test_a_state_that_was_not_met_in_training_is_refused():
    name = "ii_goofspiel4"
    network = untrained(name, layer_states(name, 0, layer=2))
    deeper = layer_states(name, 0, layer=3)
    with pytest.raises(ValueError, match="lookaheads of 1 moves.*not met.*this depth"):
        network.lay_out(compiled(name), deeper)


@pytest.mark.parametrize("player", [None, 0])
def test_a_network_of_another_game_is_refused_before_the_game_is_cut(
    player, monkeypatch
):
    network = untrained("kuhn", layer_states("kuhn", 0))
    monkeypatch.setattr(continual, "decompose", None)
    monkeypatch.setattr(compiled_subgames, "decompose", None)
    tree = compiled("ii_goofspiel4")
    with pytest.raises(ValueError, match="another game; train one"):
        if player is None:
            continual.resolve(
                tree, ResolvingConfig(iterations=2, depth=50, leaf=network)
            )
        else:
            config = ResolvingConfig(iterations=2, depth=50, leaf=network)
            resolver.Resolver(tree, player, config)


def test_a_depth_that_cuts_nothing_is_warned_of(caplog):
    roles = [decompose(compiled("kuhn"), player) for player in range(2)]
    warn_if_never_cut(roles, 1, "moves")
    assert not caplog.messages
    warn_if_never_cut(roles, 50, "moves")
    (said,) = caplog.messages
    assert said.startswith("depth=50 (moves): every lookahead reaches the end of kuhn")


@pytest.mark.parametrize("exact", [True, False])
def test_the_memory_limit_counts_what_stands_at_the_cut(exact, monkeypatch):
    tree = compiled("kuhn")
    leaf = ExactValues(1) if exact else untrained("kuhn", layer_states("kuhn", 0))
    # A process that holds nothing else, and room for all but the leaf.
    monkeypatch.setattr(memory, "held_bytes", lambda: 0)
    limit = footprint.peak_bytes(tree) + 50e6
    with pytest.raises(
        GameTooLargeError, match="kuhn.*take a smaller depth, or a leaf"
    ):
        continual.resolve(
            tree,
            ResolvingConfig(iterations=1, depth=1, leaf=leaf),
            layout=Layout(memory_limit=limit),
        )


def test_the_file_gives_the_network_back(tmp_path):
    tree, states = compiled("kuhn"), layer_states("kuhn", 0)
    network = untrained("kuhn", states)
    path = tmp_path / "network.npz"
    network.save(path)
    loaded = parse_leaf(f"network(path={path})")
    ranges = random_ranges(states)
    ours, theirs = (
        values_of(some.lay_out(tree, states), ranges) for some in (network, loaded)
    )
    for p in range(2):
        assert np.array_equal(ours[p], theirs[p])
    with pytest.raises(ValueError, match="another game; train one"):
        loaded.lay_out(compiled("leduc7"), layer_states("leduc7", 0))


def damaged(arrays, metadata, case):
    name = "parameter_embed0"
    if case == "shape":
        arrays[name] = arrays[name][:-1]
    elif case == "type":
        arrays[name] = arrays[name].astype(np.float64)
    elif case == "nan":
        arrays[name] = np.full_like(arrays[name], np.nan)
    elif case == "missing":
        del arrays[name]
    elif case == "rows":
        arrays["known_row0"] = arrays["known_row0"] + 10_000
    elif case == "bounds":
        arrays["known_bounds1"] = arrays["known_bounds1"][::-1].copy()
    elif case == "architecture":
        metadata["architecture"] = {"features": "many"}
    elif case == "scale":
        metadata["scale"] = -1.0
    elif case == "kind":
        metadata["kind"] = "policy"


CASES = ("shape", "type", "nan", "missing", "rows", "bounds", "architecture")


@pytest.mark.parametrize("case", [*CASES, "scale", "kind"])
def test_files_that_do_not_fit_are_refused(tmp_path, case):
    network = untrained("kuhn", layer_states("kuhn", 0))
    path = tmp_path / "network.npz"
    network.save(path)
    arrays, metadata = storage.load(path)
    damaged(arrays, metadata, case)
    storage.save(path, arrays, metadata)
    with pytest.raises(DamagedFileError, match=f"{path}.*(give|train)"):
        load_network(path)
