//! Warns where the pages that are embedded are older than their sources. `make build` builds both.

#![allow(clippy::disallowed_methods, reason = "a build script has no seams")]

use std::path::Path;
use std::time::SystemTime;
use std::{env, fs, io};

const SOURCES: &str = "../../web/src";
const BUILT: &str = "../../web/dist/map.html";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Others read the pages when they are asked for, or have none.
    let embeds = env::var_os("CARGO_FEATURE_MAP").is_some() && env::var("PROFILE").is_ok_and(|name| name == "release");
    if !embeds {
        return;
    }
    println!("cargo::rerun-if-changed={SOURCES}\ncargo::rerun-if-changed={BUILT}");
    let built = fs::metadata(BUILT).and_then(|built| built.modified());
    match (built, newest(Path::new(SOURCES))) {
        (Err(_), _) => println!("cargo::warning=the map and the search page are not built: `make web` builds them"),
        (Ok(built), Ok(source)) if source > built => {
            println!("cargo::warning=the map and the search page are older than web/src: `make web` builds them anew");
        }
        _ => {}
    }
}

/// When the newest file of a folder was changed.
fn newest(folder: &Path) -> io::Result<SystemTime> {
    let mut newest = SystemTime::UNIX_EPOCH;
    for entry in fs::read_dir(folder)? {
        let (path, data) = entry.and_then(|entry| Ok((entry.path(), entry.metadata()?)))?;
        newest = newest.max(if data.is_dir() { self::newest(&path)? } else { data.modified()? });
    }
    Ok(newest)
}
