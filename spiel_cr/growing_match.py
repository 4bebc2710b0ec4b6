"""Third stage: what a player of a growing game remembers in a match."""

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np

from spiel_cr import growing_belief
from spiel_cr.growing_belief import Belief
from spiel_cr.growing_config import GrowingConfig
from spiel_cr.growing_situation import Situation
from spiel_cr.state_posterior import Stage

__all__ = ["GrowingMatch"]


@dataclasses.dataclass
class GrowingMatch:
    """What is remembered in a match.

    Attributes:
      situation: the part and what was solved of it.
      stages: what was seen and done at decisions that were taken in.
      belief: at the last of them, if it was not in the part.
    """

    situation: Situation
    stages: list[Stage]
    belief: Belief | None = None

    def leads_to(self, stages: Sequence[Stage]) -> bool:
        """Whether a view continues what was taken in.

        What was done at the last decision was not known then.
        """
        last = len(self.stages) - 1
        return last < 0 or (
            len(stages) > last
            and list(self.stages[:-1]) == list(stages[:last])
            and self.stages[-1].seen == stages[last].seen
        )

    def believe(
        self,
        stages: Sequence[Stage],
        number: int,
        config: GrowingConfig,
        random: np.random.Generator,
    ) -> Belief | None:
        """What is possible at a decision that the part does not have.

        Args:
          stages: what the player saw and did.
          number: the decision; all before it were taken in.
          config: how much to believe.
          random: consumed, see `growing_belief.advance`.

        Returns:
          The belief; None: none of the histories that were followed leads there.
        """
        here, belief = self.situation, self.belief
        source = here.growing.source
        opponent = functools.partial(here.opponent, mix=config.mix)

        def advance(
            belief: Belief, at: int, other: growing_belief.Opponent
        ) -> Belief | None:
            action = stages[at - 1].action if at else None
            return growing_belief.advance(
                *(source, belief, here.player, action, stages[at].seen[-1], other),
                most=config.beliefs,
                random=random,
            )

        if belief is None and number:
            before = here.find(stages[number - 1].seen[-1])
            if before >= 0:
                belief = here.belief(before, config.mix)
        if belief is not None:
            belief = advance(belief, number, opponent)
        if belief is not None:
            return belief
        # From the beginning, with a simpler opponent for what was thought impossible.
        for other in (opponent, _uniform):
            belief = Belief(source.root(), np.ones(1))
            for at in range(number + 1):
                belief = advance(belief, at, other)
                if belief is None:
                    break
            else:
                return belief
        return None


def _uniform(labels: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """All actions alike, see `growing_belief.Opponent`."""
    return np.repeat(1 / counts, counts)
