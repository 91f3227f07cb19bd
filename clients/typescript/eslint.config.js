// The rules of the server's pages, and their ESLint: `npm run lint` needs web/node_modules, which `make web` installs.
export { default } from '../../web/eslint.config.js';
