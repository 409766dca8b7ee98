//! What an expression may be and cost. Values from `k8s.io/apiserver/pkg/apis/cel`,
//! `k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation` and `cel-go/parser`, where
//! nothing else is said.

/// Cost units that one evaluation may use, about 0.1 s.
pub const CALL_COST_MAX: u64 = 1_000_000;
/// Cost units that all rules of one object may use together, about 1 s.
pub const OBJECT_COST_MAX: u64 = 10_000_000;
/// Estimated cost units of one rule, times how often it can apply in one object.
pub const RULE_ESTIMATE_MAX: u64 = 10_000_000;
/// Estimated cost units of all rules of one schema.
pub const SCHEMA_ESTIMATE_MAX: u64 = 100_000_000;
/// Bytes of a message that an expression makes.
pub const MESSAGE_BYTES_MAX: usize = 5 * 1024;
/// Bytes of the largest request that estimates reckon with.
pub const REQUEST_BYTES: u64 = 3 * 1024 * 1024;

/// Characters of an expression.
pub(crate) const SOURCE_CHARS_MAX: usize = 100_000;
/// Parentheses, brackets, arguments and alternatives inside each other. Upstream allows 250; here it
/// is what the stack of a worker thread is sure to hold, in builds without optimisation as well.
pub(crate) const NESTING_MAX: usize = 50;
/// Nodes of an expression one below the other, with its macros expanded, for the same reason.
pub(crate) const DEPTH_MAX: usize = 150;
/// Nodes of an expression with its macros expanded. Ours: keeps a hostile nest of macros small.
pub(crate) const NODES_MAX: u32 = 200_000;
/// Errors reported for one expression.
pub(crate) const ERRORS_MAX: usize = 100;
/// Nesting of values compared or measured. Ours: expressions can build values without end.
pub(crate) const VALUE_DEPTH_MAX: usize = 100;
/// Elements that one list or map made by an expression may have. Ours: bounds memory where the
/// cost model asks little for a copy.
pub(crate) const ELEMENTS_MAX: usize = 1 << 20;
/// Bytes of one text that an expression may make. Ours, for the same reason.
pub(crate) const TEXT_BYTES_MAX: usize = 16 << 20;
/// Bytes of JSON that one value may be written as, about. Ours: values share their parts.
pub(crate) const JSON_BYTES_MAX: usize = 4 << 20;
/// Compiled size at which a pattern is refused, in bytes.
pub(crate) const PATTERN_BYTES_MAX: usize = 1 << 20;
/// The same for patterns that an expression computes: compiling them costs the same as small ones,
/// and there may be as many as there are values.
pub(crate) const PATTERN_BYTES_COMPUTED_MAX: usize = 1 << 17;
/// Steps of about a nanosecond that the cost model does not count, such as comparing two large
/// trees. Ours: at this many an evaluation ends as one that costs too much.
pub(crate) const WORK_MAX: u64 = 1_000_000_000;

/// Part of a cost unit for each character that is looked at.
pub(crate) const CHARACTER_COST: f64 = 0.1;
/// Cost units for each character of a pattern.
pub(crate) const PATTERN_COST: f64 = 0.25;
/// Cost units of making a list.
pub(crate) const LIST_COST: u64 = 10;
/// Cost units of making a map.
pub(crate) const MAP_COST: u64 = 30;
/// Cost units of making a message.
pub(crate) const MESSAGE_COST: u64 = 40;
/// Cost units of asking whether somebody may do something.
pub(crate) const AUTHORIZATION_CHECK_COST: u64 = 350_000;
