//! The declarations shipped with Meridian, and the loading of the operator's own.
#![allow(clippy::disallowed_methods, reason = "the operator's declarations are read once, at the start")]

use super::LocalProvider;
use crate::declaration::SourceDeclaration;
use meridian_backend::read_named_text;
use std::path::Path;
use std::sync::Arc;

/// Name and text of each.
const FILES: &[(&str, &str)] = &[
    ("4chan", include_str!("../../providers/4chan.toml")),
    ("bing-news", include_str!("../../providers/bing-news.toml")),
    ("bluesky", include_str!("../../providers/bluesky.toml")),
    ("flickr", include_str!("../../providers/flickr.toml")),
    ("foursquare", include_str!("../../providers/foursquare.toml")),
    ("gbif", include_str!("../../providers/gbif.toml")),
    ("gdelt-doc", include_str!("../../providers/gdelt-doc.toml")),
    ("hacker-news", include_str!("../../providers/hacker-news.toml")),
    ("inaturalist", include_str!("../../providers/inaturalist.toml")),
    ("lemmy", include_str!("../../providers/lemmy.toml")),
    ("mastodon", include_str!("../../providers/mastodon.toml")),
    ("medium", include_str!("../../providers/medium.toml")),
    ("ogc-features", include_str!("../../providers/ogc-features.toml")),
    ("ok", include_str!("../../providers/ok.toml")),
    ("openalex", include_str!("../../providers/openalex.toml")),
    ("overpass", include_str!("../../providers/overpass.toml")),
    ("peertube", include_str!("../../providers/peertube.toml")),
    ("pinterest", include_str!("../../providers/pinterest.toml")),
    ("reddit", include_str!("../../providers/reddit.toml")),
    ("rss", include_str!("../../providers/rss.toml")),
    ("stac", include_str!("../../providers/stac.toml")),
    ("tumblr", include_str!("../../providers/tumblr.toml")),
    ("usgs-earthquakes", include_str!("../../providers/usgs-earthquakes.toml")),
    ("vimeo", include_str!("../../providers/vimeo.toml")),
    ("vk", include_str!("../../providers/vk.toml")),
    ("wikipedia", include_str!("../../providers/wikipedia.toml")),
    ("wikipedia-near", include_str!("../../providers/wikipedia-near.toml")),
    ("x", include_str!("../../providers/x.toml")),
    ("youtube", include_str!("../../providers/youtube.toml")),
];

/// Declarations that need values from the operator, such as the URL of a feed or server.
const PATTERNS: [&str; 4] = ["bing-news", "ogc-features", "rss", "stac"];

/// Returns the text of a shipped declaration.
pub fn text(name: &str) -> Option<String> {
    FILES.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned())
}

/// Returns the names of declarations that need no values.
pub fn names() -> impl Iterator<Item = &'static str> {
    all().filter(|name| !PATTERNS.contains(name))
}

/// Returns the names of all declarations, including those with required values.
pub fn all() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, _)| *name)
}

/// Loads the shipped declarations that `on` names (comma-separated; `all`; empty for none), and every `*.toml` of a
/// folder. The error names the file and the key.
pub fn load(on: &str, folder: Option<&Path>) -> Result<Vec<Arc<SourceDeclaration>>, String> {
    let mut providers: Vec<Arc<SourceDeclaration>> = Vec::new();
    let named: Vec<&str> = match on.trim() {
        "all" => names().collect(),
        list => list.split(',').map(str::trim).filter(|name| !name.is_empty()).collect(),
    };
    let mut add = |shown: &str, text: &str| -> Result<(), String> {
        let declared = SourceDeclaration::parse(text, &self::text).map_err(|e| format!("{shown}: {e}"))?;
        if declared.name == LocalProvider::NAME || providers.iter().any(|other| other.name == declared.name) {
            return Err(format!("{shown}: another provider has the name {:?}", declared.name));
        }
        providers.push(Arc::new(declared));
        Ok(())
    };
    for name in named {
        let known: Vec<&str> = names().collect();
        let text = text(name)
            .ok_or_else(|| format!("no provider {name:?} is shipped: expected some of {}", known.join(", ")))?;
        add(name, &text)?;
    }
    if let Some(folder) = folder {
        let wrong = |e: std::io::Error| format!("{}: {e}", folder.display());
        let entries = std::fs::read_dir(folder).map_err(wrong)?.collect::<Result<Vec<_>, _>>().map_err(wrong)?;
        let mut files: Vec<_> = entries
            .into_iter()
            .map(|entry| entry.path())
            .filter(|p| p.extension().is_some_and(|e| e == "toml"))
            .collect();
        files.sort();
        for file in files {
            let shown = file.display().to_string();
            add(&shown, &read_named_text(&file).map_err(|e| format!("{shown}: {e}"))?)?;
        }
    }
    Ok(providers)
}
