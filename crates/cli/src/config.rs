//! The settings of `meridian serve`: one table of names, meanings, limits and defaults.
//!
//! The file is TOML. Every setting is checked when the server starts, and a mistake names the key. The
//! same table prints the defaults (`meridian serve --show-config`), so that what is documented is what is read.

use crate::failure::Failure;
use crate::machine;
use crate::units;
use meridian_api::ServerConfig;
use meridian_federation::provider::shipped;
use meridian_federation::{Classifier, ImageSettings};
use meridian_store::{Durability, Options};
use std::path::{Path, PathBuf};
use toml::Value;

/// Everything that `meridian serve` can be told.
pub struct Config {
    /// Address to listen on.
    pub listen: String,
    /// Part that this process plays.
    pub role: String,
    /// Data folder, caches and limits of the store.
    pub store: Options,
    /// Limits of the server.
    pub server: ServerConfig,
    /// Shipped providers that searches ask, as they are named in the file.
    pub shipped: String,
    /// Folder of the operator's own providers.
    pub providers: Option<PathBuf>,
    /// The model that looks at images of results.
    pub images: ImageSettings,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            listen: "127.0.0.1:7117".to_owned(),
            role: "all".to_owned(),
            store: Options { cache_bytes: cache_bytes(machine::memory()), ..Options::at("./meridian-data") },
            server: ServerConfig::default(),
            shipped: String::new(),
            providers: None,
            images: ImageSettings::default(),
        }
    }
}

/// A quarter of the memory there is, in whole MiB; what is left is for events on their way in, answers, and the page cache.
fn cache_bytes(memory: Option<u64>) -> u64 {
    memory.map_or(512 * MIB, |bytes| (bytes / 4 / MIB * MIB).clamp(64 * MIB, 64 * GIB))
}

/// One setting: its key in the file, its meaning, and how it is shown and set.
struct Setting {
    key: &'static str,
    help: &'static str,
    get: fn(&Config) -> Value,
    set: fn(&mut Config, &Value) -> Result<(), String>,
}

/// A size in bytes: a whole number, or a text such as "64 MiB".
macro_rules! size {
    ($key:literal, $help:literal, $($place:ident).+, $min:expr, $max:expr) => {
        Setting {
            key: $key,
            help: $help,
            get: |c| Value::String(units::size_text(c.$($place).+ as u64)),
            set: |c, v| {
                c.$($place).+ = within(size(v)?, $min, $max, units::size_text)? as _;
                Ok(())
            },
        }
    };
}

/// A whole number.
macro_rules! count {
    ($key:literal, $help:literal, $($place:ident).+, $min:expr, $max:expr) => {
        Setting {
            key: $key,
            help: $help,
            get: |c| Value::Integer(c.$($place).+ as i64),
            set: |c, v| {
                let n = v.as_integer().and_then(|n| u64::try_from(n).ok()).ok_or("expected a whole number")?;
                c.$($place).+ = within(n, $min, $max, |n| n.to_string())? as _;
                Ok(())
            },
        }
    };
}

/// A length of time: a text such as "30s" or "PT30S".
macro_rules! duration {
    ($key:literal, $help:literal, $($place:ident).+, $min:literal, $max:literal) => {
        Setting {
            key: $key,
            help: $help,
            get: |c| Value::String(units::duration_text(c.$($place).+)),
            set: |c, v| {
                let text = v.as_str().ok_or("expected a length of time such as \"30s\", \"5m\" or \"1d\"")?;
                let value = units::duration(text)?;
                let (min, max) = (units::duration($min)?, units::duration($max)?);
                if value < min || value > max {
                    return Err(format!("{text:?} is outside {} to {}", $min, $max));
                }
                c.$($place).+ = value;
                Ok(())
            },
        }
    };
}

mod images;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

const SETTINGS: &[Setting] = &[
    Setting {
        key: "server.listen",
        help: "Address and port to listen on.",
        get: |c| Value::String(c.listen.clone()),
        set: |c, v| text(v).map(|t| c.listen = t),
    },
    Setting {
        key: "server.role",
        help: "Part that this process plays; only \"all\" exists so far.",
        get: |c| Value::String(c.role.clone()),
        set: |c, v| text(v).map(|t| c.role = t),
    },
    Setting {
        key: "server.public_url",
        help: "Address under which clients reach the server, for links; empty: taken from each request.",
        get: |c| Value::String(c.server.public_url.clone().unwrap_or_default()),
        set: |c, v| {
            let url = text(v)?;
            if !url.is_empty() && !url.starts_with("http://") && !url.starts_with("https://") {
                return Err(format!("{url:?}: expected an address such as https://events.example.org"));
            }
            c.server.public_url = (!url.is_empty()).then(|| url.trim_end_matches('/').to_owned());
            Ok(())
        },
    },
    duration!(
        "server.shutdown_grace",
        "How long a shutdown waits for running requests.",
        server.shutdown_grace,
        "0s",
        "1h"
    ),
    Setting {
        key: "store.data",
        help: "Folder that holds the data.",
        get: |c| Value::String(c.store.data.display().to_string()),
        set: |c, v| text(v).map(|t| c.store.data = PathBuf::from(t)),
    },
    Setting {
        key: "store.ephemeral",
        help: "Keep everything in memory; nothing survives the process.",
        get: |c| Value::Boolean(c.store.ephemeral),
        set: |c, v| v.as_bool().map(|b| c.store.ephemeral = b).ok_or_else(|| "expected true or false".to_owned()),
    },
    size!(
        "store.cache_bytes",
        "Most memory for blocks kept for readers: by default a quarter of what the machine (or its control group) has.",
        store.cache_bytes,
        MIB,
        TIB
    ),
    size!("store.memory_bytes", "Most memory for events not yet in a segment.", store.memory_bytes, MIB, TIB),
    size!("store.log_bytes", "Most log that a collection keeps before it is flushed.", store.log_bytes, MIB, TIB),
    size!("store.log_file_bytes", "Size of one log file.", store.log_file_bytes, MIB, 4 * GIB),
    size!(
        "store.serving_bytes",
        "Most Arrow rows kept on disk beside GeoParquet, for faster answers.",
        store.serving_bytes,
        0,
        1024 * TIB
    ),
    count!(
        "store.rest_rows_min",
        "Least events of a segment that becomes GeoParquet without being asked for.",
        store.rest_rows_min,
        1,
        u64::from(u32::MAX)
    ),
    duration!("store.files_memory", "How long files that were listed stay.", store.files_memory, "1m", "366d"),
    duration!("store.key_memory", "How long an idempotency key is remembered.", store.key_memory, "1m", "366d"),
    count!("store.keys_max", "Most idempotency keys remembered by a collection.", store.keys_max, 1_000, 100_000_000),
    duration!(
        "store.snapshot_memory",
        "How long a page token stays good after its last use.",
        store.snapshot_memory,
        "5m",
        "7d"
    ),
    duration!("store.write_wait", "How long a write waits for room.", store.write_wait, "0s", "10m"),
    Setting {
        key: "ingest.batch_bytes",
        help: "Largest batch, and largest request body; a larger one gets 413.",
        get: |c| Value::String(units::size_text(c.store.batch_bytes)),
        set: |c, v| {
            let bytes = within(size(v)?, 64 * KIB, GIB, units::size_text)?;
            c.store.batch_bytes = bytes;
            c.server.body_bytes_max = bytes as usize;
            Ok(())
        },
    },
    size!("ingest.body_bytes_total", "Most bytes of bodies held at once.", server.body_bytes_total, MIB, TIB),
    duration!("ingest.body_stall", "Longest silence within a body; then 408.", server.body_stall, "1s", "1h"),
    duration!("ingest.body_grace", "Time before the least speed of a body counts.", server.body_grace, "1s", "1h"),
    size!("ingest.body_rate_min", "Least average speed of a body in bytes a second.", server.body_rate_min, 0, GIB),
    count!("requests.connections_max", "Most connections held at once.", server.connections_max, 1, 1_000_000),
    count!("requests.running_max", "Most requests worked on at once.", server.requests_running_max, 1, 100_000),
    count!(
        "requests.waiting_max",
        "Most requests that wait; later ones get 503 at once.",
        server.requests_waiting_max,
        0,
        1_000_000
    ),
    duration!("requests.wait", "Longest wait for a place; then 503.", server.admission_wait, "0s", "10m"),
    duration!("requests.timeout", "Deadline of a request that names none.", server.timeout_default, "1ms", "1d"),
    duration!("requests.timeout_stream", "The same for whole results.", server.timeout_stream, "1ms", "1d"),
    duration!("requests.timeout_max", "Longest deadline that a request may ask for.", server.timeout_max, "1ms", "7d"),
    duration!("requests.head_timeout", "Longest time for the head of a request.", server.head_timeout, "1s", "1h"),
    duration!(
        "answers.stall",
        "Longest time that a client may take nothing of its answer.",
        server.write_stall,
        "1s",
        "1h"
    ),
    size!("answers.chunk_bytes", "Aimed size of one piece of an answer.", server.chunk_bytes, KIB, 16 * MIB),
    count!("answers.chunks_waiting_max", "Pieces that wait for a slow client.", server.chunks_waiting_max, 1, 1_000),
    size!("answers.bytes_total", "Most bytes of answers that wait, all together.", server.answer_bytes_total, MIB, TIB),
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
    count!("search.saved_max", "Most saved searches; later ones get 429.", server.search.saved.max, 0, 10_000_000),
    size!(
        "search.saved_queue_bytes",
        "Most bytes of new events that wait for saved searches.",
        server.search.saved.queue_bytes,
        64 * KIB,
        TIB
    ),
    count!(
        "search.saved_catch_up",
        "Events of a collection that came while nobody looked and are looked at after a start.",
        server.search.saved.catch_up,
        0,
        100_000_000
    ),
    size!(
        "search.saved_buffer_bytes",
        "Packets kept for each saved search; the oldest give way.",
        server.search.saved.buffer_bytes,
        4 * KIB,
        GIB
    ),
    size!(
        "search.saved_buffer_bytes_total",
        "The same for all saved searches.",
        server.search.saved.buffer_bytes_total,
        MIB,
        TIB
    ),
    count!(
        "search.saved_objects_max",
        "Moving objects, and questions that they are in, that are remembered.",
        server.search.saved.objects_max,
        2,
        1_000_000_000
    ),
    duration!(
        "search.poll_least",
        "Least time between two polls of a saved search.",
        server.search.saved.poll_least,
        "1s",
        "31d"
    ),
    count!("search.polls_at_once", "Polls of saved searches at once.", server.search.saved.polls_at_once, 1, 1_000),
    duration!(
        "search.webhook_timeout",
        "Time for one call to a webhook.",
        server.search.saved.webhook.timeout,
        "10ms",
        "10m"
    ),
    duration!(
        "search.webhook_wait",
        "Pause after the first failed call for a packet; it doubles each time, up to an hour.",
        server.search.saved.webhook.wait,
        "1ms",
        "1h"
    ),
    count!(
        "search.webhook_tries",
        "Calls for one packet before it becomes a dead letter.",
        server.search.saved.webhook.tries,
        1,
        1_000
    ),
    duration!(
        "search.webhook_age",
        "Time after the first call from which a packet becomes a dead letter.",
        server.search.saved.webhook.age,
        "0s",
        "31d"
    ),
    count!("search.webhooks_at_once", "Calls to webhooks at once.", server.search.saved.webhook.at_once, 1, 10_000),
    Setting {
        key: "search.webhook_private",
        help: "Call webhooks at private addresses too.",
        get: |c| Value::Boolean(c.server.search.saved.webhook.allow_private),
        set: |c, v| {
            let on = v.as_bool().ok_or_else(|| "expected true or false".to_owned())?;
            c.server.search.saved.webhook.allow_private = on;
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
    Setting {
        key: "places.durability",
        help: "Durability of the collection that the places profile makes: \"local\" or \"ephemeral\".",
        get: |c| Value::String(durability_name(c.server.places_durability).to_owned()),
        set: |c, v| {
            c.server.places_durability = durability(&text(v)?)?;
            Ok(())
        },
    },
];

/// All settings, in the order in which they are shown.
fn all() -> impl Iterator<Item = &'static Setting> {
    SETTINGS.iter().chain(images::SETTINGS)
}

fn text(value: &Value) -> Result<String, String> {
    value.as_str().map(str::to_owned).ok_or_else(|| "expected a text in quotes".to_owned())
}

fn size(value: &Value) -> Result<u64, String> {
    let expected = "expected a size such as \"64 MiB\", or a number of bytes";
    match value {
        Value::Integer(n) => u64::try_from(*n).map_err(|_| expected.to_owned()),
        Value::String(text) => units::size(text),
        _ => Err(expected.to_owned()),
    }
}

fn within(n: u64, min: u64, max: u64, show: impl Fn(u64) -> String) -> Result<u64, String> {
    if (min..=max).contains(&n) { Ok(n) } else { Err(format!("{} is outside {} to {}", show(n), show(min), show(max))) }
}

/// Reads the name of a durability.
pub fn durability(name: &str) -> Result<Durability, String> {
    match name {
        "ephemeral" => Ok(Durability::Ephemeral),
        "local" => Ok(Durability::Local),
        "replicated" => Err("\"replicated\" comes with the cluster: expected \"local\" or \"ephemeral\"".to_owned()),
        _ => Err(format!("{name:?}: expected \"local\" or \"ephemeral\"")),
    }
}

/// The name of a durability.
pub fn durability_name(durability: Durability) -> &'static str {
    match durability {
        Durability::Ephemeral => "ephemeral",
        Durability::Local => "local",
        Durability::Replicated => "replicated",
    }
}

impl Config {
    /// The defaults, changed by what the file says.
    pub fn read(path: &Path) -> Result<Config, Failure> {
        let text = std::fs::read_to_string(path)
            .map_err(|e| Failure::Usage(format!("--config: {} cannot be read: {e}", path.display())))?;
        Config::parse(&text).map_err(|e| Failure::Usage(format!("--config: {}: {e}", path.display())))
    }

    fn parse(text: &str) -> Result<Config, String> {
        let document: toml::Table = text.parse().map_err(|e: toml::de::Error| e.to_string().trim_end().to_owned())?;
        let mut config = Config::default();
        for (section, content) in &document {
            let Value::Table(content) = content else {
                return Err(format!("{section}: expected a section, as in [{section}]; sections: {}", sections()));
            };
            config.take(section, content)?;
        }
        config.server.search.providers =
            shipped::load(&config.shipped, config.providers.as_deref()).map_err(|e| format!("search: {e}"))?;
        config.server.search.images = Classifier::load(&config.images).map_err(|e| format!("search.images.{e}"))?;
        config.check()?;
        Ok(config)
    }

    /// Sets what a section says, and what the sections within it say.
    fn take(&mut self, section: &str, content: &toml::Table) -> Result<(), String> {
        for (name, value) in content {
            let key = format!("{section}.{name}");
            let within = format!("{key}.");
            match (all().find(|s| s.key == key), value) {
                (Some(setting), _) => (setting.set)(self, value).map_err(|e| format!("{key}: {e}"))?,
                (None, value) if all().any(|s| s.key.starts_with(&within)) => match value {
                    Value::Table(content) => self.take(&key, content)?,
                    _ => return Err(format!("{key}: expected a section, as in [{key}]")),
                },
                (None, _) => return Err(unknown(section, &key)),
            }
        }
        Ok(())
    }

    /// What no single setting can say.
    fn check(&self) -> Result<(), String> {
        if self.store.memory_bytes < 2 * self.store.batch_bytes {
            return Err(format!(
                "store.memory_bytes: {} does not hold two batches of ingest.batch_bytes ({})",
                units::size_text(self.store.memory_bytes),
                units::size_text(self.store.batch_bytes)
            ));
        }
        if self.server.body_bytes_total < self.server.body_bytes_max {
            return Err("ingest.body_bytes_total: must hold at least one body of ingest.batch_bytes".to_owned());
        }
        let search = &self.server.search;
        if search.deadline_max < search.deadline || search.limit_max < search.limit {
            return Err("search.deadline_max and search.limit_max: must be at least search.deadline and search.limit"
                .to_owned());
        }
        if self.server.timeout_max < self.server.timeout_default.max(self.server.timeout_stream) {
            return Err(
                "requests.timeout_max: must be at least requests.timeout and requests.timeout_stream".to_owned()
            );
        }
        Ok(())
    }

    /// The settings as a file that [`Config::read`] takes, each with its meaning.
    pub fn show(&self) -> String {
        let mut out = String::new();
        let mut last = "";
        for setting in all() {
            let (section, name) = setting.key.rsplit_once('.').unwrap_or(("", setting.key));
            if section != last {
                let gap = if last.is_empty() { "" } else { "\n" };
                out.push_str(&format!("{gap}[{section}]\n"));
                last = section;
            }
            out.push_str(&format!("# {}\n{name} = {}\n", setting.help, (setting.get)(self)));
        }
        out
    }
}

fn sections() -> String {
    let mut names: Vec<&str> = all().filter_map(|s| s.key.rsplit_once('.')).map(|(section, _)| section).collect();
    names.dedup();
    names.join(", ")
}

fn unknown(section: &str, key: &str) -> String {
    let prefix = format!("{section}.");
    // A section within this one is named once, not by all that is in it.
    let named = |key: &'static str| key.strip_prefix(&prefix)?.split('.').next().map(|name| format!("{prefix}{name}"));
    let mut near: Vec<String> = all().filter_map(|s| named(s.key)).collect();
    near.dedup();
    if near.is_empty() {
        format!("{key}: there is no such setting; sections: {}", sections())
    } else {
        format!("{key}: there is no such setting; in this section: {}", near.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_what_is_read() {
        let mut config = Config { listen: "0.0.0.0:80".to_owned(), ..Config::default() };
        config.store.cache_bytes = 3 * GIB + 1;
        config.server.public_url = Some("https://example.org".to_owned());
        config.server.admission_wait = std::time::Duration::from_millis(1_500);
        let back = Config::parse(&config.show()).unwrap();
        assert_eq!(back.show(), config.show());
        assert_eq!(Config::parse("").unwrap().show(), Config::default().show());
    }

    #[test]
    fn mistakes_name_the_key() {
        for (text, words) in [
            ("[store]\ncache = 1", ["store.cache", "store.cache_bytes"]),
            ("[stores]\ncache = 1", ["stores.cache", "sections"]),
            ("listen = 1", ["listen", "section"]),
            ("[store]\ncache_bytes = \"many\"", ["store.cache_bytes", "64 MiB"]),
            ("[store]\ncache_bytes = -1", ["store.cache_bytes", "64 MiB"]),
            ("[store]\ncache_bytes = 1", ["store.cache_bytes", "outside"]),
            ("[store]\nephemeral = 1", ["store.ephemeral", "true or false"]),
            ("[requests]\ntimeout = \"soon\"", ["requests.timeout", "soon"]),
            ("[requests]\ntimeout = 5", ["requests.timeout", "length of time"]),
            ("[requests]\nrunning_max = 0", ["requests.running_max", "outside"]),
            ("[places]\ndurability = \"replicated\"", ["places.durability", "cluster"]),
            ("[server]\npublic_url = \"example.org\"", ["server.public_url", "https://"]),
            ("[store]\nmemory_bytes = \"64 MiB\"", ["store.memory_bytes", "two batches"]),
            ("[search]\nshipped = \"bing\"", ["search", "wikipedia"]),
            ("[search]\nproviders = \"/nowhere\"", ["search", "/nowhere"]),
            ("[search]\nlimit = 2000", ["search.limit_max", "at least"]),
            ("[search.images]\nmodel = \"/nowhere.onnx\"", ["search.images.labels", "one a line"]),
            ("[search.images]\nlabels = \"/nowhere.txt\"", ["search.images.labels", "no model"]),
            ("[search.images]\nmean = [1, 2]", ["search.images.mean", "three numbers"]),
            ("[search.images]\nlayout = \"chw\"", ["search.images.layout", "nchw"]),
            ("[search.images]\nat_least = 2", ["search.images.at_least", "0 to 1"]),
            ("[search.images]\nside = 1", ["search.images.side", "search.images.size"]),
            ("[search.pictures]\nsize = 1", ["search.pictures", "search.images"]),
            ("[search]\nimages = 1", ["search.images", "as in [search.images]"]),
            ("[store", ["line 1", "store"]),
        ] {
            let error = Config::parse(text).err().unwrap();
            assert!(words.iter().all(|w| error.contains(w)), "{text}: {error}");
        }
    }
}
