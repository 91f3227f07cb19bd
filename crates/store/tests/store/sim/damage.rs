//! Damage: flipped bits, missing files, and files that are cut or overwritten; the requirements while there is some,
//! and how it is undone.

use super::run::{Run, Verdict, demand};
use meridian_store::Problem;
use meridian_store::seams::{CrashStyle, Disk, OpenMode};
use std::path::{Path, PathBuf};

/// A file whose content differs from what was written.
#[derive(Debug)]
pub struct Damage {
    path: PathBuf,
    kind: Kind,
    /// Whether the store was started since.
    seen: bool,
}

#[derive(Debug)]
enum Kind {
    /// A bit was flipped, which the disk can undo.
    Flipped,
    /// The file is missing; this was its content.
    Vanished(Vec<u8>),
    /// It was cut, zeroed or overwritten from some byte on.
    Spoilt { held: Vec<u8>, holds: Vec<u8> },
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
    /// Returns a file whose content matters.
    fn some_file(&self) -> Option<(PathBuf, u64)> {
        let mut files = self.world.disk.files();
        let counts = |path: &Path| {
            let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("");
            !(name == "LOCK" || name.ends_with(".spare") || name.ends_with(".new"))
        };
        files.retain(|(path, len)| *len > 0 && counts(path));
        // Each kind is equally likely, however many files it has.
        let kind = |path: &Path| path.extension().unwrap_or(path.as_os_str()).to_owned();
        let mut kinds: Vec<_> = files.iter().map(|(path, _)| kind(path)).collect();
        kinds.sort();
        kinds.dedup();
        let chosen = kinds.get(self.below(kinds.len() as u64) as usize)?;
        files.retain(|(path, _)| kind(path) == *chosen);
        files.get(self.below(files.len() as u64) as usize).cloned()
    }

    /// Returns true if damage is allowed: not while the disk fails, nor in addition to other damage.
    fn can_be_damaged(&self) -> bool {
        self.damage.is_none() && self.unknown.is_none() && !self.faulty && !self.hurt && self.model.position > 0
    }

    /// Stops the store for files that are only read at a start; these are damaged while it is down.
    fn stop_for(&mut self, path: &Path) -> bool {
        let live =
            matches!(path.extension().and_then(|e| e.to_str()), Some("segment" | "rows" | "parquet" | "dead" | "keys"));
        let stop = !live || self.below(2) == 0;
        if stop {
            self.world.disk.crash(CrashStyle::Lose);
            self.store = None;
        }
        // A crash may have removed it.
        stop
    }

    pub(super) fn flip(&mut self) -> Verdict {
        let Some((path, len)) = self.some_file().filter(|_| self.can_be_damaged()) else { return Ok(()) };
        let stopped = self.stop_for(&path);
        let bit = self.below(len * 8);
        if self.world.disk.flip_bit(&path, bit).is_ok() {
            self.say(format!("bit {bit} of {} flips (stopped: {stopped})", path.display()));
            self.damage = Some(Damage { path, kind: Kind::Flipped, seen: false });
        }
        if stopped { self.open() } else { Ok(()) }
    }

    pub(super) fn vanish(&mut self) -> Verdict {
        let Some((path, _)) = self.some_file().filter(|_| self.can_be_damaged()) else { return Ok(()) };
        let stopped = self.stop_for(&path);
        if let Ok(bytes) = self.world.disk.vanish(&path) {
            self.say(format!("{} vanishes (stopped: {stopped})", path.display()));
            self.damage = Some(Damage { path, kind: Kind::Vanished(bytes), seen: false });
        }
        if stopped { self.open() } else { Ok(()) }
    }

    /// Cuts, zeroes or overwrites a file from some byte on, while the store is down.
    pub(super) fn spoil(&mut self) -> Verdict {
        let Some((path, _)) = self.some_file().filter(|_| self.can_be_damaged()) else { return Ok(()) };
        self.world.disk.crash(CrashStyle::Lose);
        self.store = None;
        let Ok(held) = self.world.disk.vanish(&path) else { return self.open() };
        // As often among the last bytes as anywhere.
        let from = [self.below(held.len() as u64), held.len() as u64 - 1 - self.below(held.len().min(600) as u64)];
        let from = from[self.below(2) as usize] as usize;
        let mut holds = held.clone();
        let how = ["is cut", "is zeros", "is overwritten"][self.below(3) as usize];
        match how {
            "is cut" => holds.truncate(from),
            "is zeros" => holds[from..].fill(0),
            _ => holds[from..].iter_mut().for_each(|byte| *byte = self.below(256) as u8),
        }
        self.world.disk.put(&path, holds.clone());
        self.say(format!("{} {how} from byte {from} on", path.display()));
        self.damage = Some(Damage { path, kind: Kind::Spoilt { held, holds }, seen: false });
        self.open()
    }

    /// Checks, after the store was opened over damage, that relevant damage is reported.
    pub(super) fn damaged(&mut self, problems: &[Problem]) -> Verdict {
        let Some(damage) = &mut self.damage else { return Ok(()) };
        damage.seen = true;
        if problems.iter().any(|p| p.path == damage.path) {
            return Ok(());
        }
        // A gap in the log is reported for the previous file as well as for a missing one.
        let path = damage.path.display().to_string();
        let named = problems.iter().any(|p| p.detail.contains(&path));
        demand!(problems.is_empty() || named || damage.in_log(), "{problems:?} do not name {path}");
        if damage.is_log() && problems.is_empty() && self.collection.position() + 1 == self.model.position {
            // The very last record of the log, whose mark the power failure took, cannot be distinguished from a torn
            // one.
            demand!(!matches!(damage.kind, Kind::Vanished(_)), "a file of the log is missing, and no error says so");
            demand!(
                self.model.position > self.marked,
                "a write that an earlier start saw is gone, and no error says so"
            );
            self.model.undo();
            self.world.disk.keep_flipped();
            self.damage = None;
            self.say("the last record is forgotten".to_owned());
        }
        Ok(())
    }

    /// Handles that the store or the collection could not be opened.
    pub(super) fn closed(&mut self, error: &str) -> Verdict {
        let Some(damage) = &self.damage else { return Err(format!("it does not open: {error}")) };
        let path = damage.path.display().to_string();
        // A missing marker cannot be reported by name: the folder is.
        let named = error.contains(&path) || (path.ends_with("meridian.json") && error.contains("meridian.json"));
        demand!(named, "{error:?} does not name {path}");
        self.say(format!("it does not open: {error}"));
        self.mend()
    }

    /// Undoes the damage and restarts: everything is back.
    pub(super) fn mend(&mut self) -> Verdict {
        let Some(damage) = self.damage.take() else { return Ok(()) };
        self.world.disk.crash(CrashStyle::Lose);
        self.store = None;
        self.world.disk.unflip();
        let now = self.held(&damage.path);
        match damage.kind {
            Kind::Vanished(held) if now.is_none() => self.world.disk.put(&damage.path, held),
            // A file that was rebuilt meanwhile stays.
            Kind::Spoilt { held, holds } if now.as_ref() == Some(&holds) => self.world.disk.put(&damage.path, held),
            _ => {}
        }
        self.say(format!("{} is mended", damage.path.display()));
        self.heal();
        self.open()
    }

    /// Returns the content of a file; `None` if it does not exist.
    fn held(&self, path: &Path) -> Option<Vec<u8>> {
        let file = self.world.disk.open(path, OpenMode::Read).ok()?;
        let mut bytes = vec![0; file.len().ok()? as usize];
        file.read_at(0, &mut bytes).ok()?;
        Some(bytes)
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
