"""Names and settings of self-play by policy gradients, as `name(parameter=value)`."""

import dataclasses
import math

from spiel_cr.common.checks import Wanted, check_number, check_settings
from spiel_cr.solvers.deep.deep_config import DRAWS, FEATURES, NETWORK

# Whose knowledge values are of: the player's own, or what both know together.
CRITIC = ("own", "joint")

# What settings must be.
_WANTED: Wanted = {
    "network": NETWORK,
    "features": FEATURES,
    "draws": DRAWS,
    "critic": CRITIC,
    "schedule": range(1, 10**15 + 1),
    "episodes": range(1, (1 << 20) + 1),
    "hidden": range(1, (1 << 14) + 1),
    "layers": range(1, 65),
    "epochs": range(1, 1001),
    "minibatches": range(1, 10_001),
    "learning_rate critic_rate gradient_norm": "(0, inf)",
    "cooling": "(0, 1]",
    "trace magnet_rate": "[0, 1]",
    "temperature proximity value_weight": "[0, inf)",
}


@dataclasses.dataclass(frozen=True)
class SelfPlayConfig:
    """A policy gradient that plays against itself; its last iterate is the result.

    Each player has a network of its own.

    Utilities are divided by their root mean square in the first iteration, where play
    is nearly uniform, so weights of divergences mean the same in every game.

    Attributes:
      name: for people; the preset or the string it was made from. Two configurations
        that differ in name only are equal.
      network: "mlp", a perceptron, or "table", a row of logits and a value for each
        infoset of a compiled game.
      features: what a perceptron sees: the information state tensor, or the
        observation tensor, which may forget.
      hidden: units of each hidden layer of a perceptron.
      layers: hidden layers of a perceptron.
      schedule: decisions of both players after which rates are 0, where they stay.
        Nothing is learned after that, so it is the length of a run that uses it well.
      episodes: matches of an iteration, played side by side.
      draws: "stratified": the draws of an iteration at one infoset (of chance, in
        compiled games: at one history) are spread evenly, see `draws.points`; or
        "independent".
      epochs: how often an iteration's decisions are gone through.
      minibatches: steps of the optimiser in an epoch.
      learning_rate: of Adam, at the beginning; falls linearly to 0.
      critic: "own": the player's network also says what an infoset is worth to it;
        "joint": one more perceptron says what each action is worth where the
        information of both players is known, as in training it is. Its errors do not
        bias advantages (with `trace=1`), which have less noise of chance and of the
        other player; they are not normalised.
      critic_rate: of Adam, of the joint critic; it stays.
      trace: lambda of generalised advantage estimation (Schulman et al. 2016); 1: Monte
        Carlo returns. Nothing is discounted.
      normalise: advantages of an iteration get mean 0 and standard deviation 1, for
        each network.
      clip: how far the ratio of new to old probability may be from 1 before a decision
        gains nothing more (Schulman et al. 2017, eq. 7); inf: as far as it likes.
      temperature: weight of the divergence from the magnet, a network whose parameters
        follow those of the player's (in a table: whose logits do, as in Sokota et al.
        2022).
      cooling: what the temperature is multiplied with in the course of the schedule,
        geometrically; the proximity is divided by it, so that steps fall with the
        temperature, as they must for the last iterate to converge (Sokota et al. 2022).
      magnet_rate: how much of the way to the player's network the magnet goes in the
        first iteration; less later, in proportion to the learning rate: a magnet that
        goes faster than the players learn makes them go in circles. 0: it stays where
        the network began, which is nearly uniform.
      proximity: weight of the divergence from the policy that played: 1 / eta of
        magnetic mirror descent; at the beginning.
      value_weight: weight of the squared error of values, beside the policy's loss.
      gradient_norm: of all parameters of a network together, at most.
    """

    name: str = dataclasses.field(compare=False)
    network: str = "mlp"
    features: str = "information_state"
    hidden: int = 64
    layers: int = 2
    schedule: int = 10_000_000
    episodes: int = 2048
    draws: str = "stratified"
    epochs: int = 4
    minibatches: int = 4
    learning_rate: float = 5e-4
    critic: str = "own"
    critic_rate: float = 1e-3
    trace: float = 0.95
    normalise: bool = True
    clip: float = 0.1
    temperature: float = 0.3
    cooling: float = 1.0
    magnet_rate: float = 0.02
    proximity: float = 0.0
    value_weight: float = 0.5
    gradient_norm: float = 0.5

    def __post_init__(self) -> None:
        check_settings(self, _WANTED)
        if self.clip != math.inf:
            check_number(self.clip, "clip", "(0, inf)", why="or nothing is learned")
        if self.normalise and self.critic == "joint":
            raise ValueError(
                "normalise=true: advantages of critic=joint are not normalised; give "
                "normalise=false, or critic=own"
            )

    def rate_after(self, decisions: int) -> float:
        """Adam's learning rate after so many decisions."""
        return (1 - self._done(decisions)) * self.learning_rate

    def weights_after(self, decisions: int) -> tuple[float, float]:
        """Temperature and proximity after so many decisions."""
        fallen = self.cooling ** self._done(decisions)
        return self.temperature * fallen, self.proximity / fallen

    def _done(self, decisions: int) -> float:
        """How much of the schedule is over."""
        return min(1.0, decisions / self.schedule)

    @property
    def needs_compiled(self) -> str | None:
        """A setting that only compiled games have; None: there is none."""
        return "network=table" if self.network == "table" else None


# `ppo`: the clipped objective of Schulman et al. 2017, in self-play, with a divergence
# from a magnet that follows the players in the place of an entropy bonus. `mmd`:
# magnetic mirror descent (Sokota et al. 2022) with a uniform magnet whose temperature
# falls, and steps with it, on the values of a joint critic.
# Sizes, rates and temperatures are our own choice.
SELF_PLAY_PRESETS: dict[str, SelfPlayConfig] = {
    preset.name: preset
    for preset in (
        SelfPlayConfig("ppo"),
        SelfPlayConfig(
            "mmd",
            learning_rate=2e-3,
            critic="joint",
            normalise=False,
            clip=math.inf,
            cooling=0.1,
            magnet_rate=0.0,
            proximity=2.0,
        ),
    )
}
