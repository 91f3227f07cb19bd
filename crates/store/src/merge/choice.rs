//! Chooses the segments to merge, and counts those that a query reads: pure functions of the manifest.
//!
//! Segments of one flush or merge over one range of time form a *run*. Its *tier* is its row count to the base of four.
//! Ranges are dyadic, so the runs over one instant are nested. A query about that instant reads one or more segments of
//! each. `docs/compaction.md` states the resulting bounds, and the tests measure them.

use crate::manifest::ranges::Range;
use std::collections::BTreeMap;

/// Number of runs of similar size that are merged into one.
pub(crate) const RUNS_MERGED: usize = 4;
/// Number of runs over one period from which on merges do not pause for requests.
pub(crate) const DEEP: u32 = 12;

/// Segments of one flush or merge over one range.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    /// Its segments, by the caller's index.
    pub(crate) segments: Vec<usize>,
    pub(crate) rows: u64,
    pub(crate) dead: u64,
    pub(crate) range: Range,
}

/// Returns the size class: the row count to the base of the merge factor.
pub(crate) fn tier(rows: u64) -> u32 {
    rows.max(1).ilog2() / RUNS_MERGED.ilog2()
}

/// Returns the tier below which four runs of each tier fit into a merge of this many rows.
fn tiers_merged(merge_rows_max: u64) -> u32 {
    tier(merge_rows_max).saturating_sub(1)
}

/// Returns the max runs over one period once nothing is left to merge. There are three of each tier that is merged, and
/// all runs of larger tiers.
pub(crate) fn depth_bound(rows: u64, merge_rows_max: u64) -> u64 {
    let tiers = tiers_merged(merge_rows_max);
    let merged = (tier(rows) + 1).min(tiers);
    u64::from(merged) * (RUNS_MERGED as u64 - 1) + (rows >> (tiers * RUNS_MERGED.ilog2()))
}

/// Returns the max runs over one period.
pub(crate) fn depth(runs: &[Run]) -> u32 {
    let over = |range: &Range| runs.iter().filter(|run| run.range.holds(range)).count() as u32;
    ranges(runs).iter().map(over).max().unwrap_or(0)
}

/// Returns the ranges of runs, narrow ones first: ranges merged there need no second check further up.
fn ranges(runs: &[Run]) -> Vec<Range> {
    let mut ranges: Vec<Range> = runs.iter().map(|run| run.range).collect();
    ranges.sort_unstable();
    ranges.dedup();
    ranges
}

/// Returns the runs to merge next, if four of a tier lie over one period. They include all smaller runs over it, and
/// all smaller ones in the range of the widest. If that exceeds the max of a merge, fewer are taken, in the end only
/// the four smallest.
pub(crate) fn choose(runs: &[Run], merge_rows_max: u64) -> Option<Vec<&Run>> {
    for range in ranges(runs) {
        let over: Vec<&Run> = runs.iter().filter(|run| run.range.holds(&range)).collect();
        let mut tiers: BTreeMap<u32, usize> = BTreeMap::new();
        over.iter().for_each(|run| *tiers.entry(tier(run.rows)).or_default() += 1);
        for (crowded, _) in tiers.into_iter().filter(|(_, n)| *n >= RUNS_MERGED) {
            let upto: Vec<&Run> = over.iter().copied().filter(|run| tier(run.rows) <= crowded).collect();
            let widest = upto.iter().map(|run| run.range).max().unwrap_or(range);
            let inside = |run: &&Run| {
                let chosen = tier(run.rows) <= crowded && run.range.holds(&range);
                chosen || (tier(run.rows) < crowded && widest.holds(&run.range))
            };
            let mut smallest: Vec<&Run> = upto.iter().copied().filter(|run| tier(run.rows) == crowded).collect();
            smallest.sort_by_key(|run| run.rows);
            smallest.truncate(RUNS_MERGED);
            // Each choice lies within the range of its widest run, so the outcome covers no new period.
            let found = [runs.iter().filter(inside).collect(), upto, smallest]
                .into_iter()
                .find(|taken: &Vec<&Run>| taken.iter().map(|run| run.rows).sum::<u64>() <= merge_rows_max);
            if found.is_some() {
                return found;
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(rows: u64, level: u8, index: i64) -> Run {
        Run { segments: Vec::new(), rows, dead: 0, range: Range { level, index } }
    }

    #[test]
    fn what_does_not_fit_into_one_merge_is_merged_in_part() {
        // Four wide runs over a history of many narrow, smaller ones.
        let mut runs: Vec<Run> = (0..64).map(|i| run(250, 2, i)).collect();
        runs.extend((0..4).map(|_| run(300, 8, 0)));
        let all = choose(&runs, 1 << 20).unwrap();
        assert_eq!(all.iter().map(|r| r.rows).sum::<u64>(), 64 * 250 + 4 * 300);
        // One period alone: the wide runs and the narrow one under them.
        assert_eq!(choose(&runs, 2000).unwrap().iter().map(|r| r.rows).sum::<u64>(), 250 + 4 * 300);
        // Too much even so: only the four.
        assert_eq!(choose(&runs, 1300).unwrap().iter().map(|r| r.rows).sum::<u64>(), 4 * 300);
        assert!(choose(&runs, 1000).is_none());
        assert_eq!(depth(&runs), 5);
    }

    #[test]
    fn where_nothing_is_left_to_merge_the_bound_holds() {
        // Three of each tier stay, and no others that would fit.
        for merge_rows_max in [1 << 12, 1 << 15, 1 << 25] {
            let mut runs = Vec::new();
            for tier in 0..13 {
                for _ in 0..40 {
                    runs.push(run(4u64.pow(tier) + 1, 5, 0));
                    if choose(&runs, merge_rows_max).is_some() {
                        runs.pop();
                    }
                }
                let rows = runs.iter().map(|r| r.rows).sum();
                let bound = depth_bound(rows, merge_rows_max);
                assert!(u64::from(depth(&runs)) <= bound, "{} > {bound} at {rows} rows", depth(&runs));
            }
        }
    }
}
