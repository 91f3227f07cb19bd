//! Damage: flipped bits and missing files, what a run demands while there is some, and how it is undone.

use super::run::{Run, Verdict, demand};
use meridian_store::Problem;
use meridian_store::seams::CrashStyle;
use std::path::{Path, PathBuf};

/// A file that does not hold what was written to it.
#[derive(Debug)]
pub struct Damage {
    path: PathBuf,
    /// What a missing file held; `None`: a bit of it was flipped.
    vanished: Option<Vec<u8>>,
    /// The store was started since.
    seen: bool,
}

impl Damage {
    fn in_log(&self) -> bool {
        self.path.parent().is_some_and(|dir| dir.ends_with("log"))
    }

    fn is_log(&self) -> bool {
        self.path.extension().is_some_and(|e| e == "log")
    }
}

impl Run {
    /// A file whose content means something.
    fn some_file(&self) -> Option<(PathBuf, u64)> {
        let mut files = self.world.disk.files();
        let counts = |path: &Path| {
            let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("");
            !(name == "LOCK" || name.ends_with(".spare") || name.ends_with(".new"))
        };
        files.retain(|(path, len)| *len > 0 && counts(path));
        // Each kind as often as any other, however many there are of it.
        let kind = |path: &Path| path.extension().unwrap_or(path.as_os_str()).to_owned();
        let mut kinds: Vec<_> = files.iter().map(|(path, _)| kind(path)).collect();
        kinds.sort();
        kinds.dedup();
        let chosen = kinds.get(self.below(kinds.len() as u64) as usize)?;
        files.retain(|(path, _)| kind(path) == *chosen);
        files.get(self.below(files.len() as u64) as usize).cloned()
    }

    /// Damage comes alone: not while the disk fails, nor on top of other damage.
    fn can_be_damaged(&self) -> bool {
        self.damage.is_none() && self.unknown.is_none() && !self.faulty && !self.hurt && self.model.position > 0
    }

    /// Files that are read at a start only are damaged while the store is down.
    fn stop_for(&mut self, path: &Path) -> bool {
        let live =
            matches!(path.extension().and_then(|e| e.to_str()), Some("segment" | "rows" | "parquet" | "dead" | "keys"));
        let stop = !live || self.below(2) == 0;
        if stop {
            self.world.disk.crash(CrashStyle::Lose);
            self.store = None;
        }
        // A crash may have taken it.
        stop
    }

    pub(super) fn flip(&mut self) -> Verdict {
        let Some((path, len)) = self.some_file().filter(|_| self.can_be_damaged()) else { return Ok(()) };
        let stopped = self.stop_for(&path);
        let bit = self.below(len * 8);
        if self.world.disk.flip_bit(&path, bit).is_ok() {
            self.say(format!("bit {bit} of {} flips (stopped: {stopped})", path.display()));
            self.damage = Some(Damage { path, vanished: None, seen: false });
        }
        if stopped { self.open() } else { Ok(()) }
    }

    pub(super) fn vanish(&mut self) -> Verdict {
        let Some((path, _)) = self.some_file().filter(|_| self.can_be_damaged()) else { return Ok(()) };
        let stopped = self.stop_for(&path);
        if let Ok(bytes) = self.world.disk.vanish(&path) {
            self.say(format!("{} vanishes (stopped: {stopped})", path.display()));
            self.damage = Some(Damage { path, vanished: Some(bytes), seen: false });
        }
        if stopped { self.open() } else { Ok(()) }
    }

    /// The store was opened over damage: is it named, as far as it matters?
    pub(super) fn damaged(&mut self, problems: &[Problem]) -> Verdict {
        let Some(damage) = &mut self.damage else { return Ok(()) };
        damage.seen = true;
        if problems.iter().any(|p| p.path == damage.path) {
            return Ok(());
        }
        // A gap in the log is blamed on the file before it as well as on one that is missing.
        let path = damage.path.display().to_string();
        let named = problems.iter().any(|p| p.detail.contains(&path));
        demand!(problems.is_empty() || named || damage.in_log(), "{problems:?} do not name {path}");
        if damage.is_log() && problems.is_empty() && self.collection.position() + 1 == self.model.position {
            // The very last record of the log: nothing tells it from one that was torn.
            demand!(damage.vanished.is_none(), "a file of the log is missing, and nobody says so");
            self.model.undo();
            self.world.disk.keep_flipped();
            self.damage = None;
            self.say("the last record is forgotten".to_owned());
        }
        Ok(())
    }

    /// The store, or the collection, did not open.
    pub(super) fn closed(&mut self, error: &str) -> Verdict {
        let Some(damage) = &self.damage else { return Err(format!("it does not open: {error}")) };
        let path = damage.path.display().to_string();
        // A marker that is gone cannot be told by its name only: the folder is.
        let named = error.contains(&path) || (path.ends_with("meridian.json") && error.contains("meridian.json"));
        demand!(named, "{error:?} does not name {path}");
        self.say(format!("it does not open: {error}"));
        self.mend()
    }

    /// Undoes the damage and starts anew: everything is there again.
    pub(super) fn mend(&mut self) -> Verdict {
        let Some(damage) = self.damage.take() else { return Ok(()) };
        self.world.disk.crash(CrashStyle::Lose);
        self.store = None;
        self.world.disk.unflip();
        let there = self.world.disk.files().iter().any(|(path, _)| *path == damage.path);
        if let Some(bytes) = damage.vanished
            && !there
        {
            self.world.disk.put(&damage.path, bytes);
        }
        self.say(format!("{} is mended", damage.path.display()));
        self.heal();
        self.open()
    }

    pub(super) fn check(&mut self) -> Verdict {
        let Some(store) = &self.store else { return Ok(()) };
        let problems = store.check();
        let well = !self.faulty && !self.hurt && self.damage.is_none();
        demand!(!well || problems.is_empty(), "check finds {problems:?}, and nothing is wrong");
        self.say(format!("check: {problems:?}"));
        Ok(())
    }
}
