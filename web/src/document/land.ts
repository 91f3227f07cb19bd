// The outline of the land, as a path in degrees with south downwards.
export const LAND = __LAND_PATH__;
