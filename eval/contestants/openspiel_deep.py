"""Deep learning that OpenSpiel bundles in JAX; needs the extra `baselines`.

Networks and buffers are small, for games that have an exact NashConv at all. Programs
are compiled before the clock runs, as for all others: a solver works for a while, and
is then set back to how it began. Programs are each solver's own: another will not do.
"""

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyspiel

from ..common.game_instance import GameInstance, MissingError, Strategy
from .protocol import (
    Entry,
    NumpyDraws,
    SolverAdapter,
    ask,
    ask_at,
    bundled,
    first_states,
    seconds_of_compiling,
)

_LAYERS = (64, 64)
_NOTE = f"networks {_LAYERS}"
_RESERVOIR = 100_000
# Transitions in a buffer that agents begin to learn from.
_ENOUGH = 1000
# Episodes until both players of NFSP have moved once in each of their modes.
_MOST_EPISODES = 50


def _check_tensors(instance: GameInstance) -> None:
    if not instance.game.get_type().provides_information_state_tensor:
        raise MissingError("the game has no information_state_tensor for its networks")


def _set_back(used: Any, fresh: Any, *others: str) -> None:
    """Makes a used object what a fresh one is, but for its compiled programs.

    Args:
      used: changed in place.
      fresh: of the same class, made by the same arguments.
      *others: attributes that are left alone.
    """
    for name, value in vars(fresh).items():
        program = hasattr(value, "lower")
        if name not in others and not program:
            setattr(used, name, value)


def _filled(buffer: Any, counter: str) -> Any:
    """A buffer that takes itself to hold enough to learn from."""
    # Not by `_replace`, which trusts the length that the buffer gives itself.
    enough = 0 * getattr(buffer, counter) + _ENOUGH
    return type(buffer)(**{**buffer._asdict(), counter: enough})


class _DeepCFR(SolverAdapter):
    """Deep CFR (Brown et al. 2019); iterations are traversals, networks included."""

    note = _NOTE

    def __init__(self, instance: GameInstance, seed: int) -> None:
        _check_tensors(instance)
        module = importlib.import_module("open_spiel.python.jax.deep_cfr")
        self._tree = instance.tree

        def make() -> Any:
            self._draws = NumpyDraws(seed)
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

        self._solver = make()
        self.compile_seconds = seconds_of_compiling(lambda: self.run(1))
        self._begin_again(make())

    def _begin_again(self, fresh: Any) -> None:
        nnx: Any = importlib.import_module("flax.nnx")
        # Programs are for these very networks, which get their first weights back.
        networks = ("_advantage_networks", "_advantage_opt")
        policy = ("_policy_network", "_policy_opt")
        for names in (networks, policy):
            used, new = (
                [getattr(solver, name) for name in names]
                for solver in (self._solver, fresh)
            )
            nnx.update(used, nnx.state(new))
        graphs = ("_advantage_graphdefs", "_policy_graphdef")
        _set_back(self._solver, fresh, *networks, *policy, *graphs)

    def run(self, iterations: int) -> None:
        with self._draws.installed():
            for _ in range(iterations):
                self._solver.solve()

    def strategy(self) -> Strategy:
        self._solver._cached_policy.clear()
        return ask(self._tree, self._solver)


class _NFSP(SolverAdapter):
    """Neural fictitious self-play (Heinrich & Silver 2016); iterations are episodes."""

    note = _NOTE

    def __init__(self, instance: GameInstance, seed: int) -> None:
        _check_tensors(instance)
        module = importlib.import_module("open_spiel.python.jax.nfsp")
        environments: Any = importlib.import_module("open_spiel.python.rl_environment")
        self._average = module.MODE.AVERAGE_POLICY
        self._modes = tuple(module.MODE)
        self._states = first_states(instance.tree)
        self._step_of = environments.TimeStep
        self._kind = environments.StepType.MID

        def begin() -> Any:
            self._draws = NumpyDraws(seed)
            self._environment = environments.Environment(
                instance.game,
                chance_event_sampler=environments.ChanceEventSampler(seed=seed),
            )
            size = self._environment.observation_spec()["info_state"][0]
            actions = self._environment.action_spec()["num_actions"]
            return [
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

        self._agents = begin()
        self.compile_seconds = seconds_of_compiling(self._warm_up)
        for used, fresh in zip(self._agents, begin(), strict=True):
            _set_back(used._rl_agent, fresh._rl_agent)
            _set_back(used, fresh, "_rl_agent")

    def _warm_up(self) -> None:
        """All that an iteration may do: an episode in each mode, and learning."""
        with self._draws.installed():
            for mode in self._modes:
                for _ in range(_MOST_EPISODES):
                    for agent in self._agents:
                        agent._mode = mode
                    self._episode()
                    if all(
                        a._rl_agent._replay_buffer is not None for a in self._agents
                    ):
                        break
        for agent in self._agents:
            learner = agent._rl_agent
            if agent._reservoir_buffer is None or learner._replay_buffer is None:
                continue
            # They learn from what there is as if it were enough.
            agent._reservoir_buffer = _filled(agent._reservoir_buffer, "add_calls")
            learner._replay_buffer = _filled(learner._replay_buffer, "entry_index")
            agent._learn()
            learner.learn()

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
        with self._draws.installed():
            return ask_at(self._states, self._average_policy)

    def _average_policy(self, state: pyspiel.State, legal: Sequence[int]) -> np.ndarray:
        player = state.current_player()
        seen = {
            "info_state": [state.information_state_tensor(p) for p in range(2)],
            "legal_actions": [state.legal_actions(p) for p in range(2)],
            "current_player": player,
        }
        time_step = self._step_of(seen, [0.0, 0.0], [1.0, 1.0], self._kind)
        agent = self._agents[player]
        with agent.temp_mode_as(self._average):
            return np.asarray(agent.step(time_step, True).probs)[legal]


ENTRIES: tuple[Entry, ...] = (
    bundled(
        "deep-cfr",
        "Deep CFR (JAX)",
        "Policy network. One iteration: 20 external-sampling traversals for each "
        "player, 200 training steps of each advantage network and of the policy's.",
        _DeepCFR,
        samples=True,
        modules=("flax", "optax", "chex"),
        extra="baselines",
    ),
    bundled(
        "nfsp",
        "NFSP (JAX)",
        "Average-policy networks; one iteration is one episode of self-play.",
        _NFSP,
        samples=True,
        modules=("flax", "optax", "chex", "orbax", "etils"),
        extra="baselines",
    ),
)
