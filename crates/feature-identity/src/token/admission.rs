//! Nobody makes a token for somebody else: whoever may write tokens would be everybody.

use api_management::Token;
use api_management::kind::Kind;
use api_meta::status::Status;
use feature_kit::{Admit, Review, grants};
use futures::future::BoxFuture;

/// See the module.
pub struct TokenRules;

impl TokenRules {
    fn check(review: &Review<'_>) -> Result<(), Status> {
        if grants::is_administrator(review.groups) || grants::is_controller(review.groups) {
            return Ok(());
        }
        let users = [review.object, review.old].into_iter().flatten().map(|token| &token["userId"]);
        if review.object.is_none() || users.clone().all(|user| user == review.user) {
            return Ok(());
        }
        let message = "a token is made or changed only by the user it belongs to";
        Err(Status::forbidden(api_management::GROUP, Token::PLURAL, review.name, message))
    }
}

impl Admit for TokenRules {
    fn admit<'a>(&'a self, review: &'a Review<'a>) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move { Self::check(review) })
    }
}
