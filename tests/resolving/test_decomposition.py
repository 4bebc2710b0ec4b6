"""Decomposition of a game into layers, augmented infosets and subgames.

The decomposition is compared with plain loops over OpenSpiel's states. `test_gadget.py`
tests the gadget games that are built from it.
"""

import functools

import pytest

from spiel_cr.games.tree import tree_builder
from spiel_cr.resolving import decomposition
from tests.support import games, made_games, reference
from tests.support.made_games import CHANCE, TERMINAL, MadeGame, Node

PLAYERS = (0, 1)
# Sums of doubles.
TOLERANCE = 1e-12
CUT = ("kuhn", "leduc", "goofspiel4", "leduc7", "dark_hex", "princess4", "nim")
every_cut = pytest.mark.parametrize(
    ("name", "player"), [(n, p) for n in CUT for p in PLAYERS]
)


@functools.cache
def cut(name: str, player: int) -> decomposition.Decomposition:
    return decomposition.decompose(games.compiled(name), player)


class Brute:
    """Layers, augmented infosets and subgames by plain loops over a game's nodes."""

    def __init__(self, tree: reference.Tree, player: int, *, by_turns: bool) -> None:
        self.tree, self.player = tree, player
        nodes = tree.nodes
        parent = {c: i for i, n in enumerate(nodes) for c in n.children.values()}
        self.layer, self.anchor = [0] * len(nodes), [-1] * len(nodes)
        last = [None] * len(nodes)
        for i, node in enumerate(nodes):
            if i in parent:
                up = parent[i]
                self.layer[i], self.anchor[i] = self.layer[up], self.anchor[up]
                decided = nodes[up].key is not None
                last[i] = nodes[up].player if decided else last[up]
            if node.player == player and not (by_turns and last[i] == player):
                self.layer[i] += 1
                self.anchor[i] = i
        self.roots = [i for i in range(len(nodes)) if self.anchor[i] == i]
        self.above = {
            r: self.anchor[parent[r]] if r in parent else -1 for r in self.roots
        }
        self._augmented()
        self._subgames()

    def other(self, index: int):
        return self.tree.nodes[index].sequences[1 - self.player]

    def _augmented(self) -> None:
        """Merge roots that o cannot distinguish, until nothing changes."""
        nodes, o = self.tree.nodes, 1 - self.player
        self.augmented = {r: r for r in self.roots}

        def merge(groups) -> bool:
            changed = False
            for group in groups:
                lowest = min(self.augmented[r] for r in group)
                joined = {self.augmented[r] for r in group}
                if len(joined) > 1:
                    changed = True
                    for r in self.roots:
                        if self.augmented[r] in joined:
                            self.augmented[r] = lowest
            return changed

        def grouped(pairs):
            groups: dict = {}
            for key, root in pairs:
                groups.setdefault(key, []).append(root)
            return groups.values()

        merge(
            grouped(
                ((self.layer[r], self.other(r), nodes[r].observations[o]), r)
                for r in self.roots
            )
        )
        met = [
            (node.key, self.anchor[i])
            for i, node in enumerate(nodes)
            if node.player == o
            and self.anchor[i] >= 0
            and self.other(i) == self.other(self.anchor[i])
        ]
        while True:
            further = [
                (self.augmented[r], self.above[r])
                for r in self.roots
                if self.above[r] >= 0 and self.other(r) == self.other(self.above[r])
            ]
            if not merge([*grouped(met), *grouped(further)]):
                return

    def _subgames(self) -> None:
        """Compute connected components by propagating labels."""
        nodes = self.tree.nodes
        label = {r: r for r in self.roots}
        changed = True
        while changed:
            changed = False
            for names in (self.augmented, {r: nodes[r].key for r in self.roots}):
                lowest: dict = {}
                for r in self.roots:
                    lowest[names[r]] = min(label[r], lowest.get(names[r], r))
                for r in self.roots:
                    if label[r] != lowest[names[r]]:
                        label[r], changed = lowest[names[r]], True
        self.subgame = label


def brute_of(name: str, player: int) -> Brute:
    """Return the brute-force decomposition, by turns if `decompose` uses turns."""
    d = cut(name, player)
    tree = reference.Tree(games.compiled(name).game)
    return Brute(tree, player, by_turns=not d.opens.all())


def same_partition(left, right) -> bool:
    pairs = set(zip(left, right, strict=True))
    return len(pairs) == len(set(left)) == len(set(right))


def check_against_brute(compiled, d, brute) -> None:
    player, tree = d.player, brute.tree
    index_of = {node.path: i for i, node in enumerate(tree.nodes)}
    histories = compiled.histories
    at = [index_of[tuple(histories.actions_to(h))] for h in range(len(histories))]
    for p, layers in ((player, d.player_layer), (1 - player, d.other_layer)):
        for i, key in enumerate(compiled.infosets[p].keys):
            members = tree.infosets[p, key]
            # Each infoset belongs to exactly one layer.
            assert {brute.layer[m] for m in members} == {layers[i]}
            if p == player:
                opens = {brute.anchor[m] == m for m in members}
                assert opens == {bool(d.opens[i])}
    assert d.num_layers == max(brute.layer)
    terminals = [h for h in range(len(at)) if tree.nodes[at[h]].player == TERMINAL]
    assert list(d.terminals) == terminals
    assert list(d.layer[d.terminals]) == [brute.layer[at[t]] for t in terminals]

    # Subgames cover all roots; they are the connected components.
    roots = [h for h in range(len(at)) if brute.anchor[at[h]] == at[h]]
    own = [int(d.player_subgame[histories.infoset[h]]) for h in roots]
    assert same_partition(own, [brute.subgame[at[h]] for h in roots])
    closed = d.player_subgame[~d.opens]
    assert (closed == -1).all()

    # The number of augmented infosets and their layers and subgames are equal.
    def names(augmented):
        return sorted(augmented, key=repr)

    found = names(
        (int(layer), int(sub))
        for layer, sub in zip(d.augmented_layer, d.augmented_subgame, strict=True)
    )
    number = dict(zip((brute.subgame[at[h]] for h in roots), own, strict=True))
    leaders = {brute.augmented[at[h]] for h in roots}
    expected = names((brute.layer[g], number[brute.subgame[g]]) for g in leaders)
    assert found == expected

    # o's extended sequence at a terminal node is its sequence, or the augmented
    # infoset if o has not moved since.
    count = compiled.infosets[1 - player].decisions.num_sequences
    meant = {}
    for t, extended in zip(terminals, d.extended[d.terminals], strict=True):
        anchor = brute.anchor[at[t]]
        moved = anchor < 0 or brute.other(at[t]) != brute.other(anchor)
        assert moved == (extended < count)
        if moved:
            assert extended == histories.sequence[1 - player, t]
        else:
            augmented = meant.setdefault(int(extended), brute.augmented[anchor])
            assert augmented == brute.augmented[anchor]
            assert d.augmented_layer[extended - count] == brute.layer[anchor]
    assert len(set(meant.values())) == len(meant)


@every_cut
def test_decomposition_equals_brute_force(name, player):
    check_against_brute(games.compiled(name), cut(name, player), brute_of(name, player))


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize("turns", ["by depth", "by history"])
def test_decompositions_of_random_games_equal_brute_force(turns, seed):
    game = made_games.random_game(seed, turns=turns, transient=0.5, remembered=0.3)
    compiled = tree_builder.build_tree(game, observations=True)
    tree = reference.Tree(game)
    for player in PLAYERS:
        try:
            d = decomposition.decompose(compiled, player)
        except ValueError:
            assert turns == "by history"
            continue
        check_against_brute(
            compiled, d, Brute(tree, player, by_turns=not d.opens.all())
        )


def test_layers_of_kuhn_poker_and_goofspiel():
    """Kuhn: player 0 acts at most twice, player 1 once; goofspiel 4: three bids."""
    assert [cut("kuhn", p).num_layers for p in PLAYERS] == [2, 1]
    assert [cut("goofspiel4", p).num_layers for p in PLAYERS] == [3, 3]
    # In Kuhn poker, player 0's second decision follows pass, bet with each card. All of
    # its histories are one subgame, and o's bets with three cards are three augmented
    # infosets.
    d = cut("kuhn", 0)
    second = d.augmented_layer == 2
    assert second.sum() == 3
    assert len(set(d.augmented_subgame[second].tolist())) == 1


def hidden_second_try(path):
    """Player 0 may move twice in a row, which player 1 does not observe."""
    if not path:
        return Node(0, (0, 1), ("start", ""))
    if path == (1,):
        return Node(0, (0, 1), ("again", ""))
    if sum(1 for _ in path) == (1 if path[0] == 0 else 2):
        return Node(1, (0, 1), ("", "guess"))
    truth = path[-2]
    return Node(TERMINAL, utility=1.0 if path[-1] != truth else -1.0)


def uncounted_turns(path):
    """Chance decides whether player 0 moves first, which player 1 does not observe."""
    if not path:
        return Node(CHANCE, (0, 1), chance=(0.5, 0.5))
    if path == (1,):
        return Node(0, (0, 1), ("first", ""))
    guess = 1 if path[0] == 0 else 2
    if len(path) == guess:
        return Node(1, (0, 1), ("", "guess"))
    if len(path) == guess + 1:
        return Node(0, (0, 1), (f"last {path[1:guess]}", ""))
    return Node(TERMINAL, utility=float(path[-1] == path[-2]))


def seen_and_forgotten(path):
    """Player 1 observes player 0's hidden move and forgets it before its own turn."""
    if not path:
        return Node(0, (0, 1), ("hide", "wait"))
    if len(path) == 1:
        return Node(0, (0, 1), (f"signal {path[0]}", f"saw {path[0]}"))
    if len(path) == 2:
        return Node(1, (0, 1), ("", f"guess after {path[1]}"))
    hidden, signal, guess = path
    return Node(TERMINAL, utility=(1.0 + signal / 2) * (-1 if guess == hidden else 1))


def test_unobserved_consecutive_turns_are_one_layer():
    compiled = tree_builder.build_tree(
        MadeGame(hidden_second_try, "again"), observations=True
    )
    d = decomposition.decompose(compiled, 0)
    assert d.num_layers == 1 and sorted(d.opens) == [False, True]


def test_rejects_turns_that_the_opponent_cannot_count():
    compiled = tree_builder.build_tree(MadeGame(uncounted_turns, "uncounted"))
    with pytest.raises(
        ValueError, match="does not observe the number of turns of player 0"
    ):
        decomposition.decompose(compiled, 0)
    assert decomposition.decompose(compiled, 1).num_layers == 1


def test_forgotten_observations_do_not_split_augmented_infosets():
    """Player 1 distinguishes two roots of layer 2, but not at its own decision."""
    game = MadeGame(seen_and_forgotten, "seen")
    compiled = tree_builder.build_tree(game, observations=True)
    d = decomposition.decompose(compiled, 0)
    assert d.num_layers == 2
    assert (d.augmented_layer == 2).sum() == 1
    observations = compiled.histories.observations[1:3]
    assert observations[0] != observations[1]


def test_players_without_decisions_have_no_layers():
    def rules(path):
        if not path:
            return Node(1, (0, 1), ("", "move"))
        return Node(TERMINAL, utility=float(path[0]))

    compiled = tree_builder.build_tree(MadeGame(rules, "alone"), observations=True)
    assert decomposition.decompose(compiled, 0).num_layers == 0
    assert decomposition.decompose(compiled, 1).num_layers == 1
