//! Fuzz targets: for each decoder and evaluator that hostile input reaches, a property that must
//! hold for every input. A target panics when the property does not hold.
//!
//! `cargo test -p fuzz` replays the corpora; `cargo xtask soak fuzz` lets libFuzzer search for new
//! inputs (`src/bin/fuzz.rs`). A finding becomes a file of `corpus/<target>/`, and a test of the
//! crate that was wrong.

mod targets;

/// One fuzz target.
#[derive(Clone, Copy)]
pub struct FuzzTarget {
    /// Also the name of its corpus folder.
    pub name: &'static str,
    /// Panics when the property does not hold.
    pub run: fn(&[u8]),
}

/// Every target, in order of their names.
pub const TARGETS: [FuzzTarget; 20] = [
    FuzzTarget { name: "accept", run: targets::negotiation::accept },
    FuzzTarget { name: "apply", run: targets::ownership::apply },
    FuzzTarget { name: "cel", run: targets::expressions::cel },
    FuzzTarget { name: "continue_token", run: targets::reading::continue_token },
    FuzzTarget { name: "field_selector", run: targets::selectors::field_selector },
    FuzzTarget { name: "field_set", run: targets::ownership::field_set },
    FuzzTarget { name: "json", run: targets::bodies::json },
    FuzzTarget { name: "json_patch", run: targets::patches::json_patch },
    FuzzTarget { name: "json_path", run: targets::schemas::json_path },
    FuzzTarget { name: "jwt", run: targets::tokens::jwt },
    FuzzTarget { name: "kind_query", run: targets::queries::kind_query },
    FuzzTarget { name: "label_selector", run: targets::selectors::label_selector },
    FuzzTarget { name: "merge_patch", run: targets::patches::merge_patch },
    FuzzTarget { name: "protobuf", run: targets::protobuf::decoded },
    FuzzTarget { name: "protobuf_of_json", run: targets::protobuf::encoded },
    FuzzTarget { name: "schema", run: targets::schemas::schema },
    FuzzTarget { name: "strategic_merge_patch", run: targets::patches::strategic_merge_patch },
    FuzzTarget { name: "tunnel_frames", run: targets::tunnel::frames },
    FuzzTarget { name: "watch_frame", run: targets::protobuf::watch_frame },
    FuzzTarget { name: "yaml", run: targets::bodies::yaml },
];
