// Texts that look like places and are not taken as one, as in crates/formats/src/infer/places.rs.

/** Names of columns that hold a coordinate. */
const COORDINATE_NAME = /(?<![a-z])(lon|lng|long|lat)(?![a-z])|longitud|latitud|easting|northing|breitengrad|längengrad|laengengrad/i;

/** Whether a name is that of a coordinate, also in two words such as `startLat`. */
export const isCoordinate = (name: string): boolean => COORDINATE_NAME.test(name.replace(/(?<=\p{Ll})(?=\p{Lu})/gu, ' '));

/** Whether a text is a coordinate such as 48°12'30"N. Without the sign of degrees, or without the letter, it is one only in a column `named` as a coordinate. */
export function isDegrees(text: string, named: boolean): boolean {
  const bare = text.replace(/^[NSEWO]+|[NSEWO]+$/g, '');
  const [hasLetter, hasSign] = [bare.length < text.length, bare.split(/[°º]/).length === 2];
  const parts = bare.split(/[°º'’′"”″: ]/).filter(Boolean).map(Number);
  const inRange = parts.every((part, i) => (i ? part >= 0 && part <= 60 : Math.abs(part) <= 180));
  return (named ? hasLetter || hasSign : hasLetter && hasSign) && parts.length >= 1 && parts.length <= 3 && inRange;
}

/** Whether a text is two coordinates, each with decimals or in degrees and minutes. */
export function isPair(text: string): boolean {
  const bare = text.replace(/^[([]+|[)\]]+$/g, '');
  const parts = bare.split(/[,;]|(?<=\d) /).filter((part) => part.trim());
  if (parts.length === 2 && parts.every((part) => part.includes('.') && Math.abs(Number(part)) <= 180)) return true;
  const degrees = /^([^,;]+)[,;](.+)$/.exec(bare) ?? /^(\S+) (.+)$/.exec(bare);
  return degrees !== null && degrees.slice(1).every((part) => isDegrees(part.trim(), false));
}

/** Whether a text begins like well-known text. */
export const isWkt = (text: string): boolean => /^((multi)?(point|linestring|polygon)|geometrycollection)\s*[(zme]|^srid\s*=/i.test(text);

/** Whether a text begins like WKB in hexadecimal digits, as PostGIS writes it. */
export function isHexWkb(text: string): boolean {
  const hex = text.replace(/^\\x/, '');
  // A point has 21 bytes.
  if (!/^0[01][\da-f]{40}/i.test(hex)) return false;
  const code = hex.slice(2, 10);
  const ordered = hex.startsWith('01') ? code.replace(/(..)(..)(..)(..)/, '$4$3$2$1') : code;
  // The three high bits of PostGIS, or the thousands of ISO, stand for height, measure and system.
  const kind = parseInt(ordered, 16) & 0x1fffffff;
  return kind < 4000 && kind % 1000 >= 1 && kind % 1000 <= 7;
}

/** Whether a text begins like a geometry in GeoJSON. */
export const isGeoJson = (text: string): boolean =>
  /^\{("type":"((Multi)?(Point|LineString|Polygon)|GeometryCollection)"|"coordinates":\[)/.test(text.slice(0, 100).replace(/\s/g, ''));
