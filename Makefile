# Everything a fresh machine needs: `make demo` and `make test` create .venv, install and run.
PYTHON ?= python3
VENV := .venv
MATERIAL ?= ../shared/peers
BIN := $(VENV)/bin

# Hundreds of test programs import the same modules; without bytecode each of them compiles them again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo docs test test-long test-again test-lowest test-lowest-core test-lowest-langchain test-lowest-llamaindex test-newest test-tracers lint types bench mutants clean

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[all]'
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@ $(VENV)/.demo

demo: $(VENV)/.demo  ## a real RAG chain, scored without a key
	$(BIN)/steelyard demo

pictures: $(VENV)/.dev  ## every page in the light, the dark and on a phone, into .pictures
	$(BIN)/python scripts/pictures.py

picture-of-phoenix: $(VENV)/.dev  ## a trace with our scores in a real Phoenix, which is installed into the user's cache
	$(BIN)/python scripts/pictures.py --phoenix --docs

# One process more than there are cores: tests that wait for something leave theirs idle.
WORKERS := $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)

TESTS := $(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile

test: $(VENV)/.dev  ## every test that takes no longer than two seconds
	$(TESTS) -m 'not long'

test-long: $(VENV)/.dev  ## the others: simulations, whole programs, servers, a browser
	$(TESTS) -m long

test-again: $(VENV)/.dev  ## what failed in the last run, alone
	$(BIN)/python -m pytest -q --last-failed --last-failed-no-failures none

LOWEST_CORE := .venv-lowest-core
LOWEST_EXTRAS := backfill collect opentelemetry report serve

$(LOWEST_CORE)/.done: pyproject.toml Makefile scripts/lowest.py
	$(PYTHON) -m venv $(LOWEST_CORE)
	$(PYTHON) scripts/lowest.py $(LOWEST_EXTRAS) > $(LOWEST_CORE)/lowest.txt
	$(LOWEST_CORE)/bin/pip install --quiet --disable-pip-version-check -c $(LOWEST_CORE)/lowest.txt \
		-e '.[backfill,collect,opentelemetry,report,serve]' dirty-equals hypothesis pytest pytest-timeout
	@touch $@

# What a version of a library could break: commands, judges, records, sinks.
TRIED := tests/cli/test_score.py tests/engine tests/judge/chat tests/judge/test_named.py \
	tests/judge/local/test_judge.py tests/record tests/sinks/test_sqlite.py tests/metrics/test_worked_examples.py

test-lowest-core: $(LOWEST_CORE)/.done  ## commands, judges and sinks on the lowest versions that are allowed
	$(LOWEST_CORE)/bin/python -m pytest -q -k 'not to_pandas' $(TRIED)

LOWEST_LANGCHAIN := .venv-lowest-langchain

$(LOWEST_LANGCHAIN)/.done: pyproject.toml Makefile
	$(PYTHON) -m venv $(LOWEST_LANGCHAIN)
	$(LOWEST_LANGCHAIN)/bin/pip install --quiet --disable-pip-version-check -e '.[langchain,opentelemetry]' \
		'langchain-core==1.4.0' langchain langchain-classic langgraph dirty-equals hypothesis \
		pytest pytest-timeout
	@touch $@

test-lowest-langchain: $(LOWEST_LANGCHAIN)/.done  ## the LangChain recorder on the lowest version it supports
	$(LOWEST_LANGCHAIN)/bin/python -m pytest -q integrations/langchain

LOWEST_LLAMAINDEX := .venv-lowest-li

$(LOWEST_LLAMAINDEX)/.done: pyproject.toml Makefile
	$(PYTHON) -m venv $(LOWEST_LLAMAINDEX)
	$(LOWEST_LLAMAINDEX)/bin/pip install --quiet --disable-pip-version-check -e '.[llamaindex,opentelemetry]' \
		'llama-index-core==0.14.17' 'llama-index-workflows==2.16.0' dirty-equals hypothesis pytest pytest-timeout
	@touch $@

test-lowest-llamaindex: $(LOWEST_LLAMAINDEX)/.done  ## the LlamaIndex recorder on the lowest versions it supports
	$(LOWEST_LLAMAINDEX)/bin/python -m pytest -q integrations/llamaindex

test-lowest: test-lowest-core test-lowest-langchain test-lowest-llamaindex  ## all of it on what is supported at least

NEWEST := .venv-newest
# What the tests of spans record and export with.
SPANS := $(foreach one,langchain llama-index openai,openinference-instrumentation-$(one) \
	'opentelemetry-instrumentation-genai-$(one)>=1.3b0') opentelemetry-instrumentation-langchain \
	opentelemetry-instrumentation-llamaindex opentelemetry-instrumentation-openai \
	opentelemetry-exporter-otlp-proto-http opentelemetry-exporter-prometheus

# Made anew each time: what is newest changes.
test-newest:  ## commands, judges, sinks and recorders on the newest versions that are allowed
	$(PYTHON) -m venv --clear $(NEWEST)
	$(NEWEST)/bin/pip install --quiet --disable-pip-version-check -e '.[all]' langchain langchain-classic \
		langgraph openai dirty-equals hypothesis pytest pytest-timeout $(SPANS)
	$(NEWEST)/bin/python -m pytest -q -k 'not to_pandas' $(TRIED)
	$(NEWEST)/bin/python -m pytest -q integrations/langchain
	$(NEWEST)/bin/python -m pytest -q integrations/llamaindex
	$(NEWEST)/bin/python -m pytest -q integrations/opentelemetry

TRACERS := .venv-tracers

$(TRACERS)/.done: pyproject.toml Makefile
	$(PYTHON) -m venv $(TRACERS)
	$(TRACERS)/bin/pip install --quiet --disable-pip-version-check -e '.[tracers]' \
		hypothesis pytest pytest-timeout
	@touch $@

test-tracers: $(TRACERS)/.done  ## on whose spans scores go beside each vendor's tracer
	$(TRACERS)/bin/python -m pytest -q --slow tests/tracers

bench: $(VENV)/.dev  ## ours beside ragas and deepeval; MATERIAL holds the stub server, the samples and the peers' runner
	$(BIN)/python benchmarks/peers/run.py --material $(MATERIAL)

mutants: $(VENV)/.dev  ## break the promises of tests/mutants/ one at a time; every break must fail a test
	$(BIN)/python scripts/mutants.py

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@

docs: $(VENV)/.docs  ## the site, into site/; a dead link, a missing anchor or a missing name fails
	$(BIN)/zensical build --strict --clean

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

clean:
	rm -rf $(VENV) dist build site .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis
