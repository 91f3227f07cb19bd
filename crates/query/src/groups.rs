//! The groups of an aggregate while they grow.

use crate::aggregate::{ByValue, Function, FunctionValue, Group};
use crate::windows::{Finder, Window, Windows};
use arrow_array::{Array, TimestampMicrosecondArray};
use meridian_index::{FloatSum, NodeRef, Number, Sum, Summary};
use meridian_model::{Batch, FieldColumn, FieldType, Invalid, Schema};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Most running totals of a question: one per group, and one per group and numeric field.
pub const TOTALS_MAX: usize = 2_000_000;
/// Most different values of the `by` field.
pub const BY_VALUES_MAX: usize = 100_000;

/// What the events below a node share.
#[derive(Debug, Clone)]
pub(crate) struct Members {
    pub(crate) window: Option<Window>,
    pub(crate) by: Option<ByValue>,
}

/// A hasher for keys that are numbers: the finalizer of SplitMix64 over each.
#[derive(Default)]
pub(crate) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&b| self.write_u64(b.into()));
    }

    fn write_u64(&mut self, n: u64) {
        let mut z = (self.0 ^ n).wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        self.0 = z ^ (z >> 31);
    }

    fn write_i64(&mut self, n: i64) {
        self.write_u64(n as u64);
    }

    fn write_u32(&mut self, n: u32) {
        self.write_u64(n.into());
    }

    fn write_usize(&mut self, n: usize) {
        self.write_u64(n as u64);
    }

    fn write_isize(&mut self, n: isize) {
        self.write_u64(n as u64);
    }
}

type NumberMap<K> = HashMap<K, u32, BuildHasherDefault<NumberHasher>>;

/// Running totals of a field of integers in one group.
#[derive(Debug, Clone, Copy)]
struct Ints {
    count: u64,
    sum: i128,
    min: i64,
    max: i64,
}

/// Running totals of a field of floats in one group.
#[derive(Debug, Clone, Copy)]
struct Floats {
    count: u64,
    sum: FloatSum,
    min: f64,
    max: f64,
}

impl Ints {
    const NONE: Ints = Ints { count: 0, sum: 0, min: i64::MAX, max: i64::MIN };

    #[inline]
    fn add(&mut self, n: i64) {
        self.count += 1;
        self.sum += i128::from(n);
        self.min = self.min.min(n);
        self.max = self.max.max(n);
    }
}

impl Ints {
    fn add_all(&mut self, summary: &Summary) {
        self.count += summary.count;
        if let (Sum::Int(sum), Some(Number::Int(min)), Some(Number::Int(max))) = (summary.sum, summary.min, summary.max)
        {
            self.sum += sum;
            self.min = self.min.min(min);
            self.max = self.max.max(max);
        }
    }

    fn merge(&mut self, other: &Ints) {
        self.count += other.count;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }
}

impl Floats {
    fn add_all(&mut self, summary: &Summary) {
        self.count += summary.count;
        if let (Sum::Float(sum), Some(min), Some(max)) = (summary.sum, summary.min, summary.max) {
            self.sum.merge(&sum);
            self.min = self.min.min(min.to_f64());
            self.max = self.max.max(max.to_f64());
        }
    }

    fn merge(&mut self, other: &Floats) {
        self.count += other.count;
        self.sum.merge(&other.sum);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    fn none() -> Floats {
        Floats { count: 0, sum: FloatSum::default(), min: f64::INFINITY, max: f64::NEG_INFINITY }
    }

    #[inline]
    fn add(&mut self, x: f64) {
        self.count += 1;
        self.sum.add(x);
        self.min = if x < self.min { x } else { self.min };
        self.max = if x > self.max { x } else { self.max };
    }
}

/// Running totals of one field, by group.
enum Totals {
    Ints(Vec<Ints>),
    Floats(Vec<Floats>),
}

/// One numeric field of the question.
struct FieldTotals {
    field: usize,
    /// Place among the schema's numeric fields.
    ordinal: usize,
    totals: Totals,
}

/// All groups of a question.
pub(crate) struct Groups {
    /// Group of a window (its start) and a value (its number).
    of: NumberMap<(i64, u32)>,
    /// Group of a window by the window's number, where there is no `by` field.
    numbered: Vec<u32>,
    windows: Vec<Option<Window>>,
    values: Vec<u32>,
    counts: Vec<u64>,
    fields: Vec<FieldTotals>,
    by: Option<Values>,
    /// The group asked for last, which is most often the next too.
    last: Option<((i64, u32), u32)>,
    /// Group of each row in hand.
    scratch: Vec<u32>,
}

/// The values of the `by` field, numbered as they are met.
struct Values {
    list: Vec<ByValue>,
    texts: HashMap<Box<str>, u32>,
    ints: NumberMap<i64>,
    bools: [Option<u32>; 2],
    null: Option<u32>,
}

/// Stands for the window of events without one.
const NO_WINDOW: i64 = i64::MIN;

/// Stands for a group that has not been made.
const NO_GROUP: u32 = u32::MAX;

impl Groups {
    pub(crate) fn new(schema: &Schema, fields: &[usize], by: Option<FieldType>) -> Groups {
        let numeric = schema.numeric_fields();
        let fields = fields
            .iter()
            .filter_map(|&field| {
                let ordinal = numeric.iter().position(|&n| n == field)?;
                let totals = match schema.fields[field].kind {
                    FieldType::Int => Totals::Ints(Vec::new()),
                    _ => Totals::Floats(Vec::new()),
                };
                Some(FieldTotals { field, ordinal, totals })
            })
            .collect();
        let by = by.map(|_| Values {
            list: Vec::new(),
            texts: HashMap::new(),
            ints: NumberMap::default(),
            bools: [None; 2],
            null: None,
        });
        Groups {
            of: NumberMap::default(),
            numbered: Vec::new(),
            windows: Vec::new(),
            values: Vec::new(),
            counts: Vec::new(),
            fields,
            by,
            last: None,
            scratch: Vec::new(),
        }
    }

    /// Counts all events below a node.
    pub(crate) fn add_node(&mut self, members: &Members, node: &NodeRef<'_>) -> Result<(), Invalid> {
        let value = match (&mut self.by, &members.by) {
            (Some(values), Some(value)) => values.number_of(value)?,
            _ => 0,
        };
        let group = self.group(members.window, value)?;
        self.add_all(group, node.rows().len() as u64, |_, ordinal| node.summary(ordinal));
        Ok(())
    }

    /// Counts events of one group that are known by their number and, for each numeric field (its index, and its place
    /// among the numeric fields), by a summary.
    pub(crate) fn add_all(&mut self, group: u32, count: u64, summary: impl Fn(usize, usize) -> Summary) {
        self.counts[group as usize] += count;
        for field in &mut self.fields {
            let summary = summary(field.field, field.ordinal);
            match &mut field.totals {
                Totals::Ints(totals) => totals[group as usize].add_all(&summary),
                Totals::Floats(totals) => totals[group as usize].add_all(&summary),
            }
        }
    }

    /// Counts rows of a batch.
    pub(crate) fn add_rows(
        &mut self,
        rows: &[u32],
        batch: &Batch,
        mut windows: Option<(&mut Finder, &TimestampMicrosecondArray)>,
        by: Option<FieldColumn<'_>>,
    ) -> Result<(), Invalid> {
        let mut groups = std::mem::take(&mut self.scratch);
        groups.clear();
        match &mut windows {
            Some((finder, starts)) if self.by.is_none() && starts.null_count() == 0 => {
                let starts = starts.values();
                for &row in rows {
                    groups.push(self.group_at(finder, starts[row as usize])?);
                }
            }
            windows => {
                for row in rows.iter().map(|&row| row as usize) {
                    let window = match windows {
                        Some((finder, starts)) if starts.is_valid(row) => Some(finder.find(starts.value(row))),
                        _ => None,
                    };
                    let value = match (&mut self.by, &by) {
                        (Some(values), Some(column)) => values.number_at(column, row)?,
                        (Some(values), None) => values.number_of(&ByValue::Null)?,
                        (None, _) => 0,
                    };
                    groups.push(self.group(window, value)?);
                }
            }
        }
        groups.iter().for_each(|&group| self.counts[group as usize] += 1);
        for field in &mut self.fields {
            let rows = rows.iter().map(|&row| row as usize).zip(&groups);
            match (&mut field.totals, batch.field(field.field)) {
                (Totals::Ints(totals), Some(FieldColumn::Int(column))) => {
                    let no_nulls = column.null_count() == 0;
                    for (row, &group) in rows {
                        if no_nulls || column.is_valid(row) {
                            totals[group as usize].add(column.value(row));
                        }
                    }
                }
                (Totals::Floats(totals), Some(FieldColumn::Float(column))) => {
                    let no_nulls = column.null_count() == 0;
                    for (row, &group) in rows {
                        if no_nulls || column.is_valid(row) {
                            totals[group as usize].add(column.value(row));
                        }
                    }
                }
                _ => {}
            }
        }
        self.scratch = groups;
        Ok(())
    }

    /// Adds the groups of another slice of the same question.
    pub(crate) fn merge(&mut self, other: Groups) -> Result<(), Invalid> {
        for (theirs, &window) in other.windows.iter().enumerate() {
            let value = match (&mut self.by, &other.by) {
                (Some(mine), Some(by)) => match by.list.get(other.values[theirs] as usize) {
                    Some(value) => mine.number_of(value)?,
                    None => 0,
                },
                _ => 0,
            };
            let group = self.group(window, value)? as usize;
            self.counts[group] += other.counts[theirs];
            for (mine, field) in self.fields.iter_mut().zip(&other.fields) {
                match (&mut mine.totals, &field.totals) {
                    (Totals::Ints(mine), Totals::Ints(all)) => mine[group].merge(&all[theirs]),
                    (Totals::Floats(mine), Totals::Floats(all)) => mine[group].merge(&all[theirs]),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// The group of an instant's window, without a `by` field; found by the window's number, where it has one.
    #[inline]
    pub(crate) fn group_at(&mut self, finder: &mut Finder, time: i64) -> Result<u32, Invalid> {
        let number = finder.number(time);
        match number.and_then(|number| self.numbered.get(number)) {
            Some(&group) if group != NO_GROUP => return Ok(group),
            _ => {}
        }
        let group = self.group(Some(finder.find(time)), 0)?;
        if let Some(number) = number {
            self.numbered.resize(self.numbered.len().max(number + 1), NO_GROUP);
            self.numbered[number] = group;
        }
        Ok(group)
    }

    /// The number of a group, made if it is new. Without a `by` field the value is 0.
    #[inline]
    pub(crate) fn group(&mut self, window: Option<Window>, value: u32) -> Result<u32, Invalid> {
        let key = (window.map_or(NO_WINDOW, |w| w.start), value);
        if let Some((_, group)) = self.last.filter(|(last, _)| *last == key) {
            return Ok(group);
        }
        if let Some(&group) = self.of.get(&key) {
            self.last = Some((key, group));
            return Ok(group);
        }
        let group = self.counts.len();
        if (group + 1) * (self.fields.len() + 1) > TOTALS_MAX {
            return Err(too_many());
        }
        self.of.insert(key, group as u32);
        self.last = Some((key, group as u32));
        self.windows.push(window);
        self.values.push(value);
        self.counts.push(0);
        for field in &mut self.fields {
            match &mut field.totals {
                Totals::Ints(totals) => totals.push(Ints::NONE),
                Totals::Floats(totals) => totals.push(Floats::none()),
            }
        }
        Ok(group as u32)
    }

    /// The groups in order, with what each function gave.
    pub(crate) fn finish(
        mut self,
        functions: &[Function],
        windows: Option<&Windows>,
        empty: bool,
    ) -> Result<Vec<Group>, Invalid> {
        if self.by.is_none() && windows.is_none() {
            // One group even of no events.
            self.group(None, 0)?;
        }
        if let (Some(windows), true) = (windows, empty) {
            self.fill_gaps(windows)?;
        }
        let mut order: Vec<u32> = (0..self.counts.len() as u32).collect();
        let by = |group: u32| self.by.as_ref().and_then(|v| v.list.get(self.values[group as usize] as usize));
        order.sort_unstable_by(|&a, &b| {
            let start = |g: u32| self.windows[g as usize].map_or((true, 0), |w| (false, w.start));
            start(a).cmp(&start(b)).then_with(|| by(a).cmp(&by(b)))
        });
        let groups = order
            .into_iter()
            .map(|group| Group {
                window: self.windows[group as usize],
                by: by(group).cloned(),
                count: self.counts[group as usize],
                values: functions.iter().map(|f| self.value(f, group as usize)).collect(),
            })
            .collect();
        Ok(groups)
    }

    /// Adds the windows without events between the first and the last with some, for each value.
    fn fill_gaps(&mut self, windows: &Windows) -> Result<(), Invalid> {
        let used = self.windows.iter().flatten();
        let (Some(first), Some(last)) = (used.clone().map(|w| w.start).min(), used.map(|w| w.start).max()) else {
            return Ok(());
        };
        let values = self.by.as_ref().map_or(1, |v| v.list.len() as u32);
        let mut start = first;
        while start <= last {
            let window = windows.window_of(start);
            for value in 0..values {
                self.group(Some(window), value)?;
            }
            if window.end <= start {
                break;
            }
            start = window.end;
        }
        Ok(())
    }

    fn value(&self, function: &Function, group: usize) -> FunctionValue {
        let Some(field) = function.field() else {
            return FunctionValue::Int(self.counts[group].into());
        };
        let Some(totals) = self.fields.iter().find(|f| f.field == field) else { return FunctionValue::Null };
        let (count, sum, min, max) = match &totals.totals {
            Totals::Ints(totals) => {
                let t = &totals[group];
                let int = |n: i64| FunctionValue::Int(n.into());
                (t.count, FunctionValue::Int(t.sum), int(t.min), int(t.max))
            }
            Totals::Floats(totals) => {
                let t = &totals[group];
                let float = FunctionValue::Float;
                (t.count, float(t.sum.value()), float(t.min), float(t.max))
            }
        };
        match function {
            Function::Count | Function::CountOf(_) => FunctionValue::Int(count.into()),
            _ if count == 0 => FunctionValue::Null,
            Function::Sum(_) => sum,
            Function::Min(_) => min,
            Function::Max(_) => max,
            Function::Avg(_) => FunctionValue::Float(match sum {
                FunctionValue::Int(sum) => sum as f64 / count as f64,
                FunctionValue::Float(sum) => sum / count as f64,
                FunctionValue::Null => 0.0,
            }),
        }
    }
}

fn too_many() -> Invalid {
    Invalid::field(
        "window",
        format!(
            "these are too many groups (more than {TOTALS_MAX} totals): ask for longer windows, fewer functions or a shorter time"
        ),
    )
}

impl Values {
    fn next(&mut self, value: ByValue) -> Result<u32, Invalid> {
        if self.list.len() >= BY_VALUES_MAX {
            return Err(Invalid::field(
                "by",
                format!("the property has more than {BY_VALUES_MAX} different values: filter, or group by another one"),
            ));
        }
        self.list.push(value);
        Ok(self.list.len() as u32 - 1)
    }

    fn number_of(&mut self, value: &ByValue) -> Result<u32, Invalid> {
        match value {
            ByValue::Text(text) => self.text(text),
            ByValue::Int(n) => self.int(*n),
            ByValue::Bool(b) => self.bool(*b),
            ByValue::Null => self.null(),
        }
    }

    #[inline]
    fn number_at(&mut self, column: &FieldColumn<'_>, row: usize) -> Result<u32, Invalid> {
        match column {
            FieldColumn::Text(a) if a.is_valid(row) => self.text(a.value(row)),
            FieldColumn::Int(a) if a.is_valid(row) => self.int(a.value(row)),
            FieldColumn::Bool(a) if a.is_valid(row) => self.bool(a.value(row)),
            _ => self.null(),
        }
    }

    fn text(&mut self, text: &str) -> Result<u32, Invalid> {
        if let Some(&number) = self.texts.get(text) {
            return Ok(number);
        }
        let number = self.next(ByValue::Text(text.to_owned()))?;
        self.texts.insert(text.into(), number);
        Ok(number)
    }

    fn int(&mut self, n: i64) -> Result<u32, Invalid> {
        if let Some(&number) = self.ints.get(&n) {
            return Ok(number);
        }
        let number = self.next(ByValue::Int(n))?;
        self.ints.insert(n, number);
        Ok(number)
    }

    fn bool(&mut self, b: bool) -> Result<u32, Invalid> {
        match self.bools[usize::from(b)] {
            Some(number) => Ok(number),
            None => {
                let number = self.next(ByValue::Bool(b))?;
                self.bools[usize::from(b)] = Some(number);
                Ok(number)
            }
        }
    }

    fn null(&mut self) -> Result<u32, Invalid> {
        match self.null {
            Some(number) => Ok(number),
            None => {
                let number = self.next(ByValue::Null)?;
                self.null = Some(number);
                Ok(number)
            }
        }
    }
}
