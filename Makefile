# The few commands that a newcomer needs; everything else is `cargo` and `deadheat --help`.
.PHONY: help setup race test replay fuzz simulate web book kernel-test kubernetes-test

# Where cargo builds. It builds the servers of the tests before it runs any: the tests need not ask for them.
TARGET = $(abspath $(or $(CARGO_TARGET_DIR),target))

# What rustup installed goes before an older cargo of the system.
export PATH := $(or $(CARGO_HOME),$(HOME)/.cargo)/bin:$(PATH)

help:
	@echo 'make setup   install what building, testing and racing need on this machine'
	@echo 'make race    race the contenders of studies/trending and give a verdict'
	@echo 'make test    formatting, lints and all tests'
	@echo 'make replay  every kept record through every renderer: the outputs in target/replay, held against their digests'
	@echo 'make fuzz    the parsers against any bytes, 20 seconds each'
	@echo 'make kernel-test   links with delay, jitter, loss and WireGuard on an emulated machine with a kernel that has them: 5 minutes'
	@echo 'make kubernetes-test   load from a real Kubernetes cluster of three nodes in network namespaces: as root, 10 minutes'
	@echo 'make web     build the report page from web/ into the file that the program embeds'
	@echo 'make book    the book of docs/ as web pages, by mdbook'
	@echo 'make simulate   how often verdicts err, in simulated races: the tables of docs/src/simulations.md, minutes'

setup:
	@scripts/setup.sh

race: setup
	@echo 'compiling deadheat: minutes, the first time'
	@cargo build --release --locked --quiet
	@./target/release/deadheat race studies/trending --profile quick --measure 2s --scenario steady

test:
	@scripts/setup.sh packages
	cargo fmt --all --check
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	@scripts/tests.sh

replay:
	REPLAY_TO="$(CURDIR)/target/replay" cargo test --locked --quiet -p deadheat-report --test all replay

web: setup
	@cd web && npm run --silent build

book:
	@command -v mdbook > /dev/null || { echo 'mdbook is not installed: cargo install mdbook --locked' >&2; exit 2; }
	@mdbook build docs
	@echo 'docs/book/index.html'

fuzz: setup
	@fuzz/run.sh 20

simulate:
	@cargo test --release --locked --quiet -p deadheat-stats --test simulations -- --ignored --nocapture --test-threads=1

kernel-test: setup
	@scripts/kernel.py

kubernetes-test: setup
	RUSTC_WORKSPACE_WRAPPER=clippy-driver cargo test --workspace --features kubernetes --locked --lib --quiet kubernetes::
	@kubernetes/test/run.py
