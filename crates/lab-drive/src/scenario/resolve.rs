//! Fills in defaults and checks a scenario, so that the rest of the lab may rely on it.

use super::seconds::not_negative;
use super::{Arrival, LOG, Population, Request, Retry, Sampler, Scenario, WaitIdle};
use std::collections::BTreeSet;

/// Max populations, requests and targets: indices are 16 bits wide in a record, and a report is for reading.
const MAX: usize = 1000;

type Check = Result<(), String>;

impl Scenario {
    /// Fills in defaults. Errors are sentences that name the key and what was expected.
    pub(super) fn resolve(mut self, stem: &str) -> Result<Scenario, String> {
        if self.name.is_empty() {
            self.name = stem.to_owned();
        }
        match (self.arrival.take(), self.population.is_empty()) {
            (Some(arrival), true) => self.population.push(Population::users(arrival)),
            (Some(_), false) => {
                return Err("arrival: there are populations: expected an arrival in each [[population]] instead".into());
            }
            (None, true) => {
                return Err(
                    "arrival is missing: expected a table such as [arrival] kind = \"constant\", rate = 100".into()
                );
            }
            (None, false) => {}
        }
        for request in &mut self.request {
            if request.name.is_empty() {
                request.name.clone_from(&request.path);
            }
        }
        self.check_targets()?;
        self.check_requests()?;
        self.check_populations()?;
        self.check_phases()?;
        self.check_observers()?;
        Ok(self)
    }

    fn check_targets(&self) -> Check {
        distinct("target", self.target.iter().map(|target| target.name.as_str()))?;
        for target in &self.target {
            let name = &target.name;
            if target.url.is_empty() == target.urls.is_empty() {
                return Err(format!("target {name}: expected url, or urls for several addresses of one service"));
            }
            above_zero(&format!("target {name}: timeout_s"), target.timeout_s)?;
            target.wait_idle.iter().try_for_each(|idle| idle.check(&format!("target {name}: wait_idle")))?;
            if !(1..=100_000).contains(&target.streams) {
                return Err(format!("target {name}: streams = {}: expected 1 to 100000", target.streams));
            }
            let protocols: BTreeSet<_> = target.addresses().map(|url| url.split(':').next().unwrap_or(url)).collect();
            if protocols.len() > 1 {
                return Err(format!("target {name}: its addresses differ in scheme: expected one"));
            }
            for (header, value) in &target.headers {
                header_is_sound(&format!("target {name}"), header, value)?;
            }
        }
        Ok(())
    }

    fn check_requests(&self) -> Check {
        let log = self.log();
        if self.request.is_empty() && log.is_none() {
            return Err("request is missing: expected a table such as [request] path = \"/\"".into());
        }
        if log.is_some_and(|log| self.request.iter().any(|request| request.name == log.name)) {
            return Err(format!("request {LOG}: the lines of the access log are called so: expected another name"));
        }
        if !self.request.is_empty() && self.population.iter().all(|population| population.arrival.is_replay()) {
            return Err("request: an access log is replayed, so it would never be sent: expected none".into());
        }
        if !self.request.is_empty() {
            distinct("request", self.request.iter().map(|request| request.name.as_str()))?;
        }
        self.request.iter().try_for_each(|request| self.check_request(request))
    }

    fn check_request(&self, request: &Request) -> Check {
        let name = &request.name;
        if !(request.weight >= 0.0 && request.weight.is_finite()) {
            return Err(format!("request {name}: weight = {}: expected 0 or more", request.weight));
        }
        if !request.path.starts_with('/') {
            return Err(format!("request {name}: path = {:?}: expected a path that begins with /", request.path));
        }
        if let Some(odd) = request.path.chars().find(|c| c.is_ascii_control() || *c == ' ') {
            return Err(format!("request {name}: path holds {odd:?}: expected it percent-encoded, a space as %20"));
        }
        if request.method.is_empty() || !request.method.bytes().all(|b| b.is_ascii_uppercase()) {
            return Err(format!("request {name}: method = {:?}: expected a word such as GET or POST", request.method));
        }
        for (header, value) in &request.headers {
            header_is_sound(&format!("request {name}"), header, value)?;
        }
        let check = &request.check;
        for pointer in check.fields.iter().chain(&check.count) {
            if !pointer.is_empty() && !pointer.starts_with('/') {
                return Err(format!("request {name}: check: {pointer:?}: expected a JSON pointer such as /features/0"));
            }
        }
        if let Some(pointer) = &request.follow {
            if !pointer.starts_with('/') {
                return Err(format!("request {name}: follow = {pointer:?}: expected a JSON pointer such as /packets"));
            }
            if check.same_as.is_some() {
                return Err(format!(
                    "request {name}: check.same_as: a followed stream cannot be compared: expected one of the two"
                ));
            }
        }
        match &check.same_as {
            Some(other) if !self.target.iter().any(|target| target.name == *other) => {
                Err(format!("request {name}: check.same_as = {other:?}: no target has that name"))
            }
            _ => Ok(()),
        }
    }

    fn check_populations(&self) -> Check {
        distinct("population", self.population.iter().map(|one| one.name.as_str()))?;
        for population in &self.population {
            let whose = format!("population {}", population.name);
            population.arrival.check(&format!("{whose}: arrival"))?;
            if let Some(target) = &population.target
                && !self.target.iter().any(|one| one.name == *target)
            {
                return Err(format!("{whose}: target = {target:?}: no target has that name"));
            }
            if population.arrival.is_replay() && !population.requests.is_empty() {
                return Err(format!("{whose}: requests: it replays an access log: expected none"));
            }
            for wanted in &population.requests {
                if !self.request.iter().any(|request| request.name == *wanted) {
                    return Err(format!("{whose}: requests: no request is named {wanted:?}"));
                }
            }
            let weight: f64 = self.requests_of(population).map(|(_, request)| request.weight).sum();
            if weight <= 0.0 && !population.arrival.is_replay() {
                return Err(format!("{whose}: the weights of its requests are all 0"));
            }
            if let Some(patience) = population.patience_s {
                above_zero(&format!("{whose}: patience_s"), patience)?;
            }
            if population.connections == 0 || population.connections > 100_000 {
                return Err(format!("{whose}: connections = {}: expected 1 to 100000", population.connections));
            }
            not_negative(&format!("{whose}: retry.wait_s"), population.retry.wait_s)?;
            not_negative(&format!("{whose}: retry.factor"), population.retry.factor)?;
        }
        Ok(())
    }

    fn check_phases(&self) -> Check {
        let phases = &self.phases;
        for (name, seconds) in [
            ("warm_up_s", phases.warm_up_s),
            ("cool_down_s", phases.cool_down_s),
            ("again_after_s", phases.again_after_s),
            ("again_s", phases.again_s),
        ] {
            not_negative(&format!("phases.{name}"), seconds)?;
        }
        above_zero("phases.measured_s", phases.measured_s)?;
        phases.wait_idle.iter().try_for_each(|idle| idle.check("phases.wait_idle"))?;
        if self.trials.repeats == 0 {
            return Err("trials.repeats = 0: expected at least 1".into());
        }
        not_negative("trials.pause_s", self.trials.pause_s)?;
        not_negative("limits.total_s", self.limits.total_s)?;
        above_zero("limits.late_ms", self.limits.late_ms)?;
        above_zero("limits.other_load", self.limits.other_load)
    }

    fn check_observers(&self) -> Check {
        // Samples are distinguished only by this name.
        let mut names = BTreeSet::from(["lab", "machine", "target"].map(str::to_owned));
        names.extend(self.target.iter().map(|target| self.sampled_as(target)));
        for sampler in &self.sampler {
            let (Sampler::Process { name, .. } | Sampler::Prometheus { name, .. }) = sampler;
            if !names.insert(name.clone()) {
                return Err(format!("sampler: the name {name:?} is taken (lab, machine and target are the lab's own)"));
            }
            if let Sampler::Prometheus { every_s, metrics, .. } = sampler {
                if !(*every_s >= 0.1 && every_s.is_finite()) {
                    return Err(format!("sampler {name}: every_s = {every_s}: expected 0.1 or more"));
                }
                if metrics.is_empty() {
                    return Err(format!("sampler {name}: metrics is empty: expected names of metrics"));
                }
            }
        }
        for objective in &self.objective {
            let name = objective.metric.name();
            if objective.at_most.is_some() == objective.at_least.is_some() {
                return Err(format!("objective {name}: expected either at_most or at_least"));
            }
            let known = [
                (
                    "population",
                    &objective.population,
                    self.population.iter().any(|o| Some(&o.name) == objective.population.as_ref()),
                ),
                (
                    "request",
                    &objective.request,
                    self.request.iter().chain(&self.log()).any(|o| Some(&o.name) == objective.request.as_ref()),
                ),
                ("target", &objective.target, self.target.iter().any(|o| Some(&o.name) == objective.target.as_ref())),
            ];
            for (what, named, there) in known {
                if let Some(named) = named
                    && !there
                {
                    return Err(format!("objective {name}: no {what} is named {named:?}"));
                }
            }
        }
        Ok(())
    }

    /// Returns the requests of a population's mix, each with its index in the scenario; none if it replays an access
    /// log.
    pub fn requests_of<'a>(&'a self, population: &'a Population) -> impl Iterator<Item = (usize, &'a Request)> {
        let wanted = |name: &String| population.requests.is_empty() || population.requests.contains(name);
        // Numbered before the filter: records refer to the place in the scenario.
        let mix = self.request.iter().enumerate().filter(move |(_, request)| wanted(&request.name));
        mix.filter(move |_| !population.arrival.is_replay())
    }
}

impl WaitIdle {
    fn check(&self, whose: &str) -> Check {
        not_negative(&format!("{whose}.for_s"), self.for_s)?;
        above_zero(&format!("{whose}.limit_s"), self.limit_s)
    }
}

impl Population {
    /// Returns the population of a scenario that names none.
    fn users(arrival: Arrival) -> Population {
        Population {
            name: "users".to_owned(),
            arrival,
            target: None,
            requests: Vec::new(),
            patience_s: None,
            connections: 1000,
            retry: Retry::default(),
        }
    }
}

fn distinct<'a>(what: &str, names: impl Iterator<Item = &'a str>) -> Check {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(format!("{what}: two are named {name:?}: expected a name for each"));
        }
    }
    match seen.len() {
        0 => Err(format!("{what} is missing")),
        n if n > MAX => Err(format!("{what}: there are {n}: expected at most {MAX}")),
        _ => Ok(()),
    }
}

fn header_is_sound(whose: &str, name: &str, value: &str) -> Check {
    // Token of RFC 9110, section 5.6.2. A line break in a value would end the header.
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if name.is_empty() || !name.bytes().all(token) || value.bytes().any(|b| b < b' ' && b != b'\t') {
        return Err(format!("{whose}: header {name:?}: expected a name of letters and a value on one line"));
    }
    match name.to_ascii_lowercase().as_str() {
        "content-length" | "transfer-encoding" | "connection" => {
            Err(format!("{whose}: header {name}: the lab sets it itself"))
        }
        _ => Ok(()),
    }
}

fn above_zero(name: &str, value: f64) -> Check {
    match value {
        v if v > 0.0 && v <= 31_536_000.0 => Ok(()),
        v => Err(format!("{name} = {v}: expected more than 0")),
    }
}
