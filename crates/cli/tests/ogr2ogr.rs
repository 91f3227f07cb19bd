//! GDAL's own client of OGC API – Features copies a collection, page by page.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

mod common;

use common::{Server, meridian_with_input, need};
use std::collections::HashSet;
use std::fmt::Write as _;
use std::process::Command;

const EVENTS: usize = 12_345;

#[test]
fn ogr2ogr_finds_every_feature_once() {
    need("ogr2ogr", "gdal-bin");
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("data"));
    let mut csv = "id,lon,lat,time,name,size\n".to_owned();
    for n in 0..EVENTS {
        let (lon, lat) = ((n * 7919 % 360_000) as f64 / 1000.0 - 180.0, (n * 104_729 % 180_000) as f64 / 1000.0 - 90.0);
        writeln!(csv, "e{n},{lon},{lat},2026-01-{:02}T{:02}:00:00Z,\"name, {n}\",{}.5", n % 28 + 1, n % 24, n % 100)
            .unwrap();
    }
    meridian_with_input(&["load", "spots", "-", "--format", "csv", "--url", &server.url], csv.as_bytes()).ended(0);

    let out = folder.path().join("copy.csv");
    let run = Command::new("ogr2ogr")
        .args(["-f", "CSV", out.to_str().unwrap(), &format!("OAPIF:{}", server.url), "spots"])
        .args(["-oo", "PAGE_SIZE=1000", "-lco", "GEOMETRY=AS_XY"])
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));

    let mut reader = csv::Reader::from_path(&out).unwrap();
    let head = reader.headers().unwrap().clone();
    let column = |name: &str| head.iter().position(|h| h == name).unwrap_or_else(|| panic!("no {name} in {head:?}"));
    let (id, x, name) = (column("id"), column("X"), column("name"));
    let mut seen = HashSet::new();
    for record in reader.records() {
        let record = record.unwrap();
        let n: usize = record[id].strip_prefix('e').unwrap().parse().unwrap();
        assert!(seen.insert(n), "e{n} came twice");
        assert_eq!(&record[name], format!("name, {n}"));
        let lon = (n * 7919 % 360_000) as f64 / 1000.0 - 180.0;
        assert!((record[x].parse::<f64>().unwrap() - lon).abs() < 1e-9, "e{n}: {} is not {lon}", &record[x]);
    }
    assert_eq!(seen.len(), EVENTS);

    // With a filter that the client hands to the server.
    let out = folder.path().join("few.csv");
    let run = Command::new("ogr2ogr")
        .args(["-f", "CSV", out.to_str().unwrap(), &format!("OAPIF:{}", server.url), "spots"])
        .args(["-spat", "0", "0", "10", "10", "-oo", "PAGE_SIZE=50"])
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let expected = (0..EVENTS)
        .filter(|n| {
            let (lon, lat) =
                ((n * 7919 % 360_000) as f64 / 1000.0 - 180.0, (n * 104_729 % 180_000) as f64 / 1000.0 - 90.0);
            (0.0..=10.0).contains(&lon) && (0.0..=10.0).contains(&lat)
        })
        .count();
    assert!(expected > 0);
    assert_eq!(csv::Reader::from_path(&out).unwrap().records().count(), expected);
}
