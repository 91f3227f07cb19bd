//! The pages of a list of events and of one event.

use super::{Page, escape, page};
use crate::contract::links;
use arrow_array::Array;
use meridian_model::{Batch, FieldColumn, FieldType, Schema, Seq, time};
use meridian_query::Hits;
use std::fmt::Write;

/// Renders a page of events as a table. `url` is its own URL, `next` that of the next page.
pub fn page_of(
    name: &str,
    schema: &Schema,
    hits: &[Hits],
    properties: Option<&[String]>,
    matched: Option<u64>,
    next: Option<&str>,
    url: &str,
) -> Page {
    let fields: Vec<usize> = (0..schema.fields.len())
        .filter(|&i| properties.is_none_or(|names| names.contains(&schema.fields[i].name)))
        .collect();
    let near = hits.iter().any(|h| h.distances.is_some());
    let returned: usize = hits.iter().map(|h| h.batch.rows()).sum();
    let mut body = String::new();
    match matched {
        Some(matched) => {
            let _ = write!(body, "<p>{} of {} events. ", super::grouped(returned as u64), super::grouped(matched));
        }
        None => {
            let _ = write!(body, "<p>{} events. ", super::grouped(returned as u64));
        }
    }
    // A URL with two formats would be refused.
    let bare = links::without(url, "f");
    // A sort requires a limit, which only pages have by default.
    let all = if bare.contains("limit=") { bare.clone() } else { links::without(&bare, "sortby") };
    body.push_str("As ");
    for (i, word) in ["json", "csv", "ndjson", "geojsonseq", "arrow", "parquet"].iter().enumerate() {
        let href = links::with(if *word == "json" { &bare } else { &all }, "f", word);
        let _ = write!(body, "{}<a href=\"{}\">{word}</a>", if i > 0 { ", " } else { "" }, escape(&href));
    }
    let _ = write!(body, ". <a href=\"{}\">On the map</a>.</p>", escape(&map_of(name)));
    body.push_str("<div class=\"wide\" tabindex=\"0\"><table><thead><tr><th>id</th>");
    if near {
        body.push_str("<th class=\"num\">metres away</th>");
    }
    if schema.geometry.is_some() {
        body.push_str("<th>where</th>");
    }
    for &field in &fields {
        let class =
            if matches!(schema.fields[field].kind, FieldType::Int | FieldType::Float) { " class=\"num\"" } else { "" };
        let name = &schema.fields[field].name;
        // Events near a position come in order of distance. Lists have no order, and commas separate sort keys.
        match near || name.contains(',') || schema.fields[field].kind == FieldType::TextList {
            true => _ = write!(body, "<th{class}>{}</th>", escape(name)),
            false => sortable(&mut body, class, name, url),
        }
    }
    body.push_str("</tr></thead><tbody>");
    for hit in hits {
        for row in 0..hit.batch.rows() {
            let id = hit.batch.id_of(row, hit.seqs.get(row).copied().unwrap_or_default());
            let _ = write!(
                body,
                "<tr><td class=\"rigid\"><a href=\"{}\">{}</a></td>",
                escape(&item_path(name, &id)),
                escape(&id)
            );
            if let Some(distances) = &hit.distances {
                let _ = write!(body, "<td class=\"num\">{:.0}</td>", distances[row]);
            }
            if schema.geometry.is_some() {
                let _ = write!(body, "<td class=\"rigid\">{}</td>", escape(&place(&hit.batch, row)));
            }
            for &field in &fields {
                let class = match schema.fields[field].kind {
                    FieldType::Time | FieldType::Date => " class=\"rigid\"",
                    FieldType::Int | FieldType::Float => " class=\"num\"",
                    _ => "",
                };
                let _ = write!(body, "<td{class}>{}</td>", escape(&text(&hit.batch, field, row)));
            }
            body.push_str("</tr>");
        }
    }
    body.push_str("</tbody></table></div>");
    if returned == 0 {
        body.push_str("<p class=\"muted\">No event matches.</p>");
    }
    if let Some(next) = next {
        let _ = write!(body, "<p class=\"pager\"><a rel=\"next\" href=\"{}\">Next page</a></p>", escape(next));
    }
    page("Events", &trail(name), &body).within("/collections")
}

/// Appends a column header with a link that sorts the events by it: ascending, then descending.
fn sortable(out: &mut String, class: &str, name: &str, url: &str) {
    let (up, down) = (links::escape(name), format!("-{}", links::escape(name)));
    let current = url.split(['?', '&']).find_map(|part| part.strip_prefix("sortby="));
    let (sort, next) = match current {
        Some(key) if key == up => (" aria-sort=\"ascending\"", format!("-{name}")),
        Some(key) if key == down => (" aria-sort=\"descending\"", name.to_owned()),
        _ => ("", name.to_owned()),
    };
    // A token continues one order only.
    let href = links::with(&links::without(&links::without(url, "sortby"), "token"), "sortby", &next);
    let _ = write!(out, "<th{class}{sort}><a href=\"{}\">{}</a></th>", escape(&href), escape(name));
}

/// Renders one event.
pub fn event(collection: &str, schema: &Schema, batch: &Batch, seq: Seq) -> Page {
    let id = batch.id_of(0, seq);
    let mut rows = Vec::new();
    if schema.geometry.is_some() {
        rows.push((schema.geometry_name.as_str(), escape(&place(batch, 0)).into_owned()));
    }
    for (i, field) in schema.fields.iter().enumerate() {
        rows.push((field.name.as_str(), escape(&text(batch, i, 0)).into_owned()));
    }
    let path = item_path(collection, &id);
    let body = format!(
        "<ul class=\"actions\"><li><a class=\"first\" href=\"{}\">On the map</a></li><li><a href=\"{}?f=json\">As GeoJSON</a></li></ul>{}",
        escape(&map_at(collection, batch)),
        escape(&path),
        super::facts(&rows)
    );
    let mut trail = trail(collection);
    trail.push(("Events", format!("/collections/{}/items?f=html", links::escape(collection))));
    page(&id, &trail, &body).within("/collections")
}

fn trail(collection: &str) -> Vec<(&str, String)> {
    vec![
        ("Collections", "/collections?f=html".to_owned()),
        (collection, format!("/collections/{}?f=html", links::escape(collection))),
    ]
}

/// Returns the URL of the map that shows a collection.
pub fn map_of(collection: &str) -> String {
    format!("/map#c={}", links::escape(collection))
}

/// Returns the URL of the map around the first event of a batch.
fn map_at(collection: &str, batch: &Batch) -> String {
    let map = map_of(collection);
    match batch.geometry(0).as_ref().and_then(meridian_model::geometry::sides) {
        Some([w, s, e, n]) if w == e && s == n => format!("{map}&m=8/{s:.4}/{w:.4}"),
        _ => map,
    }
}

fn item_path(collection: &str, id: &str) -> String {
    format!("/collections/{}/items/{}", links::escape(collection), links::escape(id))
}

/// Returns a short description of an event's geometry.
fn place(batch: &Batch, row: usize) -> String {
    if let Some((lon, lat)) = batch.points() {
        return if lon.is_valid(row) { format!("{}, {}", lon.value(row), lat.value(row)) } else { String::new() };
    }
    let Some(shape) = batch.geometry(row) else { return String::new() };
    let kind = meridian_model::geometry::kind(&shape).map_or("Geometry", |k| k.word());
    match meridian_model::geometry::sides(&shape) {
        Some([w, s, e, n]) => format!("{kind} in {w:.3}, {s:.3} to {e:.3}, {n:.3}"),
        None => kind.to_owned(),
    }
}

/// Returns a field's value as text; empty if there is none.
fn text(batch: &Batch, field: usize, row: usize) -> String {
    match batch.field(field) {
        None => String::new(),
        Some(FieldColumn::Text(c)) if c.is_valid(row) => c.value(row).to_owned(),
        Some(FieldColumn::Int(c)) if c.is_valid(row) => c.value(row).to_string(),
        Some(FieldColumn::Float(c)) if c.is_valid(row) => c.value(row).to_string(),
        Some(FieldColumn::Bool(c)) if c.is_valid(row) => c.value(row).to_string(),
        Some(FieldColumn::Time(c)) if c.is_valid(row) => match batch.schema().fields[field].kind {
            FieldType::Date => time::format_date(c.value(row)),
            _ => time::format_instant(c.value(row)),
        },
        Some(FieldColumn::TextList(c)) if c.is_valid(row) => {
            let list = c.value(row);
            let texts = list.as_any().downcast_ref::<arrow_array::StringArray>();
            texts.map_or_else(String::new, |t| t.iter().flatten().collect::<Vec<_>>().join(", "))
        }
        Some(_) => String::new(),
    }
}
