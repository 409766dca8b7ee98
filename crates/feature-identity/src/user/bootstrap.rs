//! The first administrator: made once, at the first start.
//!
//! Steps: user, rights, password, then a marker. Each is idempotent and the marker comes last,
//! after the password was shown, so a start that was cut short is made up for by the next one: it
//! sets another password and shows that.

use api_management::{GlobalRoleBinding, User, ids, keys};
use controller::{Attempt, ReconcileError, ensure};
use feature_kit::access::admin_binding;
use identity::password::generate_password;
use identity::{Passwords, Secret, random_text};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ListParams, ObjectMeta};
use kube::{Api, Client, ResourceExt};

use super::passwords;

/// Login name of the first administrator.
pub const USERNAME: &str = "admin";
/// ConfigMap in `cattle-system` that says the first administrator was made.
const MARKER: &str = "admincreated";

/// What the first start did. [`Bootstrap::confirm`] once the password was shown.
pub struct Bootstrap {
    client: Client,
    /// Id of the administrator; absent when an earlier start did it all.
    pub user_id: Option<String>,
    /// The password that was made up, to be shown once. Absent when it was given, or not set now.
    pub generated: Option<Secret>,
}

/// Makes the first administrator unless that was done before. The kinds and namespaces must be
/// there; `client` may do everything. A `password` that is given later does not change that of an
/// administrator who exists.
///
/// # Errors
/// The API refused. Calling again goes on where this ended.
pub async fn bootstrap(
    client: &Client,
    password: Option<Secret>,
) -> Result<Bootstrap, ReconcileError> {
    let markers: Api<ConfigMap> = Api::namespaced(client.clone(), keys::SYSTEM_NS);
    let marker = markers.get_opt(MARKER).await;
    if marker.attempt(|| format!("read configmap \"{MARKER}\""))?.is_some() {
        return Ok(Bootstrap { client: client.clone(), user_id: None, generated: None });
    }
    let generated = password.is_none().then(generate_password);
    let password = password.or_else(|| generated.clone()).unwrap_or_default();
    // Hashing takes as long as all the writes.
    let passwords = Passwords::default();
    let (user, hash) = tokio::join!(administrator(client), passwords.hash(password));
    let user = user?;
    let hash = hash.map_err(|error| ReconcileError::other("hash the first password", error))?;
    passwords::store(client, &user, hash).await?;
    Ok(Bootstrap { client: client.clone(), user_id: Some(user.name_any()), generated })
}

/// The first user, with all rights.
async fn administrator(client: &Client) -> Result<User, ReconcileError> {
    let user = first_user(client).await?;
    let bindings: Api<GlobalRoleBinding> = Api::all(client.clone());
    ensure::created(&bindings, &admin_binding(&user.name_any())).await?;
    Ok(user)
}

/// The administrator, from a start that was cut short or made now.
async fn first_user(client: &Client) -> Result<User, ReconcileError> {
    let users: Api<User> = Api::all(client.clone());
    let label = format!("{}={}", keys::BOOTSTRAPPING, keys::BOOTSTRAP_ADMIN_USER);
    let found = users.list(&ListParams::default().labels(&label)).await;
    let found = found.attempt(|| "list users".to_owned())?;
    if let Some(user) = found.items.into_iter().next() {
        return Ok(user);
    }
    let user = new_user(&random_text(ids::SUFFIX_LEN));
    let created = users.create(&kube::api::PostParams::default(), &user).await;
    created.attempt(|| format!("create user \"{USERNAME}\""))
}

fn new_user(suffix: &str) -> User {
    let labels = [(keys::BOOTSTRAPPING.to_owned(), keys::BOOTSTRAP_ADMIN_USER.to_owned())];
    let mut user = User {
        display_name: "Default Admin".to_owned(),
        username: USERNAME.to_owned(),
        enabled: Some(true),
        ..User::default()
    };
    user.metadata.name = Some(format!("{}{suffix}", ids::USER_BOOTSTRAP_PREFIX));
    user.metadata.labels = Some(labels.into());
    user
}

impl Bootstrap {
    /// The password was shown, or was known: do not do it again.
    ///
    /// # Errors
    /// The API refused.
    pub async fn confirm(&self) -> Result<(), ReconcileError> {
        let marker = ConfigMap {
            metadata: ObjectMeta {
                name: Some(MARKER.to_owned()),
                namespace: Some(keys::SYSTEM_NS.to_owned()),
                ..ObjectMeta::default()
            },
            ..ConfigMap::default()
        };
        let api = Api::namespaced(self.client.clone(), keys::SYSTEM_NS);
        ensure::created(&api, &marker).await.map(drop)
    }
}
