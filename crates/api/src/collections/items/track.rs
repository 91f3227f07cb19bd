//! `track=OBJECT`: the events of one object as a line.

use super::ItemsRequest;
use crate::contract;
use crate::protocol::params::Params;
use crate::protocol::params::crs::Crs;
use crate::protocol::params::format::Format;
use crate::protocol::problem::{Problem, Result};
use crate::request::blocking::{self, Run};
use crate::request::context::Context;
use crate::request::errors;
use crate::request::scope::Scope;
use crate::response::stream;
use axum::response::Response;
use meridian_backend::Collection;
use meridian_model::geometry::cut_at_antimeridian;
use meridian_model::time;
use meridian_observe::{self as observe, Stage};
use meridian_query::Track;
use serde_json::{Value, json};
use std::sync::Arc;

/// The parameters `track` and `simplify`.
pub(crate) struct TrackRequest {
    object: String,
    simplify_m: Option<f64>,
}

/// The refusal of a parameter beside `track`.
pub(super) const BESIDE_TRACK: &str = "has no meaning beside track=OBJECT: leave out one of the two";

/// The parameters of pages, without a meaning for a track: it has all selected events of its object, in order of time.
const OF_PAGES: [&str; 5] = ["limit", "nearest", "properties", "sortby", "token"];

/// Takes `track` and `simplify`. Call it before the parameters of pages are taken, which it refuses beside `track`.
pub(super) fn take(params: &mut Params) -> Result<Option<TrackRequest>> {
    let object = params.take("track");
    let simplify_m = params.take_number("simplify")?;
    match (object, simplify_m) {
        (None, None) => Ok(None),
        (None, Some(_)) => Err(Problem::parameter("simplify", "given without track=OBJECT")),
        (Some(_), Some(m)) if m < 0.0 => Err(Problem::parameter("simplify", format!("{m} metres: expected 0 or more"))),
        (Some(object), simplify_m) => match params.remaining().find(|name| OF_PAGES.contains(name)) {
            Some(name) => Err(Problem::parameter(name, BESIDE_TRACK)),
            None => Ok(Some(TrackRequest { object, simplify_m })),
        },
    }
}

/// Responds with a feature: a line, or a point if there is only one event.
pub(super) async fn answer(
    state: &Scope,
    context: &Context,
    run: Run,
    collection: Arc<dyn Collection>,
    request: ItemsRequest,
    track: TrackRequest,
) -> Result<Response> {
    // The other formats have one row per event, while a track is a single feature.
    if request.format != Format::Json {
        return Err(Problem::parameter("f", "a track is served as json only"));
    }
    let shared = state.clone();
    let url = context.this_url();
    #[cfg(feature = "flight")]
    let asks_for_arrow = context.ask.is_some();
    blocking::run(run, move |control| {
        // The whole history, even for a collection with mode `latest`.
        let question = Track {
            object: track.object.clone(),
            predicate: request.items.predicate.clone(),
            simplify_m: track.simplify_m,
        };
        let read =
            collection.track(request.consistency.newest(true), &question, control).map_err(errors::query_problem)?;
        let (head, answer) = (&read.head, &read.value);
        let _encode = observe::stage(Stage::Encode);
        #[cfg(feature = "flight")]
        if asks_for_arrow {
            let bytes = crate::response::tables::track(&answer.points)?;
            return stream::finished(&shared, super::head(&request, &*collection, head, shared.now()), bytes);
        }
        let lines = cut_at_antimeridian(answer.points.iter().map(|p| (p.lon, p.lat, p.time)));
        let times: Vec<String> = lines.iter().flatten().map(|&(_, _, at)| time::format_instant(at)).collect();
        let document = json!({
            "type": "Feature",
            "id": track.object,
            "geometry": geometry(&lines, request.crs),
            "properties": contract::Track {
                object: track.object.clone(),
                events: answer.events,
                start: times.first().cloned(),
                end: times.last().cloned(),
                times,
            },
            "links": [crate::contract::links::link(url, "self", Format::Json.media_type(), "This document")],
        });
        let bytes = serde_json::to_vec(&document).map_err(Problem::internal)?;
        stream::finished(&shared, super::head(&request, &*collection, head, shared.now()), bytes)
    })
    .await
}

/// Returns the geometry of these lines: a point if there is only one position.
fn geometry(lines: &[Vec<(f64, f64, i64)>], crs: Crs) -> Value {
    let write = |line: &Vec<(f64, f64, i64)>| -> Vec<Value> {
        line.iter().map(|&(lon, lat, _)| crs.of_lon_lat(lon, lat)).map(|(x, y)| json!([x, y])).collect()
    };
    match lines {
        [line] => match write(line).as_slice() {
            [] => Value::Null,
            // A line of one position is invalid GeoJSON.
            [only] => json!({ "type": "Point", "coordinates": only }),
            line => json!({ "type": "LineString", "coordinates": line }),
        },
        many => json!({ "type": "MultiLineString", "coordinates": many.iter().map(write).collect::<Vec<_>>() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_at_the_antimeridian() {
        let lines = cut_at_antimeridian([(178.0, 0.0, 0), (-178.0, 4.0, 10), (-177.0, 4.0, 20)]);
        assert_eq!(
            geometry(&lines, Crs::Crs84)["coordinates"],
            json!([[[178.0, 0.0], [180.0, 2.0]], [[-180.0, 2.0], [-178.0, 4.0], [-177.0, 4.0]]])
        );
        assert_eq!(lines.concat().iter().map(|point| point.2).collect::<Vec<_>>(), [0, 5, 5, 10, 20]);
        assert_eq!(geometry(&cut_at_antimeridian([]), Crs::Crs84), Value::Null);
        assert_eq!(
            geometry(&cut_at_antimeridian([(1.0, 2.0, 0)]), Crs::Epsg4326),
            json!({ "type": "Point", "coordinates": [2.0, 1.0] })
        );
    }
}
