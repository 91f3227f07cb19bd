//! Reprojects events to another coordinate reference system.

use crate::protocol::params::crs::Crs;
use crate::protocol::problem::{Problem, Result};
use arrow_array::{Array, ArrayRef, BinaryArray, Float64Array};
use meridian_model::layout::GeometryColumns;
use meridian_model::{Batch, geometry};
use std::sync::Arc;

/// Converts the geometries of events to `crs`. Omits the bounding boxes of shapes, since no writer reads them.
pub fn reproject(batch: &Batch, crs: Crs) -> Result<Batch> {
    let Some(place) = batch.layout().geometry.filter(|_| crs != Crs::Crs84) else { return Ok(batch.clone()) };
    let mut columns = batch.columns().to_vec();
    match place {
        GeometryColumns::Points { lon, lat } => {
            let Some((lons, lats)) = batch.points() else { return Ok(batch.clone()) };
            let mut xs = Vec::with_capacity(batch.rows());
            let mut ys = Vec::with_capacity(batch.rows());
            for row in 0..batch.rows() {
                let position = lons.is_valid(row).then(|| crs.of_lon_lat(lons.value(row), lats.value(row)));
                xs.push(position.map(|p| p.0));
                ys.push(position.map(|p| p.1));
            }
            columns[lon] = Some(Arc::new(Float64Array::from(xs)) as ArrayRef);
            columns[lat] = Some(Arc::new(Float64Array::from(ys)));
        }
        GeometryColumns::Shapes { wkb } => {
            if batch.wkb().is_none() {
                return Ok(batch.clone());
            }
            let shapes: Vec<Option<Vec<u8>>> = (0..batch.rows())
                .map(|row| batch.geometry(row).map(|shape| geometry::to_wkb(&crs.of_geometry(&shape))))
                .collect();
            let shapes: BinaryArray = shapes.iter().map(|s| s.as_deref()).collect();
            columns[wkb] = Some(Arc::new(shapes));
            columns[wkb + 1..wkb + 5].fill(None);
        }
    }
    Batch::new(batch.schema().clone(), batch.layout().clone(), batch.rows(), columns).map_err(Problem::internal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_model::{BatchBuilder, GeometryType, Schema};

    #[test]
    fn points_and_shapes_change_their_axes() {
        for (kind, shape) in [
            (GeometryType::Point, geo_types::Geometry::from(geo_types::Point::new(10.0, 50.0))),
            (GeometryType::Line, geo_types::LineString::from(vec![(10.0, 50.0), (11.0, 51.0)]).into()),
        ] {
            let mut builder = BatchBuilder::new(Arc::new(Schema { geometry: Some(kind), ..Schema::default() }));
            builder.set_geometry(&shape).unwrap();
            builder.end_event().unwrap();
            builder.end_event().unwrap();
            let batch = builder.finish().unwrap();
            let swapped = reproject(&batch, Crs::Epsg4326).unwrap();
            assert_eq!(swapped.geometry(0), Some(Crs::Epsg4326.of_geometry(&shape)));
            assert_eq!(swapped.geometry(1), None);
            assert_eq!(reproject(&batch, Crs::Crs84).unwrap().geometry(0), Some(shape));
        }
    }
}
