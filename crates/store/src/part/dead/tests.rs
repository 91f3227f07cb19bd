use super::*;

fn dead_at(dead: &DeadRows, rows: u32, seq: u64) -> Vec<u32> {
    let found: Vec<u32> = dead.range(0..rows, Seq(seq)).collect();
    let one_by_one: Vec<u32> = (0..rows).filter(|row| dead.is_dead(*row, Seq(seq))).collect();
    assert_eq!(found, one_by_one);
    assert_eq!(found.is_empty(), dead.all_alive(0..rows, Seq(seq)));
    found
}

#[test]
fn deaths_are_seen_by_snapshots_that_come_after_them() {
    let mut dead = DeadRows::default();
    assert!(dead.kill(5, 100));
    assert!(!dead.kill(5, 200));
    assert!(dead.kill(9000, 300));
    assert_eq!(dead.death(5), Some(100));
    assert!(dead.all_alive(0..10_000, Seq(99)));
    assert!(dead.all_alive(6..9000, Seq(1000)));
    assert!(dead.all_alive(6..6, Seq(1000)));
    assert!(dead.all_alive(20_000..30_000, Seq(1000)));
    assert_eq!(dead_at(&dead, 10_000, 99), [0; 0]);
    assert_eq!(dead_at(&dead, 10_000, 100), [5]);
    assert_eq!(dead_at(&dead, 10_000, 300), [5, 9000]);
    assert_eq!((dead.count(), dead.count_by(299)), (2, 1));
    let back = DeadRows::decode(&dead.encode(Seq(100)).unwrap(), 10_000).unwrap();
    assert_eq!(dead_at(&back, 10_000, 1000), [5]);
    assert!(DeadRows::decode(&dead.encode(Seq(1000)).unwrap(), 9000).is_err());
}

#[test]
fn a_clone_does_not_see_later_deaths() {
    let mut dead = DeadRows::default();
    dead.kill(1, 1);
    let before = dead.clone();
    dead.kill(2, 2);
    dead.kill_all((0..500).collect(), 3);
    assert_eq!(before.death(2), None);
    assert_eq!(dead_at(&before, 1000, 9), [1]);
    assert_eq!(dead.death(2), Some(2));
    assert_eq!(dead.count(), 500);
}

/// Random deaths and revivals, single and in groups, settled, encoded, decoded and moved, agree with a plain table.
#[test]
fn deaths_agree_with_a_table() {
    use crate::seams::{Random, SeededRandom};
    const ROWS: u32 = 9000;
    for seed in 0..20 {
        let random = SeededRandom::new(seed);
        let below = |n: u64| random.next_u64() % n;
        let mut dead = DeadRows::default();
        // For each row the writes that changed it: killed (true) or revived.
        let mut table: Vec<Vec<(u64, bool)>> = vec![Vec::new(); ROWS as usize];
        let is_dead = |changes: &[(u64, bool)], seq: u64| {
            changes.iter().rfind(|(at, _)| *at <= seq).is_some_and(|(_, dead)| *dead)
        };
        let mut floor = 0;
        for seq in 1..60u64 {
            match below(8) {
                0..=2 => {
                    let row = below(u64::from(ROWS)) as u32;
                    let alive = !is_dead(&table[row as usize], seq);
                    assert_eq!(dead.kill(row, seq), alive);
                    if alive {
                        table[row as usize].push((seq, true));
                    }
                }
                3 => {
                    let from = below(u64::from(ROWS)) as u32;
                    let rows: RoaringBitmap = (from..ROWS.min(from + below(3000) as u32)).collect();
                    let mut killed = 0;
                    for row in &rows {
                        if !is_dead(&table[row as usize], seq) {
                            table[row as usize].push((seq, true));
                            killed += 1;
                        }
                    }
                    assert_eq!(dead.kill_all(rows, seq), killed);
                }
                4 | 5 => {
                    let all: Vec<u32> = dead.range(0..ROWS, Seq(seq)).collect();
                    for _ in 0..below(20).min(all.len() as u64) {
                        let row = all[below(all.len() as u64) as usize];
                        let was = is_dead(&table[row as usize], seq);
                        assert_eq!(dead.revive(row, seq), was);
                        if was {
                            table[row as usize].push((seq, false));
                        }
                    }
                }
                6 => {
                    floor = below(seq).max(floor);
                    dead.settle(floor);
                }
                _ => dead = DeadRows::decode(&dead.encode(Seq(seq)).unwrap(), ROWS).unwrap(),
            }
            let at = floor + below(seq - floor + 1);
            let expected: Vec<u32> = (0..ROWS).filter(|row| is_dead(&table[*row as usize], at)).collect();
            assert_eq!(dead_at(&dead, ROWS, at), expected, "seed {seed}, at {at} of {seq}");
            let now = table.iter().filter(|changes| is_dead(changes, seq)).count() as u64;
            assert_eq!(dead.count(), now);
        }
        // Every second row is dropped, the others are split into two parts.
        let map: Vec<u32> = (0..ROWS).map(|row| if row % 2 == 0 { row / 2 } else { DROPPED }).collect();
        let moved = DeadRows::moved([&dead].into_iter(), &[map], &[1000, ROWS / 2 - 1000]);
        for at in floor..60 {
            let expected: Vec<u32> = dead.range(0..ROWS, Seq(at)).filter(|r| r % 2 == 0).map(|r| r / 2).collect();
            let mut found = dead_at(&moved[0], 1000, at);
            found.extend(dead_at(&moved[1], ROWS / 2 - 1000, at).iter().map(|row| row + 1000));
            assert_eq!(found, expected);
        }
    }
}
