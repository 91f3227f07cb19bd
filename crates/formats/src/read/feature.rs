//! Converts one JSON text to one event: a GeoJSON feature or a flat object.

use crate::json::{Json, Number, Scalar};
use crate::options::{ReadOptions, Unknown};
use crate::reference::{is_name_of_lon_lat, refused};
use crate::roles::{FEATURE_ID, Role, Roles};
use crate::shape::{self, Shape};
use crate::survey::{Survey, coord};
use crate::values::{blame, set_json};
use crate::wkt;
use meridian_model::error::shorten;
use meridian_model::{BatchBuilder, Crs, FieldType, IdRole, Invalid, Schema};
use std::sync::Arc;

/// Sets events of one schema from JSON texts.
pub(crate) struct FeatureSetter {
    roles: Roles,
    /// Number of the event that last set each field, to detect duplicate keys.
    seen: Vec<u64>,
    event: u64,
    /// The field that takes foreign ids: see [`FEATURE_ID`].
    ids_into: Option<usize>,
    /// The property that has the id, instead of the feature's own member.
    id_property: Option<String>,
    /// Rules for its positions and ids.
    pub(crate) survey: Survey,
}

/// Kind of a JSON object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ObjectKind {
    /// A GeoJSON feature.
    Feature,
    /// Another GeoJSON object, with the name of its type.
    OtherGeoJson(String),
    /// Not GeoJSON.
    Flat,
}

/// Checks the member `type`, at any position.
pub(crate) fn object_kind(mut json: Json<'_>) -> Result<ObjectKind, Invalid> {
    json.open_object()?;
    let mut first = true;
    while let Some(key) = json.key(&mut first)? {
        if key == "type"
            && let Some(b'"') = json.peek()
        {
            let name = json.string()?;
            return Ok(match name.as_ref() {
                "Feature" => ObjectKind::Feature,
                "FeatureCollection" | "GeometryCollection" | "Point" | "LineString" | "Polygon" | "MultiPoint"
                | "MultiLineString" | "MultiPolygon" => ObjectKind::OtherGeoJson(name.into_owned()),
                _ => ObjectKind::Flat,
            });
        }
        json.skip()?;
    }
    Ok(ObjectKind::Flat)
}

impl FeatureSetter {
    pub(crate) fn new(schema: Arc<Schema>, options: &ReadOptions) -> FeatureSetter {
        let seen = vec![0; schema.fields.len()];
        let field = schema.field_index(FEATURE_ID).filter(|&field| schema.fields[field].kind == FieldType::Text);
        let drops = options.ids == Unknown::Ignore;
        let named = options.id.clone().filter(|_| schema.id == IdRole::Given);
        // The member is called `id` too: the option means a property only if no field has the name.
        let id_property = named.filter(|name| name != "id" || schema.field_index(name).is_none());
        let ids_into = field.filter(|_| !drops);
        let (roles, survey) = (Roles::new(schema, options), Survey::new(options));
        FeatureSetter { roles, seen, event: 0, ids_into, id_property, survey }
    }

    /// Sets the event that a GeoJSON feature, or an object of plain keys, holds.
    pub(crate) fn object(&mut self, text: &str, builder: &mut BatchBuilder) -> Result<(), Invalid> {
        match object_kind(Json::new(text))? {
            ObjectKind::Feature => self.feature(text, builder),
            ObjectKind::Flat => self.flat(text, builder),
            ObjectKind::OtherGeoJson(kind) => {
                Err(Invalid::field("type", format!("expected a Feature, found a {kind}")))
            }
        }
    }

    /// Sets the event that a GeoJSON feature holds; members that GeoJSON does not define are left out.
    pub(crate) fn feature(&mut self, text: &str, builder: &mut BatchBuilder) -> Result<(), Invalid> {
        let mut json = Json::new(text);
        if json.peek() != Some(b'{') {
            return Err(json.wrong("a feature"));
        }
        json.open_object()?;
        self.event += 1;
        // RFC 8259 leaves the meaning of a repeated key open, and parsers differ. Both values cannot be kept.
        let mut members = [false; 4];
        let mut once = |member: usize, name: &str| {
            if std::mem::replace(&mut members[member], true) {
                return Err(Invalid::field(name, "the feature has two members of this name"));
            }
            Ok(())
        };
        let mut is_feature = false;
        let mut first = true;
        while let Some(key) = json.key(&mut first)? {
            match key.as_ref() {
                "type" => {
                    once(0, "type")?;
                    match json.scalar()? {
                        Scalar::Text(kind) if kind == "Feature" => is_feature = true,
                        Scalar::Text(kind) => {
                            let detail = format!("expected a Feature, found a {:?}", shorten(&kind));
                            return Err(Invalid::field("type", detail));
                        }
                        _ => return Err(Invalid::field("type", "expected \"Feature\"")),
                    }
                }
                "id" => {
                    once(1, "id")?;
                    self.set_id("id", &mut json, builder)?;
                }
                "geometry" => {
                    once(2, "geometry")?;
                    self.set_geometry(&mut json, builder)?;
                }
                "properties" => {
                    once(3, "properties")?;
                    self.set_properties(&mut json, builder)?;
                }
                "crs" => check_crs(&mut json, self.survey.crs())?,
                _ => json.skip()?,
            }
        }
        json.end()?;
        // Checked last: `type` may come after the other members.
        if !is_feature {
            return Err(Invalid::field("type", "expected a GeoJSON object of \"type\":\"Feature\""));
        }
        Ok(())
    }

    /// Sets the event that an object of plain keys holds.
    pub(crate) fn flat(&mut self, text: &str, builder: &mut BatchBuilder) -> Result<(), Invalid> {
        let mut json = Json::new(text);
        json.open_object()?;
        self.event += 1;
        let mut position: [Option<f64>; 2] = [None; 2];
        let (mut id_seen, mut shape_seen) = (false, false);
        let mut first = true;
        let mut guess = 0;
        while let Some(key) = json.key(&mut first)? {
            let twice = || Err(Invalid::field(shorten(&key), "two keys of the object mean this"));
            match self.roles.of(&key, guess)? {
                Role::Field(field) => {
                    self.set_field(field, &mut json, builder)?;
                    guess = field + 1;
                }
                role @ (Role::Lon | Role::Lat) => {
                    let slot = &mut position[usize::from(role == Role::Lat)];
                    if slot.is_some() {
                        return twice();
                    }
                    if !json.null()? {
                        *slot = Some(json.number().map_err(|e| blame(e, &key))?.float());
                    }
                }
                Role::Geometry if std::mem::replace(&mut shape_seen, true) => return twice(),
                Role::Geometry => self.set_flat_geometry(&mut json, builder)?,
                Role::Id if std::mem::replace(&mut id_seen, true) => return twice(),
                Role::Id => self.set_id(&key, &mut json, builder)?,
                Role::Nothing => json.skip()?,
            }
        }
        json.end()?;
        match position {
            [Some(_), Some(_)] if self.survey.crs() != Crs::Crs84 => {
                let detail =
                    "keys of longitude and latitude are in degrees, whatever the reference system of the input";
                Err(Invalid::field(&self.roles.schema().geometry_name, detail))
            }
            [Some(lon), Some(lat)] if !shape_seen => Shape::Point(coord(lon, lat)).set(builder, &mut self.survey),
            [None, None] => Ok(()),
            [Some(_), Some(_)] => {
                Err(Invalid::field(&self.roles.schema().geometry_name, "a geometry beside longitude and latitude"))
            }
            _ => Err(Invalid::field(
                &self.roles.schema().geometry_name,
                "a longitude and a latitude belong together: one is missing",
            )),
        }
    }

    /// Takes the value of a member or key as the event's id, or as a secondary one.
    fn set_id(&mut self, key: &str, json: &mut Json<'_>, builder: &mut BatchBuilder) -> Result<(), Invalid> {
        let is_own = self.roles.schema().id == IdRole::Given
            && self.id_property.as_deref().is_none_or(|property| property == key);
        let name = &self.roles.schema().id_name;
        if let Some(b'{' | b'[') = json.peek() {
            // Checked first: the error of a scalar would mention JSON instead of the id.
            return Err(Invalid::field(name, "an id must be a string or a number"));
        }
        match json.scalar().map_err(|e| blame(e, name))? {
            Scalar::Null => Ok(()),
            Scalar::Text(id) => self.give_id(&id, is_own, builder),
            Scalar::Number(Number::Int(id)) => self.give_id(itoa::Buffer::new().format(id), is_own, builder),
            _ => Err(Invalid::field(name, "an id must be a string or a whole number")),
        }
    }

    fn give_id(&mut self, id: &str, is_own: bool, builder: &mut BatchBuilder) -> Result<(), Invalid> {
        if is_own && builder.has_id() {
            let detail = "the event has two ids: a member of the feature and a property";
            return Err(Invalid::field(&self.roles.schema().id_name, detail));
        }
        let Some(field) = self.ids_into.filter(|_| !is_own) else {
            let is_beside = !is_own && self.roles.schema().id == IdRole::Given;
            return if is_beside { self.survey.id_beside() } else { self.survey.id(id, builder) };
        };
        if std::mem::replace(&mut self.seen[field], self.event) == self.event {
            return Err(Invalid::field(
                FEATURE_ID,
                "the event has this property and also an id, which is stored in it",
            ));
        }
        builder.set_text(field, id)
    }

    fn set_geometry(&mut self, json: &mut Json<'_>, builder: &mut BatchBuilder) -> Result<(), Invalid> {
        let shape = shape::read(json, &mut self.survey);
        self.set_shape(shape, builder)
    }

    /// Takes a geometry of GeoJSON, or a text as a table has it.
    fn set_flat_geometry(&mut self, json: &mut Json<'_>, builder: &mut BatchBuilder) -> Result<(), Invalid> {
        if json.peek() != Some(b'"') {
            return self.set_geometry(json, builder);
        }
        let text = json.string()?;
        let shape = match text.trim() {
            "" => Ok(None),
            text => wkt::read_text_or_hex(text, &mut self.survey),
        };
        self.set_shape(shape, builder)
    }

    fn set_shape(&mut self, shape: Result<Option<Shape>, Invalid>, builder: &mut BatchBuilder) -> Result<(), Invalid> {
        let name = &self.roles.schema().geometry_name;
        match shape.map_err(|e| blame(e, name))? {
            None => Ok(()),
            Some(_) if self.roles.schema().geometry.is_none() => {
                Err(Invalid::field(name, "this collection has no geometry"))
            }
            Some(shape) => shape.set(builder, &mut self.survey),
        }
    }

    fn set_properties(&mut self, json: &mut Json<'_>, builder: &mut BatchBuilder) -> Result<(), Invalid> {
        if json.null()? {
            return Ok(());
        }
        if json.peek() != Some(b'{') {
            return Err(Invalid::field("properties", "expected an object or null"));
        }
        json.open_object()?;
        let mut first = true;
        let mut guess = 0;
        while let Some(key) = json.key(&mut first)? {
            if self.id_property.as_deref() == Some(&*key) {
                self.set_id(&key, json, builder)?;
                continue;
            }
            match self.roles.field(&key, guess) {
                Some(field) => {
                    self.set_field(field, json, builder)?;
                    guess = field + 1;
                }
                None => {
                    self.roles.unknown(&key)?;
                    json.skip()?;
                }
            }
        }
        Ok(())
    }

    fn set_field(&mut self, field: usize, json: &mut Json<'_>, builder: &mut BatchBuilder) -> Result<(), Invalid> {
        if std::mem::replace(&mut self.seen[field], self.event) == self.event {
            return Err(Invalid::field(&self.roles.schema().fields[field].name, "the key occurs twice in one object"));
        }
        set_json(builder, field, json, self.roles.options())
    }
}

/// Refuses the old member `crs` if it names a system other than the input's. Longitude comes first in both CRS84 and
/// EPSG:4326 there, as all writers have it.
pub(crate) fn check_crs(json: &mut Json<'_>, crs: Crs) -> Result<(), Invalid> {
    let from = json.at();
    json.skip()?;
    // Rare and small, so it is read as a tree rather than by the event parser.
    let text = json.slice(from, json.at());
    let member: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    if member.is_null() {
        return Ok(());
    }
    let name = member["properties"]["name"].as_str();
    let fits = match crs {
        // GeoJSON from before RFC 7946 names EPSG:4326 and still puts the longitude first.
        Crs::Crs84 => name.is_some_and(is_name_of_lon_lat),
        other => name.and_then(Crs::from_name) == Some(other),
    };
    if fits {
        return Ok(());
    }
    let shown = name.unwrap_or(text.trim());
    if crs == Crs::Crs84 {
        return Err(Invalid { field: Some("crs".to_owned()), ..refused(shown) });
    }
    let (shown, expected) = (shorten(shown), crs.curie());
    Err(Invalid::field("crs", format!("the reference system {shown} is not supported: expected {expected}")))
}
