# Every target first sets .venv up when it is missing or older than requirements.lock. Needs Python 3.11 or newer with its venv
# module. Works from any folder: make -C <checkout> test. Paths with spaces are fine: every use of them is quoted.

SHELL := /bin/bash
ROOT := $(CURDIR)
BIN := $(ROOT)/.venv/bin
# Processes that run tests, each with servers of its own (tests/conftest.py says how many); none: WORKERS= runs all in this one.
WORKERS := --numprocesses auto --dist worksteal
MAKEFLAGS += --no-print-directory

.PHONY: install run test test-fast test-servers test-long lint format bench bench-history bench-train bench-peers learning mutants chaos docs lock clean

install: ## set up .venv with both commands
	@cd "$(ROOT)" && .ci/install

run: install ## train the default policy on the simulated phone, with tables and the monitor beside it
	@"$(BIN)/cua-train" run

test: install ## every test, real PostgreSQL and Kafka included
	@cd "$(ROOT)" && "$(BIN)/python" -m pytest $(WORKERS)

test-fast: install ## the tests that start no server
	@cd "$(ROOT)" && "$(BIN)/python" -m pytest $(WORKERS) -m "not services and not slow"

test-servers: install ## trainings by a real vLLM and by SkyRL's Tinker server, installed into .services (12 GB) the first time; some fifteen minutes
	@cd "$(ROOT)" && CUA_TEST_SERVERS=1 "$(BIN)/python" -m pytest -v -rP tests/servers

test-long: install ## a thousand examples of every property of the fold and the projection; LONG="-k part-7" for one part
	@cd "$(ROOT)" && HYPOTHESIS_PROFILE=long "$(BIN)/python" -m pytest -v -o timeout=0 -o faulthandler_timeout=0 tests/reference_fold $(LONG)

lint: install ## ruff, mypy, import contracts
	@cd "$(ROOT)" && "$(BIN)/ruff" check && "$(BIN)/ruff" format --check && "$(BIN)/mypy" && "$(BIN)/lint-imports"

format: install ## let ruff rewrite what it can
	@cd "$(ROOT)" && "$(BIN)/ruff" check --fix && "$(BIN)/ruff" format

mutants: install ## wrong projectors, one by one; prints how many the reference fold does not find
	@cd "$(ROOT)" && "$(BIN)/python" -m tests.reference_fold.mutants

bench: install ## emit, projection and rebuild in CPU-microseconds beside plain COPY, and costs as the log grows
	@cd "$(ROOT)" && "$(BIN)/python" -m tests.bench

bench-history: install ## what starting, resuming, tail and status cost at ten thousand and a million events
	@cd "$(ROOT)" && "$(BIN)/python" -m tests.bench.history

bench-train: install ## a training step's CPU-seconds beside TRL's GRPOTrainer, on the same weights and prompts; minutes
	@cd "$(ROOT)" && "$(BIN)/python" -m tests.bench.train $(TRAIN)

bench-peers: install ## rows written by the projector beside Debezium's and quixstreams' sinks and COPY; ten minutes; needs java and mvn; PEERS="--events 50000 --json"
	@cd "$(ROOT)" && "$(BIN)/python" -m tests.bench.peers $(PEERS)

learning: install ## does learning from rewards raise greedy success on held-out tasks: five seeds of two policies, hours; LEARNING="--seeds 0 --pretrained-seeds" for one; writes docs/learning.md
	@cd "$(ROOT)" && "$(BIN)/python" -m tests.learning $(LEARNING)

chaos: install ## kill and stop everything, 20 kills over 100,000 events; CHAOS="--kills 100 --events 1000000" for more
	@cd "$(ROOT)" && "$(BIN)/python" -m tests.chaos $(CHAOS)

docs: install ## write schemas/json, docs/events.md, docs/tables.md, docs/settings.md and docs/queries.md from what they describe
	@cd "$(ROOT)" && for page in schema_files events_page tables_page settings_page queries_page; do "$(BIN)/python" -m tests.support.$$page || exit 1; done

# The pins are for every platform and Python >= 3.11; the file names no index, so it works with whichever one is configured.
lock: install ## raise every pin to the newest release
	@cd "$(ROOT)" && "$(BIN)/uv" pip compile --quiet --upgrade --universal --python-version 3.11 --all-extras --generate-hashes \
		--overrides .ci/overrides.txt --excludes .ci/excludes.txt --no-emit-index-url --no-emit-find-links --no-header \
		--no-annotate --output-file requirements.lock pyproject.toml

clean: ## remove .venv and every cache
	@cd "$(ROOT)" && rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .services
