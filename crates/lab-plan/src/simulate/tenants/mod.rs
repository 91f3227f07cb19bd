//! Tenants that share a server: open arrivals, processors, and the rule that runs or refuses questions.
//!
//! Questions of each tenant arrive without memory, at a rate, and need processor time. Running questions share the
//! processors evenly. Clients leave at their deadline; refused and disappointed ones may return ([`Users`]). The rule
//! is [`Rule::Fair`], the server's own ([`meridian_model::policy::admission`]), or [`Rule::Queue`], the plain queue
//! that it replaced, kept for comparison. Before the rule, a tenant's quota of requests may refuse a question, as in
//! the server ([`meridian_model::policy::quota`]).

mod outcome;
mod rules;
mod run;
#[cfg(test)]
mod tests;

pub use outcome::{TenantOutcome, TenantsOutcome};
pub use run::run;

use super::draw::Times;
use meridian_model::policy::admission::{Class, Settings};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A server and its tenants: the format of the scenario file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharedServer {
    /// Always `tenants`.
    pub kind: String,
    /// Title for the page of results.
    #[serde(default)]
    pub about: String,
    /// Seed of all randomness.
    pub seed: u64,
    /// Number of processors of the server.
    pub cores: u32,
    /// Length of the measured phase in seconds, in which questions arrive.
    pub seconds: f64,
    /// The rule that decides which questions run and which are refused.
    pub rule: Rule,
    /// Processor time of a refusal, in seconds.
    #[serde(default)]
    pub refusal_s: f64,
    /// Whether the server stops work whose client has left.
    #[serde(default = "yes")]
    pub cancellation: bool,
    /// Parameters of [`Rule::Fair`].
    #[serde(default)]
    pub fair: Fair,
    /// Parameters of [`Rule::Queue`].
    #[serde(default)]
    pub queue: Queue,
    /// The callers. Several entries of one tenant are several kinds of question.
    pub tenant: Vec<Tenant>,
}

/// The rule that picks the questions that run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rule {
    /// Fair queueing by slices.
    Fair,
    /// One queue for all, first in, first out.
    Queue,
}

/// Parameters of fair queueing; by default the server's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Fair {
    /// Slots; 0 for one per processor.
    pub slots: u32,
    /// Max questions of a tenant that run or are paused.
    pub started_max: u32,
    /// Max waiting questions.
    pub waiting_max: u32,
    /// Length of a slice.
    pub slice_s: f64,
    /// Processor time by which an idle tenant may get ahead of others.
    pub credit_s: f64,
    /// Max wait in an overloaded queue.
    pub target_s: f64,
    /// Max wait of an interactive question in any queue.
    pub patience_s: f64,
    /// Processor time of a switch to another question.
    pub switch_s: f64,
}

impl Default for Fair {
    fn default() -> Fair {
        let server = Settings::default();
        Fair {
            slots: 0,
            started_max: server.started_max as u32,
            waiting_max: server.waiting_max as u32,
            slice_s: server.slice.as_secs_f64(),
            credit_s: server.credit.as_secs_f64(),
            target_s: server.target.as_secs_f64(),
            patience_s: server.patience[0].as_secs_f64(),
            switch_s: 20e-6,
        }
    }
}

/// Parameters of the plain queue; by default those of the server before it had tenants.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Queue {
    /// Max running questions.
    pub running_max: u32,
    /// Max waiting questions.
    pub waiting_max: u32,
    /// Max wait.
    pub wait_s: f64,
}

impl Default for Queue {
    fn default() -> Queue {
        Queue { running_max: 64, waiting_max: 256, wait_s: 2.0 }
    }
}

/// The reaction of clients to a refusal, or to their own deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Users {
    /// They leave.
    #[default]
    Never,
    /// They retry at once, up to ten times.
    Impatient,
    /// They retry after the time that the refusal names, 1 to 2 s, up to ten times.
    Obedient,
}

/// A tenant's callers and their questions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tenant {
    /// Unique name of the entry, for dotted keys and results.
    pub name: String,
    /// The tenant that is charged; by default the name.
    #[serde(default)]
    pub tenant: String,
    /// Its weight.
    #[serde(default = "one")]
    pub weight: u32,
    /// Tenant quota of this name, from its first entry; 0 for none.
    #[serde(default)]
    pub requests_per_second: u32,
    /// `interactive`, `batch` or `background`.
    #[serde(default = "interactive")]
    pub class: String,
    /// Questions per second.
    pub rate: f64,
    /// Processor time of a question.
    pub service: Times,
    /// Seconds after which the client leaves.
    pub deadline_s: f64,
    /// The reaction of refused clients.
    #[serde(default)]
    pub users: Users,
    /// When its questions begin.
    #[serde(default)]
    pub from_s: f64,
    /// When its questions end; 0 for the end of the trial.
    #[serde(default)]
    pub to_s: f64,
}

fn yes() -> bool {
    true
}

fn one() -> u32 {
    1
}

fn interactive() -> String {
    Class::Interactive.name().to_owned()
}

/// Max questions of a trial, excluding retries.
const QUESTIONS_MAX: f64 = 2e7;

impl SharedServer {
    /// Returns the error in it, as a sentence.
    pub fn check(&self) -> Result<(), String> {
        let within = |name: &str, x: f64, min: f64, max: f64| match x >= min && x <= max {
            true => Ok(()),
            false => Err(format!("{name} = {x}: expected {min} to {max}")),
        };
        within("cores", f64::from(self.cores), 1.0, 1024.0)?;
        within("seconds", self.seconds, 0.001, 1e6)?;
        within("refusal_s", self.refusal_s, 0.0, 1.0)?;
        within("fair.slots", f64::from(self.fair.slots), 0.0, 1e6)?;
        within("fair.started_max", f64::from(self.fair.started_max), 1.0, 1e6)?;
        within("fair.waiting_max", f64::from(self.fair.waiting_max), 0.0, 1e6)?;
        within("fair.slice_s", self.fair.slice_s, 1e-5, 1e6)?;
        within("fair.credit_s", self.fair.credit_s, 0.0, 1e6)?;
        within("fair.target_s", self.fair.target_s, 0.0, 1e6)?;
        within("fair.patience_s", self.fair.patience_s, 0.0, 1e6)?;
        within("fair.switch_s", self.fair.switch_s, 0.0, 1.0)?;
        within("queue.running_max", f64::from(self.queue.running_max), 1.0, 1e6)?;
        within("queue.waiting_max", f64::from(self.queue.waiting_max), 0.0, 1e6)?;
        within("queue.wait_s", self.queue.wait_s, 0.0, 1e6)?;
        if self.tenant.is_empty() {
            return Err("tenant: expected at least one entry [[tenant]]".to_owned());
        }
        let mut questions = 0.0;
        for (n, tenant) in self.tenant.iter().enumerate() {
            let key = |field: &str| format!("tenant.{}.{field}", tenant.name);
            if self.tenant[..n].iter().any(|other| other.name == tenant.name) {
                return Err(format!("tenant: two entries are named {:?}", tenant.name));
            }
            within(&key("rate"), tenant.rate, 0.0, 1e7)?;
            within(&key("deadline_s"), tenant.deadline_s, 1e-6, 1e6)?;
            within(&key("from_s"), tenant.from_s, 0.0, self.seconds)?;
            within(&key("to_s"), tenant.to_s, 0.0, self.seconds)?;
            within(&key("weight"), f64::from(tenant.weight), 1.0, 1e6)?;
            let first = self.tenant[..n].iter().find(|other| other.account() == tenant.account());
            if let Some(first) = first.filter(|_| tenant.requests_per_second > 0) {
                return Err(format!(
                    "{}: expected it at the tenant's first entry, {:?}",
                    key("requests_per_second"),
                    first.name
                ));
            }
            tenant.service.check().map_err(|why| format!("tenant.{}.service: {why}", tenant.name))?;
            tenant.class().ok_or_else(|| {
                format!("{} = {:?}: expected interactive, batch or background", key("class"), tenant.class)
            })?;
            questions += tenant.rate * (tenant.end_s(self.seconds) - tenant.from_s).max(0.0);
        }
        within("questions of all tenants", questions, 0.0, QUESTIONS_MAX)
    }

    /// Returns the settings of the server's scheduler.
    pub(super) fn settings(&self) -> Settings {
        let server = Settings::default();
        let seconds = Duration::from_secs_f64;
        let slots = if self.fair.slots == 0 { self.cores } else { self.fair.slots };
        let [_, batch, background] = server.patience;
        Settings {
            slots: slots as usize,
            slots_max: slots as usize,
            started_max: self.fair.started_max as usize,
            threads_max: server.threads_max,
            waiting_max: self.fair.waiting_max as usize,
            slice: seconds(self.fair.slice_s),
            credit: seconds(self.fair.credit_s),
            target: seconds(self.fair.target_s),
            patience: [seconds(self.fair.patience_s), batch, background],
        }
    }
}

impl Tenant {
    /// Returns the tenant that its questions are charged to.
    pub(super) fn account(&self) -> &str {
        if self.tenant.is_empty() { &self.name } else { &self.tenant }
    }

    pub(super) fn class(&self) -> Option<Class> {
        Class::ALL.into_iter().find(|class| class.name() == self.class)
    }

    pub(super) fn end_s(&self, seconds: f64) -> f64 {
        if self.to_s > 0.0 { self.to_s } else { seconds }
    }
}
