# Thin wrappers: what each step does is said where it is done.
#   make setup   everything that the others need, once; needs no network the second time
#   make profile counts anew what the compiler optimises the simulator by, and builds it by that (PROFILE=no: without)
#   make demo    `fencepost demo`, which records an FFT and replays it under three schemes: out/demo/report.html
#   make compare-speed BASE=COMMIT  how fast that commit and this one replay the same records, in turn
#   make compare-results BASE=COMMIT  which results differ from those of that commit's simulator
#   make reproduce  the persistent CXL switch study, published against ours: docs/pcs.md
#   make test    the tests, but for those that take long
#   make slow-tests  those
#   make loom    every interleaving of what the processes of a transport share; part of slow-tests
#   make tsan    the same under ThreadSanitizer, where it is installed; part of slow-tests
#   make lint    formatters, linters and types
#   make fuzz    a minute for each fuzz target
#   make bench   speed and cost: out/bench.json
#   make docs    the pages as a site with search: out/site/index.html (fails for a link to nothing)
#   make wheel   a wheel that needs no compilers where it is installed: out/wheel
#   make wheel-tests  that wheel in an empty environment without compilers, as a new user would use it
#   make sdist   the committed sources as a package: out/wheel
#   make sdist-tests  the same of that package, which is compiled for it: ten minutes
#   make validate published figures against ours: docs/validation.md (fails while one is unexplained)

SHELL = /bin/sh
.DELETE_ON_ERROR:
.PHONY: docs wheel wheel-tests sdist sdist-tests loom tsan compare-speed setup set-up profile demo reproduce test rust-tests python-tests-a python-tests-b recorder-tests slow-tests slow-primitives-tests slow-python-tests slow-rust-tests ignored-rust-tests many-cases-rust-tests lint fuzz bench validate compare-results clean workloads measure
.DEFAULT_GOAL = demo

PYTHON ?= python3
BIN = .venv/bin
HOST = $(shell rustc -vV | sed -n 's/^host: //p')
STAMPS = build/stamps

# --- setup ---------------------------------------------------------------------------------

# Much of what compiles the simulator keeps one core busy.
setup: $(STAMPS)/packages
	@$(MAKE) --no-print-directory --jobs=2 set-up

set-up: $(STAMPS)/core $(STAMPS)/recorder workloads measure $(STAMPS)/channel

$(STAMPS)/packages: setup/packages.txt setup/install-packages
	@setup/install-packages
	@setup/check-toolchain
	@mkdir -p $(@D) && touch $@

# Whole or not at all: a half-filled .venv is not mistaken for a finished one.
$(STAMPS)/python: requirements.lock $(STAMPS)/packages
	@echo "setup: Python environment in .venv"
	@rm -rf .venv && $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@touch $@

CORE_CRATES = $(addprefix crates/,record isa pacing kernel sim checker reclaim python)
CORE_SOURCES = $(shell find $(CORE_CRATES) -name '*.rs' -o -name Cargo.toml) \
	Cargo.toml Cargo.lock pyproject.toml python/data/scripts/fencepost

# For each compiler and lock file once, not at each change of a source: `make profile` counts anew.
PROFILED := $(STAMPS)/profile-$(shell rustc -vV 2>/dev/null | cksum | cut -d ' ' -f 1)

# What it is counted on.
ifneq ($(PROFILE),no)
$(PROFILED): | $(STAMPS)/recorder workloads measure
endif

$(PROFILED): Cargo.lock setup/profile setup/train.py | $(STAMPS)/python
	@PROFILE=$(PROFILE) setup/profile
	@touch $@

profile:
	@rm -f $(PROFILED) $(STAMPS)/core
	@$(MAKE) --no-print-directory $(STAMPS)/core

$(STAMPS)/core: $(CORE_SOURCES) $(STAMPS)/python $(PROFILED) setup/core setup/with-profile setup/rustc-flag
	@echo "setup: the simulator (Rust, release)"
	@setup/core
	@touch $@

RECORDER_SOURCES = $(shell find recorder -type f)

$(STAMPS)/recorder: $(RECORDER_SOURCES) $(STAMPS)/packages
	@echo "setup: the recorder and its engine"
	@recorder/build
	@touch $@

CHANNEL_SOURCES = $(shell find crates/channel crates/pacing -name '*.rs' -o -name Cargo.toml -o -name '*.h') \
	Cargo.toml Cargo.lock

$(STAMPS)/channel: $(CHANNEL_SOURCES) $(STAMPS)/packages setup/channel setup/rustc-flag
	@echo "setup: the preloaded transport (Rust, release)"
	@setup/channel
	@touch $@

workloads: $(STAMPS)/packages
	@$(MAKE) --silent --no-print-directory -C workloads

measure: $(STAMPS)/packages
	@$(MAKE) --silent --no-print-directory -C measure
	@$(MAKE) --silent --no-print-directory -C workloads/stream

# --- demo ----------------------------------------------------------------------------------

# What is up to date is shown again and not made again.
demo: setup
	@if $(MAKE) --no-print-directory --question out/demo/report.html 2>/dev/null; \
	then $(BIN)/fencepost report out/demo/result.json -o out/demo/report.html; \
	else $(MAKE) --no-print-directory out/demo/report.html; fi
	@echo "report: out/demo/report.html"

# The program's age decides, not that of `workloads`, which looks at it each time.
build/workloads/fft: | workloads

out/demo/report.html: build/workloads/fft $(wildcard machines/*.toml) $(STAMPS)/recorder $(STAMPS)/core
	$(BIN)/fencepost demo -o $(@D)

# --- test ----------------------------------------------------------------------------------

# The parts run side by side, the longest first: most of each keeps one core busy; what each says is printed when it is done.
test: setup
	@rm -rf $(REPORTS) && mkdir -p $(REPORTS)
	$(MAKE) --no-print-directory --jobs=3 --output-sync=target python-tests-a rust-tests python-tests-b recorder-tests
	@$(BIN)/python tests/slowest.py $(REPORTS)

# How long each test took.
REPORTS = build/tests
PYTEST = $(BIN)/pytest --junitxml=$(REPORTS)/$@.xml

# Nothing is kept to build faster after a change, and random cases are few: `cargo test` has more of both. MAKEFLAGS: cargo would look for make's job server, which is not handed on to it. Examples are looked at by clippy; there are no documentation tests.
rust-tests:
	@mkdir -p $(REPORTS)
	@MAKEFLAGS= CARGO_INCREMENTAL=0 CARGO_TERM_COLOR=never PROPTEST_CASES=64 cargo test --locked --workspace --exclude fencepost-python --tests -- --quiet >$(REPORTS)/$@.txt 2>&1 || { cat $(REPORTS)/$@.txt; exit 1; }
	@grep '^test result' $(REPORTS)/$@.txt

# In two parts that take about as long.
python-tests-a:
	$(PYTEST) tests/test_[a-o]*.py -m "not slow"

python-tests-b:
	$(PYTEST) tests/test_[!a-o]*.py -m "not slow"

recorder-tests:
	$(PYTEST) tests/recorder tests/recorder_aarch64 -m "not slow"

# What `make test` leaves out, or a part of it: SLOW="slow and not exhaustive". The checker's largest bounds take 4.3 GiB of memory, and want 5.8 to be free.
SLOW = slow
# K/N: of those in Python every N-th, from the K-th on.
PART = 0/1
slow-tests: setup
	$(MAKE) --no-print-directory --jobs=3 --output-sync=target slow-primitives-tests slow-python-tests slow-rust-tests

# Every power cut of every combination of structure, flush and log.
slow-primitives-tests:
	$(PYTEST) tests/test_primitives.py tests/test_primitives_aarch64.py -m "$(SLOW)" --part $(PART)

slow-python-tests:
	$(PYTEST) --ignore=tests/test_primitives.py --ignore=tests/test_primitives_aarch64.py -m "$(SLOW)" --part $(PART)

slow-rust-tests: ignored-rust-tests many-cases-rust-tests loom tsan

# The same packages each time: cargo would build them anew with fewer of their features.
ignored-rust-tests:
	MAKEFLAGS= CARGO_INCREMENTAL=0 cargo test --quiet --locked --workspace --exclude fencepost-python --tests -- --ignored

many-cases-rust-tests:
	MAKEFLAGS= CARGO_INCREMENTAL=0 PROPTEST_CASES=1000 cargo test --quiet --locked --workspace --exclude fencepost-python --tests -- c501 c601 whatever_agents

# Every interleaving of what processes share. Atomics are others then, so nothing is shared with other builds.
loom:
	MAKEFLAGS= RUSTFLAGS='--cfg loom' cargo test --quiet --release --locked -p fencepost-channel --no-default-features --test loom --target-dir target/loom

# The same segment under ThreadSanitizer, where there is a nightly compiler with it.
TSAN_RUNTIME = $(wildcard $(shell rustc +nightly --print sysroot 2>/dev/null)/lib/rustlib/$(HOST)/lib/librustc-nightly_rt.tsan.a)

tsan:
ifeq ($(TSAN_RUNTIME),)
	@echo "tsan: no nightly compiler with ThreadSanitizer here; type: rustup toolchain install nightly" >&2
else
	MAKEFLAGS= TSAN_OPTIONS=suppressions=$(CURDIR)/crates/channel/tests/tsan.txt RUSTFLAGS='-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer' cargo +nightly test --quiet --locked -p fencepost-channel --test threads --target $(HOST) --target-dir target/tsan
endif

# --- lint ----------------------------------------------------------------------------------

C_SOURCES = $(shell find recorder workloads measure experiments/persist experiments/pcs tests/waits tests/channel crates/channel/include -name '*.c' -o -name '*.h' -o -name '*.cpp')

lint: setup
	cargo fmt --all --check
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	@$(BIN)/clang-format --dry-run -Werror $(C_SOURCES)
	$(BIN)/mypy
	@$(BIN)/python -m mypy.stubtest fencepost._core
	MAKEFLAGS= cargo clippy --quiet --locked --workspace --all-targets -- -D warnings
	MAKEFLAGS= cargo clippy --quiet --locked --manifest-path fuzz/Cargo.toml --target-dir target -- -D warnings
	MAKEFLAGS= RUSTDOCFLAGS='-D warnings' cargo doc --quiet --locked --workspace --no-deps --document-private-items

# --- fuzz ----------------------------------------------------------------------------------

# LibFuzzer with the coverage that the stable compiler gives; build scripts are not instrumented, hence `--target`. What makes a target fail
# stays in out/fuzz.
FUZZ_TARGETS = record machine bounds_and_litmus persist_buffer crash
FUZZ_SECONDS = 60
FUZZ_FLAGS = -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
	-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table
fuzz:
	MAKEFLAGS= RUSTFLAGS="$(FUZZ_FLAGS)" cargo build --quiet --release --locked --manifest-path fuzz/Cargo.toml --target $(HOST)
	@for target in $(FUZZ_TARGETS); do sh fuzz/run fuzz/target/$(HOST)/release $$target $(FUZZ_SECONDS) || exit 1; done

# --- bench ---------------------------------------------------------------------------------

# Of what was changed since the profile was made nothing would be known.
bench: setup
	@[ -z "$$(find $(CORE_SOURCES) -newer $(PROFILED))" ] || $(MAKE) --no-print-directory profile
	$(BIN)/python -m fencepost.bench out/bench.json

# --- validate ------------------------------------------------------------------------------

validate: setup
	$(BIN)/fencepost validate --docs docs --json out/validate.json

# --- docs ----------------------------------------------------------------------------------

# Made anew: a page that is gone is gone there too.
docs: setup
	@rm -rf out/site
	@$(BIN)/python docs/site/assemble.py build/site
	@$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going -d build/site-doctrees -c docs/site build/site out/site
	@echo "site: out/site/index.html"

# --- wheel ---------------------------------------------------------------------------------

# For whoever has no compilers; it says on which Linux it runs.
wheel: setup
	$(BIN)/python setup/backend.py wheel out/wheel

# TRY=python3.10: with another Python than ours.
TRY = $(BIN)/python
wheel-tests: wheel
	setup/try-package out/wheel/fencepost-*.whl $(TRY)

sdist: setup
	$(BIN)/python setup/backend.py sdist out/wheel

# Compiles everything, as `pip install` of the sources does.
sdist-tests: sdist
	setup/try-package out/wheel/fencepost-*.tar.gz $(TRY)

# --- compare-results -----------------------------------------------------------------------

compare-results: setup
	@$(BIN)/python -m tests.compare_results "$(BASE)"

# The machine should have nothing else to do meanwhile.
compare-speed: setup
	@$(BIN)/python -m tests.compare_results.speed "$(BASE)"

# --- reproduce -----------------------------------------------------------------------------

# An interrupted one goes on where it stopped.
reproduce: setup
	$(BIN)/fencepost reproduce pcs --docs docs --json out/reproduce/pcs.json

clean:
	rm -rf build out
