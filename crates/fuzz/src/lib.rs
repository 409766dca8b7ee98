//! Fuzz targets: for each decoder and evaluator that hostile input reaches, what must hold of it for
//! any input whatever. A target panics when it does not.
//!
//! `cargo test -p fuzz` replays the corpora; `cargo xtask soak fuzz` lets libFuzzer look for more
//! (`src/bin/fuzz.rs`). A finding becomes a file of `corpus/<target>/`, and a test of the crate that
//! was wrong.

mod targets;

/// One target.
#[derive(Clone, Copy)]
pub struct Target {
    /// The folder of its corpus is called the same.
    pub name: &'static str,
    /// Panics when something does not hold.
    pub run: fn(&[u8]),
}

/// Every target, in order of their names.
pub const TARGETS: [Target; 18] = [
    Target { name: "accept", run: targets::negotiation::accept },
    Target { name: "apply", run: targets::ownership::apply },
    Target { name: "cel", run: targets::expressions::cel },
    Target { name: "continue_token", run: targets::reading::continue_token },
    Target { name: "field_selector", run: targets::selectors::field_selector },
    Target { name: "field_set", run: targets::ownership::field_set },
    Target { name: "json", run: targets::bodies::json },
    Target { name: "json_patch", run: targets::patches::json_patch },
    Target { name: "json_path", run: targets::schemas::json_path },
    Target { name: "label_selector", run: targets::selectors::label_selector },
    Target { name: "merge_patch", run: targets::patches::merge_patch },
    Target { name: "protobuf", run: targets::protobuf::decoded },
    Target { name: "protobuf_of_json", run: targets::protobuf::encoded },
    Target { name: "schema", run: targets::schemas::schema },
    Target { name: "strategic_merge_patch", run: targets::patches::strategic_merge_patch },
    Target { name: "tunnel_frames", run: targets::tunnel::frames },
    Target { name: "watch_frame", run: targets::protobuf::watch_frame },
    Target { name: "yaml", run: targets::bodies::yaml },
];
