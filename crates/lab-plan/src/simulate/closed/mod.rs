//! Users who wait for each answer, over processes on machines: how many answers a second, and how long each takes.
//!
//! A request visits processes one after another and needs processor time in each, as a query passes a gateway, an owner and the gateway
//! again. Processes of a machine share its processors evenly. A user asks again when the answer is there. So it is a closed network of
//! queues under processor sharing (Baskett, Chandy, Muntz and Palacios 1975).

mod run;
#[cfg(test)]
mod tests;

pub use run::run;

use super::draw::Times;
use serde::{Deserialize, Serialize};

/// Users, machines and the processes on them: the shape of the scenario file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClosedNetwork {
    /// Always `closed`.
    pub kind: String,
    /// What the page of results says it is.
    #[serde(default)]
    pub about: String,
    /// The seed of all chance.
    pub seed: u64,
    /// Seconds that are counted.
    pub seconds: f64,
    /// Seconds before those.
    #[serde(default)]
    pub warm_up_s: f64,
    /// Processes of one kind each.
    pub station: Vec<Station>,
    /// Users of one kind each.
    pub population: Vec<Population>,
    /// Machines that several stations share.
    #[serde(default)]
    pub machine: Vec<Machine>,
}

/// Processes of one kind. Requests go to them in turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Station {
    /// Unique name.
    pub name: String,
    /// How many there are.
    #[serde(default = "one")]
    pub processes: u32,
    /// Processors of each, where each has a machine of its own.
    #[serde(default = "one")]
    pub cores: u32,
    /// Name of the machine that all of them are on.
    #[serde(default)]
    pub machine: String,
}

/// A machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Unique name.
    pub name: String,
    /// Its processors.
    pub cores: u32,
}

/// Users who ask alike.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Population {
    /// Unique name.
    pub name: String,
    /// How many there are.
    pub users: u32,
    /// Between an answer and the next request.
    #[serde(default)]
    pub think: Times,
    /// The visits of a request, in order.
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

/// Max visits of a trial, by the time that they would take alone.
const VISITS_MAX: f64 = 1e8;

impl ClosedNetwork {
    /// The error in it, as a sentence.
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

/// The answer of `lab simulate` for closed networks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClosedOutcome {
    /// Answers a second, of all users.
    pub per_second: f64,
    /// By population.
    pub populations: Vec<PopulationOutcome>,
    /// Busy share of the processors, by machine: named machines, then the stations' own.
    pub machines: Vec<MachineOutcome>,
}

/// The answers to the users of a population.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PopulationOutcome {
    /// Its name.
    pub name: String,
    /// Answers a second.
    pub per_second: f64,
    /// Mean time to an answer.
    pub mean_ms: f64,
    /// Median.
    pub p50_ms: f64,
    /// 95th percentile.
    pub p95_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
}

/// How busy a machine was.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MachineOutcome {
    /// Its name, or that of the station, with a number where that has several.
    pub name: String,
    /// Share of its processors' time.
    pub used: f64,
}
