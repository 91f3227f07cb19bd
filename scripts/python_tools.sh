# Sourced: python_tools NAME PACKAGE... sets tools to a Python environment with these packages, taken from PyPI once, into the target folder.
python_tools() {
    tools=$(realpath -m "${CARGO_TARGET_DIR:-target}/tools/$1")
    shift
    if [[ ! -f $tools/wanted || $(cat "$tools/wanted") != "$*" ]]; then
        rm -rf "$tools"
        python3 -m venv "$tools"
        "$tools/bin/pip" install --quiet --disable-pip-version-check "$@"
        echo "$*" > "$tools/wanted"
    fi
}
