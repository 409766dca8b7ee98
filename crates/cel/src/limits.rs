//! Limits of the size and cost of expressions. Unless noted otherwise, values are from
//! `k8s.io/apiserver/pkg/apis/cel`,
//! `k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation` and `cel-go/parser`.

/// Cost units that one evaluation may use, about 0.1 s.
pub const CALL_COST_MAX: u64 = 1_000_000;
/// Cost units that all rules of one object may use together, about 1 s.
pub const OBJECT_COST_MAX: u64 = 10_000_000;
/// Estimated cost units of one rule, times how often it can apply in one object.
pub const RULE_ESTIMATE_MAX: u64 = 10_000_000;
/// Estimated cost units of all rules of one schema.
pub const SCHEMA_ESTIMATE_MAX: u64 = 100_000_000;
/// Bytes of a message that an expression produces.
pub const MESSAGE_BYTES_MAX: usize = 5 * 1024;
/// Bytes of the largest request, for estimates.
pub const REQUEST_BYTES: u64 = 3 * 1024 * 1024;

/// Characters of an expression.
pub(crate) const SOURCE_CHARS_MAX: usize = 100_000;
/// Parentheses, brackets, arguments and alternatives inside each other. Upstream allows 250; this
/// is what the stack of a worker thread holds in all builds, also without optimisation.
pub(crate) const NESTING_MAX: usize = 50;
/// Depth of an expression with its macros expanded, for the same reason.
pub(crate) const DEPTH_MAX: usize = 150;
/// Nodes of an expression with its macros expanded. Drover's own limit, against hostile nests of
/// macros.
pub(crate) const NODES_MAX: u32 = 200_000;
/// Errors reported for one expression.
pub(crate) const ERRORS_MAX: usize = 100;
/// Nesting of values compared or measured. Drover's own limit: expressions can build values of any
/// depth.
pub(crate) const VALUE_DEPTH_MAX: usize = 100;
/// Elements of one list or map that an expression produces. Drover's own limit: it bounds memory
/// where the cost model charges little for a copy.
pub(crate) const ELEMENTS_MAX: usize = 1 << 20;
/// Bytes of one text that an expression produces. Drover's own limit, for the same reason.
pub(crate) const TEXT_BYTES_MAX: usize = 16 << 20;
/// Approximate bytes of JSON of one value. Drover's own limit: values share their parts.
pub(crate) const JSON_BYTES_MAX: usize = 4 << 20;
/// Compiled size at which a pattern is refused, in bytes.
pub(crate) const PATTERN_BYTES_MAX: usize = 1 << 20;
/// The same for patterns that an expression computes: the cost of compiling does not depend on
/// their size, and there may be one per value.
pub(crate) const PATTERN_BYTES_COMPUTED_MAX: usize = 1 << 17;
/// Steps of about a nanosecond that the cost model does not count, such as comparing two large
/// trees. Drover's own limit: above it, an evaluation fails like one that costs too much.
pub(crate) const WORK_MAX: u64 = 1_000_000_000;

/// Part of a cost unit for each character that is read.
pub(crate) const CHARACTER_COST: f64 = 0.1;
/// Cost units for each character of a pattern.
pub(crate) const PATTERN_COST: f64 = 0.25;
/// Cost units of making a list.
pub(crate) const LIST_COST: u64 = 10;
/// Cost units of making a map.
pub(crate) const MAP_COST: u64 = 30;
/// Cost units of making a message.
pub(crate) const MESSAGE_COST: u64 = 40;
/// Cost units of an authorization query.
pub(crate) const AUTHORIZATION_CHECK_COST: u64 = 350_000;
