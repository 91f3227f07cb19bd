// Builds web/dist: `map.html`, served at /map, and `assets/`, served at /assets/. Everything the page needs is in there.
import { createHash } from 'node:crypto';
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync, existsSync, readdirSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { basemap } from './basemap.mjs';

const web = dirname(dirname(fileURLToPath(import.meta.url)));
const dist = join(web, 'dist');
const assets = join(dist, 'assets');
const modules = join(web, 'node_modules');

/** Writes an asset under a name that carries its content's hash and returns its address. */
function asset(name, extension, content) {
  const hash = createHash('sha256').update(content).digest('hex').slice(0, 8);
  const file = `${name}-${hash}.${extension}`;
  writeFileSync(join(assets, file), content);
  return `/assets/${file}`;
}

/** The licences of all that the bundle carries, as their texts ask for. */
function notices() {
  const packages = ['maplibre-gl', '@fontsource-variable/inter'];
  const parts = packages.map((name) => {
    const folder = join(modules, name);
    const file = ['LICENSE', 'LICENSE.txt', 'LICENSE.md'].find((f) => existsSync(join(folder, f)));
    const { version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    return `${name} ${version} (${license})\n\n${readFileSync(join(folder, file), 'utf8').trim()}`;
  });
  parts.push('Natural Earth (public domain): land, borders and names of the base map.');
  return parts.join(`\n\n${'-'.repeat(80)}\n\n`) + '\n';
}

rmSync(dist, { recursive: true, force: true });
mkdirSync(assets, { recursive: true });

const base = basemap(join(web, '..', 'data', 'natural-earth'));
const worker = readFileSync(join(modules, 'maplibre-gl', 'dist', 'maplibre-gl-worker.mjs'), 'utf8');
writeFileSync(join(assets, 'LICENSES.txt'), notices());

const result = await build({
  entryPoints: [join(web, 'src', 'map.ts')],
  outdir: assets,
  entryNames: '[name]-[hash]',
  assetNames: '[name]-[hash]',
  publicPath: '/assets',
  bundle: true,
  minify: true,
  format: 'esm',
  target: 'es2022',
  metafile: true,
  legalComments: 'none', // the full texts are in LICENSES.txt
  loader: { '.woff2': 'file' },
  define: {
    __WORKER_URL__: JSON.stringify(asset('map-worker', 'js', worker.replace(/\n\/\/# sourceMappingURL=.*\s*$/, '\n'))),
    __LAND_URL__: JSON.stringify(asset('land', 'json', base.land)),
    __BORDERS_URL__: JSON.stringify(asset('borders', 'json', base.borders)),
    __PLACES_URL__: JSON.stringify(asset('places', 'json', base.places)),
  },
  logLevel: 'warning',
});

const outputs = Object.keys(result.metafile.outputs).map((path) => basename(path));
const script = outputs.find((name) => /^map-[^.]+\.js$/.test(name));
const style = outputs.find((name) => /^map-[^.]+\.css$/.test(name));
if (!script || !style) throw new Error(`the bundle has no script or no style: ${outputs.join(', ')}`);
const page = readFileSync(join(web, 'src', 'map.html'), 'utf8')
  .replace('%SCRIPT%', `/assets/${script}`)
  .replace('%STYLE%', `/assets/${style}`);
writeFileSync(join(dist, 'map.html'), page);
copyFileSync(join(web, 'src', 'favicon.svg'), join(dist, 'favicon.svg'));

const total = readdirSync(assets).reduce((sum, name) => sum + statSync(join(assets, name)).size, 0);
console.log(`web/dist: map.html and ${readdirSync(assets).length} assets, ${(total / 1e6).toFixed(2)} MB`);
