//! Enrich: a result without a place gets the one that its text names. It runs before the filter, so that a search in a
//! place finds such results too. The place is marked as a guess (`place_from`, `place_name`).

use super::{Stage, Work, WorkLane};
use crate::gazetteer::Gazetteer;
use crate::geojson;
use crate::places::PlaceNames;
use crate::search_result::SearchResult;
use geo_types::{Geometry, Point};
use std::sync::Arc;
use tokio::time::{Duration, Instant};

/// Max wait for the first load of the place names. Without them, results pass unchanged, since places are optional.
const TIMEOUT: Duration = Duration::from_millis(500);

/// The stage.
pub struct Enrich {
    /// The source of place names.
    pub places: Arc<PlaceNames>,
    /// The next stage.
    pub next: WorkLane<Vec<SearchResult>>,
}

impl Stage for Enrich {
    type Body = Vec<SearchResult>;
    const NAME: &'static str = "enrich";

    async fn run(self: Arc<Self>, work: Work<Vec<SearchResult>>) {
        let Work { leg, mut body } = work;
        if body.iter().any(|found| found.place.is_none()) {
            let left = leg.search.deadline.saturating_duration_since(Instant::now());
            if let Some(names) = self.places.names(TIMEOUT.min(left / 4)).await {
                body.iter_mut().for_each(|found| enrich(found, &names));
            }
        }
        self.next.push(Work { leg, body }).await;
    }
}

fn enrich(found: &mut SearchResult, names: &Gazetteer) {
    if found.place.is_some() {
        return;
    }
    if let Some(named) = names.find(found.title.iter().chain(&found.text).map(String::as_str)) {
        found.place = Some(geojson::point(named.lon, named.lat));
        found.shape = Some(Geometry::Point(Point::new(named.lon, named.lat)));
        found.place_name = Some(named.name.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gazetteer::NamedPlace;

    #[test]
    fn a_place_from_the_text_is_marked_and_none_of_the_sources_own_is_touched() {
        let names = Gazetteer::new([NamedPlace { name: "Lyon".to_owned(), lon: 4.8, lat: 45.7, people: None }]);
        let mut nowhere = SearchResult { text: Some("Flood in Lyon".to_owned()), ..SearchResult::default() };
        enrich(&mut nowhere, &names);
        let feature = nowhere.feature();
        assert_eq!(feature["geometry"], geojson::point(4.8, 45.7));
        let marked = |name: &str| feature["properties"][name].as_str().map(str::to_owned);
        assert_eq!((marked("place_from").as_deref(), marked("place_name").as_deref()), (Some("text"), Some("Lyon")));
        let mut placed = SearchResult { place: Some(geojson::point(1.0, 2.0)), ..nowhere.clone() };
        placed.place_name = None;
        enrich(&mut placed, &names);
        assert_eq!(placed.feature()["geometry"], geojson::point(1.0, 2.0));
        assert!(placed.feature()["properties"].get("place_from").is_none());
    }
}
