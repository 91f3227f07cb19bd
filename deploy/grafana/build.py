"""Writes the dashboards of this folder: build.py [--check].

A dashboard is rows of panels, and a panel is a title, a unit and queries. Layout, ids and colours come from here, so that all panels
are alike. With --check nothing is written, and a file that differs is named.
"""

import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
# Columns of Grafana's grid, and the height of a panel in its cells.
COLUMNS, HEIGHT = 24, 8
PROMETHEUS = {"type": "prometheus", "uid": "${datasource}"}
INFINITY = {"type": "yesoreyeram-infinity-datasource", "uid": "${datasource}"}
# The series of the servers that the variables pick.
JOB = 'job=~"$job",instance=~"$instance"'


def rate(name, labels="", by="instance"):
    """Events a second of a counter, for each value of `by`."""
    more = f",{labels}" if labels else ""
    return f"sum by ({by}) (rate({name}{{{JOB}{more}}}[$__rate_interval]))"


def of(name, by="instance"):
    """A gauge, for each value of `by`."""
    return f"sum by ({by}) ({name}{{{JOB}}})"


def panel(title, unit, *targets, about="", kind="timeseries", stack=False, max=None):
    """A panel of pairs of a legend and a PromQL expression."""
    custom = {"lineWidth": 1, "fillOpacity": 25 if stack else 5, "showPoints": "never"}
    if stack:
        custom["stacking"] = {"mode": "normal", "group": "A"}
    defaults = {"unit": unit, "min": 0, "color": {"mode": "palette-classic"}}
    if kind == "timeseries":
        defaults["custom"] = custom
    if max is not None:
        defaults["max"] = max
    options = {
        "timeseries": {"legend": {"displayMode": "list", "placement": "bottom", "showLegend": True}, "tooltip": {"mode": "multi", "sort": "desc"}},
        "stat": {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}, "colorMode": "value", "graphMode": "area"},
    }[kind]
    return {
        "type": kind,
        "title": title,
        "description": about,
        "datasource": PROMETHEUS,
        "targets": [
            {"refId": chr(ord("A") + n), "datasource": PROMETHEUS, "expr": expr, "legendFormat": legend} for n, (legend, expr) in enumerate(targets)
        ],
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": options,
    }


def laid(rows):
    """Panels with ids and places: a row's panels share its width."""
    out, y = [], 0
    for title, panels in rows:
        out.append({"type": "row", "title": title, "collapsed": False, "panels": [], "gridPos": {"x": 0, "y": y, "w": COLUMNS, "h": 1}})
        y += 1
        for start in range(0, len(panels), 4):
            line = panels[start : start + 4]
            width = COLUMNS // len(line)
            for n, one in enumerate(line):
                out.append(one | {"gridPos": {"x": n * width, "y": y, "w": width, "h": HEIGHT}})
            y += HEIGHT
    return [{"id": n} | one for n, one in enumerate(out, 1)]


def picked(name, label, query):
    return {
        "type": "query",
        "name": name,
        "label": label,
        "datasource": PROMETHEUS,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "includeAll": True,
        "multi": True,
        "current": {"text": ["All"], "value": ["$__all"]},
    }


def source(kind):
    return {"type": "datasource", "name": "datasource", "label": "Source", "query": kind, "refresh": 1}


def typed(name, label, value):
    """A variable that the reader types."""
    option = {"text": value, "value": value}
    return {"type": "textbox", "name": name, "label": label, "query": value, "current": option, "options": [option | {"selected": True}]}


def dashboard(uid, title, about, rows, variables, tags, since="now-1h", refresh="10s"):
    return {
        "uid": uid,
        "title": title,
        "description": about,
        "tags": ["meridian", *tags],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "timezone": "browser",
        "time": {"from": since, "to": "now"},
        "refresh": refresh,
        "templating": {"list": variables},
        "annotations": {"list": []},
        "links": [],
        "panels": laid(rows),
    }


SERVERS = [
    source("prometheus"),
    picked("job", "Job", "label_values(meridian_connections_open, job)"),
    picked("instance", "Server", 'label_values(meridian_connections_open{job=~"$job"}, instance)'),
]
DURATION = "http_server_request_duration_seconds"


def quantile(q, by):
    return f"histogram_quantile({q}, sum by (le, {by}) (rate({DURATION}_bucket{{{JOB}}}[$__rate_interval])))"


OPERATION = dashboard(
    "meridian-operation",
    "Meridian: operation",
    "What clients feel, which requests are refused and why, where memory and disk go.",
    [
        (
            "Requests",
            [
                panel("Requests by status", "reqps", ("{{http_response_status_code}}", rate(f"{DURATION}_count", by="http_response_status_code")), stack=True),
                panel("Time to the head of the answer", "s", *((f"p{round(q * 100)}", f"max({quantile(q, 'instance')})") for q in (0.5, 0.95, 0.99))),
                panel("p95 by route", "s", ("{{http_route}}", quantile(0.95, "http_route"))),
                panel(
                    "Refused",
                    "reqps",
                    ("no slot: {{reason}}", rate("meridian_slot_refused_total", by="reason")),
                    ("quota: {{quota}}", rate("meridian_quota_refused_total", by="quota")),
                    ("memory of queries", rate("meridian_query_memory_refused_total", by="job")),
                    stack=True,
                    about="Refused requests get 429 (a tenant's or a collection's own limit) or 503 (the server's), with Retry-After.",
                ),
            ],
        ),
        (
            "Admission",
            [
                panel(
                    "Running, paused, away, waiting",
                    "short",
                    ("running", of("meridian_requests_running", "job")),
                    ("paused", of("meridian_requests_paused", "job")),
                    ("away", of("meridian_requests_away", "job")),
                    ("waiting", of("meridian_requests_waiting", "job")),
                    ("slots", of("meridian_requests_slots", "job")),
                ),
                panel("Processors used, by tenant", "short", ("{{tenant}}", rate("meridian_tenant_processor_seconds_total", by="tenant")), stack=True),
                panel("Waiting, by tenant", "short", ("{{tenant}}", of("meridian_tenant_requests_waiting", "tenant")), stack=True),
                panel(
                    "Connections and streams",
                    "short",
                    ("connections", of("meridian_connections_open", "job")),
                    ("streams", of("meridian_streams_open", "job")),
                    ("answers that wait for their reader", of("meridian_answers_resting", "job")),
                ),
            ],
        ),
        (
            "Memory",
            [
                panel(
                    "Memory by purpose",
                    "bytes",
                    ("bodies of requests", of("meridian_request_body_bytes", "job")),
                    ("answers", of("meridian_answer_bytes", "job")),
                    ("queries", of("meridian_query_bytes", "job")),
                    ("events not flushed", of("meridian_memory_bytes", "job")),
                    ("packets of searches", of("meridian_search_packet_bytes", "job")),
                    ("saved searches", of("meridian_saved_packet_bytes", "job")),
                    stack=True,
                ),
                panel(
                    "Clients let go",
                    "cps",
                    ("left", rate("meridian_clients_gone_total", by="job")),
                    ("read too slowly", rate("meridian_readers_slow_total", by="job")),
                    ("gave way to others", rate("meridian_readers_gave_way_total", by="job")),
                    ("answers broken off", rate("meridian_streams_broken_total", by="job")),
                ),
                panel(
                    "Blocks found in the cache",
                    "percentunit",
                    ("{{instance}}", f"{rate('meridian_cache_hits_total')} / ({rate('meridian_cache_hits_total')} + {rate('meridian_cache_misses_total')})"),
                    max=1,
                ),
            ],
        ),
        (
            "Store",
            [
                panel("Events", "short", ("{{instance}}", of("meridian_events"))),
                panel("Bytes on disk", "bytes", ("segments", of("meridian_segment_bytes", "job")), ("log to replay", of("meridian_log_tail_bytes", "job"))),
                panel(
                    "Written",
                    "Bps",
                    ("taken", rate("meridian_bytes_taken_total", by="job")),
                    ("log", rate("meridian_log_bytes_total", by="job")),
                    ("flushes", rate("meridian_flush_bytes_total", by="job")),
                    ("merges", rate("meridian_merge_bytes_total", by="job")),
                ),
                panel("Syncs and groups of the log", "cps", ("syncs", rate("meridian_log_syncs_total", by="job")), ("groups", rate("meridian_commit_groups_total", by="job"))),
                panel(
                    "Needs an operator",
                    "short",
                    ("damaged collections", of("meridian_collections_damaged", "job")),
                    ("collections that refuse writes", of("meridian_collections_refusing_writes", "job")),
                    about="Above 0: `meridian check` names the cause.",
                ),
                panel("Depth of the segments", "short", ("{{instance}}", of("meridian_depth")), ("bound of {{instance}}", of("meridian_depth_bound"))),
            ],
        ),
        (
            "Searches and saved searches",
            [
                panel("Searches", "short", ("running", of("meridian_searches_running", "job"))),
                panel("Oldest queued work waits", "s", ("{{instance}}", of("meridian_search_delay_seconds"))),
                panel(
                    "Saved searches",
                    "cps",
                    ("events", rate("meridian_saved_events_total", by="job")),
                    ("matches", rate("meridian_saved_matches_total", by="job")),
                    ("events dropped", rate("meridian_saved_events_dropped_total", by="job")),
                ),
                panel("Webhooks", "cps", ("delivered", rate("meridian_saved_webhook_packets_total", by="job")), ("failed", rate("meridian_saved_webhook_failures_total", by="job"))),
            ],
        ),
    ],
    SERVERS,
    ["operation"],
)

CLUSTER = dashboard(
    "meridian-cluster",
    "Meridian: cluster",
    "Eventual reads over scan servers: busy answers, fallbacks, what is found in caches. Gateways, owners and scan servers by instance.",
    [
        (
            "Gateways",
            [
                panel("Scan servers known", "short", ("{{instance}}", of("meridian_scan_servers"))),
                panel("Eventual reads, by partition", "ops", ("reads", rate("meridian_scans_total", by="job")), ("attempts", rate("meridian_scan_attempts_total", by="job"))),
                panel(
                    "Why a read was asked again",
                    "ops",
                    ("busy", rate("meridian_scan_busy_total", by="job")),
                    ("failed", rate("meridian_scan_failures_total", by="job")),
                    ("hedge", rate("meridian_scan_hedges_total", by="job")),
                ),
                panel(
                    "Not answered by scan servers",
                    "ops",
                    ("fell back to the owner", rate("meridian_scan_fallbacks_total", by="job")),
                    ("refused", rate("meridian_scan_refusals_total", by="job")),
                ),
            ],
        ),
        (
            "Scan servers",
            [
                panel(
                    "Questions",
                    "short",
                    ("work: {{instance}}", of("meridian_scan_turns_working")),
                    ("wait: {{instance}}", of("meridian_scan_turns_waiting")),
                ),
                panel("Share answered busy", "percentunit", ("{{instance}}", f"{rate('meridian_scan_turns_busy_total')} / {rate('meridian_scan_turns_total')}"), max=1),
                panel(
                    "Extents found in memory",
                    "percentunit",
                    (
                        "{{instance}}",
                        f"{rate('meridian_extent_memory_hits_total')} / ({rate('meridian_extent_memory_hits_total')} + {rate('meridian_extent_memory_misses_total')})",
                    ),
                    max=1,
                ),
                panel("Read from the bucket", "Bps", ("{{instance}}", rate("meridian_bucket_read_bytes_total"))),
                panel("Extents held", "bytes", ("memory: {{instance}}", of("meridian_extent_memory_bytes")), ("disk: {{instance}}", of("meridian_extent_disk_bytes"))),
                panel("Trees held", "bytes", ("{{instance}}", of("meridian_trees_bytes"))),
                panel("Trees loaded and evicted", "ops", ("loaded", rate("meridian_trees_loaded_total", by="job")), ("evicted", rate("meridian_trees_evicted_total", by="job"))),
                panel("Damaged extents", "ops", ("{{instance}}", rate("meridian_extent_damaged_total")), about="They are read from the bucket again."),
            ],
        ),
    ],
    SERVERS,
    ["cluster"],
)


def asked(title, path, parameters, columns, kind, root="", options=None, unit="short"):
    """A panel of the API's JSON, through the Infinity data source."""
    target = {
        "refId": "A",
        "datasource": INFINITY,
        "type": "json",
        "source": "url",
        "format": "table",
        "parser": "backend",
        "url": path,
        "url_options": {"method": "GET", "params": [{"key": key, "value": value} for key, value in parameters.items()]},
        "root_selector": root,
        "columns": [{"selector": selector, "text": text, "type": type_} for selector, text, type_ in columns],
    }
    return {
        "type": kind,
        "title": title,
        "datasource": INFINITY,
        "targets": [target],
        "fieldConfig": {"defaults": {"unit": unit, "color": {"mode": "palette-classic"}}, "overrides": []},
        "options": options or {},
    }


WHEN = {"datetime": "${__from:date:iso}/${__to:date:iso}", "filter": "${filter}"}
EVENTS = dashboard(
    "meridian-events",
    "Meridian: events",
    "A collection on a map and over time, read from the API. Needs the data source Infinity, with the server's address and a reader's token.",
    [
        (
            "${collection}",
            [
                asked(
                    "Where",
                    "/collections/${collection}/items",
                    WHEN | {"f": "json", "limit": "1000"},
                    [("geometry.coordinates.0", "longitude", "number"), ("geometry.coordinates.1", "latitude", "number"), ("id", "id", "string"), ("properties.${field}", "${field}", "number")],
                    "geomap",
                    root="features",
                    options={
                        "view": {"id": "fit", "lat": 0, "lon": 0, "zoom": 1, "allLayers": True},
                        "basemap": {"type": "default", "name": "Base map"},
                        "layers": [
                            {
                                "type": "markers",
                                "name": "Events",
                                "location": {"mode": "coords", "latitude": "latitude", "longitude": "longitude"},
                                "config": {"style": {"size": {"fixed": 4}, "color": {"field": "${field}", "fixed": "dark-green"}, "opacity": 0.6}},
                            }
                        ],
                    },
                ),
                asked(
                    "How many a window",
                    "/collections/${collection}/aggregate",
                    WHEN | {"function": "count", "window": "${window}"},
                    [("start", "time", "timestamp"), ("count", "count", "number")],
                    "timeseries",
                    # JSONata: a window is its start and end in one text.
                    root="groups.{'start': $substringBefore(window, '/'), 'count': count}",
                ),
                asked(
                    "${field} a window",
                    "/collections/${collection}/aggregate",
                    WHEN | {"function": "avg(${field}),max(${field})", "window": "${window}"},
                    [("start", "time", "timestamp"), ("avg", "avg", "number"), ("max", "max", "number")],
                    "timeseries",
                    root="groups.{'start': $substringBefore(window, '/'), 'avg': $lookup($, 'avg(${field})'), 'max': $lookup($, 'max(${field})')}",
                ),
            ],
        )
    ],
    [source(INFINITY["type"]), typed("collection", "Collection", "earthquakes"), typed("field", "Field", "mag"), typed("window", "Window", "P1D"), typed("filter", "Filter", "TRUE")],
    ["events"],
    since="now-1y",
    refresh="",
)

FILES = {"operation": OPERATION, "cluster": CLUSTER, "events": EVENTS}


def main():
    check, stale = "--check" in sys.argv[1:], []
    for name, document in FILES.items():
        path, text = HERE / f"{name}.json", json.dumps(document, indent=1) + "\n"
        if not check:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            stale.append(path.name)
    if stale:
        sys.exit(f"older than build.py: {', '.join(stale)}; `python3 deploy/grafana/build.py` writes them anew")


if __name__ == "__main__":
    main()
