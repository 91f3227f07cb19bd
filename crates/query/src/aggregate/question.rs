//! Aggregate queries and their results.

use crate::by::ByValue;
use crate::control::Stats;
use crate::function::{FUNCTIONS_MAX, Function, FunctionValue, groups_by};
use crate::sketch::Kind;
use crate::windows::{Window, Windows};
use meridian_model::filter::Predicate;
use meridian_model::{FieldType, Invalid, Schema};

/// Max number of grouping fields of a query.
pub const BY_FIELDS_MAX: usize = 8;

/// An aggregate query.
#[derive(Debug, Clone)]
pub struct Aggregate {
    /// The filter of events.
    pub predicate: Predicate,
    /// The functions to compute for each group.
    pub functions: Vec<Function>,
    /// Groups by time window.
    pub windows: Option<Windows>,
    /// Groups by the value of a text, integer or boolean field; with several fields, by each combination of values.
    pub by: Vec<usize>,
    /// Includes empty windows from the start to the end of the predicate's time; from the first or to the last window
    /// with events where it is open.
    pub empty: bool,
}

/// One group of a result.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// The window; `None` if no windows were requested, or for events with an open start.
    pub window: Option<Window>,
    /// The values of the `by` fields, in the requested order.
    pub by: Vec<ByValue>,
    /// Number of events.
    pub count: u64,
    /// The value of each function, in the requested order.
    pub values: Vec<FunctionValue>,
    /// The error of each value, 0 if exact. For a percentile, the max relative distance from the true one. For a
    /// distinct count, three relative standard errors. For the most frequent values, the max by which a count may be
    /// too low.
    pub errors: Vec<f64>,
}

/// Groups in order of window, then of `by`, and the cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Aggregated {
    /// The groups. Without windows and `by` there is exactly one.
    pub groups: Vec<Group>,
    /// The cost of the query.
    pub stats: Stats,
}

impl Aggregate {
    /// The numeric fields used by the functions, deduplicated, ascending.
    pub(crate) fn fields(&self) -> Vec<usize> {
        let mut fields: Vec<usize> = self.functions.iter().filter_map(Function::field).collect();
        fields.sort_unstable();
        fields.dedup();
        fields
    }

    /// The summaries used by the functions, deduplicated, in order.
    pub(crate) fn sketches(&self) -> Vec<(usize, Kind)> {
        let mut sketches: Vec<(usize, Kind)> = self.functions.iter().filter_map(Kind::of).collect();
        sketches.sort_unstable();
        sketches.dedup();
        sketches
    }

    /// Checks that the query is valid for this schema.
    pub(crate) fn check(&self, schema: &Schema) -> Result<(), Invalid> {
        if self.windows.is_some() && !schema.has_time() {
            return Err(Invalid::field("window", "this collection has no time"));
        }
        if self.functions.len() > FUNCTIONS_MAX {
            return Err(Invalid::field(
                "function",
                format!("at most {FUNCTIONS_MAX} functions can be asked for at once"),
            ));
        }
        self.functions.iter().try_for_each(|function| function.check(schema))?;
        if self.by.len() > BY_FIELDS_MAX {
            return Err(Invalid::field("by", format!("groups can be by at most {BY_FIELDS_MAX} properties")));
        }
        for (at, by) in self.by.iter().enumerate() {
            let kind = schema.fields.get(*by).map(|f| f.kind);
            if !kind.is_some_and(groups_by) {
                let kind = kind.map_or("nothing", FieldType::word);
                return Err(Invalid::field(
                    "by",
                    format!("groups cannot be by a {kind}: expected a string, an integer or a boolean"),
                ));
            }
            if self.by[..at].contains(by) {
                return Err(Invalid::field("by", "groups can be by a property once"));
            }
        }
        Ok(())
    }
}
