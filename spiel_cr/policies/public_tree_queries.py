"""Policies asked at every infoset of a game that declares its signals."""

from collections.abc import Iterator

import numpy as np
from open_spiel.python import policy as openspiel_policy
from tqdm import tqdm

from spiel_cr.common.arrays import ranges
from spiel_cr.games.public_tree.declaring.declaration import DealtReader
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.public_tree.public_nodes import Betting
from spiel_cr.policies import array_answers
from spiel_cr.policies.conversions import SUM_TOLERANCE, Behaviours, member, named
from spiel_cr.policies.phantom_policy import MoreKnowledgeError

# Infosets that are asked about at once.
_CHUNK = 1 << 16


def behaviour_from_policy(
    signals: PublicTreeGame, policy: openspiel_policy.Policy, *, progress: bool = False
) -> Behaviours:
    """Query a policy at every infoset, many at once if it supports that.

    Args:
      signals: A game that is declared by batched rules.
      policy: A policy of both players. One that cannot be queried for arrays of states
        is queried state by state, at two deals for each infoset.
      progress: Whether to show a progress bar on stderr.

    Returns:
      For each player float64 [S], action probabilities by logical sequence; infosets
      that a sampled table of spiel_cr has not visited are uniform.

    Raises:
      ValueError: If an answer is not a distribution over the legal actions, or the game
        is declared by other means.
      InvalidPolicyError: If two answers at one infoset differ.
      MoreKnowledgeError: If the policy may depend on more than private states, see
        `tells_all`.
    """
    reader = signals.reader
    if not isinstance(reader, DealtReader):
        raise ValueError(f"{signals.game}: its signals are not declared on arrays")
    if not reader.tells_all():
        raise MoreKnowledgeError(
            f"{signals.game}: players may know more than their signals, such as suits "
            f"that are alike, or there are too many deals to tell, so "
            f"{named(policy)} may be no strategy of signals; measure it by "
            f"responses that are searched"
        )
    total = sum(int(signals.public_decisions[p].first_infoset[-1]) for p in range(2))
    with tqdm(total=total, desc="infosets", disable=not progress) as bar:
        first, second = (
            _asked(signals, reader, member(policy, player), player, bar)
            for player in range(2)
        )
    return first, second


def _asked(
    signals: PublicTreeGame,
    reader: DealtReader,
    policy: openspiel_policy.Policy,
    player: int,
    bar: tqdm,
) -> np.ndarray:
    """float64 [S], what a policy plays at a player's infosets."""
    betting, own = signals.betting, signals.public_decisions[player]
    at_once = array_answers.rules_of(signals.game, policy, (player,)) is not None
    random = np.random.default_rng(0)
    behaviour = np.ones(own.num_sequences)
    for nodes, bets in _alike(betting, player):
        round = int(betting.round[nodes[0]])
        hands = signals.num_private_states(player)[round]
        step = max(1, _CHUNK // hands)
        for begin in range(0, len(nodes), step):
            some = slice(begin, begin + step)
            states = reader.states(player, round, bets[some])
            legal = reader.rules.legal_actions_mask(states)
            if at_once:
                answers = array_answers.on_arrays(
                    policy, reader.rules, states, player, legal
                )
            else:
                answers = np.zeros(legal.shape)
                deals = [reader.examples[player][round]]
                if not getattr(policy, "by_string", True):
                    deals.append(reader.random_examples(player, round, random))
                for deal in deals:
                    _by_states(reader, policy, deal, bets[some], answers, bar)
            j = np.searchsorted(own.node, nodes[some])
            sizes = np.diff(own.first_sequence)[j]
            behaviour[ranges(own.first_sequence[j], sizes)] = answers[legal]
            bar.update(len(j) * hands if at_once else 0)
    counts = np.repeat(own.num_actions, own.num_private_states)
    total = np.add.reduceat(behaviour[1:], np.cumsum(counts) - counts)
    # Ones where there is no answer. Written so that NaN fails.
    if not ((np.abs(total - 1) <= SUM_TOLERANCE) | (total == counts)).all():
        raise ValueError(
            f"{named(policy)}: at some infoset of player {player} its "
            f"probabilities do not sum to 1"
        )
    behaviour[1:] /= np.repeat(total, counts)
    return behaviour


def _by_states(
    reader: DealtReader,
    policy: openspiel_policy.Policy,
    deals: np.ndarray,
    bets: np.ndarray,
    answers: np.ndarray,
    bar: tqdm,
) -> None:
    """Query a policy state by state, after each of some bets with each of some deals.

    Args:
      reader: Plays to the states.
      policy: The policy.
      deals: int [H, n], chance outcomes for each private state.
      bets: int [m, k], actions of the players.
      answers: float64 [m * H, A], filled in.
      bar: Counts the queries.
    """
    rows = ((made, deal) for made in bets for deal in deals)
    for row, (made, deal) in zip(answers, rows, strict=True):
        state = reader.state_after(deal, made)
        for action, probability in policy.action_probabilities(state).items():
            row[action] = probability
        bar.update()


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
