# The steps are in .ci/run, which needs no make; PYTHON is the interpreter to check with.
PYTHON ?= python
STEPS = format lint types spell workflows core-only doctest package docs braindecode lowest paste tests

.PHONY: check nightly screenshots $(STEPS)
check $(STEPS):
	@PYTHON=$(PYTHON) bash .ci/run $@

screenshots:  # pictures of README and docs, of the run in the folder RUN
	@$(PYTHON) docs/screenshots.py $(RUN)

nightly:  # everything, at its full length, in an environment of its own
	@bash .ci/run nightly
