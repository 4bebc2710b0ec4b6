"""Policies and bots of other packages, valid and invalid, for tests of the interface.

Each builder gets a sequential game and returns an object as a user would pass it. The
valid ones come with an equivalent policy of OpenSpiel's Python interface, so that
OpenSpiel's own tools compute the expected value.
"""

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.bots import uniform_random

import spiel_cr

Policy, Uniform = openspiel_policy.Policy, openspiel_policy.UniformRandomPolicy


def weights(legal):
    """Return different probabilities for the actions, the same in every state."""
    total = sum(range(1, 1 + len(legal)))
    return {action: (1 + place) / total for place, action in enumerate(legal)}


def once(make):
    """Call a function once for each game, and cache its result.

    OpenSpiel's policies of C++ solvers do not keep their solver alive.
    """
    known = {}

    def cached(game):
        if str(game) not in known:
            known[str(game)] = make(game)
        return known[str(game)]

    return cached


class Weighted(Policy):
    """A policy that plays later actions more often."""

    def __init__(self, game):
        super().__init__(game, [0, 1])

    def action_probabilities(self, state, player_id=None):
        return weights(state.legal_actions())


class LastAction(Policy):
    """A policy that omits actions with probability zero."""

    def __init__(self, game):
        super().__init__(game, [0, 1])

    def action_probabilities(self, state, player_id=None):
        return {state.legal_actions()[-1]: 1.0}


class Callable:
    def __call__(self, state):
        return weights(state.legal_actions())


class MovesOnly(pyspiel.Bot):
    """A bot that plays the last action and does not provide a policy."""

    def __init__(self, player):
        pyspiel.Bot.__init__(self)
        self._player = player

    def player_id(self):
        return self._player

    def restart_at(self, state):
        pass

    def step(self, state):
        return state.legal_actions()[-1]


class WithPolicy(MovesOnly):
    """A bot that has `get_policy`."""

    def provides_policy(self):
        return True

    def get_policy(self, state):
        return list(weights(state.legal_actions()).items())

    def step_with_policy(self, state):
        return self.get_policy(state), state.legal_actions()[-1]


class StepOnly(WithPolicy):
    """A bot that has only `step_with_policy`, like many of OpenSpiel's Python bots."""

    get_policy = pyspiel.Bot.get_policy

    def step_with_policy(self, state):
        return list(weights(state.legal_actions()).items()), state.legal_actions()[-1]


@once
def weighted_table(game):
    """Return OpenSpiel's TabularPolicy with the weights of `Weighted`."""
    table = openspiel_policy.TabularPolicy(game)
    for row, mask in zip(
        table.action_probability_array, table.legal_actions_mask, strict=True
    ):
        row[:] = 0
        for action, p in weights(np.flatnonzero(mask).tolist()).items():
            row[action] = p
    return table


def rows(game):
    """Return a mapping from information state strings to action probabilities."""
    return {key: dict(given) for key, given in weighted_table(game).to_dict().items()}


def array_answer(state):
    answer = np.zeros(state.get_game().num_distinct_actions())
    for action, p in weights(state.legal_actions()).items():
        answer[action] = p
    return answer


@once
def solved(game):
    return spiel_cr.solve(game, "cfr+", 5)


@once
def cfr(game):
    solver = pyspiel.CFRSolver(game)
    for _ in range(5):
        solver.evaluate_and_update_policy()
    return solver


def _same(make):
    return lambda game: (lambda policy: (policy, policy))(make(game))


def _like(make, reference=Weighted):
    return lambda game: (make(game), reference(game))


def _cpp(make):
    """Return a C++ policy, and its conversion by OpenSpiel."""

    def built(game):
        policy = make(game)

        class AsPython(Policy):
            def action_probabilities(self, state, player_id=None):
                return policy.action_probabilities(state)

        return policy, AsPython(game, [0, 1])

    return built


def _result(game):
    result = solved(game)
    return result, result.average_policy()


class Split(Policy):
    """A policy that is weighted for player 0 and uniform for player 1."""

    def __init__(self, game):
        super().__init__(game, [0, 1])

    def action_probabilities(self, state, player_id=None):
        legal = state.legal_actions()
        if state.current_player() == 0:
            return weights(legal)
        return dict.fromkeys(legal, 1 / len(legal))


def make_moving(player, seed):
    return MovesOnly(player)


make_moving.moves = True
# Policies of small games: (object, reference policy).
POLICIES = {
    "string": _like(lambda game: "uniform", Uniform),
    "UniformRandomPolicy": _same(Uniform),
    "FirstActionPolicy": _same(openspiel_policy.FirstActionPolicy),
    "TabularPolicy": _like(weighted_table),
    "Policy subclass": _same(Weighted),
    "Policy that leaves out actions": _same(LastAction),
    "Result": _result,
    "policy of a Result": _same(lambda game: solved(game).average_policy()),
    "last iterate of a Result": _same(lambda game: solved(game).current_policy()),
    "CFRSolver.average_policy": _cpp(lambda game: cfr(game).average_policy()),
    "CFRSolver.current_policy": _cpp(lambda game: cfr(game).current_policy()),
    "CFRSolver.tabular_average_policy": _cpp(
        lambda game: cfr(game).tabular_average_policy()
    ),
    "pyspiel.UniformRandomPolicy": _like(pyspiel.UniformRandomPolicy, Uniform),
    "pyspiel.GetRandomPolicy": _cpp(lambda game: pyspiel.GetRandomPolicy(game, 1)),
    "tuple": _like(lambda game: (Weighted(game), Uniform(game)), Split),
    "list of C++ and Python": _like(
        lambda game: [Weighted(game), pyspiel.UniformPolicy()], Split
    ),
    "dictionary by player": _like(
        lambda game: {0: Weighted(game), 1: Uniform(game)}, Split
    ),
    "one-seat tables": _like(
        once(
            lambda game: (
                weighted_table(game),
                openspiel_policy.TabularPolicy(game, [1]),
            )
        ),
        Split,
    ),
    "pair with a string": _like(lambda game: [Weighted(game), "uniform"], Split),
    "pair with a function": _like(
        lambda game: (lambda state: weights(state.legal_actions()), "uniform"), Split
    ),
    "function to a dictionary": _like(
        lambda game: lambda state: weights(state.legal_actions())
    ),
    "function to pairs": _like(
        lambda game: lambda state: list(weights(state.legal_actions()).items())
    ),
    "function to an array": _like(lambda game: array_answer),
    "function of state and player": _like(
        lambda game: lambda state, player_id=None: weights(state.legal_actions())
    ),
    "callable object": _like(lambda game: Callable()),
    "mapping by information state": _like(rows),
}
# Bots: (object, reference policy); the last two provide moves only.
BOTS = {
    "bots with get_policy": _like(lambda game: lambda player, seed: WithPolicy(player)),
    "bots with step_with_policy": _like(
        lambda game: lambda player, seed: StepOnly(player)
    ),
    "UniformRandomBot of OpenSpiel": _like(
        lambda game: (
            lambda player, seed: uniform_random.UniformRandomBot(
                player, np.random.RandomState(seed)
            )
        ),
        Uniform,
    ),
    "pair of bots": _like(lambda game: (WithPolicy(0), WithPolicy(1))),
    "function that makes policies": _like(
        lambda game: lambda player, seed: Weighted(game)
    ),
    "bots of C++": _like(
        lambda game: lambda player, seed: pyspiel.make_uniform_random_bot(player, seed),
        Uniform,
    ),
    "bots that move": _like(lambda game: make_moving, LastAction),
}


class _Answering(Policy):
    """A policy that returns the result of a function of legal actions and state."""

    def __init__(self, game, answer):
        super().__init__(game, [0, 1])
        self._answer = answer

    def action_probabilities(self, state, player_id=None):
        return self._answer(state.legal_actions(), state)


def hidden(state):
    """Return the hidden information: actions of chance and of the opponent."""
    player = state.current_player()
    others = [move.action for move in state.full_history() if move.player != player]
    return hash(tuple(others)) % 2


def _cheat(legal, state):
    """Return probabilities that depend on hidden information."""
    return {legal[0 if hidden(state) else -1]: 1.0}


def _noise():
    random = np.random.default_rng(0)

    def answer(legal, state):
        played = random.random(len(legal)) + 1e-3
        return dict(zip(legal, (played / played.sum()).tolist(), strict=True))

    return answer


def _raised(legal, state):
    raise KeyError(state.information_state_string())


def _even(legal):
    return dict.fromkeys(legal, 1 / len(legal))


_ANSWERS = {
    "sees what is hidden": _cheat,
    "illegal action": lambda legal, state: {_illegal(legal, state): 1.0},
    "illegal action besides": lambda legal, state: (
        _even(legal) | {_illegal(legal, state): 0.5}
    ),
    "action 99": lambda legal, state: {99: 1.0},
    "negative action": lambda legal, state: {-1: 1.0},
    "nothing": lambda legal, state: {},
    "None": lambda legal, state: None,
    "half": lambda legal, state: {action: p / 2 for action, p in _even(legal).items()},
    "twice": lambda legal, state: {action: 2 * p for action, p in _even(legal).items()},
    "zero": lambda legal, state: dict.fromkeys(legal, 0.0),
    "NaN": lambda legal, state: dict.fromkeys(legal, float("nan")),
    "infinite": lambda legal, state: dict.fromkeys(legal, float("inf")),
    "negative": lambda legal, state: (
        {legal[0]: 1.5, legal[-1]: -0.5} if len(legal) > 1 else {legal[0]: -1.0}
    ),
    "text": lambda legal, state: "first",
    "text probabilities": lambda legal, state: dict.fromkeys(legal, "much"),
    "a number": lambda legal, state: 0.5,
    "short array": lambda legal, state: [1.0],
    "long array": lambda legal, state: np.ones(1000) / 1000,
    "an action twice": lambda legal, state: [(legal[0], 0.5), (legal[0], 0.5)],
    "KeyError": _raised,
}


def _illegal(legal, state):
    """Return an illegal action, or 99 if all actions are legal."""
    every = range(state.get_game().num_distinct_actions())
    return next((action for action in every if action not in legal), 99)


def _invalid_policies():
    for name, answer in _ANSWERS.items():
        yield name, lambda game, answer=answer: _Answering(game, answer)
    yield "answers at random", lambda game: _Answering(game, _noise())
    yield (
        "function that sees what is hidden",
        lambda game: lambda state: _cheat(state.legal_actions(), state),
    )
    yield (
        "table of another game",
        once(
            lambda game: openspiel_policy.TabularPolicy(
                pyspiel.load_game("kuhn_poker(players=2)")
                if game.get_type().short_name != "kuhn_poker"
                else pyspiel.load_game("leduc_poker")
            )
        ),
    )
    yield (
        "one seat's table",
        once(lambda game: openspiel_policy.TabularPolicy(game, [0])),
    )
    yield (
        "C++ policy of another game",
        once(
            lambda game: pyspiel.CFRSolver(
                pyspiel.load_game("leduc_poker")
            ).tabular_average_policy()
        ),
    )
    yield (
        "result of another game",
        once(
            lambda game: spiel_cr.solve(
                "leduc_poker"
                if game.get_type().short_name == "kuhn_poker"
                else "kuhn_poker",
                "cfr+",
                2,
            )
        ),
    )
    yield (
        "pair with an invalid member",
        lambda game: (Uniform(game), _Answering(game, lambda legal, state: {})),
    )
    yield "mapping without rows", lambda game: {"nothing": {0: 1.0}}


INVALID_POLICIES = dict(_invalid_policies())


class _Bot(WithPolicy):
    def __init__(self, player, answer):
        super().__init__(player)
        self._answer = answer

    def get_policy(self, state):
        return self._answer(state.legal_actions(), state)


INVALID_BOTS = {
    name: lambda game, answer=_ANSWERS[name]: lambda player, seed: _Bot(player, answer)
    for name in _ANSWERS
    if name not in ("sees what is hidden", "KeyError")
}
