//! The cluster page.

use crate::html::live::{self, cell, head, listed, size, tile};
use crate::html::{self, escape, grouped};
use meridian_backend::cluster::{Cluster, Collection, Condition, GroupOwner, Lease, Owner, Reader, Server, span};
use std::collections::BTreeSet;
use std::fmt::Write;

/// The other page of operators.
const LOAD: (&str, &str) = ("/admin/load", "Load");

/// Max number of groups, collections, servers, processes and readers, each, that are listed.
const LISTED_MAX: usize = 200;

/// Renders the page; browsers reload it while it is live.
pub fn page(cluster: &Cluster, is_live: bool) -> html::Page {
    let mut out = live::top(&cluster.time, is_live, LOAD);
    tiles(cluster, &mut out);
    let log = if cluster.log == "nats" { "NATS" } else { "the bucket" };
    let _ = write!(out, "<p class=\"muted\">Bucket <code>{}</code>, log in {log}.</p>", escape(&cluster.bucket));
    if let Some(why) = &cluster.log_error {
        let _ = write!(out, "<p>The log in NATS is not shown: {}</p>", escape(why));
    }
    owners(&cluster.owners, &mut out);
    collections(cluster, &mut out);
    servers(&cluster.servers, &mut out);
    nodes(cluster, &mut out);
    readers(&cluster.readers, &mut out);
    framed(&out)
}

/// Renders the page of a server that is a single process.
pub fn alone(time: &str, is_live: bool) -> html::Page {
    let mut out = live::top(time, is_live, LOAD);
    out.push_str(
        "<p>This server is <b>one process</b>, without a cluster: it has its collections in its own data folder, or in memory. \
         <a href=\"/admin/load\">Load</a> shows its work, and <a href=\"/collections?f=html\">Collections</a> what it has.</p>",
    );
    framed(&out)
}

fn framed(body: &str) -> html::Page {
    html::page("Cluster", &[], body).within("/admin/load")
}

fn tiles(cluster: &Cluster, out: &mut String) {
    out.push_str("<ul class=\"tiles\">");
    match cluster.owners.as_slice() {
        [] => owner(cluster.owner.as_ref(), out),
        groups => group_tile(groups, out),
    }
    let partitions: u64 = cluster.collections.iter().filter_map(|one| one.partitions).sum();
    let wrong = cluster.collections.iter().filter(|one| one.error.is_some()).count() as u64;
    let note = if wrong == 0 { String::new() } else { format!(", {} with an error", grouped(wrong)) };
    let count = grouped(cluster.collections.len() as u64);
    let noun = if partitions == 1 { "partition" } else { "partitions" };
    tile(out, "collections", &count, None, &format!("{} {noun}{note}", grouped(partitions)));
    let tails = || cluster.collections.iter().filter_map(|one| one.tail.as_ref());
    let (entries, bytes): (u64, u64) =
        (tails().map(|tail| tail.entries).sum(), tails().filter_map(|tail| tail.bytes).sum());
    let what = if cluster.log == "nats" { "messages unflushed" } else { "log objects unflushed" };
    let note = if bytes == 0 { String::new() } else { size(bytes) };
    // The length of the log is unknown if it could not be surveyed.
    let entries = if cluster.log_error.is_some() { "?".to_owned() } else { grouped(entries) };
    tile(out, what, &entries, None, &note);
    let oldest = cluster.collections.iter().filter_map(|one| one.complete_age_ms).max();
    tile(out, "oldest flush", &oldest.map_or("–".to_owned(), span), None, "scan servers show writes before it");
    let live = cluster.servers.iter().filter(|one| one.counts != Some(false));
    let of = |role: &str| live.clone().filter(|one| one.role.as_deref() == Some(role)).count() as u64;
    tile(
        out,
        "gateways",
        &grouped(of("gateway")),
        None,
        &busy(live.clone().filter(|one| one.role.as_deref() == Some("gateway"))),
    );
    tile(
        out,
        "scan servers",
        &grouped(of("scan")),
        None,
        &busy(live.clone().filter(|one| one.role.as_deref() == Some("scan"))),
    );
    out.push_str("</ul>");
}

/// Sums up the work of a role's servers.
fn busy<'a>(servers: impl Iterator<Item = &'a Server>) -> String {
    let loads: Vec<_> = servers.filter_map(|one| one.load.as_ref()).collect();
    if loads.is_empty() {
        return String::new();
    }
    let sum = |get: fn(&&meridian_backend::cluster::ServerLoad) -> u64| loads.iter().map(get).sum::<u64>();
    format!("{} of {} slots in use", grouped(sum(|load| load.running)), grouped(sum(|load| load.slots)))
}

fn owner(owner: Option<&Owner>, out: &mut String) {
    let Some(owner) = owner else {
        return tile(out, "owner", "none", None, "no process has had the lease yet");
    };
    let words = owner.lease_words();
    let note = match (owner.state, owner.reachable) {
        (Lease::Held, Some(false)) => format!("{} does not answer this server; {words}", owner.address),
        (Lease::Held, _) => format!("{}; {words}", owner.address),
        (Lease::Lapsed | Lease::Resigned, _) => format!("{}: {words}", owner.node),
    };
    let name = escape(&owner.node);
    let shown = if owner.state == Lease::Held { &*name } else { "none" };
    tile(out, "owner", shown, None, &note);
    tile(out, "epoch", &owner.epoch.to_string(), None, &format!("lease of {}", span(owner.lease_ms.cast_signed())));
}

/// Renders how many partition groups have owners, if there is more than one group.
fn group_tile(groups: &[GroupOwner], out: &mut String) {
    let held = groups.iter().filter_map(|group| group.owner.as_ref()).filter(|owner| owner.state == Lease::Held);
    let nodes: BTreeSet<&str> = held.clone().map(|owner| owner.node.as_str()).collect();
    let note = format!("of {} groups of partitions", grouped(held.count() as u64));
    tile(out, "owners", &grouped(nodes.len() as u64), None, &note);
    let free = groups.iter().filter(|group| group.owner.as_ref().is_none_or(|owner| owner.state != Lease::Held));
    tile(out, "groups without an owner", &grouped(free.count() as u64), None, "writes to them wait");
}

/// Renders the owner of each partition group, if there is more than one group.
fn owners(groups: &[GroupOwner], out: &mut String) {
    if groups.is_empty() {
        return;
    }
    out.push_str("<h2>Owners</h2>");
    let shown = listed(out, groups, LISTED_MAX, "groups");
    head(out, &["Group", "Owner", "Address", "Lease", "Epoch"]);
    for one in shown {
        out.push_str("<tr>");
        cell(out, "Group", &one.group.to_string());
        let text = |get: fn(&Owner) -> String| one.owner.as_ref().map(get).unwrap_or_default();
        cell(out, "Owner", &text(|owner| format!("<b>{}</b>", escape(&owner.node))));
        cell(out, "Address", &text(|owner| escape(&owner.address).into_owned()));
        let lease = one.owner.as_ref().map_or("never had one".to_owned(), |owner| match owner.reachable {
            Some(false) => format!("does not answer this server; {}", owner.lease_words()),
            _ => owner.lease_words(),
        });
        cell(out, "Lease", &lease);
        cell(out, "Epoch", &text(|owner| owner.epoch.to_string()));
        out.push_str("</tr>");
    }
    out.push_str(live::END);
}

fn collections(cluster: &Cluster, out: &mut String) {
    out.push_str("<h2>Collections</h2>");
    if cluster.empty {
        out.push_str("<p class=\"muted\">Nothing of a cluster is in this bucket.</p>");
        return;
    }
    if cluster.collections.is_empty() {
        out.push_str("<p class=\"muted\">There are none.</p>");
        return;
    }
    // Those with an error first, then those with the longest unflushed log.
    let mut all: Vec<&Collection> = cluster.collections.iter().collect();
    let entries = |one: &Collection| one.tail.as_ref().map_or(0, |tail| tail.entries);
    all.sort_by_key(|one| (one.error.is_none(), std::cmp::Reverse(entries(one))));
    let mut names =
        vec!["Collection", "Partitions", "Epoch", "Segments", "Rows", "Size", "Unflushed", "Complete", "Readers"];
    // The error column takes the room of the others.
    let is_any_wrong = all.iter().any(|one| one.error.is_some());
    names.extend(is_any_wrong.then_some("Error"));
    let shown = listed(out, &all, LISTED_MAX, "collections");
    head(out, &names);
    for one in shown {
        out.push_str("<tr>");
        let tenant = escape(&one.tenant);
        cell(out, "Collection", &format!("<b>{}</b> <span class=\"muted\">{tenant}</span>", escape(&one.collection)));
        let number = |n: Option<u64>| n.map(grouped).unwrap_or_default();
        cell(out, "Partitions", &number(one.partitions));
        cell(out, "Epoch", &one.epoch.map(|epoch| epoch.to_string()).unwrap_or_default());
        cell(out, "Segments", &number(one.segments));
        cell(out, "Rows", &number(one.rows));
        cell(out, "Size", &one.bytes.map(size).unwrap_or_default());
        let unflushed = one.tail.as_ref().map(|tail| match (tail.entries, tail.bytes) {
            (0, _) => "nothing".to_owned(),
            (n, Some(bytes)) => format!("{} <span class=\"muted\">{}</span>", grouped(n), size(bytes)),
            (n, None) => grouped(n),
        });
        cell(out, "Unflushed", &unflushed.unwrap_or_default());
        cell(out, "Complete", &one.complete_age_ms.map_or(String::new(), |age| format!("{} ago", span(age))));
        let pinned = one.pinned.as_ref().map(|pinned| match Some(&pinned.manifest) == one.manifest.as_ref() {
            true => grouped(pinned.readers),
            false => {
                format!("{} <span class=\"muted\">from {}</span>", grouped(pinned.readers), escape(&pinned.manifest))
            }
        });
        cell(out, "Readers", &pinned.unwrap_or_default());
        if is_any_wrong {
            cell(out, "Error", &one.error.as_deref().map(error).unwrap_or_default());
        }
        out.push_str("</tr>");
    }
    out.push_str(live::END);
}

fn servers(servers: &[Server], out: &mut String) {
    out.push_str("<h2>Gateways and scan servers</h2>");
    if servers.is_empty() {
        out.push_str("<p class=\"muted\">None says that it is there.</p>");
        return;
    }
    out.push_str("<p class=\"muted\">As each says of itself, every 15 s at the latest. Sums count from its start.</p>");
    let shown = listed(out, servers, LISTED_MAX, "servers");
    head(
        out,
        &[
            "Server",
            "Role",
            "Address",
            "Runs",
            "Waits",
            "Refused",
            "Connections",
            "Cache hits",
            "Fetched",
            "Eventual reads",
            "Version",
            "Said",
        ],
    );
    for one in shown {
        out.push_str("<tr>");
        cell(out, "Server", &format!("<b>{}</b>", escape(one.node.as_deref().unwrap_or(&one.server))));
        let text = |text: &Option<String>| text.as_deref().map(|text| escape(text).into_owned()).unwrap_or_default();
        cell(out, "Role", &text(&one.role));
        cell(out, "Address", &text(&one.address));
        let load = one.load.as_ref();
        let runs = load.map(|load| format!("{} of {}", grouped(load.running), grouped(load.slots)));
        cell(out, "Runs", &runs.unwrap_or_default());
        cell(out, "Waits", &load.map(|load| grouped(load.waiting)).unwrap_or_default());
        cell(out, "Refused", &load.map(|load| grouped(load.refused)).unwrap_or_default());
        cell(out, "Connections", &load.map(|load| grouped(load.connections)).unwrap_or_default());
        let caches = load.and_then(|load| load.caches);
        let hits = caches.and_then(|caches| caches.hit_percent()).map(|n| format!("{n}\u{202f}%"));
        cell(out, "Cache hits", &hits.unwrap_or_default());
        cell(out, "Fetched", &caches.map(|caches| size(caches.bytes_fetched)).unwrap_or_default());
        let reads = load.and_then(|load| load.scan_reads);
        cell(out, "Eventual reads", &reads.as_ref().map(eventual).unwrap_or_default());
        cell(out, "Version", &text(&one.version));
        let said = match &one.error {
            Some(why) => error(why),
            None => ago(one.age_ms, one.counts),
        };
        cell(out, "Said", &said);
        out.push_str("</tr>");
    }
    out.push_str(live::END);
}

fn nodes(cluster: &Cluster, out: &mut String) {
    out.push_str("<h2>Processes</h2>");
    if cluster.nodes.is_empty() {
        out.push_str("<p class=\"muted\">None says that it runs.</p>");
        return;
    }
    let shown = listed(out, &cluster.nodes, LISTED_MAX, "processes");
    head(out, &["Process", "Role", "Address", "State", "Version", "Level", "Said"]);
    for one in shown {
        let words = cluster.node_words(one);
        let state = if one.condition == Condition::Drained { hot(&words) } else { words };
        out.push_str("<tr>");
        cell(out, "Process", &format!("<b>{}</b>", escape(&one.node)));
        cell(out, "Role", &escape(&one.role));
        cell(out, "Address", &escape(&one.address));
        cell(out, "State", &state);
        cell(out, "Version", &escape(&one.program));
        cell(out, "Level", &one.level.to_string());
        cell(out, "Said", &ago(one.age_ms, None));
        out.push_str("</tr>");
    }
    out.push_str(live::END);
}

fn readers(readers: &[Reader], out: &mut String) {
    out.push_str("<h2>Pins</h2><p class=\"muted\">What scan servers read is kept while their pins count.</p>");
    if readers.is_empty() {
        out.push_str("<p class=\"muted\">There are none.</p>");
        return;
    }
    let shown = listed(out, readers, LISTED_MAX, "pins");
    head(out, &["Reader", "Pinned", "Collections"]);
    for one in shown {
        out.push_str("<tr>");
        cell(out, "Reader", &format!("<code>{}</code>", escape(&one.reader)));
        let pinned = match &one.error {
            Some(why) => error(why),
            None => ago(one.age_ms, one.counts),
        };
        cell(out, "Pinned", &pinned);
        cell(out, "Collections", &grouped(one.collections));
        out.push_str("</tr>");
    }
    out.push_str(live::END);
}

fn ago(age: Option<i64>, counts: Option<bool>) -> String {
    let age = age.map_or("at an unknown time".to_owned(), |age| format!("{} ago", span(age)));
    if counts == Some(false) { format!("{age}, {}", hot("counts no more")) } else { age }
}

fn hot(words: &str) -> String {
    format!("<span class=\"hot\">{words}</span>")
}

fn error(why: &str) -> String {
    format!("<span class=\"wrong\">{}</span>", escape(why))
}

/// Formats the number of queries sent to scan servers, with the shares that found them busy, were hedged or fell back to the owner.
fn eventual(reads: &meridian_backend::cluster::ScanReads) -> String {
    let share = |percent: Option<u64>, what: &str| percent.map(|n| format!("{n}\u{202f}% {what}"));
    let shares = [
        share(reads.busy_percent(), "busy"),
        share(reads.hedge_percent(), "hedged"),
        share(reads.fallback_percent(), "to the owner"),
    ];
    let shares: Vec<String> = shares.into_iter().flatten().collect();
    format!("{} <span class=\"muted\">{}</span>", grouped(reads.questions), shares.join(", "))
}
