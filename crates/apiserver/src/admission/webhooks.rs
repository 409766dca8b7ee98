//! Dynamic admission: writes are sent to the webhooks of MutatingWebhookConfigurations and
//! ValidatingWebhookConfigurations.
//!
//! [`follow`] maintains the table of configurations in effect. [`dispatch`] decides which webhooks
//! are called and enforces their responses. [`review`] is the AdmissionReview on the wire. A write
//! fails closed: a failed call refuses it unless the configuration says `Ignore`. With no
//! configuration there is no table, and a write costs one load of a pointer.

mod dispatch;
pub mod follow;
mod hook;
mod review;

use hook::Hook;

use super::policies;
use crate::resource::Resource;

/// The API group of the kinds that configure admission.
pub const GROUP: &str = "admissionregistration.k8s.io";
/// The plural of MutatingWebhookConfiguration.
pub const MUTATING: &str = "mutatingwebhookconfigurations";
/// The plural of ValidatingWebhookConfiguration.
pub const VALIDATING: &str = "validatingwebhookconfigurations";

/// Kinds of [`GROUP`] that neither webhooks nor policies see, so that none of them can prevent its
/// own repair.
const EXEMPT: [&str; 6] = [
    MUTATING,
    VALIDATING,
    policies::POLICIES,
    policies::BINDINGS,
    policies::MUTATING_POLICIES,
    policies::MUTATING_BINDINGS,
];

/// Whether writes of the resource bypass webhooks and policies.
pub(super) fn is_exempt(resource: &Resource) -> bool {
    resource.group == GROUP && EXEMPT.contains(&resource.plural.as_str())
}

/// The webhooks in effect, in the order of their calls: by name of their configuration, then by
/// position in it.
#[derive(Default)]
pub struct WebhookTable {
    mutating: Vec<Hook>,
    validating: Vec<Hook>,
}
