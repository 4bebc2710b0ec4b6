"""Deep learning that OpenSpiel bundles in JAX; needs the extra `baselines`.

Networks and buffers are small, for games that have an exact NashConv at all. Programs
are compiled before the clock runs, as for all others: a solver works for a while, and
is then set back to how it began. Programs are each solver's own: another will not do.
"""

import importlib
from typing import Any

import pyspiel
from open_spiel.python import rl_environment

from ..common.game_instance import GameInstance, MissingError
from .protocol import Entry, Policy, SteppingAdapter, bundled

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


def _deep_cfr(instance: GameInstance, seed: int) -> SteppingAdapter:
    """Deep CFR (Brown et al. 2019); iterations are traversals, networks included."""
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
        # Programs are for these very networks, which get their first weights back.
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


def _nfsp(instance: GameInstance, seed: int) -> SteppingAdapter:
    """Neural fictitious self-play (Heinrich & Silver 2016); iterations are episodes."""
    _check_tensors(instance)
    agents = _NFSPAgents(instance.game, seed)
    return SteppingAdapter(
        instance,
        seed,
        agents.episode,
        lambda: agents,
        note=_NOTE,
        warm_up=agents.warm_up,
        begin_again=agents.begin_again,
    )


class _NFSPAgents:
    """Two agents that play against each other; their average policies."""

    def __init__(self, game: pyspiel.Game, seed: int) -> None:
        self._game = game
        self._module: Any = importlib.import_module("open_spiel.python.jax.nfsp")
        self._seed = seed
        self.agents = self._make()

    def _make(self) -> list[Any]:
        """New agents in a new environment."""
        self._environment = rl_environment.Environment(
            self._game,
            chance_event_sampler=rl_environment.ChanceEventSampler(seed=self._seed),
        )
        return [
            self._module.NFSP(
                player,
                self._environment.observation_spec()["info_state"][0],
                self._environment.action_spec()["num_actions"],
                list(_LAYERS),
                _RESERVOIR,
                0.1,
                seed=self._seed + player,
                allow_checkpointing=False,
            )
            for player in range(2)
        ]

    def begin_again(self) -> None:
        """Leaves nothing of the past but compiled programs."""
        for used, fresh in zip(self.agents, self._make(), strict=True):
            _set_back(used._rl_agent, fresh._rl_agent)
            _set_back(used, fresh, "_rl_agent")

    def warm_up(self) -> None:
        """All that an iteration may do: an episode in each mode, and learning."""
        learners = [agent._rl_agent for agent in self.agents]
        for mode in self._module.MODE:
            for _ in range(_MOST_EPISODES):
                for agent in self.agents:
                    agent._mode = mode
                self.episode()
                if all(learner._replay_buffer is not None for learner in learners):
                    break
        for agent, learner in zip(self.agents, learners, strict=True):
            if agent._reservoir_buffer is None or learner._replay_buffer is None:
                continue
            # They learn from what there is as if it were enough.
            agent._reservoir_buffer = _filled(agent._reservoir_buffer, "add_calls")
            learner._replay_buffer = _filled(learner._replay_buffer, "entry_index")
            agent._learn()
            learner.learn()

    def episode(self) -> None:
        time_step = self._environment.reset()
        while not time_step.last():
            player = time_step.observations["current_player"]
            action = self.agents[player].step(time_step).action
            time_step = self._environment.step([int(action)])
        for agent in self.agents:
            agent.step(time_step)

    def action_probabilities(self, state: pyspiel.State) -> dict[int, float]:
        player = state.current_player()
        seen = {
            "info_state": [state.information_state_tensor(p) for p in range(2)],
            "legal_actions": [state.legal_actions(p) for p in range(2)],
            "current_player": player,
        }
        time_step = rl_environment.TimeStep(
            seen, [0.0, 0.0], [1.0, 1.0], rl_environment.StepType.MID
        )
        agent = self.agents[player]
        with agent.temp_mode_as(self._module.MODE.AVERAGE_POLICY):
            weights = agent.step(time_step, True).probs
        legal = state.legal_actions()
        total = sum(float(weights[action]) for action in legal)
        return {action: float(weights[action]) / total for action in legal}


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
    bundled(
        "nfsp",
        "NFSP (JAX)",
        "Average-policy networks; one iteration is one episode of self-play.",
        _nfsp,
        samples=True,
        meaningful=3_000_000,
        meaningful_by="OpenSpiel's example on Kuhn poker does 3,000,000",
        modules=("flax", "optax", "chex", "orbax", "etils"),
        extra="baselines",
    ),
)
