//! GDAL's own client of OGC API – Features copies a collection, page by page, and ogr2ogr converts files to load.

use crate::common::{Server, meridian, meridian_with_input, need};
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

    // With a filter that the client passes to the server.
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

/// Returns the number of requests for events that the server has answered.
fn pages(server: &Server) -> u64 {
    let (_, text) = server.get("/metrics");
    let count = |line: &str| {
        let rest = line.strip_prefix("http_server_request_duration_seconds_count")?;
        rest.contains("http_route=\"/collections/{c}/items\"").then(|| rest.rsplit(' ').next()?.parse::<u64>().ok())?
    };
    text.lines().filter_map(count).sum()
}

#[test]
fn ogr2ogr_hands_its_filters_to_the_server() {
    need("ogr2ogr", "gdal-bin");
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("data"));
    let mut csv = "id,lon,lat,time,name,size,loud\n".to_owned();
    for n in 0..EVENTS {
        let (day, hour) = (n % 28 + 1, n % 24);
        writeln!(
            csv,
            "e{n},{},{},2026-01-{day:02}T{hour:02}:00:00Z,name {n},{}.5,{}",
            n % 90,
            n % 45,
            n % 100,
            n % 2 == 0
        )
        .unwrap();
    }
    meridian_with_input(&["load", "spots", "-", "--format", "csv", "--url", &server.url], csv.as_bytes()).ended(0);
    let ask = |filter: &str| {
        let out = folder.path().join("asked.csv");
        let _ = std::fs::remove_file(&out);
        let before = pages(&server);
        let run = Command::new("ogr2ogr")
            .args(["-f", "CSV", out.to_str().unwrap(), &format!("OAPIF:{}", server.url), "spots"])
            .args(["-where", filter, "-oo", "PAGE_SIZE=100"])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&run.stderr).into_owned();
        let rows = csv::Reader::from_path(&out).map_or(0, |mut r| r.records().count());
        (rows, pages(&server) - before, said)
    };
    let count = |keep: &dyn Fn(usize) -> bool| (0..EVENTS).filter(|n| keep(*n)).count();
    // The whole collection has 124 pages.
    for (filter, expected) in [
        ("size > 98 AND name ILIKE 'NAME%7'", count(&|n| n % 100 >= 98 && n % 10 == 7)),
        ("size > 98 AND name ILIKE 'NAME%9'", count(&|n| n % 100 >= 98 && n % 10 == 9)),
        ("size = 3.5 AND loud = 0", count(&|n| n % 100 == 3)),
        ("name = 'name 77' OR name = 'name 12345'", 1),
        ("time >= '2026/01/28 23:00:00'", count(&|n| n % 28 == 27 && n % 24 == 23)),
        ("NOT (time < '2026-01-28T23:00:00Z')", count(&|n| n % 28 == 27 && n % 24 == 23)),
        ("size BETWEEN 10 AND 11", count(&|n| n % 100 == 10)),
        ("id = 'e77'", 1),
    ] {
        let (rows, asked, said) = ask(filter);
        assert_eq!(rows, expected, "{filter}: {said}");
        // One page to learn the properties, those of the result, and one more if the last is full.
        let most = 3 + expected as u64 / 100;
        assert!(asked <= most, "{filter}: {asked} requests for {rows} rows, expected {most}");
    }
    // The client sends the same for an hour as for a day. It is refused, and the user learns what to write.
    let (rows, _, said) = ask("time >= '2026-01-28 23:00:00'");
    assert_eq!(rows, 0, "{said}");
    assert!(said.contains("2026/01/28 00:00:00"), "{said}");
}

#[test]
fn the_command_of_a_refusal_makes_a_file_that_is_loaded_with_its_places() {
    need("ogr2ogr", "gdal-bin");
    let folder = tempfile::tempdir().unwrap();
    let here = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let table = here("spots.csv");
    std::fs::write(&table, "name,lon,lat\na,13.4,52.5\nb,2.35,48.8\n").unwrap();
    let points = ["-oo", "X_POSSIBLE_NAMES=lon", "-oo", "Y_POSSIBLE_NAMES=lat", "-a_srs", "EPSG:4326"];
    let numbers = ["-oo", "AUTODETECT_TYPE=YES"];
    let files = [
        ("MapInfo File", "tab.tab", &points[..]),
        ("MapInfo File", "mif.mif", &points[..]),
        ("GML", "gml.gml", &points[..]),
        ("SQLite", "places.sqlite", &points[..]),
        ("SQLite", "rows.sqlite", &numbers[..]),
        ("XLSX", "xlsx.xlsx", &numbers[..]),
        ("ODS", "ods.ods", &numbers[..]),
        ("ESRI Shapefile", "dbf.dbf", &numbers[..]),
    ];
    for (driver, file, options) in files {
        let made = Command::new("ogr2ogr").args(["-f", driver, &here(file), &table]).args(options).output().unwrap();
        assert!(made.status.success(), "{file}: {}", String::from_utf8_lossy(&made.stderr));
    }
    let point = r#"{"type":"Point","coordinates":[13,52]}"#;
    let topology = format!(
        r#"{{"type":"Topology","objects":{{"spots":{{"type":"GeometryCollection","geometries":[{point},{point}]}}}},"arcs":[]}}"#
    );
    std::fs::write(here("topo.json"), topology).unwrap();
    for file in files.map(|(_, file, _)| file).into_iter().chain(["topo.json"]) {
        let refusal = meridian(&["load", "spots", &here(file), "--data", &here("kept")]).ended(2);
        let command = &refusal.err[refusal.err.find("ogr2ogr").unwrap()..];
        // The user names the table.
        let command = command.trim_end().replace("TABLE", "spots");
        let out = tempfile::tempdir().unwrap();
        let run = Command::new("sh").args(["-c", &command]).current_dir(out.path()).output().unwrap();
        assert!(run.status.success(), "{command}: {}", String::from_utf8_lossy(&run.stderr));
        let made = std::fs::read_dir(out.path()).unwrap().map(|entry| entry.unwrap().path()).next();
        let made = made.unwrap_or_else(|| panic!("{command}: no file"));
        let data = out.path().join("data");
        let loaded = meridian(&["load", "spots", made.to_str().unwrap(), "--data", data.to_str().unwrap()]).ended(0);
        assert!(loaded.out.contains("Point") && loaded.out.contains("spots: 2 events in"), "{command}: {}", loaded.out);
    }
}

/// Returns the line in what a load said, from the command that decompresses its input, if there is one.
fn line_of(said: &str) -> String {
    let line = said.lines().find(|line| line.contains("ogr2ogr ")).unwrap_or_else(|| panic!("no command: {said}"));
    let start = ["gunzip ", "tr ", "ogr2ogr "].iter().filter_map(|program| line.find(program)).min();
    line[start.unwrap()..].replace("EPSG:CODE", "EPSG:25832")
}

/// A file to load or `-`, the file on standard input, the options, and words of the line that is printed.
type Case<'a> = (&'a str, Option<&'a str>, &'a [&'a str], &'a [&'a str]);

#[test]
fn the_command_names_the_layer_the_archive_and_the_decompressed_file() {
    need("ogr2ogr", "gdal-bin");
    let folder = tempfile::tempdir().unwrap();
    let here = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let ogr = |args: &[&str]| {
        let made = Command::new("ogr2ogr").args(args).output().unwrap();
        assert!(made.status.success(), "{args:?}: {}", String::from_utf8_lossy(&made.stderr));
    };
    let (one, two) = (here("one.csv"), here("two.csv"));
    std::fs::write(&one, "name,easting,northing\na,500000,5500000\n").unwrap();
    std::fs::write(&two, "name,easting,northing\na,500000,5500000\nb,500001,5500001\n").unwrap();
    let points = "-oo X_POSSIBLE_NAMES=easting -oo Y_POSSIBLE_NAMES=northing -a_srs EPSG:25832";
    let points: Vec<&str> = points.split(' ').collect();
    let make = |args: &[&str]| ogr(&[args, &points].concat());
    let layers = here("my layers.gpkg");
    for (file, name) in [(&layers, "it's rivers"), (&here("plain.gpkg"), "rivers")] {
        make(&[file, &one, "-nln", "roads"]);
        make(&["-update", file, &two, "-nln", name]);
    }
    ogr(&["-f", "GML", &here("layers.gml"), &here("plain.gpkg")]);
    make(&["-f", "ESRI Shapefile", &here("spots.shp.zip"), &two, "-nln", "spots"]);
    make(&["-f", "ESRI Shapefile", &here("spots.shz"), &two, "-nln", "spots"]);
    make(&["-f", "FlatGeobuf", &here("converted.fgb"), &two]);
    make(&["-f", "GeoJSON", &here("utm.geojson"), &two]);
    make(&["-f", "MapInfo File", &here("table.tab"), &two]);
    for packed in ["my layers.gpkg", "two.csv", "converted.fgb"] {
        assert!(Command::new("gzip").args(["-k", &here(packed)]).status().unwrap().success());
    }
    std::fs::copy(here("two.csv.gz"), here("packed.csv")).unwrap();
    for name in ["points.txt", "POINTS"] {
        std::fs::copy(&two, here(name)).unwrap();
    }
    std::fs::copy(here("two.csv.gz"), here("P2.CSV.GZ")).unwrap();
    std::fs::copy(here("two.csv.gz"), here("points.gz")).unwrap();
    let pipes = std::fs::read_to_string(&two).unwrap().replace(',', "|");
    std::fs::write(here("pipes.csv"), &pipes).unwrap();
    std::fs::write(here("colons.txt"), pipes.replace('|', ":")).unwrap();
    let rivers = ["--layer", "it's rivers"];
    let cases: &[Case<'_>] = &[
        ("my layers.gpkg", None, &rivers, &["converted.fgb '", "my layers.gpkg' 'it'\\''s rivers'"]),
        ("my layers.gpkg.gz", None, &rivers, &["gunzip -k '", "my layers.gpkg' 'it"]),
        ("layers.gml", None, &[], &["converted.gpkg "]),
        ("spots.shp.zip", None, &[], &["/vsizip/", "spots.shp.zip/spots.shp"]),
        ("spots.shz", None, &[], &["/vsizip/{", "spots.shz}/spots.shp"]),
        ("converted.fgb", None, &[], &[" converted-2.fgb "]),
        ("converted.fgb.gz", None, &[], &["gunzip -k ", " converted-2.fgb "]),
        ("utm.geojson", None, &[], &["crs: the reference system EPSG:25832 is not"]),
        ("table.dat", None, &[], &["a part of ", "table.tab: MapInfo is not read"]),
        ("two.csv.gz", None, &[], &["gunzip -k "]),
        ("packed.csv", None, &[], &["gunzip -c < ", " > unpacked-packed.csv && ", "converted.fgb unpacked-packed.csv"]),
        ("points.txt", None, &[], &["converted.fgb CSV:/"]),
        ("POINTS", None, &[], &["converted.fgb CSV:/"]),
        ("P2.CSV.GZ", None, &[], &["gunzip -c < ", " > unpacked-P2.CSV && ", "converted.fgb unpacked-P2.CSV"]),
        ("points.gz", None, &[], &["gunzip -c < ", " > unpacked-points.csv && "]),
        ("pipes.csv", None, &[], &["tr '|' '\\t' < ", " | ogr2ogr ", "CSV:/vsistdin/"]),
        ("colons.txt", None, &["--delimiter", ":", "--format", "csv"], &["tr : '\\t' < "]),
        ("-", Some("pipes.csv"), &[], &["tr '|' '\\t' | ogr2ogr "]),
        ("-", Some("two.csv"), &[], &["CSV:/vsistdin/"]),
        ("-", Some("two.csv.gz"), &[], &["gunzip -c | ogr2ogr ", "CSV:/vsistdin/"]),
        ("-", Some("utm.geojson"), &[], &[" /vsistdin/"]),
    ];
    for &(file, input, options, words) in cases {
        let (out, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = if file == "-" { file.to_owned() } else { here(file) };
        let bytes = input.map(|input| std::fs::read(here(input)).unwrap()).unwrap_or_default();
        let load = [&["load", "spots", path.as_str(), "--data", data.path().to_str().unwrap()][..], options].concat();
        let said = meridian_with_input(&load, &bytes).says(words).err;
        let command = line_of(&said);
        if command.starts_with("gunzip -k") {
            std::fs::remove_file(path.strip_suffix(".gz").unwrap()).unwrap();
        }
        let mut run = Command::new("sh");
        run.args(["-c", &command]).current_dir(out.path());
        if let Some(input) = input {
            run.stdin(std::fs::File::open(here(input)).unwrap());
        }
        let run = run.output().unwrap();
        assert!(run.status.success(), "{command}: {}", String::from_utf8_lossy(&run.stderr));
        let mut made = std::fs::read_dir(out.path()).unwrap().map(|entry| entry.unwrap().path());
        let made = made.find(|path| path.file_name().unwrap().to_str().unwrap().starts_with("converted"));
        let made = made.unwrap_or_else(|| panic!("{command}: no file"));
        let mut load = vec!["load", "made", made.to_str().unwrap(), "--data", data.path().to_str().unwrap()];
        // All layers are in the new file.
        if file == "layers.gml" {
            meridian(&load).ended(1).says(&["the file has 2 layers: rivers, roads"]);
            load.extend(["--layer", "rivers"]);
        }
        let loaded = meridian(&load).ended(0);
        assert!(loaded.out.contains("Point") && loaded.out.contains("made: 2 events in"), "{command}: {}", loaded.out);
    }
    // GDAL knows some formats by the extension alone.
    ogr(&["-f", "ODS", &here("rows.ods"), &two]);
    assert!(Command::new("gzip").args(["-k", &here("rows.ods")]).status().unwrap().success());
    std::fs::rename(here("rows.ods.gz"), here("odd")).unwrap();
    let words = [" > unpacked-odd.ods && ogr2ogr ", " unpacked-odd.ods\n"];
    meridian(&["load", "spots", &here("odd"), "--data", &here("none")]).ended(2).says(&words);
    // What no program reads from standard input is saved first, and what holds no layer asks for none.
    let bytes = std::fs::read(&layers).unwrap();
    let load = ["load", "spots", "-", "--data", &here("none"), "--layer", "roads"];
    meridian_with_input(&load, &bytes).ended(1).says(&["converted.fgb FILE roads"]);
    let load = ["load", "spots", &here("utm.geojson"), "--data", &here("none"), "--layer", "roads"];
    meridian(&load).ended(1).says(&["utm.geojson\n"]);
}
