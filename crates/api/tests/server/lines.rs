//! Long lines, as returned to clients.

use crate::support::Server;
use serde_json::{Value, json};

type Vertices = Vec<(f64, f64)>;

fn feature(id: &str, vertices: &[(f64, f64)]) -> Value {
    let geometry = json!({ "type": "LineString", "coordinates": vertices });
    json!({ "type": "Feature", "id": id, "geometry": geometry, "properties": { "name": id } })
}

fn vertices(feature: &Value) -> Vertices {
    let vertex = |v: &Value| (v[0].as_f64().unwrap(), v[1].as_f64().unwrap());
    feature["geometry"]["coordinates"].as_array().unwrap().iter().map(vertex).collect()
}

#[test]
fn a_line_of_100_000_vertices_comes_back_once_and_whole() {
    let server = Server::start();
    server.create("routes", "name:String,*geom:LineString:srid=4326;meridian.id='given'");
    // A jagged diagonal, which the index splits into thousands of pieces. Whole ten-thousandths have few digits, which
    // every JSON parser reads as the same number.
    let degrees = |n: u32, less: u32| (f64::from(n) - f64::from(less)) / 1e4;
    let long: Vertices = (0..100_000).map(|i| (degrees(9 * i, 450_000), degrees(8 * i + i % 10, 400_000))).collect();
    let short: Vertices = vec![(100.0, 10.0), (101.0, 11.0)];
    server.load("routes", &[feature("long", &long), feature("short", &short)]);
    let same = |found: &Value, how: &str| {
        assert_eq!(found["id"], "long", "{how}");
        let found = vertices(found);
        assert_eq!((found.len(), found[0], found[99_999]), (100_000, long[0], long[99_999]), "{how}");
        assert!(found == long, "{how}: a vertex differs");
    };
    for how in ["in memory", "in a segment"] {
        let page = server.json("/collections/routes/items?bbox=-10,-10,10,10");
        assert_eq!((&page["numberMatched"], &page["numberReturned"]), (&json!(1), &json!(1)), "{how}");
        same(&page["features"][0], how);
        same(&server.json("/collections/routes/items/long"), how);
        let text = server.get("/collections/routes/items?f=ndjson&bbox=-10,-10,10,10").text();
        assert_eq!(text.lines().count(), 1, "{how}");
        same(&serde_json::from_str(&text).unwrap(), how);
        // Inside its box but far from the line.
        assert_eq!(server.json("/collections/routes/items?bbox=-40,20,-20,40")["numberReturned"], 0, "{how}");
        assert_eq!(server.json("/collections/routes/items")["numberReturned"], 2, "{how}");
        server.store.collection("default", "routes").unwrap().flush().unwrap();
    }
}
