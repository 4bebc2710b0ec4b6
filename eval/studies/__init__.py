"""Figures of the literature, computed again: one small file a study."""
