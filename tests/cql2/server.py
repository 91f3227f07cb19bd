"""The server under test: questions to it, and what it got wrong."""

import json
import sys
import urllib.error
import urllib.parse
import urllib.request

URL = sys.argv[1]
asked, wrong, tested = 0, [], set()


def call(method, path, body=None, kind="application/json"):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(URL + path, data, {"Content-Type": kind}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def ids(source, predicate):
    """Ids of the features that match; what cannot be evaluated is a failure of the test."""
    global asked
    asked += 1
    query = urllib.parse.urlencode({"limit": 10000, "properties": "id", "filter": predicate})
    status, answer = call("GET", f"/collections/{source}/items?{query}")
    if status != 200:
        wrong.append(f"{source}: {predicate}: {status} {answer.get('detail')}")
        return set()
    return {feature["id"] for feature in answer["features"]}


def check(held, says):
    if not held:
        wrong.append(says)


def expect(source, predicate, expected):
    """The features are those, or that many."""
    found = ids(source, predicate)
    count = isinstance(expected, int)
    same = len(found) == expected if count else found == expected
    check(same, f"{source}: {predicate}: {len(found)} features, expected {expected if count else len(expected)}")


def refused(source, predicate):
    global asked
    asked += 1
    query = urllib.parse.urlencode({"filter": predicate})
    status, _ = call("GET", f"/collections/{source}/items?{query}")
    check(status == 400, f"{source}: {predicate}: {status}, expected 400")
