//! Users who wait for each response, over processes on machines: throughput and response times.
//!
//! A request visits processes in turn and needs processor time in each, as a query passes a gateway, an owner and the
//! gateway again. Processes of a machine share its processors evenly. A user asks again once the response has arrived.
//! So it is a closed network of queues under processor sharing (Baskett, Chandy, Muntz and Palacios 1975).

mod run;
#[cfg(test)]
mod tests;

pub use run::run;

use super::draw::Times;
use serde::{Deserialize, Serialize};

/// Users, machines and their processes: the format of the scenario file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClosedNetwork {
    /// Always `closed`.
    pub kind: String,
    /// Title for the page of results.
    #[serde(default)]
    pub about: String,
    /// Seed of all randomness.
    pub seed: u64,
    /// Length of the measured phase in seconds.
    pub seconds: f64,
    /// Length of the warm-up in seconds.
    #[serde(default)]
    pub warm_up_s: f64,
    /// Groups of identical processes.
    pub station: Vec<Station>,
    /// Groups of identical users.
    pub population: Vec<Population>,
    /// Machines that several stations share.
    #[serde(default)]
    pub machine: Vec<Machine>,
}

/// Identical processes. Requests go to them in turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Station {
    /// Unique name.
    pub name: String,
    /// Number of processes.
    #[serde(default = "one")]
    pub processes: u32,
    /// Processors of each process, if each has a machine of its own.
    #[serde(default = "one")]
    pub cores: u32,
    /// Name of the machine that all of them share.
    #[serde(default)]
    pub machine: String,
}

/// A machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Unique name.
    pub name: String,
    /// Number of processors.
    pub cores: u32,
}

/// Identical users.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Population {
    /// Unique name.
    pub name: String,
    /// Number of users.
    pub users: u32,
    /// Think time between a response and the next request.
    #[serde(default)]
    pub think: Times,
    /// Visits of a request, in order.
    pub visits: Vec<Visit>,
}

/// Work at a station.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Visit {
    /// Name of the station.
    pub station: String,
    /// Processor time there.
    pub service: Times,
}

fn one() -> u32 {
    1
}

/// Max visits of a trial, estimated from the time of each visit alone.
const VISITS_MAX: f64 = 1e8;

impl ClosedNetwork {
    /// Returns the error in it, as a sentence.
    pub fn check(&self) -> Result<(), String> {
        let within = |name: &str, x: f64, min: f64, max: f64| match x >= min && x <= max {
            true => Ok(()),
            false => Err(format!("{name} = {x}: expected {min} to {max}")),
        };
        within("seconds", self.seconds, 0.001, 1e6)?;
        within("warm_up_s", self.warm_up_s, 0.0, 1e6)?;
        once("machine", self.machine.iter().map(|machine| &machine.name))?;
        once("station", self.station.iter().map(|station| &station.name))?;
        once("population", self.population.iter().map(|population| &population.name))?;
        for machine in &self.machine {
            within(&format!("machine.{}.cores", machine.name), f64::from(machine.cores), 1.0, 1024.0)?;
        }
        for station in &self.station {
            let key = |field: &str| format!("station.{}.{field}", station.name);
            within(&key("processes"), f64::from(station.processes), 1.0, 1e4)?;
            within(&key("cores"), f64::from(station.cores), 1.0, 1024.0)?;
            if !station.machine.is_empty() && !self.machine.iter().any(|machine| machine.name == station.machine) {
                return Err(format!("{} = {:?}: expected the name of a [[machine]]", key("machine"), station.machine));
            }
        }
        if self.population.is_empty() {
            return Err("population: expected at least one entry [[population]]".to_owned());
        }
        let mut visits = 0.0;
        for population in &self.population {
            let key = |field: &str| format!("population.{}.{field}", population.name);
            within(&key("users"), f64::from(population.users), 0.0, 1e6)?;
            population.think.check().map_err(|why| format!("{}: {why}", key("think")))?;
            let mut alone = population.think.mean_s;
            for visit in &population.visits {
                if !self.station.iter().any(|station| station.name == visit.station) {
                    return Err(format!("{}: {:?}: expected the name of a [[station]]", key("visits"), visit.station));
                }
                visit.service.check().map_err(|why| format!("{}: {why}", key("visits")))?;
                alone += visit.service.mean_s;
            }
            if alone < 1e-6 {
                return Err(format!("{}: expected at least 1 microsecond of work or thought a request", key("visits")));
            }
            visits +=
                f64::from(population.users) * population.visits.len() as f64 * (self.seconds + self.warm_up_s) / alone;
        }
        within("visits of all users, if none waited", visits, 0.0, VISITS_MAX)
    }
}

/// Refuses a name that two entries have.
fn once<'a>(kind: &str, names: impl Iterator<Item = &'a String>) -> Result<(), String> {
    let mut seen = std::collections::BTreeSet::new();
    names.into_iter().try_for_each(|name| match seen.insert(name) {
        true => Ok(()),
        false => Err(format!("{kind}: two entries are named {name:?}")),
    })
}

/// The result of `lab simulate` for closed networks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClosedOutcome {
    /// Responses per second, over all users.
    pub per_second: f64,
    /// Results by population.
    pub populations: Vec<PopulationOutcome>,
    /// Utilisation of the processors, by machine with a process: named machines, then the stations' own.
    pub machines: Vec<MachineOutcome>,
}

/// The responses to the users of a population.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PopulationOutcome {
    /// Its name.
    pub name: String,
    /// Responses per second.
    pub per_second: f64,
    /// Mean response time.
    pub mean_ms: f64,
    /// Median response time.
    pub p50_ms: f64,
    /// 95th percentile.
    pub p95_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
}

/// Utilisation of a machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MachineOutcome {
    /// Its name, or that of the station, numbered if that has several.
    pub name: String,
    /// Busy share of its processors' time.
    pub used: f64,
}
