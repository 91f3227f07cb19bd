"""A preprocessor of mdBook, for links that are right in the repository. Links to files outside of the book become their
paths. Links to a README.md lead to the page that mdBook makes of it, which is called index."""

import json
import posixpath
import re
import sys

LINK = re.compile(r"(?<!!)\[([^\[\]]*)\]\(([^)\s:]+)\)")


def renamed(content, folder):
    def link(found):
        text, target = found.groups()
        path = posixpath.normpath(posixpath.join("docs", folder, target.partition("#")[0]))
        if not path.startswith("docs"):
            return f"{text} (`{path}` in the project)"
        target = re.sub(r"README\.md(?=#|$)", "index.md", target)
        return f"[{text}]({target})"

    return LINK.sub(link, content)


def walk(items):
    for item in items:
        if isinstance(item, dict) and (chapter := item.get("Chapter")):
            if chapter.get("path"):
                chapter["content"] = renamed(chapter["content"], posixpath.dirname(chapter["path"]))
            walk(chapter["sub_items"])


if sys.argv[1:2] == ["supports"]:
    sys.exit(0)
_, book = json.load(sys.stdin)
# Versions of mdBook before 0.5 call them sections.
walk(book.get("items") or book.get("sections"))
json.dump(book, sys.stdout)
