//! Counts the nodes and runs of one query.

use super::groups::{Groups, Members};
use super::question::Aggregate;
use super::space_time::SpaceTimeWalk;
use super::timeline::Timeline;
use crate::by::ByValue;
use crate::candidates::{Candidates, Run, Step, search_step};
use crate::error::QueryError;
use crate::matched_rows::MatchedRows;
use crate::ordered::{DEAD_MAX, DeadRowsByTime, Ordered};
use crate::parallel::{Task, add_tasks};
use crate::scan::Scan;
use crate::windows::Finder;
use arrow_buffer::BooleanBuffer;
use meridian_index::{LEAF_ROWS, NodeRef, Number};
use meridian_model::filter::{Region, SpaceTimeFilter};
use meridian_model::{Batch, FieldColumn, GeometryType, Interval, Invalid, Projection, Schema, TimeRole};
use meridian_store::Snapshot;

/// Processes the nodes and runs of one query.
pub(super) struct Worker {
    pub(super) groups: Groups,
    finder: Option<Finder>,
    pub(super) by: Vec<usize>,
    /// The index of each `by` field among the numeric fields; `None` if one is not numeric.
    by_ordinals: Option<Vec<usize>>,
    /// The columns of the predicate, the start, the `by` field and the numeric fields.
    columns: Projection,
    /// Whether the time order holds all of these columns.
    time_order: bool,
    /// The interval, if the predicate concerns time alone, and there are neither `by` fields nor sketches.
    within: Option<Interval>,
    /// The same with a box, over points.
    filter: Option<SpaceTimeFilter>,
}

impl Worker {
    pub(super) fn new(scan: &mut Scan, question: &Aggregate) -> Result<Worker, Invalid> {
        let schema = &scan.schema().clone();
        // This validates the query: its fields are valid from here on.
        let groups = Groups::of(question, schema, &scan.control)?;
        let numeric = schema.numeric_fields();
        let mut columns = Projection::none(&scan.layout);
        let sketches = question.sketches();
        let sketched = sketches.iter().map(|(field, _)| field);
        question.fields().iter().chain(&question.by).chain(sketched).for_each(|&f| columns.add(scan.layout.field(f)));
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
        // Generated ids are not a column, and the time order does not keep the sequence numbers.
        let by_id = question.predicate.reads_id();
        let time_order = schema.has_time() && !by_id && columns.columns().all(|c| ordered.has(c));
        // These shortcuts count whole nodes, and see no values.
        let filter = question.predicate.as_space_time().filter(|_| question.by.is_empty() && sketches.is_empty());
        let within = filter.as_ref().map_or(Interval::ALWAYS, |filter| filter.interval);
        let finder = question.windows.as_ref().map(|windows| windows.finder(extent(&scan.snapshot, within)));
        Ok(Worker {
            groups,
            finder,
            by: question.by.clone(),
            by_ordinals: question.by.iter().map(|by| numeric.iter().position(|n| n == by)).collect(),
            columns,
            time_order,
            within: filter.as_ref().filter(|filter| filter.boxes.is_none()).map(|filter| filter.interval),
            filter: filter.filter(|_| in_plain_columns(schema)),
        })
    }

    /// Whether parts with a time order are read in it.
    pub(super) fn reads_time_order(&self) -> bool {
        self.time_order
    }

    /// Adds the tasks of a part, over its time order if that suffices. Returns the dead rows then, which that order
    /// still contains.
    pub(super) fn plan(&self, scan: &mut Scan, part: u32, tasks: &mut Vec<Task>) -> Result<DeadRowsByTime, QueryError> {
        let view = scan.part(part).clone();
        let rows = 0..view.rows();
        // The time order cannot exclude rows newer than the snapshot: it has no sequence numbers.
        if let Some(order) = Ordered::of(&view).filter(|_| self.time_order && view.none_newer(rows.clone())) {
            // One more than allowed is enough to detect that there are too many.
            let dead: Vec<u32> = view.dead_rows(rows).take(DEAD_MAX + 1).collect();
            if dead.len() <= DEAD_MAX {
                add_tasks(tasks, part, &order.trees()?, true);
                return DeadRowsByTime::of(scan, part, dead);
            }
        }
        add_tasks(tasks, part, view.trees(), false);
        Ok(DeadRowsByTime::default())
    }

    pub(super) fn task(&mut self, scan: &mut Scan, task: &Task, dead: &DeadRowsByTime) -> Result<(), QueryError> {
        let view = scan.part(task.part).clone();
        // The plan decided this for each part, knowing its dead rows; the task only follows.
        let Some(order) = Ordered::of(&view).filter(|_| task.by_time) else {
            if let Some(filter) = &self.filter {
                let (tree, node) = task.node();
                let (finder, groups) = (&mut self.finder, &mut self.groups);
                return SpaceTimeWalk::new(task.part, &view, filter, &self.columns, finder, groups)
                    .count(scan, tree, node);
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
            let mut timeline = Timeline::new(task.part, order, tree, dead, &self.columns);
            return timeline.count(scan, places, within, &mut self.finder, &mut self.groups);
        }
        let visible = |node: &NodeRef<'_>| !dead.some_in(&node.bounds());
        while let Some(run) = self.next(scan, &visible, &mut candidates)? {
            scan.charge(task.part, &run.rows)?;
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
                None => MatchedRows::Range(run.rows.clone()),
                Some(mask) => MatchedRows::Rows(mask.set_indices().map(|i| run.rows.start + i as u32).collect()),
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
            // The walk cannot be aborted from inside. After an error its steps change nothing, and it ends with this
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
                // A child may lie in one group, be fully visible, or have a float sum.
                _ => Step::Descend { whole: true },
            }
        });
        stats.events_matched += matched;
        match failed {
            Some(error) => Err(error),
            None => Ok(run),
        }
    }

    /// The group of all events below a node, if the node determines it.
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
        // Nodes summarise numbers only: whether all rows share a text shows only in the rows.
        let by = self.by_ordinals.as_ref()?.iter().map(|&ordinal| {
            let summary = node.summary(ordinal);
            let rows = node.rows().len() as u64;
            match (summary.min, summary.max) {
                // Min and max agree and no row is null, so every row has this value.
                (Some(Number::Int(min)), Some(Number::Int(max))) if min == max && summary.count == rows => {
                    Some(ByValue::Int(min))
                }
                (None, None) => Some(ByValue::Null),
                _ => None,
            }
        });
        Some(Members { window, by: by.collect::<Option<Vec<_>>>()? })
    }

    pub(super) fn run(&mut self, scan: &mut Scan, part: u32, run: &Run) -> Result<(), QueryError> {
        scan.stats.edge_blocks += run.rows.len().div_ceil(LEAF_ROWS) as u64;
        let Some((rows, batch)) = scan.matching(part, run, &self.columns)? else { return Ok(()) };
        self.rows(&rows, &batch, run.rows.start)
    }

    /// Counts rows of a batch, whose first row is `first`.
    pub(super) fn rows(&mut self, rows: &MatchedRows, batch: &Batch, first: u32) -> Result<(), QueryError> {
        let starts = match batch.schema().time {
            TimeRole::Instant(f) | TimeRole::Interval { start: f, .. } => match batch.field(f) {
                Some(FieldColumn::Time(times)) => Some(times),
                _ => None,
            },
            TimeRole::None => None,
        };
        let windows = self.finder.as_mut().zip(starts);
        let by: Vec<_> = self.by.iter().map(|&by| batch.field(by)).collect();
        let rows: Vec<u32> = rows.iter().map(|row| row - first).collect();
        self.groups.add_rows(&rows, batch, windows, &by)
    }
}

/// Whether place and time of an event are plain columns without nulls: the columns of a [`SpaceTimeFilter`].
fn in_plain_columns(schema: &Schema) -> bool {
    schema.geometry == Some(GeometryType::Point) && matches!(schema.time, TimeRole::Instant(_))
}

/// The first and last instants of a snapshot within an interval, ignoring open ends.
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
