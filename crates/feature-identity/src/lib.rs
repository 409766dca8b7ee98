//! Identity: users with their preferences, tokens, and logging in by name and password, here or at
//! an identity provider.
//!
//! [`Directory`] is what the rest of the server calls: whose token is this, log in, make a token,
//! set a password. It answers from watches kept in memory. [`user`] and [`token`] hold what
//! concerns the objects, [`login`] the way from a name and a password to a token, [`code_login`]
//! that over the pages of a provider,
//! [`public_provider`] where clients log in, [`principal`] where they search for users.
//! [`auth_config`] has the configurations of identity providers, [`preference`] what users set for
//! the web interface. [`providers`] opens those that are enabled, [`external_user`] finds
//! and makes the users who log in through them, [`refresh`] reads their groups anew.
//! [`cluster_identity`] is who a user is in a cluster, [`revocation`] ends what a token or a role
//! allowed once it no longer does.

pub mod auth_config;
pub mod cluster_identity;
pub mod code_login;
pub mod directory;
pub mod external_user;
mod grants;
pub mod login;
pub mod preference;
pub mod principal;
pub mod provider_kind;
pub mod providers;
pub mod public_provider;
pub mod refresh;
pub mod revocation;
mod short_lived;
pub mod token;
pub mod user;

use std::sync::Arc;

use api_management::{Token, User, keys};
use feature_kit::{
    Feature, KindRules, ManagementContext, ManagementSpec, RoleResolver, Route, Seed, ViewSpec,
    unique,
};
use identity::provider::CALLBACK_PATH;

pub use directory::Directory;
pub use login::{LoginError, LoginRequest};
pub use token::authenticate::holds;
pub use token::issue::{Issued, TokenRequest};
use user::admission::{LOGIN_NAME, UserRules};
pub use user::bootstrap::{Bootstrap, bootstrap};
use user::guard::LoginGuard;
pub use user::passwords::SetPasswordError;

/// The feature. `roles` says who has which role. Must be called inside a tokio runtime.
pub fn feature(
    context: &ManagementContext,
    directory: &Arc<Directory>,
    roles: Arc<dyn RoleResolver>,
) -> Feature {
    let guard = LoginGuard::new(roles);
    let login_names = LOGIN_NAME.claims(context.clients.controller(&LOGIN_NAME.identity()));
    let users = KindRules::of::<User>()
        .finalizers(&[keys::USER_FINALIZER])
        .shared_fields(&[user::passwords::MUST_CHANGE, "principalIds"])
        .admit_with(Arc::new(UserRules::new(login_names, guard.clone())));
    let for_providers = directory.clone();
    Feature::new("identity")
        .kind_with(users)
        .kind_with(
            KindRules::of::<Token>()
                .shared_fields(&["groupPrincipals", "lastUpdateTime", "lastUsedAt"])
                .admit_with(Arc::new(token::admission::TokenRules)),
        )
        .kind_with(auth_config::rules())
        .kind_with(preference::rules())
        .identity(directory::identity())
        // Password hashes are stored in it; only the directory has rights there.
        .seed([Seed::system_namespace(keys::PASSWORDS_NS), unique::seed()])
        // With what is stored in it users are read anew at their providers.
        .seed([Seed::system_namespace(keys::LOGIN_GRANTS_NS)])
        .route(Route::public(code_login::START, code_login::start(directory)))
        .route(Route::public(CALLBACK_PATH, code_login::callback(directory)))
        .seed(auth_config::seeds())
        .management(unique::controller::spec(LOGIN_NAME))
        .management(ManagementSpec::new(token::purge::identity(), token::purge::run))
        .management(ManagementSpec::new(providers::identity(), move |context, client| {
            providers::run(for_providers.clone(), context, client)
        }))
        .view(views(directory.clone(), guard))
        .view(ViewSpec::acting_as(preference::identity(), |_, client| {
            vec![preference::view(client)]
        }))
}

fn views(directory: Arc<Directory>, guard: LoginGuard) -> ViewSpec {
    ViewSpec::new(move |_| {
        let mut views = vec![
            principal::view(&directory),
            user::view::view(&directory, guard.clone()),
            token::view::view(&directory),
        ];
        views.extend(public_provider::views(&directory));
        views.extend(auth_config::views(&directory));
        views
    })
}

#[cfg(test)]
mod tests;
