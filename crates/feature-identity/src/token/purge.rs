//! Keeps true: no token stays that is past its time or whose user is gone.
//!
//! Such tokens do not hold anyway; this only cleans up, at leisure. Owns no condition.

use std::time::Duration;

use api_management::{Token, User};
use controller::{Whole, ensure};
use feature_kit::rbac::ours;
use feature_kit::{ControllerIdentity, ManagementContext};
use jiff::Timestamp;
use kube::{Api, Client};

/// Time between two rounds.
const INTERVAL: Duration = Duration::from_secs(600);
/// How long a token without a user stays: the watch of users may lag behind that of tokens.
const ORPHAN_AGE_MILLIS: i64 = 60_000;

/// The controller's identity, with its rights in the management API.
pub fn identity() -> ControllerIdentity {
    ControllerIdentity::new("token-purge", vec![ours(&["tokens"], &["delete"])])
}

/// Runs the controller until the future is dropped. `client` acts as [`identity()`].
pub async fn run(context: ManagementContext, client: Client) {
    let scope = &context.scope;
    let tokens = scope.reflectors.get::<Whole<Token>>();
    let users = scope.reflectors.get::<Whole<User>>();
    tokio::join!(tokens.synced(), users.synced());
    let api: Api<Token> = Api::all(client);
    loop {
        let now = Timestamp::now().as_millisecond();
        let mut ended = Vec::new();
        tokens.for_each(|key, token| {
            if is_ended(token, users.named(&token.user_id).is_some(), now) {
                ended.push(key.name.clone());
            }
        });
        for name in ended {
            if let Err(error) = ensure::absent(&api, &name).await {
                tracing::debug!(token = %name, error = error.chain(), "token was not purged");
            }
        }
        tokio::select! {
            () = scope.stop.cancelled() => return,
            () = tokio::time::sleep(INTERVAL) => {}
        }
    }
}

/// Whether the token may go. Pure.
pub(crate) fn is_ended(token: &Token, has_user: bool, now_millis: i64) -> bool {
    let created = token.metadata.creation_timestamp.as_ref();
    let created = created.map_or(now_millis, |at| at.0.as_millisecond());
    let orphan = !has_user && created + ORPHAN_AGE_MILLIS <= now_millis;
    token.is_expired(now_millis) || orphan
}
