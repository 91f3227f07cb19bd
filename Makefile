# Meridian: build, try, test, measure. `make help` lists the targets.

SHELL := /bin/bash
TARGET := $(or $(CARGO_TARGET_DIR),target)
PORT ?= 7117
DATA ?= demo-data
FOR ?= 120

.PHONY: help build web demo test chaos soak bench bench-peers clean-demo

help: ## This list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

build: web ## Release binary at target/release/meridian, the web pages inside it
	cargo build --release --locked --bin meridian
	@echo "built $(TARGET)/release/meridian"

# The pages are rebuilt when a source or a dependency changed, so that a second `make build` is quick.
WEB_SOURCES := $(shell find web/src web/scripts data/natural-earth -type f 2>/dev/null) web/package.json web/tsconfig.json

web: web/dist/.built

web/node_modules/.installed: web/package-lock.json
	cd web && npm ci --no-audit --no-fund
	@touch $@

web/dist/.built: web/node_modules/.installed $(WEB_SOURCES)
	cd web && npm run build
	@touch $@

demo: build ## Load real data into ./demo-data and serve it; PORT= and DATA= override
	@MERIDIAN=$(TARGET)/release/meridian PORT=$(PORT) DATA=$(DATA) scripts/demo.sh

clean-demo: ## Forget the demo's data
	rm -rf $(DATA)

test: ## Every test that must pass before a change lands; installs what it needs
	@scripts/test.sh

chaos: ## Kill a server that is being written to, again and again, for FOR seconds
	MERIDIAN_CHAOS_SECONDS=$(FOR) cargo test -p meridian-cli --test crash -- --nocapture

soak: ## Write, delete, page and count at once, with little memory, for FOR seconds
	MERIDIAN_SOAK_SECONDS=$(FOR) cargo test -p meridian-cli --test soak -- --nocapture

bench: build ## The side-by-side comparisons; writes bench/RESULTS.md
	@$(MAKE) --no-print-directory bench-near

bench-peers: ## Installs the peers of the benches from Debian's packages
	@scripts/need.sh redis-server=redis-server redis-cli=redis-tools nginx=nginx-light zstd=zstd
	@scripts/need.sh pg_lsclusters=postgresql
	@scripts/need.sh /usr/share/postgresql/15/extension/postgis.control=postgresql-15-postgis-3

bench-%: build ## One of the comparisons, such as bench-near
	cargo build --release --locked -p bench-driver
	python3 bench/$*/run.py
	python3 bench/report.py
