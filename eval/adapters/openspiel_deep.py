"""Deep learning algorithms of OpenSpiel in JAX; they need the extra `baselines`.

Networks and buffers are small, suitable for games whose NashConv can be computed
exactly. As for all other algorithms, functions are compiled before the clock starts: a
solver works for a while, and is then reset to its initial state. Compiled functions
belong to one solver, so it cannot be replaced by a new one.
"""

import importlib
from typing import Any

from ..common.game_instance import GameInstance, MissingError
from .protocol import Entry, Policy, SteppingAdapter, bundled

_LAYERS = (64, 64)
_NOTE = f"networks {_LAYERS}"
_RESERVOIR = 100_000


def _check_tensors(instance: GameInstance) -> None:
    if not instance.game.get_type().provides_information_state_tensor:
        raise MissingError("the game has no information_state_tensor for its networks")


def _set_back(used: Any, fresh: Any, *others: str) -> None:
    """Reset an object to the state of a new one, except its compiled functions.

    Args:
      used: The object, which is changed in place.
      fresh: A new object of the same class and with the same arguments.
      *others: Names of attributes that are not reset.
    """
    for name, value in vars(fresh).items():
        program = hasattr(value, "lower")
        if name not in others and not program:
            setattr(used, name, value)


def _deep_cfr(instance: GameInstance, seed: int) -> SteppingAdapter:
    """Return Deep CFR (Brown et al. 2019); iterations are traversals and training."""
    _check_tensors(instance)
    module = importlib.import_module("open_spiel.python.jax.deep_cfr")

    def make() -> Any:
        return module.DeepCFRSolver(
            instance.game,
            policy_network_layers=_LAYERS,
            advantage_network_layers=_LAYERS,
            num_iterations=1,
            num_traversals=20,
            learning_rate=1e-3,
            batch_size_advantage=128,
            batch_size_strategy=128,
            memory_capacity=_RESERVOIR,
            advantage_network_train_steps=200,
            seed=seed,
        )

    def policy() -> Policy:
        solver._cached_policy.clear()
        return solver

    def begin_again() -> None:
        nnx: Any = importlib.import_module("flax.nnx")
        fresh = make()
        # Compiled functions refer to these networks, so only their weights are reset.
        networks = ("_advantage_networks", "_advantage_opt")
        policies = ("_policy_network", "_policy_opt")
        for names in (networks, policies):
            used_ones, fresh_ones = (
                [getattr(one, name) for name in names] for one in (solver, fresh)
            )
            nnx.update(used_ones, nnx.state(fresh_ones))
        graphs = ("_advantage_graphdefs", "_policy_graphdef")
        _set_back(solver, fresh, *networks, *policies, *graphs)

    solver = make()
    return SteppingAdapter(
        instance, seed, solver.solve, policy, note=_NOTE, begin_again=begin_again
    )


ENTRIES: tuple[Entry, ...] = (
    bundled(
        "deep-cfr",
        "Deep CFR (JAX)",
        "Policy network. One iteration: 20 external-sampling traversals for each "
        "player, 200 training steps of each advantage network and of the policy's.",
        _deep_cfr,
        samples=True,
        meaningful=100,
        meaningful_by="the solver's own default is 100",
        modules=("flax", "optax", "chex"),
        extra="baselines",
    ),
)
