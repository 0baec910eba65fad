# Each target sets up what it needs in .venv: only Python >= 3.11 and make are
# assumed. Set-up is repeated when pyproject.toml changes, and otherwise reused.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
OLDEST := .venv-oldest

# Tests and benchmarks read data sets from the folder STEELYARD_DATA, if there is one.
ifndef STEELYARD_DATA
ifneq ($(wildcard ../shared/datasets/MANIFEST.csv),)
export STEELYARD_DATA := $(abspath ../shared/datasets)
endif
endif

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-times coverage test-engines test-oldest fuzz fuzz-planted mutate lint ruff types layers spelling format bench docs docs-versions report dist clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.installed-cli ## Compare methods on real data, explain one prediction, write a page
	@$(BIN)/steelyard demo

test: lint ## Run lint, types, layers and all quick tests
	$(BIN)/python -m pytest -n 2 -m "not slow and not engines"
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n 2 -m "plain and not slow" tests/kernels tests/proba

test-all: test ## Run the slow tests too, and all of small data with numba disabled
	$(BIN)/python -m pytest -n 2 -m "slow and not engines"
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n 2 -m plain tests

COVERED ?= tests src reproduction
PLAIN ?= tests
coverage: $(VENV)/.installed-dev ## Measure which lines and branches tests reach; COVERED="tests/table tests/io"
	$(BIN)/python -m pytest -n 2 --cov --cov-report= -m "not engines" $(COVERED)
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n 2 --cov --cov-append --cov-report= -m plain $(PLAIN)
	$(BIN)/python -m coverage html --quiet -d build/coverage
	$(BIN)/python -m coverage report

test-times: $(VENV)/.installed-dev ## Time all tests, and list the slow ones in tests/slow.txt
	rm -f .test-times
	STEELYARD_TEST_TIMES=$(abspath .test-times) $(BIN)/python -m pytest -n 2
	$(BIN)/python tools/slow_tests.py .test-times

test-engines: $(VENV)/.installed-dev $(VENV)/.installed-engines ## Run exported models in all engines, those of the machine too: PostgreSQL, MariaDB, Java, R, LibreOffice
	STEELYARD_MATRIX_ROWS=2000 $(BIN)/python -m pytest -m "engines or not engines" tests/export tests/monitoring/test_sql.py tests/scale/test_spark.py tests/scale/test_spark_stage.py tests/test_mlflow.py tests/test_service.py

test-oldest: $(OLDEST)/.installed ## Run the tests with the lowest versions that pyproject.toml allows
	# Newer dependencies deprecate what old libraries call. Compiled kernels of one
	# numba would take the place of those of the other.
	NUMBA_CACHE_DIR=$(abspath $(OLDEST))/kernels $(OLDEST)/bin/python -m pytest -n 2 -W default::DeprecationWarning

FUZZ ?= --seed 0
fuzz: $(VENV)/.installed-dev ## Attack it with made-up tables, files and texts; FUZZ="--files 20000 --tables 2000"
	$(BIN)/python tools/fuzz.py $(FUZZ)

fuzz-planted: $(VENV)/.installed-dev ## Plant known bugs one at a time, and see which of them `make fuzz` finds
	$(BIN)/python tools/fuzz.py --planted $(FUZZ)

MUTATE ?= --seed 0
mutate: $(VENV)/.installed-dev ## Change the code of the heart a hundred times, and see which changes no test notices
	$(BIN)/python tools/mutate.py $(MUTATE)

lint: ruff types layers spelling ## Check style, format, types, import layers and spelling

ruff: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-dev
	$(BIN)/mypy

layers: $(VENV)/.installed-dev
	$(BIN)/lint-imports

spelling: $(VENV)/.installed-dev
	$(BIN)/codespell .

format: $(VENV)/.installed-dev ## Rewrite the code in the house format, and the table of declarations
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/python tools/declare.py

bench: $(VENV)/.installed-bench ## Time the engine against scikit-learn, side by side
	$(BIN)/python -m benchmarks --against benchmarks/baseline.json

docs: $(VENV)/.installed-docs ## Build the documentation site in build/docs/html
	$(BIN)/python tools/build_docs.py

docs-versions: $(VENV)/.installed-docs ## Build the documentation of all releases and of the tree in build/site, with a list of versions
	$(BIN)/python tools/build_docs.py --versions

report: $(VENV)/.installed-docs ## Write the report of the default as HTML and, with Chromium, PDF in build/report
	$(BIN)/python tools/report_default.py

dist: $(VENV)/.installed-dist ## Build wheel and sdist, install each in a fresh environment and try it
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/twine check --strict dist/*
	$(BIN)/python tools/check_dist.py dist

clean: ## Remove the environment, builds and caches
	rm -rf $(VENV) $(OLDEST) dist build .mypy_cache .ruff_cache .rumdl_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests tools studies benchmarks reproduction docs -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

# One stamp per set of extras and groups, so that `make demo` waits for no test tools.
EXTRAS_cli := cli
EXTRAS_dev := all,dask,serve
EXTRAS_engines := all
EXTRAS_bench := cli
EXTRAS_docs := all
EXTRAS_dist := cli
GROUPS_dev := dev
GROUPS_engines := engines
GROUPS_bench := bench
GROUPS_docs := docs
GROUPS_dist := dist

# The pip of a new environment may know no groups.
$(VENV)/.installed-%: pyproject.toml | $(VENV)/.created
	@echo "Installing steelyard[$(EXTRAS_$*)] $(GROUPS_$*) into $(VENV); the first time takes a minute or more."
	@$(if $(GROUPS_$*),$(PIP_INSTALL) "pip>=25.1")
	@$(PIP_INSTALL) --editable ".[$(EXTRAS_$*)]" $(addprefix --group ,$(GROUPS_$*))
	@touch $@

# Removed and made anew where the existing one lacks a working Python >= 3.11.
$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "steelyard needs Python 3.11 or newer; '$(PYTHON)' is not." >&2; \
	  echo "Name another one: make PYTHON=/path/to/python3.12 ..." >&2; exit 1; }
	@$(BIN)/python -c 'import pip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Making a virtual environment in $(VENV)."; \
	  rm -rf $(VENV) && $(PYTHON) -m venv $(VENV); }
	@touch $@

# The bounds of pyproject.toml, and the newest of whatever these ask for in turn.
$(OLDEST)/.installed: pyproject.toml | $(VENV)/.created
	@echo "Installing the lowest versions into $(OLDEST)."
	@$(PIP_INSTALL) "uv>=0.7"
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(OLDEST)
	@$(BIN)/uv pip install --quiet --python $(OLDEST)/bin/python --resolution lowest-direct --editable ".[all,dask,serve]" --group test
	@touch $@
