# On a machine with Python 3.11 or later one command is enough: `make demo` or `make test` set everything up first.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 2
DATA ?= data
RUN ?= build/full
UV := $(shell command -v uv 2>/dev/null)
KERNELS := $(wildcard src/omen/kernels/*.py)

.DEFAULT_GOAL := help
.PHONY: help setup test coverage search soak search-of-the-day demo lint style types imports duplicates hooks format docs release \
	bench bench-compare claims lock clean

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: $(VENV)/.kernels  ## .venv with everything in it, kernels compiled

demo: setup  ## the whole story, small, and a page about one of the papers; WATCH=1: its live cluster runs until Ctrl-C
	@$(BIN)/omen demo $(if $(WATCH),--watch)
	@echo
	@$(BIN)/omen reproduce low-oda --papers-only --engine local --out build/demo

test: setup  ## all tests
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

coverage: setup  ## all tests, and which branches of src they never took; under 90% fails
	@rm -rf build/coverage && mkdir -p build/coverage
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --cov --cov-report=term-missing:skip-covered --cov-report=html

search: setup  ## look for trouble: 300 random worlds within L, 100 beyond it, 100 busy, 100 cramped, and worlds of the day; what fails is shrunk
	@status=0; \
	$(BIN)/omen simulate --search --seeds 0..299 --workers $(WORKERS) || status=1; \
	$(BIN)/omen simulate --search --worlds beyond --seeds 0..99 --workers $(WORKERS) || status=1; \
	$(BIN)/omen simulate --search --worlds busy --seeds 0..99 --workers $(WORKERS) || status=1; \
	$(BIN)/omen simulate --search --worlds cramped --seeds 0..99 --workers $(WORKERS) || status=1; \
	$(BIN)/python -m tools.search_of_the_day --workers $(WORKERS) || status=1; \
	exit $$status

soak: setup  ## long runs, recorded in docs/soak.md: PART=busy, worlds, cluster, chaos, sieges, fuzz, stalls, mqtt or page
	@$(if $(filter fuzz,$(PART)),$(INSTALL) atheris==3.0.0)
	@$(BIN)/python -m tools.soak $(if $(PART),$(PART),--help) $(RUNS)

search-of-the-day: setup  ## a few worlds whose seeds come from the date; what fails becomes a scenario and a warning
	@$(BIN)/python -m tools.search_of_the_day --within 20 --beyond 3 --warn --workers $(WORKERS)

lint: style types imports duplicates  ## style, types, the direction of imports, duplicated code

style: setup  ## of lint: style and format
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: setup  ## of lint: types
	@$(BIN)/mypy

imports: setup  ## of lint: the direction of imports
	@$(BIN)/lint-imports

duplicates: setup  ## of lint: no more duplicated code than pyproject.toml allows
	@$(BIN)/python -m tools.duplicates

hooks: setup  ## run the pieces of lint before every commit
	@$(BIN)/pre-commit install

format: setup  ## rewrite the sources in the house style
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

docs: setup  ## the site in build/site; a broken link or an undocumented public name fails
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --clean
	@$(BIN)/python -m tools.public_names --site build/site
	@echo "written to build/site/index.html"

release: setup  ## build wheel and sdist, check them, try the wheel; then they are in dist
	@$(BIN)/python -m tools.release

bench: setup  ## measure, keep a record of it, and write docs/benchmarks.md
	@$(BIN)/python -m bench

bench-compare: setup  ## the last record of each benchmark against the one before; AGAINST=COMMIT: against that one
	@$(BIN)/python -m bench.history $(if $(AGAINST),--against $(AGAINST))

claims: setup  ## docs/claims.md, page and figures from the full run in RUN, as far as it went
	@$(BIN)/omen reproduce all --scale full --data $(DATA) --out $(RUN) --engine none
	@$(BIN)/python -m bench.claims $(RUN)

# The lock is for any machine, so it names no index: each machine uses its own.
lock: setup  ## renew requirements.lock from pyproject.toml
	@$(BIN)/uv pip compile pyproject.toml --all-extras --group dev --group docs --upgrade --generate-hashes --no-header \
		--no-emit-index-url --universal --python-version 3.11 --quiet --output-file requirements.lock

clean:  ## remove whatever the other commands made, .venv among it
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

ifdef UV
VENV_COMMAND = $(UV) venv --quiet --allow-existing --python $(PYTHON) $(VENV)
INSTALL = $(UV) pip install --quiet --python $(BIN)/python
else
VENV_COMMAND = $(PYTHON) -m venv $(VENV) || { \
	echo "$(PYTHON) cannot make a virtual environment: install its venv and ensurepip modules, or uv" >&2; exit 1; }
INSTALL = $(BIN)/python -m pip install --quiet
endif

# The lock names every package, so nothing is resolved: pip would refuse `coverage[toml]`, which pytest-cov asks for, as
# soon as an index has a later coverage than the lock. The build tools are locked too, so the project itself is installed
# without asking an index for them.
$(VENV)/.installed: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "OMen needs Python 3.11 or later, $(PYTHON) is not: try make PYTHON=python3.11" >&2; exit 1; }
	@if [ -e $(VENV) ] && ! $(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
		rm -rf $(VENV); fi
	@echo "setting up $(VENV) from requirements.lock"
	@$(VENV_COMMAND)
	@$(INSTALL) --no-deps --require-hashes -r requirements.lock
	@$(INSTALL) --no-deps --no-build-isolation -e .
	@$(BIN)/python -m omen.pipeline.java --ensure >/dev/null || echo "Spark commands will not run until there is a Java" >&2
	@touch $@

$(VENV)/.kernels: $(VENV)/.installed $(KERNELS)
	@$(BIN)/python -m omen.kernels
	@touch $@
