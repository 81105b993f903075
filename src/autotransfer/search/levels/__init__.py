"""Somebody held out, treated as new at every level: nothing, a recording, a stream, labels."""
