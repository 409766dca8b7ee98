//! Login names are unique, nobody deletes or disables themselves, and nobody takes over a user who
//! has more rights ([`super::guard`]).
//!
//! That a login name is free says its claim in the storage ([`feature_kit::unique`]); a watch may
//! not have brought yet who has just got it.

use api_management::User;
use api_meta::status::Status;
use feature_kit::unique::{Claims, UniqueName};
use feature_kit::{Admit, Review, ReviewOperation, grants};
use futures::future::BoxFuture;

use super::guard::LoginGuard;

/// Fields that do not decide who logs in as the user.
const DESCRIPTIVE: [&str; 3] = ["displayName", "description", super::passwords::MUST_CHANGE];

/// No two users log in with the same name.
pub const LOGIN_NAME: UniqueName<User> = UniqueName {
    what: "login-name",
    controller: "login-names",
    field: "username",
    name_of: |user| &user.username,
};

/// See the module.
pub struct UserRules {
    login_names: Claims<User>,
    guard: LoginGuard,
}

impl UserRules {
    /// `login_names` acts as the identity of [`LOGIN_NAME`].
    pub fn new(login_names: Claims<User>, guard: LoginGuard) -> Self {
        Self { login_names, guard }
    }

    async fn check(&self, review: &Review<'_>) -> Result<(), Status> {
        let own = review.user == review.name;
        let refused = |message: &str| {
            Err(Status::forbidden(api_management::GROUP, "users", review.name, message))
        };
        if own && review.operation == ReviewOperation::Delete {
            return refused("you cannot delete yourself");
        }
        let disables = review.object.is_some_and(|object| object["enabled"] == false);
        if own && review.operation == ReviewOperation::Update && disables {
            return refused("you cannot disable yourself");
        }
        let decides = review.operation == ReviewOperation::Delete;
        if decides || grants::changes_grant(review, &DESCRIPTIVE) {
            let checked = self.guard.check(review.user, review.groups, review.name);
            checked.or_else(|text| refused(&text))?;
        }
        self.login_names.admit(review).await
    }
}

impl Admit for UserRules {
    fn admit<'a>(&'a self, review: &'a Review<'a>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(self.check(review))
    }
}
