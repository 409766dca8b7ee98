//! The controller runtime that kube-rs lacks. It knows no kind.
//!
//! A controller is a [`Reconcile`] that a [`Runner`] drives: reflectors ([`reflector`]) report
//! which keys changed, the [`queue`] orders them in lanes so that a slow cluster delays no other,
//! the runner catches errors and panics and records the last run of each key ([`activity`]). A
//! controller writes its results with [`status`], where each condition type has exactly one writer.
//! [`downstream`] starts and stops the controllers of one cluster, [`scope`] is what they share.
//! Start at [`runner`].

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
pub use status::{ConditionState, OwnedCondition, StatusPatch, StatusTarget, Truth};
pub use with_condition::{ConditionReport, WithCondition};

#[cfg(test)]
mod tests;
