# Needs python3 (3.11 or newer, with venv) and make; everything else is installed into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: help demo test test-all test-plain test-engine test-spark lint bench bench-stream bench-rules experiments docs clean

help:
	@echo "make demo    detect card fraud in 1 million events with Spark"
	@echo "make test    run the tests"
	@echo "make test-all  run all tests: also the long ones, more random cases, Spark Connect again"
	@echo "make lint    style, types and import rules"
	@echo "make bench   measure the workloads of the papers"
	@echo "make bench-stream  measure queries over streams"
	@echo "make bench-rules   measure sets of rules, and their placement"
	@echo "make experiments   repeat the papers' experiments, with plots"
	@echo "make docs    build the documentation as a site, in site/"
	@echo "make clean   remove what these commands made"

demo: $(INSTALLED)
	$(BIN)/python -m cepheid.cli.demo

# Without arguments, three parts run side by side: two of them compute, and one waits for Spark half
# of the time. Their dots would mix, so all but one print when they are done.
ENGINES := tests/engine tests/properties tests/cli tests/benchmarks tests/answers tests/sessions
SPARKS := tests/spark
whole = @output=$$($(BIN)/python -m pytest $(1) 2>&1); status=$$?; echo "$$output"; exit $$status

test: $(INSTALLED)
ifeq ($(strip $(PYTEST)),)
	$(MAKE) --jobs 3 test-spark test-engine test-plain
else
	$(BIN)/python -m pytest $(PYTEST)
endif

test-plain: $(INSTALLED)
	$(BIN)/python -m pytest $(addprefix --ignore=,$(SPARKS) $(ENGINES))

test-engine: $(INSTALLED)
	$(call whole,$(ENGINES))

test-spark: $(INSTALLED)
	$(call whole,$(SPARKS))

# What a release needs.
test-all: $(INSTALLED)
	$(BIN)/python -m pytest --slow

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(INSTALLED)
	$(BIN)/python -m benchmarks

bench-stream: $(INSTALLED)
	$(BIN)/python -m benchmarks.streaming speed

bench-rules: $(INSTALLED)
	$(BIN)/python -m benchmarks.rules
	$(BIN)/python -m benchmarks.placement
	$(BIN)/python -m benchmarks.placement rewriting

experiments: $(INSTALLED)
	$(BIN)/python -m benchmarks.experiments all
	$(BIN)/python -m benchmarks.correlation

docs: $(INSTALLED)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --config-file website/mkdocs.yml

clean:
	rm -rf $(VENV) build dist site .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

# The stamp is written last, so an installation that was cut off starts again.
$(INSTALLED): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Cepheid needs Python 3.11 or newer: make PYTHON=/path/to/python3"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@
