//! Handling of events that cannot be stored unchanged, and its report.

use super::LoadArgs;
use super::input_name::{InputName, STANDARD_INPUT, quoted, recode};
use crate::failure::Failure;
use crate::output::remark;
use crate::units::count_text;
use meridian_formats::{OnError, ReadError, ReadOptions, RejectedEvent, Rejects, Report, Unread};
use meridian_model::Invalid;
use rustix::fs::{Mode, OFlags};
use serde_json::json;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// The file of `--rejects`, shared by the inputs of a load.
pub struct RejectsFile {
    path: PathBuf,
    out: Arc<Mutex<BufWriter<File>>>,
}

impl RejectsFile {
    /// Creates the file, if requested.
    pub fn open(args: &LoadArgs) -> Result<Option<RejectsFile>, Failure> {
        let Some(path) = &args.rejects else { return Ok(None) };
        // No events are left out then, so the file would stay empty.
        if args.invalid == "refuse" {
            return Err(Failure::Usage("--rejects: needs --invalid skip or --invalid repair".to_owned()));
        }
        // An open of a pipe waits for a reader; this one fails if there is none. It is held until the next is open.
        let _with_reader = match std::fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo()) {
            true => Some(
                rustix::fs::open(path, OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())
                    .map_err(|_| unwritable(path, &io::Error::other("nobody reads this pipe")))?,
            ),
            false => None,
        };
        let file = File::create(path).map_err(|e| unwritable(path, &e))?;
        Ok(Some(RejectsFile { path: path.clone(), out: Arc::new(Mutex::new(BufWriter::new(file))) }))
    }

    /// Receives the left-out events of one input: a JSON object per line.
    pub fn of(&self, input: &InputName) -> Rejects {
        let (input, out) = (input.clone(), self.out.clone());
        Rejects::new(move |rejected| {
            let line = line(&input, rejected);
            // A writer that panicked has left only whole lines.
            let mut out = out.lock().unwrap_or_else(PoisonError::into_inner);
            out.write_all(line.as_bytes())
        })
    }

    /// Flushes buffered lines into the file.
    pub fn close(&self) -> Result<(), Failure> {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        out.flush().map_err(|e| unwritable(&self.path, &e))
    }
}

fn unwritable(path: &std::path::Path, error: &io::Error) -> Failure {
    Failure::Usage(format!("--rejects: {} cannot be written: {error}", path.display()))
}

fn line(input: &InputName, rejected: &RejectedEvent<'_>) -> String {
    let (mistake, unit) = (rejected.mistake, input.unit);
    let reason = input.insert(&mistake.detail);
    let head = json!({"input": input.text, unit: mistake.line, "field": mistake.field, "reason": reason});
    let mut line = head.to_string();
    // The event is JSON already: parsing it would change its numbers.
    if let Some(event) = &rejected.event {
        // Removes the closing brace, to append a member.
        line.pop();
        line += &format!(",\"event\":{event}}}");
    }
    line.push('\n');
    line
}

/// Command that flattens nested objects, of an array too: the names on the path to a value are joined by dots.
const FLATTEN: &str = r#"jq -c 'def flat($way): if type == "object" then to_entries[] | .key as $key | .value | flat($way + [$key]) else {($way | join(".")): .} end; if type == "array" then .[] else . end | [flat([])] | add'"#;

/// Returns the option that accepts an input refused for this error, or the command that converts it.
pub fn hint(name: &str, error: &ReadError, options: &ReadOptions) -> String {
    let Some(mistake) = error.first() else { return String::new() };
    let Invalid { detail, .. } = mistake;
    let file = quoted(name);
    let from = if name == STANDARD_INPUT { String::new() } else { format!(" {file}") };
    let encoding = detail.strip_prefix("the input is ").and_then(|rest| rest.strip_suffix(": expected UTF-8"));
    if let Some(encoding) = encoding {
        return format!("\nthis converts it: {}", recode(name, &encoding.to_ascii_lowercase()));
    }
    match mistake {
        Invalid { not_kept: true, .. } if detail.contains("height") => {
            "\n--drop-z loads it without heights and measures, and says how many there were".to_owned()
        }
        Invalid { not_kept: true, .. } => {
            "\n--drop-ids loads it without its ids, and says how many there were".to_owned()
        }
        // The texts of a shapefile are in another file than its name says, and its error says how they are read.
        _ if detail.contains("is not UTF-8") && !detail.contains(".cpg") => {
            format!("\nif the text is Latin-1, this converts it: {}", recode(name, "latin1"))
        }
        _ if detail.starts_with("an object: a property") => {
            format!(
                "\nin newline-delimited JSON, or an array, this makes flat objects of nested ones: {FLATTEN}{from} > flat.ndjson"
            )
        }
        Invalid { line: Some(_), .. } if options.on_error != OnError::Skip => {
            "\n--invalid skip leaves invalid events out, --invalid repair mends polygons first; both report them"
                .to_owned()
        }
        _ => String::new(),
    }
}

/// Reports which events of an input were left out or changed, and, unless it is to be quiet, which elements have no
/// column.
pub fn tell(input: &InputName, report: &Report, quiet: bool) {
    let events = |n: u64| if n == 1 { "1 event".to_owned() } else { format!("{} events", count_text(n)) };
    let listed = |list: &[Invalid], of: u64| {
        for one in list {
            remark(&format!("  {}", input.insert(&one.counted(input.unit))));
        }
        match of.saturating_sub(list.len() as u64) {
            0 => {}
            more => remark(&format!("  and {} more", count_text(more))),
        }
    };
    if report.skipped > 0 {
        remark(&format!("{input}: {} left out as invalid:", events(report.skipped)));
        listed(&report.skipped_first, report.skipped);
    }
    if report.mended > 0 {
        remark(&format!("{input}: {} repaired:", events(report.mended)));
        listed(&report.mended_first, report.mended);
    }
    if report.heights_dropped > 0 {
        remark(&format!("{input}: {} loaded without heights or measures", events(report.heights_dropped)));
    }
    if report.ids_dropped > 0 {
        remark(&format!("{input}: {} loaded without ids", events(report.ids_dropped)));
    }
    if report.rounded > 0 {
        remark(&format!("{input}: {} loaded with a rounded number:", events(report.rounded)));
        listed(&report.rounded_first, report.rounded);
    }
    let Unread { named, others } = &report.unread;
    if !named.is_empty() && !quiet {
        let counted = named.iter().map(|(name, elements)| format!("{name} ({})", count_text(*elements)));
        let others = (*others > 0).then(|| format!("others ({})", count_text(*others)));
        let list: Vec<String> = counted.chain(others).collect();
        remark(&format!("{input}: elements that have no column and were not read: {}", list.join(", ")));
    }
}
