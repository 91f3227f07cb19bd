// The pages' own modules, bundled for Node, so that tests ask them and repeat nothing.
import { build } from 'esbuild';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const source = join(dirname(dirname(fileURLToPath(import.meta.url))), 'src');

/** The modules of these names in a folder of `src`, by name. */
export async function sources(names, folder = '') {
  const { outputFiles } = await build({
    stdin: { contents: names.map((name) => `export * as ${name} from './${folder}${name}';`).join('\n'), resolveDir: source, loader: 'ts' },
    bundle: true,
    write: false,
    format: 'esm',
    target: 'node20',
  });
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString('base64')}`);
}
