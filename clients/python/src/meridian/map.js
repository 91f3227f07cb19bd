// The map of a notebook: draws what the kernel sends, and asks again when it is moved.

const HEIGHT = 420;
const SETTLE_MS = 150;
const DOT = 3.5;
// The colours of the map page (web/src/palette.ts, theme.css); `counts` goes from few to many.
const LIGHT = {
  sea: '#dbe4ea',
  land: '#f7f6f2',
  coast: '#b4c2cc',
  counts: ['#fbc07a', '#f38b43', '#d94f33', '#a0243d', '#560f33'],
  point: '#dd5a3c',
  raised: '#ffffff',
  text: '#1a2430',
};
const DARK = {
  sea: '#0e151c',
  land: '#1b242d',
  coast: '#33424f',
  counts: ['#62214f', '#a63050', '#de5d3f', '#f5a24d', '#fde3a0'],
  point: '#f08a52',
  raised: '#1d262f',
  text: '#e6ebf0',
};
// The shares of cells at which their colours change, as on the map page (web/src/surface/scale.ts).
const SHARES = [0.02, 0.4, 0.7, 0.9, 0.995];
const LAND_UNIT = 5; // land.json has fifths of a degree
const LAND_MIN = 0.01; // degrees a pixel: nearer than this its coasts would be wrong, and a grid of degrees is drawn

const toY = (lat) => Math.log(Math.tan(Math.PI / 4 + (Math.max(-85, Math.min(85, lat)) * Math.PI) / 360)) * (180 / Math.PI);
const toLat = (y) => (Math.atan(Math.exp((y * Math.PI) / 180)) * 360) / Math.PI - 90;
const clamp = (value, min, max) => Math.max(min, Math.min(max, value));
const many = (count) => count.toLocaleString('en');

const lines = ({ type, coordinates }) => {
  if (type === 'LineString') return [coordinates];
  if (type === 'MultiLineString' || type === 'Polygon') return coordinates;
  return type === 'MultiPolygon' ? coordinates.flat() : [];
};
const points = ({ type, coordinates }) => (type === 'Point' ? [coordinates] : type === 'MultiPoint' ? coordinates : []);

// The range of counts of each colour, by quantiles. One that no cell can have ends before it begins.
const rangesOf = (counts) => {
  const seen = counts.filter((count) => count > 0).sort((a, b) => a - b), stops = [];
  SHARES.forEach((share, n) => {
    const at = share * (seen.length - 1), low = seen[Math.floor(at)];
    const value = low + (seen[Math.ceil(at)] - low) * (at % 1);
    stops.push(Math.max(Math.round(Number(value.toPrecision(2))), n ? stops[n - 1] + 1 : 1));
  });
  return stops.map((stop, n) => ({
    from: Math.max(n ? stop : 1, seen[0]),
    to: Math.min(n + 1 < stops.length ? stops[n + 1] - 1 : Infinity, seen[seen.length - 1]),
  }));
};

// A row of the legend: a mark and its meaning.
const row = (style, text) => {
  const line = document.createElement('div'), mark = document.createElement('i');
  mark.style.cssText = `display:inline-block;margin-right:6px;vertical-align:middle;${style}`;
  line.append(mark, text);
  return line;
};

function render({ model, el }) {
  const box = document.createElement('div');
  box.style.cssText = 'position:relative;width:100%;max-width:1000px;font:12px system-ui,sans-serif';
  box.tabIndex = 0;
  box.setAttribute('role', 'application');
  box.setAttribute('aria-label', `Map of ${model.get('title')}: arrow keys move it, plus and minus zoom`);
  const canvas = document.createElement('canvas');
  canvas.style.cssText = `display:block;width:100%;height:${HEIGHT}px;cursor:grab;touch-action:none`;
  const legend = document.createElement('div'), rows = document.createElement('div'), status = document.createElement('div');
  legend.style.cssText = 'position:absolute;left:8px;bottom:8px;max-width:260px;padding:3px 8px;border-radius:3px;pointer-events:none';
  status.setAttribute('role', 'status');
  status.textContent = 'asking …';
  const tip = document.createElement('div');
  tip.style.cssText = 'position:absolute;display:none;pointer-events:none;white-space:pre;padding:4px 8px;border-radius:3px';
  legend.append(rows, status);
  box.append(canvas, legend, tip);
  el.append(box);
  const draw = canvas.getContext('2d');

  // The middle in degrees (Mercator's y), and degrees a pixel.
  let width = 0, x = 0, y = 0, scale = 1, seq = 0, waiting = 0, places = [], ranges = [], colors = LIGHT, shown = model.get('shown');
  const px = (lon) => (lon - x) / scale + width / 2;
  const py = (lat) => (y - toY(lat)) / scale + HEIGHT / 2;

  const frame = () => {
    const [west, south, east, north] = model.get('frame');
    x = (west + east) / 2;
    y = (toY(south) + toY(north)) / 2;
    scale = Math.max((east - west) / width, (toY(north) - toY(south)) / HEIGHT, 1e-5) * 1.08;
  };

  const ask = () => {
    const reach = (width / 2) * scale, rise = (HEIGHT / 2) * scale;
    const bbox = [Math.max(-180, x - reach), toLat(y - rise), Math.min(180, x + reach), toLat(y + rise)];
    model.set('view', { seq: ++seq, width, height: HEIGHT, bbox });
    model.save_changes();
  };

  const path = (coordinates) => coordinates.forEach(([lon, lat], n) => draw[n ? 'lineTo' : 'moveTo'](px(lon), py(lat)));

  const paint = () => {
    const ratio = window.devicePixelRatio || 1;
    canvas.width = width * ratio;
    canvas.height = HEIGHT * ratio;
    draw.scale(ratio, ratio);
    if (scale >= LAND_MIN) paintLand();
    else paintDegrees();
    places = [];
    if (shown.kind === 'grid') paintGrid(shown);
    else if (shown.kind === 'features') paintFeatures(shown.features);
  };

  const paintLand = () => {
    draw.fillStyle = colors.land;
    draw.strokeStyle = colors.coast;
    draw.lineWidth = 0.7;
    draw.beginPath();
    for (const ring of model.get('land')) {
      for (let n = 0; n < ring.length; n += 2) draw[n ? 'lineTo' : 'moveTo'](px(ring[n] / LAND_UNIT), py(ring[n + 1] / LAND_UNIT));
    }
    draw.fill();
    draw.stroke();
  };

  const paintDegrees = () => {
    const rough = 120 * scale, unit = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((k) => k * unit).find((size) => size >= rough);
    const digits = Math.max(0, -Math.floor(Math.log10(step)));
    draw.strokeStyle = colors.coast;
    draw.fillStyle = colors.text;
    draw.lineWidth = 0.7;
    draw.beginPath();
    for (let lon = Math.ceil((x - (width / 2) * scale) / step) * step; px(lon) < width; lon += step) {
      draw.moveTo(px(lon), 0);
      draw.lineTo(px(lon), HEIGHT);
      draw.fillText(`${lon.toFixed(digits)}°`, px(lon) + 3, 12);
    }
    for (let lat = Math.ceil(toLat(y - (HEIGHT / 2) * scale) / step) * step; py(lat) > 0; lat += step) {
      draw.moveTo(0, py(lat));
      draw.lineTo(width, py(lat));
      draw.fillText(`${lat.toFixed(digits)}°`, 3, py(lat) - 3);
    }
    draw.stroke();
  };

  const paintGrid = ({ bbox: [west, south, east, north], width: columns, height: rows, counts }) => {
    const across = ((east - west + 360) % 360 || 360) / columns, down = (north - south) / rows;
    counts.forEach((count, n) => {
      if (!count) return;
      const row = Math.floor(n / columns), left = px(west + (n % columns) * across), upper = py(north - row * down);
      draw.fillStyle = colors.counts[ranges.findIndex(({ to }) => count <= to)];
      draw.globalAlpha = 0.85;
      draw.fillRect(left, upper, across / scale + 0.4, py(north - (row + 1) * down) - upper + 0.4);
    });
    draw.globalAlpha = 1;
  };

  const paintFeatures = (features) => {
    draw.strokeStyle = draw.fillStyle = colors.point;
    draw.lineWidth = 1.4;
    draw.globalAlpha = 0.8;
    for (const { geometry, label } of features) {
      draw.beginPath();
      for (const line of lines(geometry)) {
        path(line);
        for (const [lon, lat] of line) places.push([px(lon), py(lat), label]);
      }
      draw.stroke();
      for (const [lon, lat] of points(geometry)) {
        draw.beginPath();
        draw.arc(px(lon), py(lat), DOT, 0, 2 * Math.PI);
        draw.fill();
        places.push([px(lon), py(lat), label]);
      }
    }
    draw.globalAlpha = 1;
  };

  const describe = () => {
    if (shown.kind === 'error') return shown.detail;
    const total = model.get('total'), left = total - shown.count;
    const [what, why] = model.get('limited') ? ['drawn', 'more than a map draws'] : ['in view', 'outside of the view'];
    const count = `${model.get('title')}: ${many(shown.count)} events ${what}`;
    return total === null ? count : left > 0 ? `${count}; ${many(left)} left out: ${why}, or without a place` : `${count}; none left out`;
  };

  // The legend: what the marks mean, how many events are shown and how many are left out.
  const explain = () => {
    const said = [];
    const geometries = (shown.features ?? []).map(({ geometry }) => geometry);
    ranges = shown.kind === 'grid' ? rangesOf(shown.counts) : [];
    if (ranges.length) said.push('Events in a cell');
    ranges.forEach(({ from, to }, n) => {
      if (from <= to) said.push(row(`width:14px;height:10px;background:${colors.counts[n]}`, from < to ? `${many(from)}–${many(to)}` : many(from)));
    });
    const drawn = (parts) => geometries.some((one) => parts(one).length);
    if (drawn(points)) said.push(row(`width:7px;height:7px;border-radius:50%;background:${colors.point}`, 'an event'));
    if (drawn(lines)) said.push(row(`width:14px;height:2px;background:${colors.point}`, 'the track or outline of an event'));
    rows.replaceChildren(...said);
    if (shown.seq) status.textContent = describe();
  };

  const moved = () => {
    scale = clamp(scale, 1e-5, 360 / width);
    x = clamp(x, -180, 180);
    y = clamp(y, -180, 180);
    tip.style.display = 'none';
    paint();
    clearTimeout(waiting);
    waiting = setTimeout(ask, SETTLE_MS);
  };
  const zoom = (factor, atX, atY) => {
    const lon = x + (atX - width / 2) * scale, up = y - (atY - HEIGHT / 2) * scale;
    scale = clamp(scale * factor, 1e-5, 360 / width);
    x = lon - (atX - width / 2) * scale;
    y = up + (atY - HEIGHT / 2) * scale;
    moved();
  };

  let held = null;
  canvas.addEventListener('pointerdown', (event) => {
    held = [event.clientX, event.clientY];
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener('pointerup', () => (held = null));
  canvas.addEventListener('pointermove', (event) => {
    if (held) {
      x -= (event.clientX - held[0]) * scale;
      y += (event.clientY - held[1]) * scale;
      held = [event.clientX, event.clientY];
      moved();
      return;
    }
    const near = places.find(([left, top]) => Math.hypot(left - event.offsetX, top - event.offsetY) < DOT + 3);
    tip.style.display = near ? 'block' : 'none';
    if (near) {
      tip.textContent = near[2];
      tip.style.left = `${Math.min(near[0] + 10, width - 220)}px`;
      tip.style.top = `${Math.min(near[1] + 10, HEIGHT - 110)}px`;
    }
  });
  canvas.addEventListener('wheel', (event) => {
    event.preventDefault();
    zoom(Math.exp(clamp(event.deltaY, -100, 100) / 250), event.offsetX, event.offsetY);
  }, { passive: false });
  box.addEventListener('keydown', (event) => {
    const step = 60 * scale;
    const act = {
      ArrowLeft: () => (x -= step), ArrowRight: () => (x += step), ArrowUp: () => (y += step), ArrowDown: () => (y -= step),
      '+': () => (scale /= 1.4), '=': () => (scale /= 1.4), '-': () => (scale *= 1.4),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
    moved();
  });

  const answered = () => {
    // An answer to an earlier view would be drawn at the wrong size of cells.
    if (model.get('shown').seq !== seq) return;
    shown = model.get('shown');
    explain();
    paint();
  };
  model.on('change:shown', answered);
  // The scheme of the notebook, where it names one as JupyterLab does; else that of the browser.
  const prefers = window.matchMedia('(prefers-color-scheme: dark)');
  const recolour = () => {
    const light = document.body.dataset.jpThemeLight;
    colors = (light ? light === 'false' : prefers.matches) ? DARK : LIGHT;
    canvas.style.background = colors.sea;
    legend.style.background = tip.style.color = colors.raised;
    legend.style.color = tip.style.background = colors.text;
    explain();
    paint();
  };
  const themed = new MutationObserver(recolour);
  themed.observe(document.body, { attributeFilter: ['data-jp-theme-light'] });
  prefers.addEventListener('change', recolour);
  recolour();
  const resize = () => {
    const first = !width;
    if (!box.clientWidth || box.clientWidth === width) return;
    width = box.clientWidth;
    if (first) frame();
    moved();
  };
  const sized = new ResizeObserver(resize);
  sized.observe(box);
  resize();
  return () => {
    sized.disconnect();
    themed.disconnect();
    prefers.removeEventListener('change', recolour);
    clearTimeout(waiting);
    model.off('change:shown', answered);
  };
}

export default { render };
