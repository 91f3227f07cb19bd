//! Whether the servers sync each message before they acknowledge it.
//!
//! By default a NATS server syncs every two minutes. What it acknowledged before that is gone after a power failure, of all servers at once if they share
//! their power. The setting `sync_interval: always` shows at a server's monitoring address alone.

use crate::options::NatsOptions;
use meridian_model::Invalid;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::time::Duration;

/// How long a server may take to answer.
const ANSWER: Duration = Duration::from_secs(5);
/// What the operator has to do.
const SYNC: &str = "set `jetstream { sync_interval: always }` there";

/// What a server says of its JetStream, in part.
#[derive(Debug, Deserialize)]
struct Said {
    server_id: String,
    #[serde(default)]
    config: Config,
    #[serde(default)]
    meta_cluster: Option<Meta>,
}

#[derive(Debug, Default, Deserialize)]
struct Config {
    #[serde(default)]
    sync_always: bool,
}

#[derive(Debug, Deserialize)]
struct Meta {
    /// Servers in the cluster.
    #[serde(default)]
    cluster_size: usize,
}

/// Checks every server, where that can be seen.
///
/// # Errors
/// What is wrong, unless the operator allows it: then that is logged as a warning.
pub(crate) fn check(options: &NatsOptions) -> Result<(), Invalid> {
    let said = look(options).and_then(|said| judge(&options.monitor, &said));
    let Err(why) = said else { return Ok(()) };
    if options.allow_unsynced {
        tracing::warn!(
            "{why}; taken all the same, as cluster.nats.allow_unsynced says: a power failure may lose acknowledged writes"
        );
        return Ok(());
    }
    let detail = format!(
        "{why}, or allow it with cluster.nats.allow_unsynced = true: a power failure may then lose acknowledged writes"
    );
    Err(Invalid::field("cluster.nats.monitor", detail))
}

/// Asks all servers.
fn look(options: &NatsOptions) -> Result<Vec<Said>, String> {
    let agent =
        ureq::Agent::new_with_config(ureq::Agent::config_builder().timeout_global(Some(ANSWER)).proxy(None).build());
    let one = |address: &String| {
        let url = format!("{}/jsz?config=true", address.trim_end_matches('/'));
        let text = agent.get(&url).call().and_then(|mut answer| answer.body_mut().read_to_string());
        let text =
            text.map_err(|error| format!("{url} does not say whether the server syncs each message: {error}"))?;
        serde_json::from_str(&text).map_err(|error| format!("{url} does not answer as a NATS server does: {error}"))
    };
    options.monitor.iter().map(one).collect()
}

/// What is wrong with the servers.
fn judge(monitor: &[String], said: &[Said]) -> Result<(), String> {
    if said.is_empty() {
        return Err(format!(
            "whether the NATS servers sync each message cannot be seen: name the monitoring address of each (`http_port`), and {SYNC}"
        ));
    }
    if let Some((address, _)) = monitor.iter().zip(said).find(|(_, said)| !said.config.sync_always) {
        return Err(format!("the NATS server of {address} does not sync each message: {SYNC}"));
    }
    let servers = said.iter().map(|said| said.server_id.as_str()).collect::<BTreeSet<_>>().len();
    let size =
        said.iter().filter_map(|said| said.meta_cluster.as_ref()).map(|meta| meta.cluster_size).max().unwrap_or(1);
    match servers < size {
        true => {
            Err(format!("of {size} NATS servers {servers} are named: name the monitoring address of each, and {SYNC}"))
        }
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(texts: &[&str]) -> Result<(), String> {
        let monitor: Vec<String> = (0..texts.len()).map(|n| format!("http://n{n}")).collect();
        judge(&monitor, &texts.iter().map(|text| serde_json::from_str(text).unwrap()).collect::<Vec<_>>())
    }

    #[test]
    fn every_server_has_to_sync_each_message() {
        let synced = |id: &str| {
            format!(
                r#"{{"server_id":"{id}","config":{{"sync_interval":1,"sync_always":true}},"meta_cluster":{{"cluster_size":3}}}}"#
            )
        };
        let three = ["A", "B", "C"].map(synced);
        assert_eq!(judged(&[&three[0], &three[1], &three[2]]), Ok(()));
        assert!(judged(&[&three[0], &three[0], &three[2]]).unwrap_err().contains("of 3 NATS servers 2 are named"));
        assert!(judged(&[]).unwrap_err().contains("cannot be seen"));
        let lazy = r#"{"server_id":"D","config":{"sync_interval":120000000000}}"#;
        let said = judged(&[&three[0], &three[1], &three[2], lazy]).unwrap_err();
        assert!(said.contains("http://n3") && said.contains("sync_interval: always"), "{said}");
        assert_eq!(judged(&[r#"{"server_id":"E","config":{"sync_always":true}}"#]), Ok(()));
    }
}
