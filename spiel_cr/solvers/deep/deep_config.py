"""Settings of deep CFR and its successors, and strings such as "sd-cfr(hidden=64)"."""

import dataclasses
import math

from spiel_cr.common import checks
from spiel_cr.common.parameters import by_name

AVERAGING = ("network", "ensemble", "exact")
NETWORK = ("mlp", "table")
FEATURES = ("information_state", "observation")
FALLBACK = ("argmax", "uniform")
DRAWS = ("stratified", "independent")
# Maximum sizes of networks, including those in policy files.
MOST_UNITS, MOST_LAYERS = 1 << 16, 64
# Valid values of settings.
_WANTED: checks.Wanted = {
    "sampling": ("external", "outcome"),
    "values": ("sampled", "corrected", "critic"),
    "accumulate": ("mean", "cumulative"),
    "memory": ("reservoir", "exact"),
    "network": NETWORK,
    "features": FEATURES,
    "fallback": FALLBACK,
    "draws": DRAWS,
    "epsilon": "(0, 1]",
    "balance": "[0, 1]",
    "learning_rate critic_rate": "(0, inf)",
    "linear gamma": "[0, 10]",
    "hidden": range(1, MOST_UNITS + 1),
    "layers": range(1, MOST_LAYERS + 1),
    "traversals steps batch capacity average_steps": range(1, 2**31),
    "critic_steps critic_batch": range(1, 2**31),
    "ensemble": range(2**31),
}


@dataclasses.dataclass(frozen=True)
class DeepConfig:
    """Settings of an algorithm of the deep CFR family.

    In iteration t, for each player in turn, `traversals` trajectories sample advantages
    of the player's actions. A memory stores them, and a network is fitted to the
    memory. The player's next strategy is regret matching on the network's advantages.

    Attributes:
      name: Name for messages, the preset or the string from which it was created.
      sampling: Followed actions: "external", all actions of the updating player and one
        action of the others; "outcome", one action at each decision.
      epsilon: Share of uniform exploration by the updating player in outcome sampling.
      draws: Random numbers of a batch: "stratified", spread evenly at each infoset
        (chance: at each history), see `draws.points`; or "independent".
      values: Estimates of utilities: "sampled", utilities at terminal nodes;
        "corrected", a critic's estimates with a correction by the sample (DREAM);
        "critic", a critic's estimates alone (ESCHER).
      importance: Weighting of visits by the reciprocal of the updating player's reach
        under exploration. If false, exploration must be the same in all iterations
        (`epsilon=1`).
      accumulate: Accumulation of advantages: "mean", the weighted mean over all
        iterations (Deep CFR); "cumulative", the positive part of the discounted sum,
        plus the newest.
      alpha: Exponent of the discount t^alpha / (t^alpha + 1) of "cumulative".
      predictive: Double weight of the newest advantages in "cumulative", as the
        prediction of the next ones.
      linear: Exponent of t in the weight of iteration t's advantages in "mean".
      gamma: Exponent of t in the weight of iteration t in the average.
      memory: Memory of advantages: "reservoir", a uniform sample of `capacity` visits
        (with "cumulative", only the visits of the last iteration, and for game trees
        the weights of earlier visits by infoset); "exact", sums per infoset, only for
        game trees.
      capacity: Maximum number of visits in a reservoir of each player, separately for
        advantages and for strategies.
      averaging: Average strategy: "network", a network fitted to sampled strategies;
        "ensemble", an ensemble of all iterates, mixed by their reach (SD-CFR); "exact",
        the running mean of reach, only for game trees. Several may be joined by "+";
        the first is the result.
      ensemble: Maximum number of iterates in the ensemble, a uniform sample; 0: no
        limit.
      network: Kind of approximator: "mlp", a perceptron; "table", one row for each
        infoset, only for game trees.
      features: Input of a perceptron: the information state tensor, or the observation
        tensor, which may have imperfect recall.
      fallback: Strategy if no advantage is positive: "argmax", the best action, or
        "uniform".
      hidden: Number of units of each hidden layer.
      layers: Number of hidden layers.
      traversals: Number of trajectories per player and iteration.
      steps: Number of steps of Adam per fit of advantages.
      batch: Number of rows per step; if there are fewer rows, each step uses all.
      learning_rate: Initial learning rate, which falls to 0 along a cosine in each fit.
      restart: Reinitialisation of the network before each fit of advantages.
      balance: Exponent of the infosets' weights in the loss, if the loss is on means
        per infoset: 1, the weights in the memory; 0, equal weights.
      average_steps: Number of steps of Adam in the fit of an average network.
      critic_steps: Number of steps of Adam per iteration for the critic.
      critic_batch: Number of transitions per step for the critic.
      critic_rate: Initial learning rate of the critic.
      critic_capacity: Maximum number of transitions for the critic, the newest.
    """

    name: str = dataclasses.field(compare=False)
    sampling: str = "external"
    epsilon: float = 0.5
    draws: str = "stratified"
    values: str = "sampled"
    importance: bool = True
    accumulate: str = "mean"
    alpha: float = math.inf
    predictive: bool = False
    linear: float = 1.0
    gamma: float = 1.0
    memory: str = "reservoir"
    capacity: int = 1_000_000
    averaging: str = "network"
    ensemble: int = 0
    network: str = "mlp"
    features: str = "information_state"
    fallback: str = "argmax"
    hidden: int = 128
    layers: int = 2
    traversals: int = 1000
    steps: int = 200
    batch: int = 2048
    learning_rate: float = 3e-3
    restart: bool = False
    balance: float = 0.75
    average_steps: int = 4000
    critic_steps: int = 100
    critic_batch: int = 512
    critic_rate: float = 1e-3
    critic_capacity: int = 200_000

    def __post_init__(self) -> None:
        """Raise ValueError if settings are invalid or incompatible."""
        checks.check_settings(self, _WANTED)
        for one in self.averages:
            checks.check_choice(one, "averaging", AVERAGING)
        if self.alpha != math.inf:
            remedy = "inf discounts nothing"
            checks.check_number(self.alpha, "alpha", "[0, 10]", remedy=remedy)
        checks.check_integer(self.critic_capacity, "critic_capacity", self.critic_batch)
        self._check_together()

    def _check_together(self) -> None:
        def error(one: str, other: str, remedy: str) -> ValueError:
            value, name = getattr(self, one), getattr(self, other)
            return ValueError(
                f"{one}={str(value).lower()} is incompatible with "
                f"{other}={str(name).lower()}; {remedy}"
            )

        if self.predictive and self.accumulate == "mean":
            raise error("predictive", "accumulate", "choose accumulate=cumulative")
        if (
            self.predictive
            and self.memory == "reservoir"
            and "ensemble" in self.averages
        ):
            raise error("predictive", "averaging", "choose network, or memory=exact")
        if self.sampling == "external" and self.values == "critic":
            raise error("sampling", "values", "choose sampling=outcome")
        if not self.importance and self.sampling == "outcome" and self.epsilon < 1:
            raise error("importance", "epsilon", "choose epsilon=1 or importance=true")

    @property
    def averages(self) -> tuple[str, ...]:
        """Kinds of averages that are computed; the first is the result."""
        return tuple(self.averaging.split("+"))

    @property
    def needs_tree(self) -> str | None:
        """First setting that requires a game tree, such as "memory=exact", or None."""
        if self.memory == "exact":
            return "memory=exact"
        if self.network == "table":
            return "network=table"
        return "averaging=exact" if "exact" in self.averages else None


PRESETS: dict[str, DeepConfig] = by_name(
    DeepConfig("deep-cfr"),
    DeepConfig("sd-cfr", averaging="ensemble"),
    DeepConfig(
        "dream",
        sampling="outcome",
        values="corrected",
        averaging="ensemble",
        traversals=4000,
    ),
    DeepConfig(
        "escher",
        sampling="outcome",
        values="critic",
        epsilon=1.0,
        importance=False,
        traversals=2000,
    ),
    DeepConfig(
        "vr-deep-dcfr+",
        sampling="outcome",
        values="corrected",
        accumulate="cumulative",
        alpha=2.0,
        gamma=2.0,
        traversals=2000,
    ),
    DeepConfig(
        "vr-deep-pdcfr+",
        sampling="outcome",
        values="corrected",
        accumulate="cumulative",
        predictive=True,
        alpha=2.3,
        gamma=2.0,
        traversals=2000,
    ),
)
