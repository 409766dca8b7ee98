//! Login names are unique, and nobody deletes or disables themselves.
//!
//! That a login name is free says its claim in the storage ([`feature_kit::unique`]); a watch may
//! not have brought yet who has just got it.

use api_management::User;
use api_meta::status::Status;
use feature_kit::unique::{Claims, UniqueName};
use feature_kit::{Admit, Review, ReviewOperation};
use futures::future::BoxFuture;

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
}

impl UserRules {
    /// `login_names` acts as the identity of [`LOGIN_NAME`].
    pub fn new(login_names: Claims<User>) -> Self {
        Self { login_names }
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
        self.login_names.admit(review).await
    }
}

impl Admit for UserRules {
    fn admit<'a>(&'a self, review: &'a Review<'a>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(self.check(review))
    }
}
