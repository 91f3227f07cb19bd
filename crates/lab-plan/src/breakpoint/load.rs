//! The number in a scenario that a search varies.

use meridian_lab_drive::scenario::{Arrival, Scenario};
use meridian_lab_results::error::{LabError, Result};

/// The population whose arrival is increased, and the number of it that is varied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    population: usize,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Rate,
    Users,
    Count,
    PerBurst,
    Speed,
}

impl Load {
    /// Returns the load of a scenario: that of the named population, or of the only one.
    pub fn of(scenario: &Scenario, population: Option<&str>) -> Result<Load> {
        let names = || scenario.population.iter().map(|one| one.name.as_str()).collect::<Vec<_>>().join(", ");
        let at = match population {
            Some(name) => scenario.population.iter().position(|one| one.name == name).ok_or_else(|| {
                LabError::scenario(format!("--population {name}: expected one of the scenario's: {}", names()))
            })?,
            None if scenario.population.len() == 1 => 0,
            None => {
                let text = format!("there are several populations: expected --population with one of {}", names());
                return Err(LabError::scenario(text));
            }
        };
        let kind = match &scenario.population[at].arrival {
            Arrival::Constant { .. } | Arrival::Poisson { .. } => Kind::Rate,
            Arrival::Closed { .. } => Kind::Users,
            Arrival::Burst { .. } => Kind::Count,
            Arrival::Onoff { .. } => Kind::PerBurst,
            Arrival::Replay { .. } => Kind::Speed,
            Arrival::Ramp { .. } | Arrival::Steps { .. } => {
                return Err(LabError::scenario(
                    "arrival: a ramp or steps change by themselves: expected constant, poisson, closed, burst, onoff or \
                     replay for a breakpoint",
                ));
            }
        };
        Ok(Load { population: at, kind })
    }

    /// Returns its value in a scenario.
    pub fn value(self, scenario: &Scenario) -> f64 {
        match &scenario.population[self.population].arrival {
            Arrival::Constant { rate } | Arrival::Poisson { rate } => *rate,
            Arrival::Closed { users, .. } => f64::from(*users),
            Arrival::Burst { count, .. } => f64::from(*count),
            Arrival::Onoff { per_burst, .. } => f64::from(*per_burst),
            Arrival::Replay { speed, .. } => *speed,
            // `Load::of` refuses these two, so no search reads this value.
            Arrival::Ramp { .. } | Arrival::Steps { .. } => 0.0,
        }
    }

    /// Changes the load of a scenario.
    pub fn set(self, scenario: &mut Scenario, load: f64) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "users; a cast saturates")]
        // A load of no user or no request would end a step with nothing measured.
        let whole = load.round().max(1.0) as u32;
        match &mut scenario.population[self.population].arrival {
            Arrival::Constant { rate } | Arrival::Poisson { rate } => *rate = load,
            Arrival::Closed { users, .. } => *users = whole,
            Arrival::Burst { count, .. } => *count = whole,
            Arrival::Onoff { per_burst, .. } => *per_burst = whole,
            Arrival::Replay { speed, .. } => *speed = load,
            Arrival::Ramp { .. } | Arrival::Steps { .. } => {}
        }
    }

    /// Returns whether only integers are valid.
    pub fn whole(self) -> bool {
        matches!(self.kind, Kind::Users | Kind::Count | Kind::PerBurst)
    }

    /// Returns the index of its population.
    pub fn population(self) -> u16 {
        u16::try_from(self.population).unwrap_or(u16::MAX)
    }

    /// Returns whether its arrival ends by itself.
    pub fn ends(self) -> bool {
        matches!(self.kind, Kind::Count | Kind::PerBurst | Kind::Speed)
    }

    /// Returns whether it is a rate, so that the served rate can be compared with it.
    pub fn is_rate(self) -> bool {
        self.kind == Kind::Rate
    }

    /// Returns whether it is a number of closed users.
    pub fn closed(self) -> bool {
        self.kind == Kind::Users
    }

    /// Returns its unit.
    pub fn unit(self) -> &'static str {
        match self.kind {
            Kind::Rate => "requests a second",
            Kind::Users => "users",
            Kind::Count | Kind::PerBurst => "requests in a burst",
            Kind::Speed => "times the log's speed",
        }
    }

    /// Returns the largest value that a scenario may have.
    pub fn most(self) -> f64 {
        match self.kind {
            Kind::Rate => 1e7,
            Kind::Users => 1e5,
            Kind::Count | Kind::PerBurst => 1e6,
            Kind::Speed => 1e4,
        }
    }
}
