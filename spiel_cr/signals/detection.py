"""Finds the signal form of a compiled game, or says why it has none.

Histories with the same players' actions are one public node, chance moves are deals. A
player's signal is what its infosets tell it of the deal: at every node of a round they
must tell the same. Payoff matrices of leaves that are proportional share a kernel. All
payoffs are then built again from the signal form and compared to the compiled ones.
"""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from spiel_cr.compilation.tree import CHANCE, TERMINAL, CompiledGame
from spiel_cr.sequence_form.decisions import Payoffs, sum_payoffs
from spiel_cr.signals.deal_reader import DealReader, Deals
from spiel_cr.signals.game import Betting, SignalGame, SparseKernel, Terms

# How closely payoffs are rebuilt, in units of the largest one.
TOLERANCE = 1e-12
# Matrices whose entries agree that well, largest entry 1, share a kernel.
_GRID = 1e-9


class Detected(NamedTuple):
    """A signal game, and where the compiled game's infosets are in it.

    Attributes:
      game: the signal game.
      infosets: for each player int32 [I], the signal form's infoset of each compiled
        one. The signal form numbers a player's infosets by its public decisions in
        order of nodes, then by signals.
      sequences: for each player int32 [S], the same for sequences.
    """

    game: SignalGame
    infosets: tuple[np.ndarray, np.ndarray]
    sequences: tuple[np.ndarray, np.ndarray]


def detect(tree: CompiledGame) -> SignalGame:
    """The signal form of a compiled game.

    Args:
      tree: a whole game.

    Raises:
      ValueError: the game has no signal form; the message says why.
    """
    return locate(tree).game


def locate(tree: CompiledGame) -> Detected:
    """The signal form of a compiled game, and what is what.

    Args:
      tree: a whole game.

    Raises:
      ValueError: the game has no signal form; the message says why.
    """
    if tree.frontier is not None:
        raise ValueError(
            f"{tree.game} is compiled in part only, so its signal form cannot be "
            f"found; compile it whole"
        )
    table = _table(tree)
    betting = _betting(table)
    signals, parents = _signals(table)
    kernels, terms = _factors(table, signals)
    reader = _reader(table, signals)
    game = SignalGame(tree.game, betting, parents, kernels, terms, reader)
    game.check()
    detected = _located(table, game, signals)
    _compare(tree, detected)
    return detected


class _Paths(NamedTuple):
    """Histories by the moves of some movers only.

    Attributes:
      node: int32 [N], the node of each history: equal for equal lists of these moves.
      parent, action, depth: int32 [n], of each node; ordered by depth, then parent,
        then action. -1, -1 and 0 at node 0.
    """

    node: np.ndarray
    parent: np.ndarray
    action: np.ndarray
    depth: np.ndarray


class _Round(NamedTuple):
    """What lies between two deals.

    Attributes:
      nodes: int32 [n], its public nodes, ascending.
      deals: int32 [D], what can be dealt by then, nodes of `_Table.deals`, ascending.
      history: int32 [n, D], the history of each node and deal.
      chance: float64 [D], the probability of each deal.
    """

    nodes: np.ndarray
    deals: np.ndarray
    history: np.ndarray
    chance: np.ndarray


@dataclasses.dataclass(frozen=True)
class _Table:
    """A game by public nodes and deals.

    Attributes:
      tree: the compiled game.
      public: by the players' moves.
      deals: by chance moves.
      player: int8 [P], who acts at each public node.
      rounds: top to bottom.
    """

    tree: CompiledGame
    public: _Paths
    deals: _Paths
    player: np.ndarray
    rounds: tuple[_Round, ...]

    def refusal(self, why: str, *nodes: int) -> ValueError:
        """The error to raise.

        Args:
          why: with a {} for each node.
          nodes: public nodes.
        """
        named = []
        for node in nodes:
            moves = self.moves_to(int(node))
            named.append(f"the players' actions {moves}" if moves else "no action")
        return ValueError(
            f"{self.tree.game} is no signal game: {why.format(*named)}; solve it in "
            f"its compiled form"
        )

    def moves_to(self, node: int) -> list[int]:
        """The players' actions to a public node."""
        moves: list[int] = []
        while node:
            moves.insert(0, int(self.public.action[node]))
            node = int(self.public.parent[node])
        return moves


def _paths(tree: CompiledGame, counts: Callable[[np.ndarray], np.ndarray]) -> _Paths:
    """Histories by some of the moves.

    Args:
      tree: the game.
      counts: whether the moves of these movers (integers [n]) are among them.
    """
    histories = tree.histories
    size = len(histories)
    # The last history on the way that such a move led to, and how many there were.
    last, depth = np.zeros(size, np.int32), np.zeros(size, np.int32)
    for level in histories.by_depth[1:]:
        above = histories.parent[level]
        chosen = counts(histories.player[above])
        index = np.arange(level.start, level.stop, dtype=np.int32)
        last[level] = np.where(chosen, index, last[above])
        depth[level] = depth[above] + chosen
    ends = np.flatnonzero(last == np.arange(size))[1:]
    node_of = np.zeros(size, np.int32)
    lowest = int(histories.action.min())
    width = int(histories.action.max()) - lowest + 1
    parents, actions, depths = [np.array([-1])], [np.array([-1])], [np.array([0])]
    begin = 1
    by_depth = ends[np.argsort(depth[ends], kind="stable")]
    changes = np.flatnonzero(np.diff(depth[by_depth])) + 1
    for rows in np.split(by_depth, changes) if len(ends) else ():
        above = node_of[last[histories.parent[rows]]].astype(np.int64)
        keys, number = np.unique(
            above * width + (histories.action[rows].astype(np.int64) - lowest),
            return_inverse=True,
        )
        node_of[rows] = begin + number
        parents.append(keys // width)
        actions.append(keys % width + lowest)
        depths.append(np.full(len(keys), len(depths)))
        begin += len(keys)
    parent, action, moves = (
        np.concatenate(part).astype(np.int32) for part in (parents, actions, depths)
    )
    return _Paths(node_of[last], parent, action, moves)


def _table(tree: CompiledGame) -> _Table:
    """Sorts the histories; refuses games whose actions are not public."""
    histories = tree.histories
    public = _paths(tree, lambda player: player >= 0)
    deals = _paths(tree, lambda player: player == CHANCE)
    table = _Table(tree, public, deals, np.zeros(0, np.int8), ())
    for player, own in enumerate(tree.infosets):
        at = np.flatnonzero(histories.player == player)
        node = np.full(len(own), -1, np.int32)
        node[histories.infoset[at]] = public.node[at]
        odd = np.flatnonzero(node[histories.infoset[at]] != public.node[at])
        if len(odd):
            one, other = node[histories.infoset[at[odd[0]]]], public.node[at[odd[0]]]
            raise table.refusal(
                f"player {player} does not see every action of the other player; it "
                f"cannot tell {{}} from {{}}",
                *sorted((one, other)),
            )
    places = np.flatnonzero(histories.player != CHANCE)
    order = places[np.lexsort((deals.node[places], public.node[places]))]
    at = public.node[order]
    count = np.bincount(at, minlength=len(public.parent))
    start = np.cumsum(count) - count
    player = histories.player[order[start]]
    dealt = deals.depth[deals.node[order[start]]]
    one = np.flatnonzero(histories.player[order] != player[at])
    if len(one):
        raise table.refusal("who acts after {} depends on the deal", at[one[0]])
    one = np.flatnonzero(deals.depth[deals.node[order]] != dealt[at])
    if len(one):
        raise table.refusal("how much is dealt after {} depends on it", at[one[0]])
    table = dataclasses.replace(table, player=player)
    _check_actions(table, order, start)
    rounds = []
    for moves in np.unique(dealt):
        nodes = np.flatnonzero(dealt == moves).astype(np.int32)
        size = int(count[nodes[0]])
        odd = np.flatnonzero(count[nodes] != size)
        if not len(odd):
            history = order[start[nodes][:, None] + np.arange(size)].astype(np.int32)
            dealt_at, chance = deals.node[history], histories.chance[history]
            off = np.abs(chance - chance[0]) > TOLERANCE * chance[0]
            odd = np.flatnonzero(((dealt_at != dealt_at[0]) | off).any(axis=1))
        if len(odd):
            raise table.refusal(
                "what chance deals depends on the players' actions: it is not the same "
                "after {} and after {}",
                nodes[0],
                nodes[odd[0]],
            )
        rounds.append(_Round(nodes, dealt_at[0], history, chance[0]))
    return dataclasses.replace(table, rounds=tuple(rounds))


def _check_actions(table: _Table, order: np.ndarray, start: np.ndarray) -> None:
    """Refuses games whose legal actions are no public knowledge.

    Args:
      table: without rounds.
      order: integers [n], histories that are no chance nodes, by public node.
      start: integers [P], where those of each node begin.
    """
    public, tree = table.public, table.tree
    children = np.bincount(public.parent[1:], minlength=len(public.parent))
    for player, own in enumerate(tree.infosets):
        node = public.node[own.history]
        actions = own.decisions.num_actions
        odd = np.flatnonzero(actions != children[node])
        if len(odd):
            raise table.refusal(
                f"what player {player} may do after {{}} depends on its cards",
                node[odd[0]],
            )
        first = np.searchsorted(public.parent[1:], node)
        before = np.cumsum(actions) - actions
        rank = np.arange(len(own.actions)) - np.repeat(before, actions)
        odd = np.flatnonzero(
            public.action[1 + np.repeat(first, actions) + rank] != own.actions
        )
        if len(odd):
            raise table.refusal(
                f"the actions of player {player} after {{}} are not in ascending order",
                np.repeat(node, actions)[odd[0]],
            )


def _betting(table: _Table) -> Betting:
    rounds = np.zeros(len(table.player), np.int8)
    for number, part in enumerate(table.rounds):
        rounds[part.nodes] = number
    public = table.public
    return Betting(table.player, public.parent, public.action, rounds)


Signals = tuple[list[np.ndarray], list[np.ndarray]]


def _signals(
    table: _Table,
) -> tuple[Signals, tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]]:
    """What each deal tells each player.

    Returns:
      For each player and round int32 [D], the signal of each deal; and `parents` of
      the signal game.
    """
    signals: Signals = ([], [])
    parents: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    deals = Deals(table.deals.parent, table.deals.action)
    for number, part in enumerate(table.rounds):
        before = _deals_before(table, number)
        outcomes = deals.outcomes(part.deals)
        for player in range(2):
            above = signals[player][-1][before] if number else np.zeros(1, np.int32)
            above = np.broadcast_to(above, len(part.deals))
            first, signal = _known(table, part, player, above, outcomes)
            signals[player].append(signal.astype(np.int32))
            parents[player].append(above[first].astype(np.int32))
    return signals, (tuple(parents[0]), tuple(parents[1]))


def _known(
    table: _Table, part: _Round, player: int, above: np.ndarray, outcomes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What the deals of one round tell one player.

    Args:
      table: the game.
      part: the round.
      player: whose signals.
      above: integers [D], the signals of the round before.
      outcomes: int32 [D, m], of each deal.

    Returns:
      integers [H], a deal that gives each signal, and integers [D], the signals.
    """
    rows = np.flatnonzero(table.player[part.nodes] == player)
    if not len(rows):
        return np.unique(above, return_index=True, return_inverse=True)[1:]
    known = table.tree.histories.infoset[part.history[rows]]
    _, first, signal = np.unique(known[0], return_index=True, return_inverse=True)
    rank = np.argsort(_order(outcomes, signal, first))
    signal, first = rank[signal], first[np.argsort(rank)]
    shown = known[:, first]
    odd = (known != shown[:, signal]).any(axis=1)
    # A node at which the player knows less gives one infoset to several signals.
    ordered = np.sort(shown, axis=1)
    odd |= (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    if odd.any():
        raise table.refusal(
            f"player {player} does not know the same of the deal after {{}} and after "
            f"{{}}",
            part.nodes[rows[0]],
            part.nodes[rows[np.argmax(odd)]],
        )
    if (above != above[first][signal]).any():
        raise table.refusal(
            f"player {player} knows less of the deal after {{}} than in the round "
            f"before",
            part.nodes[rows[0]],
        )
    return first, signal


def _order(outcomes: np.ndarray, signal: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Signals by the outcomes that they tell for sure, then by their first deals.

    Args:
      outcomes: int32 [D, m], of each deal.
      signal: integers [D], the signal of each deal.
      first: integers [H], the first deal of each signal.

    Returns:
      integers [H], signals in their new order.
    """
    same = np.ones((len(first), outcomes.shape[1]), bool)
    np.logical_and.at(same, signal, outcomes == outcomes[first][signal])
    sure = np.where(same, outcomes[first], -1)
    return np.lexsort((first, *sure.T[::-1]))


def _deals_before(table: _Table, number: int) -> np.ndarray:
    """integers [D], for each deal of a round the deal of the round before it."""
    part = table.rounds[number]
    if not number:
        return np.zeros(len(part.deals), int)
    earlier = table.rounds[number - 1].deals
    deals, depth = part.deals, int(table.deals.depth[earlier[0]])
    for _ in range(int(table.deals.depth[deals[0]]) - depth):
        deals = table.deals.parent[deals]
    place = np.minimum(np.searchsorted(earlier, deals), len(earlier) - 1)
    if (earlier[place] != deals).any():
        raise table.refusal(
            "what chance deals depends on the players' actions: after {} there are "
            "cards that cannot come after {}",
            part.nodes[0],
            table.rounds[number - 1].nodes[0],
        )
    return place


def _factors(table: _Table, signals: Signals) -> tuple[tuple[SparseKernel, ...], Terms]:
    """The payoff matrices of leaves as kernels times stakes."""
    kernels: list[SparseKernel] = []
    leaves, numbers, stakes = [], [], []
    for number, part in enumerate(table.rounds):
        rows = np.flatnonzero(table.player[part.nodes] == TERMINAL)
        shape = tuple(int(signals[p][number].max()) + 1 for p in range(2))
        pairs, pair = np.unique(
            signals[0][number].astype(np.int64) * shape[1] + signals[1][number],
            return_inverse=True,
        )
        by_pair = np.argsort(pair, kind="stable")
        begins = np.searchsorted(pair[by_pair], np.arange(len(pairs)))
        utility = table.tree.histories.utility[part.history[rows]]
        matrices = np.add.reduceat((utility * part.chance)[:, by_pair], begins, axis=1)
        size = np.abs(matrices).max(axis=1, initial=0)
        rows, utility, matrices, size = (
            array[size > 0] for array in (rows, utility, matrices, size)
        )
        normal = matrices / size[:, None]
        leading = np.argmax(np.abs(normal) > _GRID, axis=1)
        sign = np.sign(normal[np.arange(len(rows)), leading])
        # The odd offset keeps round numbers away from the edges of the grid.
        grid = np.floor(normal * sign[:, None] / _GRID + 0.31).astype(np.int64)
        known: dict[bytes, tuple[int, float]] = {}
        for k in range(len(rows)):
            key = grid[k].tobytes()
            if key not in known:
                unit = float(np.abs(utility[k]).max())
                known[key] = len(kernels), unit / size[k]
                some = np.flatnonzero(matrices[k])
                first, second = np.divmod(pairs[some], shape[1])
                values = sign[k] * matrices[k, some] / unit
                entries = Payoffs(
                    first.astype(np.int32), second.astype(np.int32), values
                )
                kernels.append(SparseKernel(number, (shape[0], shape[1]), entries))
            kernel, units = known[key]
            numbers.append(kernel)
            stakes.append(sign[k] * size[k] * units)
        leaves.append(part.nodes[rows])
    terms = Terms(
        np.concatenate(leaves).astype(np.int32),
        np.array(numbers, np.int32),
        np.array(stakes, np.float64),
    )
    order = np.argsort(terms.leaf, kind="stable")
    return tuple(kernels), Terms(*(array[order] for array in terms))


def _reader(table: _Table, signals: Signals) -> DealReader:
    of_deal = np.full((2, len(table.deals.parent)), -1, np.int32)
    for number, part in enumerate(table.rounds):
        for player in range(2):
            of_deal[player, part.deals] = signals[player][number]
    return DealReader(
        table.tree.game,
        Deals(table.deals.parent, table.deals.action),
        (of_deal[0], of_deal[1]),
        tuple(part.deals for part in table.rounds),
        tuple(tuple(table.moves_to(int(part.nodes[0]))) for part in table.rounds),
    )


def _located(table: _Table, game: SignalGame, signals: Signals) -> Detected:
    """Numbers of infosets and sequences in both forms."""
    betting = game.betting
    children = np.bincount(betting.parent[1:], minlength=len(betting))
    infosets, sequences = [], []
    for player, own in enumerate(table.tree.infosets):
        hands = np.array(game.num_signals(player))[betting.round]
        hands = np.where(betting.player == player, hands, 0)
        before = np.cumsum(hands) - hands
        node = table.public.node[own.history]
        deal = table.deals.node[own.history]
        signal = np.zeros(len(own), np.int64)
        for number, part in enumerate(table.rounds):
            here = np.flatnonzero(betting.round[node] == number)
            signal[here] = signals[player][number][
                np.searchsorted(part.deals, deal[here])
            ]
        place = before[node] + signal
        infosets.append(place.astype(np.int32))
        # All signals of a node have as many actions.
        actions = children[node]
        count = np.empty(len(own), np.int64)
        count[place] = actions
        first = 1 + np.cumsum(count) - count
        begin = own.decisions.first_sequence
        rank = np.arange(1, own.decisions.num_sequences) - np.repeat(begin, actions)
        mapped = np.repeat(first[place], actions) + rank
        sequences.append(np.append(0, mapped).astype(np.int32))
    return Detected(game, (infosets[0], infosets[1]), (sequences[0], sequences[1]))


def _compare(tree: CompiledGame, detected: Detected) -> None:
    """Builds all payoffs again and raises ValueError where they differ."""
    game = detected.game
    rows, columns, values = [], [], []
    for number, kernel in enumerate(game.kernels):
        own = np.flatnonzero(game.terms.kernel == number)
        leaf, stake = game.terms.leaf[own], game.terms.stake[own]
        first, second, entries = kernel.coordinates()
        rows.append(_sequences_at(detected, 0, leaf)[:, first].ravel())
        columns.append(_sequences_at(detected, 1, leaf)[:, second].ravel())
        values.append((stake[:, None] * entries).ravel())
    payoffs = tree.form.payoffs
    back = [np.argsort(sequences) for sequences in detected.sequences]
    difference = sum_payoffs(
        np.concatenate([*(back[0][part] for part in rows), payoffs.rows]),
        np.concatenate([*(back[1][part] for part in columns), payoffs.columns]),
        np.concatenate([*values, -payoffs.values]),
    ).values
    worst = np.abs(difference).max(initial=0)
    if not worst <= TOLERANCE * np.abs(payoffs.values).max(initial=0):
        raise ValueError(
            f"{tree.game} is no signal game: payoffs that are built from public "
            f"actions and deals are off by {worst:.1e}; solve it in its compiled form"
        )


def _sequences_at(detected: Detected, player: int, leaves: np.ndarray) -> np.ndarray:
    """int64 [T, H], the signal form's last own sequence at leaves of one round."""
    game = detected.game
    betting = game.betting
    counts = np.array(game.num_signals(player))
    hands = np.where(betting.player == player, counts[betting.round], 0)
    children = np.bincount(betting.parent[1:], minlength=len(betting))
    first = 1 + np.cumsum(hands * children) - hands * children
    round_ = int(betting.round[leaves[0]])
    found = np.zeros((len(leaves), counts[round_]), np.int64)
    below, node = leaves, betting.parent[leaves]
    open_ = np.arange(len(leaves))
    while len(open_):
        mine = betting.player[node] == player
        for above in np.unique(betting.round[node[mine]]):
            here = np.flatnonzero(mine & (betting.round[node] == above))
            at, move = node[here], below[here]
            signal = game.ancestors(player, round_, int(above))
            rank = move - 1 - np.searchsorted(betting.parent[1:], at)
            found[open_[here]] = (
                first[at][:, None] + children[at][:, None] * signal + rank[:, None]
            )
        going = np.flatnonzero(~mine & (betting.parent[node] >= 0))
        open_, below = open_[going], node[going]
        node = betting.parent[below]
    return found
