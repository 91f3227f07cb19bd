// Writes the types of the HTTP API, src/contract.ts, from docs/openapi.json (which a test of the server holds against what it serves).
// With --check it only says whether they are as they should be.

import { readFile, writeFile } from 'node:fs/promises';
import openapiTS, { astToString } from 'openapi-typescript';

const banner = '// From docs/openapi.json: `npm run contract` writes it anew.\n\n';
const file = new URL('../src/contract.ts', import.meta.url);
const document = JSON.parse(await readFile(new URL('../../../docs/openapi.json', import.meta.url), 'utf8'));
const types = banner + astToString(await openapiTS(document, { alphabetize: false }));

if (!process.argv.includes('--check')) {
  await writeFile(file, types);
} else if ((await readFile(file, 'utf8').catch(() => '')) !== types) {
  console.error('src/contract.ts is not what docs/openapi.json says: npm --prefix clients/typescript run contract');
  process.exit(1);
}
