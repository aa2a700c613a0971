# Every target sets up what it needs: a fresh machine wants only Python 3.11.4 or newer, and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Two test processes with one thread each: faster on two cores than one process with two, and as repeatable.
ONE_THREAD := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1
PYTEST := $(ONE_THREAD) $(BIN)/python -m pytest -n 2 --dist worksteal

.PHONY: install demo test check lint bench clean

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11, 4))' || { echo "Semigrad needs Python 3.11.4 or newer: make PYTHON=python3.12 ..." >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	touch $@

demo: install
	$(BIN)/semigrad demo

test: lint
	$(PYTEST)

check: lint
	$(PYTEST) -m "not slow"

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: install
	$(BIN)/python -m benchmarks.step

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache
