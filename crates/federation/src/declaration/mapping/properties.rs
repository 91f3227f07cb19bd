//! Random responses.

use super::tests::mapping;
use super::*;
use proptest::prelude::*;
use serde_json::json;

proptest! {
    /// Each item with an id is a result, in order, and each other one is counted. A place is never one that no
    /// geometry may have, nor 0, 0.
    #[test]
    fn every_item_is_a_result_or_counted(
        items in prop::collection::vec(
            (prop::option::weighted(0.7, 0..99u32), "(-?[0-9.]{1,4}|nan|inf)[ ,]{1,2}(-?[0-9]{1,3}|nan|inf)?"),
            0..8,
        ),
    ) {
        let map = mapping("id = \"id\"\npoint = \"p\"", "json", "list");
        let list: Vec<Value> = items.iter().map(|(id, point)| json!({"id": id, "p": point})).collect();
        let ids: Vec<String> = items.iter().filter_map(|(id, _)| id.map(|id| id.to_string())).collect();
        let read = map.read("application/json", json!({ "list": list }).to_string().as_bytes());
        prop_assert_eq!(read.is_err(), ids.is_empty() && !items.is_empty());
        if let Ok(read) = read {
            let found: Vec<&str> = read.found.iter().map(|one| one.id.as_str()).collect();
            prop_assert_eq!(read.unreadable, items.len() - ids.len());
            prop_assert_eq!(found, ids);
            for one in &read.found {
                let Some(geo_types::Geometry::Point(point)) = &one.shape else {
                    prop_assert!(one.shape.is_none() && one.place.is_none());
                    continue;
                };
                prop_assert!(geometry::validate_position(point.x(), point.y()).is_ok(), "{:?}", point);
                prop_assert!((point.x(), point.y()) != (0.0, 0.0));
                prop_assert_eq!(one.place.clone(), Some(geojson::point(point.x(), point.y())));
            }
        }
    }
}
