//! Renders the pages and writes them as Rust.

#[path = "src/render.rs"]
mod render;

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

fn main() {
    let manifest = env::var("CARGO_MANIFEST_DIR").expect("cargo names the crate's folder");
    let docs = Path::new(&manifest).join("../../docs");
    let output = env::var("OUT_DIR").expect("cargo names the folder of the output");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/render.rs");
    println!("cargo::rerun-if-changed=src/render/template.html");
    for folder in render::FOLDERS {
        // A folder that is not there would have the script run each time.
        if docs.join(folder).exists() {
            println!("cargo::rerun-if-changed={}", docs.join(folder).display());
        }
    }
    let guide = render::Guide::read(&docs).expect("the documents can be read");
    let mut code =
        String::from("/// In the order of the navigation.\npub static PAGES: &[Page] = &[\n");
    for page in guide.pages() {
        writeln!(code, "Page {{ path: {:?}, html: {:?} }},", page.path, page.html)
            .expect("a string takes all");
    }
    code.push_str("];\n");
    writeln!(code, "static MISSING: &str = {:?};", guide.missing()).expect("a string takes all");
    fs::write(Path::new(&output).join("pages.rs"), code).expect("the output can be written");
}
