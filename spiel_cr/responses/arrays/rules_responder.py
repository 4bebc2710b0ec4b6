"""A response that looks ahead by rollouts side by side, on a game's rules on arrays."""

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.common.checks import check_iterations, check_number
from spiel_cr.common.draws import choose, systematic
from spiel_cr.compilation.loading import load_game
from spiel_cr.compilation.tree import TERMINAL
from spiel_cr.compilation.vectorised import VectorisedGame, of_game
from spiel_cr.responses.arrays import replay
from spiel_cr.responses.arrays.replay import OddsOf
from spiel_cr.responses.arrays.rules_belief import RulesBelief
from spiel_cr.responses.particles import ParticleConfig
from spiel_cr.responses.state_responder import StateResponder

# A decision's rollouts are played in so many parts. Half of each part begins with one
# of the best actions so far, as many as this share of the legal ones.
_PARTS, _BEST = 2, 0.1


class RulesResponder(StateResponder):
    """Flat Monte Carlo with all moves as first ones, from particles.

    At each decision histories are drawn from the belief and played to their ends: the
    opponent by its policy, the responder at random. A rollout counts for *each* action
    that the responder took in it, not only for the first one (all moves as first:
    Gelly and Silver 2011, section 5), so a few hundred rollouts tell something of
    hundreds of actions. What was counted at a decision counts at the next one, too, but
    less. The action of the highest mean is played.

    There is no tree: what the responder learns later in a rollout changes nothing in
    it. This suits games with many actions whose worth hardly depends on when they are
    taken, such as shots at hidden ships; where the order of moves decides, search by
    `ISMCTSBRBot`.
    """

    belief: RulesBelief  # type: ignore[assignment]

    def __init__(
        self,
        game: str | pyspiel.Game,
        player: int,
        opponent: openspiel_policy.Policy,
        *,
        simulations: int = 300,
        kept: float = 0.6,
        particles: int = 100,
        redraws: int = 10,
        odds_of: OddsOf | None = None,
        seed: int = 0,
    ) -> None:
        """Looks at nothing yet.

        Args:
          game: OpenSpiel game string or game, with rules on arrays.
          player: the seat, 0 or 1.
          opponent: its policy.
          simulations: rollouts per decision.
          kept: how much of what was counted before a decision counts there.
          particles: of the belief.
          redraws: of each particle, see `ParticleConfig`.
          odds_of: the opponent's policy on the rules; None: it is uniform.
          seed: of all draws.

        Raises:
          ValueError: a bad argument; the game has no rules on arrays for its
            parameters; or the opponent is not uniform, and `odds_of` is not given.
        """
        game = load_game(game)
        rules = of_game(game)
        if rules is None:
            raise ValueError(
                f"game={game} has no rules on arrays; search by ISMCTSBRBot, which "
                f"needs none"
            )
        uniform = type(opponent) is openspiel_policy.UniformRandomPolicy
        if odds_of is None and not uniform:
            raise ValueError(
                f"opponent={type(opponent).__name__} is not uniform, and states on "
                f"arrays have no strings to ask it by; give odds_of, or search by "
                f"ISMCTSBRBot"
            )
        odds_of = odds_of or replay.uniform_odds
        self._rules: VectorisedGame = rules
        config = ParticleConfig(particles, redraws)
        belief = RulesBelief(
            game, rules, player, odds_of=odds_of, config=config, seed=seed
        )
        super().__init__(game, player, opponent, seed=seed, belief=belief)  # type: ignore[arg-type]
        self._count = check_iterations(simulations, name="simulations")
        self._kept = check_number(kept, "kept", "[0, 1]")
        self._odds_of = None if uniform and odds_of is replay.uniform_odds else odds_of
        self._forget()

    def _forget(self) -> None:
        actions = self._rules.legal_actions_mask(self._rules.new_initial_states())
        self._weight = np.zeros(actions.shape[1])
        self._total = np.zeros(actions.shape[1])

    def restart(self) -> None:
        """A new match: what was counted is dropped, and the belief."""
        super().restart()
        self._forget()

    def best_action(self, state: pyspiel.State) -> int:
        """The legal action of the highest mean."""
        random = self._observe(state)
        legal = np.array(state.legal_actions())
        if not len(self.belief.states):
            # No history was found; what was counted before still tells something.
            return int(legal[np.argmax(self._means(legal))])
        self._weight *= self._kept
        self._total *= self._kept
        for part in np.array_split(np.arange(self._count), _PARTS):
            if len(part):
                self._look(len(part), legal, random)
        self.simulations += self._count
        return int(legal[np.argmax(self._means(legal))])

    def _means(self, legal: np.ndarray) -> np.ndarray:
        """float64 [legal], of the rollouts with each action; else of all."""
        weight, total = self._weight[legal], self._total[legal]
        every = total.sum() / max(weight.sum(), 1.0)
        return np.where(weight > 0, total / np.maximum(weight, 1e-12), every)

    def _look(self, count: int, legal: np.ndarray, random: np.random.Generator) -> None:
        """Some rollouts side by side, and what they tell."""
        chosen = systematic(self.belief.weights, count, random.random())
        states = self.belief.states[random.permutation(chosen)]
        number = max(1, round(_BEST * len(legal)))
        best = legal[np.argsort(-self._means(legal), kind="stable")[:number]]
        half = random.random(count) < 0.5
        first = np.where(half, random.choice(best, count), random.choice(legal, count))
        taken, returns = self._roll(states, first, random)
        self._weight += taken.sum(axis=0)
        self._total += returns @ taken

    def _roll(
        self, states: np.ndarray, action: np.ndarray, random: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Plays to the end: bool [n, A], own actions taken; float64 [n], returns."""
        rules, me = self._rules, self._player
        left = np.arange(len(states))
        taken = np.zeros((len(states), len(self._weight)), bool)
        returns = np.zeros(len(states))
        mover = np.full(len(states), me)
        while True:
            own = np.flatnonzero(mover == me)
            taken[left[own], action[own]] = True
            states = rules.child(states, action)
            mover = rules.current_player(states)
            over = mover == TERMINAL
            if over.any():
                won = rules.returns(states[over])
                returns[left[over]] = won if me == 0 else -won
                left, states, mover = left[~over], states[~over], mover[~over]
            if not len(left):
                return taken, returns
            action = self._moves(states, mover, random)

    def _moves(
        self, states: np.ndarray, mover: np.ndarray, random: np.random.Generator
    ) -> np.ndarray:
        """int64 [n], a move each: the responder's at random, others by their odds."""
        found = np.zeros(len(states), np.int64)
        any_ = mover == self._player
        if self._odds_of is None:
            any_ |= mover == 1 - self._player
        alike = np.flatnonzero(any_)
        if len(alike):
            mask = self._rules.legal_actions_mask(states[alike])
            _, action = np.nonzero(mask)
            number = mask.sum(axis=1)
            drawn = (random.random(len(alike)) * number).astype(np.int64)
            found[alike] = action[np.cumsum(number) - number + drawn]
        rest = np.flatnonzero(~any_)
        if len(rest):
            asked = self._odds_of or replay.uniform_odds
            odds = replay.hidden_odds(self._rules, states[rest], mover[rest], asked)
            points = random.random(len(rest))
            found[rest] = choose(odds, points)
        return found
