//! Arguments for the linker of macOS, which must leave the interpreter's symbols open; nothing elsewhere.

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}
