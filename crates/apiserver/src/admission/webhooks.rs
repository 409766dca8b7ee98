//! Dynamic admission: the webhooks that MutatingWebhookConfigurations and
//! ValidatingWebhookConfigurations name are asked about writes.
//!
//! [`follow`] keeps the table of configurations that is in effect; [`dispatch`] decides who is asked
//! and what becomes of the answers; [`review`] is the AdmissionReview on the wire. A write fails
//! closed: a webhook that cannot be asked refuses it unless its configuration says `Ignore`. With no
//! configuration there is no table, and a write costs one load of a pointer.

mod dispatch;
pub mod follow;
mod hook;
mod review;

use hook::Hook;

use super::policies;
use crate::resource::Resource;

/// The group of the kinds that configure admission.
pub const GROUP: &str = "admissionregistration.k8s.io";
pub const MUTATING: &str = "mutatingwebhookconfigurations";
pub const VALIDATING: &str = "validatingwebhookconfigurations";

/// Kinds of [`GROUP`] that neither webhooks nor policies are asked about, lest one locks itself in.
const EXEMPT: [&str; 6] = [
    MUTATING,
    VALIDATING,
    policies::POLICIES,
    policies::BINDINGS,
    policies::MUTATING_POLICIES,
    policies::MUTATING_BINDINGS,
];

pub(super) fn is_exempt(resource: &Resource) -> bool {
    resource.group == GROUP && EXEMPT.contains(&resource.plural.as_str())
}

/// The webhooks in effect, in the order in which they are asked: by name of their configuration,
/// then as they stand there.
#[derive(Default)]
pub struct Table {
    mutating: Vec<Hook>,
    validating: Vec<Hook>,
}
