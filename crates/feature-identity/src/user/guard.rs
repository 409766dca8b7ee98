//! Whoever may write users cannot become one who has more: the login of a user is only for those
//! who have all roles of that user.

use std::sync::Arc;

use feature_kit::{Membership, RoleResolver, grants};

/// See the module.
#[derive(Clone)]
pub struct LoginGuard {
    roles: Arc<dyn RoleResolver>,
}

impl LoginGuard {
    /// `roles` says who has which role.
    pub fn new(roles: Arc<dyn RoleResolver>) -> Self {
        Self { roles }
    }

    /// Checks that a caller in these groups may decide how `user` logs in. `groups` may lack the
    /// caller's role groups. Roles that `user` has by groups of a directory do not count: no
    /// password that is set here brings them.
    ///
    /// # Errors
    /// The text of the refusal.
    pub fn check(&self, caller: &str, groups: &[String], user: &str) -> Result<(), String> {
        let held = self.roles.management_groups(Membership { user: caller, groups });
        let has_all = grants::is_administrator(groups)
            || grants::is_administrator(&held)
            || grants::is_controller(groups);
        if has_all || caller == user {
            return Ok(());
        }
        let roles = self.roles.management_groups(Membership { user, groups: &[] });
        if roles.iter().all(|role| held.contains(role)) {
            return Ok(());
        }
        Err(format!(
            "user \"{user}\" has roles that you do not have; only somebody who has all of them, such \
             as an administrator, may change, disable or delete that user"
        ))
    }
}
