"""Figures of the literature, computed again."""
