//! The card of a collection: its description, with placeholders for a map and a timeline that the page's script
//! requests.

use super::{escape, grouped, items::map_of};
use crate::contract::links;
use meridian_backend::CollectionStats;
use meridian_model::{Bounds, Schema, time};
use std::fmt::Write;

/// Appends the card; `level` is that of its heading.
pub fn write(out: &mut String, name: &str, schema: &Schema, stats: &CollectionStats, level: u8) {
    let (shown, href) = (escape(name), format!("/collections/{}", links::escape(name)));
    let title = escape(schema.title.as_deref().unwrap_or(name));
    let bounds = stats.bounds.filter(|bounds| !bounds.is_nowhere() && stats.events > 0);
    let place = bounds.filter(|_| schema.geometry.is_some());
    let when = stats.bounds.filter(|_| schema.has_time() && stats.events > 0);
    let _ = write!(out, "<li class=\"collection\" data-collection=\"{shown}\"");
    if let Some(Bounds { west, south, east, north, .. }) = place {
        let _ = write!(out, " data-bbox=\"{west},{south},{east},{north}\"");
    }
    if let Some(Bounds { start, end, .. }) = when {
        let _ = write!(out, " data-interval=\"{}/{}\"", time::format_instant(start), time::format_instant(end));
    }
    let nothing = if place.is_some() { "" } else { "<p class=\"nothing\">No places</p>" };
    let events = if stats.events == 1 { "event" } else { "events" };
    let _ = write!(
        out,
        "><div class=\"places\" data-name=\"{title}\">{nothing}</div><div class=\"words\"><h{level}><a href=\"{href}\">{title}</a></h{level}>\
         <p class=\"count\">{} {events}</p></div>",
        grouped(stats.events)
    );
    if let Some(Bounds { start, end, .. }) = when {
        let _ = write!(
            out,
            "<div class=\"times\" data-name=\"{title}\"></div><p class=\"when\"><span>{}</span><span>{}</span></p>",
            time::format_date(start),
            time::format_date(end)
        );
    }
    let _ = write!(
        out,
        "<p class=\"links\"><a href=\"{}\" aria-label=\"Map of {title}\">Map</a><a href=\"{href}/items?f=html\" aria-label=\"Events of {title}\">Events</a></p></li>",
        escape(&map_of(name))
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_model::schema_spec;

    fn card(spec: &str, name: &str, stats: &CollectionStats) -> String {
        let mut out = String::new();
        write(&mut out, name, &schema_spec::parse(spec).unwrap(), stats, 3);
        out
    }

    #[test]
    fn a_card_asks_for_what_its_events_have() {
        let bounds = Bounds { west: -1.5, south: 2.0, east: 3.0, north: 4.0, start: 0, end: 86_400_000_000 };
        let stats = CollectionStats { events: 1_234, bounds: Some(bounds), ..CollectionStats::default() };
        let both = card("t:Date,*geom:Point", "a", &stats);
        assert!(both.contains("data-bbox=\"-1.5,2,3,4\"") && both.contains("1,234 events"), "{both}");
        assert!(both.contains("<span>1970-01-01</span><span>1970-01-02</span>"), "{both}");
        let neither = card("n:Integer", "a", &stats);
        assert!(!neither.contains("data-bbox") && !neither.contains("data-interval") && neither.contains("No places"));
        let empty = card("t:Date,*geom:Point", "a", &CollectionStats::default());
        assert!(!empty.contains("data-bbox") && !empty.contains("data-interval"), "{empty}");
    }

    #[test]
    fn a_name_is_text() {
        let text = card("n:Integer", "\"><script>", &CollectionStats::default());
        assert!(!text.contains("<script>") && !text.contains("data-collection=\"\""), "{text}");
    }
}
