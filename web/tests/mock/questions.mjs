// What the stand-in answers to a question: the events that match, in their order, and their groups.

export class Refusal extends Error {
  constructor(status, title, detail, field) {
    super(detail);
    Object.assign(this, { status, title, field });
  }
}

const bad = (field, detail) => new Refusal(400, 'Invalid parameter', detail, field);

const EARTH = 6_371_008.8;
const R = Math.PI / 180;
const metres = (a, b) =>
  2 * EARTH * Math.asin(Math.sqrt(Math.sin(((b[1] - a[1]) * R) / 2) ** 2 + Math.cos(a[1] * R) * Math.cos(b[1] * R) * Math.sin(((b[0] - a[0]) * R) / 2) ** 2));

function inRing([x, y], ring) {
  let inside = false;
  for (let i = 0, j = ring.length - 1; i < ring.length; j = i++) {
    const [[ax, ay], [bx, by]] = [ring[i], ring[j]];
    if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) inside = !inside;
  }
  return inside;
}

export function boxOf(f) {
  if (f.box) return f.box;
  const flat = [f.geometry.coordinates].flat(5);
  const box = [Infinity, Infinity, -Infinity, -Infinity];
  for (let i = 0; i < flat.length; i += 2) {
    box[0] = Math.min(box[0], flat[i]);
    box[1] = Math.min(box[1], flat[i + 1]);
    box[2] = Math.max(box[2], flat[i]);
    box[3] = Math.max(box[3], flat[i + 1]);
  }
  Object.defineProperty(f, 'box', { value: box });
  return box;
}

/** The few forms of CQL2 that the tests need: comparisons of a property, S_INTERSECTS with polygons, joined by AND. */
function filterTest(text, c) {
  const parts = text.split(/\s+AND\s+(?![^(]*\)\))/i).map((part) => part.trim().replace(/^\((.*)\)$/s, '$1'));
  const tests = parts.map((part) => {
    const spatial = /^S_INTERSECTS\(\s*(\w+)\s*,\s*(?:MULTI)?POLYGON\s*\((.*)\)\)$/is.exec(part);
    if (spatial) {
      const rings = spatial[2].match(/[-\d][^()]*/g).map((ring) => ring.split(',').map((p) => p.trim().split(/\s+/).map(Number)));
      return (f) => rings.some((ring) => inRing(f.geometry.coordinates, ring));
    }
    const plain = /^"?(\w+)"?\s*(>=|<=|<>|=|<|>)\s*('(?:[^']*)'|-?[\d.]+)$/.exec(part);
    if (!plain) throw bad('filter', `expected a comparison at character 1, found “${part.slice(0, 20)}”`);
    const [, name, op, raw] = plain;
    if (!c.properties[name]) throw bad('filter', `there is no property “${name}”`);
    const value = raw.startsWith("'") ? raw.slice(1, -1) : Number(raw);
    const compare = { '>=': (v) => v >= value, '<=': (v) => v <= value, '<>': (v) => v !== value, '=': (v) => v === value, '<': (v) => v < value, '>': (v) => v > value }[op];
    return (f) => f.properties[name] !== null && f.properties[name] !== undefined && compare(f.properties[name]);
  });
  return (f) => tests.every((t) => t(f));
}

export const timeOf = (c, f) => (f.ms ??= Date.parse(f.properties[c.time]));

export function matching(c, query) {
  const tests = [];
  const near = query.get('near');
  if (query.has('bbox')) {
    const b = query.get('bbox').split(',').map(Number);
    if (b.length !== 4 || !b.every(Number.isFinite)) throw bad('bbox', 'expected four numbers');
    const [w, s, e, n] = b;
    tests.push((f) => {
      const [fw, fs, fe, fn] = boxOf(f);
      return fn >= s && fs <= n && (w <= e ? fe >= w && fw <= e : fe >= w || fw <= e);
    });
  }
  if (query.has('datetime') && c.time) {
    const [a, b = a] = query.get('datetime').split('/');
    const from = a === '..' || a === '' ? -Infinity : Date.parse(a);
    const to = b === '..' || b === '' ? Infinity : Date.parse(b);
    if (Number.isNaN(from) || Number.isNaN(to)) throw bad('datetime', 'expected an instant or an interval');
    tests.push((f) => timeOf(c, f) >= from && timeOf(c, f) <= to);
  }
  let origin;
  if (near) {
    origin = near.split(',').map(Number);
    const radius = Number(query.get('radius'));
    tests.push((f) => f.geometry.type === 'Point' && metres(origin, f.geometry.coordinates) <= radius);
  }
  if (query.get('filter')) tests.push(filterTest(query.get('filter'), c));
  const found = tests.length ? c.features.filter((f) => tests.every((t) => t(f))) : c.features;
  return origin ? found.slice().sort((a, b) => metres(origin, a.geometry.coordinates) - metres(origin, b.geometry.coordinates)) : found;
}

export function sorted(features, by) {
  if (!by) return features;
  const value = (f) => f.properties[by.replace('-', '')];
  return features.slice().sort((a, b) => (by.startsWith('-') ? -1 : 1) * (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0));
}

function windowStart(ms, iso) {
  const [, p, n, unit] = /^P(T?)(\d+)([SMHDWY])$/.exec(iso) ?? [];
  if (!unit) throw bad('window', 'expected an ISO 8601 duration');
  const count = Number(n);
  const date = new Date(ms);
  if (!p && (unit === 'M' || unit === 'Y')) {
    const months = count * (unit === 'Y' ? 12 : 1);
    const start = Math.floor((date.getUTCFullYear() * 12 + date.getUTCMonth()) / months) * months;
    return [Date.UTC(1970, start - 23640), Date.UTC(1970, start + months - 23640)];
  }
  const length = count * { S: 1e3, M: 6e4, H: 36e5, D: 864e5, W: 6048e5 }[unit];
  const offset = unit === 'W' ? 4 * 864e5 : 0;
  const start = Math.floor((ms - offset) / length) * length + offset;
  return [start, start + length];
}

export const iso = (ms) => new Date(ms).toISOString().replace('.000Z', 'Z');

export function aggregate(c, query) {
  const functions = ((query.get('function') ?? 'count').match(/\w+(\([^)]*\))?/g) ?? []).map((text) => {
    const [, name, field, limit] = /^(\w+)(?:\((\w+)(?:,(\d+))?\))?$/.exec(text) ?? [];
    if (!name || (field && !c.properties[field])) throw bad('function', `cannot read “${text}”`);
    return { text, name, field, limit: Number(limit) };
  });
  const groups = new Map();
  for (const f of matching(c, query)) {
    const w = query.has('window') ? windowStart(timeOf(c, f), query.get('window')) : null;
    const key = w ? w[0] : 0;
    let group = groups.get(key);
    if (!group) groups.set(key, (group = { window: w, list: [] }));
    group.list.push(f);
  }
  if (!groups.size && !query.has('window')) groups.set(0, { window: null, list: [] });
  return [...groups.entries()]
    .sort((a, b) => a[0] - b[0])
    .map(([, { window, list }]) => {
      const out = window ? { window: `${iso(window[0])}/${iso(window[1])}` } : {};
      out.count = list.length;
      for (const { text, name, field, limit } of functions) {
        if (!field) continue;
        if (name === 'top') {
          const counts = new Map();
          for (const f of list) if (f.properties[field] !== null) counts.set(f.properties[field], (counts.get(f.properties[field]) ?? 0) + 1);
          out[text] = [...counts].sort((a, b) => b[1] - a[1]).slice(0, limit).map(([value, count]) => ({ value, count }));
          continue;
        }
        const values = list.map((f) => f.properties[field]).filter((v) => typeof v === 'number');
        const sum = values.reduce((a, b) => a + b, 0);
        const least = values.reduce((a, b) => Math.min(a, b), Infinity);
        const most = values.reduce((a, b) => Math.max(a, b), -Infinity);
        out[text] = values.length ? { sum, avg: sum / values.length, min: least, max: most, count: values.length }[name] : null;
      }
      return out;
    });
}
