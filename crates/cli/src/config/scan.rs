//! Scan servers, and how gateways use them.

use super::setting::{Setting, text, truth, within};
use crate::units;
use std::time::Duration;
use toml::Value;

/// The settings `cluster.scan.*`.
#[derive(Debug, Clone)]
pub struct Scan {
    /// Address where a scan server serves gateways; empty: none.
    pub listen: String,
    /// Address by which gateways reach it; empty: the listening address.
    pub advertise: String,
    /// The group it belongs to.
    pub group: String,
    /// Max scans that work on a batch at a time.
    pub places: usize,
    /// Max scans started at a time.
    pub started: usize,
    /// Max scans waiting to start.
    pub waiting: usize,
    /// Whether a scan server also serves writes in the log that are not flushed yet.
    pub follow_log: bool,
    /// File with the profiles by which gateways select scan servers; empty: the default profile.
    pub profiles: String,
    /// What to do with a query when there is no scan server.
    pub absent: String,
    /// Max queries per second that an owner accepts in that case.
    pub fallback_per_second: f64,
    /// Burst of such queries, after a pause.
    pub fallback_burst: f64,
    /// Delay after which a second scan server is asked if the first has not started.
    pub hedge_after: Duration,
    /// Max share of queries hedged in this way.
    pub hedge_share: f64,
    /// Burst of such queries, after quiet times.
    pub hedge_burst: f64,
}

impl Default for Scan {
    fn default() -> Scan {
        Scan {
            listen: String::new(),
            advertise: String::new(),
            group: "default".to_owned(),
            places: 16,
            started: 256,
            waiting: 1_024,
            follow_log: false,
            profiles: String::new(),
            absent: "fallback".to_owned(),
            fallback_per_second: 200.0,
            fallback_burst: 400.0,
            hedge_after: Duration::from_millis(250),
            hedge_share: 0.05,
            hedge_burst: 10.0,
        }
    }
}

/// A number, checked where it is used, together with the other settings of its rule.
macro_rules! number {
    ($key:literal, $help:literal, $field:ident) => {
        Setting {
            key: $key,
            help: $help,
            get: |c| Value::Float(c.cluster.scan.$field),
            set: |c, v| {
                let number = v.as_float().or_else(|| v.as_integer().map(|n| n as f64));
                c.cluster.scan.$field =
                    number.filter(|n| n.is_finite() && *n >= 0.0).ok_or("expected a number of 0 or more")?;
                Ok(())
            },
        }
    };
}

pub(super) const SETTINGS: &[Setting] = &[
    plain!(
        "cluster.scan.listen",
        "Address and port where a scan server answers gateways; empty: it answers clients alone.",
        cluster.scan.listen
    ),
    plain!(
        "cluster.scan.advertise",
        "Host and port by which gateways reach a scan server; empty: cluster.scan.listen.",
        cluster.scan.advertise
    ),
    Setting {
        key: "cluster.scan.group",
        help: "Group that a scan server belongs to, as profiles name groups.",
        get: |c| Value::String(c.cluster.scan.group.clone()),
        set: |c, v| {
            c.cluster.scan.group = Some(text(v)?).filter(|name| !name.is_empty()).ok_or("expected a name")?;
            Ok(())
        },
    },
    count!(
        "cluster.scan.places",
        "Max questions of gateways that a scan server works on at a time.",
        cluster.scan.places,
        1,
        4096
    ),
    count!(
        "cluster.scan.started",
        "Max questions that have started at a scan server and not ended: each holds memory.",
        cluster.scan.started,
        1,
        65_536
    ),
    count!(
        "cluster.scan.waiting",
        "Max questions that wait for their start at a scan server; more are answered busy at once.",
        cluster.scan.waiting,
        1,
        1_000_000
    ),
    Setting {
        key: "cluster.scan.follow_log",
        help: "Whether servers of the role scan read the log on, and show what is not flushed yet: of collections with made ids, where \
               events are not replaced.",
        get: |c| Value::Boolean(c.cluster.scan.follow_log),
        set: |c, v| truth(v).map(|b| c.cluster.scan.follow_log = b),
    },
    plain!(
        "cluster.scan.profiles",
        "File with the profiles by which gateways choose scan servers, in Accumulo's JSON; empty: one default profile.",
        cluster.scan.profiles
    ),
    Setting {
        key: "cluster.scan.absent",
        help: "What an eventual read does at a gateway that finds no scan server: wait, fail, or fallback to the owner.",
        get: |c| Value::String(c.cluster.scan.absent.clone()),
        set: |c, v| {
            let rule = text(v)?;
            rule.parse::<meridian_model::policy::selector::NoServerRule>().map_err(|e| e.to_string())?;
            c.cluster.scan.absent = rule;
            Ok(())
        },
    },
    number!(
        "cluster.scan.fallback_per_second",
        "Max eventual reads a second, counted by partition, that a gateway sends to the owner for want of a scan server.",
        fallback_per_second
    ),
    number!("cluster.scan.fallback_burst", "The same at once, after a pause.", fallback_burst),
    duration!(
        "cluster.scan.hedge_after",
        "How long a scan server may take to begin before a gateway asks a second one beside it.",
        cluster.scan.hedge_after,
        "1ms",
        "1h"
    ),
    number!("cluster.scan.hedge_share", "Share of questions for which that is done, 0 to 1.", hedge_share),
    number!("cluster.scan.hedge_burst", "The same at once, after quiet times.", hedge_burst),
];
