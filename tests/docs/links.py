"""Links of every page: relative ones and their anchors exist, and the book has every page of docs/.

usage: links.py [BOOK]   with BOOK, a folder that mdBook has written, its links are checked as well
"""

import html.parser
import pathlib
import re
import sys
import urllib.parse

from blocks import prose

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = {"node_modules", "target", "dist", ".git", "demo-data", "book", ".venv"}
LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\[\]]*\])*\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)")


def pages():
    return sorted(p for p in ROOT.rglob("*.md") if not SKIPPED & set(p.relative_to(ROOT).parts))


def anchors(text):
    """The anchors of the headings, as GitHub and mdBook make them."""
    counts, found = {}, set()
    for heading in re.findall(r"^#{1,6} +(.*?)(?: +#+)?$", re.sub(r"^(`{3,}).*?^\1\s*$", "", text, flags=re.M | re.S), re.M):
        plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        found.add(name if name not in counts else f"{name}-{counts[name]}")
        counts[name] = counts.get(name, 0) + 1
    return found | set(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", text))


def check(texts):
    """What is wrong with the links of the pages, a sentence each; and how many were followed."""
    followed = 0
    for path, text in texts.items():
        for target in LINK.findall(prose(text)):
            if re.match(r"[a-z][a-z0-9+.-]*:|//", target):
                continue
            followed += 1
            name, _, anchor = urllib.parse.unquote(target).partition("#")
            where = (path.parent / name).resolve() if name else path
            said = f"{path.relative_to(ROOT)}: {target}"
            if not where.exists():
                yield f"{said}: there is no such file"
            elif anchor and where.suffix == ".md" and anchor not in anchors(texts.get(where) or where.read_text()):
                yield f"{said}: the page has no such heading"
    if followed < 300:
        yield f"only {followed} links were found"


def summary(texts):
    """Every page of docs/ is in the book, once."""
    listed = [(ROOT / "docs" / target).resolve() for target in LINK.findall(texts[ROOT / "docs" / "SUMMARY.md"])]
    for path in sorted(set(listed)):
        if listed.count(path) > 1:
            yield f"docs/SUMMARY.md: {path.relative_to(ROOT)} is there {listed.count(path)} times"
    for path in texts:
        if path.is_relative_to(ROOT / "docs") and path.name != "SUMMARY.md" and path not in listed:
            yield f"docs/SUMMARY.md: {path.relative_to(ROOT / 'docs')} is missing: it needs a line there"


class Page(html.parser.HTMLParser):
    """The ids and the links of a page."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        names = dict(attributes)
        self.ids.update(names[key] for key in ("id", "name") if names.get(key))
        self.links += [names[key] for key in ("href", "src") if names.get(key)]


def book(folder):
    """The pages that mdBook wrote: links lead to a file of the book, or away from it."""
    read = {path.resolve(): Page(path.read_text()) for path in folder.rglob("*.html") if path.name not in ("print.html", "404.html", "toc.html")}
    for path, page in read.items():
        for target in page.links:
            if re.match(r"[a-z][a-z0-9+.-]*:|//", target):
                continue
            name, _, anchor = urllib.parse.unquote(target).partition("#")
            where = (path.parent / name).resolve() if name else path
            said = f"{path.relative_to(folder)}: {target}"
            if not where.exists():
                yield f"{said}: the book has no such file"
            elif anchor and where in read and anchor not in read[where].ids:
                yield f"{said}: the page has no such heading"
    if len(read) < 60:
        yield f"the book has {len(read)} pages"


def main():
    texts = {path: path.read_text() for path in pages()}
    problems = [*check(texts), *summary(texts), *(book(pathlib.Path(sys.argv[1]).resolve()) if len(sys.argv) > 1 else [])]
    if problems:
        sys.exit("\n".join(problems))
    print(f"links: {len(texts)} pages")


main()
