"""Shared parts of the packages of `eval`: game instances, budgets, conditions."""
