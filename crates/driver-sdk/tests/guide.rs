//! The example of the guide is compiled, and the guide has it as it is.

#[allow(dead_code, reason = "a program, here without its `main`")]
#[path = "../examples/kind.rs"]
mod kind;

#[test]
fn the_guide_has_the_whole_example() {
    let guide = include_str!("../../../docs/guide/write-a-driver.md");
    let example = include_str!("../examples/kind.rs");
    for part in example.split("\n\n").skip(1).map(str::trim_end) {
        assert!(guide.contains(part), "docs/guide/write-a-driver.md lacks:\n{part}");
    }
}
