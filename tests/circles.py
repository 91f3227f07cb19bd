"""Finds sibling modules of a crate that import one another in a circle, directly or by others.

A circle ties its modules into one: none of them can be read, tested or moved without the rest. Siblings are the modules
at the top of a crate, and those inside one folder. An import of a deeper module counts for the sibling that holds it,
and a name that a parent passes on (`pub use`) counts for the module that defines it. A parent and its children may name
one another. Tests are left out.
"""

import collections
import pathlib
import re
import sys

CRATES = pathlib.Path(__file__).resolve().parent.parent / "crates"

# Circles inside one idea, each with the reason why its modules are not two. All others are refused.
KNOWN = {
    "admission/identity: registry, sessions": "the registry holds the sessions, and their records are read by its state",
    "cli/commands/serve: cluster, http": "a role serves clients, and the tasks of that role run while clients are served",
    "model/filter: any, bind, predicate, wire": "a predicate is a tree whose nodes hold predicates, bound from a text and written as one",
}

PATH = re.compile(r"(?<![\w$:])(?:crate|self|super)::(?:\w+::)*(?:\{|\w+|\*)")
PASSED_ON = re.compile(r"\bpub(?:\([^)]*\))? use ([^;]+);")
BRANCH = re.compile(r"[\s,]*((?:\w+::)*)(\w+|\*|\{)(?: as \w+)?")
# Comments, and literals of strings and letters.
QUIET = re.compile(r"""//[^\n]*|\br(#*)".*?"\1|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])'""", re.DOTALL)
TEST = re.compile(
    r"#\[cfg\((?:test|all\(test\b[^\]]*)\)\]\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\([^)]*\))? )?(?:mod|use|fn|impl)\b[^;{]*"
)


def modules(crate):
    """The text of each module of a crate without tests, by the names on its path."""
    found = {}
    for path in sorted((crate / "src").rglob("*.rs")):
        parts = path.relative_to(crate / "src").with_suffix("").parts
        if "tests" not in parts:
            text = QUIET.sub(" ", path.read_text())
            while test := TEST.search(text):
                text = text[: test.start()] + text[closed(text, test.end()) :]
            found[parts[:-1] if parts[-1] in ("lib", "main", "mod") else parts] = text
    return found


def closed(text, start):
    """The end of what begins at `start`: behind the closing brace, or behind any other letter."""
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] == "{") - (text[at] == "}")
        if depth == 0:
            return at + 1
    return len(text)


def branches(tree):
    """The paths in a use tree, each as a list of names."""
    at = 0
    while branch := BRANCH.match(tree, at):
        names, at = branch[1].split("::")[:-1], branch.end()
        if branch[2] == "{":
            at = closed(tree, at - 1)
            yield from (names + inner for inner in branches(tree[branch.end() : at - 1]))
        else:
            yield names + [branch[2]]


def paths(text):
    """The paths in a text that begin with `crate`, `self` or `super`."""
    for path in PATH.finditer(text):
        end = closed(text, path.end() - 1) if path[0].endswith("{") else path.end()
        yield from branches(text[path.start() : end])


def passed_on(texts):
    """The child that defines a name, by the parent that passes it on and the name."""
    found = {}
    for module, text in texts.items():
        for tree in PASSED_ON.findall(text):
            for path in branches(tree):
                child = resolved(module, path, texts, {})
                if child[: len(module)] == module != child:
                    found[module, path[-1]] = child
    return found


def resolved(module, path, texts, passed):
    """The deepest module on a path that is read in a module."""
    at = () if path[0] == "crate" else module
    for name in path:
        if name == "super":
            at = at[:-1]
        elif name not in ("crate", "self"):
            below = at + (name,) if at + (name,) in texts else passed.get((at, name))
            if below is None:
                break
            at = below
    return at


def imports(crate):
    """For each folder of modules the siblings that name one another."""
    texts = modules(crate)
    passed = passed_on(texts)
    found = collections.defaultdict(lambda: collections.defaultdict(set))
    for module, text in texts.items():
        for path in paths(text):
            other = resolved(module, path, texts, passed)
            depth = next((at for at, (a, b) in enumerate(zip(module, other)) if a != b), None)
            if depth is not None:
                found[module[:depth]][module[depth]].add(other[depth])
    return found


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
    found = [
        f"{'/'.join((crate.name, *folder))}: {', '.join(sorted(circle))}"
        for crate in sorted(CRATES.iterdir())
        for folder, graph in imports(crate).items()
        for circle in circles(graph)
    ]
    wrong = [f"modules import one another in a circle: {circle}" for circle in found if circle not in KNOWN]
    wrong += [f"this circle is gone, so KNOWN must not list it: {circle}" for circle in KNOWN if circle not in found]
    print("\n".join(wrong) if wrong else f"no circles of modules, but for {len(KNOWN)} inside one idea")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
