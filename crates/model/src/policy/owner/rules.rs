//! The constants of the protocol, and the ways in which tests break it.

/// The constants of a server. Tests use small ones, so that few steps cover every case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rules {
    /// Max attempts of a create.
    pub create_tries: u32,
    /// Bits of a manifest's number that a search for the newest tries.
    pub number_bits: u32,
    /// Number of the newest manifests that always stay.
    pub recent: u64,
    /// Max attempts of a takeover, as the previous owner may commit meanwhile.
    pub takeover_turns: u32,
    broken: Option<Breakage>,
}

impl Rules {
    /// The rules of every server: four thousand million manifests, and no rule broken.
    pub const SERVER: Rules = Rules { create_tries: 4, number_bits: 32, recent: 8, takeover_turns: 8, broken: None };

    /// The same rules with other constants, for tests.
    pub fn sized(create_tries: u32, number_bits: u32, recent: u64, takeover_turns: u32) -> Rules {
        Rules { create_tries, number_bits, recent, takeover_turns, broken: None }
    }

    /// The same with one rule broken. For tests only: a server uses [`Rules::SERVER`].
    #[must_use]
    pub fn breaking(self, breakage: Breakage) -> Rules {
        Rules { broken: Some(breakage), ..self }
    }

    /// Whether a rule is broken.
    pub fn breaks(&self, breakage: Breakage) -> bool {
        self.broken == Some(breakage)
    }
}

/// A rule that a test disables, to verify that the explorer detects the resulting fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Breakage {
    /// A create in the log replaces an existing object.
    NoExpectation,
    /// A new owner does not fence the log: it relies on the previous owner's lease being over.
    LeaseAlone,
    /// Old objects that a process's manifest does not name are removed, even if another process wrote them.
    RemovalByAge,
    /// First manifests are deleted like all others.
    NoBoundary,
    /// A group takes two objects, and a replay counts one without the other.
    UncutGroups,
    /// A writer does not check for a newer manifest after its first one.
    NoCheck,
    /// A new owner removes leftovers before its first manifest is committed.
    SweepBeforeClaim,
    /// A new owner serves without a manifest of its own.
    NoClaim,
    /// Fences are deleted like groups.
    FencesGo,
    /// A create without a response is taken for a failed one.
    LostIsFailed,
    /// A first manifest that a newer one has followed is deleted again.
    TakesBack,
    /// The newest manifest is read after the search that found nothing above it.
    ReadsLast,
    /// A fenced writer forgets which groups it has not flushed.
    ForgetsHeld,
    /// A writer forgets where the log continues once the outcome of an append is unknown.
    LosesPlace,
}
