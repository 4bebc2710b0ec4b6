"""Fourth stage: ISMCTS-BR on OpenSpiel states, as a bot, for any two-player game.

For games that are too large to compile; `ismcts_br.py` searches compiled ones, batched.
"""

import bisect
import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import pyspiel
from open_spiel.python import policy as policy_lib

from spiel_cr.common.checks import check_iterations, check_seed
from spiel_cr.compilation import loading
from spiel_cr.policies.bot_base import PolicyPlayer
from spiel_cr.responses import ismcts_node, opponents
from spiel_cr.responses.ismcts_config import SearchConfig
from spiel_cr.responses.ismcts_node import Node
from spiel_cr.responses.state_posterior import StatePosterior

_TERMINAL = int(pyspiel.PlayerId.TERMINAL)


class Guide(Protocol):
    """What is thought of an information state before it is searched."""

    def __call__(
        self, state: pyspiel.State, player: int
    ) -> tuple[Sequence[float], float | None]:
        """Prior and value of the player's information state at `state`.

        Args:
          state: the player is to act; only its information may be used.
          player: the responder.

        Returns:
          The probability of each legal action, in their order; and what the player can
          expect, in the game's units, or None: a random rollout tells.
        """


def uniform_guide(
    state: pyspiel.State, player: int
) -> tuple[Sequence[float], float | None]:
    """All actions alike; values by rollout. A `Guide`."""
    legal = state.legal_actions()
    return [1 / len(legal)] * len(legal), None


class Searched(NamedTuple):
    """What a search found at an information state.

    Attributes:
      actions: the legal ones.
      visits: of each, those of earlier searches in the match included.
      values: of each, as the bot's `backup` says; the responder's, in the game's
        units; 0 where no simulation took it.
    """

    actions: list[int]
    visits: list[int]
    values: list[float]


class ISMCTSBRBot(PolicyPlayer):
    """Responds to a known policy by search from each of its decisions.

    Timbers et al. 2022, "Approximate exploitability: learning a best response",
    Algorithms 1 and 2: each simulation draws a history from the exact posterior of the
    present information state; PUCT chooses at the responder's information states, the
    opponent's policy and chance at theirs; the first information state that is not in
    the tree joins it, and its value (by the guide, or the return of a rollout) is
    backed up. The most visited action is played.

    Deviations. What is backed up: by default an action is worth what it brings if the
    most visited action follows at every later decision, so that exploration further
    down does not lower it; see `search_node.back_up`. An unvisited action is worth the
    mean of its information state (theirs: 0), since utilities need not be centred.
    Values are undiscounted returns. With rollouts, the first action outside of the tree
    is recorded too; the opponent plays its policy there.

    Each search has its own random numbers, made from the seed and the information
    state, so a match does not depend on those played before it; only what is drawn with
    a temperature depends on how many matches there were.

    Attributes:
      belief: over histories.
      simulations: run since it was made.
    """

    def __init__(
        self,
        game: str | pyspiel.Game,
        player: int,
        opponent: policy_lib.Policy,
        config: SearchConfig | None = None,
        *,
        seed: int = 0,
        guide: Guide | None = None,
        rollout: policy_lib.Policy | None = None,
        belief: StatePosterior | None = None,
        backup: str = "chosen",
        max_nodes: int = 200_000,
        noise: float = 0.0,
        concentration: float = 0.3,
        temperature: float = 0.0,
    ) -> None:
        """Searches nothing yet.

        Args:
          game: OpenSpiel game string or game.
          player: the seat, 0 or 1.
          opponent: its policy; must depend on its information states only.
          config: simulations a decision and the rest (`batch` is not used).
          seed: of all draws.
          guide: prior and value; None: uniform prior, values by rollout.
          rollout: how the responder plays in rollouts, its first action outside of the
            tree included; None: that one by the prior, the others uniformly.
          belief: that histories are drawn from; None: `StatePosterior` with its
            defaults, of all consistent histories if `config.posterior` is "uniform".
          backup: what an action is worth: "chosen", its mean return if the most visited
            action follows at every later decision; "mean", the mean return of the
            simulations that took it, as in the paper.
          max_nodes: most information states in the tree. A full tree does not grow;
            if it is full when a search begins, it is dropped first.
          noise: share of Dirichlet noise in the prior of the state that is searched,
            for learning.
          concentration: of the Dirichlet distribution, of each action.
          temperature: of the policy: visits ** (1 / temperature); 0: the most visited
            action only, the better one if equal.

        Raises:
          ValueError: a bad argument.
          pyspiel.SpielError: OpenSpiel does not know the game.
        """
        super().__init__(player)
        game = loading.load_game(game)
        if not 0 <= noise <= 1:
            raise ValueError(f"noise={noise!r} must lie in [0, 1]")
        if not 0 < concentration < math.inf:
            raise ValueError(f"concentration={concentration!r} must be positive")
        if not 0 <= temperature < math.inf:
            raise ValueError(f"temperature={temperature!r} must be 0 or more")
        if backup not in ismcts_node.BACKUPS:
            raise ValueError(
                f"backup={backup!r}; choose one of {', '.join(ismcts_node.BACKUPS)}"
            )
        config = config or SearchConfig()
        if config.learn:
            raise ValueError(
                f"learn={config.learn} searches every information state beforehand, "
                f"which needs a compiled game (ismcts_br.search_response); on states "
                f"leave it 0 and give a guide"
            )
        self._uniform = config.posterior == "uniform"
        if belief is None:
            # Against a uniform opponent, every consistent history is possible.
            believed = policy_lib.UniformRandomPolicy(game)
            belief = StatePosterior(
                game, player, believed if self._uniform else opponent
            )
        self.belief = belief
        self.simulations = 0
        self._simulations = config.simulations
        half_range = (game.max_utility() - game.min_utility()) / 2
        self._exploration = config.exploration * half_range
        self._backup = backup
        self._seed = check_seed(seed)
        self._guide: Guide = guide or uniform_guide
        self._max_nodes = check_iterations(max_nodes, name="max_nodes")
        self._noise, self._concentration = noise, concentration
        self._temperature = temperature
        self._answers = opponents.Answers(opponent, 1 - player)
        self._by_prior = rollout is None
        self._own = opponents.Answers(
            rollout or policy_lib.UniformRandomPolicy(game), player
        )
        self._nodes: dict[str, Node] = {}
        self._matches = 0

    @property
    def num_nodes(self) -> int:
        """Information states in the tree."""
        return len(self._nodes)

    def restart(self) -> None:
        """A new match: the tree and the belief are dropped."""
        self._nodes.clear()
        self.belief.restart()
        self._matches += 1

    def get_policy(self, state: pyspiel.State) -> list[tuple[int, float]]:
        loading.check_state(state)
        legal = state.legal_actions()
        if len(legal) == 1:
            return [(legal[0], 1.0)]
        found = self.search(state)
        return list(zip(found.actions, self._shares(found), strict=True))

    def choose(self, state: pyspiel.State, policy: list[tuple[int, float]]) -> int:
        random = generator_at(self._seed, state, self._player, 1 + self._matches)
        return draw_outcome(policy, random.random())

    def search(self, state: pyspiel.State) -> Searched:
        """Runs the simulations of one decision.

        Args:
          state: the player is to act; what it does not know is not looked at.

        Raises:
          ValueError: the belief has too many histories, see `StatePosterior`; or a
            state of the unconverted simultaneous game.
        """
        loading.check_state(state)
        self.belief.update(state)
        if len(self._nodes) >= self._max_nodes:
            self._nodes.clear()
        key = state.information_state_string(self._player)
        root = self._nodes.get(key)
        if root is None:
            prior, _ = self._guide(state, self._player)
            root = Node(state.legal_actions(), list(prior))
            self._nodes[key] = root
        random = generator_at(self._seed, state, self._player, 0)
        without_noise = root.prior
        if self._noise:
            noise = random.dirichlet([self._concentration] * len(root.actions))
            mixed = (1 - self._noise) * np.array(without_noise)
            mixed += self._noise * noise
            root.prior = mixed.tolist()
        number = numbers(random)
        for _ in range(self._simulations):
            history = self.belief.sample(random, uniform=self._uniform)
            self._simulate(history, root, number)
        root.prior = without_noise
        self.simulations += self._simulations
        values = [
            total / visits if visits else 0.0
            for total, visits in zip(root.totals, root.visits, strict=True)
        ]
        return Searched(list(root.actions), list(root.visits), values)

    def _simulate(
        self, state: pyspiel.State, node: Node | None, number: Callable[[], float]
    ) -> None:
        """Goes from a history at the root to a value, and backs it up."""
        me, nodes, answers = self._player, self._nodes, self._answers
        path: list[tuple[Node, int]] = []
        leaf = None
        while True:
            mover = state.current_player()
            if mover == me:
                if node is None:
                    key = state.information_state_string(me)
                    node = nodes.get(key)
                if node is None:
                    leaf, value = self._leave(state, key, path, number)
                    break
                place = node.choose(self._exploration)
                path.append((node, place))
                state.apply_action(node.actions[place])
                node = None
            elif mover >= 0:
                actions, _, ends = answers(state)
                state.apply_action(actions[bisect.bisect_right(ends, number())])
            elif mover == _TERMINAL:
                value = state.player_return(me)
                break
            else:
                outcomes = state.chance_outcomes()
                state.apply_action(draw_outcome(outcomes, number()))
        ismcts_node.back_up(path, leaf, value, self._backup)

    def _leave(
        self,
        state: pyspiel.State,
        key: str,
        path: list[tuple[Node, int]],
        number: Callable[[], float],
    ) -> tuple[Node | None, float]:
        """The value of an information state outside of the tree, which may join it.

        The node comes with it where a guide gave the value.
        """
        if len(self._nodes) >= self._max_nodes:
            return None, self._roll_out(state, number)
        prior, value = self._guide(state, self._player)
        node = Node(state.legal_actions(), list(prior))
        self._nodes[key] = node
        if value is not None:
            return node, value
        if self._by_prior:
            weighted = list(zip(range(len(node.actions)), node.prior, strict=True))
            place = draw_outcome(weighted, number())
        else:
            actions, _, ends = self._own(state)
            place = node.actions.index(actions[bisect.bisect_right(ends, number())])
        path.append((node, place))
        state.apply_action(node.actions[place])
        return None, self._roll_out(state, number)

    def _roll_out(self, state: pyspiel.State, number: Callable[[], float]) -> float:
        """The responder's return if it stops thinking here."""
        me, answers, own = self._player, self._answers, self._own
        while True:
            mover = state.current_player()
            if mover >= 0:
                actions, _, ends = (own if mover == me else answers)(state)
                state.apply_action(actions[bisect.bisect_right(ends, number())])
            elif mover == _TERMINAL:
                return float(state.player_return(me))
            else:
                outcomes = state.chance_outcomes()
                state.apply_action(draw_outcome(outcomes, number()))

    def _shares(self, found: Searched) -> list[float]:
        """The policy that visits give."""
        visits = np.array(found.visits, float)
        if self._temperature == 0:
            tied = visits == visits.max()
            chosen = int(np.where(tied, found.values, -np.inf).argmax())
            return [float(place == chosen) for place in range(len(visits))]
        shares = (visits / visits.max()) ** (1 / self._temperature)
        return [float(share) for share in shares / shares.sum()]


def numbers(random: np.random.Generator) -> Callable[[], float]:
    """Uniform numbers in [0, 1), one a call, drawn in blocks, which is faster.

    Args:
      random: consumed, a block at a time.
    """

    def draw() -> Iterator[float]:
        while True:
            yield from random.random(1024).tolist()

    return draw().__next__


def draw_outcome(outcomes: Sequence[tuple[int, float]], number: float) -> int:
    """The action of (action, probability) that a number in [0, 1) draws."""
    for action, probability in outcomes:
        number -= probability
        if number < 0:
            return action
    # The probabilities may round to less than 1.
    return max(outcomes, key=lambda outcome: outcome[1])[0]


def generator_at(
    seed: int, state: pyspiel.State, player: int, stream: int
) -> np.random.Generator:
    """The generator of one decision, the same whenever it is met."""
    key = state.information_state_string(player).encode()
    return np.random.default_rng([seed, player, stream, zlib.crc32(key)])
