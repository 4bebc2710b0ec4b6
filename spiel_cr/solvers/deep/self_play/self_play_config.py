"""Names and settings of self-play, as `name(parameter=value)`."""

import dataclasses

from spiel_cr.common.checks import Wanted, check_settings
from spiel_cr.solvers.deep.deep_config import DRAWS, FEATURES, NETWORK

# Valid values of settings.
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
    """Settings of self-play by mirror descent.

    The result is the policy of the mean of the last iterates' parameters.

    Each player has a separate network. A critic, a perceptron of the same size,
    estimates the utility of each action from the information of both players, which is
    available during training. This reduces the variance that chance and the other
    player add to advantages.

    Utilities are divided by their root mean square in the first iteration with nonzero
    utilities, in which play is nearly uniform. Weights of divergences therefore have
    the same meaning in every game, whether utilities are chips or wins and losses.

    Attributes:
      name: Name for messages, the preset or the string from which it was created;
        configurations that differ only in it are equal.
      network: Kind of networks: "mlp", perceptrons; or "table", a row of logits for
        each infoset and of the critic's outputs for each decision, only for game trees.
      features: Input of a perceptron: the information state tensor, or the observation
        tensor, which may have imperfect recall.
      hidden: Number of units of each hidden layer of a perceptron.
      layers: Number of hidden layers of a perceptron.
      schedule: Number of decisions of both players after which the learning rate is 0;
        players do not learn after that, so it is the length of a run.
      episodes: Number of matches of an iteration, which are played in parallel.
      draws: Random numbers of an iteration: "stratified", spread evenly at each infoset
        (for chance in game trees: at each history), see `draws.points`; or
        "independent".
      epochs: Number of passes over an iteration's decisions.
      minibatches: Number of steps of the optimiser in an epoch.
      learning_rate: Initial learning rate of Adam, which falls linearly to 0.
      critic_rate: Learning rate of Adam for the critic, which is constant.
      trace: Parameter lambda: factor of the weight of a later result for each decision
        in between, the rest being the critic's estimate; with 1, errors of the critic
        do not bias advantages.
      temperature: Initial weight of the divergence from the magnet.
      cooling: Factor of the temperature over the complete schedule, applied
        geometrically; the proximity is divided by it, so that steps shrink with the
        temperature, which is sufficient for the last iterates to converge without
        sampling (Sokota et al. 2022).
      magnet_rate: Share by which the magnet's parameters move towards the player's in
        the first iteration, later in proportion to the learning rate; 0: the magnet
        remains the initial network, which is nearly uniform. If the magnet moves faster
        than the players learn, the players cycle.
      proximity: Initial weight of the divergence from the policy that played, 1 / eta
        of magnetic mirror descent.
      mean_share: Share of the decisions so far, the last ones, over which the
        exponential mean of parameters in the result extends; 0: the last iterate.
      gradient_norm: Maximum norm of the gradient of all parameters of a network.
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
        """Return Adam's learning rate after a number of decisions."""
        return (1 - self.completed(decisions)) * self.learning_rate

    def weights_after(self, decisions: int) -> tuple[float, float]:
        """Return temperature and proximity after a number of decisions."""
        fallen = self.cooling ** self.completed(decisions)
        return self.temperature * fallen, self.proximity / fallen

    def mean_rate(self, new: int, before: int) -> float:
        """Return the weight of the newest parameters in the mean.

        Args:
          new: Number of decisions from which they were learned.
          before: Number of earlier decisions.
        """
        return min(1.0, new / max(self.mean_share * (before + new), 1.0))

    def completed(self, decisions: int) -> float:
        """Return the completed share of the schedule."""
        return min(1.0, decisions / self.schedule)

    @property
    def needs_tree(self) -> str | None:
        """Setting that requires a game tree, or None."""
        return "network=table" if self.network == "table" else None


# `mmd`: magnetic mirror descent (Sokota et al. 2022) with a uniform magnet. Temperature
# and step size decrease. Sizes, rates and temperatures do not come from the paper.
SELF_PLAY_PRESETS: dict[str, SelfPlayConfig] = {"mmd": SelfPlayConfig("mmd")}
