# make demo         examples/quickstart.py against the embedded sandbox; sets up only what it needs
# make test         every test: the Rust core without Python, then the compiled wheel under pytest
# make test-rust    the Rust core alone
# make test-python  the wheel alone; PYTEST_ARGS="-k store" passes options to pytest
# make test-pythons the wheel on the other interpreters that are found, or on those of PYTHONS
# make faults       compare tests/FAULTS.md with the rows that both runs proved; FAULTS=--write updates it
# make faults-long  the fault rows again with many more trials, on a machine that does nothing else
# make house        the modules of the source: sizes, arrows between them, circles
# make develop      editable install: Python from the source tree, Rust built incrementally
# make format       format all Rust and Python code
# make format-check check that all code is formatted
# make lint         clippy and ruff
# make types        mypy, stubtest and the completeness of the public types
# make check        what CI runs: format-check, lint, types, test
# make torture      Ctrl-C, cancel, fork, exit, threads, many times each, also for two other packages
# make crash        kill a sync and make its disk fail, at random times and at each system call
# make fuzz         arbitrary bytes for the decoders of pages, bookmarks, instants, keys, states, blocks
# make mutants      change the core in 3,000 places, one at a time: do its tests notice? (many hours)
# make windows      compile for Windows, and run the tests of the core there under Wine (Debian/amd64)
# make bench        speed compared with other packages
# make clean        remove everything that was set up and built
#
# Everything is set up in this checkout: .venv and target/. Needed: Python 3.11+, Rust, a C compiler.

PYTHON  ?= python3
PROFILE ?= dev
VENV    := .venv
BIN     := $(VENV)/bin
RESULTS := target/results
TORTURE := target/torture-venv
BENCH   := target/bench-venv
FUZZ    := target/fuzz
MUTANTS := target/mutants
PYTHON_TREES := python tests examples benches

SOURCES := Cargo.toml Cargo.lock pyproject.toml README.md $(shell find src python -name '*.rs' -o -name '*.py' -o -name '*.pyi' -o -name py.typed)

.PHONY: demo house test test-rust test-python test-pythons faults faults-long develop format format-check lint types check \
	torture crash fuzz mutants bench windows clean
.DEFAULT_GOAL := test

# One environment in two steps: packages for the wheel and the demo, then those for tests and lints.
# Each step is repeated when pyproject.toml changes.
$(VENV)/base: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "siteline needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --group demo
	touch $@

$(VENV)/ready: $(VENV)/base
	$(BIN)/python -m pip install --quiet --group test --group lint
	touch $@

# The wheel is installed, not the source tree, so that tests use what users get.
$(VENV)/installed: $(VENV)/base $(SOURCES)
	rm -rf target/wheels
	$(BIN)/maturin build --quiet --locked --profile $(PROFILE) --interpreter $(BIN)/python --out target/wheels
	$(BIN)/python -m pip install --quiet --no-deps --no-index --force-reinstall target/wheels/*.whl
	touch $@

demo: $(VENV)/installed
	$(BIN)/python examples/quickstart.py

# Prints the structure that tests/house reads from the source.
house:
	@cargo test --quiet --locked --test house the_house_is_printed -- --exact --nocapture

# The next target that needs the wheel installs it again.
develop: $(VENV)/ready
	rm -f $(VENV)/installed
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --quiet --locked --profile $(PROFILE)

test: test-rust test-python faults test-pythons

# The dependency tree of the core must not contain the dependencies of the Python bindings.
test-rust:
	@mkdir -p $(RESULTS)
	@cargo tree --locked --edges normal,build --prefix none > $(RESULTS)/tree.txt
	@! grep -E '^(pyo3|python|numpy)' $(RESULTS)/tree.txt || { echo 'the core depends on Python'; exit 1; }
	cargo test --locked > $(RESULTS)/rust.txt 2>&1; status=$$?; cat $(RESULTS)/rust.txt; exit $$status

test-python: $(VENV)/ready $(VENV)/installed
	@mkdir -p $(RESULTS)
	$(BIN)/python -m pytest --junit-xml=$(RESULTS)/python.xml $(PYTEST_ARGS)

# The same wheel on other interpreters, for example those of PYTHONS="python3.12 python3.13".
test-pythons: test-python
	$(BIN)/python tests/pythons.py target/wheels/*.whl --but "$$($(BIN)/python -c 'import sys; print("%d.%d" % sys.version_info[:2])')" $(PYTEST_ARGS)

# The table of proven rows must list what these two runs proved.
faults: test-rust test-python
	$(BIN)/python tests/faults.py $(FAULTS) --rust $(RESULTS)/rust.txt --python $(RESULTS)/python.xml

# The rows of LONGER in tests/faults.py with their full figures: half an hour. The table says so.
faults-long:
	SITELINE_LONG=1 $(MAKE) faults

# The wheel and two other packages with a Rust core, in a separate environment.
$(TORTURE)/ready: pyproject.toml
	$(PYTHON) -m venv $(TORTURE)
	$(TORTURE)/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	$(TORTURE)/bin/python -m pip install --quiet --group torture
	touch $@

# At most ten minutes. `make torture PROFILE=release` tests the wheel that users get.
torture: $(VENV)/installed $(TORTURE)/ready
	@mkdir -p $(RESULTS)
	$(TORTURE)/bin/python -m pip install --quiet --no-deps --no-index --force-reinstall target/wheels/*.whl
	PYTHONPATH=tests/stress $(TORTURE)/bin/python -m torture --minutes 10 --out $(RESULTS)/torture.md $(TORTURE_ARGS)

# At most ten minutes; CRASH_ARGS="--seed 1" repeats the run with that seed.
crash: $(VENV)/installed
	@mkdir -p $(RESULTS)
	PYTHONPATH=tests/stress $(BIN)/python -m crash --minutes 10 --out $(RESULTS)/crash.md $(CRASH_ARGS)

$(FUZZ)/bin/cargo-fuzz:
	cargo install --quiet --locked --root $(FUZZ) cargo-fuzz

# Half an hour. Coverage guidance needs an unstable feature of the compiler. FUZZ_TARGETS="page state",
# FUZZ_SECONDS=60 narrow it; FUZZ_ARGS passes options to libFuzzer.
FUZZ_TARGETS ?= page bookmark instant key state block
FUZZ_SECONDS ?= 300
fuzz: $(FUZZ)/bin/cargo-fuzz
	@for target in $(FUZZ_TARGETS); do \
	mkdir -p $(FUZZ)/corpus/$$target; \
	case $$target in page) seeds=tests/pages;; key) seeds=tests/keys;; state) seeds=tests/fuzz/seeds;; *) seeds=;; esac; \
	PATH="$(CURDIR)/$(FUZZ)/bin:$$PATH" RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR=$(CURDIR)/$(FUZZ) \
	cargo fuzz run --fuzz-dir tests/fuzz $$target $(FUZZ)/corpus/$$target $$seeds -- -dict=tests/fuzz/json.dict \
	-max_total_time=$(FUZZ_SECONDS) -timeout=10 -artifact_prefix=$(FUZZ)/ -print_final_stats=1 $(FUZZ_ARGS) \
	|| exit 1; done

$(MUTANTS)/bin/cargo-mutants:
	cargo install --quiet --locked --root $(MUTANTS) cargo-nextest
	cargo install --quiet --locked --root $(MUTANTS) cargo-mutants

# A part of it: MUTANTS_ARGS="--shard 0/100", MUTANTS_ARGS="--re src/auth/token".
mutants: $(MUTANTS)/bin/cargo-mutants
	PATH="$(CURDIR)/$(MUTANTS)/bin:$$PATH" cargo mutants --config tests/mutants.toml --output $(MUTANTS) $(MUTANTS_ARGS)

# The wheel that users get and the packages to compare with, in a separate environment.
$(BENCH)/ready: benches/requirements.txt
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BENCH)/bin/python -m pip install --quiet --requirement benches/requirements.txt
	touch $@

$(BENCH)/installed: $(BENCH)/ready $(VENV)/base $(SOURCES)
	rm -rf target/release-wheels
	$(BIN)/maturin build --quiet --locked --release --interpreter $(BIN)/python --out target/release-wheels
	$(BENCH)/bin/python -m pip install --quiet --no-deps --no-index --force-reinstall target/release-wheels/*.whl
	touch $@

# The Rust loops to compare with are a separate package, as siteline does not need their dependencies.
bench: $(BENCH)/installed
	cargo build --quiet --locked --release --manifest-path benches/core/Cargo.toml --target-dir target/bench-core
	@mkdir -p $(RESULTS)
	PYTHONPATH=benches $(BENCH)/bin/python -m speed --out $(RESULTS)/speed.md $(BENCH_ARGS)

# The crate for Windows: compiled, linked, and its tests run under Wine. On Debian/amd64; elsewhere it
# says which job of the workflow does it. WINDOWS_TESTS="--lib store::" narrows the tests; those that
# are left out take a quarter of an hour under Wine.
WINDOWS_TESTS ?= --lib --tests -- --skip one_flipped_bit
windows:
	$(PYTHON) .ci/windows.py build
	$(PYTHON) .ci/windows.py test $(WINDOWS_TESTS)

check: format-check lint types test

format: $(VENV)/ready
	cargo fmt
	cargo fmt --manifest-path benches/core/Cargo.toml
	cargo fmt --manifest-path tests/fuzz/Cargo.toml
	$(BIN)/ruff check --quiet --select I --fix $(PYTHON_TREES)
	$(BIN)/ruff format $(PYTHON_TREES)

format-check: $(VENV)/ready
	cargo fmt --check
	cargo fmt --check --manifest-path benches/core/Cargo.toml
	cargo fmt --check --manifest-path tests/fuzz/Cargo.toml
	$(BIN)/ruff format --check $(PYTHON_TREES)

# libFuzzer itself is C++, which only `make fuzz` compiles.
lint: $(VENV)/ready
	cargo clippy --locked --all-targets --features python -- -D warnings
	cargo check --quiet --locked --manifest-path benches/core/Cargo.toml --target-dir target
	CUSTOM_LIBFUZZER_PATH=target/unused cargo check --quiet --locked --manifest-path tests/fuzz/Cargo.toml --target-dir target
	$(BIN)/ruff check $(PYTHON_TREES)

types: $(VENV)/ready $(VENV)/installed
	$(BIN)/mypy
	$(BIN)/stubtest siteline --ignore-disjoint-bases
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/basedpyright --ignoreexternal --verifytypes siteline

clean:
	rm -rf $(VENV) target python/siteline/*.so
