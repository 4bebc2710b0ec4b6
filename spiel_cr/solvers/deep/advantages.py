"""Regrets of one player: a memory of advantages, and the network that is fitted to it.

With accumulate="mean", the network is fitted to the memory's weighted mean of all
iterations (Brown et al. 2019). This is CFR, or linear CFR if weights are linear in t.
With "cumulative", only positive sums are kept, times t^alpha / (t^alpha + 1) (DCFR+, Xu
et al. 2024). Let R be the sum of advantages and W the weight of its visits, with the
same discount:

- memory="exact": R and W are stored per infoset, and R / W is fitted. With predictive,
  the fit counts the newest visits twice, after the next discount (PDCFR+).
- memory="reservoir": only the network stores regrets. For game trees it approximates
  M = R / W, and W is stored per infoset. The new M is fitted to two sets of targets:
  the mean of the old M^+, with the discounted weight, and the visits of the iteration,
  with their weight. If M were exact, the result would be that of memory="exact", but
  errors of fits accumulate. For other games, the network approximates M = R / t, so
  that its outputs keep the same magnitude. At the visits of iteration t, the new M is
  fitted to
  ((t - 1) / t) d M^+ + r / t. Here M^+ is the positive part of the old M, d is the
  discount with t - 1 in place of t, and r is the sampled advantage. The weights
  (t - 1) / t and 1 / t do not depend on the reach of the opponent and of chance. Xu et
  al. 2025 fit their network in the same way, but to R instead of R / t. Infosets
  without visits have no targets. There M does not change, and the next visit has the
  weight 1 / t. With predictive, another network is fitted to the newest advantages.
"""

import functools
import math
from collections.abc import Iterable

import numpy as np

from spiel_cr.common.network_fits import FitSchedule, Targets
from spiel_cr.solvers.deep import reservoirs
from spiel_cr.solvers.deep.approximators import Approximator, make_approximator
from spiel_cr.solvers.deep.deep_config import DeepConfig
from spiel_cr.solvers.deep.infosets import ActingInfosets, Knowledge
from spiel_cr.solvers.deep.outputs import regret_matching


class Advantages:
    """Learned regrets of one player.

    Attributes:
      approximator: Network or table of advantages.
      newest: Network or table of the advantages of the last iteration; None if it is
        not needed.
      fitted: True after the first fit; before it the player plays uniformly.
      loss: Loss of the last fit.
    """

    def __init__(
        self, knowledge: Knowledge, player: int, config: DeepConfig, seed: int
    ) -> None:
        """Create the approximators and an empty memory.

        Args:
          knowledge: Meaning of rows.
          player: Player whose regrets are learned.
          config: Settings of the algorithm.
          seed: Seed of the first weights.
        """
        self._config, self._seed = config, seed
        self._approximator = functools.partial(
            make_approximator, knowledge, player, config
        )
        self.approximator = self._approximator(seed)
        self.newest: Approximator | None = None
        if config.predictive and config.memory == "reservoir":
            self.newest = self._approximator(seed + 1)
        self.memory: reservoirs.Reservoir | reservoirs.InfosetSums | None = None
        if config.memory == "exact" or config.accumulate == "mean":
            self.memory = reservoirs.make_memory(knowledge, player, config)
        # Weights of the visits that the network represents, by infoset: those before
        # the last iteration, and those of the last iteration.
        self._weights: np.ndarray | None = None
        self._legal = knowledge.legal[player]
        if self.memory is None and self._legal is not None:
            self._weights = np.zeros((2, len(self._legal)))
        self.fitted, self.loss = False, math.nan
        self._iteration = 0

    def strategy(self, seen: ActingInfosets) -> np.ndarray:
        """Return the current strategy, float64 [m, A].

        Args:
          seen: Information of the player at m decisions.
        """
        if not self.fitted:
            return seen.legal / seen.legal.sum(axis=1)[:, None]
        outputs = self.approximator.outputs(seen.rows)
        if self.newest is not None:
            share = self._newest_share(seen.rows)[:, None]
            coming = np.maximum(outputs, 0) * (1 - share)
            coming += self.newest.outputs(seen.rows) * share
            outputs = np.where(share > 0, coming, outputs)
        return regret_matching(outputs, seen.legal, self._config.fallback)

    def learn(
        self, chunks: Iterable[Targets], iteration: int, random: np.random.Generator
    ) -> None:
        """Learn from the visits of an iteration, and fit the network.

        Strategies do not change until the last chunk has been read. A reservoir stores
        one chunk at a time; otherwise all chunks are in memory at once.

        Args:
          chunks: Visits, in at least one chunk, with advantages as targets.
          iteration: Number of the iteration, from 1.
          random: Random number generator, which is advanced.
        """
        config = self._config
        share = 1.0
        if config.accumulate == "mean":
            share = float(iteration) ** config.linear
        weighed = (chunk._replace(weight=chunk.weight * share) for chunk in chunks)
        if isinstance(self.memory, reservoirs.Reservoir):
            for visits in weighed:
                self.memory.add(visits, random)
            if not len(self.memory):
                return  # without decisions so far, the player plays uniformly
            targets = reservoirs.per_infoset(self.memory.targets(), self._legal)
        else:
            visits = reservoirs.joined(weighed)
            if not len(visits.weight) and (self.memory is None or not self.fitted):
                return
            if self.memory is not None:
                targets = self._exact(self.memory, visits, iteration)
            else:
                targets = self._bootstrapped(visits, iteration, random)
        self._iteration = iteration
        if config.restart:
            self.approximator = self._approximator(self._seed + 2 * iteration)
        schedule = FitSchedule(config.steps, config.batch, config.learning_rate)
        targets = self._balanced(targets)
        self.loss = self.approximator.fit(targets, schedule, random)
        self.fitted = True

    def _exact(
        self, memory: reservoirs.InfosetSums, visits: Targets, iteration: int
    ) -> Targets:
        """Return the means per infoset after the visits of an iteration."""
        if self._config.accumulate == "cumulative":
            memory.discount(self._discount(iteration))
        memory.add(visits)
        targets = memory.targets()
        if self._config.predictive:
            coming, legal = reservoirs.InfosetSums(memory.legal), memory.legal
            coming.add(visits)
            after = self._discount(iteration + 1)
            coming.total += np.where(legal, np.maximum(memory.total, 0), 0) * after
            coming.weight += memory.weight * after
            targets = coming.targets()
        return targets

    def _bootstrapped(
        self, visits: Targets, iteration: int, random: np.random.Generator
    ) -> Targets:
        """Return visits whose targets contain earlier advantages."""
        config = self._config
        schedule = FitSchedule(config.steps, config.batch, config.learning_rate)
        visits = reservoirs.per_infoset(visits, self._legal)
        if self.newest is not None:
            self.newest.fit(self._balanced(visits), schedule, random)
        before = np.zeros(visits.target.shape)
        if self.fitted:
            before = self.approximator.outputs(visits.rows)
        if self._weights is None:
            kept = np.maximum(before, 0) * (iteration - 1) * self._discount(iteration)
            return self._single(visits, (kept + visits.target) / iteration)
        newest = visits.weight
        total = newest + self._weights.sum(axis=0) * self._discount(iteration)
        share = (newest / np.where(total > 0, total, 1))[:, None]
        # Without a visit, negative values are kept, because they rank the actions.
        before = np.where(share > 0, np.maximum(before, 0), before)
        target = before * (1 - share) + np.where(share > 0, visits.target, 0) * share
        self._weights = np.stack([total - newest, newest])
        return self._single(visits._replace(weight=total), target)

    @staticmethod
    def _single(visits: Targets, target: np.ndarray) -> Targets:
        """Return visits with other targets, in single precision."""
        return visits._replace(target=target.astype(np.float32))

    def _newest_share(self, rows: np.ndarray) -> np.ndarray:
        """Return the share of the newest advantages in predictions, float64 [m].

        Args:
          rows: Rows of m decisions of the player.
        """
        after = self._discount(self._iteration + 1)
        if self._weights is None:
            return np.full(len(rows), 1 / (1 + self._iteration * after))
        kept, newest = self._weights[:, rows]
        total = newest + (kept + newest) * after
        return newest / np.where(total > 0, total, 1)

    def _balanced(self, targets: Targets) -> Targets:
        """Return targets with the weights of the loss."""
        if self._legal is None:
            return targets
        return reservoirs.balanced(targets, self._config.balance)

    def _discount(self, iteration: int) -> float:
        """Return the discount of regrets before an iteration, DCFR+ with t' = t - 1."""
        past, alpha = iteration - 1, self._config.alpha
        if alpha == math.inf:
            return 1.0
        grown = float(past) ** alpha
        return grown / (grown + 1)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all arrays that `restore` needs."""
        arrays = {f"net{k}": leaf for k, leaf in enumerate(self.approximator.leaves())}
        if self.newest is not None:
            for k, leaf in enumerate(self.newest.leaves()):
                arrays[f"new{k}"] = leaf
        if self.memory is not None:
            arrays |= {
                f"memory_{k}": array for k, array in self.memory.arrays().items()
            }
        if self._weights is not None:
            arrays["weights"] = self._weights
        return {**arrays, "iteration": np.array(self._iteration)}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Restore the state that `arrays` returned.

        Raises:
          ValueError: If the arrays belong to other settings.
        """
        self._iteration = int(arrays["iteration"])
        self.fitted = self._iteration > 0
        self.approximator.restore(numbered(arrays, "net"))
        if self.newest is not None:
            self.newest.restore(numbered(arrays, "new"))
        if self.memory is not None:
            self.memory.restore(within(arrays, "memory_"))
        if self._weights is not None:
            weights = arrays["weights"]
            if weights.shape != self._weights.shape:
                raise ValueError("its weights belong to another game")
            self._weights = weights.copy()


def numbered(arrays: dict[str, np.ndarray], name: str) -> list[np.ndarray]:
    """Return the arrays name0, name1, ... of a dict, in order."""
    numbered_arrays: list[np.ndarray] = []
    while f"{name}{len(numbered_arrays)}" in arrays:
        numbered_arrays.append(arrays[f"{name}{len(numbered_arrays)}"])
    return numbered_arrays


def within(arrays: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """Return the arrays whose names begin with a prefix, without the prefix."""
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }
