//! A new binding names an existing global role, and gives nothing that its writer does not have.
//! What it says does not change (`api_management::bindings`).

use std::sync::Arc;

use api_management::GlobalRoleBinding;
use api_management::global_role::{ADMIN, RESTRICTED_ADMIN};
use api_management::kind::Kind;
use api_meta::status::{Cause, Status};
use feature_kit::controller::USER_PREFIX;
use feature_kit::{Admit, Review, grants};
use futures::future::BoxFuture;
use serde_json::Value;

use crate::global_role::admission::HeldRights;

/// The identity that gives first roles to users of directories.
const GIVES_DEFAULTS: &str = "directory";

/// See the module.
pub struct BindingRules {
    held: Arc<HeldRights>,
}

impl BindingRules {
    /// `held` says what writers have.
    pub fn new(held: Arc<HeldRights>) -> Self {
        Self { held }
    }

    async fn check(&self, review: &Review<'_>) -> Result<(), Status> {
        let Some(object) = review.object else { return Ok(()) };
        if !grants::changes_grant(review, &[]) {
            return Ok(());
        }
        let name = object["globalRoleName"].as_str().unwrap_or_default();
        let (kind, plural) = (GlobalRoleBinding::KIND, GlobalRoleBinding::PLURAL);
        let forbidden = |message: &str| {
            Err(Status::forbidden(api_management::GROUP, plural, review.name, message))
        };
        let gives_defaults = review.user == format!("{USER_PREFIX}{GIVES_DEFAULTS}");
        if name == ADMIN {
            let is_trusted = grants::is_administrator(review.groups)
                || grants::is_controller(review.groups) && !gives_defaults;
            return match is_trusted {
                true => Ok(()),
                false => forbidden("only administrators make administrators"),
            };
        }
        // Without a name the kind's own rules refuse the object.
        let role = if name.is_empty() { None } else { self.held.role(name).await? };
        let Some(role) = role else {
            let cause = Cause::invalid("globalRoleName", &Value::from(name), "no such global role");
            return Err(Status::invalid(api_management::GROUP, kind, review.name, vec![cause]));
        };
        if name == RESTRICTED_ADMIN {
            HeldRights::check_owner(review, plural)?;
        }
        if gives_defaults && !role.new_user_default {
            return forbidden("it gives only the roles that new users have");
        }
        self.held.check(review, plural, &role.rules).await
    }
}

impl Admit for BindingRules {
    fn admit<'a>(&'a self, review: &'a Review<'a>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(self.check(review))
    }
}
