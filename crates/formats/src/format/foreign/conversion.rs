//! The command that converts a format that is not read.

use crate::reference::{INPUT, LAYERS, ONE_LAYER, convert, convert_to, ogr2ogr};

/// The content of a format, which decides how it is converted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// Places in a reference system that the file names.
    Places,
    /// Places in several layers.
    Layers,
    /// Vector tiles, which GDAL reads from version 3.8 on.
    Tiles,
    /// Places in longitude and latitude by definition, so that files name no reference system; in several layers.
    Degrees,
    /// Places in a reference system that the file does not name.
    Unreferenced,
    /// Rows without geometry.
    Rows,
    /// Tables, with geometry or without.
    Database,
    /// Shapes as text, without a header.
    Shapes,
    /// What ogr2ogr does not read, or few builds of it: a library of Python and the script.
    Script(&'static str, &'static str),
}

impl Content {
    /// A grid with named dimensions: each cell becomes a row.
    pub(super) const GRID: Content = Content::Script(
        "xarray",
        "import sys, xarray; xarray.open_dataset(sys.argv[1]).to_dataframe().to_csv('converted.csv')",
    );
    /// ORC, which few builds of GDAL read.
    pub(super) const ORC: Content = Content::Script(
        "pyarrow",
        "import sys; from pyarrow import orc, parquet; \
         parquet.write_table(orc.read_table(sys.argv[1]), 'converted.parquet')",
    );
    /// Avro, which GDAL does not read.
    pub(super) const AVRO: Content = Content::Script(
        "polars",
        "import sys, polars; polars.read_avro(sys.argv[1]).write_parquet('converted.parquet')",
    );

    /// Returns how an input is converted into one that is read: a phrase with a command.
    pub(super) fn conversion(self) -> String {
        match self {
            Content::Places => convert(),
            Content::Layers => convert_to(LAYERS),
            Content::Tiles => {
                format!("convert it, with GDAL 3.8 or newer: {}", ogr2ogr("-t_srs EPSG:4326", LAYERS))
            }
            Content::Degrees => format!("convert it: {}", ogr2ogr("-a_srs EPSG:4326", LAYERS)),
            Content::Unreferenced => {
                let line = ogr2ogr("-s_srs EPSG:CODE -t_srs EPSG:4326", ONE_LAYER);
                format!("convert it, with the code of its reference system: {line}")
            }
            Content::Rows => format!("convert it: {}", ogr2ogr("", "csv")),
            // GDAL does not list tables without geometry in some databases, so the command names the table.
            Content::Database => {
                format!("convert a table of it: {} TABLE", ogr2ogr("-t_srs EPSG:4326 -lco GEOMETRY=AS_WKT", "csv"))
            }
            Content::Shapes => format!(
                "make a table of it, a shape a line: (echo wkt; sed -n 's/..*/\"&\"/p' {INPUT}) > converted.csv"
            ),
            Content::Script(library, script) => {
                format!("convert it, with {library} for Python: python3 -c \"{script}\" {INPUT}")
            }
        }
    }
}
