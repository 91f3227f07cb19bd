//! Profiles: the JSON with which operators configure how scan servers are tried.

use std::time::Duration;

/// Limit of a wait configured as unlimited; the request's own deadline applies.
pub(super) const WAIT_FOR_EVER: Duration = Duration::from_secs(100 * 365 * 86_400);

/// The number of servers in a plan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ServerShare {
    /// This many, or all if there are fewer.
    Count(usize),
    /// This share of all, in (0, 100] percent; at least one server.
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

/// The plan of one attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct AttemptPlan {
    /// Number of candidate servers.
    pub servers: ServerShare,
    /// How long a server may leave the scan unstarted.
    pub busy_timeout: Duration,
    /// Determines the order of servers together with the tablet. Plans with one salt extend each other.
    pub salt: String,
}

/// How scans of a type try scan servers.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// Whether it applies to scans that name no type, or one that no profile names.
    pub is_default: bool,
    /// The scan types to which it applies.
    pub scan_types: Vec<String>,
    /// The group of servers that it chooses from.
    pub group: String,
    /// Max busy timeout.
    pub max_busy_timeout: Duration,
    /// Growth of the busy timeout with each attempt past the last plan.
    pub busy_timeout_multiplier: u32,
    /// How long a scan waits for a scan server if there is none, before it uses the tablet's own server.
    pub time_to_wait: Duration,
    /// One plan for each attempt; the last one serves all further attempts. Never empty.
    pub attempt_plans: Vec<AttemptPlan>,
}

/// Every profile of a client; exactly one is the default.
#[derive(Debug, Clone, PartialEq)]
pub struct Profiles(pub(super) Vec<Profile>);

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
    /// The profile of a scan type; the default if no profile names it.
    pub fn for_scan_type(&self, scan_type: Option<&str>) -> &Profile {
        let named = |profile: &&Profile| profile.scan_types.iter().any(|name| Some(name.as_str()) == scan_type);
        let fallback = || self.0.iter().find(|profile| profile.is_default).unwrap_or(&self.0[0]);
        self.0.iter().find(named).unwrap_or_else(fallback)
    }
}
