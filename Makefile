# `make help` lists the targets. Every target installs the environment that it needs.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
DEV    := $(VENV)/.installed-dev
LOWEST := .venv-lowest
# Without the tests of Ray, and without those of memory, which depend on the build of torch.
LOWEST_TESTS := tests/data tests/spectral tests/store tests/nn/test_nf_conv.py \
  tests/training/test_classifier.py tests/training/test_run_folder.py \
  tests/training/test_batched.py tests/cli/test_train.py \
  --ignore tests/store/test_executors.py --ignore tests/store/test_memory_budget.py
PIP    := $(BIN)/python -m pip --disable-pip-version-check

# The tests start many processes. The first one writes the bytecode that the others read.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help env demo test pytest fuzz test-lowest lock lint types browser faults docs dist \
  notebooks check-dist portfolio clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s  %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "nfgnn needs Python 3.11 or newer: make PYTHON=python3.11 …"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(STAMP): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install --quiet --constraint constraints.txt --editable .
	@touch $@

# Without --no-compile, pip compiles all modules of all packages, of which few are imported.
$(DEV): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install --quiet --no-compile --constraint constraints.txt --editable '.[dev]'
	@touch $@ $(STAMP)

env: $(STAMP)  ## create the virtual environment .venv and install nfgnn into it

demo: $(STAMP)  ## train NFGNN on the built-in graph
	$(BIN)/nfgnn train

lint: $(DEV)  ## run ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(DEV)  ## run mypy in strict mode
	$(BIN)/mypy

browser:  ## install Chromium for the tests of the explorer, if apt-get is available
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null \
	  || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq \
	       && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
	          chromium >/dev/null 2>&1; } \
	  || echo "Chromium cannot be installed: the tests of the explorer will be skipped"

# Two jobs at a time use both cores: the browser is installed while the packages are, and mypy runs
# beside pytest.
test:  ## run the checks: lint, types and all tests
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target lint browser
	@$(MAKE) --no-print-directory --jobs 2 pytest types

pytest: $(DEV)
	$(BIN)/pytest -n 2 --dist worksteal

test-lowest:  ## run the core tests with the lowest versions that pyproject.toml allows
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet --constraint constraints-lowest.txt \
	  --editable '.[tune]' pytest pytest-timeout hypothesis networkx 'pandas<3'
	$(LOWEST)/bin/pytest -o filterwarnings= $(LOWEST_TESTS)

lock: $(STAMP)  ## write requirements.lock: what nfgnn needs at run time, with hashes
	$(PIP) install --quiet uv
	$(BIN)/uv pip compile --quiet --generate-hashes --no-header --no-annotate \
	  --python-version 3.11.7 --python-platform x86_64-manylinux_2_28 \
	  --constraint constraints.txt --extra tune pyproject.toml --output-file requirements.lock

faults: $(DEV)  ## interrupt commands at every file event and record the result (an hour)
	$(BIN)/python tests/reliability/record.py faults --workers 2
	$(BIN)/python tests/reliability/record.py reads --workers 2
	$(BIN)/python tests/reliability/record.py kills --workers 2

fuzz: $(DEV)  ## run the fuzzer and record its result: make fuzz CASES=4000 SEED="0 1"
	$(BIN)/python -m tests.fuzz --cases $(or $(CASES),4000) --seed $(or $(SEED),0) \
	  --result tests/fuzz/RESULT.md

portfolio: $(STAMP)  ## select the portfolio of `nfgnn auto` from the recorded runs
	$(BIN)/nfgnn reproduce portfolio --from-records
	mv results/portfolio.toml nfgnn/auto/portfolio.toml

notebooks: $(BIN)/python  ## write examples/*.ipynb from the scripts beside them
	$(BIN)/python tests/helpers/notebooks.py

docs: $(DEV)  ## build the documentation; warnings are errors
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

dist: $(STAMP)  ## build wheel and sdist in dist/ and check them
	$(PIP) install --quiet --constraint constraints.txt --editable '.[dist]'
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/twine check --strict dist/*

check-dist: dist  ## install the wheel into an empty environment and run commands
	.ci/check-dist dist/*.whl

clean:  ## remove the environment and everything that was built
	rm -rf $(VENV) $(LOWEST) docs/_build build dist .mypy_cache .ruff_cache .pytest_cache
