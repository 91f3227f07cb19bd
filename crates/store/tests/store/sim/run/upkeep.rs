//! Upkeep of a collection: jobs that are begun, run and installed, files that are listed, fields that are added.

use super::{Run, Verdict, demand};
use meridian_model::Seq;
use meridian_store::Store;
use std::time::{Duration, Instant};

impl Run {
    pub(super) fn install(&mut self) -> Verdict {
        let (failed, faulty) = (std::mem::take(&mut self.jobs_failed), self.faulty);
        self.faulty |= failed;
        let result = self.install_all();
        self.faulty = faulty;
        result
    }

    fn install_all(&mut self) -> Verdict {
        for lane in 0..2 {
            if let Some(job) = self.jobs[lane].take() {
                let result = self.collection.install(job);
                self.maintained("a job in hand", result.map(|()| true))?;
            }
        }
        Ok(())
    }

    pub(super) fn maintained(&mut self, what: &str, result: Result<bool, meridian_store::StoreError>) -> Verdict {
        self.say(format!("{what}: {result:?}"));
        if let Err(e) = result {
            self.read_error(&e.to_string())?;
            self.hurt |= self.collection.stats().refuses.is_some();
        }
        Ok(())
    }

    pub(super) fn can_list(&self) -> bool {
        self.jobs.iter().all(Option::is_none) && !self.hurt && self.damage.is_none()
    }

    /// Lists the files, reads them, and releases Arrow rows beyond the budget.
    pub(super) fn files(&mut self) -> Verdict {
        let files = self.collection.files(Instant::now() + Duration::from_secs(60), &|| false);
        if let Ok(files) = &files
            && !self.faulty
        {
            let found = crate::files::content(&self.world, &files.paths);
            let expected = self.model.content(Seq::end_of(self.model.position));
            let expected: Vec<_> = expected.into_iter().map(|(id, _, n)| (id, n)).collect();
            demand!(found == expected, "the files hold {} events of {}", found.len(), expected.len());
        }
        self.store.iter().for_each(Store::trim_serving);
        self.maintained("files", files.map(|files| !files.paths.is_empty()))
    }

    pub(super) fn add_field(&mut self) -> Verdict {
        let name = format!("more{}", self.collection.schema().fields.len());
        let field = meridian_model::Field { name, kind: meridian_model::FieldType::Text, required: false, title: None };
        let result = self.collection.add_fields(vec![field]).map(|_| ());
        self.say(format!("a field more: {result:?}"));
        if let Err(e) = result {
            demand!(self.faulty || self.hurt || self.damage.is_some(), "{e}, and nothing is wrong with the disk");
            self.hurt |= self.collection.stats().refuses.is_some();
        }
        Ok(())
    }
}
