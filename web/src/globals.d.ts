// Filled in by scripts/build.mjs.
declare const __WORKER_URL__: string;
declare const __LAND__: { readonly coarse: string; readonly fine: string };
declare const __BORDERS__: { readonly coarse: string; readonly fine: string };
declare const __PLACES_URL__: string;

declare const __LAND_PATH__: string;
declare module 'swagger-ui-dist/swagger-ui-es-bundle.js' {
  const SwaggerUI: (options: Record<string, unknown>) => unknown;
  export default SwaggerUI;
}
