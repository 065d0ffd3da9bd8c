# Each target is one command of labkit, which works without make too: `python3 -m labkit`.
PYTHON ?= python3
LABKIT = $(PYTHON) -m labkit
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help lab test test-slow notebooks lint safeguards bench demo doctor

help:
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 12

lab: ## open JupyterLab on your own copies of the notebooks
	@$(LABKIT) lab $(ARGS)

test: ## unit tests, every notebook, and the browser tests where a Chromium is present
	@$(LABKIT) test $(ARGS)

test-slow: ## kill storms, sweeps and databases
	@$(LABKIT) test --slow $(ARGS)

notebooks: ## run the tracked notebooks again in place
	@$(LABKIT) notebooks $(ARGS)

lint: ## ruff over package, tests and notebooks, and the strict type check
	@$(LABKIT) python -m ruff check .
	@$(LABKIT) python -m ruff format --check labkit tests
	@$(LABKIT) python -m mypy

safeguards: ## break each safeguard in a scratch copy and see its test go red
	@$(LABKIT) python -m tests.safeguards $(ARGS)

bench: ## measure, beside the peers in the same run
	@$(LABKIT) python -m tests.bench $(ARGS)

demo: ## kill a service in the middle of a run, and see another go on
	@$(LABKIT) demo $(ARGS)

doctor: ## say what is missing here, each with its cure
	@$(LABKIT) doctor
