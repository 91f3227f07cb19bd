//! The load as a page.

use crate::contract::{ClassLoad, Level, Load, MemoryLoad, QuotaLoad, SlowRequest, TenantLoad};
use crate::html::{self, escape, grouped};
use std::collections::BTreeMap;
use std::fmt::Write;

/// On a narrow screen each row becomes a list of its cells, with their names.
const STYLE: &str = "<style>\
.tiles{display:grid;grid-template-columns:repeat(auto-fill,minmax(9.5rem,1fr));gap:.6rem;margin:0 0 1rem;padding:0;list-style:none}\
.tiles li{background:var(--soft);border-radius:.4rem;padding:.5rem .8rem}\
.tiles b{display:block;font-size:1.35rem;font-variant-numeric:tabular-nums;line-height:1.3}.tiles small{display:block;color:var(--muted)}\
meter{display:block;width:100%;max-width:12rem;height:.55rem;margin:.1rem 0 .3rem}\
.why{margin:0;padding:0;list-style:none}.hot{font-weight:600}\
.rows code,.rows td[data-name=Took],.rows td[data-name=When]{white-space:nowrap}.rows meter{min-width:6rem}\
@media(max-width:46rem){.rows thead{position:absolute;left:-99rem}.rows tr{display:block;padding:.5rem 0;border-bottom:1px solid var(--line)}\
.rows td{display:flex;justify-content:space-between;gap:1rem;border:0;padding:.1rem 0;text-align:right}\
.rows td::before{content:attr(data-name);color:var(--muted);text-align:left}.rows td:empty{display:none}.rows code{white-space:normal}}</style>";

/// The page; browsers reload it while it is live.
pub fn page(load: &Load, is_live: bool) -> html::Page {
    let mut out = String::from(STYLE);
    let (what, other) = match is_live {
        true => ("every two seconds", "<a href=\"?f=html&amp;refresh=off\">Stop</a>"),
        false => ("stopped", "<a href=\"?f=html\">Go on</a>"),
    };
    let _ = write!(
        out,
        "<p class=\"muted\">{} · {what} · {other} · <a href=\"?f=json\">As JSON</a></p>",
        escape(&load.time)
    );
    tiles(load, &mut out);
    tenants(load, &mut out);
    memory(&load.memory, &mut out);
    slow(&load.slow, &mut out);
    html::page("Load", &[("Meridian", "/?f=html".to_owned())], &out)
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

fn tile(out: &mut String, name: &str, value: &str, part: Option<(u64, u64)>, note: &str) {
    let meter = part.map_or_else(String::new, |(n, of)| meter(n, of, name));
    let _ = write!(out, "<li><b>{value}</b>{name}{meter} <small>{}</small></li>", escape(note));
}

fn tenants(load: &Load, out: &mut String) {
    let late = match load.window_s {
        Some(s) => format!("the last {s:.0} s"),
        None => "the start".to_owned(),
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
    out.push_str("</tbody></table></div>");
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

/// Recent refusals, and those since the start.
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
    out.push_str("</tbody></table></div>");
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
    out.push_str("</tbody></table></div>");
}

fn head(out: &mut String, names: &[&str]) {
    out.push_str("<div class=\"wide\"><table class=\"rows\"><thead><tr>");
    names.iter().for_each(|name| _ = write!(out, "<th scope=\"col\">{name}</th>"));
    out.push_str("</tr></thead><tbody>");
}

/// A cell; `value` is HTML already.
fn cell(out: &mut String, name: &str, value: &str) {
    // Without a child element, `td:empty` hides the cell on a narrow screen.
    let (open, close) = if value.is_empty() { ("", "") } else { ("<div>", "</div>") };
    let _ = write!(out, "<td data-name=\"{name}\">{open}{value}{close}</td>");
}

fn meter(n: u64, of: u64, what: &str) -> String {
    let of = of.max(1);
    let (high, what) = (of as f64 * 0.8, escape(what));
    format!(
        "<meter min=\"0\" max=\"{of}\" high=\"{high}\" optimum=\"0\" value=\"{}\" aria-label=\"{what}\"></meter>",
        n.min(of)
    )
}

fn seconds(ms: f64) -> String {
    if ms < 1000.0 { format!("{ms:.0} ms") } else { format!("{:.2} s", ms / 1000.0) }
}

/// Bytes with three digits.
fn size(bytes: u64) -> String {
    let (mut n, mut unit) = (bytes as f64, "B");
    for larger in ["KiB", "MiB", "GiB", "TiB"] {
        if n < 1000.0 {
            break;
        }
        (n, unit) = (n / 1024.0, larger);
    }
    let digits = if unit == "B" || n >= 100.0 { 0 } else { 1 };
    format!("{n:.digits$}\u{202f}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_three_digits_and_names_become_no_markup() {
        for (bytes, text) in
            [(0, "0 B"), (999, "999 B"), (1_536, "1.5 KiB"), (300 << 20, "300 MiB"), (5 << 40, "5.0 TiB")]
        {
            assert_eq!(size(bytes), text.replace(' ', "\u{202f}"));
        }
        assert!(meter(5, 0, "<b>").contains("&lt;b&gt;"));
    }
}
