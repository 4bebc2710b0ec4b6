"""Policies asked at every infoset of a game that declares its signals."""

from collections.abc import Iterator

import numpy as np
from open_spiel.python import policy as openspiel_policy
from tqdm import tqdm

from spiel_cr.common.arrays import ranges
from spiel_cr.games.signals.declaring.declaration import DealtReader
from spiel_cr.games.signals.game import Betting, SignalGame
from spiel_cr.games.signals.public_nodes import public_decisions
from spiel_cr.policies.array_answers import on_arrays
from spiel_cr.policies.conversions import SUM_TOLERANCE, Behaviours
from spiel_cr.policies.world_policy import MoreKnowledgeError

# Infosets that are asked about at once.
_CHUNK = 1 << 16


def behaviour_from_policy(
    signals: SignalGame, policy: openspiel_policy.Policy, *, progress: bool = False
) -> Behaviours:
    """Asks a policy at every infoset, many at once.

    Args:
      signals: a game declared by rules on arrays.
      policy: of both players; one that `array_answers.rules_of` takes.
      progress: show a bar on stderr.

    Returns:
      For each player float64 [S], action probabilities by logical sequence; infosets
      at which the policy has no answer are uniform.

    Raises:
      ValueError: the policy cannot be asked, its answers do not sum to 1, or the game
        is declared by other means.
      MoreKnowledgeError: it may depend on more than signals, see `tells_all`.
    """
    reader = signals.reader
    if not isinstance(reader, DealtReader):
        raise ValueError(f"{signals.game}: its signals are not declared on arrays")
    if not reader.tells_all():
        raise MoreKnowledgeError(
            f"{signals.game}: players may know more than their signals, such as suits "
            f"that are alike, or there are too many deals to tell, so "
            f"{type(policy).__name__} may be no strategy of signals; measure it by "
            f"responses that are searched"
        )
    total = sum(int(public_decisions(signals, p).first_infoset[-1]) for p in range(2))
    with tqdm(total=total, desc="infosets", disable=not progress) as bar:
        first, second = (
            _asked(signals, reader, policy, player, bar) for player in range(2)
        )
    return first, second


def _asked(
    signals: SignalGame,
    reader: DealtReader,
    policy: openspiel_policy.Policy,
    player: int,
    bar: tqdm,
) -> np.ndarray:
    """float64 [S], what a policy plays at a player's infosets."""
    betting, own = signals.betting, public_decisions(signals, player)
    behaviour = np.ones(own.num_sequences)
    for nodes, bets in _alike(betting, player):
        round = int(betting.round[nodes[0]])
        hands = signals.num_signals(player)[round]
        step = max(1, _CHUNK // hands)
        for begin in range(0, len(nodes), step):
            some = slice(begin, begin + step)
            states = reader.states(player, round, bets[some])
            legal = reader.rules.legal_actions_mask(states)
            answers = on_arrays(policy, reader.rules, states, player, legal)
            j = np.searchsorted(own.node, nodes[some])
            sizes = np.diff(own.first_sequence)[j]
            behaviour[ranges(own.first_sequence[j], sizes)] = answers[legal]
            bar.update(len(j) * hands)
    counts = np.repeat(own.num_actions, own.num_signals)
    total = np.add.reduceat(behaviour[1:], np.cumsum(counts) - counts)
    # Ones where there is no answer. Written so that NaN fails.
    if not ((np.abs(total - 1) <= SUM_TOLERANCE) | (total == counts)).all():
        raise ValueError(
            f"{type(policy).__name__}: at some infoset of player {player} its "
            f"probabilities do not sum to 1"
        )
    behaviour[1:] /= np.repeat(total, counts)
    return behaviour


def _alike(betting: Betting, player: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """A player's public decisions after equally many actions, with rounds alike.

    Yields:
      int64 [n], nodes, and int32 [n, m], the players' actions that lead there.
    """
    kind = np.zeros(len(betting), np.int64)
    for depth, nodes in enumerate(betting.by_depth()):
        if depth:
            above = np.stack([kind[betting.parent[nodes]], betting.round[nodes]])
            _, kind[nodes] = np.unique(above, axis=1, return_inverse=True)
        mine = nodes[betting.player[nodes] == player]
        bets, place = np.zeros((len(mine), depth), np.int32), mine
        for column in bets.T[::-1]:
            column[:] = betting.action[place]
            place = betting.parent[place]
        for number in np.unique(kind[mine]):
            chosen = kind[mine] == number
            yield mine[chosen], bets[chosen]
