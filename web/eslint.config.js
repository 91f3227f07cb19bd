// What TypeScript does not find: promises that nobody awaits, conditions that are always true, unused names.
import js from '@eslint/js';
import tseslint from 'typescript-eslint';

/** A name that begins with _ is there for its place. */
const unused = ['error', { varsIgnorePattern: '^_', argsIgnorePattern: '^_' }];

export default tseslint.config(
  // What is generated is held against its source by `npm run check`.
  { ignores: ['dist/', 'src/contract.d.ts', 'src/contract.ts'] },
  js.configs.recommended,
  {
    files: ['src/**/*.ts'],
    extends: [tseslint.configs.recommendedTypeChecked],
    rules: { '@typescript-eslint/no-unused-vars': unused },
    languageOptions: { parserOptions: { projectService: true } },
  },
  {
    // Node's own names, and those of the page for functions that run in the browser; an unknown name fails when it runs.
    files: ['**/*.mjs', '*.js'],
    rules: { 'no-undef': 'off', 'no-unused-vars': unused },
  },
);
