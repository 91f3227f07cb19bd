"""Code blocks of a page in Markdown: fenced ones with the words after the fence, and indented ones."""

import re
from dataclasses import dataclass


@dataclass
class Block:
    """One block of code. `words` are those after the fence, such as `sh fails`; `line` counts from 1."""

    words: list[str]
    text: str
    line: int


def blocks(page):
    """The blocks of a page in their order; an indented one has no words."""
    found, held, fence, start, words = [], [], None, 0, []
    for number, line in enumerate([*page.split("\n"), ""], 1):
        if fence:
            if line.strip() == fence:
                found.append(Block(words, "\n".join(held) + "\n", start))
                fence, held = None, []
            else:
                held.append(line)
        elif opened := re.match(r"(`{3,}|~{3,})(.*)", line):
            fence, words, start = opened[1], opened[2].split(), number + 1
        elif line.startswith("    ") or (held and not line.strip()):
            held or (start := number)
            held.append(line[4:])
        elif held:
            found.append(Block([], "\n".join(held).rstrip("\n") + "\n", start))
            held = []
    if fence:
        raise ValueError(f"line {start}: the block is not closed")
    return found


def prose(page):
    """The page without its code."""
    page = re.sub(r"^(`{3,}|~{3,}).*?^\1\s*$", "", page, flags=re.M | re.S)
    page = re.sub(r"(?:^\n|\A)(?: {4,}.*\n)+", "\n", page, flags=re.M)
    return re.sub(r"`[^`\n]*`", "``", page)
