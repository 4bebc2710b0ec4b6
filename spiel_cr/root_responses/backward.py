"""Best responses in poker with limited bets, computed from the last bets to the first.

Where the opponent never looks at its cards (uniform play, chumps), what it has tells
nothing, and a hand is worth what it makes of the showdown and of the bets before. Many
deals are drawn, and all bets are gone through backwards. At each decision of the
responder a regression says what each action brings, by how strong its hand is there;
the responder takes the best one. So it knows what the opponent will bet, and that it
may fold later. Regressions of what is gained later, on sampled paths: Longstaff and
Schwartz 2001, "Valuing American options by simulation". As there, what a decision is
worth is what was gained after it in each deal, and not what the regression says.
"""

import zlib
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.common.checks import check_seed, check_whole
from spiel_cr.compilation.tree import TERMINAL
from spiel_cr.root_responses.setting import Setting
from spiel_cr.uncompiled.rules_source import RulesSource

# Equities at which the slope of what an action brings may change.
_KINKS = (0.2, 0.35, 0.5, 0.65, 0.8)
# Opponents' actions of a smaller probability are left out.
_NEVER = 1e-12


class Bets(Protocol):
    """All that players can do, where that does not depend on cards; see the rules."""

    player: np.ndarray
    below: np.ndarray
    cards: np.ndarray
    stake: np.ndarray
    showdown: np.ndarray


class PublicRules(Protocol):
    """Rules on arrays of a poker game with public bets.

    Those of `universal_poker` with limited bets have these, beside what
    `compilation.vectorised.VectorisedGame` has.
    """

    @property
    def bets(self) -> Bets:
        """All bets, node by node: who acts (int64 [P]), the node below each action
        (int64 [P, A]; -1: not legal), how many cards were dealt (int64 [P]), player 0's
        return at ends (float64 [P]; at a showdown, if it wins), and at which ends hands
        are compared (bool [P])."""

    def nodes(self, states: np.ndarray) -> np.ndarray:
        """int64 [n], the nodes of states."""

    def deals(self, count: int, random: np.random.Generator) -> np.ndarray:
        """int64 [count, C], outcomes of chance in their order, drawn."""

    def states_at(self, node: int, cards: np.ndarray) -> np.ndarray:
        """The states at a node after deals, int64 [n, C]."""

    def hand_strength(
        self, states: np.ndarray, player: int, random: np.random.Generator
    ) -> np.ndarray:
        """float64 [n, 2], the equity of a player's hand against a random one, and its
        variance over the cards to come, estimated."""


class BlindPlayer(Protocol):
    """An opponent that never looks at its cards."""

    def odds(self, player: int, legal: np.ndarray) -> np.ndarray:
        """float64 [A], its probabilities, given bool [A], what is legal."""


class _Round(NamedTuple):
    """The deals as a player sees them in one round; n deals, K terms.

    Attributes:
      terms: float64 [n, K], see `_terms`.
      solve: float64 [K, n]; times what was gained it gives coefficients.
    """

    terms: np.ndarray
    solve: np.ndarray


class BackwardResponder:
    """What each action brings, by regressions on the strength of the hand.

    Attributes:
      player: the responder.
      simulations: deals that taught it, each with all bets.
    """

    def __init__(self, setting: Setting, player: int, *, seed: int = 0) -> None:
        """Computes nothing yet.

        Args:
          setting: of the game and the opponent.
          player: the responder, 0 or 1.
          seed: of the deals.

        Raises:
          ValueError: this game's rules do not have public bets, or the opponent may
            look at its cards; see `refusal`.
        """
        why = refusal(setting)
        if why is not None:
            raise ValueError(
                f"setting: {why}; take GradientResponder or TableResponder there"
            )
        self.player, self.simulations = player, 0
        self._setting, self._seed = setting, check_seed(seed)
        source: Any = setting.source
        self._rules: Any = source.rules
        self._opponent: Any = setting.opponent
        self._bets: Bets = self._rules.bets
        # Of each node of its own that the opponent's play leads to, float64 [K, A].
        self._known: dict[int, np.ndarray] = {}

    def learn(self, deals: int = 20_000) -> float:
        """Goes through all bets backwards.

        Args:
          deals: that are drawn.

        Returns:
          What the response gains in these deals; a little more than in others.
        """
        check_whole(deals, "deals", 100)
        random = np.random.default_rng([self._seed, self.player])
        cards = self._rules.deals(deals, random)
        rounds: dict[int, _Round] = {}
        bets, self._known = self._bets, {}
        own = np.flatnonzero(bets.player == self.player)
        for dealt in np.unique(bets.cards[own]).tolist():
            node = int(own[bets.cards[own] == dealt][0])
            states = self._rules.states_at(node, cards)
            found = self._rules.hand_strength(states, self.player, random)
            terms = _terms(found)
            rounds[int(dealt)] = _Round(terms, np.linalg.pinv(terms))
            # The last round's equity is what a showdown brings on average.
            last = 2 * found[:, 0] - 1
        values = self._gained(0, rounds, last)
        self.simulations = deals
        return float(np.mean(values))

    def _gained(
        self, node: int, rounds: dict[int, _Round], showdown: np.ndarray
    ) -> np.ndarray:
        """float64 [n], or a number: what the responder gains from a node on.

        Args:
          node: of the bets.
          rounds: by how many cards were dealt.
          showdown: float64 [n], what a showdown for one chip brings.
        """
        bets = self._bets
        if bets.player[node] == TERMINAL:
            if bets.showdown[node]:
                return np.asarray(abs(bets.stake[node]) * showdown)
            sign = 1.0 if self.player == 0 else -1.0
            return np.asarray(sign * bets.stake[node])
        below = bets.below[node]
        legal = below >= 0
        if bets.player[node] != self.player:
            odds = self._opponent.odds(1 - self.player, legal)
            # Where `odds` is 0 the responder never comes.
            parts = [
                odds[action] * self._gained(int(below[action]), rounds, showdown)
                for action in np.flatnonzero(odds > _NEVER).tolist()
            ]
            return np.sum(np.broadcast_arrays(*parts), axis=0)
        seen = rounds[int(bets.cards[node])]
        gained = np.zeros((len(showdown), len(below)))
        for action in np.flatnonzero(legal).tolist():
            gained[:, action] = self._gained(int(below[action]), rounds, showdown)
        known = self._known[node] = seen.solve @ gained
        best = _best(seen.terms @ known, legal)
        return gained[np.arange(len(gained)), best]

    def choose(self, node: int, strength: np.ndarray) -> np.ndarray:
        """int64 [n], what it plays at a node of the bets with some hands.

        Args:
          node: where it acts.
          strength: float64 [n, 2], see `PublicRules.hand_strength`.
        """
        legal = self._bets.below[node] >= 0
        known = self._known.get(node)
        if known is None:
            return np.full(len(strength), np.flatnonzero(legal)[0])
        return _best(_terms(strength) @ known, legal)

    def actions(
        self, states: np.ndarray, random: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """What it plays at its decisions.

        Args:
          states: of the rules, n of them.
          random: of the estimates of hands.

        Returns:
          int64 [n], OpenSpiel's actions, and their places among the legal ones.
        """
        node = self._rules.nodes(states)
        strength = self._rules.hand_strength(states, self.player, random)
        best = np.zeros(len(node), np.int64)
        for one in np.unique(node).tolist():
            best[node == one] = self.choose(one, strength[node == one])
        legal = self._bets.below[node] >= 0
        before = np.arange(legal.shape[1]) < best[:, None]
        return best, np.count_nonzero(legal & before, axis=1)

    def play(self, count: int, random: np.random.Generator) -> np.ndarray:
        """float64 [count], its returns in matches that teach it nothing.

        Args:
          count: of them.
          random: of all that is drawn.
        """
        source, opponent = self._setting.source, self._setting.opponent
        positions, match = source.start(count, random), np.arange(count)
        returns = np.zeros(count)
        while True:
            over = positions.player == TERMINAL
            returns[match[over]] = positions.utility[over]
            live = np.flatnonzero(~over)
            if not len(live):
                return returns if self.player == 0 else -returns
            match, place = match[live], np.zeros(len(live), np.int64)
            mine = positions.player[live] == self.player
            if mine.any():
                states = positions.states[live[mine]].rows
                place[mine] = self.actions(states, random)[1]
            if not mine.all():
                place[~mine] = opponent.draw(positions, live[~mine], random)
            positions = source.step(positions, live, place, random)

    def policy(self) -> "BackwardPolicy":
        """What it plays, at OpenSpiel's states."""
        return BackwardPolicy(self, self._setting.source.game, self._rules, self._seed)


class BackwardPolicy(openspiel_policy.Policy):
    """What a `BackwardResponder` plays; its own draws depend on what it sees alone."""

    def __init__(
        self,
        responder: BackwardResponder,
        game: pyspiel.Game,
        rules: Any,
        seed: int,
    ) -> None:
        """Use `BackwardResponder.policy`."""
        super().__init__(game, [responder.player])
        self._responder, self._rules, self._seed = responder, rules, seed

    def action_probabilities(
        self, state: pyspiel.State, player_id: int | None = None
    ) -> dict[int, float]:
        """1 for the best of all legal actions.

        Raises:
          ValueError: another player acts, or none.
        """
        player = self._responder.player
        if state.current_player() != player or player_id not in (None, player):
            raise ValueError(
                f"player_id={player_id!r}: player {state.current_player()} acts after "
                f"the actions {state.history()}, and this is the response of player "
                f"{player}; ask where it acts"
            )
        rows = self._rules.new_initial_states()
        for action in state.history():
            rows = self._rules.child(rows, np.array([action], np.int64))
        known = self._rules.information_state(rows, player)
        crc = zlib.crc32(np.ascontiguousarray(known, "<i8").tobytes())
        random = np.random.default_rng([self._seed, player, crc])
        chosen = int(self._responder.actions(rows, random)[0][0])
        return {action: float(action == chosen) for action in state.legal_actions()}


def refusal(setting: Setting) -> str | None:
    """Why a setting has no backward response; None: it has one.

    Args:
      setting: of the game and the opponent.
    """
    source = setting.source
    rules = source.rules if isinstance(source, RulesSource) else None
    if not (hasattr(rules, "bets") and hasattr(rules, "hand_strength")):
        return "the game's rules on arrays do not say what all bets are"
    if not hasattr(setting.opponent, "odds"):
        return "the opponent may look at its cards"
    return None


def _terms(strength: np.ndarray) -> np.ndarray:
    """float64 [n, K], what is regressed on, from float64 [n, 2], `hand_strength`."""
    equity, spread = strength[:, 0], strength[:, 1]
    bent = [np.maximum(equity - kink, 0) ** 2 for kink in _KINKS]
    powers = [equity**power for power in range(4)]
    return np.stack([*powers, *bent, spread, spread * equity], axis=1)


def _best(values: np.ndarray, legal: np.ndarray) -> np.ndarray:
    """int64 [n], the first of the best legal actions.

    Args:
      values: float64 [n, A].
      legal: bool [A].
    """
    found: np.ndarray = np.argmax(np.where(legal, values, -np.inf), axis=1)
    return found
