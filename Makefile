# One command for each habit. `make help` lists them.

TEMPORAL_VERSION := v1.5.1
# The temporal binary on PATH, else the project's own (installed by `make temporal`; .tools is ignored by git).
TEMPORAL := $(shell command -v temporal 2>/dev/null || echo $(CURDIR)/.tools/bin/temporal)
SAMPLE := What is 21 * 2, and what time is it in Tokyo?
ONCE ?=

export EVERTURN_TEMPORAL_BIN := $(TEMPORAL)

.DEFAULT_GOAL := help
.PHONY: help run test check fmt lint build unit e2e temporal histories clean

help: ## List the commands.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: temporal build ## Run everything with a sample turn, then stay up; ONCE=1 exits after the turn.
	@target/debug/everturn dev $(if $(ONCE),--once,--sample) "$(SAMPLE)"

test: temporal check build ## Everything CI checks: formatting, lints, all tests.
	@echo "▸ tests"
	@cargo test --workspace --locked -- --test-threads 4

check: fmt-check lint ## Formatting and lints, without tests.

.PHONY: fmt-check
fmt-check:
	@echo "▸ formatting"
	@cargo fmt --all --check

fmt: ## Format the code.
	@cargo fmt --all

lint: ## Run clippy with the workspace's lints.
	@echo "▸ clippy (the first run checks every dependency: a few minutes)"
	@cargo clippy --workspace --all-targets --locked -- -D warnings

build: ## Build the binary everturn.
	@echo "▸ build (the first one takes 8 minutes on 2 cores)"
	@cargo build --workspace --locked

unit: ## Tests of the crates, without processes.
	@cargo test --workspace --exclude everturn-tests --locked

e2e: temporal build ## End-to-end tests: real processes on the real Temporal server. TEST=name runs some.
	@cargo test --package everturn-tests --locked -- --test-threads 4 $(TEST)

histories: temporal build ## Record the stored histories anew (after a change of the workflow; see tests/histories/README.md).
	@EVERTURN_RECORD_HISTORIES=1 cargo test --package everturn-tests --locked histories

temporal: $(TEMPORAL) ## Install the temporal binary into .tools/bin, unless there is one.

$(TEMPORAL):
	@echo "▸ temporal $(TEMPORAL_VERSION) with go install (about 4 minutes, once)"
	@GOBIN="$(dir $@)" go install github.com/temporalio/cli/cmd/temporal@$(TEMPORAL_VERSION)

clean: ## Remove what was built; .tools stays.
	@cargo clean
