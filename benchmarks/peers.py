"""The solvers: those of spiel_cr, those that OpenSpiel bundles, LiteEFG and plain C.

Adapters of the first two are those of `spiel_cr.eval.contestants`; this file adds the
others. Every solver is used in the form its authors ship for speed: Python games become
OpenSpiel's cached tree for the peers, JAX programs are compiled before the clock runs,
and each is asked for whole batches of iterations.
"""

import os
import tempfile
from typing import NamedTuple
from unittest import mock

import numpy as np

from benchmarks.c_reference import CReference
from spiel_cr.eval.common.game_instance import GameInstance
from spiel_cr.eval.contestants import protocol, registry
from spiel_cr.games.sequence_form import forced
from spiel_cr.solvers import algorithms
from spiel_cr.solvers.cfr import cfr


class Solver(NamedTuple):
    """A solver by name.

    Attributes:
      entry: how it is made.
      family: "spiel_cr", "openspiel" (bundled with it), "c" (the yardstick) or "peer".
      dtype: arithmetic.
      jax: whether it iterates where JAX does.
      imports: modules that it needs, so that building it is not charged with that.
    """

    entry: protocol.Entry
    family: str
    dtype: str = "float64"
    jax: bool = False
    imports: tuple[str, ...] = ()

    @property
    def iterative(self) -> bool:
        """Whether it can be stopped after any number of iterations."""
        return self.entry.way == "iterates"

    def facts(self) -> dict[str, str | bool]:
        """What its rows say about it."""
        return {
            "title": self.entry.title,
            "family": self.family,
            "dtype": self.dtype,
            "iterative": self.iterative,
        }


def _lite_efg(instance: GameInstance, seed: int) -> protocol.SolverAdapter:
    """LiteEFG's CFR+ with linear averaging; one thread is its fastest here."""
    import LiteEFG
    from LiteEFG.baselines import CFRplus

    # It writes the game's tree below the home directory and reads it back.
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


def _bundled(name: str, *modules: str) -> Solver:
    """A solver of OpenSpiel, and the modules of its Python that it needs."""
    imports = tuple(f"open_spiel.python.{module}" for module in modules)
    return Solver(registry.find(name), "openspiel", imports=imports)


_PEERS = {
    "c": Solver(
        protocol.Entry(
            "c",
            "C, one thread: CFR+",
            False,
            "",
            lambda instance, seed: protocol.IteratingAdapter(
                CReference(instance.tree.sequence_form)
            ),
        ),
        "c",
    ),
    "openspiel-cpp": _bundled("openspiel-cfr+"),
    "openspiel-python": _bundled("openspiel-cfr+-python", "algorithms.cfr"),
    "openspiel-jax": _bundled("openspiel-cfr+-jax", "jax.cfr.jax_cfr")._replace(
        dtype="float32", jax=True
    ),
    "liteefg": Solver(
        protocol.Entry(
            "liteefg", "LiteEFG CFR+", False, "", _lite_efg, modules=("LiteEFG",)
        ),
        "peer",
        imports=("LiteEFG", "LiteEFG.baselines.CFRplus"),
    ),
}


def find(name: str) -> Solver:
    """The solver of a name.

    Args:
      name: a peer's, one that `spiel-cr compare` knows, or a full-width algorithm of
        spiel_cr with "/float32" behind it for single precision.

    Raises:
      ValueError: nobody knows the algorithm, or it cannot be stopped at any time.
    """
    if name in _PEERS:
        return _PEERS[name]
    algorithm, _, dtype = name.partition("/")
    entry = registry.find(algorithm)
    if entry.way == "restarts":
        raise ValueError(f"{name} begins anew for each budget; choose another solver")
    if not entry.ours:
        return Solver(entry, "openspiel")
    if not dtype:
        sampled = entry.samples
        return Solver(entry, "spiel_cr", "float32" if sampled else "float64", jax=True)
    config = algorithms.find(algorithm, families=(algorithms.CFR,)).config

    def make(instance: GameInstance, seed: int) -> protocol.SolverAdapter:
        form = forced.without(instance.tree.sequence_form)
        return protocol.IteratingAdapter(
            cfr.make_solver(form, config=config, dtype=np.dtype(dtype))
        )

    return Solver(entry._replace(name=name, make=make), "spiel_cr", dtype, jax=True)
