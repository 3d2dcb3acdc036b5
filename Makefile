# `make` prints what there is. Every target makes its own virtual environment; only Python 3.11+, pip
# and make are needed.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
OUT ?= runs/$@
# Tests start some hundred Python processes, none of which should compile the packages again.
export PYTHONDONTWRITEBYTECODE :=
# A file's fixtures are made once, by one worker; tests/conftest.py puts heavy files first.
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

.PHONY: help demo flagship test gate lint clean

help:
	@echo "make demo      the benchmark on one attention: minutes on two cores; runs/demo/report.html"
	@echo "make flagship  softmax and LSSAR at two label budgets: half an hour; takes what demo has trained"
	@echo "make test      the quick tests"
	@echo "make gate      the other tests of the gate: twenty minutes"
	@echo "make lint      ruff, format, mypy, import rules"
	@echo "make clean     remove the environment and build files"
	@echo
	@echo "The first of them makes the environment .venv (3 GB with PyTorch for CPUs). Runs resume when killed."

# Exit code 1: a cell failed, and the report says which.
demo: $(VENV)/runtime
	$(BIN)/python -m benchmarks run newton --preset demo --out $(OUT); code=$$?; \
		[ $$code -gt 1 ] || $(BIN)/python -m benchmarks report $(OUT); exit $$code

flagship: $(VENV)/runtime
	$(BIN)/python -m benchmarks run newton --preset small --out $(OUT) \
		$$([ ! -f runs/demo/run.json ] || echo --reuse runs/demo); code=$$?; \
		[ $$code -gt 1 ] || $(BIN)/python -m benchmarks report $(OUT); exit $$code

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
	$(BIN)/python -m pip install --progress-bar on -c constraints.txt -e .
	touch $@

$(VENV)/dev: $(VENV)/runtime
	$(BIN)/python -m pip install --progress-bar on -c constraints.txt -e ".[dev]"
	touch $@

clean:
	rm -rf $(VENV) build *.egg-info
