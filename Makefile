# Everything runs in a virtual environment that make builds on first use; nothing
# needs to be installed by hand but Python 3.11 or newer.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: help demo test test-quick test-compiler test-slow lint types format dist docs bench \
	bench-deep fuzz-moves help-pages papers clean

help:
	@echo "make demo       re-solve a game, print NashConv next to bundled baselines, and plot a curve"
	@echo "make test       format, lint, prose, types, import rules, quick tests (about 7 minutes on two cores)"
	@echo "make test-slow  the tests marked slow (large games)"
	@echo "make test-compiler   the tests of make test, compiled as users' programs are (6 minutes)"
	@echo "make docs       the documentation site, into build/site (needs the network once)"
	@echo "SPIEL_CR_HOME=https://ADDRESS make dist   a wheel with absolute links, into dist/"
	@echo "make bench      benchmarks against the peers; writes JSON lines to out/"
	@echo "make bench-deep      deep CFR and its successors on small games (an hour)"
	@echo "make fuzz-moves      a million moves of all bots, and 100 000 by the clock (an hour)"
	@echo "make help-pages   write what --help prints, after a change of options"
	@echo "make papers       write the table of functions and papers, after a change of citations"
	@echo "make format     rewrite the code as the formatter wants it"
	@echo "make clean      remove the virtual environment and all that was built"

$(BIN)/python:
	$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(None if v >= (3, 11) else "spiel_cr needs Python >= 3.11; this is %d.%d: call make PYTHON=/path/to/python3.11" % v[:2])'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(BIN)/pip install --quiet --editable .
	touch $@

$(VENV)/.installed-test: pyproject.toml | $(BIN)/python
	$(BIN)/pip install --quiet --editable '.[test]'
	touch $@ $(VENV)/.installed

$(VENV)/.installed-docs: pyproject.toml | $(BIN)/python
	$(BIN)/pip install --quiet --editable '.[docs]'
	touch $@ $(VENV)/.installed

demo: $(VENV)/.installed
	$(BIN)/spiel-cr resolve
	mkdir -p out
	$(BIN)/spiel-cr solve --game leduc_poker --algorithm cfr+ --iterations 500 \
		--eval-every 10 --plot out/demo.png

lint: $(VENV)/.installed-test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python -m tests.project.prose

# The folder eval/ is installed as spiel_cr.eval; for programs that read it as files
# (mypy, the documentation site), links put it there.
.PHONY: linked
linked:
	mkdir -p build/types/spiel_cr
	ln -sfn $(CURDIR)/spiel_cr/* $(CURDIR)/eval build/types/spiel_cr

types: $(VENV)/.installed-test linked
	MYPYPATH=build/types $(BIN)/mypy -p spiel_cr -p game_defs -p benchmarks

# Tests start many processes: each would compile all that it imports, where the user's
# shell forbids to keep what was compiled.
test-quick test-compiler test-slow: export PYTHONDONTWRITEBYTECODE =

test-quick: $(VENV)/.installed-test
	$(BIN)/python -m pytest -m 'not slow' -n 2 --dist loadfile --no-loadscope-reorder

# Lint and types run beside the tests.
test: $(VENV)/.installed-test
	$(MAKE) -j3 lint types test-quick

# The tests of test-quick with the compiler's options that users have.
test-compiler: $(VENV)/.installed-test
	SPIEL_CR_TEST_COMPILER=default $(BIN)/python -m pytest -m 'not slow' -n 2 \
		--dist loadfile --no-loadscope-reorder

# For a package index; SPIEL_CR_HOME says where the links of README.md lead to. What was
# built before may hold files that are gone.
dist: $(VENV)/.installed-test
	@test -n "$(SPIEL_CR_HOME)" || { \
		echo "SPIEL_CR_HOME is not set; call SPIEL_CR_HOME=https://ADDRESS make dist" >&2; exit 2; }
	rm -rf build/lib build/bdist.*
	$(BIN)/pip wheel --quiet --no-deps --wheel-dir dist .

docs: $(VENV)/.installed-docs linked
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "$(CURDIR)/build/site/index.html"

test-slow: $(VENV)/.installed-test
	$(BIN)/python -m pytest -m slow

bench: $(VENV)/.installed-test
	$(BIN)/python -m benchmarks cfr

bench-deep: $(VENV)/.installed-test
	$(BIN)/python -m benchmarks deep

fuzz-moves: $(VENV)/.installed-test
	$(BIN)/python -m tests.fuzz moves 0 6000
	$(BIN)/python -m tests.fuzz moves_by_clock 0 1500

# What `spiel-cr --help` prints without importing JAX.
help-pages: $(VENV)/.installed
	COLUMNS=80 $(BIN)/python -c 'from spiel_cr.eval.cli import main; main.write_help_pages()'

# The table of docs/reference/papers.md, from docstrings.
papers: $(BIN)/python
	$(BIN)/python docs/site/papers.py

format: $(VENV)/.installed-test
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) build dist out .mypy_cache .pytest_cache .ruff_cache *.egg-info
