//! An index of boxes on the globe: hashed cells at several levels.
//!
//! At level n the globe has 2^n by 2^n cells. A box is entered in at most four cells of the finest level where that is
//! possible. A lookup inspects one cell of each level in use for a point, or the cells that its box touches. The
//! results are candidates: boxes left out do not touch.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Levels; cells of the finest level are about 2.4 km wide at the equator.
const LEVELS: usize = 15;
/// Max cells of a box.
const CELLS: u64 = 4;
/// From this many cells of a level on, the lookup iterates over the cells in use instead.
const LOOKED_AT: u64 = 64;

/// West, south, east, north; west never exceeds east.
type Sides = [f64; 4];

/// Boxes by cell.
#[derive(Debug, Default)]
pub(crate) struct Grid {
    cells: HashMap<u64, Vec<u32>>,
    /// Cells in use at each level.
    used: [usize; LEVELS],
}

/// Cells of one level that a box touches: first and last column, first and last row.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Span {
    level: usize,
    columns: (u64, u64),
    rows: (u64, u64),
}

impl Span {
    fn of(level: usize, [west, south, east, north]: Sides) -> Span {
        let last = (1_u64 << level) - 1;
        // A cast saturates at its range, so an out-of-range box still matches the outermost cells.
        let cell = |at: f64, from: f64, width: f64| (((at - from) / width * (last + 1) as f64) as u64).min(last);
        Span {
            level,
            columns: (cell(west, -180.0, 360.0), cell(east, -180.0, 360.0)),
            rows: (cell(south, -90.0, 180.0), cell(north, -90.0, 180.0)),
        }
    }

    fn count(&self) -> u64 {
        (self.columns.1 - self.columns.0 + 1) * (self.rows.1 - self.rows.0 + 1)
    }

    fn cells(self) -> impl Iterator<Item = u64> {
        let Span { level, columns, rows } = self;
        (columns.0..=columns.1).flat_map(move |column| (rows.0..=rows.1).map(move |row| key(level, column, row)))
    }

    fn has(&self, cell: u64) -> bool {
        let (level, column, row) = parts(cell);
        level == self.level
            && (self.columns.0..=self.columns.1).contains(&column)
            && (self.rows.0..=self.rows.1).contains(&row)
    }
}

fn key(level: usize, column: u64, row: u64) -> u64 {
    (level as u64) << 32 | column << 16 | row
}

fn parts(cell: u64) -> (usize, u64, u64) {
    ((cell >> 32) as usize, cell >> 16 & 0xffff, cell & 0xffff)
}

impl Grid {
    /// Inserts boxes under one number. Returns their cells, for the removal.
    pub(crate) fn insert(&mut self, number: u32, boxes: &[Sides]) -> Vec<u64> {
        let finest = |sides: &Sides| {
            let fits = |level: &usize| Span::of(*level, *sides).count() <= CELLS;
            // The finest level that fits: its cells hold the fewest other questions.
            let level = (0..LEVELS).rev().find(fits).unwrap_or(0);
            Span::of(level, *sides).cells()
        };
        let mut cells: Vec<u64> = boxes.iter().flat_map(finest).collect();
        cells.sort_unstable();
        cells.dedup();
        for cell in &cells {
            let numbers = self.cells.entry(*cell).or_default();
            self.used[parts(*cell).0] += usize::from(numbers.is_empty());
            numbers.push(number);
        }
        cells
    }

    /// Removes a number from its cells.
    pub(crate) fn remove(&mut self, number: u32, cells: &[u64]) {
        for cell in cells {
            if let Entry::Occupied(mut numbers) = self.cells.entry(*cell) {
                numbers.get_mut().retain(|n| *n != number);
                if numbers.get().is_empty() {
                    numbers.remove();
                    self.used[parts(*cell).0] -= 1;
                }
            }
        }
    }

    /// Appends the numbers of all boxes that may touch this one, possibly with duplicates.
    pub(crate) fn touching(&self, sides: Sides, out: &mut Vec<u32>) {
        for level in (0..LEVELS).filter(|level| self.used[*level] > 0) {
            let span = Span::of(level, sides);
            // A world-wide event touches millions of fine cells; then the cells in use are fewer.
            if span.count() <= LOOKED_AT.max(self.used[level] as u64) {
                out.extend(span.cells().filter_map(|cell| self.cells.get(&cell)).flatten());
            } else {
                out.extend(self.cells.iter().filter(|(cell, _)| span.has(**cell)).flat_map(|(_, numbers)| numbers));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sides() -> impl Strategy<Value = Sides> {
        let size = || prop_oneof![0.0..0.01_f64, 0.0..1.0_f64, 0.0..360.0_f64];
        (-180.0..180.0_f64, -90.0..90.0_f64, size(), size())
            .prop_map(|(west, south, wide, high)| [west, south, (west + wide).min(180.0), (south + high).min(90.0)])
    }

    proptest! {
        #[test]
        fn all_that_touch_are_found_and_what_is_removed_is_not(boxes in proptest::collection::vec(sides(), 1..60),
            at in sides(), out in 0..60_usize) {
            let mut grid = Grid::default();
            let cells: Vec<Vec<u64>> = boxes.iter().enumerate().map(|(n, b)| grid.insert(n as u32, &[*b])).collect();
            let gone = out % boxes.len();
            grid.remove(gone as u32, &cells[gone]);
            let mut found = Vec::new();
            grid.touching(at, &mut found);
            for (n, b) in boxes.iter().enumerate() {
                let touches = b[0] <= at[2] && at[0] <= b[2] && b[1] <= at[3] && at[1] <= b[3];
                prop_assert!(!touches || n == gone || found.contains(&(n as u32)), "{b:?} {at:?}");
            }
            prop_assert!(!found.contains(&(gone as u32)));
            for (n, cells) in cells.iter().enumerate().filter(|(n, _)| *n != gone) {
                grid.remove(n as u32, cells);
            }
            prop_assert!(grid.cells.is_empty() && grid.used == [0; LEVELS]);
        }
    }
}
