"""The version, in one place: packaging, saved models and provenance read it here."""

__version__ = "0.2.0"
