# make setup   everything a command needs, in .venv      make demo   the main job on real text
# make test    all checks that need nothing else         make check  ruff, mypy, import-linter
.PHONY: setup demo test tests check coverage clean
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.complete
# Modules in .venv are compiled when they are first imported, and must then be kept, or every command does it again.
export PYTHONDONTWRITEBYTECODE :=

setup: $(STAMP)

# --no-compile: most modules are never imported, and those that are compile themselves then.
# torch first and pinned: resolved later and without a pin it would bring gigabytes of CUDA along.
$(STAMP): pyproject.toml constraints.txt Makefile
	@echo "Setting up .venv (a few minutes the first time) …"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; set PYTHON=python3.11"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --constraint constraints.txt torch==2.13.0
	@$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --constraint constraints.txt hatchling editables
	@$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --constraint constraints.txt --no-build-isolation --editable ".[dev]"
	@touch $(STAMP)

demo: setup
	@rm -rf demo
	@$(BIN)/inkling demo --real --out demo

check: setup
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports >/dev/null || { $(BIN)/lint-imports; exit 1; }

# Both at once: neither fills two cores by itself.
test: setup
	@$(MAKE) --no-print-directory -j 2 check tests

tests: setup
	@$(BIN)/python -m pytest -q -n 2 --dist loadgroup -m "not slow and not data and not network and not peer and not browser"

# Which lines the checks reach; apart from `make test`, because counting makes them a third slower.
coverage: setup
	@$(BIN)/python -m pytest -q -n 2 --dist loadgroup -m "not slow and not data and not network and not peer and not browser" --cov --cov-report=term:skip-covered

clean:
	@rm -rf .venv demo .mypy_cache .ruff_cache .hypothesis .coverage*
