//! A global role that is built in, or that somebody has, cannot be deleted; and nobody writes one
//! that gives what they do not have.

use std::sync::Arc;

use api_management::global_role::RESTRICTED_ADMIN;
use api_management::kind::Kind;
use api_management::{GlobalRole, GlobalRoleBinding, PolicyRule};
use api_meta::status::Status;
use authz::cover::{covers, describe};
use feature_kit::access::global_group;
use feature_kit::{Admit, Review, ReviewOperation, grants};
use futures::future::BoxFuture;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};

use crate::role_template::rules::to_authz;

/// Bindings named in a refusal; the rest is counted.
const NAMED_MAX: usize = 3;
/// Fields that only describe the object.
const DESCRIPTIVE: [&str; 2] = ["displayName", "description"];

/// What writers have by their global roles.
pub struct HeldRights {
    /// Reads global roles as they are stored.
    roles: Api<GlobalRole>,
}

impl HeldRights {
    /// `reader` reads global roles as they are stored.
    pub fn new(reader: Client) -> Self {
        Self { roles: Api::all(reader) }
    }

    /// The global role of this name; `None` when there is none.
    ///
    /// # Errors
    /// It cannot be read.
    pub async fn role(&self, name: &str) -> Result<Option<GlobalRole>, Status> {
        self.roles.get_opt(name).await.map_err(|error| Status::internal(&error))
    }

    /// Checks that the writer may decide who owns all clusters, which no rule of the role says.
    ///
    /// # Errors
    /// 403 for others than administrators and holders of that role.
    pub fn check_owner(review: &Review<'_>, plural: &str) -> Result<(), Status> {
        if grants::is_administrator(review.groups)
            || grants::is_controller(review.groups)
            || review.groups.contains(&global_group(RESTRICTED_ADMIN))
        {
            return Ok(());
        }
        let message = format!(
            "who has the global role \"{RESTRICTED_ADMIN}\" owns all clusters, so only those who have it, and \
             administrators, give or change it"
        );
        Err(Status::forbidden(api_management::GROUP, plural, review.name, &message))
    }

    /// Checks that the writer has all rights of `given`: all rights at all, or these by global
    /// roles. `plural` is of the kind that is written.
    ///
    /// # Errors
    /// 403, with the rights that are missing.
    pub async fn check(
        &self,
        review: &Review<'_>,
        plural: &str,
        given: &[PolicyRule],
    ) -> Result<(), Status> {
        if grants::is_administrator(review.groups) || grants::is_controller(review.groups) {
            return Ok(());
        }
        let roles = self.roles.list(&ListParams::default()).await;
        let roles = roles.map_err(|error| Status::internal(&error))?.items;
        let has = |role: &&GlobalRole| review.groups.contains(&global_group(&role.name_any()));
        let held: Vec<_> =
            roles.iter().filter(has).flat_map(|role| role.rules.iter().map(to_authz)).collect();
        let given: Vec<_> = given.iter().map(to_authz).collect();
        covers(&held, &given).map_err(|missing| {
            let message = format!(
                "user \"{}\" does not have all rights of the role and cannot give them; missing \
                 are:\n{}",
                review.user,
                describe(&missing)
            );
            Status::forbidden(api_management::GROUP, plural, review.name, &message)
        })
    }
}

/// See the module.
pub struct RoleRules {
    held: Arc<HeldRights>,
    /// Reads bindings as they are stored.
    bindings: Api<GlobalRoleBinding>,
}

impl RoleRules {
    /// `reader` reads global bindings as they are stored.
    pub fn new(held: Arc<HeldRights>, reader: Client) -> Self {
        Self { held, bindings: Api::all(reader) }
    }

    async fn check(&self, review: &Review<'_>) -> Result<(), Status> {
        if review.operation == ReviewOperation::Delete {
            return self.check_delete(review).await;
        }
        if !grants::changes_grant(review, &DESCRIPTIVE) {
            return Ok(());
        }
        if review.name == RESTRICTED_ADMIN {
            HeldRights::check_owner(review, GlobalRole::PLURAL)?;
        }
        // An old rule that is taken away is checked as well: else whoever may write roles could
        // take rights from those who have more.
        let mut given = Vec::new();
        for object in [review.object, review.old].into_iter().flatten() {
            let role: GlobalRole = serde_json::from_value(object.clone())
                .map_err(|error| Status::bad_request(error.to_string()))?;
            given.extend(role.rules);
        }
        self.held.check(review, GlobalRole::PLURAL, &given).await
    }

    async fn check_delete(&self, review: &Review<'_>) -> Result<(), Status> {
        let Some(old) = review.old else { return Ok(()) };
        let (group, plural) = (api_management::GROUP, GlobalRole::PLURAL);
        if old["builtin"] == true {
            let message = "it is built in and cannot be deleted";
            return Err(Status::forbidden(group, plural, review.name, message));
        }
        let bindings = self.bindings.list(&ListParams::default()).await;
        let bindings = bindings.map_err(|error| Status::internal(&error))?.items;
        // A binding that is left alone would give the next role of that name.
        let users: Vec<String> = bindings
            .iter()
            .filter(|binding| binding.global_role_name == review.name)
            .map(|binding| format!("globalrolebinding \"{}\"", binding.name_any()))
            .collect();
        if users.is_empty() {
            return Ok(());
        }
        let named = users.iter().take(NAMED_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
        let message =
            format!("it is given by {} objects, such as {named}; delete these first", users.len());
        Err(Status::conflict(group, plural, review.name, &message))
    }
}

impl Admit for RoleRules {
    fn admit<'a>(&'a self, review: &'a Review<'a>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(self.check(review))
    }
}
