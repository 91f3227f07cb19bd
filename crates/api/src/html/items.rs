//! The pages of a list of events and of one event.

use super::{Page, escape, page};
use crate::contract::links;
use crate::protocol::params::format::{EVENTS, Format};
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
            let _ = write!(body, "<p>{} of {}. ", super::grouped(returned as u64), super::counted(matched, "event"));
        }
        None => {
            let _ = write!(body, "<p>{}. ", super::counted(returned as u64, "event"));
        }
    }
    // A URL with two formats would be refused.
    let bare = links::without(url, "f");
    // A sort requires a limit, which only pages have by default.
    let all = if bare.contains("limit=") { bare.clone() } else { links::without(&bare, "sortby") };
    body.push_str("As ");
    for (i, format) in EVENTS.iter().filter(|format| **format != Format::Html).enumerate() {
        let word = format.word();
        let href = links::in_format(if format.is_bulk() { &all } else { &bare }, *format);
        // The URL ends in `items`, which a browser would name every file.
        let file = match format.is_bulk() {
            true => format!(" download=\"{}.{}\"", escape(name), format.extension()),
            false => String::new(),
        };
        let _ = write!(body, "{}<a href=\"{}\"{file}>{word}</a>", if i > 0 { ", " } else { "" }, escape(&href));
    }
    let _ = write!(body, ". <a href=\"{}\">On the map</a>.</p>", escape(&map_of(name)));
    body.push_str("<div class=\"wide list\" tabindex=\"0\"><table><thead><tr><th>id</th>");
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
                let exact = place(&hit.batch, row);
                cell(&mut body, " class=\"rigid\"", position(&hit.batch, row).as_deref(), &exact);
            }
            for &field in &fields {
                let class = match schema.fields[field].kind {
                    FieldType::Time | FieldType::Date => " class=\"rigid\"",
                    FieldType::Int | FieldType::Float => " class=\"num\"",
                    _ => "",
                };
                let exact = text(&hit.batch, field, row);
                cell(&mut body, class, rounded(&hit.batch, field, row).as_deref(), &exact);
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

/// Appends a cell. One that shows a rounded value has the exact one as its title.
fn cell(out: &mut String, class: &str, rounded: Option<&str>, exact: &str) {
    let _ = match rounded.filter(|rounded| *rounded != exact) {
        Some(rounded) => write!(out, "<td{class} title=\"{}\">{}</td>", escape(exact), escape(rounded)),
        None => write!(out, "<td{class}>{}</td>", escape(exact)),
    };
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

/// Returns the position of an event that is a point, to a metre.
fn position(batch: &Batch, row: usize) -> Option<String> {
    let (lon, lat) = batch.points()?;
    lon.is_valid(row).then(|| format!("{}, {}", decimals(lon.value(row), 5), decimals(lat.value(row), 5)))
}

/// Returns a number with six significant digits, or a time to the second; nothing for other values.
fn rounded(batch: &Batch, field: usize, row: usize) -> Option<String> {
    match batch.field(field)? {
        FieldColumn::Float(c) if c.is_valid(row) => Some(significant(c.value(row))),
        FieldColumn::Time(c) if c.is_valid(row) && batch.schema().fields[field].kind != FieldType::Date => {
            Some(to_second(&time::format_instant(c.value(row))))
        }
        _ => None,
    }
}

/// Rounds a number to six significant digits. Digits before the point stay: a reader takes them for exact.
fn significant(value: f64) -> String {
    let scientific = format!("{value:.5e}");
    // Not a number, or infinite.
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    match exponent.parse::<i32>() {
        Ok(power @ -4..=14) => decimals(value, usize::try_from(5 - power).unwrap_or(0)),
        _ => format!("{}e{exponent}", without_zeros(mantissa)),
    }
}

/// Formats a number with at most so many decimals.
fn decimals(value: f64, most: usize) -> String {
    without_zeros(&format!("{value:.most$}")).to_owned()
}

fn without_zeros(text: &str) -> &str {
    let short = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text };
    if short == "-0" { "0" } else { short }
}

/// Shortens an instant to the second, as the table of the map has it.
fn to_second(instant: &str) -> String {
    let Some((day, clock)) = instant.split_once('T') else { return instant.to_owned() };
    let second = clock.split('.').next().unwrap_or(clock).trim_end_matches('Z');
    format!("{day} {second}Z")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_after_the_point_alone() {
        for (value, shown) in [
            (1.6900000572205, "1.69"),
            (32.880001068115, "32.88"),
            (249.0, "249"),
            (1_234_567.89, "1234568"),
            (-0.0293604, "-0.0293604"),
            (0.0001234567, "0.000123457"),
            (0.0, "0"),
            (-0.0, "0"),
            (1.5e-9, "1.5e-9"),
            (-1e300, "-1e300"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(significant(value), shown);
        }
        assert_eq!(decimals(-155.30599975586, 5), "-155.306");
        assert_eq!(decimals(-0.000001, 5), "0");
        assert_eq!(decimals(100.0, 0), "100");
    }

    #[test]
    fn an_instant_is_shown_to_the_second() {
        assert_eq!(to_second("2026-03-21T02:53:46.52Z"), "2026-03-21 02:53:46Z");
        assert_eq!(to_second("2026-03-21T02:53:46Z"), "2026-03-21 02:53:46Z");
        assert_eq!(to_second(".."), "..");
    }

    #[test]
    fn a_rounded_cell_has_the_exact_value_as_its_title() {
        let mut out = String::new();
        cell(&mut out, "", Some("1.7"), "1.69");
        cell(&mut out, " class=\"num\"", Some("2"), "2");
        cell(&mut out, "", None, "<b>");
        assert_eq!(out, "<td title=\"1.69\">1.7</td><td class=\"num\">2</td><td>&lt;b&gt;</td>");
    }
}
