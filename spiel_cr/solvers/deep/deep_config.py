"""Settings of deep CFR and its successors, and strings such as "sd-cfr(hidden=64)"."""

import dataclasses
import math

from spiel_cr.common import checks

AVERAGING = ("network", "bank", "exact")
NETWORK = ("mlp", "table")
FEATURES = ("information_state", "observation")
FALLBACK = ("argmax", "uniform")
DRAWS = ("stratified", "independent")
# What networks may be made of, also those of policy files.
MOST_UNITS, MOST_LAYERS = 1 << 16, 64
# What settings must be.
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
    "bank": range(2**31),
}


@dataclasses.dataclass(frozen=True)
class DeepConfig:
    """A member of the deep CFR family.

    In iteration t, for each player in turn, `traversals` trajectories give advantages
    of the player's actions, a memory takes them in, and a network is fitted to it.
    Regret matching on the network's advantages is the player's next strategy.

    Attributes:
      name: for people; the preset or the string it was made from.
      sampling: "external": all actions of the updating player, one of everybody
        else's; "outcome": one action everywhere.
      epsilon: of outcome sampling, the share of uniform exploration by the updating
        player.
      draws: "stratified": the draws of a batch at one infoset (of chance: at one
        history) are spread evenly, see `draws.points`; or "independent".
      values: "sampled": utilities at the ends; "corrected": a critic's guesses,
        corrected by what was sampled (DREAM); "critic": its guesses alone (ESCHER).
      importance: whether visits are weighed by one over the updating player's reach
        under exploration. Without, its exploration must be the same in all iterations
        (`epsilon=1`).
      accumulate: "mean": advantages are the weighted mean over all iterations (Deep
        CFR); "cumulative": what was positive before, discounted, plus the newest.
      alpha: of "cumulative", the discount t^alpha / (t^alpha + 1).
      predictive: of "cumulative", count the newest advantages twice, as the
        prediction of the next ones.
      linear: exponent of t in the weight of iteration t's advantages, of "mean".
      gamma: exponent of t in the weight of iteration t in the average.
      memory: "reservoir": a uniform sample of `capacity` visits; of "cumulative", the
        visits of the last iteration alone, and of compiled games the weights of those
        before, by infoset. "exact": sums per infoset, of compiled games.
      capacity: visits in a reservoir, per player; of advantages, and again as many of
        strategies.
      averaging: what makes the average strategy: "network": fitted to sampled
        strategies; "bank": all iterates, mixed by their reach (SD-CFR); "exact": the
        running mean of reach, of compiled games. Several may be joined by "+"; the
        first is the result.
      bank: iterates kept in a bank, a uniform sample; 0: all of them.
      network: "mlp": a perceptron; "table": a row per infoset, of compiled games.
      features: what a perceptron sees: the information state tensor, or the
        observation tensor, which may forget.
      fallback: what is played where no advantage is positive: the best action, or all
        alike.
      hidden: units of each hidden layer.
      layers: hidden layers.
      traversals: per player and iteration.
      steps: of Adam per fit of advantages.
      batch: rows per step; fewer rows are all taken in each step.
      learning_rate: at first; falls to 0 along a cosine in each fit.
      restart: begin each fit of advantages anew, not from the last network.
      balance: exponent of the infosets' weights in the loss, where the loss is of
        means per infoset: 1: as the memory has them; 0: all infosets alike.
      average_steps: of Adam in the fit of an average network.
      critic_steps: of Adam per iteration, for the critic.
      critic_batch: transitions per step, for the critic.
      critic_rate: the critic's learning rate, as `learning_rate`.
      critic_capacity: transitions that the critic learns from, the newest.
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
    bank: int = 0
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
        """Raises ValueError for a bad setting, or settings that exclude each other."""
        checks.check_settings(self, _WANTED)
        for one in self.averages:
            checks.check_choice(one, "averaging", AVERAGING)
        if self.alpha != math.inf:
            remedy = "inf discounts nothing"
            checks.check_number(self.alpha, "alpha", "[0, 10]", remedy=remedy)
        checks.check_integer(self.critic_capacity, "critic_capacity", self.critic_batch)
        self._check_together()

    def _check_together(self) -> None:
        def refuse(one: str, other: str, remedy: str) -> ValueError:
            value, name = getattr(self, one), getattr(self, other)
            return ValueError(
                f"{one}={str(value).lower()} does not go with "
                f"{other}={str(name).lower()}; {remedy}"
            )

        if self.predictive and self.accumulate == "mean":
            raise refuse("predictive", "accumulate", "choose accumulate=cumulative")
        if self.predictive and self.memory == "reservoir" and "bank" in self.averages:
            raise refuse("predictive", "averaging", "choose network, or memory=exact")
        if self.sampling == "external" and self.values == "critic":
            raise refuse("sampling", "values", "choose sampling=outcome")
        if not self.importance and self.sampling == "outcome" and self.epsilon < 1:
            raise refuse("importance", "epsilon", "choose epsilon=1 or importance=true")

    @property
    def averages(self) -> tuple[str, ...]:
        """The kinds of averages that are kept; the first is the result."""
        return tuple(self.averaging.split("+"))

    @property
    def needs_tree(self) -> str | None:
        """A setting that only compiled games have, as "memory=exact"; None: there is
        none."""
        if self.memory == "exact":
            return "memory=exact"
        if self.network == "table":
            return "network=table"
        return "averaging=exact" if "exact" in self.averages else None


PRESETS: dict[str, DeepConfig] = {
    preset.name: preset
    for preset in (
        DeepConfig("deep-cfr"),
        DeepConfig("sd-cfr", averaging="bank"),
        DeepConfig(
            "dream",
            sampling="outcome",
            values="corrected",
            averaging="bank",
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
}
