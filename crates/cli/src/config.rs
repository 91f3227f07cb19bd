//! The settings of `meridian serve`: one table of names, meanings, limits and defaults.
//!
//! The file is TOML. Every setting is checked when the server starts, and an error names the key. The same table prints
//! the defaults (`meridian serve --show-config`), so the documented settings are the parsed ones. The submodules hold
//! the table, by section; this module reads and shows it.

// First, for its macros.
#[macro_use]
mod setting;
mod access;
mod cluster;
mod images;
mod memory;
mod nats;
mod observe;
mod roles;
mod s3;
mod scan;
mod search;
mod server;
mod sign_in;
mod tls;

use crate::certificates::TlsFiles;
use crate::failure::Failure;
use crate::log;
use crate::machine;
use crate::units;
pub use cluster::{Cluster, Role};
use meridian_api::{BATCH_TIMES, ServerConfig};
use meridian_federation::provider::shipped;
use meridian_federation::{Classifier, ImageSettings};
use meridian_store::seams::read_named_text;
use meridian_store::{Durability, Options};
#[cfg(feature = "cluster")]
pub use nats::Nats;
pub use observe::Traces;
#[cfg(feature = "cluster")]
pub use roles::Roles;
#[cfg(feature = "cluster")]
pub use s3::S3;
#[cfg(feature = "cluster")]
pub use scan::Scan;
use setting::Setting;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use toml::Value;

/// All settings of `meridian serve`.
pub struct Config {
    /// Address to listen on.
    pub listen: String,
    /// Address to serve Arrow Flight to clients on; empty: none.
    pub flight_listen: String,
    /// Certificate and key, if the server speaks TLS.
    pub tls: TlsFiles,
    /// Role of this process.
    pub role: Role,
    /// Settings of its role in a cluster.
    pub cluster: Cluster,
    /// Data folder, caches and limits of the store.
    pub store: Options,
    /// Limits of the server.
    pub server: ServerConfig,
    /// Shipped providers used by searches, as named in the file.
    pub shipped: String,
    /// Folder of the operator's own providers.
    pub providers: Option<PathBuf>,
    /// The model that labels images of results.
    pub images: ImageSettings,
    /// Issuers of JSON Web Tokens, as written in the file.
    pub issuers: Value,
    /// Form of log lines.
    pub log_format: log::Format,
    /// Address where monitors are served without a token.
    pub metrics_listen: Option<SocketAddr>,
    /// Which requests are recorded, and where the records are sent.
    pub traces: Traces,
}

impl Default for Config {
    fn default() -> Self {
        let mut config = Config {
            listen: "127.0.0.1:7117".to_owned(),
            flight_listen: String::new(),
            tls: TlsFiles::default(),
            role: Role::All,
            cluster: Cluster::default(),
            store: Options::at("./meridian-data"),
            server: ServerConfig::default(),
            shipped: String::new(),
            providers: None,
            images: ImageSettings::default(),
            issuers: Value::Array(Vec::new()),
            log_format: log::Format::default(),
            metrics_listen: None,
            traces: Traces::default(),
        };
        // Before the file is read, so that its settings override these defaults.
        if let Some(memory) = machine::memory() {
            memory::fit(&mut config, memory);
        }
        config
    }
}

impl Config {
    /// Max memory of the server in bytes.
    pub fn memory_bytes(&self) -> u64 {
        memory::budget(self).iter().map(|(_, bytes)| bytes).sum()
    }

    /// Returns the max memory of the server as text, by purpose and in total.
    pub fn memory_text(&self) -> String {
        let budget = memory::budget(self);
        let each: Vec<String> =
            budget.iter().map(|(purpose, bytes)| format!("{purpose} {}", units::size_short(*bytes))).collect();
        let sum = units::size_short(self.memory_bytes());
        format!("up to {sum} of memory: {}", each.join(", "))
    }
}

/// All settings, in the order in which they are shown.
fn all() -> impl Iterator<Item = &'static Setting> {
    [
        cluster::ROLE,
        server::SETTINGS,
        tls::SETTINGS,
        access::SETTINGS,
        sign_in::SETTINGS,
        search::SETTINGS,
        server::PLACES,
        images::SETTINGS,
        observe::SETTINGS,
        cluster::SETTINGS,
        roles::SETTINGS,
        scan::SETTINGS,
        nats::SETTINGS,
        s3::SETTINGS,
    ]
    .into_iter()
    .flatten()
}

/// Parses the name of a durability.
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
    /// Returns the defaults, with the settings of the file.
    pub fn read(path: &Path) -> Result<Config, Failure> {
        let text = read_named_text(path)
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
        // After all sections, since their settings may be in any order in the file.
        config.server.search.providers =
            shipped::load(&config.shipped, config.providers.as_deref()).map_err(|e| format!("search: {e}"))?;
        config.server.search.images = Classifier::load(&config.images).map_err(|e| format!("search.images.{e}"))?;
        config.check()?;
        Ok(config)
    }

    /// Applies the settings of a section and its subsections.
    fn take(&mut self, section: &str, content: &toml::Table) -> Result<(), String> {
        for (name, value) in content {
            let key = format!("{section}.{name}");
            let within = format!("{key}.");
            match (all().find(|s| s.key == key), value) {
                // Settings first: the value of a setting may itself be a table or a list of tables.
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

    /// Checks across settings.
    fn check(&self) -> Result<(), String> {
        // Otherwise a writer would wait for the flush of the previous batch each time.
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
        if self.server.batch_bytes_total < BATCH_TIMES * self.server.body_bytes_max {
            return Err(format!(
                "ingest.batch_bytes_total: must hold at least {BATCH_TIMES} times ingest.batch_bytes, as each event counts"
            ));
        }
        // Half of it is guaranteed to tenants.
        if self.server.answer_file_bytes_total as u64 / 2 < self.server.answer_file_bytes_max {
            return Err("answers.file_bytes_total: must hold at least two files of answers.file_bytes".to_owned());
        }
        if self.server.session.lifetime < self.server.session.idle {
            return Err("sign_in.session_lifetime: must be at least sign_in.session_idle".to_owned());
        }
        let search = &self.server.search;
        if search.deadline_max < search.deadline || search.limit_max < search.limit {
            return Err("search.deadline_max and search.limit_max: must be at least search.deadline and search.limit"
                .to_owned());
        }
        let last = search.last_packet_bytes();
        // The last packet ends a search, so it must always fit.
        if search.packet_bytes < last {
            return Err(format!(
                "search.packet_bytes: {} does not hold the last packet of a search, which names all {} providers and may \
                 take {last} B: expected at least that, or fewer providers",
                units::size_text(search.packet_bytes as u64),
                search.providers.len() + 1,
            ));
        }
        if self.server.timeout_max < self.server.timeout_default.max(self.server.timeout_stream) {
            return Err(
                "requests.timeout_max: must be at least requests.timeout and requests.timeout_stream".to_owned()
            );
        }
        Ok(())
    }

    /// Returns the settings as a file for [`Config::read`], each with its meaning.
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
    // The settings are in order of section, so equal names are neighbours.
    names.dedup();
    names.join(", ")
}

fn unknown(section: &str, key: &str) -> String {
    let prefix = format!("{section}.");
    // A subsection is listed once, not once for each of its settings.
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
    use super::setting::GIB;
    use super::*;

    #[test]
    fn what_is_shown_is_what_is_read() {
        let mut config = Config { listen: "0.0.0.0:80".to_owned(), ..Config::default() };
        config.store.cache_bytes = 3 * GIB + 1;
        config.server.public_url = Some("https://example.org".to_owned());
        config.server.admission_wait = std::time::Duration::from_millis(1_500);
        config.server.hosts = vec!["events.example.org".parse().unwrap(), "[::2]:80".parse().unwrap()];
        config.traces = Traces { endpoint: Some("http://collector:4318".to_owned()), sample: 0.5, ..Traces::default() };
        config.metrics_listen = Some(([127, 0, 0, 1], 9117).into());
        config.server.base_map = Some("/srv/planet.pmtiles".parse().unwrap());
        config.server.frame_ancestors = vec!["https://portal.example.org".parse().unwrap()];
        let back = Config::parse(&config.show()).unwrap();
        assert_eq!(back.show(), config.show());
        assert_eq!(Config::parse("").unwrap().show(), Config::default().show());
    }

    #[test]
    fn packets_hold_the_names_of_all_providers() {
        let folder = tempfile::tempdir().unwrap();
        for n in 0..40 {
            let name = format!("{n:02}-{}", "x".repeat(60));
            let text = format!(
                "name = \"{name}\"\n[request]\nurl = \"http://a\"\n[answer]\nformat = \"json\"\nitems = \"\"\n[answer.map]\nid = \"id\"\n"
            );
            std::fs::write(folder.path().join(format!("{name}.toml")), text).unwrap();
        }
        let with = |size: &str| {
            Config::parse(&format!("[search]\nproviders = {:?}\npacket_bytes = \"{size}\"", folder.path()))
        };
        let error = with("2 KiB").err().unwrap();
        assert!(["search.packet_bytes: 2 KiB", "41 providers"].iter().all(|part| error.contains(part)), "{error}");
        // The amount in the error is sufficient.
        let min = error.split("may take ").nth(1).and_then(|rest| rest.split(':').next()).unwrap();
        assert!(with(min).is_ok(), "{error}");
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
            ("[server]\nhosts = \"events.example.org\"", ["server.hosts", "list"]),
            ("[server]\nhosts = [\"https://events.example.org\"]", ["server.hosts", "events.example.org"]),
            ("[server]\nhosts = [\"*\"]", ["server.hosts", "192.0.2.7"]),
            ("[server]\nproxies = [\"10.0.0.0/40\"]", ["server.proxies", "10.0.0.0/8"]),
            ("[server]\norigins = [\"tools.example.org\"]", ["server.origins", "https://"]),
            ("[server]\nbase_map = \"planet.mbtiles\"", ["server.base_map", ".pmtiles"]),
            ("[server]\nbase_map_origins = [\"tiles.example.org\"]", ["server.base_map_origins", "https://"]),
            ("[server]\nframe_ancestors = [\"https://a.example/b\"]", ["server.frame_ancestors", "without a path"]),
            ("[store]\nmemory_bytes = \"64 MiB\"", ["store.memory_bytes", "two batches"]),
            ("[answers]\nfile_bytes = \"3 GiB\"", ["answers.file_bytes_total", "two files"]),
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
            ("[log]\nformat = \"xml\"", ["log.format", "json"]),
            ("[metrics]\nlisten = \"here\"", ["metrics.listen", "127.0.0.1:9117"]),
            ("[traces]\nsample = 2", ["traces.sample", "0 to 1"]),
            ("[traces]\nendpoint = \"localhost\"", ["traces.endpoint", "http://127.0.0.1:4318"]),
            ("[log]\nslow = 1", ["log.slow", "length of time"]),
            ("[search]\nimages = 1", ["search.images", "as in [search.images]"]),
            ("[sign_in]\nsession_idle = \"1s\"", ["sign_in.session_idle", "outside 1m"]),
            ("[sign_in]\nsession_idle = \"30d\"", ["sign_in.session_lifetime", "at least"]),
            ("[tls]\nhandshake_timeout = \"0s\"", ["tls.handshake_timeout", "outside"]),
            ("[access]\nissuers = 1", ["access.issuers", "[[access.issuers]]"]),
            ("[[access.issuers]]\nname = \"a\"", ["access.issuers", "issuer 1"]),
            ("[cluster.tls]\nnames = [\"10.0.0.7\"]", ["cluster.tls.names", "spiffe://"]),
            ("[cluster.tls]\nallow_plain = 1", ["cluster.tls.allow_plain", "true or false"]),
            ("[store", ["line 1", "store"]),
        ] {
            let error = Config::parse(text).err().unwrap();
            assert!(words.iter().all(|w| error.contains(w)), "{text}: {error}");
        }
    }
}
