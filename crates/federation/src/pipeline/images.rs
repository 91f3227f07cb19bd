//! Images: a result gets labels of what its first image shows, as far as a model tells that the operator names. They are a
//! guess, and marked as one (`image_labels`, `image_labels_from`). Without a model there is no such stage.
//!
//! No result waits for another's image, and none for its own longer than the patience of the settings: results without images
//! go on at once, those with one each in its time, and what could not be fetched, read or done in time goes on as it came.

use super::{Stage, Work, WorkLane, begin};
use crate::found::Found;
use crate::leg::Leg;
use crate::provider::{Http, Provider, call, may_call};
use crate::search::Tally;
use crate::supervise::Contained;
use meridian_labels::{Classifier, ImageSettings, Labels};
use reqwest::Url;
use reqwest::header::ACCEPT;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tokio::sync::Semaphore;

/// What tells labels from the bytes of an image.
pub type See = dyn Fn(&[u8]) -> Result<Labels, String> + Send + Sync;

/// The stage: it only parts results with images from those without.
pub struct Images {
    look: Arc<Look>,
    /// Places for results that wait for their image.
    waiting: Arc<Semaphore>,
    tally: Arc<Tally>,
}

/// The work on one result. It runs in a task of its own and in no queue, so that how long it takes is nobody else's matter.
struct Look {
    settings: ImageSettings,
    see: Arc<See>,
    http: Http,
    /// Places for images that are fetched and looked at.
    places: Arc<Semaphore>,
    /// Places for those of them that are unfolded and before the model: they hold memory, and a thread that may block.
    eyes: Arc<Semaphore>,
    next: WorkLane<Vec<Found>>,
}

/// A result that has an image.
struct Pictured {
    found: Found,
    url: String,
    /// When it goes on at the latest.
    until: Instant,
}

impl Images {
    /// A stage that asks a model.
    pub fn of(classifier: &Arc<Classifier>, next: WorkLane<Vec<Found>>, tally: Arc<Tally>) -> Images {
        let model = classifier.clone();
        Images::new(classifier.settings().clone(), Arc::new(move |image: &[u8]| model.labels(image)), next, tally)
    }

    /// A stage that asks `see`.
    pub fn new(settings: ImageSettings, see: Arc<See>, next: WorkLane<Vec<Found>>, tally: Arc<Tally>) -> Images {
        let places = |most: usize| Arc::new(Semaphore::new(most.max(1)));
        let (waiting, eyes) = (places(settings.waiting), places(settings.threads));
        let places = places(settings.at_once);
        let room = settings.at_once.max(1).saturating_mul(settings.bytes_max + 1_024);
        let look = Look { settings, see, http: Http::passing(room), places, eyes, next };
        Images { look: Arc::new(look), waiting, tally }
    }
}

impl Stage for Images {
    type Body = Vec<Found>;
    const NAME: &'static str = "images";

    async fn run(self: Arc<Self>, work: Work<Vec<Found>>) {
        let Work { leg, body } = work;
        let now = Instant::now();
        let until = now + self.look.settings.timeout.min(leg.search.deadline.saturating_duration_since(now) / 4);
        let mut passing = Vec::new();
        for found in body {
            let Some(url) = found.images.first().cloned() else {
                passing.push(found);
                continue;
            };
            match self.waiting.clone().try_acquire_owned() {
                Ok(place) => {
                    let work = Work { leg: leg.clone(), body: Pictured { found, url, until } };
                    begin(self.look.clone(), work, place, self.tally.clone());
                }
                Err(_) => {
                    count(&self.tally.images_passed);
                    passing.push(found);
                }
            }
        }
        if !passing.is_empty() {
            self.look.next.push(Work { leg, body: passing }).await;
        }
    }
}

impl Stage for Look {
    type Body = Pictured;
    const NAME: &'static str = "images";

    async fn run(self: Arc<Self>, work: Work<Pictured>) {
        let Work { leg, body: Pictured { mut found, url, until } } = work;
        let tally = leg.search.tally.clone();
        // Contained once more: what goes wrong here costs the labels, not the result.
        let look = Contained::new(self.look(&leg, &url, until));
        match tokio::time::timeout_at(until.into(), look).await {
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
        self.next.push(Work { leg, body: vec![found] }).await;
    }
}

impl Look {
    /// Fetches an image and says what it shows; else a sentence on why not.
    async fn look(&self, leg: &Leg, url: &str, until: Instant) -> Result<Labels, String> {
        let place = self.places.clone().acquire_owned().await.map_err(|e| e.to_string())?;
        let image = self.fetch(&*leg.provider, url, leg.search.deadline).await?;
        let eye = self.eyes.clone().acquire_owned().await.map_err(|e| e.to_string())?;
        let (see, over) = (self.see.clone(), leg.search.over());
        let seeing = tokio::task::spawn_blocking(move || {
            // Both are taken until this is done, also where nobody waits for it any more.
            let _places = (place, eye);
            match over.is_cancelled() || Instant::now() >= until {
                true => Err("it came too late".to_owned()),
                false => see(&image),
            }
        });
        seeing.await.unwrap_or_else(|e| {
            tracing::error!(error = %e, "the model of images was lost at one of them");
            Err(e.to_string())
        })
    }

    /// The bytes of an image, from where its provider may call.
    async fn fetch(&self, provider: &dyn Provider, url: &str, deadline: Instant) -> Result<bytes::Bytes, String> {
        let url = Url::parse(url).map_err(|e| format!("{url:?} is no address: {e}"))?;
        let allowed = provider.allows_private();
        if !allowed {
            may_call(&url)?;
        }
        let request =
            self.http.client(allowed)?.get(url).header(ACCEPT, "image/jpeg, image/png, image/webp, image/gif");
        // The patience is kept outside; this is its bound if it were not.
        let time = deadline.saturating_duration_since(Instant::now());
        let answer =
            call(request, time, self.settings.bytes_max, &self.http.budget).await.map_err(|failure| failure.why)?;
        Ok(answer.bytes)
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
