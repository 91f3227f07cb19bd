//! The settings of `[search]`: searches, saved searches, sources and webhooks.

use super::setting::{GIB, KIB, MIB, Setting, TIB, size, text, within};
use crate::units;
use std::path::PathBuf;
use toml::Value;

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        key: "search.shipped",
        help: "Outside sources that ship with Meridian and that searches may ask: names with commas between, or \"all\"; empty: none.",
        get: |c| Value::String(c.shipped.clone()),
        set: |c, v| text(v).map(|t| c.shipped = t),
    },
    Setting {
        key: "search.providers",
        help: "Folder of more sources, each a declaration in TOML; empty: none.",
        get: |c| Value::String(c.providers.as_ref().map(|p| p.display().to_string()).unwrap_or_default()),
        set: |c, v| text(v).map(|t| c.providers = (!t.is_empty()).then(|| PathBuf::from(t))),
    },
    count!("search.searches_max", "Most searches at once; later ones get 429.", server.search.searches_max, 1, 100_000),
    duration!(
        "search.delay_max",
        "While searches wait longer than this for a processor no other begins: 429.",
        server.search.delay_max,
        "1ms",
        "1h"
    ),
    duration!("search.deadline", "Deadline of a search that names none.", server.search.deadline, "1ms", "1h"),
    duration!(
        "search.deadline_max",
        "Longest deadline that a search may ask for.",
        server.search.deadline_max,
        "1ms",
        "1h"
    ),
    count!("search.limit", "Results wanted of each provider.", server.search.limit, 1, 10_000),
    count!("search.limit_max", "Most results of each provider.", server.search.limit_max, 1, 10_000),
    size!("search.packet_bytes", "Largest packet of results.", server.search.packet_bytes, 2 * KIB, MIB),
    size!("search.buffer_bytes", "Packets kept for each search.", server.search.buffer_bytes, 64 * KIB, GIB),
    size!("search.buffer_bytes_total", "The same for all searches.", server.search.buffer_bytes_total, MIB, TIB),
    size!(
        "search.answer_bytes_total",
        "Answers of outside sources in memory until they are read.",
        server.search.answer_bytes_total,
        // The most that a declaration may let an answer have.
        64 * MIB,
        TIB
    ),
    duration!(
        "search.join",
        "A search this young is joined by the same question; 0s: never.",
        server.search.join,
        "0s",
        "1h"
    ),
    duration!("search.gone", "A search stops when its reader has been gone for this.", server.search.gone, "1ms", "1h"),
    duration!("search.wait", "A search stops when no reader has come for this.", server.search.wait, "1ms", "1h"),
    duration!("search.keep", "An ended search can be read for this.", server.search.keep, "0s", "1d"),
    count!("search.queue", "Pieces of work that wait before a stage.", server.search.queue, 1, 100_000),
    count!("search.at_once", "Pieces of work that a stage does at once.", server.search.at_once, 1, 1_000),
    Setting {
        key: "search.addresses",
        help: "Collection of places that addresses are looked up in.",
        get: |c| Value::String(c.server.search.addresses.clone()),
        set: |c, v| text(v).map(|t| c.server.search.addresses = t),
    },
    count!("search.saved_max", "Most saved searches; later ones get 429.", server.saved.max, 0, 10_000_000),
    size!(
        "search.saved_queue_bytes",
        "Most bytes of new events that wait for saved searches.",
        server.saved.queue_bytes,
        64 * KIB,
        TIB
    ),
    count!(
        "search.saved_catch_up",
        "Events of a collection that are matched after a start, of those that came while no server ran.",
        server.saved.catch_up,
        0,
        100_000_000
    ),
    size!(
        "search.saved_buffer_bytes",
        "Packets kept for each saved search; the oldest give way.",
        server.saved.buffer_bytes,
        4 * KIB,
        GIB
    ),
    size!(
        "search.saved_buffer_bytes_total",
        "The same for all saved searches.",
        server.saved.buffer_bytes_total,
        MIB,
        TIB
    ),
    count!(
        "search.saved_objects_max",
        "Moving objects, and questions that they are in, that are remembered.",
        server.saved.objects_max,
        2,
        1_000_000_000
    ),
    duration!("search.poll_least", "Min time between two polls of a saved search.", server.saved.poll_min, "1s", "31d"),
    count!("search.polls_at_once", "Polls of saved searches at once.", server.saved.polls_at_once, 1, 1_000),
    duration!("search.webhook_timeout", "Time for one call to a webhook.", server.saved.webhook.timeout, "10ms", "10m"),
    duration!(
        "search.webhook_wait",
        "Pause after the first failed call for a packet; it doubles each time, up to an hour.",
        server.saved.webhook.wait,
        "1ms",
        "1h"
    ),
    count!(
        "search.webhook_tries",
        "Calls for one packet before it becomes a dead letter.",
        server.saved.webhook.tries,
        1,
        1_000
    ),
    duration!(
        "search.webhook_age",
        "Time after the first call from which a packet becomes a dead letter.",
        server.saved.webhook.age,
        "0s",
        "31d"
    ),
    size!(
        "search.webhook_dead_bytes_total",
        "Dead letters kept of all saved searches; the oldest give way.",
        server.saved.webhook.dead_bytes_total,
        MIB,
        TIB
    ),
    count!("search.webhooks_at_once", "Calls to webhooks at once.", server.saved.webhook.at_once, 1, 10_000),
    Setting {
        key: "search.webhook_private",
        help: "Call webhooks at private addresses too.",
        get: |c| Value::Boolean(c.server.saved.webhook.allow_private),
        set: |c, v| {
            let on = v.as_bool().ok_or_else(|| "expected true or false".to_owned())?;
            c.server.saved.webhook.allow_private = on;
            Ok(())
        },
    },
    Setting {
        key: "search.gazetteer",
        help: "Collection of places whose names are looked for in results that have no place; empty: none.",
        get: |c| Value::String(c.server.search.gazetteer.clone()),
        set: |c, v| text(v).map(|t| c.server.search.gazetteer = t),
    },
    count!(
        "search.gazetteer_population",
        "Places of it with fewer people are left out, where it says how many there are.",
        server.search.gazetteer_population,
        0,
        10_000_000_000
    ),
];
