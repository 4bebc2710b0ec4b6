"""Search of a response from the root of the game, with complete beliefs.

The tree of `belief_search` is grown from the root as long as there is time, and kept,
so one search serves all matches. If the search reaches all terminal nodes, the response
is a best response, and its value is exact.
"""

import gc
import math
from collections.abc import Callable

import numpy as np

from spiel_cr.evaluation.opponent import Opponent
from spiel_cr.evaluation.response_config import SearchConfig
from spiel_cr.evaluation.responses.belief_search import (
    BeliefNode,
    BeliefSearch,
    uniform_prior,
)
from spiel_cr.evaluation.responses.table_response import (
    NUM_HABITS,
    Setting,
    TableResponse,
    default_policy,
)
from spiel_cr.games.opening.game_checks import utility_bounds
from spiel_cr.games.simulation import keys
from spiel_cr.policies.rollouts import Answers

# Largest number of histories that are followed from one infoset; more are sampled.
_SIDE_BY_SIDE = 1024
# Largest number of histories in the tree; each needs about 4 kB.
_HELD = 400_000


class RootSearch:
    """A search from the root; a unit of learning expands one information state.

    Attributes:
      player: The responder.
      setting: The setting of the matches.
    """

    def __init__(
        self, opponent: Opponent, setting: Setting, player: int, *, seed: int = 0
    ) -> None:
        """Initialise a search without expansions.

        Args:
          opponent: The opponent.
          setting: A setting on OpenSpiel's states.
          player: The responder.
          seed: Seed for all random choices.
        """
        game = opponent.game
        # How often the next expansion was started and took too long.
        self._given_up = 0
        self.player, self._exact = player, opponent.bots is None
        self.setting = setting
        bounds = utility_bounds(game) or (-1.0, 1.0)
        config = SearchConfig()
        self._search = BeliefSearch(
            player,
            Answers(opponent.policy, 1 - player),
            Answers(default_policy(opponent), player),
            config,
            exploration=config.exploration * (bounds[1] - bounds[0]) / 2,
            prior_and_value=uniform_prior,
            side_by_side=_SIDE_BY_SIDE,
        )
        self._seed, self._expanded = seed, 0
        self._search.start(game, self._numbers())

    @property
    def finished(self) -> bool:
        """Whether everything is expanded, or the memory is used up."""
        full = self._search.held > _HELD
        return self._search.root.solved or full or self._given_up > 1

    def learn(self, units: int, stop: Callable[[], bool]) -> int:
        """Expand information states.

        Args:
          units: Largest number of information states.
          stop: Function that is called after each, and returns whether to stop.

        Returns:
          The number of expanded information states.
        """
        done = 0
        self._search.draw_from(self._numbers())
        # There are many objects and no reference cycles.
        collects = gc.isenabled()
        gc.disable()
        try:
            while done < units and not self.finished and not (done and stop()):
                if not self._search.grow(stop=stop):
                    self._given_up += 1
                    break
                self._given_up = 0
                done += 1
        finally:
            if collects:
                gc.enable()
        self._expanded += done
        return done

    def _numbers(self) -> np.random.Generator:
        """Return random numbers that depend on the number of expansions only.

        A resumed run therefore uses the numbers of the first run, which may have
        abandoned expansions.
        """
        return np.random.default_rng([self._seed, 5, self.player, self._expanded])

    def share(self) -> float:
        """Estimate the share of the tree that is expanded, by probability.

        It is 0 if histories were sampled, or information states lack perfect recall,
        because the search then has no end.
        """
        drawn = not all(branch.complete for branch in self._search.root.branches)
        if drawn or self._search.forgetful:
            return 0.0
        shares: dict[int, float] = {}
        # Nodes that were added later are below earlier ones.
        for node in reversed((self._search.root, *self._search.nodes.values())):
            open_ = [
                math.fsum(
                    probability * (1 - shares.get(id(below), 0.0))
                    for below, probability in zip(
                        branch.below, branch.probabilities, strict=True
                    )
                )
                for branch in node.branches
            ]
            shares[id(node)] = 1 - math.fsum(open_) / len(open_) if open_ else 0.0
        return shares[id(self._search.root)]

    def response(self) -> TableResponse:
        """Return the current response."""
        nodes = self._search.nodes
        root = self._search.root
        texts = [text.encode("utf-8", "surrogatepass") for text in nodes]
        rows = [_row(node) for node in nodes.values()]
        count, action, values, expected = (
            np.array([row[place] for row in rows]) for place in range(4)
        )
        complete = all(
            b.complete for node in (root, *nodes.values()) for b in node.branches
        )
        # Without perfect recall, the next infosets are not those of the expectation.
        exact = self._exact and not self._search.forgetful
        known = exact and root.branches
        return TableResponse(
            self.player,
            keys.of_bytes(texts, self.player),
            count.astype(np.int64),
            action.astype(np.int64),
            values.astype(np.float64),
            expected.astype(np.float64) if exact else np.full(len(rows), np.nan),
            np.full(NUM_HABITS, -1),
            _row(root)[3] if known else math.nan,
            root.value if known and root.solved and complete else None,
        )


def _row(node: BeliefNode) -> tuple[int, int, float, float]:
    """Return actions, the place of the best one, value and expectation."""
    if not node.branches:
        return len(node.actions), -1, node.value, math.nan
    best = node.best()
    branch = node.branches[best]
    return (
        len(node.actions),
        best,
        node.value,
        branch.value if branch.complete else math.nan,
    )
