//! The pages of collections.

use super::ask::{self, Question};
use super::items::map_of;
use super::live::size;
use super::{Page, card, counted, escape, facts, grouped, page};
use crate::contract::links;
use meridian_backend::{CollectionStats, Damaged, Durability, Settings};
use meridian_model::{Bounds, Schema, TimeRole, time};
use serde_json::Value;
use std::fmt::Write;
use std::sync::Arc;

/// Renders all collections as a table, and the reasons why damaged ones cannot be opened.
pub fn list(collections: &[(String, Arc<Schema>, CollectionStats)], damaged: &[Damaged]) -> Page {
    let mut body = String::new();
    for damaged in damaged {
        let _ = write!(body, "<p role=\"alert\"><strong>{}</strong></p>", escape(&damaged.to_string()));
    }
    if collections.is_empty() && damaged.is_empty() {
        body.push_str("<p class=\"muted\">There are none yet.</p>");
    } else if !collections.is_empty() {
        body.push_str(
            "<div class=\"wide\" tabindex=\"0\"><table><thead><tr><th>Name</th><th class=\"num\">Events</th><th>Geometry</th><th>Time</th><th><span class=\"hidden\">Map</span></th></tr></thead><tbody>",
        );
        for (name, schema, stats) in collections {
            let shown = escape(name);
            let geometry = schema.geometry.map_or("none", |g| g.word());
            let title = schema.title.as_deref().filter(|t| *t != name.as_str()).unwrap_or_default();
            let _ = write!(
                body,
                "<tr><td><a href=\"/collections/{}?f=html\">{shown}</a> <span class=\"muted\">{}</span></td><td class=\"num\">{}</td><td>{geometry}</td><td>{}</td><td><a href=\"{}\" aria-label=\"Map of {shown}\">map</a></td></tr>",
                links::escape(name),
                escape(title),
                grouped(stats.events),
                escape(&when(stats.bounds.filter(|_| schema.has_time()))),
                escape(&map_of(name)),
            );
        }
        body.push_str("</tbody></table></div>");
    }
    body.push_str("<p><a href=\"/collections?f=json\">As JSON</a></p>");
    page("Collections", &[], &body).within("/collections")
}

/// Renders one collection.
pub fn one(question: &Question<'_>, settings: &Settings) -> Page {
    let Question { name, schema, stats, .. } = *question;
    let root = format!("/collections/{}", links::escape(name));
    let mut body = String::new();
    if let Some(description) = &schema.description {
        let _ = write!(body, "<p>{}</p>", escape(description));
    }
    let _ = write!(
        body,
        "<ul class=\"actions\"><li><a class=\"first\" href=\"{}\">On the map</a></li><li><a href=\"{root}/items?f=html\">Events</a></li>\
         <li><a href=\"{root}/schema?f=html\">Schema</a></li><li><a href=\"{root}/queryables?f=html\">Queryables</a></li><li><a href=\"{root}?f=json\">As JSON</a></li></ul>",
        escape(&map_of(name))
    );
    if schema.geometry.is_some() || schema.has_time() {
        // Its script requests the map and the timeline.
        body.push_str("<ul class=\"collections\">");
        card::write(&mut body, name, schema, stats, 2);
        body.push_str("</ul>");
    }
    let mut rows = vec![("Events", grouped(stats.events))];
    if let Some(kind) = schema.geometry {
        rows.push(("Geometry", kind.word().to_owned()));
    }
    if let Some(b) = stats.bounds.filter(|b| !b.is_nowhere()) {
        rows.push(("Where", format!("{:.4}, {:.4} to {:.4}, {:.4}", b.west, b.south, b.east, b.north)));
    }
    if schema.has_time() {
        rows.push(("When", escape(&when(stats.bounds)).into_owned()));
    }
    rows.push(("On disk", format!("{} in {}", size(stats.bytes), counted(stats.segments, "segment"))));
    if stats.memory_rows > 0 {
        let trees = counted(stats.runs, "tree");
        rows.push(("In memory", format!("{} in {trees}", counted(stats.memory_rows, "event"))));
    }
    let durability = match settings.durability {
        Durability::Ephemeral => "ephemeral: lost when the server stops",
        Durability::Local => "local: survives a crash of the server and of its machine",
        Durability::Replicated => "replicated: survives the loss of machines",
    };
    rows.push(("Durability", durability.to_owned()));
    if let Some(retention) = settings.retention {
        rows.push(("Retention", crate::contract::text::retention_text(retention)));
    }
    if let Some(bytes) = settings.retention_bytes {
        rows.push(("Retention", size(bytes)));
    }
    if settings.partitions > 1 {
        rows.push(("Partitions", settings.partitions.to_string()));
    }
    body.push_str(&facts(&rows));
    body.push_str("<h2>Fields</h2><div class=\"wide\" tabindex=\"0\"><table><thead><tr><th>Name</th><th>Type</th><th>Part</th></tr></thead><tbody>");
    for (i, field) in schema.fields.iter().enumerate() {
        let part = match schema.time {
            TimeRole::Instant(at) if at == i => "the time",
            TimeRole::Interval { start, .. } if start == i => "start of the time",
            TimeRole::Interval { end, .. } if end == i => "end of the time",
            _ if schema.object == Some(i) => "the object",
            _ if field.required => "required",
            _ => "",
        };
        let _ = write!(body, "<tr><td>{}</td><td>{}</td><td>{part}</td></tr>", escape(&field.name), field.kind.word());
    }
    body.push_str("</tbody></table></div>");
    let _ = write!(body, "<h2>Ask in curl, Python, DuckDB</h2>{}", ask::panel(question));
    page(schema.title.as_deref().unwrap_or(name), &[trail()], &body).within("/collections")
}

/// Renders a schema or queryables document.
pub fn schema(name: &str, what: &str, document: &Value) -> Page {
    let text = serde_json::to_string_pretty(document).unwrap_or_default();
    let title = if what == "schema" { "Schema" } else { "Queryables" };
    let body = format!(
        "<p><a href=\"/collections/{}/{what}?f=json\">As JSON Schema</a></p><div class=\"wide\" tabindex=\"0\"><pre tabindex=\"0\">{}</pre></div>",
        links::escape(name),
        escape(&text)
    );
    let trail = [trail(), (name, format!("/collections/{}?f=html", links::escape(name)))];
    page(title, &trail, &body).within("/collections")
}

fn trail() -> (&'static str, String) {
    ("Collections", "/collections?f=html".to_owned())
}

fn when(bounds: Option<Bounds>) -> String {
    bounds.map_or_else(String::new, |b| format!("{} to {}", time::format_instant(b.start), time::format_instant(b.end)))
}
