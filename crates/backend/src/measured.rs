//! The cost of a query, for its log lines and spans.

use meridian_observe::{Count, Stage, StageTimer};
use meridian_query::Stats;

/// Adds the cost of a query that planned and scanned in one step.
pub fn counted(scan: &mut StageTimer, stats: &Stats) {
    if stats.plan_us > 0 {
        scan.split_off(Stage::Plan, stats.plan_us.saturating_mul(1_000));
    }
    scan.count(&counts(stats, &Stats::default()));
}

/// Returns the cost added since.
pub fn counts(stats: &Stats, before: &Stats) -> [(Count, u64); Count::ALL.len()] {
    Count::ALL.map(|count| (count, of(stats, count).saturating_sub(of(before, count))))
}

fn of(stats: &Stats, count: Count) -> u64 {
    match count {
        Count::Parts => stats.parts,
        Count::PartsPruned => stats.parts_pruned,
        Count::NodesVisited => stats.nodes_visited,
        Count::NodesPruned => stats.nodes_pruned,
        Count::NodesWhole => stats.nodes_whole,
        Count::BlocksRead => stats.blocks_read,
        Count::BytesRead => stats.bytes_read,
        Count::EventsTested => stats.events_tested,
        Count::EventsMatched => stats.events_matched,
    }
}
