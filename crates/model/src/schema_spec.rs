//! Schemas from SimpleFeatureType spec strings.
