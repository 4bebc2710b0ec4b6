"""The user-defined game of the documentation, "my_game(size=N)".

It is Kuhn poker for N chips, with states in Python and tensors but no batched rules.
"""

import pyspiel
from open_spiel.python.games import kuhn_poker

_BASE = kuhn_poker._GAME_TYPE
_TYPE = pyspiel.GameType(
    short_name="my_game",
    long_name="A game of one's own",
    dynamics=_BASE.dynamics,
    chance_mode=_BASE.chance_mode,
    information=_BASE.information,
    utility=_BASE.utility,
    reward_model=_BASE.reward_model,
    max_num_players=2,
    min_num_players=2,
    provides_information_state_string=True,
    provides_information_state_tensor=True,
    provides_observation_string=True,
    provides_observation_tensor=True,
    parameter_specification={"size": 1},
)


class MyGame(pyspiel.Game):
    """Kuhn poker with utilities multiplied by N."""

    def __init__(self, params=None):
        self.size = (params or {}).get("size", 1)
        info = kuhn_poker._GAME_INFO
        info = pyspiel.GameInfo(
            num_distinct_actions=info.num_distinct_actions,
            max_chance_outcomes=info.max_chance_outcomes,
            num_players=2,
            min_utility=info.min_utility * self.size,
            max_utility=info.max_utility * self.size,
            utility_sum=0.0,
            max_game_length=info.max_game_length,
        )
        super().__init__(_TYPE, info, params or {})

    def new_initial_state(self):
        return MyState(self)

    def make_py_observer(self, iig_obs_type=None, params=None):
        return kuhn_poker.KuhnPokerObserver(
            iig_obs_type or pyspiel.IIGObservationType(perfect_recall=False), params
        )


class MyState(kuhn_poker.KuhnPokerState):
    """A state of Kuhn poker with multiplied utilities."""

    def __init__(self, game):
        super().__init__(game)
        self._size = game.size

    def returns(self):
        return [self._size * utility for utility in super().returns()]


pyspiel.register_game(_TYPE, MyGame)
