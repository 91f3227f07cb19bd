//! Checks everything that can fail before the first request: addresses, generators, checks, files. Then builds the
//! populations.

use super::population::PopulationLoad;
use super::replay;
use super::same::ReferenceTarget;
use super::shared::TrialState;
use super::user::UserProfile;
use crate::check::checker::Checker;
use crate::clock::micros;
use crate::generate::{Encoding, Endpoint, Mix};
use crate::protocol::Client;
use crate::protocol::address::{Address, addresses};
use crate::protocol::connection::{Connection, ConnectionPool};
use crate::sample::proc;
use crate::scenario::{Arrival, Order, Population, Scenario, Target};
use meridian_lab_results::error::{LabError, Result};
use meridian_lab_results::record::Phase;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

/// A scenario whose files were read and whose targets are reachable.
#[derive(Debug)]
pub struct PreparedScenario {
    /// Addresses, by target.
    pub targets: Vec<Vec<Address>>,
    /// Checks, by request.
    pub checkers: Rc<[Checker]>,
    /// Whether every arrival waits for responses.
    pub all_closed: bool,
    /// Whether an arrival ends by itself, so that the clock does not determine the end of the load.
    pub any_ends: bool,
    /// By population, the lines to replay.
    lines: Vec<Vec<replay::Line>>,
}

/// Timeout for a target to accept a connection, including handshakes, before the load begins.
const REACHABLE: Duration = Duration::from_secs(5);
/// Descriptors that the lab needs besides its connections.
const OWN_DESCRIPTORS: u64 = 64;

impl PreparedScenario {
    /// Reads and checks the scenario; nothing has been written when it fails.
    pub fn new(scenario: &Scenario, allowed: &[String]) -> Result<PreparedScenario> {
        let targets = scenario.target.iter().map(|target| addresses(target, allowed)).collect::<Result<Vec<_>>>()?;
        for (target, addresses) in scenario.target.iter().zip(&targets) {
            // Requests are encoded once, with the path of the first address, and sent to any of them.
            if addresses.iter().any(|address| address.base != addresses[0].base) {
                return Err(LabError::scenario(format!("target {}: its addresses differ in their path", target.name)));
            }
        }
        let log = scenario.log();
        let requests = scenario.request.iter().chain(&log);
        let checkers: Vec<Checker> =
            requests.map(Checker::new).collect::<Result<_, _>>().map_err(LabError::scenario)?;
        let lines = scenario.population.iter().map(|population| match &population.arrival {
            Arrival::Replay { file, .. } => replay::read(file).map_err(LabError::scenario),
            _ => Ok(Vec::new()),
        });
        let prepared = PreparedScenario {
            lines: lines.collect::<Result<_>>()?,
            checkers: checkers.into(),
            all_closed: scenario.population.iter().all(|one| matches!(one.arrival, Arrival::Closed { .. })),
            any_ends: scenario.population.iter().any(|one| one.arrival.ends()),
            targets,
        };
        for (number, population) in scenario.population.iter().enumerate() {
            for (index, target) in scenario.target.iter().enumerate() {
                if population.target.as_ref().is_none_or(|own| *own == target.name) {
                    prepared.mix(scenario, population, number, target, index).map_err(LabError::scenario)?;
                    let protocol = prepared.targets[index][0].protocol;
                    for (_, request) in scenario.requests_of(population) {
                        Connection::can_ask(protocol, request).map_err(LabError::scenario)?;
                    }
                }
            }
        }
        enough_descriptors(scenario)?;
        Ok(prepared)
    }

    fn mix(
        &self,
        scenario: &Scenario,
        population: &Population,
        number: usize,
        target: &Target,
        index: usize,
    ) -> Result<Mix, String> {
        let address = &self.targets[index][0];
        let lines = &self.lines[number];
        let endpoint =
            Endpoint { host: &address.authority(), base: &address.base, encoding: address.protocol.encoding() };
        if lines.is_empty() {
            return Mix::new(scenario, population, target, &endpoint);
        }
        if endpoint.encoding != Encoding::Http {
            return Err(format!(
                "population {}: arrival: an access log is replayed over HTTP, which target {} does not speak",
                population.name, target.name
            ));
        }
        let lines: Vec<(String, String)> = lines.iter().map(|line| (line.method.clone(), line.path.clone())).collect();
        Mix::fixed(scenario.request.len(), target, &endpoint, &lines)
    }

    /// Opens a connection to each address, as far as possible without a request.
    pub async fn reach(&self, scenario: &Scenario) -> Result<()> {
        for (target, addresses) in scenario.target.iter().zip(&self.targets) {
            for address in addresses {
                let mut connection = Connection::new(address);
                let why = match tokio::time::timeout(REACHABLE, connection.open()).await {
                    Ok(Ok(())) => continue,
                    Ok(Err(fault)) => fault.detail,
                    Err(_) if address.tls.is_some() => {
                        format!("no TLS handshake within {} s", REACHABLE.as_secs()).into()
                    }
                    Err(_) => format!("no answer within {} s", REACHABLE.as_secs()).into(),
                };
                let (name, endpoint) = (&target.name, address.authority());
                return Err(LabError::target(format!("target {name}: {endpoint} cannot be reached: {why}")));
            }
        }
        Ok(())
    }

    /// Returns the populations of one period of load; populations without a target query `turn`.
    pub fn loads(
        &self,
        scenario: &Scenario,
        shared: &Rc<TrialState>,
        turn: u16,
    ) -> Result<Vec<PopulationLoad>, String> {
        scenario
            .population
            .iter()
            .enumerate()
            .map(|(number, population)| self.load(scenario, shared, turn, number, population))
            .collect()
    }

    fn load(
        &self,
        scenario: &Scenario,
        shared: &Rc<TrialState>,
        turn: u16,
        number: usize,
        population: &Population,
    ) -> Result<PopulationLoad, String> {
        let own =
            population.target.as_ref().and_then(|name| scenario.target.iter().position(|target| target.name == *name));
        let index = own.unwrap_or(usize::from(turn));
        let target = scenario.target.get(index).ok_or("there is no such target")?;
        let others: BTreeSet<&String> =
            scenario.requests_of(population).filter_map(|(_, request)| request.check.same_as.as_ref()).collect();
        let others = others.into_iter().filter_map(|name| {
            let at = scenario.target.iter().position(|target| target.name == *name)?;
            // A target need not be compared with itself in its own trial.
            (at != index).then(|| Rc::new(ReferenceTarget::new(name, Connection::new(&self.targets[at][0]))))
        });
        let profile = UserProfile {
            target: u16::try_from(index).map_err(|_| "there are too many targets")?,
            population: u16::try_from(number).map_err(|_| "there are too many populations")?,
            patience: micros(population.patience_s.unwrap_or(target.timeout_s)),
            retry: population.retry.clone(),
            limits: scenario.limits.clone(),
            ends: population.arrival.ends(),
            same_as: others.collect(),
            waits: matches!(population.arrival, Arrival::Closed { .. }),
            beside: RefCell::default(),
        };
        let again = u64::from(shared.plan.phase == Phase::Again);
        Ok(PopulationLoad {
            shared: Rc::clone(shared),
            profile: Rc::new(profile),
            arrival: population.arrival.clone(),
            mix: RefCell::new(self.mix(scenario, population, number, target, index)?),
            pool: ConnectionPool::new(self.targets[index].clone(), target.streams as usize),
            connections: population.connections,
            // The target is left out of the seed, so that A and B get the same requests.
            seed: (scenario.seed, [u64::from(self.round(scenario, shared.trial)), number as u64, again]),
            lines: self.lines[number].clone(),
        })
    }

    /// Returns the round of turns that a trial is in: targets of one round get the same requests.
    fn round(&self, scenario: &Scenario, trial: u16) -> u16 {
        match scenario.trials.order {
            Order::Given => trial % scenario.trials.repeats.max(1),
            _ => trial / u16::try_from(scenario.target.len()).unwrap_or(1).max(1),
        }
    }
}

fn enough_descriptors(scenario: &Scenario) -> Result<()> {
    // Users that share connections need fewer descriptors; the target with the most users per connection sets no bound
    // for the others.
    let shared = scenario.target.iter().map(|target| if target.http2 { target.streams } else { 1 }).min().unwrap_or(1);
    let connections = |population: &Population| match population.arrival {
        Arrival::Closed { users, .. } => u64::from(users.div_ceil(shared)),
        // Connections open one by one as needed: a run that needs more descriptors reports it.
        _ => 0,
    };
    let needed: u64 = scenario.population.iter().map(connections).sum();
    match proc::descriptors_allowed() {
        Some(allowed) if needed + OWN_DESCRIPTORS > allowed => Err(LabError::scenario(format!(
            "{needed} connections need as many descriptors, and this process may have {allowed}: raise it with ulimit -n {}",
            needed + OWN_DESCRIPTORS
        ))),
        _ => Ok(()),
    }
}
