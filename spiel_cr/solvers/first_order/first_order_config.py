"""First-order methods and their names. What they are tuned by stands with each."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class FirstOrderConfig:
    """A first-order method.

    Attributes:
      name: for people.
      method: what checkpoints tell it by; "pdhg", see `primal_dual`.
    """

    name: str = dataclasses.field(default="pdhg", compare=False)
    method: str = dataclasses.field(default="pdhg", metadata={"fixed": True})


PRESETS: dict[str, FirstOrderConfig] = {"pdhg": FirstOrderConfig()}
