//! The state of a lease, and what a process does, in words for people.

use super::{Cluster, Condition, Lease, Node, Owner, span};

impl Owner {
    /// Returns the state of the lease in words, with the time since its last renewal and the time left.
    pub fn lease_words(&self) -> String {
        let Some(age) = self.age_ms.map(span) else {
            return if self.state == Lease::Resigned { "given up" } else { "renewed some time ago" }.to_owned();
        };
        match (self.state, self.expires_in_ms) {
            (Lease::Resigned, _) => format!("given up {age} ago"),
            (Lease::Lapsed, _) | (Lease::Held, Some(..=0)) => format!("lease expired, not renewed for {age}"),
            (Lease::Held, Some(left)) if self.is_overdue() => format!("not renewed for {age}, ends in {}", span(left)),
            (Lease::Held, Some(left)) => format!("renewed {age} ago, ends in {}", span(left)),
            (Lease::Held, None) => format!("renewed {age} ago"),
        }
    }

    /// Returns true if a renewal is late. Owners renew after a third of the lease, so half of it means a missed one.
    fn is_overdue(&self) -> bool {
        let half = i64::try_from(self.lease_ms / 2).unwrap_or(i64::MAX);
        self.age_ms.is_some_and(|age| age > half)
    }
}

impl Cluster {
    /// Returns what a process does in words. What the roll says of a killed owner stays until its lease has ended, so
    /// the state of its leases is beside it.
    pub fn node_words(&self, node: &Node) -> String {
        match node.condition {
            Condition::Serves if node.leases.is_empty() => "serves".to_owned(),
            Condition::Serves => match self.late_lease(node) {
                Some(owner) => format!("owns; {}", owner.lease_words()),
                None => "owns".to_owned(),
            },
            Condition::StandsBy => "stands by".to_owned(),
            Condition::Drained => "drained".to_owned(),
            Condition::Other => "unknown".to_owned(),
        }
    }

    /// Returns the lease of a process that has the least time left, if its renewal is late.
    fn late_lease(&self, node: &Node) -> Option<&Owner> {
        let owners = self.groups().filter_map(|(_, owner)| owner);
        let late =
            owners.filter(|owner| owner.node == node.node && owner.address == node.address && owner.is_overdue());
        late.min_by_key(|owner| owner.expires_in_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(state: Lease, age_ms: Option<i64>) -> Owner {
        Owner {
            state,
            node: "owner-1".to_owned(),
            address: "127.0.0.1:9".to_owned(),
            epoch: 3,
            lease_ms: 3_000,
            age_ms,
            expires_in_ms: age_ms.filter(|_| state != Lease::Resigned).map(|age| 3_000 - age),
            reachable: None,
            reason: None,
        }
    }

    fn cluster(owner: Owner) -> Cluster {
        Cluster {
            version: 1,
            time: String::new(),
            bucket: String::new(),
            empty: false,
            log: "bucket".to_owned(),
            log_error: None,
            owner: Some(owner),
            owners: Vec::new(),
            collections: Vec::new(),
            readers: Vec::new(),
            servers: Vec::new(),
            nodes: Vec::new(),
        }
    }

    fn node(name: &str) -> Node {
        Node {
            node: name.to_owned(),
            role: "owner".to_owned(),
            address: "127.0.0.1:9".to_owned(),
            program: String::new(),
            level: 1,
            condition: Condition::Serves,
            leases: vec!["owner".to_owned()],
            age_ms: None,
        }
    }

    #[test]
    fn a_lease_says_how_long_it_holds_and_since_when_it_does_not() {
        let words = |state, age| owner(state, age).lease_words();
        assert_eq!(words(Lease::Held, Some(1_000)), "renewed 1.0 s ago, ends in 2.0 s");
        assert_eq!(words(Lease::Held, Some(2_000)), "not renewed for 2.0 s, ends in 1.0 s");
        // A candidate waits for an eighth more than the lease.
        assert_eq!(words(Lease::Held, Some(3_100)), "lease expired, not renewed for 3.1 s");
        assert_eq!(words(Lease::Lapsed, Some(9_000)), "lease expired, not renewed for 9.0 s");
        assert_eq!(words(Lease::Resigned, Some(9_000)), "given up 9.0 s ago");
        assert_eq!(
            (words(Lease::Held, None), words(Lease::Resigned, None)),
            ("renewed some time ago".to_owned(), "given up".to_owned())
        );
    }

    #[test]
    fn a_killed_owner_owns_with_a_doubt() {
        let words = |age, name| cluster(owner(Lease::Held, Some(age))).node_words(&node(name));
        assert_eq!(words(1_000, "owner-1"), "owns");
        assert_eq!(words(2_000, "owner-1"), "owns; not renewed for 2.0 s, ends in 1.0 s");
        // The lease of another process says nothing of this one.
        assert_eq!(words(2_000, "owner-2"), "owns");
        let lapsed = cluster(owner(Lease::Lapsed, Some(9_000)));
        assert_eq!(lapsed.node_words(&node("owner-1")), "owns; lease expired, not renewed for 9.0 s");
        let idle = Node { leases: Vec::new(), ..node("owner-1") };
        assert_eq!(lapsed.node_words(&idle), "serves");
    }
}
