//! What was written after a position.

use crate::world::{DAY, Event, World, batch, content};
use meridian_model::{FieldColumn, IdRole, Seq};
use meridian_store::seams::{Random, SeededRandom};
use meridian_store::{Collection, Write};

fn events(from: i64, to: i64) -> Vec<Event> {
    (from..to).map(|n| Event::new(format!("id-{n}"), n)).collect()
}

/// Id, number and `n` of each event, as they are given.
fn since(c: &Collection, after: u64, upto: u64, most: usize) -> (Vec<(String, u64, i64)>, u64) {
    let mut since = c.written_since(after, upto, most).unwrap();
    assert!(since.missing().is_empty());
    let mut found = Vec::new();
    while let Some((batch, seqs)) = since.read().unwrap() {
        assert_eq!((batch.rows(), batch.rows() > 0), (seqs.len(), true));
        let Some(FieldColumn::Int(n)) = batch.field(1) else { panic!("n was not read") };
        found.extend((0..seqs.len()).map(|row| (batch.id_of(row, seqs[row]), seqs[row].0, n.value(row))));
    }
    (found, since.left_out())
}

#[test]
fn what_was_written_since_is_what_a_look_at_everything_finds() {
    for seed in 0..12 {
        let (world, random) = (World::new(), SeededRandom::new(seed));
        let below = |end: u64| random.next_u64() % end;
        let (mut store, mut c) = world.with_collection(IdRole::Given);
        for step in 0..40 {
            let from = below(3_000) as i64;
            match below(8) {
                0 => c.flush().unwrap(),
                1 => c.maintain().unwrap(),
                2 => {
                    let ids: Vec<String> = (from..from + 40).map(|n| format!("id-{n}")).collect();
                    c.delete(&ids).unwrap();
                }
                3 if step % 5 == 0 => {
                    drop((c, store));
                    (store, c) = world.with_collection(IdRole::Given);
                }
                _ => {
                    let size = 1 + below(400) as i64;
                    c.write(Write::new(batch(&c.schema(), &events(from, from + size))).replacing()).unwrap();
                }
            }
        }
        let mut all = content(&c.history());
        all.sort_by_key(|(_, seq, _)| *seq);
        let position = c.position();
        for _ in 0..8 {
            let (after, upto) = (below(position + 2), below(position + 2));
            let within = |seq: u64| (after + 1..=upto).contains(&Seq(seq).position());
            let expected: Vec<_> = all.iter().filter(|(_, seq, _)| within(*seq)).cloned().collect();
            assert_eq!(since(&c, after, upto, usize::MAX), (expected.clone(), 0), "seed {seed}: {after}..={upto}");
            // Of too many the newest.
            let most = below(300) as usize;
            let over = expected.len().saturating_sub(most);
            assert_eq!(since(&c, after, upto, most), (expected[over..].to_vec(), over as u64), "seed {seed}: {most}");
        }
    }
}

#[test]
fn a_write_that_lies_over_all_blocks_comes_in_its_order() {
    let world = World::new();
    let (_store, c) = world.with_collection(IdRole::Made);
    // Each write lies over all of the segments, whose order is that of place and time.
    let many: Vec<Event> = (0..200_000)
        .map(|n| Event { time: (n * 7_919 % 200_000) * DAY / 1_000, ..Event::new(String::new(), n) })
        .collect();
    for events in many.chunks(50_000) {
        c.write(Write::new(batch(&c.schema(), events))).unwrap();
    }
    c.flush().unwrap();
    let (found, left_out) = since(&c, 0, 1, usize::MAX);
    assert_eq!((found.len(), left_out), (50_000, 0));
    assert!(found.is_sorted_by_key(|(_, seq, _)| *seq) && found.iter().map(|f| f.2).eq(0..50_000));
}
