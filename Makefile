# `make help` lists the targets. Every target makes the environment it needs.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
DEV    := $(VENV)/.installed-dev
PIP    := $(BIN)/python -m pip --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help env demo test lint types browser docs clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "nfgnn needs Python 3.11 or newer; name one with: make PYTHON=python3.11 …"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(STAMP): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install --quiet --constraint constraints.txt --editable .
	@touch $@

$(DEV): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@ $(STAMP)

env: $(STAMP)  ## make the virtual environment in .venv and install nfgnn into it

demo: $(STAMP)  ## train NFGNN on the built-in graph
	$(BIN)/nfgnn train

lint: $(DEV)  ## ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(DEV)  ## mypy, strict
	$(BIN)/mypy

browser:  ## chromium for the tests of the explorer, where apt-get may install it
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	  && apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium >/dev/null 2>&1; } \
	  || echo "chromium is not here and cannot be installed: the tests of the explorer will be skipped"

test: lint types browser  ## lint, types and all tests
	$(BIN)/pytest -n 2 --dist worksteal

docs: $(DEV)  ## build the documentation, warnings are errors
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

clean:  ## remove the environment and everything built
	rm -rf $(VENV) docs/_build build dist .mypy_cache .ruff_cache .pytest_cache
