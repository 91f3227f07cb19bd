//! Prints the status for people.

use super::document::Document;
use crate::table::Table;
use crate::units;
use meridian_backend::cluster::{Cluster, Lease, Owner, Scan, ServerLoad, span};
use std::io::{self, Write};

/// Prints everything.
pub(super) fn print(found: &Document, out: &mut dyn Write) -> io::Result<()> {
    let cluster = &found.cluster;
    let log = if cluster.log == "nats" { "NATS" } else { "the bucket" };
    writeln!(out, "bucket {}, log in {log}", cluster.bucket)?;
    if let Some(why) = &cluster.log_error {
        writeln!(out, "the log in NATS is not shown: {why}")?;
    }
    if cluster.empty {
        writeln!(out, "nothing of a cluster is in this bucket")?;
    } else {
        for (group, of) in cluster.groups() {
            let of = of.map_or("no owner: no process has had the lease yet".to_owned(), owner);
            match group {
                Some(group) => writeln!(out, "group {group}: {of}")?,
                None => writeln!(out, "{of}")?,
            }
        }
        collections(cluster, &mut *out)?;
        readers(cluster, &mut *out)?;
        servers(cluster, &mut *out)?;
        nodes(cluster, &mut *out)?;
    }
    processes(found, &mut *out)
}

fn owner(owner: &Owner) -> String {
    let Owner { node, address, epoch, .. } = owner;
    let since = owner.age_ms.map_or("some time".to_owned(), span);
    let lease = span(i64::try_from(owner.lease_ms).unwrap_or(i64::MAX));
    match owner.state {
        Lease::Held => {
            let answers = match (owner.reachable, &owner.reason) {
                (Some(true), _) => "answers".to_owned(),
                (_, Some(why)) => format!("does not answer ({why})"),
                (_, None) => "does not answer".to_owned(),
            };
            format!("owner {node} at {address}, {answers}; epoch {epoch}, lease of {lease}: {}", owner.lease_words())
        }
        Lease::Lapsed => {
            format!("no owner: {node} at {address}, of epoch {epoch}, has not renewed its lease of {lease} for {since}")
        }
        Lease::Resigned => format!("no owner: {node} at {address}, of epoch {epoch}, gave its lease up {since} ago"),
    }
}

fn collections(found: &Cluster, out: &mut dyn Write) -> io::Result<()> {
    if found.collections.is_empty() {
        return writeln!(out, "\nno collections");
    }
    let head = [
        "tenant",
        "collection",
        "partitions",
        "epoch",
        "manifest",
        "segments",
        "rows",
        "size",
        "unflushed",
        "complete",
        "pinned",
        "error",
    ];
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
            number(one.partitions),
            number(one.epoch),
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

fn readers(found: &Cluster, out: &mut dyn Write) -> io::Result<()> {
    if found.readers.is_empty() {
        return writeln!(out, "\nno readers: no scan server has a pin");
    }
    let mut table =
        Table::new(["reader", "pin", "collections", "answers gateways", "group", "load", "error"]).whole_unless_shown();
    for one in &found.readers {
        let age = one.age_ms.map_or("of unknown age".to_owned(), |age| format!("{} old", span(age)));
        let over = if one.counts == Some(false) { ", counts no more" } else { "" };
        let error = one.error.clone().unwrap_or_default();
        let of = |show: fn(&Scan) -> String| one.scan.as_ref().map(show).unwrap_or_default();
        table.push(vec![
            one.reader.clone(),
            format!("{age}{over}"),
            one.collections.to_string(),
            of(|scan| scan.address.clone()),
            of(|scan| scan.group.clone()),
            of(|scan| format!("{} work, {} started, {} wait", scan.working, scan.started, scan.waiting)),
            error,
        ]);
    }
    writeln!(out)?;
    table.print(&mut { out })
}

fn servers(found: &Cluster, out: &mut dyn Write) -> io::Result<()> {
    if found.servers.is_empty() {
        return writeln!(out, "\nno gateways or scan servers");
    }
    let head =
        ["server", "role", "address", "said", "runs", "waits", "refused", "cache hits", "eventual reads", "error"];
    let mut table = Table::new(head).whole_unless_shown();
    for one in &found.servers {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let load = |get: fn(&ServerLoad) -> String| one.load.as_ref().map(get).unwrap_or_default();
        let said = one.age_ms.map_or("at an unknown time".to_owned(), |age| format!("{} ago", span(age)));
        let over = if one.counts == Some(false) { ", counts no more" } else { "" };
        table.push(vec![
            one.node.clone().unwrap_or_else(|| one.server.clone()),
            text(&one.role),
            text(&one.address),
            format!("{said}{over}"),
            load(|load| format!("{} of {}", load.running, load.slots)),
            load(|load| load.waiting.to_string()),
            load(|load| load.refused.to_string()),
            load(|load| {
                load.caches.and_then(|caches| caches.hit_percent()).map(|n| format!("{n} %")).unwrap_or_default()
            }),
            load(|load| {
                let Some(reads) = &load.scan_reads else { return String::new() };
                let share = |percent: Option<u64>| percent.map_or("–".to_owned(), |n| format!("{n} %"));
                let (busy, hedged) = (share(reads.busy_percent()), share(reads.hedge_percent()));
                let fallback = share(reads.fallback_percent());
                format!("{}, busy {busy}, hedged {hedged}, to the owner {fallback}", reads.questions)
            }),
            text(&one.error),
        ]);
    }
    writeln!(out)?;
    table.print(&mut { out })
}

fn nodes(found: &Cluster, out: &mut dyn Write) -> io::Result<()> {
    if found.nodes.is_empty() {
        return writeln!(out, "\nno processes: none says that it runs");
    }
    let mut table = Table::new(["node", "role", "address", "version", "level", "state", "said"]).whole_unless_shown();
    for one in &found.nodes {
        table.push(vec![
            one.node.clone(),
            one.role.clone(),
            one.address.clone(),
            one.program.clone(),
            one.level.to_string(),
            found.node_words(one),
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
            (Some(true), _, Some(why)) => format!("answers; not ready: {why}"),
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
