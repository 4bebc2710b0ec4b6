"""First-order methods and their names. What they are tuned by stands with each."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class FirstOrderConfig:
    """A first-order method.

    Attributes:
      name: for people.
      method: "egt", see `excessive_gap`; or "pdhg", see `primal_dual`.
    """

    name: str = dataclasses.field(compare=False)
    method: str = dataclasses.field(metadata={"fixed": True})


PRESETS: dict[str, FirstOrderConfig] = {
    preset.name: preset
    for preset in (
        FirstOrderConfig("egt", "egt"),
        FirstOrderConfig("pdhg", "pdhg"),
    )
}
