//! Login names are unique, and nobody deletes or disables themselves.

use std::sync::Arc;

use api_meta::status::{Cause, Status};
use feature_kit::{Admit, Operation, Review};
use futures::future::BoxFuture;
use kube::ResourceExt;
use serde_json::Value;

use crate::directory::Directory;

/// See the module.
pub struct UserRules {
    directory: Arc<Directory>,
}

impl UserRules {
    pub fn new(directory: Arc<Directory>) -> Self {
        Self { directory }
    }

    fn check(&self, review: &Review<'_>) -> Result<(), Status> {
        let own = review.user == review.name;
        let refused = |message: &str| {
            Err(Status::forbidden(api_management::GROUP, "users", review.name, message))
        };
        let Some(object) = review.object else {
            return if own { refused("you cannot delete yourself") } else { Ok(()) };
        };
        if own && review.operation == Operation::Update && object["enabled"] == false {
            return refused("you cannot disable yourself");
        }
        let username = object["username"].as_str().unwrap_or_default();
        if username.is_empty() {
            return Ok(());
        }
        let holder = self.directory.user_by_username(username);
        match holder.map(|user| user.name_any()).filter(|id| id != review.name) {
            None => Ok(()),
            Some(id) => {
                let mut cause = Cause::duplicate("username", &Value::from(username));
                cause.message.push_str(&format!(": user \"{id}\" has this name"));
                let group = api_management::GROUP;
                Err(Status::invalid(group, "User", review.name, vec![cause]))
            }
        }
    }
}

impl Admit for UserRules {
    fn admit<'a>(&'a self, review: &'a Review<'a>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move { self.check(review) })
    }
}
