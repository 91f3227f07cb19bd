//! Checks that the servers sync each message before they acknowledge it.
//!
//! By default a NATS server syncs every two minutes. Later messages that it acknowledged are lost at a power failure,
//! on all servers at once if they share their power supply. The setting `sync_interval: always` is visible only at a
//! server's monitoring address.

use crate::options::NatsOptions;
use meridian_model::Invalid;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::time::Duration;

/// Timeout of a server's response.
const ANSWER: Duration = Duration::from_secs(5);
/// The advice to the operator.
const SYNC: &str = "set `jetstream { sync_interval: always }` there";

/// The JetStream status of a server, in part.
#[derive(Debug, Deserialize)]
pub(crate) struct JetStreamStatus {
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
    /// Number of servers in the cluster.
    #[serde(default)]
    cluster_size: usize,
}

/// The responses of the servers.
#[derive(Debug, Default)]
pub(crate) struct Responses {
    /// Status of each server that responded, by its monitoring address.
    pub(crate) statuses: Vec<(String, JetStreamStatus)>,
    /// Reason for each server that did not respond, by its monitoring address.
    pub(crate) silent: Vec<(String, String)>,
}

impl Responses {
    /// The reasons of all silent servers.
    fn silence(&self) -> String {
        let one = |(address, error): &(String, String)| {
            format!("{address} does not say whether the server syncs each message: {error}")
        };
        self.silent.iter().map(one).collect::<Vec<_>>().join("; ")
    }
}

/// Checks every server that responds. Streams work without a minority of their servers, so an owner does too.
///
/// # Errors
/// The problem, unless the operator allows it; then it is logged as a warning.
pub(crate) fn check(options: &NatsOptions) -> Result<(), Invalid> {
    let responses = look(options).and_then(|responses| judge(&responses).map(|()| responses));
    let why = match responses {
        Ok(responses) => {
            if !responses.silent.is_empty() {
                tracing::warn!(
                    "{}; the NATS servers that answer sync each message; the others are not checked before the next start",
                    responses.silence()
                );
            }
            return Ok(());
        }
        Err(why) => why,
    };
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

/// Queries all servers. A response that no NATS server sends is an error: the address is wrong.
fn look(options: &NatsOptions) -> Result<Responses, String> {
    let agent =
        ureq::Agent::new_with_config(ureq::Agent::config_builder().timeout_global(Some(ANSWER)).proxy(None).build());
    let mut responses = Responses::default();
    for address in &options.monitor {
        let url = format!("{}/jsz?config=true", address.trim_end_matches('/'));
        match agent.get(&url).call().and_then(|mut answer| answer.body_mut().read_to_string()) {
            Ok(text) => {
                let said = serde_json::from_str(&text)
                    .map_err(|error| format!("{url} does not answer as a NATS server does: {error}"))?;
                responses.statuses.push((address.clone(), said));
            }
            Err(error) if is_silence(&error) => responses.silent.push((address.clone(), error.to_string())),
            Err(error) => return Err(format!("{url} does not say whether the server syncs each message: {error}")),
        }
    }
    Ok(responses)
}

/// Returns true if no server responded, for example because it is away.
fn is_silence(error: &ureq::Error) -> bool {
    use ureq::Error;
    matches!(error, Error::Io(_) | Error::Timeout(_) | Error::HostNotFound | Error::ConnectionFailed)
}

/// Returns the problem of the servers.
pub(crate) fn judge(responses: &Responses) -> Result<(), String> {
    if responses.statuses.is_empty() && responses.silent.is_empty() {
        return Err(format!(
            "whether the NATS servers sync each message cannot be seen: name the monitoring address of each (`http_port`), and {SYNC}"
        ));
    }
    if let Some((address, _)) = responses.statuses.iter().find(|(_, said)| !said.config.sync_always) {
        return Err(format!("the NATS server of {address} does not sync each message: {SYNC}"));
    }
    if responses.statuses.is_empty() {
        return Err(format!("{}: at least one NATS server has to answer, and {SYNC}", responses.silence()));
    }
    let ids: BTreeSet<&str> = responses.statuses.iter().map(|(_, said)| said.server_id.as_str()).collect();
    let silent: BTreeSet<&str> = responses.silent.iter().map(|(address, _)| address.as_str()).collect();
    let servers = ids.len() + silent.len();
    let sizes =
        responses.statuses.iter().filter_map(|(_, said)| said.meta_cluster.as_ref()).map(|meta| meta.cluster_size);
    let size = sizes.max().unwrap_or(1);
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
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::TcpListener;

    const SYNCED: &str = r#"{"server_id":"A","config":{"sync_always":true},"meta_cluster":{"cluster_size":3}}"#;

    fn judged(texts: &[&str]) -> Result<(), String> {
        let said = texts.iter().map(|text| serde_json::from_str(text).unwrap());
        let said = said.enumerate().map(|(n, said)| (format!("http://n{n}"), said)).collect();
        judge(&Responses { statuses: said, silent: Vec::new() })
    }

    /// Starts a monitoring address that responds once.
    fn monitor(status: &'static str, body: &'static str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            // The request ends with an empty line.
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let bytes = body.len();
            write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {bytes}\r\nConnection: close\r\n\r\n{body}").unwrap();
        });
        address
    }

    fn checked(monitor: &[&str]) -> Result<(), String> {
        let monitor = monitor.iter().map(|address| (*address).to_owned()).collect();
        check(&NatsOptions { monitor, ..NatsOptions::default() }).map_err(|wrong| wrong.to_string())
    }

    #[test]
    fn servers_that_do_not_answer_are_left_out_while_one_does() {
        // Nothing listens there.
        let (away, other) = ("http://127.0.0.1:1", "http://127.0.0.1:2");
        assert_eq!(checked(&[away, &monitor("200 OK", SYNCED), other]), Ok(()));
        // One that is named twice counts once.
        let said = checked(&[away, &monitor("200 OK", SYNCED), away]).unwrap_err();
        assert!(said.contains("of 3 NATS servers 2 are named"), "{said}");
        let said = checked(&[away, other]).unwrap_err();
        assert!([away, other, "does not say", "at least one"].iter().all(|words| said.contains(words)), "{said}");
        let lazy = monitor("200 OK", r#"{"server_id":"D","config":{"sync_interval":120000000000}}"#);
        let said = checked(&[away, &lazy]).unwrap_err();
        assert!(said.contains(&format!("{lazy} does not sync each message")), "{said}");
        // Something responds that is no NATS server.
        for (status, body) in [("200 OK", "hello"), ("404 Not Found", "")] {
            let wrong = monitor(status, body);
            let said = checked(&[&wrong, &monitor("200 OK", SYNCED)]).unwrap_err();
            assert!(said.contains(&wrong), "{said}");
        }
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
