"""Games as data: loaded, simulated, and represented as trees or in other forms."""

__all__: list[str] = []
