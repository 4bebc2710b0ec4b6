"""Names and settings of self-play, as `name(parameter=value)`."""

import dataclasses

from spiel_cr.common.checks import Wanted, check_settings
from spiel_cr.solvers.deep.deep_config import DRAWS, FEATURES, NETWORK

# What settings must be.
_WANTED: Wanted = {
    "network": NETWORK,
    "features": FEATURES,
    "draws": DRAWS,
    "schedule": range(1, 10**15 + 1),
    "episodes": range(1, (1 << 20) + 1),
    "hidden": range(1, (1 << 14) + 1),
    "layers": range(1, 65),
    "epochs": range(1, 1001),
    "minibatches": range(1, 10_001),
    "learning_rate critic_rate gradient_norm": "(0, inf)",
    "cooling": "[1e-6, 1]",
    "trace magnet_rate mean_share": "[0, 1]",
    "temperature proximity": "[0, inf)",
}


@dataclasses.dataclass(frozen=True)
class SelfPlayConfig:
    """Mirror descent that plays against itself.

    The result is what the mean of the last iterates' parameters plays.

    Each player has a network of its own. A critic, a perceptron as large as theirs,
    says what each action is worth where the information of both players is known, as it
    is in training: so advantages have less noise of chance and of the other player.

    Utilities are divided by their root mean square in the first iteration (that pays
    anything), where play is nearly uniform, so weights of divergences mean the same in
    every game: in chips, and where matches are won or lost.

    Attributes:
      name: for people; the preset or the string it was made from. Two configurations
        that differ in name only are equal.
      network: "mlp", perceptrons, or "table": a row of logits for each infoset of a
        compiled game, and of the critic's numbers for each decision.
      features: what a perceptron sees: the information state tensor, or the
        observation tensor, which may forget.
      hidden: units of each hidden layer of a perceptron.
      layers: hidden layers of a perceptron.
      schedule: decisions of both players after which the learning rate is 0, where it
        stays. Players learn nothing after that, so it is the length of a run.
      episodes: matches of an iteration, played side by side.
      draws: "stratified": the draws of an iteration at one infoset (of chance, in
        compiled games: at one history) are spread evenly, see `draws.points`; or
        "independent".
      epochs: how often an iteration's decisions are gone through.
      minibatches: steps of the optimiser in an epoch.
      learning_rate: of Adam, at the beginning; falls linearly to 0.
      critic_rate: of Adam, for the critic; it stays.
      trace: lambda: by how much less what happens counts for each decision that lies
        between; the rest is what the critic expects. 1: its errors bias no advantage.
      temperature: weight of the divergence from the magnet, at the beginning.
      cooling: what the temperature is multiplied with in the course of the schedule,
        geometrically; the proximity is divided by it, so that steps fall with the
        temperature: that is enough for last iterates to converge where nothing is
        sampled (Sokota et al. 2022).
      magnet_rate: how much of the way to the player's parameters those of the magnet go
        in the first iteration; less later, in proportion to the learning rate. A magnet
        that goes faster than the players learn makes them go in circles; 0: it stays
        where the network began, which is nearly uniform.
      proximity: weight of the divergence from the policy that played: 1 / eta of
        magnetic mirror descent; at the beginning.
      mean_share: the result has an exponential mean of parameters, over about this
        share of the decisions so far, the last ones; 0: the last iterate.
      gradient_norm: of all parameters of a network together, at most.
    """

    name: str = dataclasses.field(compare=False)
    network: str = "mlp"
    features: str = "information_state"
    hidden: int = 128
    layers: int = 2
    schedule: int = 10_000_000
    episodes: int = 2048
    draws: str = "stratified"
    epochs: int = 4
    minibatches: int = 4
    learning_rate: float = 2e-3
    critic_rate: float = 1e-3
    trace: float = 0.95
    temperature: float = 0.3
    cooling: float = 0.1
    magnet_rate: float = 0.0
    proximity: float = 2.0
    mean_share: float = 0.1
    gradient_norm: float = 0.5

    def __post_init__(self) -> None:
        check_settings(self, _WANTED)

    def rate_after(self, decisions: int) -> float:
        """Adam's learning rate after so many decisions."""
        return (1 - self._done(decisions)) * self.learning_rate

    def weights_after(self, decisions: int) -> tuple[float, float]:
        """Temperature and proximity after so many decisions."""
        fallen = self.cooling ** self._done(decisions)
        return self.temperature * fallen, self.proximity / fallen

    def mean_rate(self, new: int, before: int) -> float:
        """Weight of the newest parameters in the mean.

        Args:
          new: decisions that they were learnt from.
          before: decisions before these.
        """
        return min(1.0, new / max(self.mean_share * (before + new), 1.0))

    def _done(self, decisions: int) -> float:
        """How much of the schedule is over."""
        return min(1.0, decisions / self.schedule)

    @property
    def needs_tree(self) -> str | None:
        """A setting that only compiled games have; None: there is none."""
        return "network=table" if self.network == "table" else None


# `mmd`: magnetic mirror descent (Sokota et al. 2022) with a uniform magnet whose
# temperature falls, and steps with it. Sizes, rates and temperatures are our choice.
SELF_PLAY_PRESETS: dict[str, SelfPlayConfig] = {"mmd": SelfPlayConfig("mmd")}
