//! Merges memory trees in memory.

use crate::error::StoreError;
use crate::part::dead::{DROPPED, DeadRows};
use crate::part::{Context, Entry, Part};
use crate::state::Shared;
use meridian_index::Key;
use meridian_model::Batch;

/// Where the rows of the inputs went: for each input and row, its place among all rows of the outputs.
pub(crate) type RowMaps = Vec<Vec<u32>>;

/// Merges memory trees in memory; rows dead by `floor` are dropped. `None` if nothing is left.
pub(crate) fn merge_runs(
    shared: &Shared,
    context: &Context,
    inputs: &[Entry],
    floor: Option<u64>,
) -> Result<Option<Entry>, StoreError> {
    let (merged, maps) = merge_runs_mapped(shared, context, inputs, floor)?;
    Ok(merged.map(|part| {
        let rows = [part.rows];
        let dead = DeadRows::moved(inputs.iter().map(|e| e.dead.as_ref()), &maps, &rows).pop();
        let hidden = DeadRows::moved(inputs.iter().map(|e| e.hidden.as_ref()), &maps, &rows).pop();
        Entry::of(part, dead.unwrap_or_default(), hidden.unwrap_or_default())
    }))
}

/// Does the same as [`merge_runs`], but returns the map of rows instead of the dead rows.
pub(crate) fn merge_runs_mapped(
    shared: &Shared,
    context: &Context,
    inputs: &[Entry],
    floor: Option<u64>,
) -> Result<(Option<Part>, RowMaps), StoreError> {
    let mut rows: Vec<(Key, u64, u32, u32)> = Vec::new();
    let mut batches = Vec::with_capacity(inputs.len());
    for (i, input) in inputs.iter().enumerate() {
        let Some(run) = input.part.run() else { continue };
        // Trees from before a field was added have fewer columns; rows of one batch need the same ones.
        batches.push(context.widen(run.batch.clone())?);
        let gone = |row: u32| floor.is_some_and(|f| input.dead.death(row).is_some_and(|death| death <= f));
        let all = run.keys.iter().zip(&run.seqs).zip(0u32..).map(|((key, seq), row)| (*key, *seq, i as u32, row));
        if input.dead.count() == 0 {
            rows.extend(all);
        } else {
            rows.extend(all.filter(|(_, _, _, row)| !gone(*row)));
        }
    }
    // A row that is dropped keeps the mark `DROPPED` in the map.
    let mut maps: RowMaps = inputs.iter().map(|e| vec![DROPPED; e.part.rows as usize]).collect();
    if rows.is_empty() {
        return Ok((None, maps));
    }
    // A stable sort detects the sorted runs and merges them.
    rows.sort();
    for (place, (_, _, input, row)) in rows.iter().enumerate() {
        maps[*input as usize][*row as usize] = place as u32;
    }
    let picks: Vec<(usize, usize)> = rows.iter().map(|(_, _, i, row)| (*i as usize, *row as usize)).collect();
    let sources: Vec<&Batch> = batches.iter().collect();
    let batch = Batch::interleave(&sources, &picks)?;
    let (keys, seqs) = rows.iter().map(|(key, seq, _, _)| (*key, *seq)).unzip();
    Part::of_rows(shared.cache.number_part(), batch, keys, seqs).map(|part| (Some(part), maps))
}
