"""The sources that searches ask: what `meridian lab mock` serves, and how Meridian is told of each.

Set A follows the published isolated run: 25 sources, 14 of which take the question. The first result comes after 2.5 s.
Of 93 packets a tenth has arrived after 4.0 s, nine tenths after 7.8 s, the last after 21.9 s. First and last have the
published standard deviations. Set B is 25 fast sources.
"""

from typing import NamedTuple

SEED = 1
A_PACKETS = 93
A_CALLS = 17
A_ITEM_BYTES = 9_000
B_SOURCES = 25
B_ITEMS = 2
B_ITEM_BYTES = 500


class Kind(NamedTuple):
    """Sources that are alike; each answers under a path of its own, `/NAME/1` and so on."""

    name: str
    delay: str = ""
    count: int = 1
    items: int = 1
    pages: int = 1
    item_bytes: int = A_ITEM_BYTES
    more: str = ""


def lognormal(median_ms, sigma):
    return f'{{ kind = "lognormal", median_ms = {median_ms:g}, sigma = {sigma} }}'


def fixed(ms):
    return f'{{ kind = "fixed", ms = {ms:g} }}'


def set_a(time=1.0, item_bytes=A_ITEM_BYTES):
    """The 14 that take the question, at `time` times the published times: 93 items, each of which fills a packet of `packet_bytes`."""
    kinds = [Kind("first", lognormal(2_470 * time, 0.105), 1, 7), Kind("early", lognormal(4_500 * time, 0.1), 5, 7), Kind("middle", lognormal(5_800 * time, 0.1), 5, 7),
            Kind("late", lognormal(8_000 * time, 0.05), 2, 6), Kind("slow", lognormal(5_300 * time, 0.24), 1, 1, 4)]
    return [kind._replace(item_bytes=item_bytes) for kind in kinds]


def packet_bytes(item_bytes):
    """The setting with which an item fills a packet: what stands around its text is some hundred bytes."""
    return {"search.packet_bytes": f"{item_bytes + 1_240} B"}


def set_b():
    """25 sources of 5 to 50 ms."""
    steps = [5 + 45 * n / (B_SOURCES - 1) for n in range(B_SOURCES)]
    return [Kind(f"fast{n}", fixed(ms), items=B_ITEMS, item_bytes=B_ITEM_BYTES) for n, ms in enumerate(steps)]


def mock_file(kinds, truth=False):
    """What `lab mock` reads; with `truth` the same answers at once and without faults."""
    text = f"seed = {SEED}\n"
    for kind in kinds:
        text += f'[[source]]\nname = "{kind.name}"\nitems = {kind.items}\npages = {kind.pages}\nitem_bytes = {kind.item_bytes}\n'
        text += "" if truth else (f"delay = {kind.delay}\n" if kind.delay else "") + kind.more
    return text


PROVIDER = """
name = "{name}"
title = "A source of bench-searches"
[takes]
keywords = "all"
needs = [{needs}]
[request]
url = "http://{address}/{path}"
[request.query]
q = "{{words}}"
[paging]
kind = "link"
path = "next"
[answer]
format = "json"
items = "items"
sure_of = ["keywords"]
[answer.map]
id = "id"
text = "text"
lon = "lon"
lat = "lat"
[limits]
at_once = 10000
allow_private = true
{limits}
"""


def names(kinds):
    """The providers' names."""
    return [f"{kind.name}-{n}" for kind in kinds for n in range(1, kind.count + 1)]


def declarations(kinds, address, declines=0, limits=""):
    """A declaration for each source, and some for sources that want a place as well and so do not take a question of words."""
    made = {name: PROVIDER.format(name=name, path=name.replace("-", "/"), address=address, needs='"keywords"', limits=limits) for name in names(kinds)}
    for n in range(1, declines + 1):
        name = f"declines-{n}"
        made[name] = PROVIDER.format(name=name, path=name.replace("-", "/"), address=address, needs='"keywords", "place"', limits=limits)
    return made
