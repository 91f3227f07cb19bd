//! Files named by a scenario: relative to the scenario's folder, whatever folder the lab was started in.

use super::{Arrival, Generator, Request, Scenario};
use std::io;
use std::path::{Path, PathBuf};

/// Makes a relative path absolute, from `folder`. An unknown folder (the current one was deleted) leaves the path
/// unchanged; reading it reports the error.
pub(crate) fn anchored(folder: &Path, file: &mut PathBuf) {
    if let Ok(path) = std::path::absolute(folder.join(&*file)) {
        *file = path;
    }
}

impl Scenario {
    /// Makes relative paths absolute, from `folder`, so that the resolved form can be run again from anywhere. `expect`
    /// refuses what is no file, before anything waits for it.
    pub(super) fn files_beside(
        &mut self,
        folder: &Path,
        expect: impl Fn(&Path) -> io::Result<()>,
    ) -> Result<(), String> {
        self.files().into_iter().try_for_each(|(key, file)| {
            anchored(folder, file);
            expect(file).map_err(|e| format!("{key} {}: {e}", file.display()))
        })
    }

    /// Returns the files that it names, each with its key.
    fn files(&mut self) -> Vec<(String, &mut PathBuf)> {
        let mut files = Vec::new();
        files.extend(self.target.iter_mut().filter_map(|target| Some(("target.ca".to_owned(), target.ca.as_mut()?))));
        for (name, generator) in &mut self.generate {
            if let Generator::Populated { file, .. } | Generator::Polygons { file, .. } = generator {
                files.push((format!("generate.{name}.file"), file));
            }
        }
        for population in &mut self.population {
            if let Arrival::Replay { file, .. } = &mut population.arrival {
                files.push(("arrival.file".to_owned(), file));
            }
        }
        for Request { name, check, .. } in &mut self.request {
            let named = [("truth", &mut check.truth), ("digests", &mut check.digests), ("points", &mut check.points)];
            files.extend(
                named
                    .into_iter()
                    .filter_map(|(key, file)| Some((format!("request {name}: check.{key}"), file.as_mut()?))),
            );
        }
        files
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &Path) -> io::Result<String> {
        std::fs::read_to_string(path)
    }

    #[test]
    fn a_scenario_finds_its_files_from_anywhere_and_so_does_its_resolved_form() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("load.toml");
        let text = "[target]\nurl = \"https://127.0.0.1:1\"\nca = \"own.pem\"\n[arrival]\nkind = \"replay\"\nfile = \"logs/access.log\"\n\
                    [generate.country]\nkind = \"polygons\"\nfile = \"/data/countries.json\"\n";
        std::fs::write(&path, text).unwrap();
        let load = |path: &Path| Scenario::load(path, &[], read, |_| Ok(()));
        let loaded = load(&path).unwrap();
        let shown = loaded.to_toml().unwrap();
        assert!(shown.contains(&format!("{}/logs/access.log", dir.path().display())), "{shown}");
        assert!(shown.contains(&format!("ca = \"{}/own.pem\"", dir.path().display())), "{shown}");
        assert!(shown.contains("\"/data/countries.json\""), "{shown}");
        let elsewhere = tempfile::tempdir().unwrap();
        std::fs::write(elsewhere.path().join("again.toml"), &shown).unwrap();
        let again = load(&elsewhere.path().join("again.toml")).unwrap();
        assert_eq!((again.population, again.target), (loaded.population, loaded.target));

        // Each of its files is checked before the scenario is run.
        for (file, key) in
            [("own.pem", "target.ca"), ("countries.json", "generate.country.file"), ("access.log", "arrival.file")]
        {
            let expect = |path: &Path| match path.ends_with(file) {
                true => Err(io::Error::other("it is a pipe")),
                false => Ok(()),
            };
            let refused = Scenario::load(&path, &[], read, expect).unwrap_err().to_string();
            assert!(refused.contains(&format!("load.toml: {key} ")) && refused.ends_with("it is a pipe"), "{refused}");
        }
    }
}
