"""Comparing: deep learning that OpenSpiel bundles in JAX; needs the extra `baselines`.

Networks and buffers are small, for games that have an exact NashConv at all. Programs
are compiled before the clock runs, as for all others: a solver works for a while, and
is then set back to how it began. Programs are each solver's own: another will not do.
"""

import importlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from spiel_cr.policies import conversions as policy_lib

from ..common.game_instance import GameInstance, MissingError, Strategy
from .protocol import Entry, NumpyDraws, ask, states

_LAYERS = (64, 64)
_RESERVOIR = 100_000
# So often until nothing more is compiled, and once more to see how long that takes.
_ROUNDS = 3
# Transitions in a buffer that agents begin to learn from.
_ENOUGH = 1000
# Episodes until both players of NFSP have moved once in each of their modes.
_MOST_EPISODES = 50


def _check_tensors(instance: GameInstance) -> None:
    if not instance.game.get_type().provides_information_state_tensor:
        raise MissingError("the game has no information_state_tensor for its networks")


def _compiling(work: Callable[[], None]) -> float:
    """Works a few times; the seconds by which the first times took longer."""
    times = []
    for _ in range(_ROUNDS):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return sum(max(spent - times[-1], 0.0) for spent in times)


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
    fields = buffer._asdict()
    return type(buffer)(**{**fields, counter: 0 * fields[counter] + _ENOUGH})


class _DeepCFR:
    """Deep CFR (Brown et al. 2019); iterations are traversals, networks included."""

    note = f"networks {_LAYERS}"

    def __init__(self, instance: GameInstance, seed: int) -> None:
        _check_tensors(instance)
        module = importlib.import_module("open_spiel.python.jax.deep_cfr")
        self._tree = instance.tree

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

        self._solver, self._draws = make(), NumpyDraws(seed)
        self.compile_seconds = _compiling(lambda: self.run(1))
        self._begin_again(make())
        self._draws = NumpyDraws(seed)

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


class _NFSP:
    """Neural fictitious self-play (Heinrich & Silver 2016); iterations are episodes."""

    note = f"networks {_LAYERS}"

    def __init__(self, instance: GameInstance, seed: int) -> None:
        _check_tensors(instance)
        module = importlib.import_module("open_spiel.python.jax.nfsp")
        environments: Any = importlib.import_module("open_spiel.python.rl_environment")
        self._average = module.MODE.AVERAGE_POLICY
        self._modes = tuple(module.MODE)
        self._tree = instance.tree
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
        self.compile_seconds = _compiling(self._warm_up)
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
        extra="baselines",
    ),
    Entry(
        "openspiel-nfsp",
        "OpenSpiel NFSP (JAX)",
        False,
        "Average-policy networks; one iteration is one episode of self-play.",
        _NFSP,
        samples=True,
        modules=("flax", "optax", "chex", "orbax", "etils"),
        extra="baselines",
    ),
)
