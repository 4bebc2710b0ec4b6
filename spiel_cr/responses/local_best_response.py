"""Fourth stage: local best response, a lookahead of one action with exact beliefs.

Lisý and Bowling 2017, "Equilibrium approximation quality of current no-limit poker
bots". At each decision, `lbr` and `LBRBot` compare the player's actions by what each
would bring if the opponent answered once by its own policy and both then played by
default to the end: check and call ("call"), or at random ("uniform"). The histories are
weighted by the exact belief, given chance and the opponent's policy. What comes out is
a strategy, so its value is a lower bound of the best response's.

Deviations from the paper. There, a raise is answered by a fold or a call, the
opponent's raises counting as calls, and after a call of its own the player looks no
further than check and call. Here the answer is the opponent's first decision after the
action, whatever it is, if one comes before the player's next; chance may lie between.
All legal actions are compared, not some sizes of bets. Default play other than check
and call is ours, for games that are not poker.
"""

import bisect
from collections.abc import Callable

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.common.checks import check_iterations, check_seed
from spiel_cr.compilation import loading
from spiel_cr.compilation.numbering import CHANCE
from spiel_cr.compilation.tree import CompiledGame
from spiel_cr.policies import conversions as policy_lib
from spiel_cr.policies.bot_base import PolicyPlayer
from spiel_cr.responses import ismcts_br_bot, opponents, posterior
from spiel_cr.responses.state_posterior import StatePosterior
from spiel_cr.sequence_form.decisions import Decisions

LEAVES = ("call", "uniform")

# Values that differ by less are equal but for rounding; relative to the utilities.
_ROUNDING = 1e-12

_TERMINAL = int(pyspiel.PlayerId.TERMINAL)


def lbr(
    tree: CompiledGame,
    player: int,
    opponent_behaviour: np.ndarray,
    *,
    leaf: str = "call",
) -> np.ndarray:
    """Local best response on a compiled game.

    Where the opponent's policy cannot lead, the belief is that of chance and a uniform
    opponent.

    Args:
      tree: the compiled game.
      player: the responder, 0 or 1.
      opponent_behaviour: float64 [S'], the other player's action probabilities.
      leaf: default play, "call" (poker only) or "uniform".

    Returns:
      float64 [S], the responder's action probabilities, 0 or 1; the first of equally
      good actions.

    Raises:
      ValueError: a bad player or leaf, not a strategy of the other player, or "call" in
        a game that is not poker.
    """
    _check(player, leaf)
    posterior.check_behaviour(tree, 1 - player, opponent_behaviour)
    histories, decisions = tree.histories, tree.infosets[player].decisions
    values = _answered_values(tree, player, opponent_behaviour, leaf)
    belief = posterior.beliefs(tree, player, opponent_behaviour)
    below = 1 + np.flatnonzero(histories.player[histories.parent[1:]] == player)
    expected = np.bincount(
        histories.sequence[player][below],
        belief[histories.parent[below]] * values[below],
        minlength=decisions.num_sequences,
    )
    return _best(decisions, expected, tree.game)


class LBRBot(PolicyPlayer):
    """Local best response on states, for games too large to compile.

    Expected values are exact, or means of rollouts: each draws a history from the
    belief, and plays it out once after each action. Random numbers are made from the
    seed and the information state, so a match does not depend on those before it.

    Attributes:
      belief: over histories.
      rollouts: run since it was made; a rollout has one for each action.
    """

    def __init__(
        self,
        game: str | pyspiel.Game,
        player: int,
        opponent: openspiel_policy.Policy,
        *,
        leaf: str = "call",
        rollouts: int | None = 1000,
        seed: int = 0,
        belief: StatePosterior | None = None,
    ) -> None:
        """Asks nothing yet.

        Args:
          game: OpenSpiel game string or game.
          player: the seat, 0 or 1.
          opponent: its policy; must depend on its information states only.
          leaf: default play, "call" (poker only) or "uniform".
          rollouts: a decision; None: exact values, by going through everything that
            can follow, for small games.
          seed: of all draws.
          belief: over histories; None: `StatePosterior` with its defaults.

        Raises:
          ValueError: a bad argument, or "call" in a game that is not poker.
          pyspiel.SpielError: OpenSpiel does not know the game.
        """
        super().__init__(player)
        _check(player, leaf)
        game = loading.load_game(game)
        if rollouts is not None:
            check_iterations(rollouts, name="rollouts")
        self.belief = belief or StatePosterior(game, player, opponent)
        self.rollouts = 0
        self._rollouts = rollouts
        self._seed = check_seed(seed)
        self._tolerance = _ROUNDING * (game.max_utility() - game.min_utility())
        default = _default_policy(game, leaf)
        self._defaults = [opponents.Answers(default, p) for p in (0, 1)]
        self._opponent = opponents.Answers(opponent, 1 - player)

    def restart(self) -> None:
        """A new match."""
        self.belief.restart()

    def get_policy(self, state: pyspiel.State) -> list[tuple[int, float]]:
        loading.check_state(state)
        legal = state.legal_actions()
        if len(legal) == 1:
            return [(legal[0], 1.0)]
        values = self.action_values(state)
        best = int(np.argmax(values >= values.max() - self._tolerance))
        return [(action, float(place == best)) for place, action in enumerate(legal)]

    def choose(self, state: pyspiel.State, policy: list[tuple[int, float]]) -> int:
        return max(policy, key=lambda outcome: outcome[1])[0]

    def action_values(self, state: pyspiel.State) -> np.ndarray:
        """float64 [A], what each legal action brings; the responder's utility.

        Args:
          state: the player is to act; what it does not know is not looked at.

        Raises:
          ValueError: a state of the unconverted simultaneous game, or the belief has
            too many histories.
        """
        loading.check_state(state)
        self.belief.update(state)
        legal = state.legal_actions()
        values = np.zeros(len(legal))
        if self._rollouts is None:
            for history, weight in zip(
                self.belief.states, self.belief.weights.tolist(), strict=True
            ):
                for place, action in enumerate(legal):
                    values[place] += weight * self._expect(history.child(action), False)
            return values
        random = ismcts_br_bot.generator_at(self._seed, state, self._player, 0)
        number = ismcts_br_bot.numbers(random)
        for _ in range(self._rollouts):
            history = self.belief.sample(random)
            for place, action in enumerate(legal):
                values[place] += self._roll_out(history.child(action), number)
        self.rollouts += self._rollouts * len(legal)
        return values / self._rollouts

    def _asked(self, mover: int, answered: bool) -> opponents.Answers:
        """Who decides for a player."""
        by_default = answered or mover == self._player
        return self._defaults[mover] if by_default else self._opponent

    def _expect(self, state: pyspiel.State, answered: bool) -> float:
        """The responder's expected utility, by going through everything."""
        mover = state.current_player()
        if mover == _TERMINAL:
            return float(state.player_return(self._player))
        if mover >= 0:
            actions, probabilities, _ = self._asked(mover, answered)(state)
            moves = list(zip(actions, probabilities, strict=True))
            answered = True
        else:
            moves = state.chance_outcomes()
        return sum(p * self._expect(state.child(a), answered) for a, p in moves)

    def _roll_out(self, state: pyspiel.State, number: Callable[[], float]) -> float:
        """One sample of `_expect`; the state is played to the end."""
        answered = False
        while True:
            mover = state.current_player()
            if mover == _TERMINAL:
                return float(state.player_return(self._player))
            if mover >= 0:
                actions, _, ends = self._asked(mover, answered)(state)
                state.apply_action(actions[bisect.bisect_right(ends, number())])
                answered = True
            else:
                outcomes = state.chance_outcomes()
                state.apply_action(ismcts_br_bot.draw_outcome(outcomes, number()))


def _check(player: int, leaf: str) -> None:
    if player not in (0, 1):
        raise ValueError(f"player={player!r} must be 0 or 1")
    if leaf not in LEAVES:
        raise ValueError(f"leaf={leaf!r}; choose one of {', '.join(LEAVES)}")


def _default_policy(game: pyspiel.Game, leaf: str) -> openspiel_policy.Policy:
    if leaf == "uniform":
        return openspiel_policy.UniformRandomPolicy(game)
    try:
        return opponents.chump(game, "always_call")
    except ValueError as error:
        raise ValueError(f"leaf='call': {error}; give leaf='uniform'") from error


def _answered_values(
    tree: CompiledGame,
    player: int,
    opponent_behaviour: np.ndarray,
    leaf: str,
) -> np.ndarray:
    """float64 [N], the responder's: the opponent answers once, then default play."""
    histories, other = tree.histories, 1 - player
    default = None
    if leaf == "call":
        calls = _default_policy(tree.game, leaf)
        default = policy_lib.behaviour_from_policy(tree, calls)
    values = policy_lib.history_values(tree, default)
    if player == 1:
        values = -values
    answered = values.copy()
    mover = histories.player
    answered[(mover == other) | (mover == CHANCE)] = 0.0
    step = posterior.transitions(tree, player, opponent_behaviour)
    starts = histories.level_start
    for begin, end in reversed(list(zip(starts[1:-1], starts[2:], strict=True))):
        at = np.arange(begin, end)
        for who, below in ((other, values), (CHANCE, answered)):
            mine = at[mover[histories.parent[at]] == who]
            np.add.at(answered, histories.parent[mine], step[mine] * below[mine])
    return answered


def _best(decisions: Decisions, value: np.ndarray, game: pyspiel.Game) -> np.ndarray:
    """float64 [S], 1 at each infoset's first best action, by float64 [S] values."""
    owner = decisions.owner
    tolerance = _ROUNDING * (game.max_utility() - game.min_utility())
    highest = np.full(len(decisions), -np.inf)
    np.maximum.at(highest, owner[1:], value[1:])
    good = 1 + np.flatnonzero(value[1:] >= highest[owner[1:]] - tolerance)
    chosen = np.full(len(decisions), len(value))
    np.minimum.at(chosen, owner[good], good)
    behaviour = np.zeros(len(value))
    behaviour[0] = 1.0
    behaviour[chosen] = 1.0
    return behaviour
