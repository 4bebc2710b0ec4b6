"""Damaged files are refused by name, or read as what they were; caches recover."""

import numpy as np
import pytest

import spiel_cr
from spiel_cr.common import storage
from spiel_cr.games.opening import vectorised
from spiel_cr.games.tree import cache
from spiel_cr.games.tree.compiler import compile_game
from spiel_cr.policies.result import Held
from spiel_cr.solvers import checkpoint
from spiel_cr.solvers.algorithms import find
from spiel_cr.solvers.cfr import cfr
from spiel_cr.solvers.mccfr import mccfr
from spiel_cr.solvers.tabular_run import TabularRun
from tests.fuzz import damaged_files
from tests.fuzz.damaged_files import Kind
from tests.games.tree.test_vectorised import same
from tests.support import games
from tests.support.kuhn_signals import kuhn


def policy(folder):
    path, tree = folder / "policy", games.compiled("kuhn")
    spiel_cr.solve(tree, "lp").save(path)
    yield Kind(
        "policy", path.read_bytes(), lambda path: spiel_cr.load_policy(path, tree)
    )


def signal_policy(folder):
    """A policy of a signal game, and its checkpoint."""
    path, state = folder / "signal policy", folder / "signal checkpoint"
    result = spiel_cr.solve(kuhn(), "cfr+", 3, checkpoint=state, dtype="float32")
    result.save(path)
    yield Kind(
        path.name,
        path.read_bytes(),
        lambda path: spiel_cr.load_policy(path, kuhn()),
    )
    yield Kind(
        state.name,
        state.read_bytes(),
        lambda path: spiel_cr.solve(
            kuhn(), "cfr+", 3, checkpoint=path, dtype="float32"
        ),
    )


def sampled_policy(folder):
    """A policy, and the checkpoint, of a game that was not compiled."""
    how = spiel_cr.Layout("stepped", memory_limit="3GB")
    path, state = folder / "sampled policy", folder / "sampled checkpoint"
    algorithm = "os-mccfr(batch=64)"
    result = spiel_cr.solve("kuhn_poker", algorithm, 2, layout=how, checkpoint=state)
    result.save(path)
    yield Kind(path.name, path.read_bytes(), spiel_cr.load_policy)
    yield Kind(
        state.name,
        state.read_bytes(),
        lambda path: spiel_cr.solve(
            "kuhn_poker", algorithm, 2, layout=how, checkpoint=path
        ),
    )


def checkpoints(folder, sampled):
    tree = games.compiled("kuhn")
    solvers = {"cfr": cfr.make_solver(tree.form, config=find("cfr+").config)}
    if sampled:
        config = find("evr-mccfr(batch=4)").config
        solvers["mccfr"] = mccfr.make_solver(tree, config=config, seed=3)
    for name, solver in solvers.items():
        path = folder / name
        solver.run(3)

        def keeper(path, solver=solver):
            run = TabularRun(solver, Held(tree, tree.form))
            return checkpoint.Keeper(
                path, {"kind": "checkpoint", **run.identity()}, run, 60
            )

        written = keeper(path)
        written.curve.append(checkpoint.CurvePoint(3, 0.5, 0.25))
        written.write()
        yield Kind(
            name, path.read_bytes(), lambda path, keeper=keeper: keeper(path).resume()
        )


def caches(folder):
    """What is read instead of a damaged file is the game, compiled anew."""
    for string in ("kuhn_poker", "python_rock_paper_scissors"):
        game = spiel_cr.load_game(string)
        rules, plain = vectorised.of_game(game), compile_game(string)
        identity = cache.identify(game, rules)

        def read(path, game=game, rules=rules, plain=plain, identity=identity):
            tree = cache.load(path, identity, game, rules)
            if tree is None:
                cache.save(path, identity, plain, strings=rules is None)
                same(cache.load(path, identity, game, rules), plain)

        path = folder / string
        cache.save(path, identity, plain, strings=rules is None)
        yield Kind(f"cache of {string}", path.read_bytes(), read, recovers=True)


def kinds_of(folder, sampled):
    yield from policy(folder)
    yield from signal_policy(folder)
    yield from sampled_policy(folder)
    yield from checkpoints(folder, sampled)
    yield from caches(folder)


def test_a_few(tmp_path):
    kinds = list(kinds_of(tmp_path, False))
    found = damaged_files.counts(kinds, tmp_path / "damaged", 200)
    assert sum(found.values()) == 200
    assert sum(found[name] for name in found if name.startswith("accident")) > 120
    assert sum(found[name] for name in found if "refused" in name) > 60


@pytest.mark.slow
def test_many(tmp_path):
    kinds = list(kinds_of(tmp_path, True))
    found = damaged_files.counts(kinds, tmp_path / "damaged", 20_000)
    print(found)
    assert sum(found.values()) == 20_000


def test_what_was_not_damaged_is_read(tmp_path):
    """The fuzzer's own archives, so that its forgeries fail for what they forge."""
    path = tmp_path / "file"
    storage.save(path, {"numbers": np.arange(6.0).reshape(2, 3)}, {"kind": "some"})
    content = path.read_bytes()
    again = damaged_files._archive(damaged_files._members(content), b"")
    for archive in (again, damaged_files._unsealed(content)):
        path.write_bytes(damaged_files._sealed(archive))
        arrays, metadata = storage.load(path)
        np.testing.assert_array_equal(arrays["numbers"], np.arange(6.0).reshape(2, 3))
        assert metadata == {"kind": "some"}
