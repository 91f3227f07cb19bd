//! Counts at one level.

use arrow_buffer::ScalarBuffer;

/// Counts at one level, in order of bin and interleaved cell.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Layer {
    pub(super) level: u8,
    /// Numbers of the non-empty bins, ascending.
    pub(super) bins: ScalarBuffer<i64>,
    /// Start of each bin's cells, then the number of cells.
    pub(super) firsts: ScalarBuffer<u32>,
    pub(super) cells: ScalarBuffer<u32>,
    pub(super) counts: ScalarBuffer<u64>,
}

impl Layer {
    /// The layer of cells that are sorted and distinct.
    pub(super) fn of(level: u8, sorted: &[Cell]) -> Layer {
        let (mut bins, mut firsts) = (Vec::new(), Vec::new());
        for (at, cell) in sorted.iter().enumerate() {
            if bins.last() != Some(&cell.bin) {
                bins.push(cell.bin);
                firsts.push(at as u32);
            }
        }
        firsts.push(sorted.len() as u32);
        Layer {
            level,
            bins: bins.into(),
            firsts: firsts.into(),
            cells: sorted.iter().map(|c| c.cell).collect::<Vec<_>>().into(),
            counts: sorted.iter().map(|c| c.count).collect::<Vec<_>>().into(),
        }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = Cell> + '_ {
        self.bins.iter().enumerate().flat_map(move |(i, &bin)| {
            let cells = self.firsts[i] as usize..self.firsts[i + 1] as usize;
            cells.map(move |at| Cell { bin, cell: self.cells[at], count: self.counts[at] })
        })
    }

    /// Checks that bins and cells are sorted and within range.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        let ascending = |values: &[u32]| values.windows(2).all(|pair| pair[0] < pair[1]);
        if !self.bins.windows(2).all(|pair| pair[0] < pair[1]) {
            return Err("the bins are not in order");
        }
        let ends = self.firsts.first().zip(self.firsts.last());
        if ends != Some((&0, &(self.cells.len() as u32))) || !ascending(&self.firsts) {
            return Err("the bins' cells do not follow each other");
        }
        for bin in self.firsts.windows(2) {
            let cells = &self.cells[bin[0] as usize..bin[1] as usize];
            if !ascending(cells) || cells.last().is_some_and(|&cell| cell >> (2 * self.level) != 0) {
                return Err("the cells are not in order or beyond their level");
            }
        }
        Ok(())
    }
}

/// Count of one cell during one bin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) bin: i64,
    pub(super) cell: u32,
    pub(super) count: u64,
}

/// Sums adjacent entries with the same bin and cell.
pub(super) fn join_equal(sorted: &mut Vec<Cell>) {
    sorted.dedup_by(|next, kept| {
        let same = (next.bin, next.cell) == (kept.bin, kept.cell);
        if same {
            kept.count = kept.count.saturating_add(next.count);
        }
        same
    });
}
