//! Earlier samples of tenants' use: without them, a page could only show sums since the start.

use meridian_admission::Ledger;
use meridian_admission::gate::Refusal;
use meridian_model::policy::quota::Quota;
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use tokio::time::{Duration, Instant};

/// Max period covered by recent figures.
const WINDOW: Duration = Duration::from_secs(60);
/// Min time between samples, so that there are at most a dozen.
const SPACING: Duration = Duration::from_secs(5);

/// Number of reasons for refusals: quotas, and the lack of a slot.
pub const REASONS: usize = Quota::ALL.len() + Refusal::ALL.len();

/// Returns their names.
pub fn reasons() -> impl Iterator<Item = &'static str> {
    Quota::ALL.into_iter().map(Quota::name).chain(Refusal::ALL.into_iter().map(Refusal::name))
}

/// Returns the refusals of a tenant since the start, by reason.
pub fn refused(ledger: &Ledger) -> [u64; REASONS] {
    let mut counts = [0; REASONS];
    let quotas = Quota::ALL.into_iter().map(|quota| ledger.refused(quota));
    let slots = Refusal::ALL.into_iter().map(|refusal| ledger.turned_away(refusal));
    counts.iter_mut().zip(quotas.chain(slots)).for_each(|(count, n)| *count = n);
    counts
}

/// Processor time, and refusals by reason.
type TenantUsage = (Duration, [u64; REASONS]);

/// The use of each tenant at one moment.
#[derive(Debug, Clone)]
pub struct Sample {
    /// When it was taken.
    pub at: Instant,
    used: Arc<HashMap<Arc<str>, TenantUsage>>,
}

impl Sample {
    /// Returns the mean number of processors that a tenant used since the sample, and its refusals since.
    pub fn since(&self, ledger: &Ledger, refused: &[u64; REASONS]) -> (f64, [u64; REASONS]) {
        // A tenant without a sample had used nothing by then.
        let (processor, before) = self.used.get(ledger.tenant()).copied().unwrap_or((Duration::ZERO, [0; REASONS]));
        let seconds = self.at.elapsed().as_secs_f64().max(0.001);
        let processors = ledger.processor_time().saturating_sub(processor).as_secs_f64() / seconds;
        let mut since = *refused;
        since.iter_mut().zip(before).for_each(|(now, before)| *now = now.saturating_sub(before));
        (processors, since)
    }
}

/// The last samples, taken on request.
#[derive(Debug, Default)]
pub struct History(Mutex<VecDeque<Sample>>);

impl History {
    /// Takes a sample, unless there is a recent one. Returns the oldest in the window; `None` until there are two.
    pub fn sample(&self, now: Instant, ledgers: &[Arc<Ledger>]) -> Option<Sample> {
        let mut samples = self.0.lock();
        while samples.front().is_some_and(|oldest| now - oldest.at > WINDOW) {
            samples.pop_front();
        }
        if samples.back().is_none_or(|newest| now - newest.at >= SPACING) {
            let used = |ledger: &Arc<Ledger>| (ledger.tenant().clone(), (ledger.processor_time(), refused(ledger)));
            samples.push_back(Sample { at: now, used: Arc::new(ledgers.iter().map(used).collect()) });
        }
        // Over less than a second, the average would be mostly noise.
        samples.front().filter(|oldest| now - oldest.at >= Duration::from_secs(1)).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn recent_figures_cover_a_minute_at_most() {
        let (history, ledger) = (History::default(), Arc::new(Ledger::new("harbour")));
        let ledgers = [ledger.clone()];
        assert!(history.sample(Instant::now(), &ledgers).is_none(), "nothing to compare with");
        for _ in 0..600 {
            tokio::time::advance(Duration::from_secs(1)).await;
            let before = history.sample(Instant::now(), &ledgers).expect("an older sample");
            assert!(before.at.elapsed() <= WINDOW);
            let (processors, refused) = before.since(&ledger, &refused(&ledger));
            assert_eq!((processors, refused), (0.0, [0; REASONS]));
        }
        assert!(history.0.lock().len() <= 13);
        tokio::time::advance(WINDOW * 2).await;
        assert!(history.sample(Instant::now(), &ledgers).is_none(), "after a pause it begins anew");
        assert_eq!(reasons().count(), REASONS);
    }
}
