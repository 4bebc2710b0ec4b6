"""Differences between two policies, and the value of each of them."""

import dataclasses
import html

import numpy as np

from spiel_cr.common.checks import check_choice
from spiel_cr.common.memory import Limit
from spiel_cr.common.messages import listening, number_text
from spiel_cr.evaluation.opponent import open_opponent
from spiel_cr.games.tree.tree_builder import Game, as_tree
from spiel_cr.players.player_specs import PolicyLike, check_order
from spiel_cr.policies import conversions, infoset_reach
from spiel_cr.policies.best_responses import reach_of, value_bounds

# Smallest share of matches of a clear difference at an infoset.
_CLEAR = 0.01


@dataclasses.dataclass(frozen=True)
class Difference:
    """An infoset at which two policies differ.

    Attributes:
      player: The acting player.
      infoset: OpenSpiel's information state string, in one line.
      actions: OpenSpiel's names of the actions.
      first, second: Probabilities of the actions under each policy.
      disagreement: Probability that play reaches the infoset and the policies choose
        different actions there (total variation), if the player follows the second
        policy and the opponent follows the first one.
      gain: Gain of the second policy's probabilities at the infoset, in the player's
        utility. The player follows the second policy before, and the first one
        afterwards; the opponent follows the first one.
    """

    player: int
    infoset: str
    actions: tuple[str, ...]
    first: tuple[float, ...]
    second: tuple[float, ...]
    disagreement: float
    gain: float


@dataclasses.dataclass(frozen=True)
class Differences:
    """The infosets at which two policies of a game differ, and totals over them.

    Attributes:
      gains: Gain of each player from changing to the second policy while the opponent
        follows the first one, in that player's utility. It is the sum of
        `Difference.gain` over all infosets of the player.
      nash_conv: Exact NashConv of the first and of the second policy.
      infosets: Number of infosets of both players at which the policies differ.
      rows: The listed infosets, in the order of `sort`.
      clear: Number of infosets with a `Difference.disagreement` above 1%.
    """

    gains: tuple[float, float]
    nash_conv: tuple[float, float]
    infosets: int
    rows: tuple[Difference, ...]
    clear: int

    def __str__(self) -> str:
        gains = ", ".join(
            f"player {p} {number_text(g, '+.3g')}" for p, g in enumerate(self.gains)
        )
        nash_convs = " and ".join(number_text(one, ".2e") for one in self.nash_conv)
        lines = [
            f"{self.infosets:,} infosets differ, {self.clear:,} in more than 1% of "
            f"matches; gains by the second policy against the first one: {gains}; "
            f"NashConv {nash_convs}"
        ]
        for row in self.rows:
            both = zip(row.actions, row.first, row.second, strict=True)
            played = ", ".join(f"{name} {a:.0%} → {b:.0%}" for name, a, b in both)
            gain = number_text(row.gain, "+.2g")
            size = f"gain {gain}, disagreement {row.disagreement:.2%}"
            lines.append(f"player {row.player}, {row.infoset}: {played}; {size}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def differences(
    game: Game,
    first: PolicyLike,
    second: PolicyLike,
    *,
    sort: str = "gain",
    most: int = 10,
    memory_limit: Limit = None,
    progress: bool | None = None,
) -> Differences:
    """List the infosets where two policies differ most, with the gain of each.

    The gain of another strategy is the sum, over the player's infosets, of the new
    strategy's reach times the gain of its probabilities there under the old one
    (performance difference lemma; Kakade & Langford 2002). All values are exact.

    Args:
      game: OpenSpiel game string, game, or game tree.
      first: The first policy: an OpenSpiel policy, a result, or a string, as for
        `nash_conv`.
      second: The second policy.
      sort: Order of the infosets: "gain", by the size of the gain or loss, or
        "disagreement", by the probability of different actions in a match.
      most: Maximum number of infosets to list.
      memory_limit: Largest memory for the game tree, as in `solve`.
      progress: Whether to show progress on stderr. If None, after ten seconds if stderr
        is a terminal.

    Returns:
      The differences; `print` shows them as lines of text.

    Raises:
      GameTooLargeError: If the game tree does not fit into memory.
      ValueError: If an argument is not a policy of the game.

    Example:
      >>> import spiel_cr
      >>> result = spiel_cr.solve("kuhn_poker", "cfr+", 100)
      >>> spiel_cr.differences("kuhn_poker", "uniform", result).infosets
      12
    """
    check_order(game, first, "differences(game, first, second)")
    check_choice(sort, "sort", ("gain", "disagreement"))
    with listening(progress):
        tree = as_tree(game, observations=True, memory_limit=memory_limit)
        old, new = (
            open_opponent(policy, tree, other_forms=False).strategy()
            for policy in (first, second)
        )
    of_actions, _ = conversions.action_values(tree, old)
    reach_old, reach_new = (reach_of(tree.sequence_form, one) for one in (old, new))
    disagreement, gain, rows = [], [], []
    for player, infosets in enumerate(tree.infosets):
        decisions = infosets.decisions
        change = (new[player] - old[player])[1:]
        owner, count = decisions.owner[1:], len(infosets)
        on_the_way = reach_new[player][decisions.parent]
        gained = np.bincount(owner, change * of_actions[player][1:], minlength=count)
        moved = np.bincount(owner, np.abs(change), minlength=count) / 2
        others = infoset_reach.others_reach(tree, player, reach_old[1 - player])
        disagreement.append(on_the_way * others * moved)
        gain.append(on_the_way * gained)
    size = disagreement if sort == "disagreement" else [np.abs(one) for one in gain]
    for player, infoset in infoset_reach.greatest(size, most):
        key, sequences, names = infoset_reach.described(tree, player, infoset)
        before, after = (tuple(one[player][sequences].tolist()) for one in (old, new))
        figures = (float(one[player][infoset]) for one in (disagreement, gain))
        rows.append(Difference(player, key, names, before, after, *figures))
    (low, high), (low_new, high_new) = (
        value_bounds(tree.sequence_form, s) for s in (old, new)
    )
    return Differences(
        (float(gain[0].sum()), float(gain[1].sum())),
        (high - low, high_new - low_new),
        int(sum((one > 0).sum() for one in disagreement)),
        tuple(rows),
        int(sum((one > _CLEAR).sum() for one in disagreement)),
    )
