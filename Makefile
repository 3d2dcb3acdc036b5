# `make demo` runs the flagship and writes its report, `make test` the quick tests, `make gate` the
# rest of them.
# Both make their own virtual environment; only Python 3.11+, pip and make are needed.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
OUT ?= runs/demo
# A file's fixtures are made once, by one worker; tests/conftest.py puts heavy files first.
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

.PHONY: demo test gate lint clean

demo: $(VENV)/runtime
	$(BIN)/python -m benchmarks run newton --preset small --out $(OUT); code=$$?; \
		[ $$code -gt 1 ] || $(BIN)/python -m benchmarks report $(OUT); exit $$code # 1: a cell failed

test: $(VENV)/dev
	$(PYTEST) -m "not full and not slow and not network" $(PYTEST_ARGS)

gate: $(VENV)/dev
	$(PYTEST) -m "full and not slow and not network" $(PYTEST_ARGS)

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PATH="$(abspath $(BIN)):$$PATH" lint-imports

$(VENV)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Orrery needs Python 3.11 or newer; set PYTHON=python3.11" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/runtime: $(VENV)/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet -c constraints.txt -e .
	touch $@

$(VENV)/dev: $(VENV)/runtime
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev]"
	touch $@

clean:
	rm -rf $(VENV) build *.egg-info
