"""Solvers of the `cfr` benchmark: spiel_cr, OpenSpiel, LiteEFG and plain C.

Adapters of spiel_cr and OpenSpiel are those of `spiel_cr.eval.adapters`; this module
adds the others. Every solver runs in the form that its authors ship for speed: peers
get OpenSpiel's cached tree for Python games, and JAX functions are compiled before the
clock starts.
"""

import os
import tempfile
from typing import NamedTuple
from unittest import mock

import numpy as np

from benchmarks.c_reference import CReference
from spiel_cr.eval.adapters import protocol, registry
from spiel_cr.eval.common.game_instance import GameInstance
from spiel_cr.games.sequence_form import forced
from spiel_cr.solvers import algorithms
from spiel_cr.solvers.cfr import cfr


class PeerSolver(NamedTuple):
    """A solver of the benchmark.

    Attributes:
      entry: Algorithm and its adapter.
      family: "spiel_cr", "openspiel" (bundled with it), "c" (the reference) or "peer".
      dtype: Arithmetic.
      imports: Modules that are imported before the clock starts.
    """

    entry: protocol.Entry
    family: str
    dtype: str = "float64"
    imports: tuple[str, ...] = ()

    def facts(self) -> dict[str, str | bool]:
        """Return the fields of the solver that its rows contain."""
        return {
            "title": self.entry.title,
            "family": self.family,
            "dtype": self.dtype,
            "iterative": self.entry.mode == "iterates",
        }


def _lite_efg(instance: GameInstance, seed: int) -> protocol.SolverAdapter:
    """Create LiteEFG's CFR+ with linear averaging, on one thread (its fastest)."""
    import LiteEFG
    from LiteEFG.baselines import CFRplus

    # LiteEFG writes the game's tree to a file below the home directory, and reads it.
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.dict(os.environ, HOME=folder),
    ):
        env = LiteEFG.OpenSpielEnv(
            instance.fast, traverse_type="Enumerate", regenerate=True
        )
    graph = CFRplus.graph()
    env.set_graph(graph)

    def step() -> None:
        graph.update_graph(env)
        env.update_strategy(graph.current_strategy())

    def policy() -> protocol.Policy:
        return env.get_strategy(graph.current_strategy(), "linear-avg-iterate")[0]

    return protocol.SteppingAdapter(instance, seed, step, policy)


def _c_reference(instance: GameInstance, seed: int) -> protocol.SolverAdapter:
    return protocol.IteratingAdapter(CReference(instance.tree.sequence_form))


def _bundled(name: str, module: str, dtype: str = "float64") -> PeerSolver:
    """Return a solver of OpenSpiel that imports a module of its Python package."""
    imports = (f"open_spiel.python.{module}",)
    return PeerSolver(registry.find(name), "openspiel", dtype, imports)


_PEERS = {
    "c": PeerSolver(
        protocol.Entry("c", "C, one thread: CFR+", False, "", _c_reference), "c"
    ),
    "openspiel-cpp": PeerSolver(registry.find("openspiel-cfr+"), "openspiel"),
    "openspiel-python": _bundled("openspiel-cfr+-python", "algorithms.cfr"),
    "openspiel-jax": _bundled("openspiel-cfr+-jax", "jax.cfr.jax_cfr", "float32"),
    "liteefg": PeerSolver(
        protocol.Entry(
            "liteefg", "LiteEFG CFR+", False, "", _lite_efg, modules=("LiteEFG",)
        ),
        "peer",
        imports=("LiteEFG", "LiteEFG.baselines.CFRplus"),
    ),
}


def find(name: str) -> PeerSolver:
    """Return the solver with a name.

    Args:
      name: A peer, an algorithm of `spiel-cr compare`, or a full-width algorithm of
        spiel_cr followed by "/float32" for single precision.

    Raises:
      ValueError: If the algorithm does not exist.
    """
    if name in _PEERS:
        return _PEERS[name]
    algorithm, _, dtype = name.partition("/")
    entry = registry.find(algorithm)
    if not entry.is_spiel_cr:
        return PeerSolver(entry, "openspiel")
    if not dtype:
        return PeerSolver(entry, "spiel_cr", "float32" if entry.samples else "float64")
    config = algorithms.find(algorithm, families=(algorithms.CFR,)).config

    def make(instance: GameInstance, seed: int) -> protocol.SolverAdapter:
        form = forced.without(instance.tree.sequence_form)
        return protocol.IteratingAdapter(
            cfr.make_solver(form, config=config, dtype=np.dtype(dtype))
        )

    return PeerSolver(entry._replace(name=name, make=make), "spiel_cr", dtype)
