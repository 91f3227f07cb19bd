//! Clients that accept no refusal: each of their requests must succeed at once.

use super::{Server, agent, counted, post};
use serde_json::Value;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// What these clients have done.
#[derive(Default)]
pub struct Strict {
    written: AtomicU64,
    read: AtomicU64,
    failed: Mutex<Vec<String>>,
    stop: AtomicBool,
}

impl Strict {
    /// Runs some writers and a reader against a server during `act`.
    pub fn during(&self, url: &str, act: impl FnOnce(&Strict)) {
        self.stop.store(false, Ordering::Relaxed);
        std::thread::scope(|scope| {
            for writer in 0..3 {
                scope.spawn(move || self.write(url, writer));
            }
            scope.spawn(|| self.read(url));
            // Even if it fails, as the others would never end otherwise.
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| act(self)));
            self.stop.store(true, Ordering::Relaxed);
            if let Err(why) = done {
                std::panic::resume_unwind(why);
            }
        });
        let failed = self.failed.lock().unwrap();
        assert!(failed.is_empty(), "{} of {} writes and reads failed: {failed:#?}", failed.len(), self.count());
    }

    /// Waits until some more writes are acknowledged.
    pub fn goes_on(&self) {
        let before = self.written.load(Ordering::Relaxed);
        while self.written.load(Ordering::Relaxed) < before + 6 && self.failed.lock().unwrap().is_empty() {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Number of acknowledged events.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    fn count(&self) -> u64 {
        self.written() + self.read.load(Ordering::Relaxed)
    }

    fn write(&self, url: &str, writer: u64) {
        // Without a key: a gateway may only resend it if it was certainly not stored.
        for n in 0u64.. {
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            let body = format!(
                "{{\"type\":\"Feature\",\"geometry\":{{\"type\":\"Point\",\"coordinates\":[1,2]}},\"properties\":{{\"batch\":\"w{writer}\",\"n\":{n},\"dtg\":\"2026-01-01T00:00:00Z\"}}}}"
            );
            match post(url, "/collections/events/items", "application/x-ndjson", None, body.as_bytes()) {
                Ok((200 | 201, _)) => drop(self.written.fetch_add(1, Ordering::Relaxed)),
                other => self.failed.lock().unwrap().push(format!("write {writer}/{n}: {other:?}")),
            }
        }
    }

    fn read(&self, url: &str) {
        while !self.stop.load(Ordering::Relaxed) {
            // What was acknowledged before must be in the response.
            let min = self.written();
            let asked = agent().get(format!("{url}/collections/events/aggregate?function=count")).call();
            let answer = asked.map(|mut answer| (answer.status().as_u16(), answer.body_mut().read_to_string()));
            match answer {
                Ok((200, Ok(body))) => {
                    let found = serde_json::from_str::<Value>(&body).map_or(0, |answer| counted(&answer));
                    if found < min {
                        self.failed.lock().unwrap().push(format!("a read found {found} of {min} events"));
                    }
                    self.read.fetch_add(1, Ordering::Relaxed);
                }
                other => self.failed.lock().unwrap().push(format!("read: {other:?}")),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Checks that all events exist, each once.
    #[track_caller]
    pub fn check(&self, server: &Server) {
        assert_eq!(counted(&server.json("/collections/events/aggregate?function=count")), self.written());
    }
}
