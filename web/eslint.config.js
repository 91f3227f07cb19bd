// What TypeScript does not find: promises that nobody awaits, conditions that are always true, unused names.
import js from '@eslint/js';
import tseslint from 'typescript-eslint';

export default tseslint.config(
  // What is generated is held against its source by `npm run check`.
  { ignores: ['dist/', 'src/contract.d.ts'] },
  js.configs.recommended,
  {
    files: ['src/**/*.ts'],
    extends: [tseslint.configs.recommendedTypeChecked],
    rules: { '@typescript-eslint/no-unused-vars': ['error', { varsIgnorePattern: '^_', argsIgnorePattern: '^_' }] },
    languageOptions: { parserOptions: { project: './tsconfig.json', tsconfigRootDir: import.meta.dirname } },
  },
  {
    // Node's own names, and those of the page for functions that run in the browser; an unknown name fails when it runs.
    files: ['**/*.mjs', '*.js'],
    rules: { 'no-undef': 'off' },
  },
);
