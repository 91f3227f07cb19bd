//! The box around the shapes of a file.

use meridian_model::geometry::{from_wkb, sides};

/// West, south, east and north of the shapes so far.
#[derive(Default)]
pub(super) struct Extent(pub(super) Option<[f64; 4]>);

impl Extent {
    pub(super) fn add(&mut self, wkb: &[u8]) {
        let Some([west, south, east, north]) = from_wkb(wkb).ok().as_ref().and_then(sides) else { return };
        let [w, s, e, n] = self.0.unwrap_or([west, south, east, north]);
        self.0 = Some([w.min(west), s.min(south), e.max(east), n.max(north)]);
    }
}
