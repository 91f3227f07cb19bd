//! Indexes inside segments, as separate bytes.

use crate::world;
use meridian_index::{CountPyramid, Forest, ForestBuilder, PyramidBuilder};
use meridian_model::{Interval, Schema};

/// The trees over rows, and the counts per map cell.
pub fn tree(bytes: &[u8]) {
    if let Ok(forest) = Forest::decode(bytes) {
        assert_eq!(Forest::decode(&forest.encode()).unwrap().rows(), forest.rows());
    }
    if let Ok(pyramid) = CountPyramid::decode(bytes) {
        pyramid.inner(&Interval::parse("2023-11-15/2023-11-20").unwrap());
        let _ = CountPyramid::merge(&[&pyramid, &pyramid]);
        assert_eq!(CountPyramid::decode(&pyramid.encode()).unwrap().cells(), pyramid.cells());
    }
}

/// Inputs for [`tree`].
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let (batch, schema) = (world::events(0, 130), Schema::default());
    let mut trees = ForestBuilder::over_time(batch.schema());
    trees.push_ordered(&batch).unwrap();
    let mut pyramid = PyramidBuilder::new(&schema);
    (0..20).for_each(|n| pyramid.push_point(f64::from(n) * 8.0, f64::from(n) * 4.0, i64::from(n)));
    vec![("trees", trees.finish().encode()), ("pyramid", pyramid.finish().encode())]
}
