"""Finds modules of a crate that import one another in a circle, directly or by others.

A circle ties its modules into one: none of them can be read, tested or moved without the rest. Modules are those at the top of a crate; tests are left out.
"""

import collections
import pathlib
import re
import sys

CRATES = pathlib.Path(__file__).resolve().parent.parent / "crates"


def imports(crate):
    """For each top module of a crate the top modules that it names by `crate::`."""
    source = crate / "src"
    modules = {path.stem for path in source.iterdir()} - {"lib", "main"}
    found = collections.defaultdict(set)
    for path in source.rglob("*.rs"):
        parts = path.relative_to(source).parts
        module = parts[0].removesuffix(".rs")
        if module in ("lib", "main") or "tests" in parts or path.name == "tests.rs":
            continue
        text = re.split(r"#\[cfg\(test\)\]\s*mod tests \{", path.read_text())[0]
        text = re.sub(r"//[^\n]*", "", text)
        for named in re.findall(r"(?<![\w$])crate::(\{[^;]*\}|\w+)", text):
            heads = re.findall(r"(?:^\{|,)\s*(\w+)", flat(named)) if named.startswith("{") else [named]
            found[module] |= modules.intersection(heads) - {module}
    return found


def flat(tree):
    """A use tree without what is nested in it."""
    kept, depth = "", 0
    for letter in tree:
        depth += letter == "{"
        if depth < 2:
            kept += letter
        depth -= letter == "}"
    return kept


def circles(graph):
    """Sets of modules that reach one another."""
    def reached(start):
        seen, open_ = set(), [start]
        while open_:
            for other in graph.get(open_.pop(), ()):
                if other not in seen:
                    seen.add(other)
                    open_.append(other)
        return seen

    reach = {module: reached(module) for module in graph}
    return {frozenset(other for other in reach[module] if module in reach.get(other, ())) for module in graph if module in reach[module]}


def main():
    wrong = []
    for crate in sorted(CRATES.iterdir()):
        for found in circles(imports(crate)):
            wrong.append(f"crates/{crate.name}: modules import one another in a circle: {', '.join(sorted(found))}")
    print("\n".join(wrong) if wrong else "no modules import one another in a circle")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
