//! Profiles: the JSON in which operators say how scan servers are tried.

use crate::Invalid;
use serde::Deserialize;
use std::time::Duration;

/// Where servers are waited for without limit, the request's own deadline is the limit.
const WAIT_FOR_EVER: Duration = Duration::from_secs(100 * 365 * 86_400);

/// How many servers a plan takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ServerShare {
    /// This many, or all if there are fewer.
    Count(usize),
    /// This share of all, in (0, 100] percent; at least one.
    Percent(f64),
}

impl ServerShare {
    /// The number of servers out of `total`, which is at least 1.
    pub fn of(self, total: usize) -> usize {
        match self {
            ServerShare::Count(n) => n.min(total),
            // At least one: a small share of few servers rounds to none, and a scan needs a candidate.
            ServerShare::Percent(p) => ((p / 100.0 * total as f64).round() as usize).clamp(1, total),
        }
    }
}

/// What one attempt does.
#[derive(Debug, Clone, PartialEq)]
pub struct AttemptPlan {
    /// How many servers are candidates.
    pub servers: ServerShare,
    /// How long a server may leave the scan unstarted.
    pub busy_timeout: Duration,
    /// Decides the order of servers together with the tablet. Plans of one salt extend each other.
    pub salt: String,
}

/// How the scans of a type try scan servers.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// Whether scans take it that name no type, or one that no profile names.
    pub is_default: bool,
    /// The scan types that take it.
    pub scan_types: Vec<String>,
    /// The group of servers that it chooses from.
    pub group: String,
    /// No busy timeout grows past this.
    pub max_busy_timeout: Duration,
    /// Growth of the busy timeout with each attempt past the last plan.
    pub busy_timeout_multiplier: u32,
    /// How long a scan waits for a scan server if there is none, before it uses the tablet's own server.
    pub time_to_wait: Duration,
    /// One plan for each attempt; the last one serves all further attempts. Never empty.
    pub attempt_plans: Vec<AttemptPlan>,
}

/// Every profile of a client, exactly one of them the default.
#[derive(Debug, Clone, PartialEq)]
pub struct Profiles(Vec<Profile>);

impl Default for Profiles {
    /// 3 servers, then 13 others, then all, 33 ms each.
    fn default() -> Self {
        let plan = |servers, salt: &str| AttemptPlan {
            servers,
            busy_timeout: Duration::from_millis(33),
            salt: salt.to_owned(),
        };
        Profiles(vec![Profile {
            is_default: true,
            scan_types: Vec::new(),
            group: "default".to_owned(),
            max_busy_timeout: Duration::from_secs(300),
            busy_timeout_multiplier: 8,
            time_to_wait: WAIT_FOR_EVER,
            attempt_plans: vec![
                plan(ServerShare::Count(3), "one"),
                plan(ServerShare::Count(13), "two"),
                plan(ServerShare::Percent(100.0), ""),
            ],
        }])
    }
}

impl Profiles {
    /// Reads a JSON list of profiles.
    pub fn parse(json: &str) -> Result<Profiles, Invalid> {
        let raw: Vec<RawProfile> = serde_json::from_str(json).map_err(|e| {
            let expected = "expected a JSON list of profiles with attemptPlans";
            Invalid::new(format!("{e}: {expected}")).at_line(e.line() as u64)
        })?;
        let profiles: Vec<Profile> =
            raw.into_iter().enumerate().map(|(i, raw)| raw.check(i)).collect::<Result<_, _>>()?;
        match profiles.iter().filter(|profile| profile.is_default).count() {
            // Exactly one, so that a scan of any type has a profile.
            1 => {}
            n => {
                return Err(Invalid::field("isDefault", format!("{n} profiles are the default: expected exactly one")));
            }
        }
        let mut seen = std::collections::BTreeSet::new();
        for name in profiles.iter().flat_map(|profile| &profile.scan_types) {
            // Otherwise the order of the list would decide silently which profile applies.
            if !seen.insert(name) {
                let detail = format!("{name:?} is named twice: a scan type belongs to one profile");
                return Err(Invalid::field("scanTypeActivations", detail));
            }
        }
        Ok(Profiles(profiles))
    }

    /// The profile of a scan type; the default where no profile names it.
    pub fn for_scan_type(&self, scan_type: Option<&str>) -> &Profile {
        let named = |profile: &&Profile| profile.scan_types.iter().any(|name| Some(name.as_str()) == scan_type);
        let fallback = || self.0.iter().find(|profile| profile.is_default).unwrap_or(&self.0[0]);
        self.0.iter().find(named).unwrap_or_else(fallback)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawProfile {
    #[serde(default)]
    is_default: bool,
    #[serde(default)]
    scan_type_activations: Vec<String>,
    group: Option<String>,
    max_busy_timeout: Option<String>,
    busy_timeout_multiplier: Option<i64>,
    time_to_wait_for_scan_servers: Option<String>,
    attempt_plans: Vec<RawPlan>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawPlan {
    servers: String,
    busy_timeout: String,
    #[serde(default)]
    salt: String,
}

impl RawProfile {
    fn check(self, index: usize) -> Result<Profile, Invalid> {
        let at = |field: &str| format!("profile {}, {field}", index + 1);
        let read = |field: &str, text: Option<String>, default| match text {
            Some(text) => duration(&text).map_err(|detail| Invalid::field(at(field), detail)),
            None => Ok(default),
        };
        if self.attempt_plans.is_empty() {
            return Err(Invalid::field(at("attemptPlans"), "the list is empty: expected at least one plan"));
        }
        let multiplier = self.busy_timeout_multiplier.unwrap_or(8);
        let busy_timeout_multiplier = u32::try_from(multiplier).ok().filter(|m| *m >= 1).ok_or_else(|| {
            let detail = format!("{multiplier}: expected a whole number of at least 1");
            Invalid::field(at("busyTimeoutMultiplier"), detail)
        })?;
        let plan = |(n, raw): (usize, RawPlan)| {
            let blame = |field: &str, detail| Invalid::field(at(&format!("attempt plan {}, {field}", n + 1)), detail);
            Ok(AttemptPlan {
                servers: share(&raw.servers).map_err(|detail| blame("servers", detail))?,
                busy_timeout: duration(&raw.busy_timeout).map_err(|detail| blame("busyTimeout", detail))?,
                salt: raw.salt,
            })
        };
        Ok(Profile {
            is_default: self.is_default,
            scan_types: self.scan_type_activations,
            group: self.group.unwrap_or_else(|| "default".to_owned()),
            max_busy_timeout: read("maxBusyTimeout", self.max_busy_timeout, Duration::from_secs(300))?,
            busy_timeout_multiplier,
            time_to_wait: read("timeToWaitForScanServers", self.time_to_wait_for_scan_servers, WAIT_FOR_EVER)?,
            attempt_plans: self.attempt_plans.into_iter().enumerate().map(plan).collect::<Result<_, Invalid>>()?,
        })
    }
}

fn share(text: &str) -> Result<ServerShare, String> {
    let text = text.trim();
    let read = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse().ok().filter(|p| *p > 0.0 && *p <= 100.0).map(ServerShare::Percent),
        None => text.parse().ok().filter(|n| *n > 0).map(ServerShare::Count),
    };
    read.ok_or_else(|| format!("{text:?}: expected a count such as \"3\", or a share in (0,100] such as \"50%\""))
}

/// Reads a duration with one of the units d, h, m, s, ms; seconds without one.
fn duration(text: &str) -> Result<Duration, String> {
    let trimmed = text.trim();
    let digits = trimmed.find(|c: char| !c.is_ascii_digit()).unwrap_or(trimmed.len());
    let number: Option<u64> = trimmed[..digits].parse().ok();
    let unit_ms = match trimmed[digits..].trim() {
        "d" => Some(86_400_000),
        "h" => Some(3_600_000),
        "m" => Some(60_000),
        "s" | "" => Some(1_000),
        "ms" => Some(1),
        _ => None,
    };
    let ms = number.zip(unit_ms).and_then(|(n, unit): (u64, u64)| n.checked_mul(unit));
    ms.map(Duration::from_millis).ok_or_else(|| format!("{text:?}: expected a duration such as 33ms, 5m or 1h"))
}
