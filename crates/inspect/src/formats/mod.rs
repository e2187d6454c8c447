//! One file for each format. `inspectors.toml` of crate `inspection` has the same names.

#[cfg(feature = "hdf5")]
mod array_values;
mod arrow_file;
mod decoded_picture;
mod delimited;
mod elf;
mod git_object;
mod git_pack;
#[cfg(feature = "hdf5")]
mod hdf5_file;
#[cfg(feature = "hdf5")]
pub(crate) mod hdf5_reading;
pub(crate) mod markup;
#[cfg(feature = "hdf5")]
mod netcdf_file;
mod notebook;
mod notebook_cells;
mod opendocument;
mod parquet_file;
#[cfg(feature = "pdf")]
mod pdf_file;
mod pickle;
mod pickle_opcodes;
mod pictures;
mod plain_text;
mod raster_image;
mod sql_dump;
pub(crate) mod sqlite_content;
mod sqlite_database;
mod sqlite_history;
mod sqlite_journal;
mod sqlite_log;
pub(crate) mod sqlite_pages;
mod sqlite_row;
pub(crate) mod sqlite_rows;
mod sqlite_states;
mod structured_text;
mod tar_archive;
pub(crate) mod tar_stream;
mod tensors;
mod tiff_pages;
mod word;
mod workbook;
mod zip_archive;

use crate::Inspector;

/// Each inspector with its name.
const ALL: &[(&str, &dyn Inspector)] = &[
    ("arrow", &arrow_file::ArrowFile),
    ("csv", &delimited::Delimited),
    ("docx", &word::WordDocument),
    ("elf", &elf::ElfFile),
    ("git", &git_object::GitObject),
    #[cfg(feature = "hdf5")]
    ("hdf5", &hdf5_file::Hdf5File),
    ("image", &raster_image::RasterImage),
    ("ipynb", &notebook::Notebook),
    ("json", &structured_text::StructuredText::Json),
    #[cfg(feature = "hdf5")]
    ("netcdf", &netcdf_file::NetcdfFile),
    ("odt", &opendocument::OpenDocument),
    ("pack", &git_pack::GitPack),
    ("parquet", &parquet_file::ParquetFile),
    #[cfg(feature = "pdf")]
    ("pdf", &pdf_file::PdfFile),
    ("pickle", &pickle::PickleFile),
    ("safetensors", &tensors::TensorFile),
    ("sql", &sql_dump::SqlDump),
    ("sqlite", &sqlite_database::SqliteDatabase),
    ("sqlite-wal", &sqlite_log::SqliteLog),
    ("tar", &tar_archive::TarArchive),
    ("text", &plain_text::PlainText),
    ("toml", &structured_text::StructuredText::Toml),
    ("xlsx", &workbook::Workbook),
    ("zip", &zip_archive::ZipArchive),
];

/// The inspector with this name.
pub fn by_name(name: &str) -> Option<&'static dyn Inspector> {
    let found = ALL.iter().find(|(other, _)| *other == name);
    found.map(|(_, inspector)| *inspector)
}

/// The names of all inspectors.
pub fn names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|(name, _)| *name)
}

#[cfg(test)]
#[cfg(all(feature = "hdf5", feature = "pdf"))]
mod tests {
    use super::*;
    use backstory_inspection::Catalogue;

    #[test]
    fn every_listed_inspector_exists_and_every_inspector_is_listed() {
        let listed = Catalogue::built_in();
        let mut listed: Vec<&str> = listed.entries().iter().map(|entry| &*entry.name).collect();
        listed.sort_unstable();
        assert_eq!(names().collect::<Vec<_>>(), listed);
    }
}
