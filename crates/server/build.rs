//! Has release builds embed the web interface anew whenever it was built anew. Others read it from
//! disk.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        // Always there: the folder holds a file of the repository.
        println!("cargo::rerun-if-changed=../../ui/dist");
    }
}
