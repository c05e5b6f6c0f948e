# Thin wrappers: what each step does is said where it is done.
#   make demo    sets up, then `fencepost demo`, which records an FFT and replays it under three schemes: out/demo/report.html
#   make setup   what recording and replaying need, once; says first how long it takes. What else a command needs is built when it first needs it
#   make fetch   what `setup`, `test` and `lint` fetch from package indices: they need no network afterwards
#   make fast    the simulator optimised as a whole and by a profile, in the place of the quick one that `setup` builds
#   make test    the tests, but for those that take long
#   make slow-tests  those
#   make slurm   Debian's Slurm, for those slow tests that submit array jobs; needs root, or says what to type
#   make loom    every interleaving of what the processes of a transport share; part of slow-tests
#   make tsan    the same under ThreadSanitizer, where it is installed; part of slow-tests
#   make lint    formatters, linters, types, and checks of style
#   make fuzz    a minute for each fuzz target
#   make bench   speed and cost: out/bench.json
#   make compare-speed BASE=COMMIT  how fast that commit and this one replay the same records, in turn
#   make compare-results BASE=COMMIT  which results differ from those of that commit's simulator
#   make docs    the pages as a site with search: out/site/index.html (fails for a link to nothing)
#   make wheel   a wheel that needs no compilers where it is installed, in about ten minutes: out/wheel
#   make wheel-tests  that wheel in an empty environment without compilers, as a new user would use it
#   make sdist   the committed sources as a package: out/wheel
#   make sdist-tests  the same of that package, which is compiled for it: ten minutes
#   make validate published figures against ours: docs/validation.md (fails while one is unexplained)
#   make reproduce  the persistent CXL switch study, published against ours: docs/pcs.md

SHELL = /bin/sh
.DELETE_ON_ERROR:
.PHONY: demo setup setup-tests setup-dev fetch fetch-rust fetch-engine fast recorder recorder-aarch64 workloads measure channel checked test rust-tests python-tests slow-tests slurm slow-primitives-tests slow-python-tests slow-rust-tests ignored-rust-tests many-cases-rust-tests second-protocol loom tsan lint fuzz bench validate docs wheel wheel-tests sdist sdist-tests compare-results compare-speed reproduce clean
.DEFAULT_GOAL = demo

PYTHON ?= python3
BIN = .venv/bin
HOST = $(shell rustc -vV | sed -n 's/^host: //p')
STAMPS = build/stamps

# Where the home folder cannot be written, what is kept between builds is kept here.
CARGO_FOLDER = $${CARGO_HOME:-$$HOME/.cargo}
ifeq ($(shell [ -w "$(CARGO_FOLDER)" ] || { ! [ -e "$(CARGO_FOLDER)" ] && [ -w "$$HOME" ]; } && echo yes),)
export CARGO_HOME = $(CURDIR)/build/home/cargo
endif
ifeq ($(shell [ -w "$$HOME" ] && echo yes),)
export XDG_CACHE_HOME = $(CURDIR)/build/home/cache
endif

# --- setup ---------------------------------------------------------------------------------

setup:
	@$(PYTHON) setup/steps.py demo

setup-tests:
	@$(PYTHON) setup/steps.py tests

setup-dev:
	@$(PYTHON) setup/steps.py dev

fetch:
	@$(PYTHON) setup/steps.py --fetch dev

# Of other systems' crates nothing.
fetch-rust:
	cargo fetch --quiet --locked --target $(HOST)
	cargo fetch --quiet --locked --target $(HOST) --manifest-path fuzz/Cargo.toml

fetch-engine:
	cargo fetch --quiet --locked --target $(HOST) --manifest-path recorder/engine/Cargo.toml

# Whole or not at all: a half-filled .venv is not mistaken for a finished one.
.venv/stamps/python: setup/uv.lock setup/setup.lock
	rm -rf .venv && $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r setup/uv.lock
	VIRTUAL_ENV=.venv $(BIN)/uv pip install --quiet --require-hashes -r setup/setup.lock
	@mkdir -p $(@D) && touch $@

.venv/stamps/python-tests .venv/stamps/python-dev: .venv/stamps/python-%: setup/%.lock .venv/stamps/python
	VIRTUAL_ENV=.venv $(BIN)/uv pip install --quiet --require-hashes -r $<
	@touch $@

CORE_SOURCES = $(shell find $(filter-out crates/channel,$(wildcard crates/*)) -name '*.rs' -o -name Cargo.toml) \
	Cargo.toml Cargo.lock pyproject.toml

# Maturin builds what is compiled.
$(STAMPS)/core: $(CORE_SOURCES) .venv/stamps/python
	PATH="$(CURDIR)/$(BIN):$$PATH" VIRTUAL_ENV=.venv $(BIN)/uv pip install --quiet --no-index --no-deps --no-build-isolation --editable .
	@mkdir -p $(@D) && touch $@

RECORDER_SOURCES = $(shell find recorder crates/record/src -type f) setup/order

$(STAMPS)/recorder $(STAMPS)/recorder-aarch64: $(STAMPS)/%: $(RECORDER_SOURCES)
	recorder/build $*
	@mkdir -p $(@D) && touch $@

build/workloads/fft: workloads/fft.c $(wildcard workloads/*.h workloads/common/*.h) workloads/Makefile
	$(MAKE) --silent --no-print-directory -C workloads ../$@

# --- what commands build when they first need it (python/fencepost/built.py) ------------------

recorder: $(STAMPS)/recorder
recorder-aarch64: $(STAMPS)/recorder-aarch64

workloads:
	@$(MAKE) --silent --no-print-directory -C workloads

measure:
	@$(MAKE) --silent --no-print-directory -C measure
	@$(MAKE) --silent --no-print-directory -C workloads/stream

channel: $(STAMPS)/channel

CHANNEL_SOURCES = $(shell find crates/channel crates/pacing -name '*.rs' -o -name Cargo.toml -o -name '*.h') \
	Cargo.toml Cargo.lock

$(STAMPS)/channel: $(CHANNEL_SOURCES) setup/channel
	setup/channel quick
	@mkdir -p $(@D) && touch $@

# --- fast ----------------------------------------------------------------------------------

# For each compiler and lock file once, not at each change of a source.
PROFILED := $(STAMPS)/profile-$(shell rustc -vV 2>/dev/null | cksum | cut -d ' ' -f 1)

$(PROFILED): Cargo.lock setup/profile setup/train.py
	@echo "fast: the simulator with counters, to optimise it by them"
	@MAKEFLAGS= setup/profile
	@mkdir -p $(@D) && touch $@

fast: setup workloads measure $(PROFILED)
	@echo "fast: the simulator, optimised as a whole"
	@MAKEFLAGS= PYO3_PYTHON="$(CURDIR)/$(BIN)/python" setup/with-profile cargo build --quiet --locked --release --package fencepost-python
	@cp target/release/lib_core.so build/core.new && mv build/core.new python/fencepost/_core.abi3.so
	@echo "fast: installed; \`make setup\` keeps it until a source changes"

# --- demo ----------------------------------------------------------------------------------

# What is up to date is shown again and not made again.
demo: setup
	@if $(MAKE) --no-print-directory --question out/demo/report.html 2>/dev/null; \
	then $(BIN)/fencepost report out/demo/result.json -o out/demo/report.html; \
	else $(MAKE) --no-print-directory out/demo/report.html; fi
	@echo "report: out/demo/report.html"

out/demo/report.html: build/workloads/fft $(wildcard machines/*.toml) $(STAMPS)/recorder $(STAMPS)/core
	@$(BIN)/fencepost demo -o $(@D)

# --- test ----------------------------------------------------------------------------------

# Python's tests begin as soon as the simulator is there, while the tests of Rust are still compiled.
test: setup-tests
	@rm -rf $(REPORTS) && mkdir -p $(REPORTS)
	@$(MAKE) --no-print-directory checked
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target rust-tests python-tests
	@$(BIN)/python tests/slowest.py $(REPORTS)

# How long each part and each test took.
REPORTS = build/tests
TIMED = tests/timed $(REPORTS)/$@

# The simulator that all tests run, with assertions and checks for overflow, and a package that has it.
checked:
	@mkdir -p $(REPORTS)
	@MAKEFLAGS= $(TIMED) cargo build --quiet --locked --package fencepost-python
	@rm -rf build/checked && mkdir -p build/checked/fencepost
	@ln -s $(addprefix ../../../,$(filter-out %.so,$(wildcard python/fencepost/*))) build/checked/fencepost
	@cp target/debug/lib_core.so build/checked/fencepost/_core.abi3.so

# Files go to workers, those that took long first; tests wait as well as compute, so there is one worker more than processors, up to five.
WORKERS = $(shell n=$$(nproc); expr $$(( n < 4 ? n : 4 )) + 1)
PYTEST = PYTHONPATH="$(CURDIR)/build/checked" $(TIMED) $(BIN)/pytest --junitxml=$(REPORTS)/$@.xml --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder

# Random cases are few: `cargo test` has more. MAKEFLAGS: cargo would look for make's job server, which is not handed on to it. Examples are looked at by clippy; there are no documentation tests.
rust-tests:
	@mkdir -p $(REPORTS)
	@MAKEFLAGS= CARGO_TERM_COLOR=never PROPTEST_CASES=64 $(TIMED) cargo test --locked --workspace --tests --no-fail-fast -- --quiet >$(REPORTS)/$@.txt 2>&1 || { cat $(REPORTS)/$@.txt; exit 1; }
	@grep '^test result' $(REPORTS)/$@.txt

python-tests:
	@$(PYTEST) --ignore=tests/style -m "not slow"

# What `make test` leaves out, or a part of it: SLOW="slow and not exhaustive". The checker's largest bounds take 4.3 GiB of memory, and want 5.8 to be free.
SLOW = slow
# K/N: of those in Python every N-th, from the K-th on.
PART = 0/1
slow-tests: setup-tests checked
	$(MAKE) --no-print-directory --jobs=3 --output-sync=target slow-primitives-tests slow-python-tests slow-rust-tests

# Tests start a cluster of their own; what is installed here starts none.
slurm:
	@$(PYTHON) setup/system.py slurm

# Every power cut of every combination of structure, flush and log.
slow-primitives-tests:
	@$(PYTEST) tests/test_primitives.py tests/test_primitives_aarch64.py -m "$(SLOW)" --part $(PART)

slow-python-tests:
	@$(PYTEST) --ignore=tests/style --ignore=tests/test_primitives.py --ignore=tests/test_primitives_aarch64.py -m "$(SLOW)" --part $(PART)

slow-rust-tests: ignored-rust-tests many-cases-rust-tests second-protocol loom tsan

# The same packages each time: cargo would build them anew with fewer of their features.
ignored-rust-tests:
	MAKEFLAGS= cargo test --quiet --locked --workspace --tests -- --ignored

many-cases-rust-tests:
	MAKEFLAGS= PROPTEST_CASES=1000 cargo test --quiet --locked --workspace --tests -- c501 c601 whatever_agents

# A protocol that no machine has, whose messages would be compiled into what `make test` runs.
second-protocol:
	MAKEFLAGS= cargo test --quiet --locked --package fencepost-sim --features test-protocol -- second_protocol

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

lint: setup-dev
	cargo fmt --all --check
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	@$(BIN)/clang-format --dry-run -Werror $(C_SOURCES)
	$(BIN)/mypy
	$(BIN)/pytest tests/style
	@$(BIN)/python -m mypy.stubtest fencepost._core
	MAKEFLAGS= cargo clippy --quiet --locked --workspace --features fencepost-sim/test-protocol --all-targets -- -D warnings
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

# By a profile of these sources: of what was changed since it was made nothing would be known.
bench: setup-tests
	@[ -z "$$(find $(CORE_SOURCES) -newer $(PROFILED) 2>&1)" ] || rm -f $(PROFILED)
	@$(MAKE) --no-print-directory fast
	$(BIN)/python -m fencepost.bench out/bench.json

# --- validate ------------------------------------------------------------------------------

validate: setup
	$(BIN)/fencepost validate --docs docs --json out/validate.json

# --- docs ----------------------------------------------------------------------------------

# Made anew: a page that is gone is gone there too.
docs: setup-dev
	@rm -rf out/site
	@$(BIN)/python docs/site/assemble.py build/site
	@$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going -d build/site-doctrees -c docs/site build/site out/site
	@echo "site: out/site/index.html"

# --- wheel ---------------------------------------------------------------------------------

# For whoever has no compilers; it says on which Linux it runs.
wheel: setup-dev workloads measure $(PROFILED)
	$(BIN)/python setup/backend.py wheel out/wheel

# TRY=python3.10: with another Python than ours.
TRY = $(BIN)/python
wheel-tests: wheel
	setup/try-package out/wheel/fencepost-*.whl $(TRY)
	$(BIN)/python tests/equal_builds.py out/wheel/fencepost-*.whl

sdist: setup-dev
	$(BIN)/python setup/backend.py sdist out/wheel

# Compiles everything, as `pip install` of the sources does.
sdist-tests: sdist
	setup/try-package out/wheel/fencepost-*.tar.gz $(TRY)

# --- compare-results -----------------------------------------------------------------------

compare-results: setup-tests
	@$(BIN)/python -m tests.compare_results "$(BASE)"

# The machine should have nothing else to do meanwhile.
compare-speed: setup-tests
	@$(BIN)/python -m tests.compare_results.speed "$(BASE)"

# --- reproduce -----------------------------------------------------------------------------

# An interrupted one goes on where it stopped.
reproduce: setup
	$(BIN)/fencepost reproduce pcs --docs docs --json out/reproduce/pcs.json

clean:
	rm -rf build out
