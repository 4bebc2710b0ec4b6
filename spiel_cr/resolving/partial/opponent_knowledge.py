"""What may have happened at a decision, as far as each player can tell.

A partial tree that begins in the middle of a match is a game of its own: both players
know how it begins. So its roots must not be the histories that the player considers
possible at its decision, or

  - what the opponent did last would be taken for granted, as the player believes it,
    and playing otherwise would cost the opponent nothing: so the roots are where the
    opponent acted first since the player's last decision, its *turn*;
  - the opponent would know the player's infoset, all that the player hides: so the
    other histories of the opponent's infosets are roots, too.

Zhang and Sandholm 2021, "Subgame solving without common knowledge", limit subgames to
knowledge sets of low order ("who cannot tell what from what") in the same way. They
keep the player's strategy at such histories; here it is solved there, too, and then
forgotten.
"""

import itertools
from typing import NamedTuple

import numpy as np

from spiel_cr.games.histories import TERMINAL, Histories
from spiel_cr.policies.conversions import reach_from_behaviour
from spiel_cr.resolving.partial.particle_belief import (
    Belief,
    ParticleFilter,
    Step,
    join,
)
from spiel_cr.resolving.partial.solved_tree import SolvedTree

# The player is believed to do what it did with at least this probability.
_LEAST_ODDS = 1e-3
# Share of the roots of a tree made anew that only the opponent considers possible.
OPPONENT_SHARE = 0.5


class Knowledge(NamedTuple):
    """What may have happened when a player decides.

    Attributes:
      belief: the histories of its infoset (its knowledge set of order 1).
      alternatives: others, at decisions of the player with other infosets, none after
        another, at which the opponent may have seen the same as at the belief, now
        or later; weighted relative to the belief. Empty also if that is not known.
      roots: where a tree for this decision begins: the opponent's turn, or the belief,
        if the opponent has not acted since the player's last decision.
      opponent_roots: other histories that the opponent cannot tell from the roots
        (order 2), weighted relative to those; empty also if that is not known.
    """

    belief: Belief
    alternatives: Belief
    roots: Belief
    opponent_roots: Belief

    @classmethod
    def of_player(cls, belief: Belief, roots: Belief) -> "Knowledge":
        """Only what the player itself considers possible."""
        nothing = belief.select(np.zeros(0, np.int64))
        return cls(belief, nothing, roots, nothing)

    @property
    def size(self) -> int:
        """How many histories are followed from here."""
        return len(self.belief.weights) + len(self.alternatives.weights)

    @property
    def at_decision(self) -> "Knowledge":
        """The same for a tree that begins at the decision, not at the turn before."""
        seen = self.belief.nodes.observation
        alike = np.isin(self.alternatives.nodes.observation, seen)
        return self._replace(
            roots=self.belief, opponent_roots=self.alternatives.select(alike)
        )

    def draw_roots(self, most: int, random: np.random.Generator) -> Belief:
        """The roots of a tree for this decision.

        Args:
          most: roots to have at most.
          random: consumed.
        """
        others = int(OPPONENT_SHARE * most)
        if not (others and len(self.opponent_roots.weights)):
            return self.roots.resample(most, random)
        own = self.roots.resample(most - others, random)
        return join(own, self.opponent_roots.resample(others, random))


def at_start(particles: ParticleFilter) -> Knowledge:
    """At the start of the game."""
    start = Belief(particles.simulator.root(), np.ones(1))
    return Knowledge.of_player(start, start)


def at_infoset(solved: SolvedTree, infoset: int, uniform_share: float) -> Knowledge:
    """At a player's infoset of a partial tree.

    Args:
      solved: the tree and how it is played.
      infoset: the player's.
      uniform_share: share of uniform play in how both players are believed to play.
    """
    tree, player = solved.snapshot.tree, solved.player
    histories, own = tree.histories, solved.histories_of(infoset)
    first, second = (
        reach_from_behaviour(
            tree.infosets[p].decisions, solved.mixed(p, uniform_share)
        )[histories.sequence[p]]
        for p in range(2)
    )
    reach = histories.chance * first * second

    def weighted(rows: np.ndarray, weights: np.ndarray) -> Belief:
        return Belief(solved.partial.nodes(solved.snapshot.ids[rows]), weights[rows])

    # The player's own reach is the same at all histories of its infoset.
    likely = histories.chance * (first if player else second)
    if not likely[own].sum():
        likely = histories.chance
    belief = weighted(own, likely / likely[own].sum())
    turn = _turn(histories, own, player)
    roots = own if turn is None else turn
    total = reach[roots].sum()
    if not total:
        return Knowledge.of_player(belief, belief)
    knowledge = Knowledge.of_player(belief, weighted(roots, reach / total))
    opponent_roots = alternatives = np.zeros(0, np.int64)
    if histories.observations is not None:
        seen = np.isin(histories.observations, histories.observations[own])
        alike = seen & (histories.player == player)
        alternatives = _alternatives(histories, own, player, alike)
        opponent_roots = alternatives[alike[alternatives]]
    if turn is not None:
        acts = histories.player == 1 - player
        same = np.isin(histories.infoset, histories.infoset[turn])
        opponent_roots = np.setdiff1d(np.flatnonzero(acts & same), turn)
    own_reach = reach[own].sum()
    if own_reach:
        knowledge = knowledge._replace(
            alternatives=weighted(alternatives, reach / own_reach)
        )
    return knowledge._replace(opponent_roots=weighted(opponent_roots, reach / total))


def _turn(histories: Histories, own: np.ndarray, player: int) -> np.ndarray | None:
    """Where the opponent acted first since the player's last decision.

    None: the opponent has not acted before all of the histories `own`.
    """
    first, above = np.full(len(own), -1), histories.parent[own]
    while True:
        goes_on = (above >= 0) & (histories.player[above] != player)
        if not goes_on.any():
            break
        acts = goes_on & (histories.player[above] == 1 - player)
        first = np.where(acts, above, first)
        above = np.where(goes_on, histories.parent[above], -1)
    first = np.unique(first)
    return first if first[0] >= 0 else None


def _alternatives(
    histories: Histories, own: np.ndarray, player: int, alike: np.ndarray
) -> np.ndarray:
    """Histories of `Knowledge.alternatives`.

    Args:
      histories: of the tree.
      own: the histories of the player's infoset.
      player: i.
      alike: bool [N], decisions of the player at which the opponent has seen what
        it has seen at the infoset.
    """
    is_own = np.zeros(len(histories), bool)
    is_own[own] = True
    above, parents = is_own.copy(), own
    while len(parents := np.unique(histories.parent[parents])) and parents[-1] >= 0:
        parents = parents[parents >= 0]
        above[parents] = True
    # From where the opponent had seen no more than now, on to the player's next
    # decision.
    since, stays = alike & above, (histories.player == player) & ~above
    stops = is_own | (stays & alike)
    for low, high in itertools.pairwise(histories.level_start[1:].tolist()):
        parent, level = histories.parent[low:high], slice(low, high)
        stays[level] &= ~stops[parent] & (alike[level] | since[parent])
        stops[level] |= stops[parent] | stays[level]
        since[level] |= since[parent]
    return np.flatnonzero(stays)


def follow(
    particles: ParticleFilter,
    before: Knowledge,
    action: int | None,
    key: str,
) -> Knowledge | None:
    """From a decision, or the start of the game, to the player's next decision.

    Args:
      particles: follows histories for the player.
      before: what was possible there.
      action: what the player did; None at the start.
      key: its information-state string at the next decision.

    Returns:
      What is possible there; None: none of the histories that were followed leads
      there.
    """
    step = particles.step(before.belief, action, key)
    if step is None:
        return None
    roots = step.belief if step.turn is None else step.turn
    knowledge = Knowledge.of_player(step.belief, roots)
    if step.belief.nodes.observation[0] < 0:
        return knowledge
    alternatives, opponent_roots = _follow_others(particles, before, step)
    taken = 1.0
    if action is not None:
        # How likely the player was to do what it did.
        one = before.belief.nodes.select(np.arange(1))
        moves = particles.simulator.children(one.states, one.player)[0].action
        odds = particles.strategies[particles.player](one)
        taken = max(_LEAST_ODDS, float(odds[moves == action][0]))
    alternatives = alternatives.relative_to(taken * step.probability)
    opponent_roots = opponent_roots.relative_to(taken)
    if step.turn is None:
        seen = step.belief.nodes.observation
        opponent_roots = alternatives.select(
            np.isin(alternatives.nodes.observation, seen)
        )
    return Knowledge(step.belief, alternatives, roots, opponent_roots)


def _follow_others(
    particles: ParticleFilter, before: Knowledge, step: Step
) -> tuple[Belief, Belief]:
    """`Knowledge.alternatives` and `opponent_roots`, in weights of `before`."""
    seen, label = step.belief.nodes.observation, step.belief.nodes.label[0]
    # Where the opponent has seen nothing new, the player's turn goes on.
    old = np.setdiff1d(before.belief.nodes.observation, seen)
    belief = join(before.belief, before.alternatives)
    ready = np.arange(len(belief.weights)) >= len(before.belief.weights)
    found, opponent_roots = [], [belief.select(np.zeros(0, np.int64))]
    while len(belief.weights):
        nodes = belief.nodes
        own = nodes.player == particles.player
        stays = own & ready & ~np.isin(nodes.observation, old)
        found.append(belief.select(stays))
        goes_on = ~stays & ~(own & (nodes.label == label)) & (nodes.player != TERMINAL)
        belief = particles.resample(belief.select(goes_on))
        if step.turn is not None:
            nodes, turn = belief.nodes, step.turn.nodes
            others = nodes.player == 1 - particles.player
            others &= np.isin(nodes.label, turn.label)
            others &= ~np.isin(nodes.observation, turn.observation)
            opponent_roots.append(belief.select(others))
        if len(belief.weights):
            belief, _ = particles.children(belief)
        ready = belief.nodes.label != label
    alternatives = join(*found)
    alike = np.isin(alternatives.nodes.observation, seen)
    kept = [particles.resample(alternatives.select(some)) for some in (alike, ~alike)]
    return join(*kept), particles.resample(join(*opponent_roots))
