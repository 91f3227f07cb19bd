//! The report of a repair.

/// The findings and actions of a repair of a collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    /// Tenant of the collection.
    pub tenant: String,
    /// Its name.
    pub name: String,
    /// Whether it could be opened again.
    pub mended: bool,
    /// Findings and actions, in order.
    pub done: Vec<String>,
    /// Missing or possibly missing data, and its replacement.
    pub missing: Vec<String>,
}

/// The report of a repair in progress.
#[derive(Debug, Default)]
pub(super) struct Report {
    done: Vec<String>,
    missing: Vec<String>,
}

impl Report {
    pub(super) fn done(&mut self, what: String) {
        self.done.push(what);
    }

    pub(super) fn missing(&mut self, what: String) {
        self.missing.push(what);
    }

    pub(super) fn of(self, (tenant, name): (String, String), mended: bool) -> Repair {
        Repair { tenant, name, mended, done: self.done, missing: self.missing }
    }
}
