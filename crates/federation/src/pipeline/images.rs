//! Images: labels each result by its first image, if the operator configured a model. Labels are guesses and marked as
//! such (`image_labels`, `image_labels_from`). Without a model the stage does not exist.
//!
//! No result waits for another's image, nor longer than the configured timeout for its own. Results without images
//! pass at once. A result whose image cannot be fetched, decoded or labelled in time passes without labels.

use super::{Stage, Work, WorkLane, begin};
use crate::fetch::{Http, Redirects, call, may_call};
use crate::provider::{Leg, Provider};
use crate::search_result::SearchResult;
use crate::supervise::CatchPanic;
use crate::tally::Tally;
use meridian_labels::{Classifier, ImageSettings, Labels};
use reqwest::Url;
use reqwest::header::ACCEPT;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// Function that labels the bytes of an image.
pub type LabelFn = dyn Fn(&[u8]) -> Result<Labels, String> + Send + Sync;

/// The stage. It only separates results with images from those without.
pub struct Images {
    labeler: Arc<Labeler>,
    /// Permits for results that wait for their image.
    waiting: Arc<Semaphore>,
    tally: Arc<Tally>,
}

/// Labels one result. It runs in a task of its own, outside any queue, so that its duration delays no other result.
struct Labeler {
    settings: ImageSettings,
    label: Arc<LabelFn>,
    http: Http,
    /// Permits for images being fetched and labelled.
    permits: Arc<Semaphore>,
    /// Permits for images being decoded or processed by the model. These hold memory and may block a thread.
    model_permits: Arc<Semaphore>,
    next: WorkLane<Vec<SearchResult>>,
}

/// A result with an image.
struct PendingImage {
    found: SearchResult,
    url: String,
    /// Time by which the result passes at the latest.
    until: Instant,
}

impl Images {
    /// Creates a stage that uses a model.
    pub fn of(classifier: &Arc<Classifier>, next: WorkLane<Vec<SearchResult>>, tally: Arc<Tally>) -> Images {
        let model = classifier.clone();
        Images::new(classifier.settings().clone(), Arc::new(move |image: &[u8]| model.labels(image)), next, tally)
    }

    /// Creates a stage that uses `label`.
    pub fn new(
        settings: ImageSettings,
        label: Arc<LabelFn>,
        next: WorkLane<Vec<SearchResult>>,
        tally: Arc<Tally>,
    ) -> Images {
        let permits = |most: usize| Arc::new(Semaphore::new(most.max(1)));
        let (waiting, model_permits) = (permits(settings.waiting), permits(settings.threads));
        let permits = permits(settings.at_once);
        let room = settings.at_once.max(1).saturating_mul(settings.bytes_max + 1_024);
        let labeler = Labeler { settings, label, http: Http::passing(room), permits, model_permits, next };
        Images { labeler: Arc::new(labeler), waiting, tally }
    }
}

impl Stage for Images {
    type Body = Vec<SearchResult>;
    const NAME: &'static str = "images";

    async fn run(self: Arc<Self>, work: Work<Vec<SearchResult>>) {
        let Work { leg, body } = work;
        let now = Instant::now();
        let until = now + self.labeler.settings.timeout.min(leg.search.deadline.saturating_duration_since(now) / 4);
        let mut passing = Vec::new();
        for found in body {
            let Some(url) = found.images.first().cloned() else {
                passing.push(found);
                continue;
            };
            // Tried, not awaited: when too many images are pending, delivering results matters more than labels.
            match self.waiting.clone().try_acquire_owned() {
                Ok(permit) => {
                    let work = Work { leg: leg.clone(), body: PendingImage { found, url, until } };
                    begin(self.labeler.clone(), work, permit, self.tally.clone());
                }
                Err(_) => {
                    count(&self.tally.images_passed);
                    passing.push(found);
                }
            }
        }
        if !passing.is_empty() {
            self.labeler.next.push(Work { leg, body: passing }).await;
        }
    }
}

impl Stage for Labeler {
    type Body = PendingImage;
    const NAME: &'static str = "images";

    async fn run(self: Arc<Self>, work: Work<PendingImage>) {
        let Work { leg, body: PendingImage { mut found, url, until } } = work;
        let tally = leg.search.tally.clone();
        // Caught here as well: a panic costs the labels, not the result.
        let labeler = CatchPanic::new(self.labels(&leg, &url, until));
        match tokio::time::timeout_at(until, labeler).await {
            Ok(Ok(Ok(labels))) => {
                count(&tally.images_seen);
                found.image_labels = Some(labels).filter(|labels| !labels.labels.is_empty());
            }
            Ok(Ok(Err(why)) | Err(why)) => {
                count(&tally.images_failed);
                tracing::debug!(provider = leg.provider.name(), why, "an image goes without labels");
            }
            Err(_) => count(&tally.images_late),
        }
        // In every case: delivery never depends on the image.
        self.next.push(Work { leg, body: vec![found] }).await;
    }
}

impl Labeler {
    /// Fetches and labels an image. The error is a sentence.
    async fn labels(&self, leg: &Leg, url: &str, until: Instant) -> Result<Labels, String> {
        let permit = self.permits.clone().acquire_owned().await.map_err(|e| e.to_string())?;
        // Fetched before the model's permit is taken: fetching is slow and must not hold the model's memory.
        let image = self.fetch(&*leg.provider, url, leg.search.deadline).await?;
        let model_permit = self.model_permits.clone().acquire_owned().await.map_err(|e| e.to_string())?;
        let (label, over) = (self.label.clone(), leg.search.over());
        let labelling = tokio::task::spawn_blocking(move || {
            // Both permits are held until the thread is done, even if the result has passed without labels.
            let _places = (permit, model_permit);
            match over.is_cancelled() || Instant::now() >= until {
                true => Err("its time was over".to_owned()),
                false => label(&image),
            }
        });
        labelling.await.unwrap_or_else(|e| {
            tracing::error!(error = %e, "the image model panicked");
            Err(e.to_string())
        })
    }

    /// Fetches the bytes of an image, within the addresses that its provider may call.
    async fn fetch(&self, provider: &dyn Provider, url: &str, deadline: Instant) -> Result<bytes::Bytes, String> {
        let url = Url::parse(url).map_err(|e| format!("{url:?} is not a URL: {e}"))?;
        let allowed = provider.allows_private();
        if !allowed {
            may_call(&url)?;
        }
        let request = self
            .http
            .client(allowed, Redirects::Anywhere)?
            .get(url)
            .header(ACCEPT, "image/jpeg, image/png, image/webp, image/gif");
        // The caller enforces the timeout; the deadline is only a second bound.
        let time = deadline.saturating_duration_since(Instant::now());
        let answer =
            call(request, time, self.settings.bytes_max, &self.http.budget).await.map_err(|failure| failure.why)?;
        Ok(answer.bytes)
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
