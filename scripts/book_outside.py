"""A preprocessor of mdBook: links to files of the project that are not in the book become their paths."""

import json
import posixpath
import re
import sys

LINK = re.compile(r"(?<!!)\[([^\[\]]*)\]\(([^)\s:]+)\)")


def inside(content, folder):
    def named(link):
        path = posixpath.normpath(posixpath.join("docs", folder, link[2].partition("#")[0]))
        return link[0] if path.startswith("docs") else f"{link[1]} (`{path}` in the project)"

    return LINK.sub(named, content)


def walk(items):
    for item in items:
        if isinstance(item, dict) and (chapter := item.get("Chapter")):
            if chapter.get("path"):
                chapter["content"] = inside(chapter["content"], posixpath.dirname(chapter["path"]))
            walk(chapter["sub_items"])


if sys.argv[1:2] == ["supports"]:
    sys.exit(0)
_, book = json.load(sys.stdin)
# Versions of mdBook before 0.5 call them sections.
walk(book.get("items") or book.get("sections"))
json.dump(book, sys.stdout)
