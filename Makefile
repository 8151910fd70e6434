# Needs Python 3.11 or newer with venv, and nothing else: everything is installed into .venv,
# from the lock in requirements/dev.txt. `make` alone lists the targets.

PYTHON ?= python3
ARGS ?=
NAME ?=

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/stamp
CODE := governance temporal_integration samples tests tools docker

# Settings of the caller's shell that would change what runs.
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV

.DEFAULT_GOAL := help
.PHONY: help demo test check bench campaign matrix lock build clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: $(STAMP) ## Play the main story on a real Postgres and a real Temporal
	@$(BIN)/python -m samples.payment.demo $(ARGS)

test: $(STAMP) ## Run the tests; pass arguments with ARGS="-k name -m 'not slow'"
	@$(BIN)/python -m pytest $(ARGS)

check: $(STAMP) ## Format, lint, types, import contracts, size budget
	@$(BIN)/python tools/check.py

bench: $(STAMP) ## Measure what the product adds to a plain workflow
	@$(BIN)/python -m tests.bench $(ARGS)

campaign: $(STAMP) ## Run one long test campaign: NAME=...; without NAME, list them
ifeq ($(strip $(NAME)),)
	@echo "Campaigns (make campaign NAME=...):"
	@find tests/campaigns -maxdepth 1 -name '[a-z]*.py' 2>/dev/null | sed -e 's|.*/|  |' -e 's|\.py$$||' | sort
else
	@$(BIN)/python -m tests.campaigns.$(NAME) $(ARGS)
endif

matrix: $(STAMP) ## Run the tests against the other supported Postgres and the oldest SDK
	@.ci/matrix

lock: $(STAMP) ## Resolve requirements/*.txt again; ARGS=--upgrade takes newer versions
	@$(BIN)/python tools/lock.py $(ARGS)

build: $(STAMP) ## Build wheel and sdist into dist/
	@rm -rf dist
	@$(BIN)/python -m build --quiet --no-isolation --outdir dist .
	@ls dist

clean: ## Remove .venv and everything that was built
	@rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	@find $(wildcard $(CODE)) -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Python 3.11 or newer is needed; '$(PYTHON)' is: $$($(PYTHON) --version 2>&1 | head -n 1)." >&2; \
	  echo "Name another one: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "'$(PYTHON)' cannot make a virtual environment: its ensurepip or venv module is missing." >&2; \
	  echo "On Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@test -x $(BIN)/python && $(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	  || { echo "Making $(VENV) with $$($(PYTHON) --version)"; $(PYTHON) -m venv --clear $(VENV); }
	@echo "Installing $$(grep -c '^[^ ]*==' requirements/dev.txt) locked packages into $(VENV) (once)"
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@
