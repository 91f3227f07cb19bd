//! The shipped declarations, tested on recorded responses.
#![allow(clippy::disallowed_methods, reason = "tests read files and clocks as they are")]

use super::{LocalProvider, shipped};
use crate::declaration::SourceDeclaration;
use serde_json::{Value, json};
use std::path::Path;

/// Sample values for declarations that need some.
fn declared(name: &str) -> SourceDeclaration {
    let text = match name {
        "rss" => "name = \"x\"\nextends = \"rss\"\n[set]\nfeed = \"https://example.org/feed\"".to_owned(),
        "ogc-features" => {
            "name = \"x\"\nextends = \"ogc-features\"\n[set]\nbase = \"https://example.org\"\ncollection = \"c\""
                .to_owned()
        }
        "bing-news" => "name = \"x\"\nextends = \"bing-news\"\n[set]\nbase = \"https://example.org\"".to_owned(),
        "stac" => "name = \"x\"\nextends = \"stac\"\n[set]\nbase = \"https://example.org\"".to_owned(),
        _ => shipped::text(name).expect(name),
    };
    SourceDeclaration::parse(&text, &shipped::text).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn features(name: &str, fixture: &[u8]) -> Vec<Value> {
    let mapped = declared(name).mapping.read("", fixture).unwrap_or_else(|e| panic!("{name}: {e}"));
    assert_eq!(mapped.unreadable, 0, "{name}");
    mapped.found.iter().map(crate::SearchResult::feature).collect()
}

#[test]
fn every_shipped_declaration_maps_its_recorded_answer() {
    macro_rules! fixture {
        ($name:literal) => {
            ($name, include_bytes!(concat!("../../fixtures/", $name, ".json")).as_slice())
        };
    }
    let point = |lon: f64, lat: f64| json!({"type": "Point", "coordinates": [lon, lat]});
    let london = json!({"type": "Feature", "id": "17867", "geometry": point(-0.1275, 51.50722222), "properties": {
        "title": "London", "text": "London is the capital of England.", "link": "https://en.wikipedia.org/wiki/London",
        "language": "en", "images": ["https://upload.wikimedia.org/london.jpg"]}});
    let mut tested = Vec::new();
    for ((name, fixture), expected) in [
        (fixture!("wikipedia"), london.clone()),
        (fixture!("wikipedia-near"), london),
        (
            fixture!("usgs-earthquakes"),
            json!({"type": "Feature", "id": "us7000abcd",
            "geometry": {"type": "Point", "coordinates": [121.9, 24.7, 35.2]}, "properties": {
            "title": "M 4.6 - 82 km NNE of Hualien City, Taiwan", "link": "https://earthquake.usgs.gov/earthquakes/eventpage/us7000abcd",
            "time": "2025-12-31T12:00:00.123Z", "alert": "green", "depth_km": 35.2, "magnitude": 4.6, "tsunami": 0}}),
        ),
        (
            fixture!("gdelt-doc"),
            json!({"type": "Feature", "id": "https://news.example.org/flood", "geometry": null, "properties": {
            "title": "Flood closes the harbour", "link": "https://news.example.org/flood", "time": "2026-01-05T10:15:00Z",
            "images": ["https://news.example.org/flood.jpg"], "domain": "news.example.org", "source_country": "United Kingdom",
            "source_language": "English"}}),
        ),
        (
            fixture!("hacker-news"),
            json!({"type": "Feature", "id": "101", "geometry": null, "properties": {
            "title": "A database for events", "link": "https://news.ycombinator.com/item?id=101", "author": "ann",
            "time": "2026-01-01T00:00:00Z", "comments": 44, "points": 120, "url": "https://example.org/db"}}),
        ),
        (
            fixture!("mastodon"),
            json!({"type": "Feature", "id": "https://mastodon.social/users/ann/statuses/115001", "geometry": null,
            "properties": {"text": "The # flood reached the bridge", "link": "https://mastodon.social/@ann/115001", "author": "ann",
            "time": "2026-01-05T10:00:00Z", "language": "en", "images": ["https://files.mastodon.social/1.jpg"],
            "videos": ["https://files.mastodon.social/1.mp4"], "author_name": "Ann", "boosts": 3, "tags": "flood"}}),
        ),
        (
            fixture!("bluesky"),
            json!({"type": "Feature", "id": "at://did:plc:abc/app.bsky.feed.post/3k", "geometry": null, "properties": {
            "text": "The flood reached the bridge", "author": "ann.bsky.social", "time": "2026-01-05T10:00:00Z", "language": "en",
            "images": ["https://cdn.bsky.app/f.jpg"], "author_name": "Ann", "likes": 7, "uri": "at://did:plc:abc/app.bsky.feed.post/3k"}}),
        ),
        (
            fixture!("inaturalist"),
            json!({"type": "Feature", "id": "9001", "geometry": point(4.83, 45.76), "properties": {
            "title": "Common Kingfisher", "text": "By the weir", "link": "https://www.inaturalist.org/observations/9001",
            "author": "ann", "time": "2026-01-05T10:00:00Z", "images": ["https://inaturalist.example/1.jpg"],
            "place": "Lyon", "quality": "research", "species": "Alcedo atthis"}}),
        ),
        (
            fixture!("overpass"),
            json!({"type": "Feature", "id": "node/1", "geometry": point(4.83, 45.76), "properties": {
            "title": "Le Moulin", "link": "https://www.openstreetmap.org/node/1", "tags": {"amenity": "cafe", "name": "Le Moulin"}}}),
        ),
        (
            fixture!("flickr"),
            json!({"type": "Feature", "id": "530", "geometry": point(4.83, 45.76), "properties": {
            "title": "Flood", "text": "The quay", "link": "https://www.flickr.com/photos/1@N00/530", "author": "Ann",
            "time": "2026-01-05T10:00:00Z", "images": ["https://live.staticflickr.com/530_z.jpg"], "tags": "flood lyon"}}),
        ),
        (
            ("rss", include_bytes!("../../fixtures/rss.xml").as_slice()),
            json!({"type": "Feature", "id": "w1",
            "geometry": point(4.83, 45.76), "properties": {"title": "Flood & storm", "text": "Stay home",
            "link": "https://example.org/w1", "time": "2026-01-05T10:00:00Z", "images": ["https://example.org/w1.jpg"]}}),
        ),
        (
            fixture!("ogc-features"),
            json!({"type": "Feature", "id": "f1",
            "geometry": {"type": "LineString", "coordinates": [[4.8, 45.7], [4.9, 45.8]]}, "properties": {"title": "Quay",
            "properties": {"name": "Quay", "time": "2026-01-05T10:00:00Z"}}}),
        ),
        (
            fixture!("stac"),
            json!({"type": "Feature", "id": "S2A_1",
            "geometry": {"type": "Polygon", "coordinates": [[[4, 45], [5, 45], [5, 46], [4, 46], [4, 45]]]}, "properties": {
            "title": "S2A_1", "link": "https://stac.example.org/S2A_1", "time": "2026-01-05T10:00:00Z",
            "images": ["https://stac.example.org/S2A_1.jpg"], "cloud_cover": 12.5, "collection": "sentinel-2",
            "platform": "sentinel-2a"}}),
        ),
        (
            fixture!("reddit"),
            json!({"type": "Feature", "id": "t3_1abc", "geometry": null, "properties": {
            "title": "Flood at the quay", "text": "The water is **over** the steps", "author": "ann", "time": "2026-01-05T10:00:00Z",
            "link": "https://www.reddit.com/r/lyon/comments/1abc/flood_at_the_quay/", "comments": 3, "score": 12, "subreddit": "lyon",
            "images": ["https://preview.redd.it/1.jpg?width=640&s=a"],
            "url": "https://www.reddit.com/r/lyon/comments/1abc/flood_at_the_quay/"}}),
        ),
        (
            fixture!("foursquare"),
            json!({"type": "Feature", "id": "4b0588a1f964a520f0d222e3", "geometry": point(4.83, 45.76), "properties": {
            "title": "Le Moulin", "text": "1 quai du Rhône, 69001 Lyon", "link": "https://foursquare.com/v/4b0588a1f964a520f0d222e3",
            "category": "Café", "country": "FR", "telephone": "+33 4 00 00 00 00", "website": "https://moulin.example"}}),
        ),
        (
            fixture!("youtube"),
            json!({"type": "Feature", "id": "abc123DEF45", "geometry": null, "properties": {
            "title": "Ann's flood film", "text": "The quay from above", "link": "https://www.youtube.com/watch?v=abc123DEF45",
            "author": "Ann films", "time": "2026-01-05T10:00:00Z", "images": ["https://i.ytimg.com/vi/abc123DEF45/hqdefault.jpg"],
            "videos": ["https://www.youtube.com/watch?v=abc123DEF45"], "channel": "UCabc"}}),
        ),
        (
            fixture!("vimeo"),
            json!({"type": "Feature", "id": "/videos/76979871", "geometry": null, "properties": {
            "title": "Flood", "text": "The quay from above", "link": "https://vimeo.com/76979871", "author": "Ann", "language": "en",
            "time": "2026-01-05T10:00:00Z", "images": ["https://i.vimeocdn.com/video/452001751"],
            "videos": ["https://vimeo.com/76979871"], "duration_s": 62, "plays": 99}}),
        ),
        (
            fixture!("tumblr"),
            json!({"type": "Feature", "id": "7700", "geometry": null, "properties": {
            "title": "Flood at the quay", "text": "Flood at the quay, from the bridge", "link": "https://ann.tumblr.com/post/7700/flood",
            "author": "ann", "time": "2026-01-05T10:00:00Z", "images": ["https://64.media.tumblr.com/1.jpg"], "notes": 5,
            "tag": "flood"}}),
        ),
        (
            fixture!("pinterest"),
            json!({"type": "Feature", "id": "813744226420795884", "geometry": null, "properties": {
            "title": "Flood", "text": "The quay under water", "link": "https://www.pinterest.com/pin/813744226420795884/",
            "images": ["https://i.pinimg.com/1200x/1.jpg"], "source": "https://news.example.org/flood"}}),
        ),
        (
            ("medium", include_bytes!("../../fixtures/medium.xml").as_slice()),
            json!({"type": "Feature", "id": "https://medium.com/p/0a1b2c", "geometry": null, "properties": {
            "title": "After the flood", "text": "What the quay taught us", "author": "Ann", "time": "2026-01-05T10:00:00Z",
            "link": "https://medium.com/@ann/after-the-flood-0a1b2c?source=rss------flood-5", "tag": "flood"}}),
        ),
        (
            fixture!("vk"),
            json!({"type": "Feature", "id": "-12_77", "geometry": point(4.83, 45.76), "properties": {
            "text": "Flood at the quay", "link": "https://vk.com/wall-12_77", "author": "lyontoday", "time": "2026-01-05T10:00:00Z",
            "images": ["https://sun1.userapi.com/x.jpg"], "videos": ["https://vk.com/video-12_9"], "author_name": "Lyon today",
            "comments": 1, "likes": 4}}),
        ),
        (
            fixture!("ok"),
            json!({"type": "Feature", "id": "66001", "geometry": null, "properties": {
            "text": "Flood at the quay #flood", "link": "https://ok.ru/group/5200/topic/66001", "author": "Lyon today",
            "time": "2026-01-05T10:00:00Z", "images": ["https://i.mycdn.me/91.jpg"], "likes": 8}}),
        ),
        (
            fixture!("4chan"),
            json!({"type": "Feature", "id": "news/900100", "geometry": null, "properties": {
            "title": "Flood", "text": "The quay is under water again", "link": "https://boards.4chan.org/news/thread/900100",
            "author": "Anonymous", "time": "2026-01-05T10:00:00Z", "images": ["https://i.4cdn.org/news/1767607200123456s.jpg"],
            "file": "https://i.4cdn.org/news/1767607200123456.png", "replies": 14}}),
        ),
        (
            fixture!("x"),
            json!({"type": "Feature", "id": "1999000000000000001", "geometry": point(4.83, 45.76), "properties": {
            "text": "Flood at the quay", "link": "https://x.com/i/web/status/1999000000000000001", "author": "ann", "language": "en",
            "time": "2026-01-05T10:00:00Z", "images": ["https://pbs.twimg.com/media/1.jpg"],
            "videos": ["https://video.twimg.com/1.mp4"], "author_name": "Ann", "likes": 6, "place": "Lyon, France"}}),
        ),
        (
            fixture!("bing-news"),
            json!({"type": "Feature", "id": "https://news.example.org/flood", "geometry": null, "properties": {
            "title": "Flood closes the harbour", "text": "The quay is under water.", "link": "https://news.example.org/flood",
            "author": "The Harbour", "time": "2026-01-05T10:00:00Z", "images": ["https://news.example.org/flood.jpg"],
            "category": "World"}}),
        ),
        (
            fixture!("lemmy"),
            json!({"type": "Feature", "id": "https://lemmy.world/post/3300", "geometry": null, "properties": {
            "title": "Flood at the quay", "text": "The water is over the steps", "link": "https://lemmy.world/post/3300",
            "author": "ann", "time": "2026-01-05T10:00:00.123456Z", "images": ["https://lemmy.world/pictrs/image/1.webp"],
            "comments": 2, "community": "lyon", "score": 11, "url": "https://news.example.org/flood"}}),
        ),
        (
            fixture!("peertube"),
            json!({"type": "Feature", "id": "https://tube.example/w/9c9d", "geometry": null, "properties": {
            "title": "Flood", "text": "The quay from above", "link": "https://tube.example/w/9c9d", "author": "Ann", "language": "en",
            "time": "2026-01-05T10:00:00Z", "images": ["https://tube.example/thumbnails/1.jpg"],
            "videos": ["https://tube.example/w/9c9d"], "duration_s": 62, "server": "tube.example", "views": 40}}),
        ),
        (
            fixture!("openalex"),
            json!({"type": "Feature", "id": "https://openalex.org/W400", "geometry": null, "properties": {
            "title": "Floods of the Rhône", "link": "https://doi.org/10.1234/flood", "author": "Ann Lee", "language": "en",
            "time": "2026-01-05T00:00:00Z", "cited_by": 3, "kind_of_work": "article", "source": "Journal of Rivers"}}),
        ),
        (
            fixture!("gbif"),
            json!({"type": "Feature", "id": "4500123", "geometry": point(4.83, 45.76), "properties": {
            "title": "Common Kingfisher", "text": "By the weir", "link": "https://www.gbif.org/occurrence/4500123",
            "author": "Ann Lee", "time": "2026-01-05T10:00:00Z", "images": ["https://images.example.org/1.jpg"],
            "basis": "HUMAN_OBSERVATION", "country": "France", "species": "Alcedo atthis (Linnaeus, 1758)"}}),
        ),
    ] {
        tested.push(name);
        assert_eq!(features(name, fixture)[0], expected, "{name}");
        // A response of another shape is an error, not empty.
        let other: &[u8] = if matches!(name, "rss" | "medium") { b"<a><b/></a>" } else { b"{\"unexpected\":[]}" };
        assert!(declared(name).mapping.read("", other).is_err(), "{name}");
        // Every rule finds a value in the recorded response, except for parts that these sources lack.
        let lacking = ["bluesky", "ogc-features", "rss", "stac", "usgs-earthquakes"].contains(&name);
        let warnings = declared(name).check_response("", fixture).expect(name).warnings;
        assert!(warnings.is_empty() || lacking, "{name}: {warnings:?}");
    }
    tested.sort_unstable();
    assert_eq!(tested, shipped::all().collect::<Vec<_>>(), "each that ships has a recorded answer");
}

#[test]
fn a_feed_may_be_atom_or_rss_1_as_well() {
    let point = json!({"type": "Point", "coordinates": [4.83, 45.76]});
    let flood = json!({"title": "Flood & storm", "text": "Stay home", "link": "https://example.org/w1", "author": "Ann",
        "time": "2026-01-05T10:00:00Z"});
    // The page link and the image are taken from its links. XHTML is not parsed; the summary is used.
    let mut with_picture = flood.clone();
    with_picture["images"] = json!(["https://example.org/w1.jpg"]);
    let bridge = json!({"title": "The old bridge", "text": "It is closed", "link": "https://example.org/w2", "time": "2026-01-05T10:00:00Z"});
    assert_eq!(
        features("rss", include_bytes!("../../fixtures/atom.xml")),
        [
            json!({"type": "Feature", "id": "tag:example.org,2026:w1", "geometry": point, "properties": with_picture}),
            json!({"type": "Feature", "id": "urn:uuid:1225c695-cfb8-4ebb-aaaa-80da344efa6a", "geometry": null, "properties": bridge}),
        ]
    );
    let bridge = json!({"title": "The old bridge", "link": "https://example.org/w2"});
    assert_eq!(
        features("rss", include_bytes!("../../fixtures/rss-1.xml")),
        [
            json!({"type": "Feature", "id": "https://example.org/w1", "geometry": point, "properties": flood}),
            json!({"type": "Feature", "id": "https://example.org/w2", "geometry": null, "properties": bridge}),
        ]
    );
    for nothing in ["<feed><title>x</title></feed>", "<rdf:RDF><channel><title>x</title></channel></rdf:RDF>"] {
        assert!(features("rss", nothing.as_bytes()).is_empty(), "{nothing}");
    }
}

#[test]
fn everybody_who_can_be_asked_has_a_page_and_a_row() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let read = |path: &Path| std::fs::read_to_string(path).expect("a page");
    let mut named: Vec<String> = Vec::new();
    for page in std::fs::read_dir(docs.join("providers")).expect("the pages") {
        let text = read(&page.expect("a page").path());
        // The text between backticks in the first line.
        let head = text.lines().next().unwrap_or_default();
        named.extend(head.split('`').skip(1).step_by(2).map(str::to_owned));
    }
    named.sort();
    let mut all: Vec<&str> = shipped::all().chain([LocalProvider::NAME]).collect();
    all.sort_unstable();
    assert_eq!(named, all);
    let table = read(&docs.join("searches.md"));
    for name in all {
        assert!(table.contains(&format!("\n| `{name}` | ")), "{name} has no row");
    }
}

#[test]
fn what_ships_is_on_only_where_it_is_named() {
    assert_eq!(shipped::load("", None).expect("none").len(), 0);
    let all = shipped::load("all", None).expect("all");
    assert_eq!(all.len(), shipped::names().count());
    assert!(shipped::load("wikipedia, usgs", None).expect_err("unknown").contains("\"usgs\" is shipped"));
    assert!(shipped::load("rss", None).expect_err("a pattern").contains("set.feed"));
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(
        folder.path().join("news.toml"),
        "name = \"news\"\nextends = \"rss\"\n[set]\nfeed = \"https://a/feed\"",
    )
    .expect("written");
    let own = shipped::load("wikipedia", Some(folder.path())).expect("two");
    assert_eq!(own.iter().map(|p| p.name.as_str()).collect::<Vec<_>>(), ["wikipedia", "news"]);
    std::fs::write(
        folder.path().join("other.toml"),
        "name = \"wikipedia\"\nextends = \"rss\"\n[set]\nfeed = \"https://a/feed\"",
    )
    .expect("written");
    let twice = shipped::load("wikipedia", Some(folder.path())).expect_err("twice");
    assert!(twice.contains("other.toml") && twice.contains("another provider"), "{twice}");
}
