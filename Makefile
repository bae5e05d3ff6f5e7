# Two commands for a fresh machine that has only Python 3.11 or newer: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.haversack-installed

.PHONY: demo test lint types contracts unit slow mutants vsix e2e clean

demo: $(STAMP)
	@$(BIN)/haversack context "How does the packer decide what fits into the token budget?" --workspace . --budget 4000

test: lint types contracts unit

$(STAMP): pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing Haversack and its tools into $(VENV) (once, half a minute to a minute) ..."
	@$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	@$(BIN)/python -m pip install --quiet --group dev --editable .
	@touch $@

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/basedpyright

contracts: $(STAMP)
	$(BIN)/lint-imports

unit: $(STAMP)
	$(BIN)/pytest -q -n auto

# Ten thousand generated sessions, none of which may send a word of a restricted file: a quarter of an hour.
slow: $(STAMP)
	HAVERSACK_CASES=10000 $(BIN)/pytest -q tests/server/test_leaks.py tests/server/test_session_leaks.py

# Deliberate faults in policy, mark, route and sealed, of which the tests must notice 85 %. Long;
# MODULES="mark route" takes some of them.
mutants: $(STAMP)
	$(BIN)/python benchmarks/mutants.py $(MODULES)

# The VS Code extension, with the server's wheel inside. Wants npm; the Node.js it is built with is fetched through npm.
vsix: $(STAMP)
	cd editor-client/vscode && PATH="$$(../node24.sh):$$PATH" && npm ci --no-audit --no-fund --loglevel=error \
	  && npm test && npm run -s package

# Installs the extension in a real VS Code in headless Chromium and drives it; pictures go to docs/img.
e2e: vsix
	editor-client/e2e/run.sh

clean:
	rm -rf $(VENV) dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache
