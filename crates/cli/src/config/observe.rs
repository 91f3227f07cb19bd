//! The settings of logs, metrics and traces.

use super::setting::{Setting, text, within};
use crate::units;
use std::net::{Ipv4Addr, SocketAddr};
use toml::Value;

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        key: "log.format",
        help: "Form of log lines: \"text\", or \"json\" for one object a line.",
        get: |c| Value::String(c.log_format.to_string()),
        set: |c, v| {
            c.log_format = text(v)?.parse()?;
            Ok(())
        },
    },
    duration!("log.slow", "A request that takes longer is logged with its cost; 0s: none is.", server.slow, "0s", "1d"),
    Setting {
        key: "log.slow_literals",
        help: "Whether that line has the request's query string, and with it what its client looked for.",
        get: |c| Value::Boolean(c.server.slow_literals),
        set: |c, v| v.as_bool().map(|b| c.server.slow_literals = b).ok_or_else(|| "expected true or false".to_owned()),
    },
    Setting {
        key: "metrics.listen",
        help: "Port on this machine, or address and port, at which /metrics is served without a token; empty: none.",
        get: |c| Value::String(c.metrics_listen.map_or_else(String::new, |address| address.to_string())),
        set: |c, v| {
            c.metrics_listen = address(&text(v)?)?;
            Ok(())
        },
    },
    Setting {
        key: "traces.endpoint",
        help: "URL of the collector that takes traces over OTLP (http/protobuf), such as http://127.0.0.1:4318; empty: none are recorded.",
        get: |c| Value::String(c.traces.endpoint.clone().unwrap_or_default()),
        set: |c, v| {
            let url = text(v)?;
            if !url.is_empty() && !url.starts_with("http://") && !url.starts_with("https://") {
                return Err(format!("{url:?}: expected a URL such as http://127.0.0.1:4318"));
            }
            c.traces.endpoint = (!url.is_empty()).then_some(url);
            Ok(())
        },
    },
    Setting {
        key: "traces.sample",
        help: "Share of requests that are recorded where the caller has not decided, 0 to 1.",
        get: |c| Value::Float(c.traces.sample),
        set: |c, v| {
            let share = v.as_float().or_else(|| v.as_integer().map(|n| n as f64)).filter(|n| (0.0..=1.0).contains(n));
            c.traces.sample = share.ok_or("expected a number from 0 to 1")?;
            Ok(())
        },
    },
    count!(
        "traces.parents_per_second",
        "Max traces a second that are recorded because their callers record them.",
        traces.parents_per_second,
        0,
        1_000_000
    ),
    count!("traces.queue_max", "Max spans that wait to be sent; more are dropped.", traces.queue_max, 1, 10_000_000),
];

/// Which requests are recorded, and where the records are sent.
#[derive(Debug, Clone)]
pub struct Traces {
    /// The collector: its base URL, or that of its traces; `None`: nothing is recorded.
    pub endpoint: Option<String>,
    /// Share of requests recorded if the caller has not decided, 0 to 1.
    pub sample: f64,
    /// Max traces per second recorded at the request of callers.
    pub parents_per_second: u32,
    /// Max spans queued for sending.
    pub queue_max: usize,
}

impl Default for Traces {
    fn default() -> Traces {
        Traces { endpoint: None, sample: 0.01, parents_per_second: 100, queue_max: 8192 }
    }
}

/// A port without a host is on this machine.
fn address(text: &str) -> Result<Option<SocketAddr>, String> {
    match (text, text.parse::<u16>()) {
        ("", _) => Ok(None),
        (_, Ok(port)) => Ok(Some((Ipv4Addr::LOCALHOST, port).into())),
        _ => text
            .parse()
            .map(Some)
            .map_err(|_| format!("{text:?}: expected a port, or an address such as 127.0.0.1:9117")),
    }
}
