//! The corpus: where inputs are written, and what several of them are made from.

use meridian_formats::{Format, writer};
use meridian_model::{Batch, Seq};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Where inputs are written, if not in the corpus.
pub static ELSEWHERE: OnceLock<PathBuf> = OnceLock::new();

pub fn corpus() -> PathBuf {
    root().join("fuzz/corpus")
}

/// Writes an input.
pub fn put(target: &str, name: &str, bytes: impl AsRef<[u8]>) {
    let folder = ELSEWHERE.get().cloned().unwrap_or_else(corpus).join(target);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(name), bytes).unwrap();
}

pub fn put_all<'a>(target: &str, texts: impl IntoIterator<Item = &'a str>) {
    for (n, text) in texts.into_iter().enumerate() {
        put(target, &format!("seed-{n:02}"), text);
    }
}

/// The first lines of a compressed file.
pub fn lines(path: &str, count: usize) -> String {
    let packed = std::fs::File::open(root().join("data").join(path)).unwrap();
    let mut head = Vec::new();
    zstd::stream::read::Decoder::new(packed).unwrap().take(64 << 10).read_to_end(&mut head).unwrap();
    String::from_utf8_lossy(&head).split_inclusive('\n').take(count).collect()
}

pub fn written(format: Format, batch: &Batch) -> Vec<u8> {
    let (mut out, mut writer) = (Vec::new(), writer(format, batch.schema(), None).unwrap());
    let seqs: Vec<Seq> = (0..batch.rows() as u64).map(Seq).collect();
    writer.start(&mut out).and_then(|()| writer.write(batch, &seqs, &mut out)).unwrap();
    writer.finish(&mut out).unwrap();
    out
}
