# The steps are in .ci/run, which needs no make; PYTHON is the interpreter to check with.
PYTHON ?= python
STEPS = format lint types spell workflows core-only doctest package docs braindecode paste tests

.PHONY: check $(STEPS)
check $(STEPS):
	@PYTHON=$(PYTHON) bash .ci/run $@
