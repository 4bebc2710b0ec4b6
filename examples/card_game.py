"""Implement a small card game for OpenSpiel in Python, and solve it.

Both players pay an ante of 1 and receive a queen, a king or an ace. Player 0 passes,
which ends the game, or bets 1. Then player 1 folds or calls.

Run as `python examples/card_game.py`.
"""

import pyspiel

import spiel_cr

KIND, CHANCE, END = pyspiel.GameType, pyspiel.PlayerId.CHANCE, pyspiel.PlayerId.TERMINAL
TYPE = KIND(
    short_name="card_game",
    long_name="Queen, king, ace",
    dynamics=KIND.Dynamics.SEQUENTIAL,
    chance_mode=KIND.ChanceMode.EXPLICIT_STOCHASTIC,
    information=KIND.Information.IMPERFECT_INFORMATION,
    utility=KIND.Utility.ZERO_SUM,
    reward_model=KIND.RewardModel.TERMINAL,
    max_num_players=2,
    min_num_players=2,
    provides_information_state_string=True,
    provides_information_state_tensor=False,
    provides_observation_string=False,
    provides_observation_tensor=False,
)
# Numbers of actions, chance outcomes and players; smallest and largest return, sum of
# the returns; maximum number of moves.
INFO = pyspiel.GameInfo(2, 3, 2, -2.0, 2.0, 0.0, 2)


class CardGame(pyspiel.Game):
    def __init__(self, params=None):
        super().__init__(TYPE, INFO, params or {})

    def new_initial_state(self):
        return CardState(self)


class CardState(pyspiel.State):
    def __init__(self, game):
        super().__init__(game)
        self.cards, self.moves = [], []

    def current_player(self):
        if len(self.cards) < 2:
            return CHANCE
        return END if self.is_terminal() else len(self.moves)

    def is_terminal(self):
        return self.moves == [0] or len(self.moves) == 2

    def chance_outcomes(self):
        left = [card for card in range(3) if card not in self.cards]
        return [(card, 1 / len(left)) for card in left]

    def _legal_actions(self, player):
        return [0, 1]

    def _apply_action(self, action):
        (self.cards if len(self.cards) < 2 else self.moves).append(action)

    def _action_to_string(self, player, action):
        return "QKA"[action] if player == CHANCE else ("pass", "bet")[action]

    def returns(self):
        stake = float(sum(self.moves) or 1) if self.is_terminal() else 0.0
        wins = self.moves == [1, 0] or self.cards[:1] > self.cards[1:]
        return [stake, -stake] if wins else [-stake, stake]

    def information_state_string(self, player=None):
        player = self.current_player() if player is None else player
        return f"{'QKA'[self.cards[player]]} {self.moves}"

    def __str__(self):
        return f"{self.cards} {self.moves}"


pyspiel.register_game(TYPE, CardGame)

if __name__ == "__main__":
    result = spiel_cr.solve("card_game", "lp")
    bets, calls = map(result.average_policy().policy_for_key, ("Q []", "K [1]"))
    print(f"value {result.game_value():.4f}, bets {bets}, calls {calls}")
