"""Comparing: deep learning that OpenSpiel bundles in JAX; needs the extra `deep`.

Networks and buffers are small, for games that have an exact NashConv at all.
"""

import importlib
from typing import Any

import numpy as np

from eval.contestants import (
    Arena,
    Entry,
    MissingError,
    NumpyDraws,
    Strategy,
    ask,
    states,
)
from spiel_cr import policy as policy_lib

__all__ = ["ENTRIES"]

_LAYERS = (64, 64)
_RESERVOIR = 100_000


def _check_tensors(arena: Arena) -> None:
    if not arena.game.get_type().provides_information_state_tensor:
        raise MissingError("the game has no information_state_tensor for its networks")


class _DeepCFR:
    """Deep CFR (Brown et al. 2019); iterations are traversals, networks included."""

    compile_seconds = 0.0
    note = f"networks {_LAYERS}"

    def __init__(self, arena: Arena, seed: int) -> None:
        _check_tensors(arena)
        module = importlib.import_module("open_spiel.python.jax.deep_cfr")
        self._tree = arena.tree
        self._draws = NumpyDraws(seed)
        self._solver = module.DeepCFRSolver(
            arena.game,
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

    def run(self, iterations: int) -> None:
        with self._draws.installed():
            for _ in range(iterations):
                self._solver.solve()

    def strategy(self) -> Strategy:
        self._solver._cached_policy.clear()
        return ask(self._tree, self._solver)


class _NFSP:
    """Neural fictitious self-play (Heinrich & Silver 2016); iterations are episodes."""

    compile_seconds = 0.0
    note = f"networks {_LAYERS}"

    def __init__(self, arena: Arena, seed: int) -> None:
        _check_tensors(arena)
        module = importlib.import_module("open_spiel.python.jax.nfsp")
        environments: Any = importlib.import_module("open_spiel.python.rl_environment")
        self._average = module.MODE.AVERAGE_POLICY
        self._tree = arena.tree
        self._draws = NumpyDraws(seed)
        self._environment = environments.Environment(
            arena.game,
            chance_event_sampler=environments.ChanceEventSampler(seed=seed),
        )
        size = self._environment.observation_spec()["info_state"][0]
        actions = self._environment.action_spec()["num_actions"]
        self._step_of = environments.TimeStep
        self._kind = environments.StepType.MID
        self._agents = [
            module.NFSP(
                player,
                size,
                actions,
                list(_LAYERS),
                _RESERVOIR,
                0.1,
                seed=seed + player,
                allow_checkpointing=False,
            )
            for player in range(2)
        ]

    def run(self, iterations: int) -> None:
        with self._draws.installed():
            for _ in range(iterations):
                self._episode()

    def _episode(self) -> None:
        time_step = self._environment.reset()
        while not time_step.last():
            player = time_step.observations["current_player"]
            action = self._agents[player].step(time_step).action
            time_step = self._environment.step([int(action)])
        for agent in self._agents:
            agent.step(time_step)

    def strategy(self) -> Strategy:
        found = []
        with self._draws.installed():
            for player, infosets in enumerate(self._tree.infosets):
                agent, row = self._agents[player], 1
                behaviour = policy_lib.uniform_behaviour(infosets.decisions)
                with agent.temp_mode_as(self._average):
                    for state in states(self._tree, player):
                        legal = state.legal_actions()
                        probabilities = np.asarray(
                            agent.step(self._seen(state, player), True).probs
                        )[legal]
                        end = row + len(legal)
                        behaviour[row:end] = probabilities / probabilities.sum()
                        row = end
                found.append(behaviour)
        return found[0], found[1]

    def _seen(self, state: Any, player: int) -> Any:
        seen = {
            "info_state": [state.information_state_tensor(p) for p in range(2)],
            "legal_actions": [state.legal_actions(p) for p in range(2)],
            "current_player": player,
        }
        return self._step_of(seen, [0.0, 0.0], [1.0, 1.0], self._kind)


ENTRIES: tuple[Entry, ...] = (
    Entry(
        "openspiel-deep-cfr",
        "OpenSpiel Deep CFR (JAX)",
        False,
        "Policy network. One iteration: 20 external-sampling traversals for each "
        "player, 200 training steps of each advantage network and of the policy's.",
        _DeepCFR,
        samples=True,
        modules=("flax", "optax", "chex"),
        extra="deep",
    ),
    Entry(
        "openspiel-nfsp",
        "OpenSpiel NFSP (JAX)",
        False,
        "Average-policy networks; one iteration is one episode of self-play.",
        _NFSP,
        samples=True,
        modules=("flax", "optax", "chex", "orbax", "etils"),
        extra="deep",
    ),
)
