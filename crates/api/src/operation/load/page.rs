//! The load page.

use crate::contract::{ClassLoad, Level, Load, MemoryLoad, QuotaLoad, SlowRequest, TenantLoad};
use crate::html::live::{self, cell, head, meter, size, tile};
use crate::html::{self, escape, grouped};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Renders the page; browsers reload it while it is live.
pub fn page(load: &Load, is_live: bool) -> html::Page {
    let mut out = live::top(&load.time, is_live, ("/admin/cluster", "Cluster"));
    tiles(load, &mut out);
    tenants(load, &mut out);
    memory(&load.memory, &mut out);
    slow(&load.slow, &mut out);
    html::page("Load", &[], &out).within("/admin/load")
}

fn tiles(load: &Load, out: &mut String) {
    let requests = &load.requests;
    out.push_str("<ul class=\"tiles\">");
    let running = format!("{} of {}", requests.running, requests.slots);
    tile(out, "slots in use", &running, Some((requests.running, requests.slots)), "");
    tile(out, "requests wait", &grouped(requests.waiting), None, &format!("{} overtaken", grouped(requests.paused)));
    tile(out, "found no slot", &grouped(requests.refused), None, "since the start");
    for (name, level) in [("connections", &load.connections), ("streams", &load.streams), ("searches", &load.searches)]
    {
        let Level { now, max, refused } = level;
        let note = refused.filter(|n| *n > 0).map_or_else(String::new, |n| format!(", {} refused", grouped(n)));
        tile(out, name, &grouped(*now), Some((*now, *max)), &format!("of {}{note}", grouped(*max)));
    }
    out.push_str("</ul>");
}

fn tenants(load: &Load, out: &mut String) {
    let late = match load.window_s {
        Some(s) => format!("the last {s:.0} s"),
        None => "since the start".to_owned(),
    };
    let _ = write!(out, "<h2>Tenants</h2><p class=\"muted\">Recent figures: {late}.");
    let rest = load.tenants_in_all - load.tenants.len() as u64;
    match rest {
        0 => {}
        1 => out.push_str(" One other is idle, or does less."),
        _ => _ = write!(out, " {} others are idle, or do less.", grouped(rest)),
    }
    out.push_str("</p>");
    if load.tenants.is_empty() {
        out.push_str("<p class=\"muted\">None has done anything yet.</p>");
        return;
    }
    head(out, &["Tenant", "Runs", "Waits", "Processors", "Refused", "Quotas", "Memory", "Open"]);
    for tenant in &load.tenants {
        out.push_str("<tr>");
        let weight = if tenant.weight == 1 { String::new() } else { format!(" ×{}", tenant.weight) };
        cell(out, "Tenant", &format!("<b>{}</b><span class=\"muted\">{weight}</span>", escape(&tenant.name)));
        cell(out, "Runs", &runs(&tenant.classes));
        cell(out, "Waits", &waits(&tenant.classes));
        let processors = match tenant.processors {
            Some(processors) => format!("{processors:.2}"),
            None => format!("{:.1} s", tenant.processor_s),
        };
        cell(out, "Processors", &processors);
        cell(out, "Refused", &refused(tenant));
        cell(out, "Quotas", &tenant.quotas.iter().map(quota).collect::<String>());
        let memory = tenant.memory.iter().map(|(purpose, held)| format!("{purpose} {}", size(*held)));
        cell(out, "Memory", &memory.collect::<Vec<_>>().join("<br>"));
        let open = [(tenant.streams, "streams"), (tenant.searches, "searches")];
        let open = open.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{} {what}", grouped(*n)));
        cell(out, "Open", &open.collect::<Vec<_>>().join("<br>"));
        out.push_str("</tr>");
    }
    out.push_str(live::END);
}

fn runs(classes: &[ClassLoad]) -> String {
    let each = classes.iter().filter(|class| class.running + class.paused > 0).map(|class| match class.paused {
        0 => format!("{} {}", class.running, class.class),
        paused => format!("{} {} <span class=\"muted\">+ {paused} overtaken</span>", class.running, class.class),
    });
    each.collect::<Vec<_>>().join("<br>")
}

fn waits(classes: &[ClassLoad]) -> String {
    let each = classes.iter().filter(|class| class.waiting > 0).map(|class| {
        let oldest = class.oldest_wait_ms.unwrap_or_default();
        format!(
            "<span class=\"hot\">{} {}</span> <span class=\"muted\">for {oldest:.0} ms</span>",
            class.waiting, class.class
        )
    });
    each.collect::<Vec<_>>().join("<br>")
}

/// Formats recent refusals, and those since the start.
fn refused(tenant: &TenantLoad) -> String {
    let sum = |refused: &BTreeMap<&str, u64>| refused.values().sum::<u64>();
    let all = sum(&tenant.refused);
    if all == 0 {
        return String::new();
    }
    // The first sample has no earlier one to compare with.
    let recent = tenant.refused_of_late.as_ref().unwrap_or(&tenant.refused);
    let mut out = String::from("<ul class=\"why\">");
    for (reason, n) in recent {
        let _ = write!(out, "<li class=\"hot\">{} {}</li>", grouped(*n), reason.replace('_', " "));
    }
    let _ = write!(out, "<li class=\"muted\">{} since the start</li></ul>", grouped(all));
    out
}

fn quota(quota: &QuotaLoad) -> String {
    let is_bytes = quota.quota.contains("bytes");
    let show = |n: u64| if is_bytes { size(n) } else { grouped(n) };
    let name = quota.quota.replace('_', " ");
    match quota.used {
        Some(used) => {
            format!("<div>{name} {} of {}{}</div>", show(used), show(quota.limit), meter(used, quota.limit, &name))
        }
        None => format!("<div>{name} {}</div>", show(quota.limit)),
    }
}

fn memory(pools: &[MemoryLoad], out: &mut String) {
    out.push_str("<h2>Memory</h2>");
    head(out, &["For", "Held", "Of"]);
    for MemoryLoad { purpose, held, limit } in pools {
        out.push_str("<tr>");
        cell(out, "For", purpose);
        let meter = limit.map_or_else(String::new, |limit| meter(*held, limit, purpose));
        cell(out, "Held", &format!("{}{meter}", size(*held)));
        cell(out, "Of", &limit.map_or_else(String::new, size));
        out.push_str("</tr>");
    }
    out.push_str(live::END);
}

fn slow(requests: &[SlowRequest], out: &mut String) {
    out.push_str("<h2>Slow requests</h2>");
    if requests.is_empty() {
        out.push_str("<p class=\"muted\">None above <code>log.slow</code> in the last 15 minutes.</p>");
        return;
    }
    head(out, &["Took", "Request", "Tenant", "Status", "Stages", "Read", "When", "Id"]);
    for request in requests {
        out.push_str("<tr>");
        cell(out, "Took", &format!("<b>{}</b>", seconds(request.ms)));
        cell(out, "Request", &format!("{} <code>{}</code>", request.method, escape(request.route)));
        cell(out, "Tenant", &escape(&request.tenant));
        cell(out, "Status", &request.status.to_string());
        let mut stages: Vec<_> = request.stages.iter().filter(|(_, ms)| **ms >= 1.0).collect();
        stages.sort_by(|a, b| b.1.total_cmp(a.1));
        let stages = stages.iter().map(|(stage, ms)| format!("{stage} {}", seconds(**ms)));
        cell(out, "Stages", &stages.collect::<Vec<_>>().join(", "));
        let read = match request.bytes_read {
            0 => String::new(),
            bytes => format!("{}, {} nodes", size(bytes), grouped(request.nodes_visited)),
        };
        cell(out, "Read", &read);
        // Without the date: it was a few minutes ago.
        let when = request.time.split_once('T').map_or(&*request.time, |(_, time)| time.get(..8).unwrap_or(time));
        cell(out, "When", when);
        cell(out, "Id", &format!("<code>{}</code>", escape(&request.request_id)));
        out.push_str("</tr>");
    }
    out.push_str(live::END);
}

fn seconds(ms: f64) -> String {
    if ms < 1000.0 { format!("{ms:.0} ms") } else { format!("{:.2} s", ms / 1000.0) }
}
