//! The windows without events (`empty=true`).

use super::groups::{Groups, TOTALS_MAX, too_many};
use crate::control::Control;
use crate::error::QueryError;
use crate::windows::Windows;
use meridian_model::filter::Predicate;
use meridian_model::time::{TIME_MAX, TIME_MIN};

/// Max windows created between two checks of the deadline.
const GAPS_UNSEEN: usize = 1024;

impl Groups {
    /// Adds the empty windows, for each key: from the first to the last of the non-empty ones and of those at the ends
    /// of the predicate's time that are not open.
    pub(super) fn fill_gaps(
        &mut self,
        windows: &Windows,
        predicate: &Predicate,
        control: &Control,
    ) -> Result<(), QueryError> {
        let reach = predicate.reach();
        let is_closed = |end: i64| end != i64::MIN && end != i64::MAX;
        // A contradiction reaches from its end to its start.
        let asked = [reach.start, reach.end].into_iter().filter(|&end| is_closed(end) && reach.start <= reach.end);
        let asked = asked.map(|end| windows.window_of(end.clamp(TIME_MIN, TIME_MAX)).start);
        // An interval may begin before the time that it meets, and so before both ends.
        let starts = self.windows.iter().flatten().map(|window| window.start).chain(asked);
        let (Some(first), Some(last)) = (starts.clone().min(), starts.max()) else {
            return Ok(());
        };
        let values = self.by.as_ref().map_or(1, |keys| keys.len() as u32);
        // The min number of windows is known before the first is created, so too many are rejected early.
        let min = windows.count_at_least(first, last).saturating_mul(values.into());
        if min.saturating_mul((self.fields.len() + self.sketched.len()) as u64 + 1) > TOTALS_MAX as u64 {
            return Err(too_many().into());
        }
        let (mut start, mut made) = (first, 0);
        while start <= last && values > 0 {
            let window = windows.window_of(start);
            for value in 0..values {
                if made % GAPS_UNSEEN == 0 {
                    control.check()?;
                }
                made += 1;
                self.group(Some(window), value)?;
            }
            // A window never ends before it starts; time zone data that claims otherwise must not make this loop
            // endless.
            if window.end <= start {
                break;
            }
            start = window.end;
        }
        Ok(())
    }
}
