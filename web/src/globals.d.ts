// Filled in by scripts/build.mjs.
declare const __WORKER_URL__: string;
declare const __LAND_URL__: string;
declare const __BORDERS_URL__: string;
declare const __PLACES_URL__: string;
