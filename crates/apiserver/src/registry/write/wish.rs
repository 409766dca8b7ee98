//! What an update is to come to.

use api_meta::status::Status;
use serde_json::Value;

use super::ownership::{Owners, Ownership};
use crate::registry::Registry;
use crate::registry::admission::Taken;
use crate::resource::Resource;

/// What a change makes of the current state. It may run several times.
pub type Change<'a> = dyn Fn(&Value) -> Result<Value, Status> + Send + Sync + 'a;

/// How the wanted state comes of the current one.
pub(super) enum Wish<'a> {
    /// By a change. What it changes tells who comes to own what.
    Changed(&'a Change<'a>),
    /// By a change that says who owns what.
    Owned(&'a Change<'a>),
    /// By applying a configuration.
    Applied { ownership: &'a Ownership<'a>, config: &'a Value, force: bool },
}

impl Wish<'_> {
    /// The wanted state. `taken`: what was taken out of it.
    ///
    /// # Errors
    /// The change is refused, or the configuration is not applied.
    pub async fn outcome(
        &self,
        registry: &Registry,
        resource: &Resource,
        old: &Value,
        taken: &mut Taken,
    ) -> Result<Value, Status> {
        match self {
            Self::Changed(change) | Self::Owned(change) => change(old),
            Self::Applied { ownership, config, force } => {
                let mut config = Value::clone(config);
                // Else whoever applies what another has applied would be in conflict.
                registry.take_out(resource, &mut config, Some(old), taken).await?;
                ownership.apply(registry, Some(old), &config, *force).await
            }
        }
    }

    pub fn owners(&self) -> Owners {
        match self {
            Self::Changed(_) => Owners::Tracked,
            Self::Owned(_) | Self::Applied { .. } => Owners::Applied,
        }
    }
}
