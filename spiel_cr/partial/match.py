"""Third stage: what a player of a growing game remembers in a match."""

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np

from spiel_cr.partial import opponent_knowledge
from spiel_cr.partial.config import PartialConfig
from spiel_cr.partial.neighbours import Follower
from spiel_cr.partial.opponent_knowledge import Possible
from spiel_cr.partial.solved_tree import SolvedTree
from spiel_cr.policies.observations import Stage


@dataclasses.dataclass
class PartialMatch:
    """What is remembered in a match.

    Attributes:
      situation: the part and what was solved of it.
      stages: what was seen and done at decisions that were taken in.
      possible: at the last of them, if a part began anew there, or had to.
    """

    situation: SolvedTree
    stages: list[Stage]
    possible: Possible | None = None

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

    def look(self, infoset: int, config: PartialConfig) -> None:
        """Takes in what is possible at an infoset of the part."""
        self.possible = opponent_knowledge.at_infoset(
            *(self.situation, infoset, config.mix), neighbours=config.neighbours > 0
        )

    def follow(
        self,
        stages: Sequence[Stage],
        number: int,
        config: PartialConfig,
        random: np.random.Generator,
    ) -> None:
        """Takes in what is possible at a decision that the part does not have.

        That is nothing, if none of the histories that were followed leads there.

        Args:
          stages: what the player saw and did.
          number: the decision; all before it were taken in.
          config: how much to believe.
          random: consumed, see `growing_belief.advance`.
        """
        here = self.situation
        own, opponent = (
            functools.partial(here.play, player=p, mix=config.mix)
            for p in (here.player, 1 - here.player)
        )
        begin = None
        if self.possible is None and number:
            before = here.find(stages[number - 1].seen[-1])
            if before >= 0:
                self.look(before, config)
        if self.possible is not None:
            begin = number
        # From the beginning, with a simpler opponent for what was thought impossible.
        tries = ((begin, opponent), (0, opponent), (0, _uniform))
        for first, other in tries:
            if first is None:
                continue
            follower = Follower(
                *(here.growing.source, here.player, own, other),
                most=config.beliefs,
                neighbours=config.neighbours > 0,
                random=random,
            )
            possible = self.possible if first else follower.root()
            for at in range(first, number + 1):
                if possible is not None:
                    action = stages[at - 1].action if at else None
                    key = stages[at].seen[-1]
                    possible = follower.advance(possible, action, key)
            if possible is not None:
                break
        self.possible = possible


def _uniform(labels: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """All actions alike, see `growing_belief.Strategy`."""
    return np.repeat(1 / counts, counts)
