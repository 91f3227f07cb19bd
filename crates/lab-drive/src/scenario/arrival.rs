//! Arrival: the due times of requests, independent of earlier responses.

use super::seconds::not_negative as positive;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The arrival process of a population.
///
/// *Open* processes (constant, poisson, ramp, steps, burst, replay) do not wait for responses, as users of a public
/// service do not. *Closed* ones do, as a pool of workers does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Arrival {
    /// A number of users, each with one request in flight and a think time between a response and the next request.
    Closed {
        /// Number of users.
        users: u32,
        /// Pause after each response.
        #[serde(default)]
        think_s: f64,
        /// Distribution of the pause.
        #[serde(default)]
        think: ThinkTime,
    },
    /// A fixed rate, evenly spaced.
    Constant {
        /// Requests per second.
        rate: f64,
    },
    /// A fixed mean rate; arrivals are independent of each other.
    Poisson {
        /// Requests per second.
        rate: f64,
    },
    /// From one rate to another, linearly over the load.
    Ramp {
        /// Requests per second at the start.
        from: f64,
        /// Requests per second at the end.
        to: f64,
    },
    /// One rate after another.
    Steps {
        /// Requests per second.
        rates: Vec<f64>,
        /// Length of each step.
        each_s: f64,
    },
    /// A number of requests at an interval; 0: all at once.
    Burst {
        /// Number of requests.
        count: u32,
        /// Seconds between two requests.
        #[serde(default)]
        interval_s: f64,
    },
    /// Bursts sent at once; the gap counts from the last response of the previous burst.
    Onoff {
        /// Number of bursts.
        bursts: u32,
        /// Requests of each burst.
        per_burst: u32,
        /// Seconds from the last response to the next burst.
        gap_s: f64,
    },
    /// The requests of an access log (common or combined form), at their times.
    Replay {
        /// The log file.
        file: PathBuf,
        /// Speed-up; 2 means twice as fast.
        #[serde(default = "once")]
        speed: f64,
    },
}

/// The think time of a user of a closed population.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ThinkTime {
    /// Constant.
    #[default]
    Fixed,
    /// Exponentially distributed.
    Exponential,
}

fn once() -> f64 {
    1.0
}

/// Rates above this are a mistake in the scenario, not a load that one core can send.
const RATE_MAX: f64 = 10_000_000.0;

impl Arrival {
    /// Returns whether it ends by itself, so that the measured phase lasts until then.
    pub fn ends(&self) -> bool {
        matches!(self, Arrival::Burst { .. } | Arrival::Onoff { .. } | Arrival::Replay { .. })
    }

    /// Returns whether it is an access log that is replayed.
    pub fn is_replay(&self) -> bool {
        matches!(self, Arrival::Replay { .. })
    }

    pub(super) fn check(&self, whose: &str) -> Result<(), String> {
        let rate = |name: &str, rate: f64| match rate {
            r if r > 0.0 && r <= RATE_MAX => Ok(()),
            r => Err(format!("{whose}.{name} = {r}: expected requests a second above 0 and at most {RATE_MAX}")),
        };
        match self {
            Arrival::Closed { users, think_s, .. } => {
                if *users == 0 || *users > 100_000 {
                    return Err(format!("{whose}.users = {users}: expected 1 to 100000"));
                }
                positive(&format!("{whose}.think_s"), *think_s)
            }
            Arrival::Constant { rate: r } | Arrival::Poisson { rate: r } => rate("rate", *r),
            Arrival::Ramp { from, to } => {
                positive(&format!("{whose}.from"), *from)?;
                positive(&format!("{whose}.to"), *to)?;
                // A ramp may begin or end at 0, but not do both.
                rate("to (or from)", from.max(*to))
            }
            Arrival::Steps { rates, each_s } => {
                if rates.is_empty() {
                    return Err(format!("{whose}.rates is empty: expected requests a second, such as [100, 200, 400]"));
                }
                rates.iter().try_for_each(|r| rate("rates", *r))?;
                match each_s {
                    s if *s > 0.0 && s.is_finite() => Ok(()),
                    s => Err(format!("{whose}.each_s = {s}: expected seconds above 0")),
                }
            }
            Arrival::Burst { count, interval_s } => {
                if *count == 0 {
                    return Err(format!("{whose}.count = 0: expected at least one request"));
                }
                positive(&format!("{whose}.interval_s"), *interval_s)
            }
            Arrival::Onoff { bursts, per_burst, gap_s } => {
                if *bursts == 0 || *per_burst == 0 {
                    return Err(format!("{whose}: bursts and per_burst must be at least 1"));
                }
                positive(&format!("{whose}.gap_s"), *gap_s)
            }
            Arrival::Replay { speed, .. } if !(*speed > 0.0 && speed.is_finite()) => {
                Err(format!("{whose}.speed = {speed}: expected a factor above 0"))
            }
            Arrival::Replay { .. } => Ok(()),
        }
    }
}
