//! What kube-rs lacks for our controllers. Knows no kind.
//!
//! A controller is a [`Reconcile`] that a [`Runner`] drives: reflectors ([`reflector`]) say which keys
//! changed, the [`queue`] orders them in lanes so that one slow cluster holds up no other, the runner
//! catches errors and panics and remembers what was last done for each key ([`activity`]). What a
//! controller found out it writes with [`status`], where each condition type has exactly one writer.
//! [`scope`] starts and stops the controllers of one downstream cluster. Start at [`runner`].

pub mod activity;
pub mod downstream;
pub mod ensure;
pub mod error;
pub mod finalizer;
pub mod key;
pub mod queue;
pub mod reflector;
pub mod runner;
pub mod scope;
pub mod status;
pub mod with_condition;

pub use activity::{Activity, Controllers};
pub use downstream::{DownstreamController, DownstreamSets};
pub use error::{Attempt, ReconcileError};
pub use key::Key;
pub use queue::Queue;
pub use reflector::{Change, Metadata, Projection, Reflector, Reflectors, Whole};
pub use runner::{Limits, Outcome, Reconcile, Runner};
pub use scope::{DownstreamScope, ManagementScope};
pub use status::{ConditionState, OwnedCondition, StatusPatch, Target, Truth};
pub use with_condition::{ConditionReport, WithCondition};

#[cfg(test)]
mod tests;
