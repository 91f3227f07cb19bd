//! Events written after a position.

use crate::world::{DAY, Event, World, batch, content};
use meridian_model::{FieldColumn, IdRole, Seq};
use meridian_store::seams::{Random, SeededRandom};
use meridian_store::{Collection, Write};

fn events(from: i64, to: i64) -> Vec<Event> {
    (from..to).map(|n| Event::new(format!("id-{n}"), n)).collect()
}

/// Returns id, number and `n` of each event, in order.
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
        let (world, random) = (World::of_seed(seed), SeededRandom::new(seed));
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
            // If there are too many, the newest.
            let most = below(300) as usize;
            let over = expected.len().saturating_sub(most);
            assert_eq!(since(&c, after, upto, most), (expected[over..].to_vec(), over as u64), "seed {seed}: {most}");
        }
    }
}

#[test]
fn what_was_written_after_an_event_comes_oldest_first_and_piece_by_piece_is_whole() {
    for seed in 0..6 {
        let (world, random) = (World::of_seed(seed), SeededRandom::new(seed));
        let below = |end: u64| random.next_u64() % end;
        let (_store, c) = world.with_collection(IdRole::Given);
        for step in 0..30 {
            let from = below(3_000) as i64;
            match step % 7 {
                3 => c.flush().unwrap(),
                5 => c.maintain().unwrap(),
                6 => drop(c.delete(&(from..from + 40).map(|n| format!("id-{n}")).collect::<Vec<_>>()).unwrap()),
                _ => {
                    let size = 1 + below(200) as i64;
                    c.write(Write::new(batch(&c.schema(), &events(from, from + size))).replacing()).unwrap();
                }
            }
        }
        let mut all: Vec<u64> = content(&c.history()).iter().map(|(_, seq, _)| *seq).collect();
        all.sort_unstable();
        assert_eq!(c.oldest().0, all[0].min(c.oldest().0), "nothing held is older");
        let after = Seq(all[below(all.len() as u64) as usize]);
        let (mut at, mut found) = (after, Vec::new());
        // The number of the last event read is as good a place to continue as the end of a piece.
        while at < Seq::end_of(c.position()) {
            let mut since = c.written_after(at, 1 + below(70) as usize).unwrap().in_steps_of(1);
            let whole = below(2) == 0;
            while let Some((_, seqs)) = since.read().unwrap() {
                at = seqs[seqs.len() - 1];
                found.extend(seqs.iter().map(|seq| seq.0));
                if !whole {
                    break;
                }
            }
            if whole || found.is_empty() {
                at = since.upto();
            }
        }
        let expected: Vec<u64> = all.into_iter().filter(|seq| *seq > after.0).collect();
        assert_eq!(found, expected, "seed {seed}");
    }
}

#[test]
fn a_write_that_lies_over_all_blocks_comes_in_its_order() {
    let world = World::new();
    let (_store, c) = world.with_collection(IdRole::Made);
    // Each write spreads over all of the segments, which are ordered by place and time.
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
