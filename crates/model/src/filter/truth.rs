//! Three-valued truth, a column at a time.

use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder, NullBuffer};

/// The value of a predicate for each row: true, false or unknown (SQL's three-valued logic).
#[derive(Debug, Clone)]
pub(crate) struct Truth {
    /// Rows for which it is true.
    pub(crate) yes: BooleanBuffer,
    /// Rows for which it is false. Absent if nothing is unknown: then every row that is not true is false.
    no: Option<BooleanBuffer>,
}

impl Truth {
    pub(crate) fn constant(value: bool, rows: usize) -> Truth {
        Truth { yes: if value { BooleanBuffer::new_set(rows) } else { BooleanBuffer::new_unset(rows) }, no: None }
    }

    pub(crate) fn unknown(rows: usize) -> Truth {
        Truth { yes: BooleanBuffer::new_unset(rows), no: Some(BooleanBuffer::new_unset(rows)) }
    }

    /// `yes` for known values, unknown for nulls.
    pub(crate) fn of(yes: BooleanBuffer, nulls: Option<&NullBuffer>) -> Truth {
        match nulls {
            Some(nulls) if nulls.null_count() > 0 => {
                let valid = nulls.inner();
                // Values at null rows are undefined, so their test results are arbitrary.
                Truth { yes: &yes & valid, no: Some(&!&yes & valid) }
            }
            _ => Truth { yes, no: None },
        }
    }

    /// Tests every row; for tests so cheap that skipping a row would cost more.
    pub(crate) fn test_all(rows: usize, nulls: Option<&NullBuffer>, test: impl FnMut(usize) -> bool) -> Truth {
        Truth::of(BooleanBuffer::collect_bool(rows, test), nulls)
    }

    /// Tests only rows that are `open` and not null; for expensive tests. Closed rows get arbitrary results.
    pub(crate) fn test_open(
        rows: usize,
        open: Option<&BooleanBuffer>,
        nulls: Option<&NullBuffer>,
        mut test: impl FnMut(usize) -> bool,
    ) -> Truth {
        let nulls = nulls.filter(|n| n.null_count() > 0);
        let wanted = match (open, nulls) {
            (None, None) => return Truth { yes: BooleanBuffer::collect_bool(rows, test), no: None },
            (Some(open), None) => open.clone(),
            (None, Some(nulls)) => nulls.inner().clone(),
            (Some(open), Some(nulls)) => open & nulls.inner(),
        };
        let mut yes = BooleanBufferBuilder::new(rows);
        yes.append_n(rows, false);
        for row in wanted.set_indices() {
            if test(row) {
                yes.set_bit(row, true);
            }
        }
        Truth::of(yes.finish(), nulls)
    }

    pub(crate) fn not(self) -> Truth {
        match self.no {
            None => Truth { yes: !&self.yes, no: None },
            Some(no) => Truth { yes: no, no: Some(self.yes) },
        }
    }

    pub(crate) fn and(self, other: Truth) -> Truth {
        let yes = &self.yes & &other.yes;
        let no = match (&self.no, &other.no) {
            (None, None) => None,
            _ => Some(&self.falses() | &other.falses()),
        };
        Truth { yes, no }
    }

    pub(crate) fn or(self, other: Truth) -> Truth {
        // De Morgan's law holds in three-valued logic, and swapping the two buffers is free.
        self.not().and(other.not()).not()
    }

    /// Rows for which it is false.
    pub(crate) fn falses(&self) -> BooleanBuffer {
        self.no.clone().unwrap_or_else(|| !&self.yes)
    }
}

/// The rows of `open` (all, if absent) that are not `decided`.
pub(crate) fn still_open(open: Option<&BooleanBuffer>, decided: &BooleanBuffer) -> BooleanBuffer {
    let rest = !decided;
    match open {
        None => rest,
        Some(open) => &rest & open,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(values: &[Option<bool>]) -> Truth {
        let nulls = NullBuffer::from(values.iter().map(Option::is_some).collect::<Vec<_>>());
        Truth::test_all(values.len(), Some(&nulls), |i| values[i].unwrap_or(i % 2 == 0))
    }

    fn rows(truth: &Truth) -> Vec<Option<bool>> {
        let no = truth.falses();
        (0..truth.yes.len())
            .map(|i| match (truth.yes.value(i), no.value(i)) {
                (true, false) => Some(true),
                (false, true) => Some(false),
                (false, false) => None,
                (true, true) => panic!("row {i} is true and false"),
            })
            .collect()
    }

    #[test]
    fn columns_follow_kleene() {
        let (t, f, u) = (Some(true), Some(false), None);
        let a = [t, t, t, f, f, f, u, u, u];
        let b = [t, f, u, t, f, u, t, f, u];
        assert_eq!(rows(&column(&a).and(column(&b))), [t, f, u, f, f, f, u, f, u]);
        assert_eq!(rows(&column(&a).or(column(&b))), [t, t, t, t, f, u, t, u, u]);
        assert_eq!(rows(&column(&a).not()), [f, f, f, t, t, t, u, u, u]);
        assert_eq!(rows(&Truth::constant(true, 3).and(column(&[t, f, u]))), [t, f, u]);
        assert_eq!(rows(&Truth::unknown(3).or(column(&[t, f, u]))), [t, u, u]);
    }

    #[test]
    fn closed_and_null_rows_are_not_tested() {
        let open = BooleanBuffer::from(vec![true, false, true, true]);
        let nulls = NullBuffer::from(vec![true, true, false, true]);
        let mut tested = Vec::new();
        let truth = Truth::test_open(4, Some(&open), Some(&nulls), |i| {
            tested.push(i);
            true
        });
        assert_eq!(tested, [0, 3]);
        assert_eq!(rows(&truth)[2], None);
        assert_eq!((rows(&truth)[0], rows(&truth)[3]), (Some(true), Some(true)));
    }
}
