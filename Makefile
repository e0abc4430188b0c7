# Two commands for a fresh clone: `make demo` and `make test`. Both create .venv first.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test lint fast clean

demo: $(STAMP)
	@$(BIN)/thalweg demo

test: $(STAMP) lint
	$(BIN)/pytest --numprocesses 2 --dist loadgroup

fast: $(STAMP)
	$(BIN)/pytest --numprocesses 2 -m "not spark and not slow"

lint: $(STAMP)
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/mypy
	$(BIN)/lint-imports

$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing Thalweg and what it needs into $(VENV) (once) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[spark,test]"
	@$(BIN)/python -m thalweg.spark.java
	@touch $(STAMP)

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
