// The API page: its list of operations becomes a viewer that tries them, with the session of the page or with a token.
import { signed } from '../session';
import { nameControls } from './labels';

interface Parameter {
  in: string;
  description?: string;
  example?: unknown;
  schema?: { default?: unknown };
}

interface Spec {
  servers: unknown;
  security: unknown;
  paths: Record<string, unknown>;
  components: { securitySchemes?: unknown; parameters: Record<string, Parameter | undefined> };
}

interface Request {
  url: string;
  method?: string;
  headers: Record<string, string>;
}

const dark = matchMedia('(prefers-color-scheme: dark)');
/** The viewer knows its dark scheme by a class of the root. */
const scheme = (): void => void document.documentElement.classList.toggle('dark-mode', dark.matches);

async function show(room: HTMLElement): Promise<void> {
  const [{ default: SwaggerUI }, answer] = await Promise.all([import('swagger-ui-dist/swagger-ui-es-bundle.js'), signed({ headers: { accept: 'application/json' } }).then((init) => fetch('/api?f=json', init))]);
  if (!answer.ok) throw new Error(`the description: status ${answer.status}`);
  const spec = (await answer.json()) as Spec;
  // Requests go where the page came from, also behind a proxy whose name the server does not know.
  spec.servers = [{ url: location.origin }];
  spec.components.securitySchemes = { token: { type: 'http', scheme: 'bearer', description: 'A token: mrd_…. Without one, the session of this page counts.' } };
  spec.security = [{}, { token: [] }];
  // What is there to be tried: a collection, and no conditions on properties that none has.
  const { c, queryable } = spec.components.parameters;
  const collection = Object.keys(spec.paths).find((path) => /^\/collections\/[^{/]+\/items$/.test(path));
  if (c && collection) c.example = decodeURIComponent(collection.split('/')[2]);
  if (queryable) queryable.example = {};
  // The viewer would send every default, and some are refused without the parameter that they belong to. It says them instead.
  for (const parameter of Object.values(spec.components.parameters)) {
    const schema = parameter?.schema;
    if (!parameter || parameter.in !== 'query' || !schema || schema.default === undefined) continue;
    parameter.description = `${parameter.description ?? ''} Default: \`${JSON.stringify(schema.default)}\`.`;
    delete schema.default;
  }
  scheme();
  dark.addEventListener('change', scheme);
  const viewer = document.createElement('div');
  SwaggerUI({
    spec,
    domNode: viewer,
    // With it each button would hold a link, which is no control of its own for a keyboard.
    deepLinking: false,
    docExpansion: 'none',
    filter: true,
    defaultModelsExpandDepth: -1,
    displayRequestDuration: true,
    syntaxHighlight: { activated: true, theme: 'tomorrow-night' },
    tryItOutEnabled: true,
    validatorUrl: null,
    // The commands that it shows are for a shell, which has no session.
    showMutatedRequest: false,
    requestInterceptor: async (request: Request) => {
      const { headers } = await signed({ method: request.method ?? 'GET' });
      const token = new Headers(headers).get('x-csrf-token') ?? '';
      return { ...request, headers: { ...request.headers, 'X-CSRF-Token': token } };
    },
    onComplete: () => {
      // The heads of the viewer are of the third level.
      const head = document.createElement('h2');
      head.className = 'hidden';
      head.textContent = 'Operations';
      room.replaceWith(head, viewer);
      viewer.id = room.id;
      nameControls(viewer);
      document.body.dataset.viewer = 'ready';
    },
  });
}

const room = document.getElementById('operations');
// Without the viewer, the list stays.
if (room) show(room).catch((error: unknown) => console.error(error));
