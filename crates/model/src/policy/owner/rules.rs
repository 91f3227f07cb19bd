//! The numbers of the protocol, and the ways in which tests break it.

/// The numbers that a server has, or a test makes small so that few steps meet every case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rules {
    /// How often a create is sent.
    pub create_tries: u32,
    /// Bits of a manifest's number that a search for the newest asks for.
    pub number_bits: u32,
    /// How many of the newest manifests stay whatever they are.
    pub recent: u64,
    /// How often a takeover begins, as the owner before commits meanwhile.
    pub takeover_turns: u32,
    broken: Option<Breakage>,
}

impl Rules {
    /// The rules of every server: four thousand million manifests, and nothing broken.
    pub const SERVER: Rules = Rules { create_tries: 4, number_bits: 32, recent: 8, takeover_turns: 8, broken: None };

    /// The same rules with other numbers, for tests.
    pub fn sized(create_tries: u32, number_bits: u32, recent: u64, takeover_turns: u32) -> Rules {
        Rules { create_tries, number_bits, recent, takeover_turns, broken: None }
    }

    /// The same with one rule broken. Only for tests: a server has [`Rules::SERVER`].
    #[must_use]
    pub fn breaking(self, breakage: Breakage) -> Rules {
        Rules { broken: Some(breakage), ..self }
    }

    /// Whether a rule is broken.
    pub fn breaks(&self, breakage: Breakage) -> bool {
        self.broken == Some(breakage)
    }
}

/// A rule that a test leaves out, to see that the explorer finds what it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Breakage {
    /// A create in the log takes the place of what is there.
    NoExpectation,
    /// A new owner does not fence the log: it relies on the lease of the owner before being over.
    LeaseAlone,
    /// Old objects that the manifest of a process does not name are removed, also if another process wrote it.
    RemovalByAge,
    /// First manifests are deleted like all others.
    NoBoundary,
    /// A group takes two objects, and a replay counts one without the other.
    UncutGroups,
    /// A writer does not look for a newer manifest after its first one.
    NoCheck,
    /// A new owner removes leftovers before its first manifest stands.
    SweepBeforeClaim,
    /// A new owner serves without a manifest of its own.
    NoClaim,
    /// Fences are deleted like groups.
    FencesGo,
    /// A create without an answer is taken for one that failed.
    LostIsFailed,
    /// A first manifest that a newer one has followed is deleted again.
    TakesBack,
    /// The newest manifest is read after the search that found nothing above it.
    ReadsLast,
    /// A writer that was fenced forgets which groups it has not flushed.
    ForgetsHeld,
    /// A writer forgets where the log continues once the outcome of an append is unknown.
    LosesPlace,
}
