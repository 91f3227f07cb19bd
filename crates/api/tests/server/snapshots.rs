//! A response streamed during writes shows a single snapshot.

use crate::support::{Server, read_chunk, read_head, send};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::BufReader;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

const WRITERS: usize = 3;
/// Events per batch.
const BATCH: u64 = 7;
/// Events that exist beforehand: with their texts, more than the buffers on the way hold.
const ROWS: u64 = 60_000;
const PATIENCE: Duration = Duration::from_secs(60);

/// Number of batches that each writer has begun to send, and number acknowledged.
#[derive(Default)]
struct Progress {
    begun: [AtomicU64; WRITERS],
    acknowledged: [AtomicU64; WRITERS],
    done: AtomicBool,
}

/// Stops the writers, however the test ends.
struct EndOf<'a>(&'a AtomicBool);

impl Drop for EndOf<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

fn read(counters: &[AtomicU64; WRITERS]) -> [u64; WRITERS] {
    std::array::from_fn(|writer| counters[writer].load(SeqCst))
}

/// Waits until each writer has its number of batches acknowledged.
fn wait_for(progress: &Progress, batches: [u64; WRITERS]) {
    let begun = Instant::now();
    while read(&progress.acknowledged).iter().zip(&batches).any(|(now, wanted)| now < wanted) {
        assert!(begun.elapsed() < PATIENCE, "{:?}, not {batches:?}", read(&progress.acknowledged));
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Returns a number, from 1, for each batch of each writer.
fn number(writer: usize, batch: u64) -> u64 {
    1 + writer as u64 + WRITERS as u64 * batch
}

fn write(server: &Server, writer: usize, progress: &Progress) {
    for batch in 0.. {
        if progress.done.load(SeqCst) {
            return;
        }
        progress.begun[writer].store(batch + 1, SeqCst);
        let number = number(writer, batch);
        let line = format!("{{\"type\":\"Feature\",\"geometry\":null,\"properties\":{{\"batch\":{number}}}}}\n");
        let answer = server.post("/collections/log/items", "application/x-ndjson", line.repeat(BATCH as usize));
        assert_eq!(answer.status, 201, "{}", answer.text());
        progress.acknowledged[writer].store(batch + 1, SeqCst);
    }
}

#[test]
fn a_response_streamed_during_writes_holds_each_batch_completely_or_not_at_all() {
    let server = Server::start();
    server.create("log", "batch:Integer,note:String");
    let note = "x".repeat(300);
    for _ in 0..4 {
        let csv = format!("batch,note\n{}", format!("0,{note}\n").repeat(ROWS as usize / 4));
        assert_eq!(server.post("/collections/log/items", "text/csv", csv).status, 201);
    }
    let progress = Progress::default();
    std::thread::scope(|scope| {
        let _end = EndOf(&progress.done);
        for writer in 0..WRITERS {
            let (server, progress) = (&server, &progress);
            scope.spawn(move || write(server, writer, progress));
        }
        for _ in 0..2 {
            wait_for(&progress, read(&progress.acknowledged).map(|n| n + 5));
            let before = read(&progress.acknowledged);
            let mut stream = server.connect();
            send(&mut stream, "GET", "/collections/log/items?f=ndjson", &[], b"");
            let mut reader = BufReader::new(stream);
            assert_eq!(read_head(&mut reader).unwrap().0, 200);
            let mut body = read_chunk(&mut reader).unwrap();
            // The snapshot was taken by now. Later writes are flushed and merged before the rest is read.
            let after = read(&progress.begun);
            wait_for(&progress, after.map(|n| n + 5));
            let collection = server.store.collection("default", "log").unwrap();
            collection.flush().unwrap();
            collection.maintain_segments().unwrap();
            loop {
                let chunk = read_chunk(&mut reader).unwrap();
                if chunk.is_empty() {
                    break;
                }
                body.extend(chunk);
            }
            check(&body, before, after);
        }
    });
}

/// Checks that the content is exactly the first batches of each writer, each of them complete. Batches acknowledged
/// before the request was sent are present. Batches begun after the response are not.
fn check(body: &[u8], before: [u64; WRITERS], after: [u64; WRITERS]) {
    let mut found: BTreeMap<u64, u64> = BTreeMap::new();
    for line in std::str::from_utf8(body).unwrap().lines() {
        let feature: Value = serde_json::from_str(line).unwrap();
        *found.entry(feature["properties"]["batch"].as_u64().unwrap()).or_default() += 1;
    }
    assert_eq!(found.remove(&0), Some(ROWS));
    let partly: Vec<_> = found.iter().filter(|(_, events)| **events != BATCH).collect();
    assert!(partly.is_empty(), "batches and how many of their {BATCH} events came: {partly:?}");
    for (writer, (least, most)) in before.into_iter().zip(after).enumerate() {
        let there = (0..).take_while(|batch| found.remove(&number(writer, *batch)).is_some()).count() as u64;
        assert!((least..=most).contains(&there), "writer {writer}: {there} batches of {least} to {most}");
    }
    assert!(found.is_empty(), "batches without those before them: {found:?}");
}
