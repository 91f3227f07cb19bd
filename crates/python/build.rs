//! Linker arguments for macOS, which must leave the interpreter's symbols undefined; none elsewhere.

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}
