//! Hedging: a second server is asked if the first one has not begun to respond.
//!
//! Few slow answers make most of a tail, so few second attempts shorten it much ("The tail at scale", Dean and
//! Barroso 2013). They also add load. A budget keeps them a small share of all scans: if every server is slow,
//! hedging stops instead of doubling the load.

use super::tokens::Tokens;
use crate::Invalid;
use std::time::Duration;

/// When a scan is hedged, and how often.
#[derive(Debug, Clone)]
pub struct Hedging {
    after: Duration,
    share: f64,
    tokens: Tokens,
}

impl Hedging {
    /// Hedges a scan that got no response `after` this time, for at most a `share` of all scans, plus `burst` at once
    /// after quiet times.
    ///
    /// # Errors
    /// A share outside 0 to 1, or a burst below 1.
    pub fn new(after: Duration, share: f64, burst: f64) -> Result<Hedging, Invalid> {
        if !(0.0..=1.0).contains(&share) {
            return Err(Invalid::field("hedge_share", format_args!("{share}: expected 0 to 1")));
        }
        if !(burst.is_finite() && burst >= 1.0) {
            return Err(Invalid::field("hedge_burst", format_args!("{burst}: expected at least 1")));
        }
        let mut tokens = Tokens::full(burst);
        // Starts empty: at a share of 0 there is no hedge at all.
        tokens.empty();
        Ok(Hedging { after, share, tokens })
    }

    /// How long an attempt may go without a response.
    pub fn after(&self) -> Duration {
        self.after
    }

    /// Records a new scan, which pays its share into the budget.
    pub fn scan_begins(&mut self) {
        self.tokens.add(self.share);
    }

    /// Whether the budget allows a second attempt.
    pub(super) fn has_one(&self) -> bool {
        self.tokens.missing() <= 0.0
    }

    /// Takes a second attempt out of the budget, if there is one.
    pub(super) fn take(&mut self) -> bool {
        self.tokens.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn mistakes_name_their_setting() {
        let wrong = |share, burst| Hedging::new(Duration::ZERO, share, burst).unwrap_err().to_string();
        assert_eq!(wrong(1.5, 1.0), "hedge_share: 1.5: expected 0 to 1");
        assert_eq!(wrong(f64::NAN, 1.0), "hedge_share: NaN: expected 0 to 1");
        assert_eq!(wrong(0.1, 0.0), "hedge_burst: 0: expected at least 1");
    }

    proptest! {
        /// Between any two scans there are at most `burst` hedges more than their share.
        #[test]
        fn hedges_are_a_share_of_scans(wanted in prop::collection::vec(any::<bool>(), 1..300), tenths in 0..=10u32, burst in 1..5u32) {
            let (share, burst) = (f64::from(tenths) / 10.0, f64::from(burst));
            let mut hedging = Hedging::new(Duration::ZERO, share, burst).unwrap();
            let (mut made, mut counts) = (0, vec![0]);
            for wanted in wanted {
                hedging.scan_begins();
                made += u32::from(wanted && hedging.take());
                counts.push(made);
            }
            for (from, before) in counts.iter().enumerate() {
                for (to, after) in counts.iter().enumerate().skip(from) {
                    let most = share * (to - from) as f64 + if from == 0 { 0.0 } else { burst };
                    prop_assert!(f64::from(after - before) <= most + 1e-6, "{} to {}: {}", from, to, after - before);
                }
            }
        }
    }
}
