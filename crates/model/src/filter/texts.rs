//! Comparisons of texts, and tests of lists of texts.

use super::expr::{ArrayOp, Comparison};
use super::like::Pattern;
use super::truth::Truth;
use crate::batch::{Batch, FieldColumn};
use crate::caseless::fold;
use crate::layout::{Layout, Projection};
use crate::schema::IdRole;
use crate::seq::Seq;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ListArray, StringArray};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use std::borrow::Cow;
use std::collections::HashSet;

/// A text operand, ordered by Unicode code point; case-insensitive with `fold` ([`crate::caseless`]).
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Text {
    pub(crate) source: Source,
    pub(crate) fold: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Source {
    Field(usize),
    Id,
    Literal(String),
}

/// The values of a text operand over a batch.
enum Values<'a> {
    Column(&'a StringArray),
    /// Sequence numbers that ids are generated from.
    Made(&'a [u64]),
    One(&'a str),
    NotRead,
}

impl Text {
    /// The text, if it is a literal; folded if required.
    pub(crate) fn literal(&self) -> Option<Cow<'_, str>> {
        match &self.source {
            Source::Literal(text) if self.fold => Some(fold(text)),
            Source::Literal(text) => Some(Cow::Borrowed(text)),
            Source::Field(_) | Source::Id => None,
        }
    }

    pub(crate) fn add_columns(&self, layout: &Layout, projection: &mut Projection) {
        match self.source {
            Source::Field(field) => projection.add(layout.field(field)),
            Source::Id => projection.add_id(layout),
            Source::Literal(_) => {}
        }
    }

    fn values<'a>(&'a self, batch: &'a Batch) -> Values<'a> {
        let column = match &self.source {
            Source::Literal(text) => return Values::One(text),
            Source::Id => match batch.seqs() {
                Some(seqs) if batch.schema().id == IdRole::Made => return Values::Made(seqs),
                _ => batch.ids(),
            },
            Source::Field(field) => match batch.field(*field) {
                Some(FieldColumn::Text(column)) => Some(column),
                _ => None,
            },
        };
        column.map_or_else(
            || {
                debug_assert!(false, "a text column was not read: see Predicate::add_columns");
                Values::NotRead
            },
            Values::Column,
        )
    }
}

impl Values<'_> {
    fn nulls(&self) -> Option<&NullBuffer> {
        match self {
            Values::Column(column) => column.nulls(),
            Values::Made(_) | Values::One(_) | Values::NotRead => None,
        }
    }

    fn at(&self, row: usize, folded: bool) -> Cow<'_, str> {
        let text = match self {
            Values::Column(column) => column.value(row),
            // Generated ids are lower case already.
            Values::Made(seqs) => return Cow::Owned(Seq(seqs[row]).to_id()),
            Values::One(text) => text,
            Values::NotRead => "",
        };
        if folded { fold(text) } else { Cow::Borrowed(text) }
    }
}

/// `left op right` for every open row.
pub(crate) fn evaluate(
    op: Comparison,
    left: &Text,
    right: &Text,
    batch: &Batch,
    open: Option<&BooleanBuffer>,
) -> Truth {
    let (a, b) = (left.values(batch), right.values(batch));
    if matches!(a, Values::NotRead) || matches!(b, Values::NotRead) {
        return Truth::unknown(batch.rows());
    }
    let nulls = NullBuffer::union(a.nulls(), b.nulls());
    // The usual comparison of a column with a literal, without a `Cow` per row.
    if let (Values::Column(column), Source::Literal(literal), false) = (&a, &right.source, left.fold) {
        let literal = if right.fold { fold(literal) } else { Cow::Borrowed(literal.as_str()) };
        return match op {
            // Equality compares lengths first.
            Comparison::Eq => Truth::test_open(batch.rows(), open, nulls.as_ref(), |i| column.value(i) == literal),
            Comparison::Ne => Truth::test_open(batch.rows(), open, nulls.as_ref(), |i| column.value(i) != literal),
            _ => Truth::test_open(batch.rows(), open, nulls.as_ref(), |i| op.holds(column.value(i).cmp(&literal))),
        };
    }
    Truth::test_open(batch.rows(), open, nulls.as_ref(), |i| op.holds(a.at(i, left.fold).cmp(&b.at(i, right.fold))))
}

/// A set of texts, for `IN`.
pub(crate) type TextSet = HashSet<String>;

/// `value IN (set)` for every open row.
pub(crate) fn evaluate_in(value: &Text, set: &TextSet, batch: &Batch, open: Option<&BooleanBuffer>) -> Truth {
    let values = value.values(batch);
    if matches!(values, Values::NotRead) {
        return Truth::unknown(batch.rows());
    }
    Truth::test_open(batch.rows(), open, values.nulls(), |i| set.contains(&*values.at(i, value.fold)))
}

/// `value LIKE pattern` for every open row.
pub(crate) fn evaluate_like(value: &Text, pattern: &Pattern, batch: &Batch, open: Option<&BooleanBuffer>) -> Truth {
    let values = value.values(batch);
    if matches!(values, Values::NotRead) {
        return Truth::unknown(batch.rows());
    }
    Truth::test_open(batch.rows(), open, values.nulls(), |i| pattern.matches(&values.at(i, value.fold)))
}

/// A text-list operand.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum List {
    Field(usize),
    /// Sorted and deduplicated.
    Literal(Vec<String>),
}

impl List {
    fn column<'a>(&self, batch: &'a Batch) -> Option<&'a ListArray> {
        let List::Field(field) = self else {
            return None;
        };
        match batch.field(*field) {
            Some(FieldColumn::TextList(column)) => Some(column),
            _ => {
                debug_assert!(false, "list field {field} was not read: see Predicate::add_columns");
                None
            }
        }
    }

    /// The texts of a row, sorted and deduplicated; nulls in a list are skipped.
    fn at<'a>(&'a self, column: Option<&'a ListArray>, row: usize) -> Vec<&'a str> {
        match (self, column) {
            (List::Literal(texts), _) => texts.iter().map(String::as_str).collect(),
            (List::Field(_), None) => Vec::new(),
            (List::Field(_), Some(column)) => {
                let offsets = column.value_offsets();
                let Some(texts) = column.values().as_string_opt::<i32>() else {
                    return Vec::new();
                };
                let items = offsets[row] as usize..offsets[row + 1] as usize;
                let mut items: Vec<&str> = items.filter(|&i| texts.is_valid(i)).map(|i| texts.value(i)).collect();
                items.sort_unstable();
                items.dedup();
                items
            }
        }
    }
}

/// `op(left, right)` for every open row; lists are compared as sets.
pub(crate) fn evaluate_lists(
    op: ArrayOp,
    left: &List,
    right: &List,
    batch: &Batch,
    open: Option<&BooleanBuffer>,
) -> Truth {
    let (a, b) = (left.column(batch), right.column(batch));
    let missing = |list: &List, column: Option<&ListArray>| matches!(list, List::Field(_)) && column.is_none();
    if missing(left, a) || missing(right, b) {
        return Truth::unknown(batch.rows());
    }
    let nulls = NullBuffer::union(a.and_then(|c| c.nulls()), b.and_then(|c| c.nulls()));
    Truth::test_open(batch.rows(), open, nulls.as_ref(), |i| holds_of_lists(op, &left.at(a, i), &right.at(b, i)))
}

/// `op` between two sorted sets.
pub(crate) fn holds_of_lists<T: Ord>(op: ArrayOp, a: &[T], b: &[T]) -> bool {
    let holds = |outer: &[T], inner: &[T]| inner.iter().all(|x| outer.binary_search(x).is_ok());
    match op {
        ArrayOp::Contains => holds(a, b),
        ArrayOp::ContainedBy => holds(b, a),
        ArrayOp::Equals => a == b,
        ArrayOp::Overlaps => a.iter().any(|x| b.binary_search(x).is_ok()),
    }
}
