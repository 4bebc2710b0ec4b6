"""Deep CFR and its successors, of this project, as adapters."""

from typing import Any

from spiel_cr.judging.cpp_judge import Strategy
from spiel_cr.solvers import algorithms, network_run
from spiel_cr.solvers.deep.deep_config import DeepConfig

from ..common.game_instance import GameInstance, MissingError
from .protocol import Entry, SolverAdapter, seconds_of_compiling

_SAMPLES = {
    "external": "trajectories for each player, all of whose actions are followed",
    "outcome": "trajectories for each player",
    "full": "passes over the whole game for each player",
}


class DeepAdapter(SolverAdapter):
    """A solver that trains networks, judged by its average strategy.

    What its average costs, such as the fit of a network, is in the seconds that count,
    each time that it is asked. Programs are compiled by another solver before.
    """

    def __init__(self, instance: GameInstance, task: algorithms.Task) -> None:
        """Compiles all programs.

        Args:
          instance: the game.
          task: the algorithm.

        Raises:
          MissingError: the game has no tensors for networks.
        """
        try:
            other = network_run.networks(task, instance.tree)
        except ValueError as error:
            raise MissingError(str(error)) from error

        def work() -> None:
            other.run(1)
            other.average_behaviours()

        self.compile_seconds = seconds_of_compiling(work)
        self._solver = network_run.networks(task, instance.tree)

    def run(self, iterations: int) -> None:
        self._solver.run(iterations)
        self._average: Strategy = self._solver.average_behaviours()

    def strategy(self) -> Strategy:
        return self._average

    @property
    def note(self) -> str:  # type: ignore[override]
        """How much was sampled."""
        return f"{self._solver.episodes:,} episodes, {self._solver.nodes:,} nodes"


def find(text: str) -> Entry | None:
    """The entry of this name and these parameters; None: it is none of this family.

    Args:
      text: such as "sd-cfr(hidden=64)".

    Raises:
      ValueError: one of this family, but with bad parameters.
    """
    plain = text.partition("(")[0].strip()
    if algorithms.ALGORITHMS.get(plain) not in (algorithms.DEEP, algorithms.SELF_PLAY):
        return None
    algorithm = algorithms.find(text)
    config = algorithm.config

    def make(instance: GameInstance, seed: int) -> DeepAdapter:
        return DeepAdapter(instance, algorithms.Task(algorithm, seed=seed))

    if isinstance(config, DeepConfig):
        how = (
            f"Average strategy ({config.averages[0]}); one iteration is "
            f"{config.traversals} {_SAMPLES[config.sampling]}, and the fits after "
            f"them; seconds are with those of the average."
        )
    else:
        how = (
            f"Last iterate; one iteration is {config.episodes} matches of self-play, "
            f"and the steps of the optimiser after them."
        )
    options: dict[str, Any] = {"modules": ("optax",), "extra": "deep"}
    return Entry(text, f"spiel_cr {text}", True, how, make, samples=True, **options)
