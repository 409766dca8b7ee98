//! One target under libFuzzer: the one that `DROVER_FUZZ_TARGET` names. Built and driven by
//! `cargo xtask soak fuzz`; built otherwise, it runs the target once on each file in its arguments.

#![cfg_attr(feature = "libfuzzer", no_main)]

use std::sync::LazyLock;

use fuzz::{FuzzTarget, TARGETS};

/// Variable with the name of the target.
const TARGET_ENV: &str = "DROVER_FUZZ_TARGET";

static TARGET: LazyLock<FuzzTarget> = LazyLock::new(|| {
    let name = std::env::var(TARGET_ENV).unwrap_or_default();
    let found = TARGETS.into_iter().find(|target| target.name == name);
    let names = TARGETS.map(|target| target.name).join(", ");
    found.unwrap_or_else(|| panic!("{TARGET_ENV} must name a target, one of {names}"))
});

#[cfg(feature = "libfuzzer")]
#[allow(unsafe_code, reason = "libFuzzer finds its entry by a plain name")]
mod entry {
    libfuzzer_sys::fuzz_target!(|input: &[u8]| (super::TARGET.run)(input));
}

#[cfg(not(feature = "libfuzzer"))]
fn main() -> std::io::Result<()> {
    for file in std::env::args_os().skip(1) {
        (TARGET.run)(&std::fs::read(file)?);
    }
    Ok(())
}
