// From docs/openapi.json: `npm run contract` writes it anew.

export interface paths {
    "/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The landing page */
        get: operations["getLandingPage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/conformance": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The conformance classes */
        get: operations["getConformance"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** This description, as OpenAPI 3.0 */
        get: operations["getApi"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/openapi.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** This description, as OpenAPI 3.1 */
        get: operations["getOpenApi"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/collections": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The collections */
        get: operations["getCollections"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/collections/{c}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One collection */
        get: operations["getCollection"];
        /** Create a collection, or change the settings of an existing one */
        put: operations["createCollection"];
        post?: never;
        /** Remove a collection with all its events */
        delete: operations["deleteCollection"];
        options?: never;
        head?: never;
        /** Change settings, add optional fields, or rename it */
        patch: operations["updateCollection"];
        trace?: never;
    };
    "/collections/{c}/schema": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The schema of the collection, as JSON Schema */
        get: operations["getSchema"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/collections/{c}/queryables": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The properties that a filter may use, as JSON Schema */
        get: operations["getQueryables"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/collections/{c}/items": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Events that match */
        get: operations["getFeatures"];
        put?: never;
        /** Write events, all of them or none (in each partition) */
        post: operations["createFeatures"];
        /** Delete the events that match a filter */
        delete: operations["deleteFeatures"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/collections/{c}/items/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One event */
        get: operations["getFeature"];
        /** Replace an event, or create it if ids are given */
        put: operations["replaceFeature"];
        post?: never;
        /** Delete an event */
        delete: operations["deleteFeature"];
        options?: never;
        head?: never;
        /** Change some properties of an event */
        patch: operations["updateFeature"];
        trace?: never;
    };
    "/collections/{c}/files": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Write all events to GeoParquet files, and list the files */
        post: operations["listFiles"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/collections/{c}/aggregate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Counts, sums, averages, extremes, percentiles, different and most frequent values; by window of time, by fields */
        get: operations["getAggregate"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/collections/{c}/density": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Counts on a grid */
        get: operations["getDensity"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/collections/{c}/tracks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The objects that passed, with the first and last time of each */
        get: operations["getTracks"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/collections/{c}/stream": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Events as they are acknowledged, as Server-Sent Events, or over a WebSocket if the request asks for an upgrade */
        get: operations["followEvents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/collections/{c}/tiles": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The vector tilesets of a collection */
        get: operations["meridian.collection.vector.getTileSetsList"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/collections/{c}/tiles/{tileMatrixSetId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One vector tileset */
        get: operations["meridian.collection.vector.getTileSet"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/collections/{c}/tiles/{tileMatrixSetId}/{tileMatrix}/{tileRow}/{tileCol}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One vector tile (row before column) */
        get: operations["meridian.collection.vector.getTile"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tileMatrixSets": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The tile matrix sets */
        get: operations["meridian.getTileMatrixSetsList"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tileMatrixSets/{tileMatrixSetId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One tile matrix set */
        get: operations["meridian.getTileMatrixSet"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v0/places": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** All places, 25 a page */
        get: operations["listPlaces"];
        put?: never;
        /** Add a place */
        post: operations["createPlace"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v0/places/{placeId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One place */
        get: operations["getPlace"];
        put?: never;
        post?: never;
        /** Delete a place */
        delete: operations["deletePlace"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v0/places/deleteAllPlaces": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Delete all places */
        delete: operations["deletePlaces"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v0/places/random": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A random place */
        get: operations["randomPlace"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v0/places/near/{latitude}/{longitude}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Places within 0.5 km, nearest first */
        get: operations["nearPlaces"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v0/places/near/{latitude}/{longitude}/{radiusKm}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Places within a radius of at most 50 km, nearest first */
        get: operations["nearPlacesWithin"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/searches": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Ask Meridian's collections and outside sources at once */
        post: operations["startSearch"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/searches/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The status of a search */
        get: operations["getSearch"];
        put?: never;
        post?: never;
        /** Stop a search */
        delete: operations["stopSearch"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/searches/{id}/packets": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The packets of a search as they are produced, as Server-Sent Events, or over a WebSocket if the request asks for an upgrade */
        get: operations["getPackets"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/saved-searches": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The saved searches */
        get: operations["getSavedSearches"];
        put?: never;
        /** Save a search: it runs from now on */
        post: operations["saveSearch"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/saved-searches/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The status of a saved search */
        get: operations["getSavedSearch"];
        put?: never;
        post?: never;
        /** Delete a saved search */
        delete: operations["deleteSavedSearch"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/saved-searches/{id}/packets": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The packets of a saved search as they are produced, as Server-Sent Events, or over a WebSocket if the request asks for an upgrade */
        get: operations["getSavedPackets"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/providers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The providers that a search can ask, and their state */
        get: operations["getProviders"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tokens": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The tokens of the tenant; for operators, of all tenants */
        get: operations["getTokens"];
        put?: never;
        /** Create a token */
        post: operations["createToken"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tokens/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Revoke a token */
        delete: operations["revokeToken"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenants": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The tenants of the server */
        get: operations["getTenants"];
        put?: never;
        /** Create a tenant */
        post: operations["createTenant"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenants/{t}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Remove a suspended tenant with its tokens, its users and all its data */
        delete: operations["deleteTenant"];
        options?: never;
        head?: never;
        /** Change a tenant: weight, suspension, quotas, collections that are readable without a credential */
        patch: operations["updateTenant"];
        trace?: never;
    };
    "/users": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The users of the tenant; for operators, of all tenants */
        get: operations["getUsers"];
        put?: never;
        /** Create a user that signs in with a name and a password */
        post: operations["createUser"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/users/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Remove a user; its sessions end */
        delete: operations["deleteUser"];
        options?: never;
        head?: never;
        /** Change a user: password, role, collections, whether it may sign in; its sessions end */
        patch: operations["updateUser"];
        trace?: never;
    };
    "/login": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The page to sign in */
        get: operations["getLoginPage"];
        put?: never;
        /** Sign in: the response sets the cookie of a new session */
        post: operations["signIn"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/login/{issuer}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Sign in at an issuer of OpenID Connect: leads the browser there */
        get: operations["beginSignIn"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/login/{issuer}/callback": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The browser comes back from the issuer: the response sets the cookie of a new session */
        get: operations["endSignIn"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/logout": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Sign out: the session ends */
        post: operations["signOut"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/password": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Change the password of the signed-in user; its other sessions end */
        post: operations["changePassword"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/session": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The signed-in user */
        get: operations["getSession"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The record of administrative acts in the tenant; for operators, in all tenants */
        get: operations["getAudit"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/backup": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Everything or one tenant, at one position of each collection, as a tar for a backup folder */
        post: operations["backup"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Counters in the Prometheus text format */
        get: operations["getMetrics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/load": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Running, waiting and refused requests, with the reasons */
        get: operations["getLoad"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/cluster": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The owner, the collections and the servers of the cluster */
        get: operations["getCluster"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/healthz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Whether the process is alive */
        get: operations["getHealth"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/readyz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Whether the server accepts requests */
        get: operations["getReady"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/version": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Name and version */
        get: operations["getVersion"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/map": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The map */
        get: operations["getMap"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/search": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The page for searches */
        get: operations["getSearchPage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/base-map.pmtiles": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A part of the file of tiles that is the operator's base map */
        get: operations["getBaseMap"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/assets/{file}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A file of the pages */
        get: operations["getAsset"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/favicon.svg": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The icon of the pages */
        get: operations["getIcon"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/favicon.ico": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The same icon, where browsers look for one beside JSON */
        get: operations["getDefaultIcon"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description The landing page. */
        Landing: {
            /** @description Name of the server. */
            title: string;
            /** @description Its role. */
            description: string;
            /** @description Links to everything else. */
            links: components["schemas"]["Link"][];
        };
        /** @description A link, as every OGC resource carries them (RFC 8288). */
        Link: {
            /** @description Address. */
            href: string;
            /** @description Relation. */
            rel: string;
            /** @description Media type of what is there. */
            type: string;
            /** @description The content behind the link, in words. */
            title: string;
            /** @description Whether the address has variables. */
            templated?: boolean;
        };
        /** @description Conformance classes. */
        Conformance: {
            /** @description Their URIs. */
            conformsTo: string[];
            /** @description This document in other formats. */
            links: components["schemas"]["Link"][];
        };
        /** @description Whether the server is alive, or ready. */
        Health: {
            /** @description `ok` or `ready`. */
            status: string;
        };
        /** @description The program. */
        Version: {
            /** @description Its name. */
            name: string;
            /** @description Its version. */
            version: string;
        };
        /** @description A refusal or failure (RFC 9457). Further members name what was refused: limits, ids, positions. */
        Problem: {
            /** @description URI of the kind of problem. */
            type: string;
            /** @description The kind in words. */
            title: string;
            /**
             * Format: uint16
             * @description HTTP status.
             */
            status: number;
            /** @description The error, and the expected value. */
            detail: string;
            /** @description The parameter or property at fault. */
            field?: string;
            /**
             * Format: uint64
             * @description The line at fault, from 1.
             */
            line?: number;
            /**
             * Format: uint64
             * @description The event at fault, from 1, where events are counted instead of lines.
             */
            feature?: number;
            /** @description All mistakes of a body, at most 100. */
            errors?: components["schemas"]["Mistake"][];
        } & {
            [key: string]: unknown;
        };
        /** @description One mistake of a body. */
        Mistake: {
            /** @description The error. */
            detail: string;
            /** @description The property at fault. */
            field?: string;
            /**
             * Format: uint64
             * @description The line at fault, from 1.
             */
            line?: number;
            /**
             * Format: uint64
             * @description The event at fault, from 1, where events are counted instead of lines.
             */
            feature?: number;
        };
        /** @description All collections. */
        CollectionList: {
            /** @description Each of them. */
            collections: components["schemas"]["Collection"][];
            /** @description Systems of coordinates that all of them are served in. */
            crs: string[];
            /** @description This document in other formats. */
            links: components["schemas"]["Link"][];
        };
        /** @description A collection. */
        Collection: {
            /** @description Its name. */
            id: string;
            /** @description Its title; its name where it has none. */
            title: string;
            /** @description Its subject, or the reason why it is not served. */
            description?: string;
            /** @description The state of a collection. */
            status?: "damaged";
            /** @description `feature`. */
            itemType?: string;
            /** @description Systems of coordinates that it is served in. */
            crs?: string[];
            /** @description The system that it is stored in. */
            storageCrs?: string;
            /** @description Where and when its events are. */
            extent?: components["schemas"]["Extent"];
            /**
             * Format: uint64
             * @description Events that the newest snapshot sees.
             */
            itemCount?: number;
            /**
             * Format: uint64
             * @description Bytes on disk and in memory.
             */
            bytes?: number;
            /**
             * @description The failures that an acknowledged event survives.
             * @enum {string}
             */
            durability?: "ephemeral" | "local" | "replicated";
            /** @description `latest` where it shows only the newest event of each object. */
            mode?: string;
            /** @description Age from which events are dropped (ISO 8601 duration). */
            retention?: string;
            /**
             * Format: uint64
             * @description Bytes from which the oldest events are dropped.
             */
            retention_bytes?: number;
            /**
             * Format: uint16
             * @description Number of partitions, each with a log of its own.
             */
            partitions?: number;
            /** @description Why it accepts no writes. */
            refusesWrites?: string;
            /** @description Links to its resources. */
            links: components["schemas"]["Link"][];
        };
        /** @description Where and when events are. Deleted events that are still on disk count. */
        Extent: {
            /** @description Where. */
            spatial?: components["schemas"]["Spatial"];
            /** @description When. */
            temporal?: components["schemas"]["Temporal"];
        };
        /** @description Where events are. */
        Spatial: {
            /** @description One box: west, south, east, north. */
            bbox: number[][];
            /** @description Its system of coordinates. */
            crs: string;
        };
        /** @description When events are. */
        Temporal: {
            /** @description One interval; null for an open end. */
            interval: (string | null)[][];
            /** @description Its calendar. */
            trs: string;
        };
        /** @description The files of a collection at one snapshot. */
        Files: {
            /** @description The snapshot. */
            snapshot: string;
            /** @description Their paths. */
            files: string[];
            /** @description When they may be deleted at the earliest. */
            keptUntil: string;
            /** @description The folder that the paths are relative to; absent if they are absolute. */
            relativeTo?: string;
        };
        /** @description One event as GeoJSON (RFC 7946). */
        Feature: {
            /**
             * @description `Feature`.
             * @enum {string}
             */
            type: "Feature";
            /** @description Its id. A body may leave it out, and may give a number. */
            id?: string;
            /** @description A geometry, or null. */
            geometry: {
                [key: string]: unknown;
            } | null;
            /** @description Values by their names. */
            properties: {
                [key: string]: unknown;
            };
            /**
             * Format: double
             * @description Distance in metres from the position in `near`.
             */
            distance?: number;
            /** @description Where it is. */
            links?: components["schemas"]["Link"][];
        };
        /** @description Events as GeoJSON. */
        FeatureCollection: {
            /**
             * @description `FeatureCollection`.
             * @enum {string}
             */
            type: "FeatureCollection";
            /** @description The events. */
            features: components["schemas"]["Feature"][];
            /** @description This page in other formats, and the next one. */
            links?: components["schemas"]["Link"][];
            /**
             * Format: date-time
             * @description When the response was made.
             */
            timeStamp?: string;
            /**
             * Format: uint64
             * @description Events of this page.
             */
            numberReturned?: number;
            /**
             * Format: uint64
             * @description Events of all pages, where that is known.
             */
            numberMatched?: number;
            /** @description Parts that may be missing because files are damaged. */
            missing?: components["schemas"]["Missing"][];
        };
        /** @description Something that is missing. */
        Missing: {
            /** @description The damage. */
            detail: string;
        };
        /** @description The outcome of a write. */
        Written: {
            /**
             * Format: uint64
             * @description Events stored.
             */
            written: number;
            /**
             * Format: uint64
             * @description Events that they replaced.
             */
            replaced: number;
            /**
             * Format: uint64
             * @description Events of a repeated batch, known by its key.
             */
            duplicates: number;
            /** @description Position of the write in the log. */
            position: string;
            /** @description The values dropped by a lenient write. */
            left_out?: components["schemas"]["LeftOut"];
        };
        /** @description Numbers of events that were written without something. */
        LeftOut: {
            /**
             * Format: uint64
             * @description Events written without their heights.
             */
            heights: number;
            /**
             * Format: uint64
             * @description Events written without their ids.
             */
            ids: number;
        };
        /** @description The outcome of a deletion. */
        Deleted: {
            /**
             * Format: uint64
             * @description Events deleted.
             */
            deleted: number;
            /** @description Position of the deletion in the log. */
            position: string;
        };
        /** @description An aggregate. */
        Aggregate: {
            /** @description Its groups, in order of window and value. */
            groups: components["schemas"]["Group"][];
        };
        /** @description One group. */
        Group: {
            /** @description Start of its window. */
            window?: string;
            /** @description Value of the property that is grouped by; of several properties, an object with the value of each. */
            by?: unknown;
            /**
             * Format: uint64
             * @description Events in it.
             */
            count: number;
        } & {
            [key: string]: unknown;
        };
        /** @description Counts on a grid. */
        Density: {
            /** @description Its box: west, south, east, north. */
            bbox: number[];
            /**
             * Format: uint32
             * @description Columns.
             */
            width: number;
            /**
             * Format: uint32
             * @description Rows.
             */
            height: number;
            /** @description Events of each cell, row by row from the north-west. */
            counts: number[];
        };
        /** @description Objects that passed. */
        Tracks: {
            /** @description Each of them. */
            tracks: components["schemas"]["TrackSummary"][];
            /**
             * Format: uint64
             * @description Objects of this page.
             */
            numberReturned: number;
            /** @description This page, and the next one. */
            links: components["schemas"]["Link"][];
        };
        /** @description When an object was seen. */
        TrackSummary: {
            /** @description The object: a number or a text. */
            object: unknown;
            /**
             * Format: uint64
             * @description Its events.
             */
            count: number;
            /** @description First instant; null where it is open. */
            first: string | null;
            /** @description Last instant; null where it is open. */
            last: string | null;
        };
        /** @description The cost of a query for events. */
        ExplainedItems: {
            /** @description The snapshot that was read. */
            snapshot: string;
            /**
             * Format: uint64
             * @description Rows of the snapshot, dead ones included.
             */
            rows: number;
            /**
             * Format: uint64
             * @description Memory trees and segments.
             */
            parts: number;
            /**
             * Format: uint64
             * @description The part of these whose bounds ruled them out.
             */
            parts_pruned: number;
            /**
             * Format: uint64
             * @description Tree nodes visited.
             */
            nodes_visited: number;
            /**
             * Format: uint64
             * @description Tree nodes left out with all their events.
             */
            nodes_pruned: number;
            /**
             * Format: uint64
             * @description Tree nodes taken whole.
             */
            nodes_whole: number;
            /**
             * Format: uint64
             * @description Blocks read.
             */
            blocks_read: number;
            /**
             * Format: uint64
             * @description Bytes of the events in these blocks, as they are stored on average.
             */
            bytes_read: number;
            /**
             * Format: uint64
             * @description Blocks at the edge of the query.
             */
            edge_blocks: number;
            /**
             * Format: uint64
             * @description Events tested one by one.
             */
            events_tested: number;
            /**
             * Format: uint64
             * @description Events found to match, before any limit.
             */
            events_matched: number;
            /**
             * Format: double
             * @description Milliseconds of planning.
             */
            plan_ms: number;
            /**
             * Format: double
             * @description Milliseconds of scanning.
             */
            scan_ms: number;
            /**
             * Format: uint64
             * @description Events of the page.
             */
            events_returned: number;
            /** @description How the query was executed, a sentence for each step. */
            plan: string[];
        };
        /** @description The cost of an aggregate or a density. */
        ExplainedGroups: {
            /** @description The snapshot that was read. */
            snapshot: string;
            /**
             * Format: uint64
             * @description Rows of the snapshot, dead ones included.
             */
            rows: number;
            /**
             * Format: uint64
             * @description Memory trees and segments.
             */
            parts: number;
            /**
             * Format: uint64
             * @description The part of these whose bounds ruled them out.
             */
            parts_pruned: number;
            /**
             * Format: uint64
             * @description Tree nodes visited.
             */
            nodes_visited: number;
            /**
             * Format: uint64
             * @description Tree nodes left out with all their events.
             */
            nodes_pruned: number;
            /**
             * Format: uint64
             * @description Tree nodes taken whole.
             */
            nodes_whole: number;
            /**
             * Format: uint64
             * @description Blocks read.
             */
            blocks_read: number;
            /**
             * Format: uint64
             * @description Bytes of the events in these blocks, as they are stored on average.
             */
            bytes_read: number;
            /**
             * Format: uint64
             * @description Blocks at the edge of the query.
             */
            edge_blocks: number;
            /**
             * Format: uint64
             * @description Events tested one by one.
             */
            events_tested: number;
            /**
             * Format: uint64
             * @description Events found to match, before any limit.
             */
            events_matched: number;
            /**
             * Format: double
             * @description Milliseconds of planning.
             */
            plan_ms: number;
            /**
             * Format: double
             * @description Milliseconds of scanning.
             */
            scan_ms: number;
            /**
             * Format: uint64
             * @description Groups of the result.
             */
            groups?: number;
        };
        /** @description The tile matrix sets. */
        TileMatrixSetList: {
            /** @description Each of them. */
            tileMatrixSets: components["schemas"]["TileMatrixSetItem"][];
            /** @description This document in other formats. */
            links: components["schemas"]["Link"][];
        };
        /** @description A tile matrix set by its name. */
        TileMatrixSetItem: {
            /** @description Its name. */
            id: string;
            /** @description Its title. */
            title: string;
            /** @description Its URI. */
            uri: string;
            /** @description Its system of coordinates. */
            crs: string;
            /** @description Its definition. */
            links: components["schemas"]["Link"][];
        };
        /** @description A tile matrix set. */
        TileMatrixSet: {
            /** @description Its name. */
            id: string;
            /** @description Its title. */
            title: string;
            /** @description Its URI. */
            uri: string;
            /** @description Its system of coordinates. */
            crs: string;
            /** @description Its definition. */
            links: components["schemas"]["Link"][];
            /** @description Order of the coordinates. */
            orderedAxes: string[];
            /** @description URI of its well-known set of scales. */
            wellKnownScaleSet: string;
            /** @description The grid of each zoom level. */
            tileMatrices: components["schemas"]["TileMatrix"][];
        };
        /** @description The grid of a zoom level. */
        TileMatrix: {
            /** @description The zoom level. */
            id: string;
            /**
             * Format: double
             * @description Scale for a pixel of 0.28 mm.
             */
            scaleDenominator: number;
            /**
             * Format: double
             * @description Metres of a pixel.
             */
            cellSize: number;
            /** @description `topLeft`. */
            cornerOfOrigin: string;
            /** @description That corner in metres. */
            pointOfOrigin: number[];
            /**
             * Format: uint64
             * @description Tiles on a side.
             */
            matrixWidth: number;
            /**
             * Format: uint64
             * @description Tiles on a side.
             */
            matrixHeight: number;
            /**
             * Format: uint32
             * @description Pixels of a tile.
             */
            tileWidth: number;
            /**
             * Format: uint32
             * @description Pixels of a tile.
             */
            tileHeight: number;
        };
        /** @description The tilesets of a collection. */
        TileSetList: {
            /** @description Each of them. */
            tilesets: components["schemas"]["TileSet"][];
            /** @description This document in other formats. */
            links: components["schemas"]["Link"][];
        };
        /** @description A tileset. Requested alone, it is TileJSON as well. */
        TileSet: {
            /** @description Its title. */
            title: string;
            /** @description `vector`. */
            dataType: string;
            /** @description Its system of coordinates. */
            crs: string;
            /** @description Name of its tile matrix set. */
            tileMatrixSetId: string;
            /** @description URI of its tile matrix set. */
            tileMatrixSetURI: string;
            /** @description Its tiles and its tile matrix set. */
            links: components["schemas"]["Link"][];
            /** @description Where its events are. */
            boundingBox?: components["schemas"]["BoundingBox"];
            /** @description Its layers. */
            layers?: components["schemas"]["Layer"][];
            /** @description Version of TileJSON. */
            tilejson?: string;
            /** @description URLs of its tiles. */
            tiles?: string[];
            /**
             * Format: uint8
             * @description Min zoom level.
             */
            minzoom?: number;
            /**
             * Format: uint8
             * @description Max zoom level.
             */
            maxzoom?: number;
            /** @description West, south, east, north in degrees. */
            bounds?: number[];
            /** @description Its layers, as TileJSON describes them. */
            vector_layers?: components["schemas"]["VectorLayer"][];
        };
        /** @description Where the events of a tileset are. */
        BoundingBox: {
            /** @description West and south. */
            lowerLeft: number[];
            /** @description East and north. */
            upperRight: number[];
            /** @description Their system of coordinates. */
            crs: string;
        };
        /** @description A layer. */
        Layer: {
            /** @description Its name. */
            id: string;
            /** @description `vector`. */
            dataType: string;
        };
        /** @description A layer, as TileJSON describes it. */
        VectorLayer: {
            /** @description Its name. */
            id: string;
            /** @description Its subject. */
            description: string;
            /**
             * Format: uint8
             * @description Min zoom level.
             */
            minzoom: number;
            /**
             * Format: uint8
             * @description Max zoom level.
             */
            maxzoom: number;
            /** @description Types of its properties by their names. */
            fields: {
                [key: string]: unknown;
            };
        };
        /** @description A place. */
        PlaceRecord: {
            /** @description Its id. */
            id?: string;
            /** @description Its name. */
            name: string;
            /** @description Street and number. */
            address?: string;
            /** @description City. */
            city?: string;
            /** @description State. */
            state?: string;
            /** @description Postal code. */
            zipCode?: string;
            /** @description Telephone number. */
            telephoneNumber?: string;
            /**
             * Format: double
             * @description Latitude in degrees.
             */
            latitude: number;
            /**
             * Format: double
             * @description Longitude in degrees.
             */
            longitude: number;
            /**
             * Format: double
             * @description Distance in kilometres, in `near` responses.
             */
            distance?: number;
        };
        /** @description A page of places. */
        Places: {
            /**
             * Format: uint64
             * @description Places in all.
             */
            totalPlaces: number;
            /** @description The places of the page. */
            places: components["schemas"]["PlaceRecord"][];
        };
        /** @description A search and its status. */
        SearchAnswer: {
            /** @description Its id. */
            search: string;
            /** @description `running`; after its end `complete`, `partial` or `absent`. */
            state: string;
            /**
             * Format: uint64
             * @description Milliseconds from its arrival to its deadline.
             */
            deadline_ms: number;
            /**
             * Format: uint64
             * @description Packets with results.
             */
            result_packets: number;
            /**
             * Format: uint64
             * @description Results.
             */
            results: number;
            /** @description Providers by name. */
            providers: {
                [key: string]: components["schemas"]["LegStatus"];
            };
            /** @description Longitude and latitude of the centre of the search, for example of a geocoded address. */
            near?: number[];
            /**
             * Format: double
             * @description Metres around it.
             */
            radius?: number;
            /** @description The URL of its packets. */
            packets: string;
            /** @description Whether the same caller's search was already running. */
            joined?: boolean;
        };
        /** @description The state of a provider in a search. */
        LegStatus: {
            /** @description `asked`, then its outcome. */
            state: string;
            /** @description The reason of the outcome. */
            detail: string;
            /**
             * Format: uint64
             * @description Results.
             */
            results: number;
            /**
             * Format: uint64
             * @description Milliseconds from the arrival of the search to the provider's last result or its end.
             */
            ms: number;
            /** @description Whether it may have more results than requested. */
            more?: boolean;
        };
        /** @description A saved search and its status. */
        SavedSearchAnswer: {
            /** @description Its id. */
            id: string;
            /**
             * Format: date-time
             * @description When it was created.
             */
            created: string;
            /**
             * Format: uint64
             * @description Results sent.
             */
            results: number;
            /**
             * Format: uint64
             * @description Number of the oldest packet kept.
             */
            first_packet: number;
            /**
             * Format: uint64
             * @description Number of the next packet.
             */
            next_packet: number;
            /**
             * Format: uint64
             * @description Packets evicted before any reader took them.
             */
            lost_packets: number;
            /**
             * Format: uint64
             * @description Events that were not matched: too many arrived at once, or while no server ran.
             */
            dropped_events: number;
            /** @description The state of its webhook. */
            webhook?: components["schemas"]["WebhookReport"];
            /** @description The state of its polls. */
            polls?: components["schemas"]["PollReport"];
            /** @description The URL of its packets. */
            packets: string;
        } & {
            [key: string]: unknown;
        };
        /** @description The state of a webhook. */
        WebhookReport: {
            /** @description The URL that packets are sent to. */
            url: string;
            /**
             * Format: uint64
             * @description Number of the packet to send next.
             */
            next_packet: number;
            /**
             * Format: uint64
             * @description Packets sent.
             */
            sent: number;
            /**
             * Format: uint64
             * @description Packets evicted before they were sent.
             */
            lost: number;
            /**
             * Format: uint64
             * @description Packets given up.
             */
            dead: number;
            /** @description Why the last call failed, if it did. */
            failing: string | null;
            /** @description The last packets given up; only in the response for one saved search. */
            dead_letters?: components["schemas"]["DeadLetterReport"][];
        };
        /** @description A packet given up. */
        DeadLetterReport: {
            /**
             * Format: uint64
             * @description Its number.
             */
            seq: number;
            /**
             * Format: date-time
             * @description When it was given up.
             */
            at: string;
            /**
             * Format: uint32
             * @description Calls made for it.
             */
            tries: number;
            /** @description Why the last of them failed. */
            why: string;
            /** @description The packet. */
            packet: unknown;
        };
        /** @description The state of polls. */
        PollReport: {
            /**
             * Format: uint64
             * @description Polls done.
             */
            count: number;
            /** @description When the last one ended. */
            last: string | null;
            /** @description The state of each provider. */
            providers: {
                [key: string]: string;
            };
            /** @description Why the last poll could not start. */
            failing: string | null;
        };
        /** @description A page of saved searches. */
        SavedSearchList: {
            /**
             * Format: uint64
             * @description Saved searches of this page.
             */
            numberReturned: number;
            /** @description Each of them. */
            saved_searches: components["schemas"]["SavedSearchAnswer"][];
            /** @description The next page. */
            links: components["schemas"]["Link"][];
            /** @description Records that were damaged: their names, and what is wrong or was done. */
            damaged?: {
                [key: string]: string;
            };
        };
        /** @description The providers, including Meridian's own collections. */
        ProviderList: {
            /** @description Each of them. */
            providers: components["schemas"]["ProviderStatus"][];
        };
        /** @description A provider: the questions it takes, and its health. */
        ProviderStatus: {
            /** @description Its name in questions and packets. */
            name: string;
            /** @description Its title. */
            title: string;
        } & {
            [key: string]: unknown;
        };
        /** @description A new token. Its text is shown this once. */
        TokenAnswer: {
            /** @description Names the token in lists, and to revoke it. */
            id: string;
            /** @description The tenant that it belongs to; absent for an operator's. */
            tenant?: string;
            /** @description `reader`, `writer`, `admin` or `operator`. */
            role: string;
            /** @description The collections that it covers, as a pattern. */
            collections: string;
            /** @description When it was created. */
            created: string;
            /** @description When it expires; absent where it does not. */
            expires?: string;
            /** @description Its text, for `Authorization: Bearer`. */
            token: string;
        };
        /** @description The tokens of a tenant; for operators who name no tenant, all of them. */
        TokenList: {
            /** @description In order of creation. */
            tokens: components["schemas"]["TokenInfo"][];
            /** @description For operators: tokens whose records are damaged, which admit nobody. Absent if there are none. */
            damaged?: components["schemas"]["DamagedToken"][];
        };
        /** @description A token, without its secret. */
        TokenInfo: {
            /** @description Names the token in lists, and to revoke it. */
            id: string;
            /** @description The tenant that it belongs to; absent for an operator's. */
            tenant?: string;
            /** @description `reader`, `writer`, `admin` or `operator`. */
            role: string;
            /** @description The collections that it covers, as a pattern. */
            collections: string;
            /** @description When it was created. */
            created: string;
            /** @description When it expires; absent where it does not. */
            expires?: string;
        };
        /** @description A token whose record is damaged. */
        DamagedToken: {
            /** @description Names the token, to revoke it. */
            id: string;
            /** @description What is wrong with its record. */
            detail: string;
        };
        /** @description A tenant. */
        TenantInfo: {
            /** @description Its name. */
            name: string;
            /**
             * Format: uint32
             * @description Its share of the server beside others.
             */
            weight: number;
            /** @description Whether its callers are refused. */
            suspended: boolean;
            /** @description The collections that callers without a credential may read, as a pattern; absent for none. */
            anonymous?: string;
            /** @description Limits on what it uses, by name; what is absent has no limit. */
            quotas: {
                [key: string]: number;
            };
            /**
             * Format: uint64
             * @description Its collections; absent here and below while the server that has them cannot be reached.
             */
            collections?: number;
            /**
             * Format: uint64
             * @description Its events; absent here and below at a server that shows what an owner has flushed.
             */
            events?: number;
            /**
             * Format: uint64
             * @description Bytes of its events, in files and in memory, as the quota `stored_bytes` counts them.
             */
            bytes?: number;
        };
        /** @description The tenants of the server. */
        TenantList: {
            /** @description In order of their names. */
            tenants: components["schemas"]["TenantInfo"][];
        };
        /** @description A user, without what is kept of its password. */
        UserInfo: {
            /** @description Its name, unique in its tenant. */
            name: string;
            /** @description The login: the name, with `TENANT/` before it in another tenant than the default one. */
            login: string;
            /** @description The tenant that it belongs to; absent for an operator. */
            tenant?: string;
            /** @description `reader`, `writer`, `admin` or `operator`. */
            role: string;
            /** @description The collections that it covers, as a pattern. */
            collections: string;
            /** @description When it was created. */
            created: string;
            /** @description Whether it may not sign in. */
            disabled: boolean;
        };
        /** @description The users of a tenant; for operators, all of them. */
        UserList: {
            /** @description In order of what they sign in with. */
            users: components["schemas"]["UserInfo"][];
        };
        /** @description The signed-in user; only `sign_in` is present if there is none. */
        Session: {
            /** @description Whether there are users, who sign in at `/login`. */
            sign_in: boolean;
            /** @description The user's login. */
            user?: string;
            /** @description The tenant that it belongs to; absent for an operator. */
            tenant?: string;
            /** @description `reader`, `writer`, `admin` or `operator`. */
            role?: string;
            /** @description The collections that it covers, as a pattern. */
            collections?: string;
            /** @description For the header `X-CSRF-Token`, which requests with the session's cookie need, apart from GET, HEAD and OPTIONS. */
            csrf_token?: string;
            /** @description When the session ends at the latest. */
            expires?: string;
        };
        /** @description The server's current work, and the tenants behind it. */
        Load: {
            /** @description When this was so. */
            time: string;
            /**
             * Format: double
             * @description Seconds that recent figures cover; absent where there are none yet.
             */
            window_s?: number;
            /** @description Requests that compute, and requests that wait. */
            requests: components["schemas"]["RequestLoad"];
            /** @description Open connections. */
            connections: components["schemas"]["Level"];
            /** @description Open streams of events and packets. */
            streams: components["schemas"]["Level"];
            /** @description Running searches. */
            searches: components["schemas"]["Level"];
            /**
             * Format: double
             * @description How long the oldest queued work of searches has waited, in milliseconds.
             */
            search_wait_ms: number;
            /** @description Memory by purpose. */
            memory: components["schemas"]["MemoryLoad"][];
            /** @description The tenants with running, waiting or recently refused requests, busiest first; at most 20. */
            tenants: components["schemas"]["TenantLoad"][];
            /**
             * Format: uint64
             * @description All tenants.
             */
            tenants_in_all: number;
            /** @description The slowest requests of the last 15 minutes that took longer than `log.slow`, slowest first; at most 20. */
            slow: components["schemas"]["SlowRequest"][];
        };
        /** @description Requests of all tenants. */
        RequestLoad: {
            /**
             * Format: uint64
             * @description Slots that there are now.
             */
            slots: number;
            /**
             * Format: uint64
             * @description Requests that hold one.
             */
            running: number;
            /**
             * Format: uint64
             * @description Requests that began and were overtaken.
             */
            paused: number;
            /**
             * Format: uint64
             * @description Requests that have not begun.
             */
            waiting: number;
            /**
             * Format: uint64
             * @description Requests that got no slot, since the start.
             */
            refused: number;
        };
        /** @description How many there are, of how many there may be. */
        Level: {
            /**
             * Format: uint64
             * @description Now.
             */
            now: number;
            /**
             * Format: uint64
             * @description At most.
             */
            max: number;
            /**
             * Format: uint64
             * @description Refused since the start, where that is counted.
             */
            refused?: number;
        };
        /** @description Memory for one purpose. */
        MemoryLoad: {
            /** @description `bodies`, `batches`, `answers`, `conditions` (of streams), `queries`, `packets` or `writes`. */
            purpose: string;
            /**
             * Format: uint64
             * @description Bytes held.
             */
            held: number;
            /**
             * Format: uint64
             * @description Bytes that there may be; absent for `writes`, which the store bounds (`store.memory_bytes`).
             */
            limit?: number;
        };
        /** @description A tenant. */
        TenantLoad: {
            /** @description Its name. */
            name: string;
            /**
             * Format: uint32
             * @description Its share of the server beside others.
             */
            weight: number;
            /** @description Its requests by class; classes without one are left out. */
            classes: components["schemas"]["ClassLoad"][];
            /**
             * Format: double
             * @description Processor time since the start, in seconds.
             */
            processor_s: number;
            /**
             * Format: double
             * @description Processors used recently, on average; absent until that is known.
             */
            processors?: number;
            /**
             * @description Requests refused since the start, by reason: a quota, or `queue_full`, `waited` and `deadline` for want of a
             *     slot.
             */
            refused: {
                [key: string]: number;
            };
            /** @description The same over the last seconds; absent until that is known. */
            refused_of_late?: {
                [key: string]: number;
            };
            /** @description The quotas that are set. */
            quotas: components["schemas"]["QuotaLoad"][];
            /** @description Bytes of memory that it holds, by purpose. */
            memory: {
                [key: string]: number;
            };
            /**
             * Format: uint64
             * @description Open streams of events and packets.
             */
            streams: number;
            /**
             * Format: uint64
             * @description Running searches.
             */
            searches: number;
        };
        /** @description The requests of one class of a tenant. */
        ClassLoad: {
            /** @description `interactive`, `batch` or `background`. */
            class: string;
            /**
             * Format: uint64
             * @description Requests that hold a slot.
             */
            running: number;
            /**
             * Format: uint64
             * @description Requests that began and were overtaken.
             */
            paused: number;
            /**
             * Format: uint64
             * @description Requests that have not begun.
             */
            waiting: number;
            /**
             * Format: double
             * @description How long the first of those has waited, in milliseconds.
             */
            oldest_wait_ms?: number;
        };
        /** @description A quota of a tenant. */
        QuotaLoad: {
            /** @description Its name. */
            quota: string;
            /**
             * Format: uint64
             * @description Its limit.
             */
            limit: number;
            /**
             * Format: uint64
             * @description Its use: current, in all, or, for a quota by the second, the unpaid use, which may exceed the limit. Absent if
             *     it holds for each request alone.
             */
            used?: number;
        };
        /** @description A request that took longer than `log.slow`. */
        SlowRequest: {
            /** @description When it ended. */
            time: string;
            /** @description Its caller's tenant. */
            tenant: string;
            /** @description Its method. */
            method: string;
            /** @description Its path in the route table. */
            route: string;
            /**
             * Format: uint16
             * @description Its status; 499 where its client left first.
             */
            status: number;
            /** @description Its id, as in the header `X-Request-Id` and in log lines. */
            request_id: string;
            /**
             * Format: double
             * @description Milliseconds that the server took for it, without those of its client.
             */
            ms: number;
            /** @description Milliseconds by stage. */
            stages: {
                [key: string]: number;
            };
            /**
             * Format: uint64
             * @description Bytes of events read.
             */
            bytes_read: number;
            /**
             * Format: uint64
             * @description Tree nodes visited.
             */
            nodes_visited: number;
        };
        /** @description The server that answers, and its cluster. */
        ClusterAnswer: {
            /** @description The server that answers. */
            server: components["schemas"]["AnsweringServer"];
            /** @description Its cluster, as `meridian cluster status --json` prints it; null of a server that is one process. */
            cluster: components["schemas"]["Cluster"] | null;
        };
        /** @description The server that answers. */
        AnsweringServer: {
            /** @description `all`: one process, without a cluster; `gateway` or `scan`. */
            role: string;
            /** @description Its name in its cluster; null of one process. */
            node: string | null;
        };
        /** @description A cluster, at one moment. */
        Cluster: {
            /**
             * Format: uint32
             * @description 1; another number if a name is removed or changes its meaning.
             */
            version: number;
            /** @description Time of the survey. */
            time: string;
            /** @description Address of the bucket. */
            bucket: string;
            /** @description Nothing of a cluster is in the bucket: its address, or the prefix in it, may be wrong. */
            empty: boolean;
            /** @description Where the log of the collections is: `bucket` or `nats`. */
            log: string;
            /** @description Why the log in NATS was not checked. */
            log_error: string | null;
            /**
             * @description The holder of the lease, or the last one; null before the first owner. With several groups of partitions, that
             *     of group 0.
             */
            owner: components["schemas"]["Owner"] | null;
            /** @description The same of each group of partitions, if there are several. */
            owners: components["schemas"]["ClusterGroup"][];
            /** @description The collections, by tenant and name. */
            collections: components["schemas"]["ClusterCollection"][];
            /** @description Processes that only read the bucket, by their pins. */
            readers: components["schemas"]["ClusterReader"][];
            /** @description Gateways and scan servers, as they say of themselves. */
            servers: components["schemas"]["ClusterServer"][];
            /** @description All processes by the roll, owners included. One that ended without a word stays for some time. */
            nodes: components["schemas"]["ClusterNode"][];
        };
        /** @description The holder, by its lease. */
        Owner: {
            /** @description Whether it still owns the collections. */
            state: components["schemas"]["LeaseState"];
            /** @description Its name. */
            node: string;
            /** @description Host and port by which gateways reach it. */
            address: string;
            /**
             * Format: uint64
             * @description Number of its term.
             */
            epoch: number;
            /**
             * Format: uint64
             * @description Length of the lease.
             */
            lease_ms: number;
            /**
             * Format: int64
             * @description Time since the last renewal.
             */
            age_ms: number | null;
            /**
             * Format: int64
             * @description Time until the lease ends without another renewal; less than 0: since then.
             */
            expires_in_ms: number | null;
            /** @description Whether it answers the process that looks; null unless it holds the lease. */
            reachable: boolean | null;
            /** @description Why it does not answer. */
            reason: string | null;
        };
        /** @description The state of a lease. */
        LeaseState: "held" | "lapsed" | "resigned";
        /** @description The owner of a group of partitions. */
        ClusterGroup: {
            /**
             * Format: uint16
             * @description Its number, from 0.
             */
            group: number;
            /** @description The holder of its lease, or the last one; null before the first owner. */
            owner: components["schemas"]["Owner"] | null;
        };
        /** @description A collection. */
        ClusterCollection: {
            /** @description Its tenant. */
            tenant: string;
            /** @description Its name. */
            collection: string;
            /** @description Why a part of it cannot be read; its values are then null. */
            error: string | null;
            /**
             * Format: uint64
             * @description Number of partitions.
             */
            partitions: number | null;
            /** @description Version of the newest manifest. */
            manifest: string | null;
            /**
             * Format: uint64
             * @description Epoch of the manifest's writer.
             */
            epoch: number | null;
            /** @description Position up to which the segments have all writes; a list, of several partitions. */
            position: components["schemas"]["Position"] | null;
            /**
             * Format: uint64
             * @description Live segments.
             */
            segments: number | null;
            /**
             * Format: uint64
             * @description Rows of these segments, those included that were replaced or deleted.
             */
            rows: number | null;
            /**
             * Format: uint64
             * @description Bytes of these segments.
             */
            bytes: number | null;
            /** @description Records of the log that no manifest covers yet. */
            tail: components["schemas"]["LogTail"] | null;
            /** @description The segments have every write that was acknowledged before this time, according to the owner. */
            complete: string | null;
            /**
             * Format: int64
             * @description Time since then.
             */
            complete_age_ms: number | null;
            /** @description The objects of it that readers use; null without a reader. */
            pinned: components["schemas"]["Pinned"] | null;
        };
        /** @description A position, as [`Positions`] serialises. */
        Position: number | number[];
        /** @description The part of a log that no manifest covers. */
        LogTail: {
            /**
             * Format: uint64
             * @description Objects, or messages.
             */
            entries: number;
            /**
             * Format: uint64
             * @description Bytes; of objects only.
             */
            bytes: number | null;
        };
        /** @description The objects of a collection that readers use. */
        Pinned: {
            /**
             * Format: uint64
             * @description How many use it.
             */
            readers: number;
            /** @description Version of the oldest manifest in use. */
            manifest: string;
            /** @description Min sequence number of a snapshot in use. */
            snapshot: string;
        };
        /** @description A process that only reads, by its pin. */
        ClusterReader: {
            /** @description A random number that the process has until it ends. */
            reader: string;
            /**
             * Format: int64
             * @description Age of its pin.
             */
            age_ms: number | null;
            /** @description Whether the pin still counts; null: its age is not known. */
            counts: boolean | null;
            /**
             * Format: uint64
             * @description Collections that it reads.
             */
            collections: number;
            /** @description The report of a scan server; null for other roles. */
            scan: components["schemas"]["ClusterScan"] | null;
            /** @description Why its pin is unreadable. */
            error: string | null;
        };
        /** @description A scan server that answers gateways, as of when its pin was written. */
        ClusterScan: {
            /** @description Where gateways reach it. */
            address: string;
            /** @description Its group, which profiles name. */
            group: string;
            /**
             * Format: uint64
             * @description Questions that work on a batch.
             */
            working: number;
            /**
             * Format: uint64
             * @description Questions that have started and not ended.
             */
            started: number;
            /**
             * Format: uint64
             * @description Questions that wait for their start.
             */
            waiting: number;
        };
        /** @description A gateway or a scan server, by its own report. */
        ClusterServer: {
            /** @description A random number that the process has until it ends. */
            server: string;
            /** @description `gateway` or `scan`; null if it does not say. */
            role: string | null;
            /** @description Its name. */
            node: string | null;
            /** @description Where it listens for clients. */
            address: string | null;
            /** @description Its version of Meridian. */
            version: string | null;
            /**
             * Format: int64
             * @description Time since its last report, which it renews every 15 s at the latest.
             */
            age_ms: number | null;
            /** @description Whether its report is recent; null if the time is unknown. */
            counts: boolean | null;
            /** @description Its work; null if it does not say. */
            load: components["schemas"]["ServerLoad"] | null;
            /** @description Why its report cannot be read. */
            error: string | null;
        };
        /** @description The work of a server. Sums count from its start. */
        ServerLoad: {
            /**
             * Format: uint64
             * @description Slots for requests that compute.
             * @default 0
             */
            slots: number;
            /**
             * Format: uint64
             * @description Requests that hold one.
             * @default 0
             */
            running: number;
            /**
             * Format: uint64
             * @description Requests that wait for one.
             * @default 0
             */
            waiting: number;
            /**
             * Format: uint64
             * @description Requests that got none, in sum.
             * @default 0
             */
            refused: number;
            /**
             * Format: uint64
             * @description Open connections.
             * @default 0
             */
            connections: number;
            /**
             * @description Its caches of blocks; null of a server that reads no segments.
             * @default null
             */
            caches: components["schemas"]["Caches"] | null;
            /**
             * @description Its eventual reads; null of a server that asks no scan servers.
             * @default null
             */
            scan_reads: components["schemas"]["ScanReads"] | null;
        };
        /** @description Hits of a server's block caches, and bytes fetched. */
        Caches: {
            /**
             * Format: uint64
             * @description Blocks that were found, in sum.
             * @default 0
             */
            hits: number;
            /**
             * Format: uint64
             * @description Blocks that were fetched, in sum.
             * @default 0
             */
            misses: number;
            /**
             * Format: uint64
             * @description Bytes that were fetched, in sum.
             * @default 0
             */
            bytes_fetched: number;
        };
        /** @description Eventual reads that a gateway sent to scan servers. A question is of one partition. */
        ScanReads: {
            /**
             * Format: uint64
             * @description Questions, in sum.
             * @default 0
             */
            questions: number;
            /**
             * Format: uint64
             * @description Requests to scan servers for these, in sum.
             * @default 0
             */
            attempts: number;
            /**
             * Format: uint64
             * @description Requests that were answered busy, in sum.
             * @default 0
             */
            busy: number;
            /**
             * Format: uint64
             * @description Requests that failed, in sum.
             * @default 0
             */
            failed: number;
            /**
             * Format: uint64
             * @description Second requests beside one that was slow to begin, in sum.
             * @default 0
             */
            hedges: number;
            /**
             * Format: uint64
             * @description Questions that went to the owner, in sum: there was no scan server, none could be reached, or all refused.
             * @default 0
             */
            fallbacks: number;
            /**
             * Format: uint64
             * @description Questions that got 503 for one of these reasons, in sum: the owner was not to answer, or took no more.
             * @default 0
             */
            refused: number;
        };
        /** @description A process, by its entry on the roll. */
        ClusterNode: {
            /** @description Its name, by which orders find it. */
            node: string;
            /** @description `owner`, `gateway` or `scan`. */
            role: string;
            /** @description Where clients reach it, or gateways an owner. */
            address: string;
            /** @description Its version of Meridian. */
            program: string;
            /**
             * Format: uint32
             * @description The forms of objects that it reads and writes, as a number that grows with versions.
             */
            level: number;
            /** @description Its role. */
            condition: components["schemas"]["NodeCondition"];
            /** @description Names of the leases that it holds. */
            leases: string[];
            /**
             * Format: int64
             * @description Time since its last report, which it renews after two thirds of a lease.
             */
            age_ms: number | null;
        };
        /** @description The role of a process. */
        NodeCondition: "serves" | "stands_by" | "drained" | "other";
        /** @description A page of the audit log. It may be empty and have a `next` link: a page reads a bounded part of the log. */
        AuditPage: {
            /** @description Lines, oldest first. */
            acts: components["schemas"]["AuditLine"][];
            /** @description To the next page. */
            links: components["schemas"]["Link"][];
        };
        /** @description A line of the audit log. */
        AuditLine: {
            /**
             * Format: uint64
             * @description Its number, from 1.
             */
            n: number;
            /** @description When it was written. */
            time: string;
            /** @description The id of the request. */
            request: string;
            /** @description The caller: a token's id, `user:NAME`, `jwt:ISSUER:SUBJECT`, `socket`, `local` or `anonymous`. */
            who: string;
            /** @description The tenant that it concerns; empty for the server. */
            tenant: string;
            /** @description The client's address, or `socket`. */
            from: string;
            /** @description The operation, by its name in this description. */
            act: string;
            /** @description The object of the act, as a path. */
            target: string;
            /** @description The collection, where it is one. */
            collection?: string;
            /** @description The request, in words. */
            change?: string;
            /**
             * Format: uint16
             * @description The status of the response; absent in the line that records the start of the act.
             */
            status?: number;
            /**
             * Format: uint64
             * @description The line that records the start of this act.
             */
            began?: number;
            /**
             * Format: uint64
             * @description The number of this line when it was first written; that one was removed to make room.
             */
            first?: number;
            /**
             * Format: uint64
             * @description The lines up to this number were removed to make room.
             */
            trimmed?: number;
            /**
             * Format: uint64
             * @description Refused attempts before this line that got none of their own.
             */
            unrecorded?: number;
            /** @description SHA-256 of the line before it in the log. */
            previous: string;
        };
        /** @description One of `keywords`, a place and `author` is required; see docs/searches.md. */
        Question: {
            /** @description Words that the text must have, with `OR`, `NOT`, quotes and parentheses. */
            keywords?: string;
            /** @description Longitude and latitude in degrees. */
            near?: number[];
            /**
             * Format: double
             * @description Metres.
             */
            radius?: number;
            /** @description West, south, east, north in degrees. */
            bbox?: number[];
            /** @description A polygon as GeoJSON. */
            polygon?: {
                /**
                 * @description `Polygon`.
                 * @enum {string}
                 */
                type: "Polygon";
                /** @description Its rings. */
                coordinates: unknown[];
            };
            /** @description Name of a place. */
            address?: string;
            /** @description Name of the author. */
            author?: string;
            /** @description Names of the providers to ask; all that are enabled without it. */
            providers?: string[];
            /** @description RFC 3339, or a date: that whole day in UTC. */
            start?: string;
            /** @description RFC 3339, or a date: that whole day in UTC. */
            end?: string;
            /**
             * @description The media that a result must have.
             * @enum {string}
             */
            media?: "images" | "videos" | "any";
            /** @description Two letters (ISO 639-1), or `any`. */
            language?: string;
            /**
             * Format: uint64
             * @description Max results of each provider.
             */
            limit?: number;
            /**
             * Format: uint64
             * @description Milliseconds.
             */
            timeout?: number;
            /**
             * @description Whether a client waits for it.
             * @enum {string}
             */
            priority?: "quick" | "background";
            /** @description Of saved searches: the transitions of moving objects to report. */
            when?: ("enter" | "inside" | "exit")[];
            /** @description Where its results are stored. */
            keep?: {
                /** @description Name of the collection. */
                collection: string;
                /**
                 * Format: uint64
                 * @description Hours until they expire.
                 */
                hours?: number;
            };
        };
        /** @description A question that is asked from now on. Its members may be beside `name` too. */
        SavedSearch: {
            /** @description For people; at most 200 bytes. */
            name?: string;
            /** @description What is searched for. */
            question?: components["schemas"]["Question"];
            /** @description Where packets are sent. */
            webhook?: {
                /**
                 * Format: uri
                 * @description Address of the receiver.
                 */
                url: string;
                /** @description Key of the signatures. */
                secret: string;
            };
            /**
             * Format: uint64
             * @description Seconds between polls of outside providers; the operator may set a higher min.
             */
            poll_s?: number;
        };
        /** @description A JSON Schema with x-ogc-role and x-meridian-… members. */
        JsonSchema: {
            /**
             * @description `object`.
             * @enum {string}
             */
            type?: "object";
            /** @description Title of the collection. */
            title?: string;
            /** @description Subject of the collection. */
            description?: string;
            /** @description The schema of each property of an event, by its name. */
            properties: {
                [key: string]: {
                    [key: string]: unknown;
                };
            };
            /** @description Names of the properties that every event has. */
            required?: string[];
            /**
             * @description `false`: properties without a schema are refused.
             * @enum {boolean}
             */
            additionalProperties?: false;
            /**
             * @description Whether a query sees all events, or the newest of each object.
             * @enum {string}
             */
            "x-meridian-mode"?: "history" | "latest";
            /** @description ISO 8601 duration. */
            "x-meridian-time-unit"?: string;
            /** @description The id, if its name is that of another property too. */
            "x-meridian-id"?: {
                /** @description Its name. */
                name: string;
                /** @description Whether clients give it; otherwise the server makes it. */
                given: boolean;
            };
        };
        /** @description Changes of a collection; what is absent stays. */
        Settings: {
            /** @description A new name, without other changes. */
            id?: string;
            /** @description ISO 8601 duration; null keeps them for ever. */
            retention?: string | null;
            /**
             * Format: uint64
             * @description Bytes of events; null for no limit.
             */
            retention_bytes?: number | null;
            /** @description New optional fields, as in a JSON Schema. */
            properties?: {
                [key: string]: {
                    [key: string]: unknown;
                };
            };
        };
        /** @description A JSON Merge Patch (RFC 7396) of the event as GeoJSON. */
        Patch: {
            /** @description A geometry, which replaces the event's; null for none. */
            geometry?: {
                [key: string]: unknown;
            } | null;
            /** @description New values by their names; null removes one. */
            properties?: {
                [key: string]: unknown;
            };
        };
        /** @description What is to be backed up; everything if the body is empty. */
        Backup: {
            /** @description Files in the folder, with their checksums (CRC32C). */
            have?: {
                [key: string]: number;
            };
            /** @description The only tenant that is saved; without it all are. */
            tenant?: string;
            /** @description 32 bytes in base64 or hexadecimal, which seal secrets; without it they are left out. */
            key?: string;
        };
        /** @description A new token. */
        NewToken: {
            /** @description Operators only; the caller's own where it is absent. */
            tenant?: string;
            /**
             * @description The rights of its callers.
             * @enum {string}
             */
            role: "reader" | "writer" | "admin" | "operator";
            /** @description Names of collections, separated by commas; a name may end in `*`. */
            collections?: string;
            /** @description An RFC 3339 instant, or an ISO 8601 duration from now. */
            expires?: string;
        };
        /** @description A new tenant, or changes of one; absent settings stay. */
        NewTenant: {
            /** @description Its name, which a new tenant needs and a change keeps. */
            name?: string;
            /**
             * Format: uint32
             * @description Share of the server beside other tenants; 1 by default.
             */
            weight?: number;
            /** @description Whether its callers are refused. */
            suspended?: boolean;
            /**
             * @description Names of collections that callers without a token may read, separated by commas; a name may end in `*`. Null in
             *     a change takes the right away.
             */
            anonymous?: string | null;
            /** @description Limits on the tenant's use; null in a change removes one. Unnamed ones stay. */
            quotas?: {
                requests_per_second?: number | null;
                events_per_second?: number | null;
                scanned_bytes_per_second?: number | null;
                result_bytes_per_second?: number | null;
                concurrent_requests?: number | null;
                scanned_bytes_per_request?: number | null;
                searches?: number | null;
                streams?: number | null;
                saved_searches?: number | null;
                stored_bytes?: number | null;
            };
        };
        /** @description A new user. */
        NewUser: {
            /** @description Small letters, digits, `-`, `_`, `.`, `+`, `@`; unique in the tenant. */
            name: string;
            /** @description Operators only; the caller's own where it is absent. */
            tenant?: string;
            /**
             * @description The user's rights.
             * @enum {string}
             */
            role: "reader" | "writer" | "admin" | "operator";
            /** @description Names of collections, separated by commas; a name may end in `*`. */
            collections?: string;
            /**
             * Format: password
             * @description At least 12 characters.
             */
            password: string;
        };
        /** @description Changes of a user; absent settings stay. */
        UserChange: {
            /**
             * @description The user's rights.
             * @enum {string}
             */
            role?: "reader" | "writer" | "admin" | "operator";
            /** @description Names of collections, separated by commas; a name may end in `*`. */
            collections?: string;
            /**
             * Format: password
             * @description At least 12 characters.
             */
            password?: string;
            /** @description Whether the user may not sign in. */
            disabled?: boolean;
        };
        /** @description Name and password of a user. */
        SignIn: {
            /** @description The user's login: the name, with `TENANT/` before it in another tenant than the default one. */
            name: string;
            /**
             * Format: password
             * @description The user's password.
             */
            password: string;
            /** @description Path on this server to go to; forms only. */
            next?: string;
        };
        /** @description A form that ends the session. */
        SignOut: {
            /** @description Instead of the header `X-CSRF-Token`, which a form cannot send. */
            csrf_token?: string;
        };
        /** @description The current password, and the new one. */
        PasswordChange: {
            /**
             * Format: password
             * @description That of now.
             */
            password: string;
            /**
             * Format: password
             * @description At least 12 characters.
             */
            new: string;
            /** @description In forms, which cannot send the header `X-CSRF-Token`. */
            csrf_token?: string;
        };
        Text: string;
        Page: string;
        /** Format: binary */
        Binary: string;
        Document: Record<string, never>;
        Features: components["schemas"]["Feature"] | components["schemas"]["FeatureCollection"];
        AggregateAnswer: components["schemas"]["Aggregate"] | components["schemas"]["ExplainedGroups"];
        DensityAnswer: components["schemas"]["Density"] | components["schemas"]["ExplainedGroups"];
    };
    responses: {
        /** @description A refusal or failure, as RFC 9457 problem details; as a page for a browser that opens one. */
        Problem: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
                "text/html": components["schemas"]["Page"];
            };
        };
    };
    parameters: {
        /** @description Name of the collection. */
        c: string;
        /** @description Name of the tenant. */
        t: string;
        /** @description Name of an issuer, as the operator gave it. */
        issuer: string;
        /** @description Name of the user, in the tenant of the caller or of the header Meridian-Tenant. */
        name: string;
        /** @description Id of the event, search or saved search. */
        id: string;
        /** @description Id of the place. */
        placeId: string;
        /** @description Latitude in degrees. */
        latitude: number;
        /** @description Longitude in degrees. */
        longitude: number;
        /** @description Radius in kilometres; 0 is 0.5, above 50 is 50. */
        radiusKm: number;
        /** @description Name of the tile matrix set. */
        tileMatrixSetId: "WebMercatorQuad";
        /** @description Zoom level. */
        tileMatrix: number;
        /** @description Row, from the north. */
        tileRow: number;
        /** @description Column, from the west. */
        tileCol: number;
        /** @description Path of the file. */
        file: string;
        /** @description Format of the response; takes precedence over `Accept`. */
        f: "json" | "html";
        /** @description Box: west, south, east, north (or six numbers with heights, which are ignored). West greater than east crosses the antimeridian. */
        bbox: number[] & (unknown | unknown);
        /** @description Coordinate reference system of `bbox`. */
        "bbox-crs": "http://www.opengis.net/def/crs/OGC/1.3/CRS84" | "http://www.opengis.net/def/crs/EPSG/0/4326" | "http://www.opengis.net/def/crs/EPSG/0/3857";
        /** @description Coordinate reference system of the response. CSV, Arrow, Parquet, FlatGeobuf and GeoPackage are served in CRS84 only. */
        crs: "http://www.opengis.net/def/crs/OGC/1.3/CRS84" | "http://www.opengis.net/def/crs/EPSG/0/4326" | "http://www.opengis.net/def/crs/EPSG/0/3857";
        /** @description Coordinate reference system of `filter`. */
        "filter-crs": "http://www.opengis.net/def/crs/OGC/1.3/CRS84" | "http://www.opengis.net/def/crs/EPSG/0/4326" | "http://www.opengis.net/def/crs/EPSG/0/3857";
        /** @description Instant, or interval with `..` for an open end (RFC 3339). */
        datetime: string;
        /** @description Max events of a page; more than 10000 is taken as 10000. */
        limit: number;
        /** @description Counts per cell in this tile, even where its events are few. */
        density: boolean;
        /** @description A numeric property: each cell of a tile of counts also has the number of its `values`, and their average as `avg`. */
        avg: string;
        /** @description Start of the page, from a `next` link. */
        token: string;
        /** @description A CQL2 expression. */
        filter: string;
        /** @description Encoding of `filter`; `cql-text` is `cql2-text` as clients of its drafts write it (booleans as 0 and 1). */
        "filter-lang": "cql2-text" | "cql2-json" | "cql-text";
        /** @description Position (longitude,latitude): events are ordered by distance, nearest first. */
        near: number[];
        /** @description Max distance from `near` in metres (great circle). */
        radius: number;
        /** @description Only the k events nearest to `near`. */
        nearest: number;
        /** @description Names of the properties to return, separated by commas. */
        properties: string[];
        /** @description Properties to sort by, each with `+` (the default) or `-` before it; needs a `limit` in the bulk formats. */
        sortby: string[];
        /** @description `immediate` shows every acknowledged write. `eventual` may miss the newest ones: in a cluster, scan servers serve it, and `Age` states the staleness. A scan server serves `eventual` only. */
        consistency: "immediate" | "eventual";
        /** @description With `consistency=eventual`: the type of scan, by which a gateway chooses a profile of scan servers. Others have the default profile. */
        scan_type: string;
        /** @description An object's id: its events as one line. */
        track: string;
        /** @description For objects and saved searches: only names that sort after this one; a `next` link has it. For packets: only greater numbers. For streams: only events after this position, which an event or the response to a write contains. */
        after: string;
        /** @description Transitions of moving objects to report: some of `enter`, `inside` and `exit`, separated by commas. */
        when: ("enter" | "inside" | "exit")[];
        /** @description Max deviation of the simplified `track` line, in metres. */
        simplify: number;
        /** @description Return the visited and pruned parts of the index instead of the result. */
        explain: boolean;
        /** @description Whether the page asks for itself again every two seconds. */
        refresh: "on" | "off";
        /** @description Deadline in milliseconds. */
        timeout: number;
        /** @description `count`, `sum(f)`, `avg(f)`, `min(f)`, `max(f)`, `median(f)`, `percentile(f,95)`, `distinct(f)`, `top(f,5)`, with commas between. */
        function: string[];
        /** @description Length of the windows of time (ISO 8601 duration). */
        window: string;
        /** @description Time zone whose midnight windows are aligned to. */
        zone: string;
        /** @description Include empty windows. */
        empty: boolean;
        /** @description Properties to group by. */
        by: string[];
        /** @description Columns of the grid. */
        width: number;
        /** @description Rows of the grid. */
        height: number;
        /** @description The failures that an acknowledged event survives. */
        durability: "ephemeral" | "local" | "replicated";
        /** @description Age, by event time, from which events are dropped (ISO 8601 duration). */
        retention: string;
        /** @description Bytes of events from which the oldest are dropped. */
        retention_bytes: number;
        /** @description Number of partitions of a new collection, each with a log of its own; by default that of the server's settings. */
        partitions: number;
        /** @description Max events that the new retention may remove; without it, a retention that removes any gets 409 with their number. */
        confirm: number;
        /** @description In a collection of mode `latest`: all events, not only the newest of each object. */
        history: boolean;
        /** @description Path on this server to go to after signing in. */
        next: string;
        /** @description Page, from 0. */
        p: number;
        /** @description Format of the response; takes precedence over `Accept`. */
        "f-events": "json" | "html" | "csv" | "ndjson" | "geojsonseq" | "arrow" | "parquet" | "flatgeobuf" | "gpkg";
        /** @description Format of the response; takes precedence over `Accept`. */
        "f-table": "json" | "csv" | "arrow";
        /** @description Format of the response; takes precedence over `Accept`. */
        "f-lines": "json" | "ndjson";
        /** @description Format of the response; takes precedence over `Accept`. */
        "f-tile": "mvt";
        /** @description Format of the response; takes precedence over `Accept`. */
        "f-json": "json";
        /** @description Only lines after this number; a `next` link has it. */
        "acts-after": number;
        /** @description Max lines of a page; more than 1000 is taken as 1000. */
        "acts-limit": number;
        /** @description Any queryable as a parameter of the same name: events whose property has this value. */
        queryable: {
            [key: string]: string;
        };
        /** @description A key for this write. Sent again with the same events, it changes nothing; with others, it is refused (422). */
        "Idempotency-Key": string;
        /** @description Coordinate reference system of a GeoJSON body: a URI in angle brackets; CRS84 without it. */
        "Content-Crs": string;
        /** @description `handling=lenient` accepts a body, drops heights and ids that cannot be stored, and counts them. */
        Prefer: string;
        /** @description Deadline in milliseconds. */
        "Meridian-Timeout": string;
        /** @description Position of a write, as the header `Meridian-Position` of its answer has it: the response shows at least that. A server of a cluster that has not got it waits for it, until the deadline and 60 s at most by default, and answers 503 then. Another server has every write, and answers 503 at once. */
        "Meridian-After": string;
        /** @description Write only if the event, or the definition of the collection, has one of these tags (`ETag` of a read), or `*` if there is one: else 412. A collection is removed with a tag only if it was never written to. */
        "If-Match": string;
        /** @description Tags (`ETag` of earlier responses). A read of the same state is answered with 304. A write is done only if the event has none of them; `*`: if there is no such event or collection. Else 412. */
        "If-None-Match": string;
        /** @description One range of bytes, such as `bytes=0-1023`. Several get the whole file. */
        Range: string;
        /** @description A tag or date: the range counts only if the file is still the same. */
        "If-Range": string;
        /** @description The last packet, or the position of the last event, that the client has. The response starts after it. */
        "Last-Event-ID": string;
    };
    requestBodies: never;
    headers: {
        /** @description The snapshot that was read. */
        "Meridian-Snapshot": string;
        /** @description Age of the snapshot in seconds: it shows every write that was acknowledged before that. */
        Age: number;
        /** @description `immediate`: the response shows every acknowledged write; `eventual`: what is flushed, or what was asked for. */
        "Meridian-Consistency": "immediate" | "eventual";
    };
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    getLandingPage: {
        parameters: {
            query?: {
                /** @description Format of the response; takes precedence over `Accept`. */
                f?: components["parameters"]["f"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Links to everything else. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Landing"];
                    "text/html": components["schemas"]["Page"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    getConformance: {
        parameters: {
            query?: {
                /** @description Format of the response; takes precedence over `Accept`. */
                f?: components["parameters"]["f"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description URIs of the classes. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Conformance"];
                    "text/html": components["schemas"]["Page"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    getApi: {
        parameters: {
            query?: {
                /** @description Format of the response; takes precedence over `Accept`. */
                f?: components["parameters"]["f"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The document. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/vnd.oai.openapi+json;version=3.0": components["schemas"]["Document"];
                    "text/html": components["schemas"]["Page"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    getOpenApi: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The document. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/vnd.oai.openapi+json;version=3.1": components["schemas"]["Document"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    getCollections: {
        parameters: {
            query?: {
                /** @description Format of the response; takes precedence over `Accept`. */
                f?: components["parameters"]["f"];
            };
            header?: {
                /** @description Tags (`ETag` of earlier responses). A read of the same state is answered with 304. A write is done only if the event has none of them; `*`: if there is no such event or collection. Else 412. */
                "If-None-Match"?: components["parameters"]["If-None-Match"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Every collection with its extent and links. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CollectionList"];
                    "text/html": components["schemas"]["Page"];
                };
            };
            /** @description The client has this state already: `If-None-Match` names it. */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Problem"];
        };
    };
    getCollection: {
        parameters: {
            query?: {
                /** @description Format of the response; takes precedence over `Accept`. */
                f?: components["parameters"]["f"];
            };
            header?: {
                /** @description Tags (`ETag` of earlier responses). A read of the same state is answered with 304. A write is done only if the event has none of them; `*`: if there is no such event or collection. Else 412. */
                "If-None-Match"?: components["parameters"]["If-None-Match"];
            };
            path: {
                /** @description Name of the collection. */
                c: components["parameters"]["c"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Its extent, coordinate reference systems, settings and links. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Collection"];
                    "text/html": components["schemas"]["Page"];
                };
            };
            /** @description The client has this state already: `If-None-Match` names it. */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Problem"];
        };
    };
    createCollection: {
        parameters: {
            query?: {
                /** @description The failures that an acknowledged event survives. */
                durability?: components["parameters"]["durability"];
                /** @description Age, by event time, from which events are dropped (ISO 8601 duration). */
                retention?: components["parameters"]["retention"];
                /** @description Bytes of events from which the oldest are dropped. */
                retention_bytes?: components["parameters"]["retention_bytes"];
                /** @description Number of partitions of a new collection, each with a log of its own; by default that of the server's settings. */
                partitions?: components["parameters"]["partitions"];
                /** @description Max events that the new retention may remove; without it, a retention that removes any gets 409 with their number. */
                confirm?: components["parameters"]["confirm"];
            };
            header?: {
                /** @description Tags (`ETag` of earlier responses). A read of the same state is answered with 304. A write is done only if the event has none of them; `*`: if there is no such event or collection. Else 412. */
                "If-None-Match"?: components["parameters"]["If-None-Match"];
            };
            path: {
                /** @description Name of the collection. */
                c: components["parameters"]["c"];
            };
            cookie?: never;
        };
        /** @description The schema of the collection: a JSON Schema, or a SimpleFeatureType spec such as `name:String,dtg:Date,*geom:Point:srid=4326`. */
        requestBody: {
            content: {
                "application/schema+json": components["schemas"]["JsonSchema"];
                "application/json": components["schemas"]["JsonSchema"];
                "text/plain": components["schemas"]["Text"];
            };
        };
        responses: {
            /** @description The collection existed already with the same schema; it now has these settings. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Collection"];
                };
            };
            /** @description The collection is created. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Collection"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    deleteCollection: {
        parameters: {
            query?: never;
            header?: {
                /** @description Write only if the event, or the definition of the collection, has one of these tags (`ETag` of a read), or `*` if there is one: else 412. A collection is removed with a tag only if it was never written to. */
                "If-Match"?: components["parameters"]["If-Match"];
            };
            path: {
                /** @description Name of the collection. */
                c: components["parameters"]["c"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is deleted. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Problem"];
        };
    };
    updateCollection: {
        parameters: {
            query?: {
                /** @description Max events that the new retention may remove; without it, a retention that removes any gets 409 with their number. */
                confirm?: components["parameters"]["confirm"];
            };
            header?: {
                /** @description Write only if the event, or the definition of the collection, has one of these tags (`ETag` of a read), or `*` if there is one: else 412. A collection is removed with a tag only if it was never written to. */
                "If-Match"?: components["parameters"]["If-Match"];
            };
            path: {
                /** @description Name of the collection. */
                c: components["parameters"]["c"];
            };
            cookie?: never;
        };
        /** @description The changes; everything else stays. */
        requestBody: {
            content: {
                "application/merge-patch+json": components["schemas"]["Settings"];
                "application/json": components["schemas"]["Settings"];
            };
        };
        responses: {
            /** @description The changed collection. If it was renamed, `Location` has its new URL. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Collection"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    getSchema: {
        parameters: {
            query?: {
                /** @description Format of the response; takes precedence over `Accept`. */
                f?: components["parameters"]["f"];
            };
            header?: {
                /** @description Tags (`ETag` of earlier responses). A read of the same state is answered with 304. A write is done only if the event has none of them; `*`: if there is no such event or collection. Else 412. */
                "If-None-Match"?: components["parameters"]["If-None-Match"];
            };
            path: {
                /** @description Name of the collection. */
                c: components["parameters"]["c"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The schema. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/schema+json": components["schemas"]["JsonSchema"];
                    "text/html": components["schemas"]["Page"];
                };
            };
            /** @description The client has this state already: `If-None-Match` names it. */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Problem"];
        };
    };
    getQueryables: {
        parameters: {
            query?: {
                /** @description Format of the response; takes precedence over `Accept`. */
                f?: components["parameters"]["f"];
            };
            header?: {
                /** @description Tags (`ETag` of earlier responses). A read of the same state is answered with 304. A write is done only if the event has none of them; `*`: if there is no such event or collection. Else 412. */
                "If-None-Match"?: components["parameters"]["If-None-Match"];
            };
            path: {
                /** @description Name of the collection. */
                c: components["parameters"]["c"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The queryables. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/schema+json": components["schemas"]["JsonSchema"];
                    "text/html": components["schemas"]["Page"];
                };
            };
            /** @description The client has this state already: `If-None-Match` names it. */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Problem"];
        };
    };
    getFeatures: {
        parameters: {
            query?: {
                /** @description Box: west, south, east, north (or six numbers with heights, which are ignored). West greater than east crosses the antimeridian. */
                bbox?: components["parameters"]["bbox"];
                /** @description Coordinate reference system of `bbox`. */
                "bbox-crs"?: components["parameters"]["bbox-crs"];
                /** @description Coordinate reference system of the response. CSV, Arrow, Parquet, FlatGeobuf and GeoPackage are served in CRS84 only. */
                crs?: components["parameters"]["crs"];
                /** @description Instant, or interval with `..` for an open end (RFC 3339). */
                datetime?: components["parameters"]["datetime"];
                /** @description Max events of a page; more than 10000 is taken as 10000. */
                limit?: components["parameters"]["limit"];
                /** @description Start of the page, from a `next` link. */
                token?: components["parameters"]["token"];
                /** @description A CQL2 expression. */
                filter?: components["parameters"]["filter"];
                /** @description In a collection of mode `latest`: all events, not only the newest of each object. */
                history?: components["parameters"]["history"];
                /** @description Encoding of `filter`; `cql-text` is `cql2-text` as clients of its drafts write it (booleans as 0 and 1). */
                "filter-lang"?: components["parameters"]["filter-lang"];
                /** @description Coordinate reference system of `filter`. */
                "filter-crs"?: components["parameters"]["filter-crs"];
                /** @description Position (longitude,latitude): events are ordered by distance, nearest first. */
                near?: components["parameters"]["near"];
                /** @description Max distance from `near` in metres (great circle). */
                radius?: components["parameters"]["radius"];
                /** @description Only the k events nearest to `near`. */
                nearest?: components["parameters"]["nearest"];
                /** @description Names of the properties to return, separated by commas. */
                properties?: components["parameters"]["properties"];
                /** @description Properties to sort by, each with `+` (the default) or `-` before it; needs a `limit` in the bulk formats. */
                sortby?: components["parameters"]["sortby"];
                /** @description `immediate` shows every acknowledged write. `eventual` may miss the newest ones: in a cluster, scan servers serve it, and `Age` states the staleness. A scan server serves `eventual` only. */
                consistency?: components["parameters"]["consistency"];
                /** @description With `consistency=eventual`: the type of scan, by which a gateway chooses a profile of scan servers. Others have the default profile. */
                scan_type?: components["parameters"]["scan_type"];
                /** @description An object's id: its events as one line. */
                track?: components["parameters"]["track"];
                /** @description Max deviation of the simplified `track` line, in metres. */
                simplify?: components["parameters"]["simplify"];
                /** @description Return the visited and pruned parts of the index instead of the result. */
                explain?: components["parameters"]["explain"];
                /** @description Deadline in milliseconds. */
                timeout?: components["parameters"]["timeout"];
                /** @description Format of the response; takes precedence over `Accept`. */
                f?: components["parameters"]["f-events"];
                /** @description Any queryable as a parameter of the same name: events whose property has this value. */
                queryable?: components["parameters"]["queryable"];
            };
            header?: {
                /** @description Deadline in milliseconds. */
                "Meridian-Timeout"?: components["parameters"]["Meridian-Timeout"];
                /** @description Position of a write, as the header `Meridian-Position` of its answer has it: the response shows at least that. A server of a cluster that has not got it waits for it, until the deadline and 60 s at most by default, and answers 503 then. Another server has every write, and answers 503 at once. */
                "Meridian-After"?: components["parameters"]["Meridian-After"];
                /** @description Tags (`ETag` of earlier responses). A read of the same state is answered with 304. A write is done only if the event has none of them; `*`: if there is no such event or collection. Else 412. */
                "If-None-Match"?: components["parameters"]["If-None-Match"];
            };
            path: {
                /** @description Name of the collection. */
                c: components["parameters"]["c"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of events; in the bulk formats without `limit`, all of them. */
            200: {
                headers: {
                    "Meridian-Snapshot": components["headers"]["Meridian-Snapshot"];
                    Age: components["headers"]["Age"];
                    "Meridian-Consistency": components["headers"]["Meridian-Consistency"];
                    [name: string]: unknown;
                };
                content: {
                    "application/geo+json": components["schemas"]["Features"];
                    "application/json": components["schemas"]["ExplainedItems"];
                    "text/html": components["schemas"]["Page"];
                    "text/csv": components["schemas"]["Text"];
                    "application/x-ndjson": components["schemas"]["Text"];
                    "application/geo+json-seq": components["schemas"]["Text"];
                    "application/vnd.apache.arrow.stream": components["schemas"]["Binary"];
                    "application/vnd.apache.parquet": components["schemas"]["Binary"];
                    "application/flatgeobuf": components["schemas"]["Binary"];
                    "application/geopackage+sqlite3": components["schemas"]["Binary"];
                };
            };
            /** @description The client has this state already: `If-None-Match` names it. */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Problem"];
        };
    };
    createFeatures: {
        parameters: {
            query?: never;
            header?: {
                /** @description A key for this write. Sent again with the same events, it changes nothing; with others, it is refused (422). */
                "Idempotency-Key"?: components["parameters"]["Idempotency-Key"];
                /** @description Coordinate reference system of a GeoJSON body: a URI in angle brackets; CRS84 without it. */
                "Content-Crs"?: components["parameters"]["Content-Crs"];
                /** @description `handling=lenient` accepts a body, drops heights and ids that cannot be stored, and counts them. */
                Prefer?: components["parameters"]["Prefer"];
            };
            path: {
                /** @description Name of the collection. */
                c: components["parameters"]["c"];
            };
            cookie?: never;
        };
        /** @description Events in one of the formats. */
        requestBody: {
            content: {
                "application/geo+json": components["schemas"]["Features"];
                "application/json": components["schemas"]["Features"];
                "application/geo+json-seq": components["schemas"]["Text"];
                "application/x-ndjson": components["schemas"]["Text"];
                "text/csv": components["schemas"]["Text"];
                "application/vnd.apache.arrow.stream": components["schemas"]["Binary"];
            };
        };
        responses: {
            /** @description The number of written events, and their position in the log. For one feature, `Location` has its URL. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Written"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    deleteFeatures: {
        parameters: {
            query?: {
                /** @description A CQL2 expression. */
                filter?: components["parameters"]["filter"];
                /** @description In a collection of mode `latest`: all events, not only the newest of each object. */
                history?: components["parameters"]["history"];
                /** @description Encoding of `filter`; `cql-text` is `cql2-text` as clients of its drafts write it (booleans as 0 and 1). */
                "filter-lang"?: components["parameters"]["filter-lang"];
                /** @description Coordinate reference system of `filter`. */
                "filter-crs"?: components["parameters"]["filter-crs"];
                /** @description Box: west, south, east, north (or six numbers with heights, which are ignored). West greater than east crosses the antimeridian. */
                bbox?: components["parameters"]["bbox"];
                /** @description Coordinate reference system of `bbox`. */
                "bbox-crs"?: components["parameters"]["bbox-crs"];
                /** @description Instant, or interval with `..` for an open end (RFC 3339). */
                datetime?: components["parameters"]["datetime"];
                /** @description Position (longitude,latitude): events are ordered by distance, nearest first. */
                near?: components["parameters"]["near"];
                /** @description Max distance from `near` in metres (great circle). */
                radius?: components["parameters"]["radius"];
                /** @description Deadline in milliseconds. */
                timeout?: components["parameters"]["timeout"];
                /** @description Any queryable as a parameter of the same name: events whose property has this value. */
                queryable?: components["parameters"]["queryable"];
            };
            header?: {
                /** @description Deadline in milliseconds. */
                "Meridian-Timeout"?: components["parameters"]["Meridian-Timeout"];
            };
            path: {
                /** @description Name of the collection. */
                c: components["parameters"]["c"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The number of deleted events. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Deleted"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    getFeature: {
        parameters: {
            query?: {
                /** @description Coordinate reference system of the response. CSV, Arrow, Parquet, FlatGeobuf and GeoPackage are served in CRS84 only. */
                crs?: components["parameters"]["crs"];
                /** @description Deadline in milliseconds. */
                timeout?: components["parameters"]["timeout"];
                /** @description Format of the response; takes precedence over `Accept`. */
                f?: components["parameters"]["f"];
            };
            header?: {
                /** @description Deadline in milliseconds. */
                "Meridian-Timeout"?: components["parameters"]["Meridian-Timeout"];
                /** @description Position of a write, as the header `Meridian-Position` of its answer has it: the response shows at least that. A server of a cluster that has not got it waits for it, until the deadline and 60 s at most by default, and answers 503 then. Another server has every write, and answers 503 at once. */
                "Meridian-After"?: components["parameters"]["Meridian-After"];
                /** @description Tags (`ETag` of earlier responses). A read of the same state is answered with 304. A write is done only if the event has none of them; `*`: if there is no such event or collection. Else 412. */
                "If-None-Match"?: components["parameters"]["If-None-Match"];
            };
            path: {
                /** @description Name of the collection. */
                c: components["parameters"]["c"];
                /** @description Id of the event, search or saved search. */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The event. */
            200: {
                headers: {
                    "Meridian-Snapshot": components["headers"]["Meridian-Snapshot"];
                    Age: components["headers"]["Age"];
                    "Meridian-Consistency": components["headers"]["Meridian-Consistency"];
                    [name: string]: unknown;
                };
                content: {
                    "application/geo+json": components["schemas"]["Feature"];
                    "text/html": components["schemas"]["Page"];
                };
            };
            /** @description The client has this state already: `If-None-Match` names it. */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Problem"];
        };
    };
    replaceFeature: {
        parameters: {
            query?: never;
            header?: {
                /** @description Coordinate reference system of a GeoJSON body: a URI in angle brackets; CRS84 without it. */
                "Content-Crs"?: components["parameters"]["Content-Crs"];
                /** @description `handling=lenient` accepts a body, drops heights and ids that cannot be stored, and counts them. */
                Prefer?: components["parameters"]["Prefer"];
                /** @description Write only if the event, or the definition of the collection, has one of these tags (`ETag` of a read), or `*` if there is one: else 412. A collection is removed with a tag only if it was never written to. */
                "If-Match"?: components["parameters"]["If-Match"];
                /** @description Tags (`ETag` of earlier responses). A read of the same state is answered with 304. A write is done only if the event has none of them; `*`: if there is no such event or collection. Else 412. */
                "If-None-Match"?: components["parameters"]["If-None-Match"];
            };
            path: {
                /** @description Name of the collection. */
                c: components["parameters"]["c"];
                /** @description Id of the event, search or saved search. */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        /** @description One event. */
        requestBody: {
            content: {
                "application/geo+json": components["schemas"]["Feature"];
                "application/json": components["schemas"]["Feature"];
            };
        };
        responses: {
            /** @description The event is created; `Location` names it. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description It is replaced. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Problem"];
        };
    };
    deleteFeature: {
        parameters: {
            query?: never;
            header?: {
                /** @description Write only if the event, or the definition of the collection, has one of these tags (`ETag` of a read), or `*` if there is one: else 412. A collection is removed with a tag only if it was never written to. */
                "If-Match"?: components["parameters"]["If-Match"];
                /** @description Tags (`ETag` of earlier responses). A read of the same state is answered with 304. A write is done only if the event has none of them; `*`: if there is no such event or collection. Else 412. */
                "If-None-Match"?: components["parameters"]["If-None-Match"];
            };
            path: {
                /** @description Name of the collection. */
                c: components["parameters"]["c"];
                /** @description Id of the event, search or saved search. */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is deleted. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Problem"];
        };
    };
    updateFeature: {
        parameters: {
            query?: never;
            header?: {
                /** @description Coordinate reference system of a GeoJSON body: a URI in angle brackets; CRS84 without it. */
                "Content-Crs"?: components["parameters"]["Content-Crs"];
                /** @description `handling=lenient` accepts a body, drops heights and ids that cannot be stored, and counts them. */
                Prefer?: components["parameters"]["Prefer"];
                /** @description Write only if the event, or the definition of the collection, has one of these tags (`ETag` of a read), or `*` if there is one: else 412. A collection is removed with a tag only if it was never written to. */
                "If-Match"?: components["parameters"]["If-Match"];
                /** @description Tags (`ETag` of earlier responses). A read of the same state is answered with 304. A write is done only if the event has none of them; `*`: if there is no such event or collection. Else 412. */
                "If-None-Match"?: components["parameters"]["If-None-Match"];
            };
            path: {
                /** @description Name of the collection. */
                c: components["parameters"]["c"];
                /** @description Id of the event, search or saved search. */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        /** @description A JSON Merge Patch of the event. */
        requestBody: {
            content: {
                "application/merge-patch+json": components["schemas"]["Patch"];
                "application/geo+json": components["schemas"]["Patch"];
                "application/json": components["schemas"]["Patch"];
            };
        };
        responses: {
            /** @description It is changed. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Problem"];
        };
    };
    listFiles: {
        parameters: {
            query?: {
                /** @description Deadline in milliseconds. */
                timeout?: components["parameters"]["timeout"];
            };
            header?: {
                /** @description Deadline in milliseconds. */
                "Meridian-Timeout"?: components["parameters"]["Meridian-Timeout"];
            };
            path: {
                /** @description Name of the collection. */
                c: components["parameters"]["c"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The files, the snapshot that they show, and how long they are kept. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Files"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    getAggregate: {
        parameters: {
            query?: {
                /** @description Format of the response; takes precedence over `Accept`. */
                f?: components["parameters"]["f-table"];
                /** @description `count`, `sum(f)`, `avg(f)`, `min(f)`, `max(f)`, `median(f)`, `percentile(f,95)`, `distinct(f)`, `top(f,5)`, with commas between. */
                function?: components["parameters"]["function"];
                /** @description Length of the windows of time (ISO 8601 duration). */
                window?: components["parameters"]["window"];
                /** @description Time zone whose midnight windows are aligned to. */
                zone?: components["parameters"]["zone"];
                /** @description Include empty windows. */
                empty?: components["parameters"]["empty"];
                /** @description Properties to group by. */
                by?: components["parameters"]["by"];
                /** @description Box: west, south, east, north (or six numbers with heights, which are ignored). West greater than east crosses the antimeridian. */
                bbox?: components["parameters"]["bbox"];
                /** @description Coordinate reference system of `bbox`. */
                "bbox-crs"?: components["parameters"]["bbox-crs"];
                /** @description Instant, or interval with `..` for an open end (RFC 3339). */
                datetime?: components["parameters"]["datetime"];
                /** @description A CQL2 expression. */
                filter?: components["parameters"]["filter"];
                /** @description In a collection of mode `latest`: all events, not only the newest of each object. */
                history?: components["parameters"]["history"];
                /** @description Encoding of `filter`; `cql-text` is `cql2-text` as clients of its drafts write it (booleans as 0 and 1). */
                "filter-lang"?: components["parameters"]["filter-lang"];
                /** @description Coordinate reference system of `filter`. */
                "filter-crs"?: components["parameters"]["filter-crs"];
                /** @description Position (longitude,latitude): events are ordered by distance, nearest first. */
                near?: components["parameters"]["near"];
                /** @description Max distance from `near` in metres (great circle). */
                radius?: components["parameters"]["radius"];
                /** @description Return the visited and pruned parts of the index instead of the result. */
                explain?: components["parameters"]["explain"];
                /** @description `immediate` shows every acknowledged write. `eventual` may miss the newest ones: in a cluster, scan servers serve it, and `Age` states the staleness. A scan server serves `eventual` only. */
                consistency?: components["parameters"]["consistency"];
                /** @description With `consistency=eventual`: the type of scan, by which a gateway chooses a profile of scan servers. Others have the default profile. */
                scan_type?: components["parameters"]["scan_type"];
                /** @description Deadline in milliseconds. */
                timeout?: components["parameters"]["timeout"];
                /** @description Any queryable as a parameter of the same name: events whose property has this value. */
                queryable?: components["parameters"]["queryable"];
            };
            header?: {
                /** @description Deadline in milliseconds. */
                "Meridian-Timeout"?: components["parameters"]["Meridian-Timeout"];
                /** @description Position of a write, as the header `Meridian-Position` of its answer has it: the response shows at least that. A server of a cluster that has not got it waits for it, until the deadline and 60 s at most by default, and answers 503 then. Another server has every write, and answers 503 at once. */
                "Meridian-After"?: components["parameters"]["Meridian-After"];
                /** @description Tags (`ETag` of earlier responses). A read of the same state is answered with 304. A write is done only if the event has none of them; `*`: if there is no such event or collection. Else 412. */
                "If-None-Match"?: components["parameters"]["If-None-Match"];
            };
            path: {
                /** @description Name of the collection. */
                c: components["parameters"]["c"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One group for each window and value. */
            200: {
                headers: {
                    "Meridian-Snapshot": components["headers"]["Meridian-Snapshot"];
                    Age: components["headers"]["Age"];
                    "Meridian-Consistency": components["headers"]["Meridian-Consistency"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AggregateAnswer"];
                    "text/csv": components["schemas"]["Text"];
                    "application/vnd.apache.arrow.stream": components["schemas"]["Binary"];
                };
            };
            /** @description The client has this state already: `If-None-Match` names it. */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Problem"];
        };
    };
    getDensity: {
        parameters: {
            query?: {
                /** @description Format of the response; takes precedence over `Accept`. */
                f?: components["parameters"]["f-json"];
                /** @description Box: west, south, east, north (or six numbers with heights, which are ignored). West greater than east crosses the antimeridian. */
                bbox?: components["parameters"]["bbox"];
                /** @description Coordinate reference system of `bbox`. */
                "bbox-crs"?: components["parameters"]["bbox-crs"];
                /** @description Columns of the grid. */
                width?: components["parameters"]["width"];
                /** @description Rows of the grid. */
                height?: components["parameters"]["height"];
                /** @description Instant, or interval with `..` for an open end (RFC 3339). */
                datetime?: components["parameters"]["datetime"];
                /** @description A CQL2 expression. */
                filter?: components["parameters"]["filter"];
                /** @description In a collection of mode `latest`: all events, not only the newest of each object. */
                history?: components["parameters"]["history"];
                /** @description Encoding of `filter`; `cql-text` is `cql2-text` as clients of its drafts write it (booleans as 0 and 1). */
                "filter-lang"?: components["parameters"]["filter-lang"];
                /** @description Coordinate reference system of `filter`. */
                "filter-crs"?: components["parameters"]["filter-crs"];
                /** @description Position (longitude,latitude): events are ordered by distance, nearest first. */
                near?: components["parameters"]["near"];
                /** @description Max distance from `near` in metres (great circle). */
                radius?: components["parameters"]["radius"];
                /** @description Return the visited and pruned parts of the index instead of the result. */
                explain?: components["parameters"]["explain"];
                /** @description `immediate` shows every acknowledged write. `eventual` may miss the newest ones: in a cluster, scan servers serve it, and `Age` states the staleness. A scan server serves `eventual` only. */
                consistency?: components["parameters"]["consistency"];
                /** @description With `consistency=eventual`: the type of scan, by which a gateway chooses a profile of scan servers. Others have the default profile. */
                scan_type?: components["parameters"]["scan_type"];
                /** @description Deadline in milliseconds. */
                timeout?: components["parameters"]["timeout"];
                /** @description Any queryable as a parameter of the same name: events whose property has this value. */
                queryable?: components["parameters"]["queryable"];
            };
            header?: {
                /** @description Deadline in milliseconds. */
                "Meridian-Timeout"?: components["parameters"]["Meridian-Timeout"];
                /** @description Position of a write, as the header `Meridian-Position` of its answer has it: the response shows at least that. A server of a cluster that has not got it waits for it, until the deadline and 60 s at most by default, and answers 503 then. Another server has every write, and answers 503 at once. */
                "Meridian-After"?: components["parameters"]["Meridian-After"];
                /** @description Tags (`ETag` of earlier responses). A read of the same state is answered with 304. A write is done only if the event has none of them; `*`: if there is no such event or collection. Else 412. */
                "If-None-Match"?: components["parameters"]["If-None-Match"];
            };
            path: {
                /** @description Name of the collection. */
                c: components["parameters"]["c"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Counts row by row from the north-west. */
            200: {
                headers: {
                    "Meridian-Snapshot": components["headers"]["Meridian-Snapshot"];
                    Age: components["headers"]["Age"];
                    "Meridian-Consistency": components["headers"]["Meridian-Consistency"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DensityAnswer"];
                };
            };
            /** @description The client has this state already: `If-None-Match` names it. */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Problem"];
        };
    };
    getTracks: {
        parameters: {
            query?: {
                /** @description Format of the response; takes precedence over `Accept`. */
                f?: components["parameters"]["f-json"];
                /** @description Box: west, south, east, north (or six numbers with heights, which are ignored). West greater than east crosses the antimeridian. */
                bbox?: components["parameters"]["bbox"];
                /** @description Coordinate reference system of `bbox`. */
                "bbox-crs"?: components["parameters"]["bbox-crs"];
                /** @description Instant, or interval with `..` for an open end (RFC 3339). */
                datetime?: components["parameters"]["datetime"];
                /** @description Max events of a page; more than 10000 is taken as 10000. */
                limit?: components["parameters"]["limit"];
                /** @description For objects and saved searches: only names that sort after this one; a `next` link has it. For packets: only greater numbers. For streams: only events after this position, which an event or the response to a write contains. */
                after?: components["parameters"]["after"];
                /** @description A CQL2 expression. */
                filter?: components["parameters"]["filter"];
                /** @description Encoding of `filter`; `cql-text` is `cql2-text` as clients of its drafts write it (booleans as 0 and 1). */
                "filter-lang"?: components["parameters"]["filter-lang"];
                /** @description Coordinate reference system of `filter`. */
                "filter-crs"?: components["parameters"]["filter-crs"];
                /** @description Position (longitude,latitude): events are ordered by distance, nearest first. */
                near?: components["parameters"]["near"];
                /** @description Max distance from `near` in metres (great circle). */
                radius?: components["parameters"]["radius"];
                /** @description `immediate` shows every acknowledged write. `eventual` may miss the newest ones: in a cluster, scan servers serve it, and `Age` states the staleness. A scan server serves `eventual` only. */
                consistency?: components["parameters"]["consistency"];
                /** @description With `consistency=eventual`: the type of scan, by which a gateway chooses a profile of scan servers. Others have the default profile. */
                scan_type?: components["parameters"]["scan_type"];
                /** @description Deadline in milliseconds. */
                timeout?: components["parameters"]["timeout"];
                /** @description Any queryable as a parameter of the same name: events whose property has this value. */
                queryable?: components["parameters"]["queryable"];
            };
            header?: {
                /** @description Deadline in milliseconds. */
                "Meridian-Timeout"?: components["parameters"]["Meridian-Timeout"];
                /** @description Position of a write, as the header `Meridian-Position` of its answer has it: the response shows at least that. A server of a cluster that has not got it waits for it, until the deadline and 60 s at most by default, and answers 503 then. Another server has every write, and answers 503 at once. */
                "Meridian-After"?: components["parameters"]["Meridian-After"];
                /** @description Tags (`ETag` of earlier responses). A read of the same state is answered with 304. A write is done only if the event has none of them; `*`: if there is no such event or collection. Else 412. */
                "If-None-Match"?: components["parameters"]["If-None-Match"];
            };
            path: {
                /** @description Name of the collection. */
                c: components["parameters"]["c"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of objects in order of their names, each with the number of its events that match. */
            200: {
                headers: {
                    "Meridian-Snapshot": components["headers"]["Meridian-Snapshot"];
                    Age: components["headers"]["Age"];
                    "Meridian-Consistency": components["headers"]["Meridian-Consistency"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Tracks"];
                };
            };
            /** @description The client has this state already: `If-None-Match` names it. */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Problem"];
        };
    };
    followEvents: {
        parameters: {
            query?: {
                /** @description Box: west, south, east, north (or six numbers with heights, which are ignored). West greater than east crosses the antimeridian. */
                bbox?: components["parameters"]["bbox"];
                /** @description Coordinate reference system of `bbox`. */
                "bbox-crs"?: components["parameters"]["bbox-crs"];
                /** @description Coordinate reference system of the response. CSV, Arrow, Parquet, FlatGeobuf and GeoPackage are served in CRS84 only. */
                crs?: components["parameters"]["crs"];
                /** @description Instant, or interval with `..` for an open end (RFC 3339). */
                datetime?: components["parameters"]["datetime"];
                /** @description Position (longitude,latitude): events are ordered by distance, nearest first. */
                near?: components["parameters"]["near"];
                /** @description Max distance from `near` in metres (great circle). */
                radius?: components["parameters"]["radius"];
                /** @description A CQL2 expression. */
                filter?: components["parameters"]["filter"];
                /** @description Encoding of `filter`; `cql-text` is `cql2-text` as clients of its drafts write it (booleans as 0 and 1). */
                "filter-lang"?: components["parameters"]["filter-lang"];
                /** @description Coordinate reference system of `filter`. */
                "filter-crs"?: components["parameters"]["filter-crs"];
                /** @description Names of the properties to return, separated by commas. */
                properties?: components["parameters"]["properties"];
                /** @description Transitions of moving objects to report: some of `enter`, `inside` and `exit`, separated by commas. */
                when?: components["parameters"]["when"];
                /** @description For objects and saved searches: only names that sort after this one; a `next` link has it. For packets: only greater numbers. For streams: only events after this position, which an event or the response to a write contains. */
                after?: components["parameters"]["after"];
            };
            header?: {
                /** @description The last packet, or the position of the last event, that the client has. The response starts after it. */
                "Last-Event-ID"?: components["parameters"]["Last-Event-ID"];
            };
            path: {
                /** @description Name of the collection. */
                c: components["parameters"]["c"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Events with their positions, for as long as the stream lasts. The last one, named `end`, says why the stream ended. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": components["schemas"]["Text"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    "meridian.collection.vector.getTileSetsList": {
        parameters: {
            query?: {
                /** @description Format of the response; takes precedence over `Accept`. */
                f?: components["parameters"]["f"];
            };
            header?: never;
            path: {
                /** @description Name of the collection. */
                c: components["parameters"]["c"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Tilesets, with a TileJSON-like description. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TileSetList"];
                    "text/html": components["schemas"]["Page"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    "meridian.collection.vector.getTileSet": {
        parameters: {
            query?: {
                /** @description Format of the response; takes precedence over `Accept`. */
                f?: components["parameters"]["f"];
            };
            header?: never;
            path: {
                /** @description Name of the collection. */
                c: components["parameters"]["c"];
                /** @description Name of the tile matrix set. */
                tileMatrixSetId: components["parameters"]["tileMatrixSetId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The tileset. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TileSet"];
                    "text/html": components["schemas"]["Page"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    "meridian.collection.vector.getTile": {
        parameters: {
            query?: {
                /** @description Counts per cell in this tile, even where its events are few. */
                density?: components["parameters"]["density"];
                /** @description A numeric property: each cell of a tile of counts also has the number of its `values`, and their average as `avg`. */
                avg?: components["parameters"]["avg"];
                /** @description `immediate` shows every acknowledged write. `eventual` may miss the newest ones: in a cluster, scan servers serve it, and `Age` states the staleness. A scan server serves `eventual` only. */
                consistency?: components["parameters"]["consistency"];
                /** @description With `consistency=eventual`: the type of scan, by which a gateway chooses a profile of scan servers. Others have the default profile. */
                scan_type?: components["parameters"]["scan_type"];
                /** @description Format of the response; takes precedence over `Accept`. */
                f?: components["parameters"]["f-tile"];
                /** @description Names of the properties to return, separated by commas. */
                properties?: components["parameters"]["properties"];
                /** @description Any queryable as a parameter of the same name: events whose property has this value. */
                queryable?: components["parameters"]["queryable"];
                /** @description Box: west, south, east, north (or six numbers with heights, which are ignored). West greater than east crosses the antimeridian. */
                bbox?: components["parameters"]["bbox"];
                /** @description Coordinate reference system of `bbox`. */
                "bbox-crs"?: components["parameters"]["bbox-crs"];
                /** @description Instant, or interval with `..` for an open end (RFC 3339). */
                datetime?: components["parameters"]["datetime"];
                /** @description A CQL2 expression. */
                filter?: components["parameters"]["filter"];
                /** @description In a collection of mode `latest`: all events, not only the newest of each object. */
                history?: components["parameters"]["history"];
                /** @description Encoding of `filter`; `cql-text` is `cql2-text` as clients of its drafts write it (booleans as 0 and 1). */
                "filter-lang"?: components["parameters"]["filter-lang"];
                /** @description Coordinate reference system of `filter`. */
                "filter-crs"?: components["parameters"]["filter-crs"];
                /** @description Position (longitude,latitude): events are ordered by distance, nearest first. */
                near?: components["parameters"]["near"];
                /** @description Max distance from `near` in metres (great circle). */
                radius?: components["parameters"]["radius"];
                /** @description Deadline in milliseconds. */
                timeout?: components["parameters"]["timeout"];
            };
            header?: {
                /** @description Deadline in milliseconds. */
                "Meridian-Timeout"?: components["parameters"]["Meridian-Timeout"];
                /** @description Position of a write, as the header `Meridian-Position` of its answer has it: the response shows at least that. A server of a cluster that has not got it waits for it, until the deadline and 60 s at most by default, and answers 503 then. Another server has every write, and answers 503 at once. */
                "Meridian-After"?: components["parameters"]["Meridian-After"];
                /** @description Tags (`ETag` of earlier responses). A read of the same state is answered with 304. A write is done only if the event has none of them; `*`: if there is no such event or collection. Else 412. */
                "If-None-Match"?: components["parameters"]["If-None-Match"];
            };
            path: {
                /** @description Name of the collection. */
                c: components["parameters"]["c"];
                /** @description Name of the tile matrix set. */
                tileMatrixSetId: components["parameters"]["tileMatrixSetId"];
                /** @description Zoom level. */
                tileMatrix: components["parameters"]["tileMatrix"];
                /** @description Row, from the north. */
                tileRow: components["parameters"]["tileRow"];
                /** @description Column, from the west. */
                tileCol: components["parameters"]["tileCol"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The tile. */
            200: {
                headers: {
                    "Meridian-Snapshot": components["headers"]["Meridian-Snapshot"];
                    Age: components["headers"]["Age"];
                    "Meridian-Consistency": components["headers"]["Meridian-Consistency"];
                    [name: string]: unknown;
                };
                content: {
                    "application/vnd.mapbox-vector-tile": components["schemas"]["Binary"];
                };
            };
            /** @description The tile has no events. */
            204: {
                headers: {
                    "Meridian-Snapshot": components["headers"]["Meridian-Snapshot"];
                    Age: components["headers"]["Age"];
                    "Meridian-Consistency": components["headers"]["Meridian-Consistency"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description The client has this state already: `If-None-Match` names it. */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Problem"];
        };
    };
    "meridian.getTileMatrixSetsList": {
        parameters: {
            query?: {
                /** @description Format of the response; takes precedence over `Accept`. */
                f?: components["parameters"]["f"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Their list. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TileMatrixSetList"];
                    "text/html": components["schemas"]["Page"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    "meridian.getTileMatrixSet": {
        parameters: {
            query?: {
                /** @description Format of the response; takes precedence over `Accept`. */
                f?: components["parameters"]["f"];
            };
            header?: never;
            path: {
                /** @description Name of the tile matrix set. */
                tileMatrixSetId: components["parameters"]["tileMatrixSetId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Its definition. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TileMatrixSet"];
                    "text/html": components["schemas"]["Page"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    listPlaces: {
        parameters: {
            query?: {
                /** @description Page, from 0. */
                p?: components["parameters"]["p"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of places. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Places"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    createPlace: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description A place. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["PlaceRecord"];
            };
        };
        responses: {
            /** @description It is added; `Location` names it. */
            303: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Problem"];
        };
    };
    getPlace: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id of the place. */
                placeId: components["parameters"]["placeId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The place. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PlaceRecord"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    deletePlace: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id of the place. */
                placeId: components["parameters"]["placeId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is deleted; `Location` names the list. */
            303: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Problem"];
        };
    };
    deletePlaces: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description They are deleted; `Location` names the list. */
            303: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Problem"];
        };
    };
    randomPlace: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A place. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PlaceRecord"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    nearPlaces: {
        parameters: {
            query?: {
                /** @description Page, from 0. */
                p?: components["parameters"]["p"];
            };
            header?: never;
            path: {
                /** @description Latitude in degrees. */
                latitude: components["parameters"]["latitude"];
                /** @description Longitude in degrees. */
                longitude: components["parameters"]["longitude"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of places with their distance in km. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Places"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    nearPlacesWithin: {
        parameters: {
            query?: {
                /** @description Page, from 0. */
                p?: components["parameters"]["p"];
            };
            header?: never;
            path: {
                /** @description Latitude in degrees. */
                latitude: components["parameters"]["latitude"];
                /** @description Longitude in degrees. */
                longitude: components["parameters"]["longitude"];
                /** @description Radius in kilometres; 0 is 0.5, above 50 is 50. */
                radiusKm: components["parameters"]["radiusKm"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of places with their distance in km. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Places"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    startSearch: {
        parameters: {
            query?: never;
            header?: {
                /** @description Deadline in milliseconds. */
                "Meridian-Timeout"?: components["parameters"]["Meridian-Timeout"];
            };
            path?: never;
            cookie?: never;
        };
        /** @description A question: keywords, a place, an author; see docs/searches.md. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["Question"];
            };
        };
        responses: {
            /** @description The search is running: its id, its providers, and the URL of its packets. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SearchAnswer"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    getSearch: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id of the event, search or saved search. */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The status of the search and of each provider. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SearchAnswer"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    stopSearch: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id of the event, search or saved search. */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is stopped. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Problem"];
        };
    };
    getPackets: {
        parameters: {
            query?: {
                /** @description For objects and saved searches: only names that sort after this one; a `next` link has it. For packets: only greater numbers. For streams: only events after this position, which an event or the response to a write contains. */
                after?: components["parameters"]["after"];
            };
            header?: {
                /** @description The last packet, or the position of the last event, that the client has. The response starts after it. */
                "Last-Event-ID"?: components["parameters"]["Last-Event-ID"];
            };
            path: {
                /** @description Id of the event, search or saved search. */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The packets are sent over a WebSocket. */
            101: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Packets, the last of them `complete`. If access ends before, the last event is `end`, with the reason. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": components["schemas"]["Text"];
                };
            };
            /** @description The client has the last packet already. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Problem"];
        };
    };
    getSavedSearches: {
        parameters: {
            query?: {
                /** @description Max events of a page; more than 10000 is taken as 10000. */
                limit?: components["parameters"]["limit"];
                /** @description For objects and saved searches: only names that sort after this one; a `next` link has it. For packets: only greater numbers. For streams: only events after this position, which an event or the response to a write contains. */
                after?: components["parameters"]["after"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of them in order of their ids. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SavedSearchList"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    saveSearch: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description A name, a question, a webhook, seconds between polls of outside sources; see docs/saved-searches.md. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["SavedSearch"];
            };
        };
        responses: {
            /** @description The search is saved: its id, and the URL of its packets. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SavedSearchAnswer"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    getSavedSearch: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id of the event, search or saved search. */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The question, the counts of packets, and the state of its webhook and its polls. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SavedSearchAnswer"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    deleteSavedSearch: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id of the event, search or saved search. */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is deleted. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Problem"];
        };
    };
    getSavedPackets: {
        parameters: {
            query?: {
                /** @description For objects and saved searches: only names that sort after this one; a `next` link has it. For packets: only greater numbers. For streams: only events after this position, which an event or the response to a write contains. */
                after?: components["parameters"]["after"];
            };
            header?: {
                /** @description The last packet, or the position of the last event, that the client has. The response starts after it. */
                "Last-Event-ID"?: components["parameters"]["Last-Event-ID"];
            };
            path: {
                /** @description Id of the event, search or saved search. */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The packets are sent over a WebSocket. */
            101: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Packets, for as long as the saved search exists. If access ends before, the last event is `end`, with the reason. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": components["schemas"]["Text"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    getProviders: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Names, breakers, budgets. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProviderList"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    getTokens: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Their ids and rights. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TokenList"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    createToken: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description Its role, its tenant (operators only), the collections that it covers, when it expires. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewToken"];
            };
        };
        responses: {
            /** @description The token, with its text, which is not shown again. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TokenAnswer"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    revokeToken: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id of the event, search or saved search. */
                id: components["parameters"]["id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is revoked. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Problem"];
        };
    };
    getTenants: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Their settings and sizes. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TenantList"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    createTenant: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description Its name and settings. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewTenant"];
            };
        };
        responses: {
            /** @description The tenant. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TenantInfo"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    deleteTenant: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the tenant. */
                t: components["parameters"]["t"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is removed. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Problem"];
        };
    };
    updateTenant: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the tenant. */
                t: components["parameters"]["t"];
            };
            cookie?: never;
        };
        /** @description The changes; everything else stays. */
        requestBody: {
            content: {
                "application/merge-patch+json": components["schemas"]["NewTenant"];
                "application/json": components["schemas"]["NewTenant"];
            };
        };
        responses: {
            /** @description The changed tenant. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TenantInfo"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    getUsers: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Their names and rights. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UserList"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    createUser: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description Its name and password, its role, its tenant (operators only), the collections that it covers. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewUser"];
            };
        };
        responses: {
            /** @description The user. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UserInfo"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    deleteUser: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the user, in the tenant of the caller or of the header Meridian-Tenant. */
                name: components["parameters"]["name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is removed. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Problem"];
        };
    };
    updateUser: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the user, in the tenant of the caller or of the header Meridian-Tenant. */
                name: components["parameters"]["name"];
            };
            cookie?: never;
        };
        /** @description The changes; everything else stays. */
        requestBody: {
            content: {
                "application/merge-patch+json": components["schemas"]["UserChange"];
                "application/json": components["schemas"]["UserChange"];
            };
        };
        responses: {
            /** @description The changed user. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UserInfo"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    getLoginPage: {
        parameters: {
            query?: {
                /** @description Path on this server to go to after signing in. */
                next?: components["parameters"]["next"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The page. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/html": components["schemas"]["Page"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    signIn: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description Name and password, as JSON or as a form of this server's own page. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["SignIn"];
                "application/x-www-form-urlencoded": components["schemas"]["SignIn"];
            };
        };
        responses: {
            /** @description The signed-in user, and the session's CSRF token. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Session"];
                };
            };
            /** @description Signed in by a form; `Location` is where to go. */
            303: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Problem"];
        };
    };
    beginSignIn: {
        parameters: {
            query?: {
                /** @description Path on this server to go to after signing in. */
                next?: components["parameters"]["next"];
            };
            header?: never;
            path: {
                /** @description Name of an issuer, as the operator gave it. */
                issuer: components["parameters"]["issuer"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The issuer's page. */
            303: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/html": components["schemas"]["Page"];
                };
            };
            /** @description The issuer does not answer. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/html": components["schemas"]["Page"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    endSignIn: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of an issuer, as the operator gave it. */
                issuer: components["parameters"]["issuer"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The page that was asked for. */
            303: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/html": components["schemas"]["Page"];
                };
            };
            /** @description Not signed in; the page states the reason. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/html": components["schemas"]["Page"];
                };
            };
            /** @description Too many failed attempts; the page states it. */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/html": components["schemas"]["Page"];
                };
            };
            /** @description The issuer does not answer. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/html": components["schemas"]["Page"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    signOut: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description Nothing, or a form with the CSRF token. */
        requestBody: {
            content: {
                "application/x-www-form-urlencoded": components["schemas"]["SignOut"];
            };
        };
        responses: {
            /** @description It has ended. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Signed out by a form; `Location` is the sign-in page. */
            303: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Problem"];
        };
    };
    changePassword: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description The current password, and the new one. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["PasswordChange"];
                "application/x-www-form-urlencoded": components["schemas"]["PasswordChange"];
            };
        };
        responses: {
            /** @description It is changed, and the session is a new one. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Session"];
                };
            };
            /** @description Changed by a form; `Location` is the start page. */
            303: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Problem"];
        };
    };
    getSession: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The user, and the session's CSRF token. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Session"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    getAudit: {
        parameters: {
            query?: {
                /** @description Only lines after this number; a `next` link has it. */
                after?: components["parameters"]["acts-after"];
                /** @description Max lines of a page; more than 1000 is taken as 1000. */
                limit?: components["parameters"]["acts-limit"];
                /** @description Instant, or interval with `..` for an open end (RFC 3339). */
                datetime?: components["parameters"]["datetime"];
                /** @description Format of the response; takes precedence over `Accept`. */
                f?: components["parameters"]["f-lines"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of it, oldest first. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuditPage"];
                    "application/x-ndjson": components["schemas"]["Text"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    backup: {
        parameters: {
            query?: {
                /** @description Deadline in milliseconds. */
                timeout?: components["parameters"]["timeout"];
            };
            header?: {
                /** @description Deadline in milliseconds. */
                "Meridian-Timeout"?: components["parameters"]["Meridian-Timeout"];
            };
            path?: never;
            cookie?: never;
        };
        /** @description The files that the folder has already, the only tenant to save, and the key that seals secrets. Without them all files of all tenants are sent, and no secret. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["Backup"];
            };
        };
        responses: {
            /** @description New files, then `BACKUP`, the list of files that belong together; a transfer without it is no backup. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/x-tar": components["schemas"]["Binary"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    getMetrics: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The counters. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": components["schemas"]["Text"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    getLoad: {
        parameters: {
            query?: {
                /** @description Format of the response; takes precedence over `Accept`. */
                f?: components["parameters"]["f"];
                /** @description Whether the page asks for itself again every two seconds. */
                refresh?: components["parameters"]["refresh"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The current load, and the slow requests of the last minutes. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Load"];
                    "text/html": components["schemas"]["Page"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    getCluster: {
        parameters: {
            query?: {
                /** @description Format of the response; takes precedence over `Accept`. */
                f?: components["parameters"]["f"];
                /** @description Whether the page asks for itself again every two seconds. */
                refresh?: components["parameters"]["refresh"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The cluster as its bucket shows it; of one process, that it is one. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ClusterAnswer"];
                    "text/html": components["schemas"]["Page"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    getHealth: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Health"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    getReady: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It accepts requests; 503 while it shuts down or if its store is damaged. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Health"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    getVersion: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Both. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Version"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    getMap: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The page. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/html": components["schemas"]["Page"];
                };
            };
            /** @description The pages are not part of this build. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/html": components["schemas"]["Page"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    getSearchPage: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The page. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/html": components["schemas"]["Page"];
                };
            };
            /** @description The pages are not part of this build. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/html": components["schemas"]["Page"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    getBaseMap: {
        parameters: {
            query?: never;
            header?: {
                /** @description One range of bytes, such as `bytes=0-1023`. Several get the whole file. */
                Range?: components["parameters"]["Range"];
                /** @description A tag or date: the range counts only if the file is still the same. */
                "If-Range"?: components["parameters"]["If-Range"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The part that `Range` names. */
            206: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/vnd.pmtiles": components["schemas"]["Binary"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    getAsset: {
        parameters: {
            query?: never;
            header?: {
                /** @description Tags (`ETag` of earlier responses). A read of the same state is answered with 304. A write is done only if the event has none of them; `*`: if there is no such event or collection. Else 412. */
                "If-None-Match"?: components["parameters"]["If-None-Match"];
                /** @description One range of bytes, such as `bytes=0-1023`. Several get the whole file. */
                Range?: components["parameters"]["Range"];
                /** @description A tag or date: the range counts only if the file is still the same. */
                "If-Range"?: components["parameters"]["If-Range"];
            };
            path: {
                /** @description Path of the file. */
                file: components["parameters"]["file"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The file. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/octet-stream": components["schemas"]["Binary"];
                };
            };
            /** @description The part of the file that `Range` names. */
            206: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/octet-stream": components["schemas"]["Binary"];
                };
            };
            /** @description The client has this state already: `If-None-Match` names it. */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Problem"];
        };
    };
    getIcon: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The file. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "image/svg+xml": components["schemas"]["Binary"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
    getDefaultIcon: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The file. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "image/svg+xml": components["schemas"]["Binary"];
                };
            };
            default: components["responses"]["Problem"];
        };
    };
}
