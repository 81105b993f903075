"""The commands that take the project's figures: ``python -m benchmarks.speed.eegnet_step``."""
