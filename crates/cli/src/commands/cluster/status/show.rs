//! The status as a person reads it.

use super::document::{Document, Lease, Owner};
use crate::table::Table;
use crate::units;
use meridian_store::bucket::Condition;
use std::io::{self, Write};

/// Prints everything.
pub(super) fn print(found: &Document, out: &mut dyn Write) -> io::Result<()> {
    let log = if found.log == "nats" { "NATS" } else { "the bucket" };
    writeln!(out, "bucket {}, log in {log}", found.bucket)?;
    if let Some(why) = &found.log_error {
        writeln!(out, "the log in NATS is not shown: {why}")?;
    }
    writeln!(out, "{}", found.owner.as_ref().map_or("no owner: nobody has had the lease yet".to_owned(), owner))?;
    collections(found, &mut *out)?;
    readers(found, &mut *out)?;
    nodes(found, &mut *out)?;
    processes(found, &mut *out)
}

fn owner(owner: &Owner) -> String {
    let Owner { node, address, epoch, .. } = owner;
    let since = owner.age_ms.map_or("some time".to_owned(), span);
    let lease = span(i64::try_from(owner.lease_ms).unwrap_or(i64::MAX));
    match owner.state {
        Lease::Held => {
            let answers = if owner.reachable == Some(true) { "answers" } else { "does not answer" };
            format!("owner {node} at {address}, {answers}; epoch {epoch}, lease of {lease} renewed {since} ago")
        }
        Lease::Lapsed => {
            format!("no owner: {node} at {address}, of epoch {epoch}, has not renewed its lease of {lease} for {since}")
        }
        Lease::Resigned => format!("no owner: {node} at {address}, of epoch {epoch}, gave its lease up {since} ago"),
    }
}

fn collections(found: &Document, out: &mut dyn Write) -> io::Result<()> {
    if found.collections.is_empty() {
        return writeln!(out, "\nno collections");
    }
    let head =
        ["tenant", "collection", "manifest", "segments", "rows", "size", "unflushed", "complete", "pinned", "error"];
    let mut table = Table::new(head).whole_unless_shown();
    for one in &found.collections {
        let number = |n: Option<u64>| n.map(|n| n.to_string()).unwrap_or_default();
        let entries = if found.log == "nats" { "messages" } else { "objects" };
        let tail = one.tail.as_ref().map(|tail| match (tail.entries, tail.bytes) {
            (0, _) => "nothing".to_owned(),
            (n, Some(bytes)) => format!("{n} {entries}, {}", units::size_short(bytes)),
            (n, None) => format!("{n} {entries}"),
        });
        let complete = one.complete_age_ms.map_or("not said".to_owned(), |age| format!("{} ago", span(age)));
        let pinned = one.pinned.as_ref().map(|pinned| match Some(&pinned.manifest) == one.manifest.as_ref() {
            true => format!("by {}", pinned.readers),
            false => format!("by {}, from {}", pinned.readers, pinned.manifest),
        });
        table.push(vec![
            one.tenant.clone(),
            one.collection.clone(),
            one.manifest.clone().unwrap_or_default(),
            number(one.segments),
            number(one.rows),
            one.bytes.map(units::size_short).unwrap_or_default(),
            tail.unwrap_or_default(),
            complete,
            pinned.unwrap_or_default(),
            one.error.clone().unwrap_or_default(),
        ]);
    }
    writeln!(out)?;
    table.print(&mut { out })
}

fn readers(found: &Document, out: &mut dyn Write) -> io::Result<()> {
    if found.readers.is_empty() {
        return writeln!(out, "\nno readers: no scan server has a pin");
    }
    let mut table = Table::new(["reader", "pin", "collections", "error"]).whole_unless_shown();
    for one in &found.readers {
        let age = one.age_ms.map_or("of unknown age".to_owned(), |age| format!("{} old", span(age)));
        let over = if one.counts == Some(false) { ", counts no more" } else { "" };
        let error = one.error.clone().unwrap_or_default();
        table.push(vec![one.reader.clone(), format!("{age}{over}"), one.collections.to_string(), error]);
    }
    writeln!(out)?;
    table.print(&mut { out })
}

fn nodes(found: &Document, out: &mut dyn Write) -> io::Result<()> {
    if found.nodes.is_empty() {
        return writeln!(out, "\nno processes: none says that it runs");
    }
    let mut table = Table::new(["node", "role", "address", "version", "level", "state", "said"]).whole_unless_shown();
    for one in &found.nodes {
        let state = match one.condition {
            Condition::Serves if one.leases.is_empty() => "serves".to_owned(),
            Condition::Serves => "owns".to_owned(),
            Condition::StandsBy => "stands by".to_owned(),
            Condition::Drained => "drained".to_owned(),
            Condition::Other => "unknown".to_owned(),
        };
        table.push(vec![
            one.node.clone(),
            one.role.clone(),
            one.address.clone(),
            one.program.clone(),
            one.level.to_string(),
            state,
            one.age_ms.map_or("some time ago".to_owned(), |age| format!("{} ago", span(age))),
        ]);
    }
    writeln!(out)?;
    table.print(&mut { out })
}

fn processes(found: &Document, out: &mut dyn Write) -> io::Result<()> {
    let Some(processes) = &found.processes else { return Ok(()) };
    let mut table = Table::new(["process", "role", "address", "pid", "state"]).whole_unless_shown();
    for one in processes {
        let state = match (one.answers, one.pid, &one.reason) {
            (Some(true), _, Some(why)) => format!("answers: not ready: {why}"),
            (Some(true), _, None) => "answers".to_owned(),
            (_, None, _) => "does not run".to_owned(),
            (Some(false), _, _) => "does not answer".to_owned(),
            (None, _, _) => "stands by".to_owned(),
        };
        let pid = one.pid.map(|pid| pid.to_string()).unwrap_or_default();
        table.push(vec![one.name.clone(), one.role.to_string(), one.address.clone(), pid, state]);
    }
    writeln!(out)?;
    table.print(&mut { out })
}

/// A length of time in its largest unit.
fn span(milliseconds: i64) -> String {
    let seconds = milliseconds / 1_000;
    match seconds {
        ..10 => format!("{}.{} s", seconds, milliseconds % 1_000 / 100),
        10..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_bucket_is_said_in_sentences() {
        let found = Document::new(None, "file:///b".to_owned(), "bucket".to_owned());
        let mut out = Vec::new();
        print(&found, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        for words in ["log in the bucket", "no owner", "no collections", "no readers", "no processes"] {
            assert!(text.contains(words), "{words:?} in:\n{text}");
        }
    }

    #[test]
    fn spans_are_short() {
        let spans = [400, 9_999, 10_000, 119_000, 120_000, 7_200_000, 172_800_000].map(span);
        assert_eq!(spans, ["0.4 s", "9.9 s", "10 s", "119 s", "2 min", "2 h", "2 days"]);
    }
}
