//! Reads and verifies everything.

use crate::catalog::disk::MANIFEST;
use crate::catalog::sidecars::{read_dead, read_hidden};
use crate::codec::hash;
use crate::collection::Collection;
use crate::error::{Problem, StoreError};
use crate::ingest::idempotency;
use crate::manifest::keys_name;
use crate::part::dead::DeadRows;
use crate::part::objects::ObjectRows;
use crate::part::segment::same_rows;
use crate::part::{CHUNK_ROWS, CacheFill, Context, Part, PartView};
use meridian_index::{Forest, ForestBuilder, Grid, PyramidBuilder};
use meridian_model::{IdRole, Projection, Seq};
use std::sync::Arc;

/// Returns the damage in a collection's files.
pub(crate) fn check(collection: &Collection) -> Vec<Problem> {
    let shared = &collection.shared;
    let objects = shared.objects.as_ref();
    let mut problems = Vec::new();
    // Parts stay as long as the snapshot does; the manifest may move on meanwhile, so it is read once.
    let snapshot = collection.history();
    problems.extend(check_log(collection));
    // Read from the catalog, not from memory: the check is about what a restart would find.
    let newest = collection.core.lock().catalog.newest();
    match newest {
        Err(e) => problems.push(Problem::of(&e)),
        Ok(None) => {
            problems.push(Problem { path: shared.dir.join(MANIFEST), detail: "it is missing".to_owned() });
        }
        Ok(Some(manifest)) => {
            let keys =
                manifest.keys.iter().filter_map(|entry| idempotency::read(objects, &keys_name(entry.file)).err());
            problems.extend(keys.map(|e| Problem::of(&e)));
            problems.extend(read_hidden(objects, &manifest).err().map(|e| Problem::of(&e)));
            let dead = manifest.segments.iter().filter_map(|meta| read_dead(objects, meta).err());
            problems.extend(dead.map(|e| Problem::of(&e)));
        }
    }
    let opened = snapshot.open_all().inspect_err(|e| problems.push(Problem::of(e)));
    for view in opened.iter().flat_map(|snapshot| snapshot.parts.iter()) {
        let Some(segment) = view.part.segment() else { continue };
        // Checksums first: recomputing the index over a damaged block would only report the same damage less clearly.
        let bad = segment.verify_blocks();
        if bad.is_empty() {
            if let Err(e) = check_segment(&view.part, &view.context) {
                problems.push(Problem::of(&e));
            }
        } else {
            problems.extend(bad.iter().map(Problem::of));
        }
    }
    problems.dedup();
    problems
}

/// Rereads the log, record by record. Writers wait meanwhile.
fn check_log(collection: &Collection) -> Vec<Problem> {
    let core = collection.core.lock();
    let Some(log) = &core.log else { return Vec::new() };
    // Parts found unreadable at the start are already among the problems, and the position excludes them.
    log.verify(core.manifest.flushed, core.position).iter().map(Problem::of).collect()
}

/// Recomputes a segment's index from its rows, and compares them.
fn check_segment(part: &Arc<Part>, context: &Arc<Context>) -> Result<(), StoreError> {
    let Some(segment) = part.segment() else { return Ok(()) };
    let wrong = |what: &str| StoreError::corrupt(&segment.index.path, what);
    // The trees were built over the schema at that time.
    let schema = Arc::new(segment.footer.schema.clone());
    let layout = Arc::new(meridian_model::Layout::of(&schema));
    let then = Arc::new(Context {
        schema: schema.clone(),
        layout: layout.clone(),
        rule: context.rule,
        numbering: context.numbering,
        counters: context.counters.clone(),
    });
    let view = PartView { part: part.clone(), dead: Arc::new(DeadRows::default()), seq: Seq(u64::MAX), context: then };
    let grid = Grid::of(&schema);
    let mut forest = ForestBuilder::new(&schema);
    let mut pyramid = PyramidBuilder::new(&schema);
    let mut last = None;
    let mut keys = Vec::with_capacity(part.rows as usize);
    let mut objects = ObjectRows::default();
    for from in (0..part.rows).step_by(CHUNK_ROWS as usize) {
        let rows = from..part.rows.min(from + CHUNK_ROWS);
        let batch = view.read_for_merge(rows.clone(), &Projection::all(&layout))?;
        let seqs = part.seqs(rows.clone())?;
        // Keys are recomputed from the events, so a wrong order is found even if the file is consistent in itself.
        let order = grid.keys(&batch);
        for at in order.iter().copied().zip(seqs.iter().copied()) {
            if last.is_some_and(|last| last >= at) {
                return Err(wrong("its events are out of order"));
            }
            last = Some(at);
        }
        if seqs.iter().max() != part.chunk_seq_max.get((from / CHUNK_ROWS) as usize) {
            return Err(wrong("the max number of a block is not what the footer says"));
        }
        forest.push(&batch, &order).map_err(|e| wrong(&e.to_string()))?;
        pyramid.push(&batch);
        objects.add(context.rule.seed, &batch, &seqs, from);
        match (context.rule.role, batch.ids()) {
            (IdRole::Given, Some(ids)) => {
                keys.extend(ids.iter().map(|id| hash(context.rule.seed, id.unwrap_or("").as_bytes())));
            }
            _ => keys.extend(seqs),
        }
    }
    if !same(&forest.finish(), &part.forest) {
        return Err(wrong("its trees are not those of its events"));
    }
    // The index is rebuilt with the code that wrote it and compared: a mismatch is damage that no checksum can
    // show.
    if segment.pyramid()?.is_some_and(|found| *found != pyramid.finish()) {
        return Err(wrong("its counts per map cell are not those of its events"));
    }
    if let Some(archive) = segment.archive() {
        same_rows(part, &archive)?;
    }
    check_keys(part, keys)?;
    check_objects(part, objects)?;
    check_time(&view, &schema)
}

/// Checks that every row is in the sidecar exactly once, under its key.
fn check_keys(part: &Part, keys: Vec<u64>) -> Result<(), StoreError> {
    let Some(segment) = part.segment() else { return Ok(()) };
    let wrong = |what: &str| StoreError::corrupt(&segment.index.path, what);
    let mut seen = vec![false; keys.len()];
    for page in 0..segment.footer.key_fences.len() {
        let found = segment.key_page(page as u32)?;
        if found.keys.first() != segment.footer.key_fences.get(page) {
            return Err(wrong("a page of its keys does not begin as the footer says"));
        }
        for (key, row) in found.keys.iter().zip(&found.rows) {
            if keys.get(*row as usize) != Some(key) || std::mem::replace(&mut seen[*row as usize], true) {
                return Err(wrong("the sidecar of its keys is not that of its events"));
            }
        }
    }
    if seen.iter().all(|s| *s) { Ok(()) } else { Err(wrong("the sidecar of its keys leaves events out")) }
}

/// Checks that the sidecar of objects matches the rows.
fn check_objects(part: &Part, mut objects: ObjectRows) -> Result<(), StoreError> {
    let Some((segment, pages)) = part.segment().and_then(|s| s.footer.objects.as_ref().map(|o| (s, o))) else {
        return Ok(());
    };
    objects.sort();
    let mut found = ObjectRows::default();
    for (page, fence) in pages.fences.iter().enumerate() {
        let entries = segment.object_page(page as u32)?;
        if entries.entries.first().map(|e| (e.object, e.time)) != Some(*fence) {
            return Err(StoreError::corrupt(
                &segment.index.path,
                "a page of its objects does not begin as the footer says",
            ));
        }
        found.entries.extend_from_slice(&entries.entries);
    }
    let same = found == objects;
    if same {
        Ok(())
    } else {
        Err(StoreError::corrupt(&segment.index.path, "its sidecar of objects is not that of its events"))
    }
}

/// Checks that the order of time holds every row once, in order, with the values of the row.
fn check_time(view: &PartView, schema: &Arc<meridian_model::Schema>) -> Result<(), StoreError> {
    let (Some(segment), Some(order)) = (view.part.segment(), view.time_order()) else { return Ok(()) };
    let wrong = |what: &str| StoreError::corrupt(&segment.index.path, what);
    let mut forest = ForestBuilder::over_time(schema);
    let mut seen = vec![false; view.rows() as usize];
    let mut last = i64::MIN;
    for from in (0..view.rows()).step_by(CHUNK_ROWS as usize) {
        let places = from..view.rows().min(from + CHUNK_ROWS);
        let found = order.read(places.clone(), &Projection::all(view.layout()))?;
        forest.push_ordered(&found).map_err(|e| wrong(&e.to_string()))?;
        for (i, row) in order.rows(places)?.values().iter().enumerate() {
            let (time, _) = found.interval(i);
            if time < last || seen.get(*row as usize) != Some(&false) {
                return Err(wrong("its order of time is not one of its events"));
            }
            last = time;
            seen[*row as usize] = true;
        }
    }
    // Values are compared through the sums of the trees, column by column through the whole block below.
    let trees = forest.finish();
    if trees.trees != segment.time_forest()?.trees {
        return Err(wrong("the tree over its order of time is not that of its events"));
    }
    check_time_values(view, &wrong)
}

/// Compares the columns of the order of time with those of the rows.
fn check_time_values(view: &PartView, wrong: &dyn Fn(&str) -> StoreError) -> Result<(), StoreError> {
    let (Some(segment), Some(order)) = (view.part.segment(), view.time_order()) else { return Ok(()) };
    let Some(time) = &segment.footer.time else { return Ok(()) };
    for column in &time.columns {
        let column = usize::from(*column);
        let Some(values) = view.part.column(column, 0..view.rows(), CacheFill::Pass)? else { continue };
        for from in (0..view.rows()).step_by(CHUNK_ROWS as usize) {
            let places = from..view.rows().min(from + CHUNK_ROWS);
            let rows = order.rows(places.clone())?;
            let expected = arrow_select::take::take(&values, &rows, None).map_err(|e| wrong(&e.to_string()))?;
            if order
                .read(places, &Projection::all(view.layout()))?
                .column(column)
                .is_none_or(|c| c.to_data() != expected.to_data())
            {
                return Err(wrong("the values in its order of time are not those of its events"));
            }
        }
    }
    Ok(())
}

/// Returns true if the trees are equal. Sums of floats depend on how rows were cut into batches, which a merge and this
/// check do the same way.
fn same(a: &Forest, b: &Forest) -> bool {
    a.trees == b.trees
}
