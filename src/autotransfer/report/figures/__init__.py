"""Drawings: numbers in, axes out; `autotransfer.plots` draws them for everybody."""
