//! Distances on the globe.
//!
//! Meridian measures on a sphere of the mean earth radius (IUGG R1). Against the WGS 84 ellipsoid a
//! great-circle distance is off by at most 0.56 %. The sphere is too short along the meridian at the poles
//! and too long at the equator. On the sphere the haversine formula is exact to some nanometres for points
//! that are near each other. It loses digits only within a kilometre of the antipode.

/// Mean radius of the earth in metres (IUGG R1, 2a/3 + b/3 of WGS 84).
pub const EARTH_RADIUS_M: f64 = 6_371_008.771_4;

/// Great-circle distance in metres between two positions in degrees (haversine; Sinnott 1984).
pub fn distance_m(lon1: f64, lat1: f64, lon2: f64, lat2: f64) -> f64 {
    let (phi1, phi2) = (lat1.to_radians(), lat2.to_radians());
    let half_phi = ((phi2 - phi1) * 0.5).sin();
    let half_lambda = ((lon2 - lon1).to_radians() * 0.5).sin();
    let h = half_phi * half_phi + phi1.cos() * phi2.cos() * half_lambda * half_lambda;
    2.0 * EARTH_RADIUS_M * h.sqrt().min(1.0).asin()
}

/// The unit vector of a position in degrees.
pub fn unit_vector(lon: f64, lat: f64) -> [f64; 3] {
    let (lambda, phi) = (lon.to_radians(), lat.to_radians());
    let (sin_phi, cos_phi) = phi.sin_cos();
    let (sin_lambda, cos_lambda) = lambda.sin_cos();
    [cos_phi * cos_lambda, cos_phi * sin_lambda, sin_phi]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_distances() {
        // A degree of the equator and of a meridian, half the globe, and the reference pair of the places API.
        let degree = EARTH_RADIUS_M * std::f64::consts::PI / 180.0;
        assert!((distance_m(0.0, 0.0, 1.0, 0.0) - degree).abs() < 1e-6);
        assert!((distance_m(179.5, 0.0, -179.5, 0.0) - degree).abs() < 1e-6);
        assert!((distance_m(10.0, 89.5, -170.0, 89.5) - degree).abs() < 1e-6);
        assert!((distance_m(0.0, -90.0, 77.0, 90.0) - 180.0 * degree).abs() < 1e-3);
        assert!((distance_m(-122.4016394, 37.7964082, -122.512226, 37.7788151) / 1000.0 - 9.91).abs() < 0.01);
    }
}
