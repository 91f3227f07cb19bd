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
    count!("search.searches_max", "Max concurrent searches; more get 429.", server.search.searches_max, 1, 100_000),
    duration!(
        "search.delay_max",
        "While searches wait longer than this for a processor, new ones get 429.",
        server.search.delay_max,
        "1ms",
        "1h"
    ),
    duration!("search.deadline", "Default deadline of a search.", server.search.deadline, "1ms", "1h"),
    duration!("search.deadline_max", "Max deadline of a search.", server.search.deadline_max, "1ms", "1h"),
    count!("search.limit", "Default number of results of each provider.", server.search.limit, 1, 10_000),
    count!("search.limit_max", "Max results of each provider.", server.search.limit_max, 1, 10_000),
    size!("search.packet_bytes", "Max size of a packet.", server.search.packet_bytes, 2 * KIB, MIB),
    size!("search.buffer_bytes", "Packets kept for each search.", server.search.buffer_bytes, 64 * KIB, GIB),
    size!("search.buffer_bytes_total", "The same for all searches.", server.search.buffer_bytes_total, MIB, TIB),
    size!(
        "search.answer_bytes_total",
        "Memory for answers of outside sources until they are parsed.",
        server.search.answer_bytes_total,
        // The max of a declaration's limit for a response.
        64 * MIB,
        TIB
    ),
    duration!(
        "search.join",
        "A repeated question joins a search younger than this; 0s: never.",
        server.search.join,
        "0s",
        "1h"
    ),
    duration!(
        "search.gone",
        "A search stops this long after its reader disconnected.",
        server.search.gone,
        "1ms",
        "1h"
    ),
    duration!("search.wait", "A search stops if no reader connects within this time.", server.search.wait, "1ms", "1h"),
    duration!("search.keep", "How long an ended search can be read.", server.search.keep, "0s", "1d"),
    count!("search.queue", "Pieces of work that wait before a stage.", server.search.queue, 1, 100_000),
    count!("search.at_once", "Pieces of work that a stage does at once.", server.search.at_once, 1, 1_000),
    Setting {
        key: "search.addresses",
        help: "Collection of places in which addresses are looked up.",
        get: |c| Value::String(c.server.search.addresses.clone()),
        set: |c, v| text(v).map(|t| c.server.search.addresses = t),
    },
    count!("search.saved_max", "Max saved searches; more get 429.", server.saved.max, 0, 10_000_000),
    size!(
        "search.saved_queue_bytes",
        "Max bytes of new events that wait for saved searches.",
        server.saved.queue_bytes,
        64 * KIB,
        TIB
    ),
    count!(
        "search.saved_catch_up",
        "Max events of a collection that a start matches, of those written while no server ran.",
        server.saved.catch_up,
        0,
        100_000_000
    ),
    size!(
        "search.saved_buffer_bytes",
        "Packets kept for each saved search; the oldest are dropped.",
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
        "Dead letters kept of all saved searches; the oldest are dropped.",
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
        help: "Collection of places whose names are searched in results without a position; empty: none.",
        get: |c| Value::String(c.server.search.gazetteer.clone()),
        set: |c, v| text(v).map(|t| c.server.search.gazetteer = t),
    },
    count!(
        "search.gazetteer_population",
        "Min population of a place in it, if the population is known.",
        server.search.gazetteer_population,
        0,
        10_000_000_000
    ),
];
