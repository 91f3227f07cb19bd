#!/usr/bin/env bash
# Follows pages of the documentation as a reader would, with the program that `cargo test` built: docs_test.sh [--all] [PAGE...].
# `--all` takes QGIS as well; DOCS_PICTURES=FOLDER keeps the pictures that the commands make.
set -euo pipefail
source "$(dirname "$0")/program.sh"

pages=(README.md docs/{tutorial,query,aggregate,load,collections,files,duckdb,gdal,serve,access,backup,cluster,simulate}.md)
all=no
if [[ ${1:-} == --all ]]; then
    all=yes
    shift
    pages+=(docs/qgis.md)
fi
(($# == 0)) || pages=("$@")

scripts/need.sh ogr2ogr=gdal-bin curl=curl zstd=zstd openssl=openssl
[[ $all == no ]] || scripts/need.sh /usr/lib/python3/dist-packages/qgis/core/__init__.py=python3-qgis
python_tools docs pyarrow==26.0.1 duckdb==1.5.5 duckdb-cli==1.5.5 duckdb-extension-spatial==1.5.5 urllib3==2.8.0 pandas==3.1.1 \
    geopandas==1.2.0

# What `INSTALL spatial` finds in a reader's home: DuckDB's extension for this version, from PyPI.
extension=$(find "$tools" -name spatial.duckdb_extension | head -n 1)
version=$(basename "$(dirname "$extension")")
mkdir -p "$folder/home/.duckdb/extensions/$version/linux_amd64"
ln -s "$extension" "$folder/home/.duckdb/extensions/$version/linux_amd64/"
export DOCS_HOME=$folder/home PYTHONPATH=$PWD/clients/python/src QT_QPA_PLATFORM=offscreen

for page in "${pages[@]}"; do
    # PyQGIS is Debian's, for Debian's Python.
    interpreter=$([[ $page == docs/qgis.md ]] && echo /usr/bin/python3 || echo "$tools/bin/python")
    DOCS_PYTHON=$interpreter PATH=$tools/bin:$PATH python3 tests/docs/run.py "$meridian" "$page"
done
