//! Room for answers: what all answers that are fetched, or wait to be read, may hold in memory together.
//!
//! Who knows how long an answer will be takes room for all of it before the first byte is read, and waits for it with
//! nothing in hand. Who does not takes more as it comes, and is refused where there is none, for those who wait with something in hand
//! would wait for each other.

use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Room is taken in pieces of so many bytes.
const PIECE: usize = 1 << 10;

/// So many bytes, shared by all who hold a clone.
#[derive(Debug, Clone)]
pub struct Room {
    free: Arc<Semaphore>,
    pieces: u32,
}

impl Room {
    /// Room for so many bytes; at least one piece.
    pub fn new(bytes: usize) -> Room {
        let pieces = u32::try_from(bytes / PIECE).unwrap_or(u32::MAX).max(1);
        Room { free: Arc::new(Semaphore::new(pieces as usize)), pieces }
    }

    /// Bytes taken now.
    pub fn held(&self) -> usize {
        (self.pieces as usize - self.free.available_permits()) * PIECE
    }

    /// Takes room for so many bytes once there is some; until then at most, else a sentence says why not.
    pub async fn take(&self, bytes: usize, until: Instant) -> Result<Held, String> {
        let pieces = pieces(bytes).filter(|pieces| *pieces <= self.pieces).ok_or_else(|| self.none(bytes))?;
        match tokio::time::timeout_at(until.into(), self.free.clone().acquire_many_owned(pieces)).await {
            Ok(Ok(permit)) => Ok(Held { room: self.clone(), permit }),
            // The semaphore is never closed.
            Ok(Err(_)) | Err(_) => Err(self.none(bytes)),
        }
    }

    fn none(&self, bytes: usize) -> String {
        format!(
            "no room for {bytes} bytes of its answer: answers in work hold {} of the {} bytes of search.answer_bytes_total",
            self.held(),
            self.pieces as usize * PIECE
        )
    }
}

/// Room that is taken; free again when it is dropped.
#[derive(Debug)]
pub struct Held {
    room: Room,
    permit: OwnedSemaphorePermit,
}

impl Held {
    /// Makes it so many bytes in all, where there is room for the rest now.
    pub fn grow(&mut self, bytes: usize) -> Result<(), String> {
        let none = || self.room.none(bytes);
        let more = pieces(bytes).ok_or_else(none)?.saturating_sub(self.permit.num_permits() as u32);
        if more > 0 {
            let more = self.room.free.clone().try_acquire_many_owned(more).map_err(|_| none())?;
            self.permit.merge(more);
        }
        Ok(())
    }
}

fn pieces(bytes: usize) -> Option<u32> {
    u32::try_from(bytes.div_ceil(PIECE).max(1)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn what_is_known_waits_and_what_grows_is_refused() {
        let room = Room::new(8 * PIECE);
        let (now, soon) = (Instant::now(), Instant::now() + Duration::from_secs(60));
        let mut grows = room.take(1, now).await.expect("room");
        grows.grow(PIECE).expect("the piece that it has");
        grows.grow(4 * PIECE + 1).expect("room");
        assert_eq!(room.held(), 5 * PIECE);
        let why = room.take(4 * PIECE, now).await.expect_err("too much");
        assert!(why.contains("search.answer_bytes_total") && why.contains("5120 of the 8192"), "{why}");
        assert!(room.take(9 * PIECE, soon).await.is_err(), "more than there can be is refused at once");
        let waits = tokio::spawn({
            let room = room.clone();
            async move { room.take(8 * PIECE, soon).await }
        });
        tokio::task::yield_now().await;
        assert!(!waits.is_finished() && grows.grow(20 * PIECE).is_err());
        drop(grows);
        assert_eq!(waits.await.expect("a task").expect("room").permit.num_permits(), 8);
        assert_eq!(room.held(), 0);
    }
}
