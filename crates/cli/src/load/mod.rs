//! `meridian load`: loads files and pipes into a collection.

mod args;
mod digest;
mod existing;
mod input_name;
mod interrupted;
mod preview;
mod progress;
mod source;
mod surplus;
mod track;

use crate::collection::CollectionTarget;
use crate::commands::create;
use crate::config;
use crate::failure::Failure;
use crate::output::{remark, say};
use crate::schema_arg;
use crate::units::count_text;
use crate::upload::StoredCounts;
pub use args::LoadArgs;
use digest::Digest;
use input_name::InputName;
use interrupted::Standing;
use meridian_formats::{BatchLimits, EventReader, ReadError, ReadOptions};
use meridian_model::{Batch, Schema};
use meridian_store::Settings;
use progress::Progress;
use source::Source;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc;
use surplus::RejectsFile;

/// Max events and bytes of one batch. They determine where inputs are cut, and so what a resumed load repeats.
const BATCH: BatchLimits = BatchLimits { rows: 50_000, bytes: 16 << 20 };

/// Runs the command.
pub fn run(args: &LoadArgs) -> Result<(), Failure> {
    let format = args::format(args)?;
    let options = args::read_options(args)?;
    let given = args.schema.as_deref().map(schema_arg::read).transpose()?;
    let durability = config::durability(&args.durability).map_err(|e| Failure::Usage(format!("--durability: {e}")))?;
    let partitions = args.partitions.as_deref().map(create::partitions).transpose();
    let partitions = partitions.map_err(|e| Failure::Usage(format!("--partitions: {e}")))?;
    let settings = Settings { durability, partitions: partitions.unwrap_or(1), ..Settings::default() };
    if args.preview {
        return preview::run(args, format, &options, given.as_ref());
    }
    // Opened before the collection: a file that cannot be written must not leave a partial load.
    let rejects = RejectsFile::open(args)?;
    let mut place = CollectionTarget::open(args.target.resolve(), &args.collection)?;
    let there = place.schema();
    let standing = Standing::watched(args.again)?;
    let mut total = Counts::default();
    // The last one is next.
    let mut left: Vec<&PathBuf> = args.files.iter().rev().collect();
    while let Some(path) = left.pop() {
        standing.set(&input_name::of(path), Counts::default());
        let mut source = Source::open(path, format, &options)?;
        // One file for all inputs: each line names its input.
        let rejects = rejects.as_ref().map(|r| r.of(&source.name));
        let options = ReadOptions { rejects, ..options.clone() };
        if let Some(there) = &there {
            existing::tell(args, there, &mut source, &options);
        }
        let base = match (&args.track, place.schema(), &given) {
            // An existing collection decides how its input is read.
            (None, Some(schema), _) => schema,
            (None, None, Some(given)) => Arc::new(given.clone()),
            _ => {
                let inferred = source.infer(&options)?;
                tell_notes(&source.name, &inferred.notes, args.quiet);
                Arc::new(inferred.schema)
            }
        };
        let schema = match &args.track {
            Some(track) => Arc::new(track::track_schema(&base, track).map_err(|e| Failure::Usage(e.to_string()))?),
            None => base.clone(),
        };
        let schema = match place.schema() {
            None => Arc::new(with_object(&schema, args.object.as_deref())?),
            Some(there) => {
                fits(&there, &schema, given.as_ref(), args).map_err(|what| {
                    let (file, collection) = (&source.name, &args.collection);
                    Failure::Usage(format!("{file}: the collection {collection} is there already, {what}"))
                })?;
                there
            }
        };
        let name = source.name.clone();
        let mut target = LoadTarget {
            place: &mut place,
            schema: &schema,
            settings: &settings,
            from: &name.text,
            args,
            standing: &standing,
            rereads: std::fs::metadata(path).is_ok_and(|found| found.is_file()),
            is_overtaken: false,
        };
        let loaded = load(source, base, &options, &mut target).and_then(|counts| {
            if given.is_some() {
                // A requested schema creates the collection even if the input has no events.
                target.make()?;
            }
            Ok(counts)
        });
        if target.is_overtaken {
            left.push(path);
            continue;
        }
        let counts = loaded?;
        total.written += counts.written;
        total.before += counts.before;
    }
    rejects.map_or(Ok(()), |rejects| rejects.close())?;
    if !args.quiet {
        say(&format!("{}: {} events in{}", args.collection, count_text(total.written), total.before_text()));
    }
    place.close()
}

/// Prints what an input seems to contain but was not used.
fn tell_notes(input: &InputName, notes: &[String], quiet: bool) {
    for note in notes.iter().filter(|_| !quiet) {
        remark(&format!("note: {input}: {}", input.insert(note)));
    }
}

/// The collection of an input, created once the first batch has been read.
struct LoadTarget<'a> {
    place: &'a mut CollectionTarget,
    schema: &'a Arc<Schema>,
    settings: &'a Settings,
    from: &'a str,
    args: &'a LoadArgs,
    standing: &'a Standing,
    /// Whether the input can be read a second time: no pipe can.
    rereads: bool,
    /// Whether another client created the collection meanwhile, so that the input is to be read again as it decides.
    is_overtaken: bool,
}

impl LoadTarget<'_> {
    /// Creates the collection if it is missing; returns whether it did.
    fn make(&mut self) -> Result<bool, Failure> {
        if self.place.schema().is_some() {
            return Ok(false);
        }
        if let Err(refusal) = self.place.create(self.schema, self.settings) {
            return self.join(refusal).map(|()| false);
        }
        if !self.args.quiet {
            let shown = schema_arg::describe(self.schema);
            say(&format!("made collection {} from {}:\n{shown}", self.args.collection, self.from));
        }
        Ok(true)
    }

    /// Goes on with the collection that another client created meanwhile, if this is why the creation was refused.
    fn join(&mut self, refusal: Failure) -> Result<(), Failure> {
        let Ok(Some(there)) = self.place.look_again() else { return Err(refusal) };
        self.is_overtaken = self.rereads;
        let (object, id) = (self.schema.object, self.schema.id);
        let is_same = same_events(&there, self.schema) && (there.object, there.id) == (object, id);
        match is_same && !self.rereads {
            true => Ok(()),
            false => Err(noted(refusal, |why| format!("{why}; its schema is not that of this input: load it again"))),
        }
    }

    /// Writes a batch; a collection created for it is removed if the batch is refused.
    fn write(&mut self, batch: Batch, key: String) -> Result<StoredCounts, Failure> {
        if self.place.schema().is_some() {
            return self.place.write(batch, key);
        }
        // Before the collection is created: the server would refuse the first batch, and leave an empty collection.
        different_ids(&batch)?;
        if !self.make()? {
            return self.place.write(batch, key);
        }
        // A refused first batch removes the collection that it created, so that a second attempt with other options
        // can create it.
        self.place.write(batch, key).or_else(|refusal| match self.place.unmake()? {
            true => Err(refusal),
            false => {
                Err(noted(refusal, |why| format!("{why}\nthe collection {} is made, and stays", self.args.collection)))
            }
        })
    }
}

/// Refuses duplicate ids in a batch before a collection is created for it.
fn different_ids(batch: &Batch) -> Result<(), Failure> {
    let mut seen = std::collections::HashMap::new();
    for (id, event) in batch.ids().into_iter().flatten().zip(1..).filter_map(|(id, event)| Some((id?, event))) {
        if let Some(first) = seen.insert(id, event) {
            let why = format!("the id {id:?} occurs twice in the input: events {first} and {event} of those read");
            return Err(Failure::Bad(why));
        }
    }
    Ok(())
}

/// Events that were loaded, and events that an interrupted load had stored already.
#[derive(Default, Clone, Copy)]
struct Counts {
    written: u64,
    before: u64,
}

impl Counts {
    fn before_text(&self) -> String {
        match self.before {
            0 => String::new(),
            n => format!(", {} were in already from an earlier load", count_text(n)),
        }
    }
}

fn with_object(schema: &Schema, object: Option<&str>) -> Result<Schema, Failure> {
    let mut schema = schema.clone();
    if let Some(name) = object {
        let index = schema.field_index(name).ok_or_else(|| {
            let names: Vec<&str> = schema.fields.iter().map(|f| f.name.as_str()).collect();
            Failure::Usage(format!(
                "--object: {name:?} is not a field of this input: expected one of {}",
                names.join(", ")
            ))
        })?;
        schema.object = Some(index);
        schema.validate().map_err(|e| Failure::option("--object", &e))?;
    }
    Ok(schema)
}

/// Checks that the command line's description of a new collection fits the existing one.
fn fits(there: &Schema, lines: &Schema, given: Option<&Schema>, args: &LoadArgs) -> Result<(), String> {
    if args.track.is_some() && !same_events(there, lines) {
        return Err("and holds other fields than the lines of this input".to_owned());
    }
    if given.is_some_and(|given| !same_events(there, given)) {
        return Err("with another schema than --schema says".to_owned());
    }
    match &args.object {
        Some(object) if there.object.is_none_or(|i| there.fields[i].name != *object) => {
            Err(format!("and its object is not {object:?}"))
        }
        _ => Ok(()),
    }
}

/// Returns true if two schemas accept the same events.
fn same_events(a: &Schema, b: &Schema) -> bool {
    let kinds = |s: &Schema| s.fields.iter().map(|f| (f.name.clone(), f.kind)).collect::<Vec<_>>();
    kinds(a) == kinds(b) && a.geometry == b.geometry && a.time == b.time
}

/// Reads on one thread and writes on this one, so that parsing overlaps with the writes of the log.
fn load(
    source: Source,
    base: Arc<Schema>,
    options: &ReadOptions,
    target: &mut LoadTarget<'_>,
) -> Result<Counts, Failure> {
    let name = source.name.clone();
    let (args, schema) = (target.args, target.schema.clone());
    let mut progress = Progress::start(&name.text, source.size, source.read.clone(), args.quiet);
    let read_as = if args.track.is_some() { &base } else { &schema };
    let events = source.reader(read_as.clone(), options);
    let events = events.map_err(|e| bad(&name, &e, options, Counts::default()))?;
    let mut events: Box<dyn EventReader> = match &args.track {
        None => events,
        Some(track) => {
            Box::new(track::TrackReader::new(events, base, schema, track).map_err(|e| Failure::Usage(e.to_string()))?)
        }
    };
    // With --again the keys differ from those of every earlier load, so the server takes no batch for a duplicate.
    let mut digest = Digest::new(if args.again { salt() } else { 0 });
    let mut counts = Counts::default();
    let (outcome, report) = std::thread::scope(|scope| {
        // One batch ahead: parsing overlaps with writing, and memory holds three batches at most.
        let (send, receive) = mpsc::sync_channel::<Result<Batch, ReadError>>(1);
        let reading = scope.spawn(move || {
            loop {
                let next = events.next_batch(&BATCH);
                // An error is the last item too: it is sent, and ends the load.
                let last = !matches!(next, Ok(Some(_)));
                // The writer stops receiving at its first error, which ends the reader too.
                let gone = next.transpose().is_some_and(|next| send.send(next).is_err());
                if last || gone {
                    return events.report();
                }
            }
        });
        // In order of the input: the key of a batch covers all batches before it.
        let mut take = |batch: Result<Batch, ReadError>| {
            let batch = batch.map_err(|e| bad(&name, &e, options, counts))?;
            let key = digest.key(&batch).map_err(|e| Failure::Bad(format!("{name}: {e}")))?;
            let rows = batch.rows() as u64;
            // The key covers everything up to here, so a repeated load finds its batches by content, not by position in
            // the file.
            let taken = target.write(batch, key).map_err(|e| stopped(&name, e, counts))?;
            counts.written += taken.written;
            counts.before += taken.before;
            target.standing.set(&name.text, counts);
            progress.add(rows);
            Ok(())
        };
        let outcome: Result<(), Failure> = receive.into_iter().try_for_each(&mut take);
        (outcome, reading.join().unwrap_or_default())
    });
    if target.is_overtaken {
        return outcome.map(|()| counts);
    }
    // Before the outcome is returned, so that the user sees how far a failed load got.
    progress.end(report.skipped + u64::from(outcome.is_err()));
    surplus::tell(&name, &report, args.quiet);
    outcome?;
    // With --invalid skip an input of the wrong format would otherwise seem to be loaded.
    if counts.written + counts.before == 0 && report.skipped > 0 {
        return Err(Failure::Bad(format!("{name}: none of its events could be loaded")));
    }
    Ok(counts)
}

fn salt() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    // Never 0, which means no salt.
    now.map_or(1, |d| d.as_nanos() as u64 | 1)
}

fn bad(name: &InputName, error: &ReadError, options: &ReadOptions, counts: Counts) -> Failure {
    Failure::Bad(format!(
        "{name}: {}\n{}{}",
        name.reason(error),
        whats_in(counts),
        surplus::hint(&name.text, error, options)
    ))
}

fn stopped(name: &InputName, error: Failure, counts: Counts) -> Failure {
    noted(error, |why| format!("{name}: {why}\n{}", whats_in(counts)))
}

/// Returns the same failure in other words.
fn noted(failure: Failure, words: impl FnOnce(String) -> String) -> Failure {
    match failure {
        Failure::Bad(why) => Failure::Bad(words(why)),
        Failure::Usage(why) => Failure::Usage(words(why)),
        Failure::Refused(why) => Failure::Refused(words(why)),
    }
}

fn whats_in(counts: Counts) -> String {
    match counts.written + counts.before {
        0 => "nothing of it is in".to_owned(),
        n => format!(
            "its first {} events are loaded; correct the cause and load it again: loaded events are not duplicated",
            count_text(n)
        ),
    }
}
