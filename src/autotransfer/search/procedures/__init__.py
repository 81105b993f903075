"""Procedures: how a run goes from data to a model, by stages that are all on record."""
