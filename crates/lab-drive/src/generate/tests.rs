use super::*;
use crate::scenario::{Generator, Scenario};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn source(text: &str) -> Source {
    let generator: Generator = toml::from_str(text).expect("a generator");
    Source::new(&generator).expect("sound")
}

fn draws(source: &mut Source, n: usize, seed: u64) -> Vec<Vec<Value>> {
    let mut random = stream(seed, &[]);
    (0..n)
        .map(|_| {
            let mut out = Vec::new();
            source.draw(&mut random, &mut out);
            out
        })
        .collect()
}

fn number(value: &Value) -> f64 {
    match value {
        Value::Number(n, _) => *n,
        Value::Whole(n) => *n as f64,
        Value::Text(text) => panic!("{text} is no number"),
    }
}

#[test]
fn cells_are_drawn_by_their_count_and_tile_the_box() {
    let mut cells = source("kind = \"cells\"\nbox = [-124.9805, 24.2069, -65.9180, 49.8380]\nfrom = 4\nto = 8");
    let mut levels = BTreeMap::new();
    for row in draws(&mut cells, 40_000, 7) {
        let (z, col, r) = (number(&row[1]), number(&row[2]), number(&row[3]));
        *levels.entry(z as u8).or_insert(0_u32) += 1;
        assert!(col < z.exp2() && r < (z - 1.0).exp2());
        assert!((number(&row[6]) - number(&row[4]) - 59.0625 / z.exp2()).abs() < 1e-9);
        assert!(number(&row[5]) >= 24.2069 && number(&row[7]) <= 49.8381);
    }
    // 0.29, 1.17, 4.69, 18.77, 75.07 % (studies.md 1.4).
    for (z, share) in [(4, 0.0029), (5, 0.0117), (6, 0.0469), (7, 0.1877), (8, 0.7507)] {
        let drawn = f64::from(levels[&z]) / 40_000.0;
        let spread = 4.0 * (share * (1.0 - share) / 40_000.0_f64).sqrt();
        assert!((drawn - share).abs() < spread, "level {z}: {drawn}");
    }
}

#[test]
fn a_city_buffer_is_a_circle_in_web_mercator() {
    let mut cities = source("kind = \"cities\"\nsizes_km = [450.0]");
    let rows = draws(&mut cities, 300, 1);
    let names: std::collections::BTreeSet<_> = rows.iter().map(|row| format!("{:?}", row[0])).collect();
    assert_eq!(names.len(), 10);
    for row in rows {
        // East to west is the diameter in Mercator, at any latitude; the ground covered is smaller in the north.
        assert!((number(&row[6]) - number(&row[4]) - (900_000.0_f64 / 6_378_137.0).to_degrees()).abs() < 1e-6);
        let height_km = (number(&row[7]) - number(&row[5])) * 111.3;
        assert!((height_km / (900.0 * number(&row[2]).to_radians().cos()) - 1.0).abs() < 0.01);
    }
}

#[test]
fn windows_of_each_length_come_equally_often_at_each_of_their_positions() {
    // A month has 12 positions and five days have 73: the length is drawn first (studies.md 1.4).
    let mut windows =
        source("kind = \"window\"\nstart = \"2015-01-01T00:00:01Z\"\nlengths = [[30, 12], [9, 40], [5, 73]]");
    let mut drawn: BTreeMap<u64, BTreeMap<u64, u32>> = BTreeMap::new();
    for row in draws(&mut windows, 30_000, 5) {
        let (days, position) = (number(&row[3]) as u64, number(&row[4]) as u64);
        *drawn.entry(days).or_default().entry(position).or_default() += 1;
        if (days, position) == (9, 2) {
            let [from, to] = ["2015-01-19T00:00:01Z", "2015-01-28T00:00:01Z"];
            assert_eq!(row[..3], [Value::text(format!("{from}/{to}")), Value::text(from), Value::text(to)]);
        }
    }
    for (days, positions) in [(30, 12), (9, 40), (5, 73)] {
        let times: u32 = drawn[&days].values().sum();
        // Five standard deviations.
        assert!(times.abs_diff(10_000) < 410, "{days} days: {times} of 30000");
        assert_eq!(drawn[&days].len(), positions, "{days} days");
        let (due, rarest) = (10_000 / positions as u32, drawn[&days].values().min().copied().unwrap_or_default());
        assert!(rarest > due / 2, "{days} days: a position only {rarest} times, {due} are due");
    }
    let none = Generator::Window { start: "2015-01-01T00:00:00Z".into(), lengths: Vec::new() };
    assert!(Source::new(&none).expect_err("refused").contains("lengths is empty"));
}

#[test]
fn zipf_keys_follow_their_law_and_a_sequence_comes_round() {
    let mut zipf = source("kind = \"zipf\"\nkeys = 100\nexponent = 1.0");
    let drawn = draws(&mut zipf, 50_000, 3);
    let times = |key: u64| drawn.iter().filter(|row| row[0] == Value::Whole(key)).count() as f64;
    let harmonic: f64 = (1..=100).map(|k| 1.0 / f64::from(k)).sum();
    for key in [1, 2, 10] {
        let due = 50_000.0 / harmonic / key as f64;
        assert!((times(key) - due).abs() < 5.0 * due.sqrt(), "key {key}: {} of {due}", times(key));
    }
    let mut ids = source("kind = \"id\"\nfrom = 3\nto = 5\nprefix = \"q\"\nsequence = true");
    let ids: Vec<String> = draws(&mut ids, 4, 0).iter().map(|row| format!("{:?}", row[0])).collect();
    assert_eq!(ids, ["Text(\"q3\")", "Text(\"q4\")", "Text(\"q5\")", "Text(\"q3\")"]);
    let drawn = draws(&mut source("kind = \"id\"\nfrom = 3\nto = 5"), 3_000, 0);
    for id in 3..=5 {
        // Five standard deviations of a third of 3,000.
        let times = drawn.iter().filter(|row| row[0] == Value::Whole(id)).count();
        assert!((870..=1_130).contains(&times), "{id}: {times}");
    }
}

#[test]
fn places_are_drawn_by_population_and_bad_lines_are_named() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("cities.txt");
    let line = |name: &str, lat: f64, people: u64| {
        format!("1\t{name}\t{name}\t\t{lat}\t10.0\tP\tPPL\tXX\t\t\t\t\t\t{people}\t\t\tEurope/X\t2020-01-01\n")
    };
    std::fs::write(&path, line("Big", 1.0, 900_000) + &line("Small", 2.0, 100_000) + &line("Empty", 3.0, 0))
        .expect("written");
    let generator = Generator::Populated { file: path.clone(), spread_km: 0.0 };
    let rows = draws(&mut Source::new(&generator).expect("reads"), 10_000, 1);
    let big = rows.iter().filter(|row| row[0] == Value::text("Big")).count();
    assert!((8_800..9_200).contains(&big), "{big}");
    std::fs::write(&path, "nonsense\n").expect("written");
    assert!(Source::new(&generator).expect_err("refused").contains("cities.txt:1"));
}

#[test]
fn points_about_a_place_are_as_far_off_as_asked_even_across_the_antimeridian() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("cities.txt");
    let line = "1\tEdge\tEdge\t\t60.0\t179.9\tP\tPPL\tXX\t\t\t\t\t\t1000\t\t\tAsia/X\t2020-01-01\n";
    std::fs::write(&file, line).expect("written");
    let mut places = Source::new(&Generator::Populated { file, spread_km: 50.0 }).expect("reads");
    let rows = draws(&mut places, 4_000, 1);
    assert!(rows.iter().all(|row| (-180.0..=180.0).contains(&number(&row[1]))));
    let east = |row: &[Value]| (number(&row[1]) - 179.9 + 540.0).rem_euclid(360.0) - 180.0;
    let deviation = |of: &dyn Fn(&[Value]) -> f64| {
        let squares = rows.iter().map(|row| (of(row) * 111.195).powi(2)).sum::<f64>();
        (squares / rows.len() as f64).sqrt()
    };
    // Five standard errors of a deviation of 50 km from 4,000 draws; a degree of longitude is half as long there.
    for km in [deviation(&|row| number(&row[2]) - 60.0), deviation(&|row| east(row) / 2.0)] {
        assert!((km - 50.0).abs() < 2.8, "{km} km");
    }
}

#[test]
fn polygons_of_several_parts_are_one() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("land.geojson");
    let text = r#"{"features":[{"properties":{},"geometry":{"type":"MultiPolygon","coordinates":[
        [[[0,0],[1,0],[1,1],[0,0]]],[[[5,5],[6,5],[6,7],[5,5]]]]}}]}"#;
    std::fs::write(&file, text).expect("written");
    let mut source = Source::new(&Generator::Polygons { file, name: "name".into() }).expect("reads");
    let row = &draws(&mut source, 1, 1)[0];
    let wkt = "MULTIPOLYGON(((0.000000 0.000000,1.000000 0.000000,1.000000 1.000000,0.000000 0.000000)),((5.000000 5.000000,6.000000 5.000000,6.000000 7.000000,5.000000 5.000000)))";
    assert_eq!(row[..3], [Value::text("0"), Value::text(wkt), Value::text("0.000000,0.000000,6.000000,7.000000")]);
}

#[test]
fn polygons_keep_their_names_holes_and_boxes() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("land.geojson");
    let text = r#"{"type":"FeatureCollection","features":[
        {"type":"Feature","properties":{"name":"Ring"},"geometry":{"type":"Polygon","coordinates":[[[0,0],[4,0],[4,4],[0,4],[0,0]],[[1,1],[2,1],[2,2],[1,1]]]}},
        {"type":"Feature","properties":{"name":"Dot"},"geometry":{"type":"Point","coordinates":[0,0]}}]}"#;
    std::fs::write(&path, text).expect("written");
    let mut source = Source::new(&Generator::Polygons { file: path, name: "name".into() }).expect("reads");
    let row = &draws(&mut source, 1, 1)[0];
    let wkt = "POLYGON((0.000000 0.000000,4.000000 0.000000,4.000000 4.000000,0.000000 4.000000,0.000000 0.000000),(1.000000 1.000000,2.000000 1.000000,2.000000 2.000000,1.000000 1.000000))";
    assert_eq!(row[1], Value::text(wkt));
    assert_eq!(row[2], Value::text("0.000000,0.000000,4.000000,4.000000"));
}

fn mix_of(scenario: &Scenario, encoding: Encoding) -> Result<Mix, String> {
    let endpoint = Endpoint { host: "h:1", base: "/base", encoding };
    Mix::new(scenario, &scenario.population[0], &scenario.target[0], &endpoint)
}

#[test]
fn a_mix_is_asked_by_its_weights() {
    let request = |name: &str, weight: f64| format!("[[request]]\npath = \"/{name}\"\nweight = {weight}\n");
    let requests = [request("rare", 1.0), request("often", 3.0), request("never", 0.0)].concat();
    let text = format!("[target]\nurl = \"http://h:1\"\n[arrival]\nkind = \"constant\"\nrate = 1\n{requests}");
    let scenario = Scenario::parse(&text, "t", &[]).expect("reads");
    let (mut mix, mut random) = (mix_of(&scenario, Encoding::Http).expect("prepares"), stream(5, &[]));
    let mut counts = [0_u32; 3];
    (0..8_000).for_each(|_| counts[usize::from(mix.next(&mut random).request)] += 1);
    // Five standard deviations of a quarter of 8,000.
    assert!((1_806..=2_194).contains(&counts[0]) && counts[2] == 0, "{counts:?}");
}

#[test]
fn placeholders_of_a_statement_are_parameters_and_other_protocols_take_text_as_it_is() {
    let text = r#"
        [target]
        url = "nats://h"
        [arrival]
        kind = "constant"
        rate = 1
        [generate.w]
        kind = "choice"
        values = ["d'or"]
        [request]
        path = "/of.{w}"
        body = "select * from t where a = {w} and b = 'x' and c = {w.value}"
    "#;
    let scenario = Scenario::parse(text, "t", &[]).expect("reads");
    let sql = mix_of(&scenario, Encoding::Sql).expect("prepares").next(&mut stream(1, &[]));
    assert_eq!(sql.statement(), b"select * from t where a = $1 and b = 'x' and c = $2");
    assert_eq!(sql.body(), b"\0\x02\0\0\0\x04d'or\0\0\0\x04d'or");
    let plain = mix_of(&scenario, Encoding::Plain).expect("prepares").next(&mut stream(1, &[]));
    assert_eq!((plain.path(), plain.method(), plain.statement()), ("/base/of.d'or", &b"GET"[..], &b""[..]));
    assert_eq!(plain.body(), b"select * from t where a = d'or and b = 'x' and c = d'or");
    let quoted = Scenario::parse(&text.replace("= {w} and", "= '{w}' and"), "t", &[]).expect("reads");
    let error = mix_of(&quoted, Encoding::Sql).expect_err("refused");
    assert!(error.contains("within quotes"), "{error}");
}

#[test]
fn requests_are_rendered_with_values_encoded_in_heads_and_plain_in_bodies() {
    let text = r#"
        [target]
        url = "http://h:1"
        headers = { Accept = "a/b", X-Who = "of {w}" }
        [arrival]
        kind = "constant"
        rate = 1
        [generate.w]
        kind = "choice"
        values = ["a b&c"]
        [request]
        method = "POST"
        path = "/x?q={w}"
        body = '{"q":"{w.value}","o":{}}'
    "#;
    let scenario = Scenario::parse(text, "t", &[]).expect("reads");
    let mut mix = mix_of(&scenario, Encoding::Http).expect("prepares");
    let question = mix.next(&mut stream(1, &[]));
    let sent = String::from_utf8(question.bytes.to_vec()).expect("text");
    let body = r#"{"q":"a b&c","o":{}}"#;
    assert_eq!(
        sent,
        format!(
            "POST /base/x?q=a%20b%26c HTTP/1.1\r\nhost: h:1\r\nAccept: a/b\r\nX-Who: of a%20b%26c\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
    );
    assert_eq!(question.path(), "/base/x?q=a%20b%26c");
    assert_eq!(&sent[question.body_at..], body);
    let unknown = text.replace("{w}", "{v}");
    let scenario = Scenario::parse(&unknown, "t", &[]).expect("reads");
    let error = mix_of(&scenario, Encoding::Http).expect_err("refused");
    assert!(error.contains("[generate.v]"), "{error}");
}

proptest! {
    #[test]
    fn a_point_lies_in_its_box_even_across_the_antimeridian(w in -180.0..180.0_f64, e in -180.0..180.0_f64, s in -90.0..0.0_f64, n in 0.0..90.0_f64, seed: u64) {
        let (lon, lat) = geo::point_in([w, s, e, n], &mut stream(seed, &[]));
        prop_assert!(s <= lat && lat <= n);
        let inside = if w <= e { w <= lon && lon <= e } else { (w..=180.0).contains(&lon) || (-180.0..=e).contains(&lon) };
        prop_assert!(inside);
    }

    #[test]
    fn the_same_seed_gives_the_same_draws(seed: u64) {
        let mut a = source("kind = \"event\"\nbox = [0.0, 0.0, 1.0, 1.0]\nstart = \"2020-01-01T00:00:00Z\"\nend = \"2021-01-01T00:00:00Z\"");
        let mut b = a.clone();
        prop_assert_eq!(draws(&mut a, 5, seed), draws(&mut b, 5, seed));
    }
}
