//! The API description, checked against the responses.

use crate::support::{Server, point};
use serde_json::{Value, json};

fn quakes() -> Server {
    let server = Server::start();
    server.create("quakes", "mag:Double,felt:Boolean,place:String,dtg:Date,*geom:Point:srid=4326");
    let event = |n: u32, place: &str| {
        let properties =
            json!({"mag": f64::from(n), "felt": n > 5, "place": place, "dtg": format!("2026-01-0{n}T12:00:00Z")});
        point("", f64::from(n), 2.0, properties)
    };
    server.load("quakes", &[event(4, "Oslo"), event(5, "Osaka"), event(6, "Lima")]);
    server
}

/// Returns the value referenced by `$ref`, or the value itself.
fn resolved<'a>(api: &'a Value, value: &'a Value) -> &'a Value {
    value["$ref"].as_str().map_or(value, |target| api.pointer(&target[1..]).unwrap())
}

/// Returns the paths of the description with their variables filled in, and the parameters of GET.
fn reads(api: &Value) -> Vec<(String, Vec<&Value>)> {
    let mut found = Vec::new();
    for (path, item) in api["paths"].as_object().unwrap() {
        let Some(get) = item.get("get") else { continue };
        let fills = [
            ("{c}", "quakes"),
            ("{tileMatrixSetId}", "WebMercatorQuad"),
            ("{tileMatrix}/{tileRow}/{tileCol}", "0/0/0"),
        ];
        let path = fills.iter().fold(path.clone(), |path, (from, to)| path.replace(from, to));
        found.push((path, get["parameters"].as_array().unwrap().iter().map(|p| resolved(api, p)).collect()));
    }
    found
}

fn first_id(server: &Server) -> String {
    server.json("/collections/quakes/items?limit=1")["features"][0]["id"].as_str().unwrap().to_owned()
}

#[test]
fn every_word_of_every_f_is_served_and_no_other() {
    let server = quakes();
    let (api, id) = (server.json("/api"), first_id(&server));
    let mut checked = 0;
    for (path, parameters) in reads(&api) {
        let Some(f) = parameters.iter().find(|p| p["name"] == "f") else { continue };
        let path = path.replace("{id}", &id);
        // A collection without objects has no tracks.
        if path.ends_with("/tracks") {
            continue;
        }
        for word in f["schema"]["enum"].as_array().unwrap() {
            let answer = server.get(&format!("{path}?f={}", word.as_str().unwrap()));
            assert!(matches!(answer.status, 200 | 204), "{path} as {word}: {} {}", answer.status, answer.text());
        }
        server.get(&format!("{path}?f=xml")).problem(400);
        if !f["schema"]["enum"].as_array().unwrap().contains(&json!("csv")) {
            server.get(&format!("{path}?f=csv")).problem(400);
        }
        checked += 1;
    }
    assert!(checked > 12, "{checked}");
}

#[test]
fn parameters_are_as_the_standard_has_them() {
    let server = quakes();
    for document in ["/api", "/openapi.json"] {
        let api = server.json(document);
        for (path, parameters) in reads(&api) {
            for parameter in parameters.iter().filter(|p| p["in"] == "query") {
                assert_eq!(parameter["style"], "form", "{path}: {parameter}");
                assert_eq!(parameter["explode"], json!(parameter["name"] == "queryable"), "{path}: {parameter}");
            }
            let Some(bbox) = parameters.iter().find(|p| p["name"] == "bbox") else { continue };
            let schema = &bbox["schema"];
            assert_eq!((&schema["minItems"], &schema["maxItems"]), (&json!(4), &json!(6)), "{path}");
            assert_eq!(schema["oneOf"][0], json!({"minItems": 4, "maxItems": 4}));
            assert_eq!(schema["oneOf"][1], json!({"minItems": 6, "maxItems": 6}));
        }
    }
}

#[test]
fn tile_operations_are_named_as_the_standard_has_them() {
    let api = Server::start().json("/api");
    let root = "/collections/{c}/tiles";
    let set = format!("{root}/{{tileMatrixSetId}}");
    let tile = format!("{set}/{{tileMatrix}}/{{tileRow}}/{{tileCol}}");
    for (path, suffix) in [(root, "getTileSetsList"), (&set, "getTileSet"), (&tile, "getTile")] {
        let id = api["paths"][path]["get"]["operationId"].as_str().unwrap();
        assert!(id.ends_with(&format!(".collection.vector.{suffix}")), "{id}");
    }
}

#[test]
fn answers_besides_the_usual_one_are_described() {
    let server = quakes();
    let api = server.json("/api");
    let described = |path: &str, method: &str, status: u16| {
        let responses = &api["paths"][path][method]["responses"];
        assert!(responses.get(status.to_string()).is_some(), "{method} {path} answers {status}: {responses}");
    };
    let tile = "/collections/{c}/tiles/{tileMatrixSetId}/{tileMatrix}/{tileRow}/{tileCol}";
    described(tile, "get", server.get("/collections/quakes/tiles/WebMercatorQuad/5/31/0").status);
    let put = || server.ask("PUT", "/collections/more", &[("content-type", "text/plain")], b"n:Integer").status;
    assert_eq!((put(), put()), (201, 200));
    described("/collections/{c}", "put", 201);
    described("/collections/{c}", "put", 200);
    described("/collections/{c}/items/{id}", "put", 201);
    described("/map", "get", server.get("/map").status);
}

#[test]
fn links_name_media_types_without_parameters_of_a_transfer() {
    fn types(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(members) => {
                if let (Some(_), Some(Value::String(kind))) = (members.get("href"), members.get("type")) {
                    found.push(kind.clone());
                }
                members.values().for_each(|v| types(v, found));
            }
            Value::Array(items) => items.iter().for_each(|v| types(v, found)),
            _ => {}
        }
    }
    let server = quakes();
    let mut found = Vec::new();
    for path in ["/", "/collections", "/collections/quakes", "/collections/quakes/items", "/collections/quakes/tiles"] {
        types(&server.json(path), &mut found);
    }
    assert!(found.iter().any(|t| t == "text/html") && found.iter().any(|t| t == "text/csv"), "{found:?}");
    assert!(found.iter().all(|t| !t.contains("charset") && !t.contains("header=")), "{found:?}");
}

#[test]
fn tilejson_says_which_properties_a_tile_has() {
    let server = quakes();
    let tileset = server.json("/collections/quakes/tiles/WebMercatorQuad");
    assert_eq!((&tileset["tilejson"], &tileset["minzoom"]), (&json!("3.0.0"), &json!(0)));
    assert_eq!(tileset["bounds"], json!([4.0, 2.0, 6.0, 2.0]));
    let layer = &tileset["vector_layers"][0];
    let expected = json!({
        "id": "String", "mag": "Number", "felt": "Boolean", "place": "String", "dtg": "String",
        "count": "Number", "density": "Boolean",
    });
    assert_eq!((&layer["id"], &layer["fields"]), (&json!("quakes"), &expected));
}

#[test]
fn filters_of_the_drafts_are_read_where_they_are_asked_for() {
    let server = quakes();
    let matched = |filter: &str, lang: &str| {
        let escapes = [("%", "%25"), (" ", "%20"), ("<", "%3C"), (">", "%3E")];
        let filter = escapes.iter().fold(filter.to_owned(), |text, (from, to)| text.replace(from, to));
        server.get(&format!("/collections/quakes/items?filter={filter}&filter-lang={lang}"))
    };
    for (filter, expected) in [
        ("felt = 1", 1),
        ("NOT (felt = 0)", 1),
        ("place ILIKE 'os%'", 2),
        ("(mag >= 5) AND (dtg < '2026-01-06T00:00:00Z')", 1),
    ] {
        let answer = matched(filter, "cql-text");
        assert_eq!(answer.status, 200, "{filter}: {}", answer.text());
        assert_eq!(answer.json()["numberReturned"], json!(expected), "{filter}");
    }
    matched("felt = 1", "cql2-text").problem(400);
    let refused = matched("dtg >= '2026-01-05T'", "cql-text").problem(400);
    assert!(refused["detail"].as_str().unwrap().contains("2026-01-05T00:00:00Z"), "{refused}");
}

/// OGC API - Features, part 5: the classes schemas, returnables-and-receivables and queryables.
#[test]
fn schemas_and_queryables_are_those_of_part_5() {
    let server = quakes();
    let links = server.json("/collections/quakes")["links"].clone();
    for what in ["schema", "queryables"] {
        let rel = format!("http://www.opengis.net/def/rel/ogc/1.0/{what}");
        let link = links.as_array().unwrap().iter().find(|l| l["rel"] == rel.as_str()).unwrap();
        let href = link["href"].as_str().unwrap().strip_prefix("http://localhost").unwrap();
        let answer = server.ask("GET", href, &[("accept", "application/schema+json")], b"");
        assert_eq!((answer.status, answer.header("content-type")), (200, "application/schema+json"));
        let schema = answer.json();
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
        assert_eq!(schema["$id"], link["href"]);
        assert_eq!((&schema["type"], &schema["additionalProperties"]), (&json!("object"), &json!(false)));
        for (name, property) in schema["properties"].as_object().unwrap() {
            let spatial = property["format"].as_str().is_some_and(|f| f.starts_with("geometry-"));
            assert_eq!(property.get("type").is_none(), spatial, "{name}: {property}");
            assert!(property.get("$ref").is_none(), "{name}");
        }
        let with_role = |role: &str| {
            let properties = schema["properties"].as_object().unwrap();
            properties.values().filter(|p| p["x-ogc-role"] == role).count()
        };
        assert_eq!((with_role("id"), with_role("primary-geometry"), with_role("primary-instant")), (1, 1, 1), "{what}");
    }
    // A property that is not in the schema is neither accepted nor returned.
    let stranger = point("", 1.0, 2.0, json!({"mag": 1.0, "dtg": "2026-01-01T00:00:00Z", "depth": 3.0}));
    server.post("/collections/quakes/items", "application/geo+json", stranger.to_string()).problem(400);
    server.get("/collections/quakes/items?filter=depth=3").problem(400);
}
