# Everything a checkout needs: `make demo` and `make test` set up .venv by themselves and work offline from then on.
PYTHON ?= python3
BIN := .venv/bin
MADE := .venv/.made

.PHONY: install demo test slow lowest lint types bench-smoke docs clean

install: $(MADE)

$(MADE): pyproject.toml benchmarks/pyproject.toml
	$(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11), "Python 3.11 or newer is needed: make PYTHON=python3.12"'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable ".[arrow,polars,excel,serve,dask]" --editable "benchmarks[attack]" --group dev
	touch $(MADE)

demo: $(MADE)
	$(BIN)/softlearning demo

test: $(MADE)
	$(BIN)/python -m pytest -n 2 --dist worksteal

slow: $(MADE)
	SOFTLEARNING_STRESS=benchmarks/results/stress_tests.jsonl $(BIN)/python -m pytest -n 2 --dist worksteal -m slow --timeout 7200

# The core of the suite with the lowest versions that pyproject.toml allows, in an environment of its own.
CORE := tests/weights tests/uncertainty tests/data tests/method tests/estimators
LOW := .venv-lowest
LOW_INSTALL = $(LOW)/bin/python -m uv pip install --quiet --python $(LOW)/bin/python

$(LOW)/.made: pyproject.toml
	test -x $(LOW)/bin/python || $(PYTHON) -m venv $(LOW)
	$(LOW)/bin/python -m pip install --quiet uv
	$(LOW_INSTALL) --resolution lowest-direct --editable ".[arrow,polars]"
	$(LOW_INSTALL) pytest pytest-timeout hypothesis mpmath clarabel
	touch $@

$(LOW)/.passed: $(LOW)/.made
	$(LOW)/bin/python -m pytest -q -p no:cacheprovider $(CORE)
	touch $@

lowest: $(LOW)/.made
	rm -f $(LOW)/.passed
	$(MAKE) $(LOW)/.passed

lint: $(MADE)
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks

types: $(MADE)
	$(BIN)/mypy

bench-smoke: $(MADE)
	$(BIN)/softlearning bench run --suite paper --datasets A01_iris,C10_tiny_regression --out build/bench-smoke
	$(BIN)/softlearning bench report build/bench-smoke

docs: $(MADE)
	$(BIN)/python -m pip install --quiet --group docs
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

clean:
	rm -rf .venv $(LOW) build dist docs/_build demo
