//! `meridian load --preview`: shows the first events as they would be stored, and writes nothing.

use super::source::Source;
use super::{LoadArgs, existing, tell_notes, with_object};
use crate::args::Target;
use crate::collection::CollectionTarget;
use crate::failure::Failure;
use crate::output::{remark, say, unwritable, with_stdout};
use crate::schema_arg;
use crate::table::Table;
use meridian_formats::{BatchLimits, Format, ReadOptions, writer};
use meridian_model::{Batch, Schema, Seq};
use std::io::Cursor;
use std::sync::Arc;

/// Max events shown.
const ROWS: usize = 10;

/// Shows the schema and the first events of each file.
pub fn run(
    args: &LoadArgs,
    format: Option<Format>,
    options: &ReadOptions,
    given: Option<&Schema>,
) -> Result<(), Failure> {
    let there = existing(args)?;
    for path in &args.files {
        let mut source = Source::open(path, format, options)?;
        let name = source.name.clone();
        if let Some(there) = &there {
            existing::tell(args, there, &mut source, options);
        }
        let schema = match (&there, given) {
            (Some(schema), _) => schema.clone(),
            (None, Some(given)) => Arc::new(given.clone()),
            (None, None) => {
                let inferred = source.infer(options)?;
                tell_notes(&name, &inferred.notes, args.quiet);
                Arc::new(with_object(&inferred.schema, args.object.as_deref())?)
            }
        };
        let made = if there.is_some() { "would go into" } else { "would make" };
        say(&format!("{name} {made} the collection {}:\n{}", args.collection, schema_arg::describe(&schema)));
        let bad = |e| Failure::Bad(format!("{name}: {}", name.reason(&e)));
        let mut events = source.reader(schema.clone(), options).map_err(bad)?;
        let limits = BatchLimits { rows: ROWS, ..BatchLimits::default() };
        match events.next_batch(&limits).map_err(bad)? {
            Some(batch) => show(&batch.slice(0, batch.rows().min(ROWS)), &schema)?,
            None => say("no event"),
        }
    }
    Ok(())
}

/// Returns the schema of the collection, if it exists; does not create a missing folder.
fn existing(args: &LoadArgs) -> Result<Option<Arc<Schema>>, Failure> {
    let target = args.target.resolve();
    let folder = match &target {
        Target::Folder(folder) if !folder.is_dir() => return Ok(None),
        Target::Folder(folder) => folder.display().to_string(),
        Target::Server(_) => String::new(),
    };
    let Some(place) = CollectionTarget::open_if_free(target, &args.collection)? else {
        // A preview writes nothing, so the lock of a server keeps it only from the schema of the collection.
        if !args.quiet {
            remark(&format!(
                "note: the data folder {folder} is in use by another process: this is the preview of a new collection; \
                 --url with the address of its server asks whether {} exists",
                args.collection
            ));
        }
        return Ok(None);
    };
    let schema = place.schema();
    place.close()?;
    Ok(schema)
}

fn show(batch: &Batch, schema: &Arc<Schema>) -> Result<(), Failure> {
    let failed = |e: String| Failure::Bad(format!("the events cannot be shown: {e}"));
    let mut writer = writer(Format::Csv, schema, None).map_err(|e| failed(e.to_string()))?;
    let mut csv = Vec::new();
    // Generated ids are assigned by the write.
    let seqs: Vec<Seq> = Vec::new();
    let written = writer.start(&mut csv).and_then(|()| writer.write(batch, &seqs, &mut csv));
    written.and_then(|()| writer.finish(&mut csv)).map_err(|e| failed(e.to_string()))?;
    let table = Table::from_csv(Cursor::new(csv), ROWS)?;
    with_stdout(|out| table.print(&mut { out }).map_err(|e| unwritable(&e)))
}
