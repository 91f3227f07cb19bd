//! Files named by a scenario: relative to the scenario's folder, whatever folder the lab was started in.

use super::{Arrival, Generator, Scenario};
use std::path::{Path, PathBuf};

/// Makes a relative path absolute, from `folder`. An unknown folder (the current one was deleted) leaves the path
/// unchanged; reading it reports the error.
pub(crate) fn anchored(folder: &Path, file: &mut PathBuf) {
    if let Ok(path) = std::path::absolute(folder.join(&*file)) {
        *file = path;
    }
}

impl Scenario {
    /// Makes relative paths absolute, from `folder`, so that the resolved form can be run again from anywhere.
    pub(super) fn files_beside(&mut self, folder: &Path) {
        let beside = |file: &mut PathBuf| anchored(folder, file);
        self.target.iter_mut().filter_map(|target| target.ca.as_mut()).for_each(beside);
        for generator in self.generate.values_mut() {
            if let Generator::Populated { file, .. } | Generator::Polygons { file, .. } = generator {
                beside(file);
            }
        }
        for population in &mut self.population {
            if let Arrival::Replay { file, .. } = &mut population.arrival {
                beside(file);
            }
        }
        let checks = self.request.iter_mut().map(|request| &mut request.check);
        checks.flat_map(|check| [&mut check.truth, &mut check.digests, &mut check.points]).flatten().for_each(beside);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_finds_its_files_from_anywhere_and_so_does_its_resolved_form() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("load.toml");
        let text = "[target]\nurl = \"https://127.0.0.1:1\"\nca = \"own.pem\"\n[arrival]\nkind = \"replay\"\nfile = \"logs/access.log\"\n\
                    [generate.country]\nkind = \"polygons\"\nfile = \"/data/countries.json\"\n";
        std::fs::write(&path, text).unwrap();
        let loaded = Scenario::load(&path, &[]).unwrap();
        let shown = loaded.to_toml().unwrap();
        assert!(shown.contains(&format!("{}/logs/access.log", dir.path().display())), "{shown}");
        assert!(shown.contains(&format!("ca = \"{}/own.pem\"", dir.path().display())), "{shown}");
        assert!(shown.contains("\"/data/countries.json\""), "{shown}");
        let elsewhere = tempfile::tempdir().unwrap();
        std::fs::write(elsewhere.path().join("again.toml"), &shown).unwrap();
        let again = Scenario::load(&elsewhere.path().join("again.toml"), &[]).unwrap();
        assert_eq!((again.population, again.target), (loaded.population, loaded.target));
    }
}
