#!/usr/bin/env bash
# Every test that must pass before a change lands: `make test`. With `--all` the long suites as well: `make test-all`. One Cargo profile
# builds the workspace once; the end-to-end tests drive that very binary. The suites stand in scripts/suites.py.
set -euo pipefail
cd "$(dirname "$0")/.."

echo "== what the tests need"
scripts/need.sh ogr2ogr=gdal-bin wrk=wrk chromium=chromium curl=curl /usr/share/doc/python3-venv=python3-venv
scripts/need.sh pg_lsclusters=postgresql nginx=nginx-light nats-server=nats-server redis-server=redis-server
make --no-print-directory web
exec python3 scripts/suites.py "$@"
