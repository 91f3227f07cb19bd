# Sourced: python_tools NAME PACKAGE... sets tools to a Python environment with these packages, taken from PyPI once, into the target folder.
python_tools() {
    tools=$(realpath -m "${CARGO_TARGET_DIR:-target}/tools/$1")
    shift
    # Suites that run side by side share an environment.
    exec 8< scripts/python_tools.sh
    flock 8
    if [[ ! -f $tools/wanted || $(cat "$tools/wanted") != "$*" ]]; then
        rm -rf "$tools"
        python3 -m venv "$tools"
        "$tools/bin/pip" install --quiet --disable-pip-version-check "$@"
        echo "$*" > "$tools/wanted"
    fi
    exec 8>&-
}
