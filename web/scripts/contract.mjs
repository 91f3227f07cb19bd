// Writes the types of what the server sends, src/contract.d.ts, from docs/openapi.json. With --check it only says
// whether they are as they should be.

import { readFile, writeFile } from 'node:fs/promises';
import { compile } from 'json-schema-to-typescript';

const document = JSON.parse(await readFile(new URL('../../docs/openapi.json', import.meta.url), 'utf8'));
const file = new URL('../src/contract.d.ts', import.meta.url);
const schemas = JSON.parse(JSON.stringify(document.components.schemas).replaceAll('#/components/schemas/', '#/definitions/'));
/** Beside a reference stands what the member is for: the type has its own words for that. */
function bare(schema) {
  if (Array.isArray(schema)) return schema.map(bare);
  if (schema === null || typeof schema !== 'object') return schema;
  if (schema.$ref) return { $ref: schema.$ref };
  return Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, bare(value)]));
}
for (const name of ['Text', 'Page', 'Binary', 'Document']) delete schemas[name];

const types = await compile(
  {
    title: 'Contract',
    type: 'object',
    additionalProperties: false,
    properties: Object.fromEntries(Object.keys(schemas).map((name) => [name, { $ref: `#/definitions/${name}` }])),
    required: Object.keys(schemas),
    definitions: bare(schemas),
  },
  'Contract',
  {
    additionalProperties: false,
    bannerComment: '// From docs/openapi.json: `npm run contract` writes it anew.',
    style: { singleQuote: true, printWidth: 160 },
  },
);
if (!process.argv.includes('--check')) {
  await writeFile(file, types);
} else if ((await readFile(file, 'utf8').catch(() => '')) !== types) {
  console.error('src/contract.d.ts is not what docs/openapi.json says: npm --prefix web run contract');
  process.exit(1);
}
