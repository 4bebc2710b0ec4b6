"""Third stage: what may have happened, followed along a match beyond a part."""

import numpy as np

from spiel_cr.compilation import numbering
from spiel_cr.partial.opponent_knowledge import Possible
from spiel_cr.partial.particle_belief import (
    Advanced,
    Belief,
    Strategy,
    advance,
    join,
    keep_some,
    select,
)
from spiel_cr.partial.simulator import Nodes, Source

# The player is believed to do what it did with this probability at least.
_LEAST_ODDS = 1e-3


class Follower:
    """Follows what is possible from one decision of a player to its next one."""

    def __init__(
        self,
        source: Source,
        player: int,
        own: Strategy,
        opponent: Strategy,
        *,
        most: int,
        neighbours: bool,
        random: np.random.Generator,
    ) -> None:
        """Follows nothing yet.

        Args:
          source: of the game.
          player: whose decisions.
          own: how the player plays.
          opponent: how the other one plays.
          most: histories to follow at a time; of more, some are drawn.
          neighbours: also follow what only the opponent thinks possible.
          random: consumed, one number a draw of histories.
        """
        self._source, self._player = source, player
        self._strategies = own, opponent
        self._most, self._neighbours, self._random = most, neighbours, random

    def root(self) -> Possible:
        """The beginning of the game."""
        start = Belief(self._source.root(), np.ones(1))
        return Possible(start, None, start, None)

    def advance(
        self, before: Possible, action: int | None, key: str
    ) -> Possible | None:
        """From a decision, or the beginning of the game, to the next decision.

        Args:
          before: what was possible there.
          action: what the player did; None at the beginning.
          key: its information-state string at the next decision.

        Returns:
          What is possible there; None: none of the histories that were followed leads
          there.
        """
        step = advance(
            *(self._source, before.belief, self._player, action, key),
            self._strategies[1],
            most=self._most,
            random=self._random,
        )
        if step is None:
            return None
        roots = step.belief if step.turn is None else step.turn
        if not self._neighbours or step.belief.nodes.told[0] < 0:
            return Possible(step.belief, None, roots, None)
        around, near = self._follow(before, step)
        taken = self._odds_of(before.belief.nodes, action)
        around, near = _scaled(around, taken * step.odds), _scaled(near, taken)
        if step.turn is None and around is not None:
            told = np.isin(around.nodes.told, step.belief.nodes.told)
            near = Belief(select(around.nodes, told), around.weights[told])
        return Possible(step.belief, around, roots, near)

    def _follow(
        self, before: Possible, step: Advanced
    ) -> tuple[Belief | None, Belief | None]:
        """What is around the next decision, and the neighbours of the turn."""
        told, here = np.unique(step.belief.nodes.told), step.belief.nodes.label[0]
        # Where the opponent was told nothing new, the player's turn goes on.
        old = np.setdiff1d(before.belief.nodes.told, told)
        nodes, weights = before.belief
        ready = np.zeros(len(weights), bool)
        if before.around is not None:
            nodes, weights = join(before.belief, before.around)
            ready = np.append(ready, np.ones(len(before.around.weights), bool))
        around: list[Belief] = []
        near: list[Belief] = []
        while len(weights):
            mine = nodes.player == self._player
            stays = mine & ready & ~np.isin(nodes.told, old)
            around.append(Belief(select(nodes, stays), weights[stays]))
            goes_on = ~stays & ~(mine & (nodes.label == here))
            goes_on &= nodes.player != numbering.TERMINAL
            nodes, weights = keep_some(
                *(select(nodes, goes_on), weights[goes_on], self._most, self._random)
            )
            if step.turn is not None:
                others = nodes.player == 1 - self._player
                others &= np.isin(nodes.label, step.turn.nodes.label)
                others &= ~np.isin(nodes.told, step.turn.nodes.told)
                near.append(Belief(select(nodes, others), weights[others]))
            if len(weights):
                nodes, weights = self._expand(nodes, weights)
            ready = nodes.label != here
        return self._some(around, told), self._some(near, None)

    def _some(self, found: list[Belief], first: np.ndarray | None) -> Belief | None:
        """As many as may be kept; of those that were told so, and of the others."""
        if not found:
            return None
        nodes, weights = join(*found)
        now = np.isin(nodes.told, nodes.told if first is None else first)
        kept = join(
            *(
                Belief(
                    *keep_some(
                        *(select(nodes, some), weights[some], self._most, self._random)
                    )
                )
                for some in (now, ~now)
            )
        )
        return kept if len(kept.weights) else None

    def _odds_of(self, nodes: Nodes, action: int | None) -> float:
        """How likely the player was to do what it did."""
        if action is None:
            return 1.0
        moves = self._source.children(nodes.handles[:1], nodes.player[:1])[0].action
        odds = self._strategies[0](nodes.label[:1], nodes.legal[:1])[moves == action]
        return max(_LEAST_ODDS, float(odds[0]))

    def _expand(self, nodes: Nodes, weights: np.ndarray) -> Belief:
        """The children of histories that go on."""
        children, where = self._source.children(nodes.handles, nodes.player)
        odds = children.factor.copy()
        movers = self._player, 1 - self._player
        for mover, strategy in zip(movers, self._strategies, strict=True):
            acts = nodes.player == mover
            if acts.any():
                odds[acts[where]] = strategy(nodes.label[acts], nodes.legal[acts])
        return Belief(children, weights[where] * odds)


def _scaled(belief: Belief | None, unit: float) -> Belief | None:
    return None if belief is None else Belief(belief.nodes, belief.weights / unit)
