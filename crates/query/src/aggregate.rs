//! Counts, sums, averages and extremes, by window of time and by field.
//!
//! A node whose events all match, all lie in one window and all have one value of the `by` field is taken
//! from its summary without a look at its events; all others are descended into, down to rows. Where a
//! part keeps its events in order of time as well and the question is about time and numbers alone, that
//! order is walked: its leaves are thin slices of time, so that few of them are cut by the edge of a window.
//! Where it is about time alone, there is nothing to walk: a window is a stretch of that order ([`Timeline`]).
//! A question of one box over points is walked on plain numbers ([`Cutter`]).
//!
//! An event of an interval counts in the window of its start. Events with an open start count in a group
//! without a window, which comes last.

use crate::candidates::{Candidates, Run, Step, search_step};
use crate::control::{Control, Stats};
use crate::cut::Cutter;
use crate::error::QueryError;
use crate::groups::{Groups, Members};
use crate::listed::find_ids;
use crate::matched::Matched;
use crate::ordered::{DEAD_MAX, DeadInTime, Ordered};
use crate::parallel::{Task, add_tasks, slices, work};
use crate::partial::PartialGroups;
use crate::scan::Scan;
use crate::timeline::Timeline;
use crate::windows::{Finder, Window, Windows};
use arrow_buffer::BooleanBuffer;
use meridian_index::{LEAF_ROWS, NodeRef, Number};
use meridian_model::filter::{Cut, Predicate, Region};
use meridian_model::{Batch, FieldColumn, FieldType, GeometryType, Interval, Invalid, Projection, Schema, TimeRole};
use meridian_store::Snapshot;

/// A function of the events of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Function {
    /// Number of events.
    Count,
    /// Number of events with a value of a numeric field.
    CountOf(usize),
    /// Sum of a numeric field.
    Sum(usize),
    /// Mean of a numeric field.
    Avg(usize),
    /// Min of a numeric field.
    Min(usize),
    /// Max of a numeric field.
    Max(usize),
}

/// Max number of functions of a question.
pub const FUNCTIONS_MAX: usize = 64;

impl Function {
    /// Reads a list such as `count,sum(price),avg(price)`.
    pub fn parse(text: &str, schema: &Schema) -> Result<Vec<Function>, Invalid> {
        let functions =
            text.split(',').map(|part| Function::parse_one(part.trim(), schema)).collect::<Result<Vec<_>, _>>()?;
        if functions.len() > FUNCTIONS_MAX {
            return Err(Invalid::field(
                "function",
                format!("at most {FUNCTIONS_MAX} functions can be asked for at once"),
            ));
        }
        Ok(functions)
    }

    /// Reads one function, whatever the name of its property.
    pub(crate) fn parse_one(text: &str, schema: &Schema) -> Result<Function, Invalid> {
        let wrong = |why: String| Invalid::field("function", why);
        let (name, field) = match text.split_once('(') {
            None if text == "count" => return Ok(Function::Count),
            None => (text, None),
            Some((name, rest)) => (name, rest.strip_suffix(')')),
        };
        let make = match name {
            "count" => Function::CountOf,
            "sum" => Function::Sum,
            "avg" => Function::Avg,
            "min" => Function::Min,
            "max" => Function::Max,
            _ => {
                return Err(wrong(format!(
                    "{text:?} is not a function: expected count, or count, sum, avg, min or max of a numeric property, such as avg(price)"
                )));
            }
        };
        let field = field.ok_or_else(|| wrong(format!("{text:?} names no property: expected {name}(PROPERTY)")))?;
        let index = schema
            .field_index(field)
            .ok_or_else(|| wrong(format!("{field:?} is not a property of this collection")))?;
        let kind = schema.fields[index].kind;
        if !kind.is_numeric() {
            return Err(wrong(format!("{field:?} is a {}: expected a numeric property", kind.word())));
        }
        Ok(make(index))
    }

    /// The name as it appears in an answer, such as `sum(price)`.
    pub fn name(&self, schema: &Schema) -> String {
        let of = |name: &str, field: &usize| format!("{name}({})", schema.fields.get(*field).map_or("", |f| &f.name));
        match self {
            Function::Count => "count".to_owned(),
            Function::CountOf(f) => of("count", f),
            Function::Sum(f) => of("sum", f),
            Function::Avg(f) => of("avg", f),
            Function::Min(f) => of("min", f),
            Function::Max(f) => of("max", f),
        }
    }

    pub(crate) fn field(&self) -> Option<usize> {
        match *self {
            Function::Count => None,
            Function::CountOf(f) | Function::Sum(f) | Function::Avg(f) | Function::Min(f) | Function::Max(f) => Some(f),
        }
    }
}

/// A question for aggregates of events.
#[derive(Debug, Clone)]
pub struct Aggregate {
    /// The filter of events.
    pub predicate: Predicate,
    /// The functions of each group.
    pub functions: Vec<Function>,
    /// A group for each window of time.
    pub windows: Option<Windows>,
    /// A group for each value of a text, integer or boolean field.
    pub by: Option<usize>,
    /// Include windows without events between the first and the last window with events.
    pub empty: bool,
}

/// The value of the `by` field that a group shares.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ByValue {
    /// False or true.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// Text.
    Text(String),
    /// No value.
    Null,
}

/// The value of a function.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FunctionValue {
    /// No value: the group has no value of the field.
    Null,
    /// An integer: counts, and sums and extremes of integer fields. Sums may pass 64 bits.
    Int(i128),
    /// A float.
    Float(f64),
}

/// One group of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// The window; `None` where no windows were asked for, or of events with an open start.
    pub window: Option<Window>,
    /// The value of the `by` field; `None` where none was asked for.
    pub by: Option<ByValue>,
    /// Number of events.
    pub count: u64,
    /// The value of each function, in the order asked.
    pub values: Vec<FunctionValue>,
}

/// Groups in order of window, then of `by`; and their cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Aggregated {
    /// The groups. Without windows and `by` there is exactly one.
    pub groups: Vec<Group>,
    /// The cost of the question.
    pub stats: Stats,
}

impl Aggregate {
    /// The numeric fields that the functions are about, each once, ascending.
    pub(crate) fn fields(&self) -> Vec<usize> {
        let mut fields: Vec<usize> = self.functions.iter().filter_map(Function::field).collect();
        fields.sort_unstable();
        fields.dedup();
        fields
    }

    /// Checks that the question can be asked of events of this schema.
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
        for field in self.functions.iter().filter_map(Function::field) {
            if schema.fields.get(field).is_none_or(|f| !f.kind.is_numeric()) {
                return Err(Invalid::field("function", "expected a numeric property"));
            }
        }
        if let Some(by) = self.by {
            let kind = schema.fields.get(by).map(|f| f.kind);
            if !matches!(kind, Some(FieldType::Text | FieldType::Int | FieldType::Bool)) {
                let kind = kind.map_or("nothing", FieldType::word);
                return Err(Invalid::field(
                    "by",
                    format!("groups cannot be made by a {kind}: expected a string, an integer or a boolean"),
                ));
            }
        }
        Ok(())
    }
}

/// Answers a question for numbers over the events of a snapshot.
pub fn aggregate(snapshot: &Snapshot, question: &Aggregate, control: &Control) -> Result<Aggregated, QueryError> {
    PartialGroups::of(snapshot, question, control)?.finish(question, control)
}

impl PartialGroups {
    /// The groups of the events of a snapshot.
    pub fn of(snapshot: &Snapshot, question: &Aggregate, control: &Control) -> Result<PartialGroups, QueryError> {
        PartialGroups::in_slices(slices(snapshot.rows()), snapshot, question, control)
    }

    /// The same in so many slices.
    pub(crate) fn in_slices(
        slices: usize,
        snapshot: &Snapshot,
        question: &Aggregate,
        control: &Control,
    ) -> Result<PartialGroups, QueryError> {
        let started = control.elapsed_us();
        control.check()?;
        let mut scan = Scan::new(snapshot, &question.predicate, control);
        let mut worker = Worker::new(&scan, question)?;
        let planned = control.elapsed_us();
        scan.stats.plan_us = (planned - started).max(0) as u64;
        match question.predicate.ids() {
            Some(ids) => {
                for (part, run) in find_ids(&mut scan, &ids)? {
                    worker.run(&mut scan, part, &run)?;
                }
            }
            None => {
                let mut tasks = Vec::new();
                let mut dead = Vec::new();
                for part in scan.parts() {
                    dead.push(worker.plan(&mut scan, part, &mut tasks)?);
                }
                let parts = work(
                    &mut scan,
                    &tasks,
                    slices,
                    |scan| Worker::new(scan, question),
                    |worker, scan, task| match worker {
                        Ok(worker) => worker.task(scan, task, &dead[task.part as usize]),
                        Err(invalid) => Err(invalid.clone().into()),
                    },
                )?;
                for part in parts {
                    worker.groups.merge(part?.groups)?;
                }
            }
        }
        scan.stats.scan_us = (control.elapsed_us() - planned).max(0) as u64;
        Ok(PartialGroups { groups: worker.groups, stats: scan.stats })
    }
}

/// Processes the nodes and runs of one question.
struct Worker {
    groups: Groups,
    finder: Option<Finder>,
    by: Option<usize>,
    /// The `by` field's place among the numeric fields, if it is one.
    by_ordinal: Option<usize>,
    /// The columns of the predicate, the start, the `by` field and the numeric fields.
    columns: Projection,
    /// Whether the order of time holds all of these.
    time_order: bool,
    /// The interval, where the question asks for nothing else and every event of it is in one group for each window.
    within: Option<Interval>,
    /// The same for a question of a box too, over points.
    cut: Option<Cut>,
}

impl Worker {
    fn new(scan: &Scan, question: &Aggregate) -> Result<Worker, Invalid> {
        let schema = scan.schema();
        // This checks the question: its fields are valid from here on.
        let groups = Groups::of(question, schema, &scan.control)?;
        let numeric = schema.numeric_fields();
        let mut columns = Projection::none(&scan.layout);
        question.fields().iter().chain(&question.by).for_each(|&f| columns.add(scan.layout.field(f)));
        if question.windows.is_some() {
            match schema.time {
                TimeRole::Instant(f) | TimeRole::Interval { start: f, .. } => columns.add(scan.layout.field(f)),
                TimeRole::None => {}
            }
        }
        let columns = scan.columns_with(&columns);
        let mut ordered = Projection::none(&scan.layout);
        ordered.add_time(&scan.layout, schema);
        numeric.iter().for_each(|&f| ordered.add(scan.layout.field(f)));
        // Made ids are no column, and the order of time keeps none of what they are made of.
        let by_id = question.predicate.reads_id();
        let time_order = schema.has_time() && !by_id && columns.columns().all(|c| ordered.has(c));
        let cut = question.predicate.as_cut().filter(|_| question.by.is_none());
        let within = cut.as_ref().map_or(Interval::ALWAYS, |cut| cut.interval);
        let finder = question.windows.as_ref().map(|windows| windows.finder(extent(&scan.snapshot, within)));
        Ok(Worker {
            groups,
            finder,
            by: question.by,
            by_ordinal: question.by.and_then(|by| numeric.iter().position(|&n| n == by)),
            columns,
            time_order,
            within: cut.as_ref().filter(|cut| cut.boxes.is_none()).map(|cut| cut.interval),
            cut: cut.filter(|_| in_plain_columns(schema)),
        })
    }

    /// Adds the tasks of a part: over its order of time where that answers the question. Then the rows that have
    /// died come back, which that order cannot leave out by itself.
    fn plan(&self, scan: &mut Scan, part: u32, tasks: &mut Vec<Task>) -> Result<DeadInTime, QueryError> {
        let view = scan.part(part).clone();
        let rows = 0..view.rows();
        // With rows newer than the snapshot the order of time cannot be used: it has no numbers to exclude them by.
        if let Some(order) = Ordered::of(&view).filter(|_| self.time_order && view.none_newer(rows.clone())) {
            // One more than allowed is enough to know that there are too many.
            let dead: Vec<u32> = view.dead_rows(rows).take(DEAD_MAX + 1).collect();
            if dead.len() <= DEAD_MAX {
                add_tasks(tasks, part, &order.trees()?, true);
                return DeadInTime::of(scan, part, dead);
            }
        }
        add_tasks(tasks, part, view.trees(), false);
        Ok(DeadInTime::default())
    }

    fn task(&mut self, scan: &mut Scan, task: &Task, dead: &DeadInTime) -> Result<(), QueryError> {
        let view = scan.part(task.part).clone();
        let Some(order) = Ordered::of(&view).filter(|_| task.by_time) else {
            if let Some(cut) = &self.cut {
                let (tree, node) = task.node();
                let (finder, groups) = (&mut self.finder, &mut self.groups);
                return Cutter::new(task.part, &view, cut, &self.columns, finder, groups).count(scan, tree, node);
            }
            let mut candidates = task.candidates(scan);
            let visible = |node: &NodeRef<'_>| view.all_visible(node.rows());
            while let Some(run) = self.next(scan, &visible, &mut candidates)? {
                self.run(scan, task.part, &run)?;
            }
            return Ok(());
        };
        let mut candidates = task.candidates(scan);
        if let Some(within) = self.within {
            let (tree, node) = task.node();
            let places = tree.rows(node);
            let mut timeline = Timeline::new(order, tree, dead, &self.columns);
            return timeline.count(scan, places, within, &mut self.finder, &mut self.groups);
        }
        let visible = |node: &NodeRef<'_>| !dead.some_in(&node.bounds());
        while let Some(run) = self.next(scan, &visible, &mut candidates)? {
            scan.control.check()?;
            scan.stats.blocks_read += 1;
            scan.stats.edge_blocks += run.rows.len().div_ceil(LEAF_ROWS) as u64;
            let batch = order.read(run.rows.clone(), &self.columns)?;
            let mut mask = (!run.whole).then(|| {
                scan.stats.events_tested += run.rows.len() as u64;
                scan.predicate.evaluate(&batch)
            });
            if !dead.rows.is_empty() {
                let rows = order.rows(run.rows.clone())?;
                let alive = BooleanBuffer::collect_bool(rows.len(), |i| !dead.holds(rows[i]));
                mask = Some(mask.map_or_else(|| alive.clone(), |m| &m & &alive));
            }
            let rows = match mask {
                None => Matched::Range(run.rows.clone()),
                Some(mask) => Matched::Rows(mask.set_indices().map(|i| run.rows.start + i as u32).collect()),
            };
            scan.stats.events_matched += rows.len() as u64;
            self.rows(&rows, &batch, run.rows.start)?;
        }
        Ok(())
    }

    /// The next run of rows that must be tested; nodes that need no test are counted on the way.
    fn next(
        &mut self,
        scan: &mut Scan,
        all_visible: &dyn Fn(&NodeRef<'_>) -> bool,
        candidates: &mut Candidates,
    ) -> Result<Option<Run>, QueryError> {
        let mut failed = None;
        let mut matched = 0;
        let Scan { stats, predicate, .. } = scan;
        let run = candidates.next(stats, &mut |node, whole| {
            let step = search_step(predicate, node, whole);
            // The walk cannot be stopped from inside. After an error its steps change nothing, and it ends with this
            // call.
            if step != (Step::Rows { whole: true }) || failed.is_some() {
                return step;
            }
            match self.members(node) {
                Some(members) if all_visible(node) && self.groups.knows_sums(|ordinal| node.summary(ordinal)) => {
                    matched += node.rows().len() as u64;
                    if let Err(error) = self.groups.add_node(&members, node) {
                        failed = Some(error);
                    }
                    Step::Taken
                }
                // A child may lie in one group, be visible as a whole, or have a sum that is a float.
                _ => Step::Descend { whole: true },
            }
        });
        stats.events_matched += matched;
        match failed {
            Some(error) => Err(error),
            None => Ok(run),
        }
    }

    /// The group that all events below a node belong to, if the node determines it.
    fn members(&mut self, node: &NodeRef<'_>) -> Option<Members> {
        let window = match &mut self.finder {
            None => None,
            Some(finder) => {
                let bounds = node.bounds();
                if bounds.start == i64::MIN {
                    // Some start is open, or all are.
                    return None;
                }
                let window = finder.find(bounds.start);
                // Windows are half open: an event at the end of one belongs to the next.
                if bounds.end >= window.end {
                    return None;
                }
                Some(window)
            }
        };
        let by = match (self.by, self.by_ordinal) {
            (None, _) => None,
            // Nodes summarise numbers only: whether all rows share a text, only the rows show.
            (Some(_), None) => return None,
            (Some(_), Some(ordinal)) => {
                let summary = node.summary(ordinal);
                let rows = node.rows().len() as u64;
                match (summary.min, summary.max) {
                    // Min and max agree and no row is null, so every row has this value.
                    (Some(Number::Int(min)), Some(Number::Int(max))) if min == max && summary.count == rows => {
                        Some(ByValue::Int(min))
                    }
                    (None, None) => Some(ByValue::Null),
                    _ => return None,
                }
            }
        };
        Some(Members { window, by })
    }

    fn run(&mut self, scan: &mut Scan, part: u32, run: &Run) -> Result<(), QueryError> {
        scan.stats.edge_blocks += run.rows.len().div_ceil(LEAF_ROWS) as u64;
        let Some((rows, batch)) = scan.matching(part, run, &self.columns)? else { return Ok(()) };
        self.rows(&rows, &batch, run.rows.start)
    }

    /// Counts rows of a batch, whose first row is `first`.
    fn rows(&mut self, rows: &Matched, batch: &Batch, first: u32) -> Result<(), QueryError> {
        let starts = match batch.schema().time {
            TimeRole::Instant(f) | TimeRole::Interval { start: f, .. } => match batch.field(f) {
                Some(FieldColumn::Time(times)) => Some(times),
                _ => None,
            },
            TimeRole::None => None,
        };
        let windows = self.finder.as_mut().zip(starts);
        let by = self.by.and_then(|by| batch.field(by));
        let rows: Vec<u32> = rows.iter().map(|row| row - first).collect();
        self.groups.add_rows(&rows, batch, windows, by)
    }
}

/// Whether place and time of an event are plain columns without nulls: what a [`Cut`] is held against.
fn in_plain_columns(schema: &Schema) -> bool {
    schema.geometry == Some(GeometryType::Point) && matches!(schema.time, TimeRole::Instant(_))
}

/// From the first to the last instant of a snapshot that lie within an interval, open ends left out.
fn extent(snapshot: &Snapshot, within: Interval) -> Interval {
    let mut extent = Interval { start: i64::MAX, end: i64::MIN };
    for tree in snapshot.parts.iter().flat_map(|part| part.trees()) {
        let bounds = tree.tree_bounds();
        for end in [bounds.start, bounds.end] {
            if end != i64::MIN && end != i64::MAX {
                extent = Interval { start: extent.start.min(end), end: extent.end.max(end) };
            }
        }
    }
    Interval { start: extent.start.max(within.start), end: extent.end.min(within.end) }
}
