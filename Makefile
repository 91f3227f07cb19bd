# Meridian: build, try, test, measure. `make help` lists the targets.

SHELL := /bin/bash
TARGET := $(or $(CARGO_TARGET_DIR),target)
PORT ?= 7117
DATA ?= demo-data
FOR ?= 120

BENCHES := ingest mixed spacetime tracks near aggregate python footprint scaling capacity compression lab searches overload
VENV := $(TARGET)/bench-venv
QUESTDB := 9.3.4

.PHONY: help build web typescript docs test-docs demo test test-all fixture chaos differential soak fuzz conformance schemathesis sizing studies wheel package test-package bench bench-peers clean-demo

help: ## This list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

build: web ## Release binary at target/release/meridian, the web pages inside it
	cargo build --release --locked --bin meridian
	@git describe --always --dirty > $(TARGET)/release/meridian.commit 2> /dev/null || true
	@echo "built $(TARGET)/release/meridian"

# The pages are rebuilt when a source or a dependency changed, so that a second `make build` is quick.
WEB_SOURCES := $(shell find web/src web/scripts data/natural-earth -type f 2>/dev/null) web/package.json web/tsconfig.json

web: web/dist/.built

web/node_modules/.installed: web/package-lock.json
	cd web && npm ci --no-audit --no-fund --loglevel=error
	@touch $@

web/dist/.built: web/node_modules/.installed $(WEB_SOURCES)
	cd web && npm run build
	@touch $@

typescript: ## The TypeScript client as an npm package, target/meridian-client-VERSION.tgz
	npm --prefix clients/typescript ci --no-audit --no-fund
	@mkdir -p $(TARGET)
	npm pack ./clients/typescript --silent --pack-destination $(TARGET)

docs: ## The documentation as a site with a search, in target/book; its links are checked
	@scripts/book.sh

test-docs: ## Follows the pages of docs/ as a reader would, QGIS as well; PAGES="docs/gdal.md" takes some
	@scripts/docs_test.sh --all $(PAGES)

# Its own profile, without the lab and the labels of images: less to build before a first run (decision 027).
demo: web ## Load real data into ./demo-data and serve it; PORT= and DATA= override
	cargo build --profile demo --locked -p meridian-cli --no-default-features --features map
	@MERIDIAN=$(TARGET)/demo/meridian PORT=$(PORT) DATA=$(DATA) scripts/demo.sh

clean-demo: ## Forget the demo's data
	rm -rf $(DATA)

test: ## Every test that must pass before a change lands; installs what it needs
	@scripts/test.sh

test-all: ## All of `make test`, then the suites that are too long for it
	@scripts/test.sh --all

fixture: ## Writes the small store of this version into crates/store/tests/fixtures, once
	MERIDIAN_WRITE_FIXTURE=1 cargo test -p meridian-store --test store -- fixtures

chaos: ## The owner's protocol explored; simulated crashes, faults and damage for half of FOR seconds, harm to every kind of file for a quarter of that; then a real server killed again and again, and three real clusters under faults of processes, links, disks, stores and clocks
	MERIDIAN_SCHEDULES=0..400000 cargo test -p meridian-model --test owner random -- --nocapture
	cargo test -p meridian-model --test owner larger -- --ignored --nocapture
	MERIDIAN_SIM_SECONDS=$$(($(FOR) * 3 / 8)) cargo test -p meridian-store --test store -- sim::seeds --nocapture
	MERIDIAN_DAMAGE_SECONDS=$$(($(FOR) / 8)) cargo test -p meridian-store --test store -- harm --nocapture
	MERIDIAN_CHAOS_SECONDS=$$(($(FOR) / 2)) cargo test -p meridian-cli --test program crash:: -- --nocapture
	MERIDIAN_CHAOS_SECONDS=$(FOR) cargo test -p meridian-cli --test program chaos:: -- --nocapture

differential: ## A real server against an oracle of plain lists, from new seeds, for FOR seconds
	scripts/differential_test.sh --seconds $(FOR)

soak: ## Write, delete, page and count at once, with little memory, for FOR seconds
	MERIDIAN_SOAK_SECONDS=$(FOR) cargo test -p meridian-cli --test program soak:: -- --nocapture

fuzz: ## libFuzzer on every parser of outside bytes for FOR seconds each; ARGS="geojson csv" takes some
	SECONDS_MAX=$(FOR) scripts/fuzz.sh $(ARGS)

conformance: ## The standards' tests: CQL2, and the OGC suites whose jars ETS_FEATURES and ETS_TILES name
	scripts/cql2_test.sh
	@[[ -n "$(ETS_FEATURES)$(ETS_TILES)" ]] || { echo "ETS_FEATURES and ETS_TILES name no jars: the suites are not run"; exit 1; }
	scripts/conformance_test.sh

schemathesis: ## Requests made from the API description for FOR seconds, with a SEED of their own
	SECONDS_MAX=$(FOR) EXAMPLES=1000 SEED=$(or $(SEED),$(shell date +%s)) scripts/schemathesis_test.sh

wheel: ## The engine for Python as a wheel, in the target folder; for old systems where ziglang can be installed
	scripts/python_wheel.sh $(TARGET)/wheels

package: ## Archive, Debian package, image, wheels, lists of components and checksums, in target/packages; for Debian 11 and newer
	scripts/package.sh $(TARGET)/packages

test-package: ## The same, each installed and run: on Debian 11, in the image, and in a fresh Python
	cargo build --locked --quiet --bin meridian
	MERIDIAN_BUILT=1 scripts/package_test.sh --all

bench: build ## The side-by-side comparisons; writes bench/RESULTS.md
	@for name in $(BENCHES); do $(MAKE) --no-print-directory bench-$$name || exit 1; done

studies: build ## The loads of published studies with their reports, into bench/studies; ARGS="places" takes some
	@scripts/need.sh zstd=zstd
	python3 bench/studies/run.py $(ARGS)

sizing: build ## The tables and the picture of docs/sizing.md, from bench/sizing/inputs.toml, bench/results and the simulator
	python3 bench/sizing/size.py --meridian $(TARGET)/release/meridian

bench-peers: peer-packages $(VENV)/.installed $(TARGET)/bench-peers/questdb-$(QUESTDB).jar ## Installs the peers of the benches from Debian, PyPI and Maven

.PHONY: peer-packages
peer-packages:
	@scripts/need.sh redis-server=redis-server redis-cli=redis-tools nginx=nginx-light zstd=zstd brotli=brotli
	@scripts/need.sh pg_lsclusters=postgresql mvn=maven java=default-jre-headless
	@scripts/need.sh /usr/share/postgresql/15/extension/postgis.control=postgresql-15-postgis-3
	@scripts/need.sh uwsgi-core=uwsgi-core /usr/lib/uwsgi/plugins/python3_plugin.so=uwsgi-plugin-python3
	@scripts/need.sh /usr/lib/python3/dist-packages/searx/webapp.py=python3-searx

$(VENV)/.installed: bench/requirements.txt
	python3 -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --requirement $<
	@touch $@

$(TARGET)/bench-peers/questdb-$(QUESTDB).jar: | peer-packages
	mvn -q -B dependency:copy -Dartifact=org.questdb:questdb:$(QUESTDB) -DoutputDirectory=$(abspath $(@D))

# The hook that dilates time is in no other build: its own folder, so that the release binary never has it (decision 063).
bench-scans: web $(VENV)/.installed ## Accumulo's study of scan servers with real processes, in dilated time; ARGS="--plan" says how long each row takes
	cargo build --release --locked -p meridian-cli --features dilate --target-dir $(TARGET)/dilate
	@git describe --always --dirty > $(TARGET)/dilate/release/meridian.commit 2> /dev/null || true
	MERIDIAN=$(TARGET)/dilate/release/meridian $(VENV)/bin/python bench/scans/run.py $(ARGS)
	$(VENV)/bin/python bench/report.py

bench-python: build $(VENV)/.installed ## Questions of a notebook: the engine in the process beside DuckDB and GeoPandas
	scripts/python_wheel.sh $(TARGET)/wheels
	$(VENV)/bin/pip install --quiet --force-reinstall --no-deps $(TARGET)/wheels/meridian_engine-*.whl
	$(VENV)/bin/python bench/python/run.py $(ARGS)
	$(VENV)/bin/python bench/report.py

bench-replication: build $(VENV)/.installed ## The published study of replication on clusters of 1 to 6 nodes, as a notebook; NODES="1 3" takes some
	cargo build --release --locked -p bench-driver
	cd bench/cluster && MERIDIAN=$(abspath $(TARGET))/release/meridian $(abspath $(VENV))/bin/jupyter execute --inplace --timeout=1800 replication.ipynb

bench-%: build $(VENV)/.installed ## One of the comparisons, such as bench-near; ARGS="--rounds 1" passes options on
	cargo build --release --locked -p bench-driver
	$(VENV)/bin/python bench/$*/run.py $(ARGS)
	$(VENV)/bin/python bench/report.py
