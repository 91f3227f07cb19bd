// Builds web/dist: `map.html` and `search.html`, served at /map and /search, and `assets/`, served at /assets/. Everything the
// pages need is in there; what both need is in chunks that they share. The style and the scripts of the pages that the
// server writes have fixed names (`pages.css`, `pages.js`, `api.css`, `api.js`), since the server does not know hashes.
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, writeFileSync, existsSync, readdirSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { basemap, DETAIL, landPath } from './basemap.mjs';

const web = dirname(dirname(fileURLToPath(import.meta.url)));
const dist = join(web, 'dist');
const assets = join(dist, 'assets');
const modules = join(web, 'node_modules');
const PAGES = ['map', 'search'];

/** Writes an asset under a name that carries its content's hash and returns its address. */
function asset(name, extension, content) {
  const hash = createHash('sha256').update(content).digest('hex').slice(0, 8);
  const file = `${name}-${hash}.${extension}`;
  writeFileSync(join(assets, file), content);
  return `/assets/${file}`;
}

/** The licences of all that the bundle carries, as their texts ask for; that of a package without its text is beside this script. */
function notices() {
  const packages = ['maplibre-gl', '@fontsource-variable/inter', 'pbf', 'pmtiles', 'fflate', 'swagger-ui-dist'];
  const parts = packages.map((name) => {
    const folder = join(modules, name);
    const file = ['LICENSE', 'LICENSE.txt', 'LICENSE.md'].map((one) => join(folder, one)).find(existsSync) ?? join(web, 'scripts', `${name}-license.txt`);
    const { version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    return `${name} ${version} (${license})\n\n${readFileSync(file, 'utf8').trim()}`;
  });
  parts.push(`Within swagger-ui-dist\n\n${readFileSync(join(modules, 'swagger-ui-dist', 'swagger-ui-es-bundle.js.LICENSE.txt'), 'utf8').trim()}`);
  parts.push('Natural Earth (public domain): land, borders and names of the base map.');
  return parts.join(`\n\n${'-'.repeat(80)}\n\n`) + '\n';
}

rmSync(dist, { recursive: true, force: true });
mkdirSync(assets, { recursive: true });

const earth = join(web, '..', 'data', 'natural-earth');
const [coarse, fine] = [basemap(earth, DETAIL.coarse), basemap(earth, DETAIL.fine)];
/** The two addresses of a part of the base map. */
const both = (part) => JSON.stringify({ coarse: asset(`${part}-coarse`, 'json', coarse[part]), fine: asset(part, 'json', fine[part]) });
const worker = readFileSync(join(modules, 'maplibre-gl', 'dist', 'maplibre-gl-worker.mjs'), 'utf8');
writeFileSync(join(assets, 'LICENSES.txt'), notices());

const options = {
  outdir: assets,
  assetNames: '[name]-[hash]',
  chunkNames: '[name]-[hash]',
  publicPath: '/assets',
  bundle: true,
  splitting: true,
  minify: true,
  format: 'esm',
  target: 'es2022',
  metafile: true,
  legalComments: 'none', // the full texts are in LICENSES.txt
  loader: { '.woff2': 'file' },
  define: {
    __WORKER_URL__: JSON.stringify(asset('map-worker', 'js', worker.replace(/\n\/\/# sourceMappingURL=.*\s*$/, '\n'))),
    __LAND__: both('land'),
    __BORDERS__: both('borders'),
    __PLACES_URL__: JSON.stringify(asset('places', 'json', fine.places)),
    __LAND_PATH__: JSON.stringify(landPath(basemap(earth, DETAIL.outline).land)),
  },
  logLevel: 'warning',
};
const result = await build({
  ...options,
  entryPoints: ['base.css', ...PAGES.flatMap((page) => [`${page}.ts`, `${page}.css`])].map((file) => join(web, 'src', file)),
  entryNames: '[name]-[hash]',
});
const fixed = [['server.css', 'pages'], ['document/page.ts', 'pages'], ['document/api.css', 'api'], ['document/api.ts', 'api']];
await build({ ...options, entryPoints: fixed.map(([file, out]) => ({ in: join(web, 'src', file), out })), entryNames: '[name]' });

/** The address of what an entry became. */
function built(entry) {
  const found = Object.entries(result.metafile.outputs).find(([, output]) => output.entryPoint && resolve(output.entryPoint) === join(web, 'src', entry));
  if (!found) throw new Error(`the bundle has nothing of ${entry}`);
  return `/assets/${basename(found[0])}`;
}

for (const page of PAGES) {
  const html = readFileSync(join(web, 'src', `${page}.html`), 'utf8')
    .replace('%BASE%', built('base.css'))
    .replace('%STYLE%', built(`${page}.css`))
    .replace('%SCRIPT%', built(`${page}.ts`));
  writeFileSync(join(dist, `${page}.html`), html);
}

const total = readdirSync(assets).reduce((sum, name) => sum + statSync(join(assets, name)).size, 0);
console.log(`web/dist: ${PAGES.length} pages and ${readdirSync(assets).length} assets, ${(total / 1e6).toFixed(2)} MB`);
