//! Numbers of the queries that run, wait, are paused or are away: over all, by tenant, and by class.

use super::{Admission, At, ClassLoad, Counts, State, Tenant};
use std::hash::Hash;

impl<T: Clone + Eq + Hash> Admission<T> {
    /// Numbers of queries, over all tenants.
    pub fn counts(&self) -> Counts {
        let (running, paused, waiting, away) = (self.running, self.paused, self.waiting, self.away);
        Counts { running, paused, waiting, away, slots: self.slots }
    }

    /// Numbers of queries, by tenant.
    pub fn by_tenant(&self) -> impl Iterator<Item = (&T, Counts)> {
        self.tenants.iter().map(|tenant| {
            let (running, paused) = (tenant.running, tenant.started - tenant.running);
            let (waiting, away) = (tenant.waiting, tenant.away);
            (&tenant.name, Counts { running, paused, waiting, away, slots: self.slots })
        })
    }

    /// Load of each tenant by [`Class`](super::Class); visits all queries.
    pub fn load(&self, now: At) -> Vec<(T, [ClassLoad; 3])> {
        let of = |tenant: &Tenant<T>| {
            let mut classes = [ClassLoad::default(); 3];
            for (class, line) in classes.iter_mut().zip(&tenant.lines) {
                class.waiting = line.waiting.len();
                class.oldest = line.waiting.front().map(|oldest| now.saturating_sub(oldest.since));
            }
            (tenant.name.clone(), classes)
        };
        let mut all: Vec<_> = self.tenants.iter().map(of).collect();
        for question in self.questions.iter() {
            let class = &mut all[question.tenant].1[question.class as usize];
            match question.state {
                State::Running => class.running += 1,
                State::Paused => class.paused += 1,
                State::Away => class.away += 1,
                State::Waiting | State::Refused => {}
            }
        }
        all.retain(|(_, classes)| classes.iter().any(|class| *class != ClassLoad::default()));
        all
    }
}
