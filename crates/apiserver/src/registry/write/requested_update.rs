//! The requested update: a change function, or an apply configuration.

use api_meta::status::Status;
use serde_json::Value;

use super::ownership::{FieldOwnership, Owners};
use crate::registry::Registry;
use crate::registry::admission::TakenValues;
use crate::resource::Resource;

/// Computes the desired state from the current one. It may be called several times.
pub type ChangeFn<'a> = dyn Fn(&Value) -> Result<Value, Status> + Send + Sync + 'a;

/// How the desired state follows from the current one.
pub(super) enum RequestedUpdate<'a> {
    /// By a change function. What it changes determines the field owners.
    Changed(&'a ChangeFn<'a>),
    /// By a change function whose result contains the field owners.
    Owned(&'a ChangeFn<'a>),
    /// By server-side apply of a configuration.
    ApplyConfiguration { ownership: &'a FieldOwnership<'a>, config: &'a Value, force: bool },
}

impl RequestedUpdate<'_> {
    /// The desired state. `taken` receives the values that were taken out of it.
    ///
    /// # Errors
    /// Those of the change function, or of the apply.
    pub async fn desired_state(
        &self,
        registry: &Registry,
        resource: &Resource,
        old: &Value,
        taken: &mut TakenValues,
    ) -> Result<Value, Status> {
        match self {
            Self::Changed(change) | Self::Owned(change) => change(old),
            Self::ApplyConfiguration { ownership, config, force } => {
                let mut config = Value::clone(config);
                // Otherwise a second manager that applies the same configuration would conflict.
                registry.take_out(resource, &mut config, Some(old), taken).await?;
                ownership.apply(registry, Some(old), &config, *force).await
            }
        }
    }

    /// Where its ownership entries come from.
    pub fn owners(&self) -> Owners {
        match self {
            Self::Changed(_) => Owners::Tracked,
            Self::Owned(_) | Self::ApplyConfiguration { .. } => Owners::Applied,
        }
    }
}
