"""Both variants of latent tic-tac-toe, compared with independent references."""

import functools
import itertools
from typing import NamedTuple

import numpy as np
import pyspiel
import pytest

from game_defs import latent_board
from tests.support import game_contract

DISCARD = "python_latent_tic_tac_toe"
KEEP = "python_latent_tic_tac_toe(conflict=keep)"
GAMES = (DISCARD, KEEP)


class Reference:
    """An independent implementation of the rules, with a map of marks per player.

    Attributes:
      keep: Whether the variant is "keep".
      moves: All cells marked so far.
      real: The player whose mark is on each cell; not used by "keep".
      maps: For each player, the owners of the marks that the player knows, by cell.
      counts: For each player, the number of marks on its map, "keep" only.
    """

    def __init__(self, keep):
        self.keep = keep
        self.moves = []
        self.real = {}
        self.maps = ({}, {})
        self.counts = [0, 0]

    def legal(self):
        known = self.maps[len(self.moves) % 2]
        return [cell for cell in range(9) if cell not in known]

    def mark(self, cell):
        player = len(self.moves) % 2
        known = self.maps[player]
        last = self.moves[-1] if self.moves else None
        self.moves.append(cell)
        if self.keep:
            self.counts[player] += 1
            if last == cell:
                self.counts[player] += 1
            elif last is not None and last not in known:
                self.counts[player] += 1
                known[last] = 1 - player
            known[cell] = player
        else:
            self.real.setdefault(cell, player)
            known[cell] = self.real[cell]
            if last is not None:
                known[last] = self.real[last]

    def has_line(self, player):
        marks = self.maps[player] if self.keep else self.real
        rows = [(0, 1, 2), (3, 4, 5), (6, 7, 8)]
        lines = [*rows, *zip(*rows, strict=True), (0, 4, 8), (2, 4, 6)]
        return any(all(marks.get(cell) == player for cell in line) for line in lines)

    def is_over(self):
        if self.has_line(1) or (self.has_line(0) and len(self.moves) % 2 == 0):
            return True
        if self.keep:
            moved = (len(self.moves) > 0, len(self.moves) > 1)
            return any(self.counts[p] + moved[p] >= 9 for p in (0, 1))
        return len(self.real) == 9

    def value(self):
        return float(self.has_line(0)) - float(self.has_line(1))


def observed_by(history, player):
    """Return all moves, with the opponent's last move hidden."""
    if history and (len(history) - 1) % 2 != player:
        return (*history[:-1], "hidden")
    return tuple(history)


def play(game_string, moves):
    state = pyspiel.load_game(game_string).new_initial_state()
    for cell in moves:
        assert not state.is_terminal()
        state.apply_action(cell)
    return state


def random_cell(rng, legal, last):
    """Return a random legal cell, with probability 1/3 one that causes a conflict."""
    if last in legal and rng.random() < 1 / 3:
        return last
    return int(rng.choice(legal))


@pytest.mark.parametrize("game_string", GAMES)
def test_openspiel_api(game_string):
    game_contract.check_api(game_string)


@pytest.mark.parametrize("game_string", GAMES)
def test_players_observe_all_but_the_last_opponent_move(game_string):
    game = pyspiel.load_game(game_string)
    nodes = [game_contract.Node(game.new_initial_state(), -1, -1)]
    for index, node in enumerate(nodes):  # all histories of up to three moves
        if node.state.move_number() < 3:
            for cell in node.state.legal_actions():
                nodes.append(game_contract.Node(node.state.child(cell), index, cell))
    tree = game_contract.Tree(game, nodes, complete=False)
    for sample in (tree, game_contract.sampled_tree(game_string)):
        game_contract.check_knowledge(
            sample, observed_by, lambda history, _: (tuple(history[:-1]), len(history))
        )


@pytest.mark.parametrize("keep", [False, True])
def test_random_games_follow_the_reference(keep):
    rng = np.random.default_rng(1)
    conflicts = 0
    for _ in range(1000):
        state = play(KEEP if keep else DISCARD, [])
        reference = Reference(keep)
        last = -1
        while not state.is_terminal():
            assert state.current_player() == len(reference.moves) % 2
            assert state.legal_actions() == reference.legal()
            cell = random_cell(rng, state.legal_actions(), last)
            conflicts += cell == last
            last = cell
            state.apply_action(cell)
            reference.mark(cell)
            assert state.is_terminal() == reference.is_over(), state
        assert state.returns() == [reference.value(), -reference.value()], state
    assert conflicts > 1000


def test_moves_and_infosets_equal_those_of_latent_ttt():
    """They agree until `latent_ttt` ends at a line of player 0."""
    rng = np.random.default_rng(2)
    theirs = pyspiel.load_game("latent_ttt")
    infosets = ({}, {})
    ended_early = 0
    for _ in range(500):
        state, other = play(DISCARD, []), theirs.new_initial_state()
        last = -1
        while not other.is_terminal():
            assert state.legal_actions() == other.legal_actions()
            for player in (0, 1):
                key = (
                    other.information_state_string(player),
                    other.current_player(),  # which their string leaves out
                )
                mine = state.information_state_string(player)
                assert infosets[player].setdefault(key, mine) == mine
            last = random_cell(rng, state.legal_actions(), last)
            state.apply_action(last)
            other.apply_action(last)
            marks = str(state).lower().split("\n")[:3]
            assert marks == str(other).split("\n")
        ended_early += not state.is_terminal()
        if not state.is_terminal():
            assert other.returns() == [1.0, -1.0]
            assert state.current_player() == 1
        else:
            assert state.returns() == other.returns()
    assert ended_early > 50
    for seen in infosets:
        assert len(set(seen.values())) == len(seen)


@pytest.mark.parametrize(
    ("game_string", "moves", "value"),
    [
        # Player 1 may reply to a line; completing its own line makes a draw.
        (DISCARD, [0, 3, 1, 4, 2, 8], 1),
        (KEEP, [0, 3, 1, 4, 2, 8], 1),
        (DISCARD, [0, 3, 1, 4, 2, 5], 0),
        (KEEP, [0, 3, 1, 4, 2, 5], 0),
        # A line of player 1 ends the game at once.
        (DISCARD, [0, 3, 1, 4, 8, 5], -1),
        (KEEP, [0, 3, 1, 4, 8, 5], -1),
        # The reply falls on the very cell that completed the line.
        (DISCARD, [0, 3, 1, 4, 2, 2], 1),
        (KEEP, [0, 3, 1, 4, 2, 2], 1),
        # Player 1 completes a line on a cell that player 0 has just marked.
        (KEEP, [0, 3, 1, 4, 5, 5], -1),
        # No conflict, no line: eight marks fill a map, nine the board.
        (KEEP, [0, 1, 2, 4, 3, 5, 7, 6], 0),
        (DISCARD, [0, 1, 2, 4, 3, 5, 7, 6, 8], 0),
        # Player 0 fills the board with a mark that makes a line: no reply.
        (DISCARD, [0, 1, 4, 2, 5, 3, 7, 6, 8], 1),
    ],
)
def test_returns_of_hand_computed_games(game_string, moves, value):
    state = play(game_string, moves)
    assert state.is_terminal()
    assert state.returns() == [value, -value]


def test_strings_after_a_discarded_mark():
    state = play(DISCARD, [0, 3, 1, 4, 5, 5])
    assert not state.is_terminal()
    assert str(state) == "xx.\nooX\n...\nx0o3x1o4x5o5"
    assert state.legal_actions() == [2, 6, 7, 8]
    assert state.information_state_string(0) == "p0:x0o3x1o4x5o?"
    assert state.information_state_string(1) == "p1:x0o3x1o4x5o5"
    assert state.observation_string(0) == "p0: last x5 turn 6 board xx.oox..."
    assert state.observation_string(1) == "p1: last o5 turn 6 board xx.oox..."


def test_cell_of_a_hidden_mark_is_a_legal_action():
    state = play(DISCARD, [4, 0])
    assert state.legal_actions() == [0, 1, 2, 3, 5, 6, 7, 8]
    assert state.observation_string(0) == "p0: last x4 turn 2 board ....x...."


class LevelSizes(NamedTuple):
    """Sizes of the game, counted level by level."""

    histories: int
    terminals: int
    infosets: tuple[int, int]
    longest: int


def count_levels(keep, reply=True):
    """Count histories by board, without enumerating them.

    A player observes all moves but the last one, so there is one infoset for each
    history that continues for two moves. `reply=False` ends the game as soon as player
    0 has a line, as in OpenSpiel.
    """

    def is_over(boards):
        over = latent_board.is_over(boards, keep) != 0
        if not reply:
            lines = np.asarray(latent_board.HAS_LINE)[
                latent_board.cells_of(boards, 0, keep)
            ]
            over |= lines != 0
        return over

    boards, times = np.zeros(1, np.int64), np.ones(1, np.int64)
    histories = terminals = 0
    infosets = [1, 0]
    for longest in itertools.count():
        over = is_over(boards)
        histories += int(times.sum())
        terminals += int(times[over].sum())
        if over.all():
            return LevelSizes(histories, terminals, tuple(infosets), longest)
        boards, times = boards[~over], times[~over]
        legal = latent_board.legal_cells(boards)
        continues = np.zeros(len(boards), bool)
        children = []
        for cell in range(9):
            can = (legal >> cell) & 1 == 1
            after = latent_board.play(boards[can], np.int64(1 << cell))
            continues[can] |= ~is_over(after)
            children.append((after, times[can]))
        infosets[(longest + 1) % 2] += int(times[continues].sum())
        after, after_times = map(np.concatenate, zip(*children, strict=True))
        boards, index = np.unique(after, return_inverse=True)
        times = np.zeros(len(boards), np.int64)
        np.add.at(times, index, after_times)


@pytest.mark.parametrize(
    ("game_string", "expected"),
    [
        (DISCARD, LevelSizes(73_159_699, 37_650_720, (8_954_050, 10_554_490), 16)),
        (KEEP, LevelSizes(4_854_291, 3_584_128, (192_602, 149_594), 10)),
    ],
)
def test_sizes_from_level_counts(game_string, expected):
    sizes = count_levels(game_string == KEEP)
    assert sizes == expected
    assert pyspiel.load_game(game_string).max_game_length() == sizes.longest


def test_number_of_histories_of_openspiels_game():
    assert count_levels(keep=False, reply=False).histories == 58_086_835


@pytest.mark.slow
def test_sizes_from_enumerated_states():
    sizes = game_contract.measure(KEEP)
    assert sizes == game_contract.Sizes(0, 1_270_163, 3_584_128, 192_602, 149_594)


@pytest.mark.slow
def test_nash_conv_of_uniform_play():
    """Compute both best responses to uniform play in the keep variant by recursion.

    After a move of the responder, only the board matters, because the responder has
    observed all moves and uniform play depends on the board only.
    """

    @functools.cache
    def value(board, player):
        """Return the responder's value if the uniform opponent is to move."""
        legal = [c for c in range(9) if latent_board.legal_cells(board) >> c & 1]
        total = 0.0
        unseen = []
        for cell in legal:
            after = latent_board.play(board, 1 << cell)
            if latent_board.is_over(after, True):
                total += utility(after, player)
            else:
                unseen.append(after)
        if unseen:
            total += respond(unseen, player)
        return total / len(legal)

    def utility(board, player):
        return latent_board.utility(board, True) * (1 - 2 * player)

    def respond(boards, player):
        """Return the best sum of values over boards that share an action."""
        best = -np.inf
        for cell in range(9):
            if not latent_board.legal_cells(boards[0]) >> cell & 1:
                continue
            total = 0.0
            for board in boards:
                after = latent_board.play(board, 1 << cell)
                over = latent_board.is_over(after, True)
                total += utility(after, player) if over else value(after, player)
            best = max(best, total)
        return best

    nash_conv = respond([0], 0) + value(0, 1)
    # Two other programs agree on these six digits.
    assert nash_conv == pytest.approx(1.76338, abs=5e-6)
