//! The users of people who log in through a directory: found by their principal id, or made at the
//! first login.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_management::user::{INITIAL_ROLES_POPULATED, LOCAL_PRINCIPAL};
use api_management::{
    ClusterRoleTemplateBinding, GlobalRole, GlobalRoleBinding, ProjectRoleTemplateBinding, User,
    keys,
};
use controller::error::is_code;
use controller::{Attempt, ReconcileError, Reflector, Whole, ensure};
use feature_kit::ManagementContext;
use feature_kit::ownership::owner_reference;
use identity::provider::Person;
use jiff::Timestamp;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::directory::Directory;
use crate::providers::{AccessRule, creator_label};

/// Characters of a name after its prefix.
const NAME_LENGTH: usize = 10;
const BASE32: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// What decides who may log in, and what new users get.
pub struct Memberships {
    roles: Arc<Reflector<Whole<GlobalRole>>>,
    clusters: Arc<Reflector<Whole<ClusterRoleTemplateBinding>>>,
    projects: Arc<Reflector<Whole<ProjectRoleTemplateBinding>>>,
}

impl Memberships {
    /// Must be called inside a tokio runtime.
    pub fn new(context: &ManagementContext) -> Self {
        let reflectors = &context.scope.reflectors;
        Self { roles: reflectors.get(), clusters: reflectors.get(), projects: reflectors.get() }
    }

    pub(crate) async fn synced(&self) {
        tokio::join!(self.roles.synced(), self.clusters.synced(), self.projects.synced());
    }

    /// Whether any binding in a cluster or project means the person.
    fn has_member(&self, person: &Person, user: Option<&str>) -> bool {
        let is_group = |name: &str| person.groups.iter().any(|group| group.id == name);
        let is_user = |name: &str, principal: &str| {
            user.is_some_and(|user| user == name) || principal == person.user.id
        };
        let mut found = false;
        self.clusters.for_each(|_, binding| {
            found |= is_user(&binding.user_name, &binding.user_principal_name)
                || is_group(&binding.group_principal_name)
                || is_group(&binding.group_name);
        });
        self.projects.for_each(|_, binding| {
            found |= is_user(&binding.user_name, &binding.user_principal_name)
                || is_group(&binding.group_principal_name)
                || is_group(&binding.group_name);
        });
        found
    }

    fn of_new_users(&self) -> Vec<String> {
        let mut roles = Vec::new();
        self.roles.for_each(|key, role| {
            if role.new_user_default {
                roles.push(key.name.clone());
            }
        });
        roles.sort();
        roles
    }
}

/// `prefix` and the beginning of the SHA-256 of a text in base 32, lower case.
pub(crate) fn name_of(prefix: &str, text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    let mut name = prefix.to_owned();
    let (mut bits, mut count) = (0_u32, 0_u32);
    for byte in digest {
        bits = bits << 8 | u32::from(byte);
        count += 8;
        while count >= 5 && name.len() < prefix.len() + NAME_LENGTH {
            count -= 5;
            name.push(char::from(BASE32[(bits >> count & 31) as usize]));
        }
    }
    name
}

/// Whether the rule lets the person in. `is_member`: of a cluster or project.
pub(crate) fn is_allowed(rule: &AccessRule, person: &Person, is_member: impl Fn() -> bool) -> bool {
    let mut ids = std::iter::once(&person.user).chain(&person.groups).map(|found| &found.id);
    let is_named = ids.any(|id| rule.allowed.contains(id));
    match (rule.is_required, rule.is_restricted) {
        (true, _) => is_named,
        (false, true) => is_named || is_member(),
        (false, false) => true,
    }
}

impl Directory {
    /// The user with this principal id. Also found before the watch has brought it.
    ///
    /// # Errors
    /// More than one user has it.
    pub(crate) async fn user_by_principal(
        &self,
        principal: &str,
    ) -> Result<Option<Arc<User>>, ReconcileError> {
        let mut names = Vec::new();
        let is_of = |user: &User| user.principal_ids.iter().any(|id| id == principal);
        self.users().for_each(|key, user| {
            if is_of(user) {
                names.push(key.name.clone());
            }
        });
        match names.as_slice() {
            [] => {
                let fresh = self.user(&name_of(api_management::ids::USER_PREFIX, principal)).await;
                Ok(fresh.filter(|user| is_of(user)))
            }
            [name] => Ok(self.user(name).await),
            _ => Err(ReconcileError::other(
                format!("find the user with principal \"{principal}\""),
                format!("users {} have it; remove it from all but one", names.join(", ")),
            )),
        }
    }

    /// Whether the rule lets the person log in as `user`, if that user exists.
    pub(crate) fn lets_in(&self, rule: &AccessRule, person: &Person, user: Option<&User>) -> bool {
        let name = user.map(ResourceExt::name_any);
        is_allowed(rule, person, || self.memberships.has_member(person, name.as_deref()))
    }

    /// Makes the user of a person who logs in for the first time.
    ///
    /// # Errors
    /// The API refused, or another user has the name.
    pub(crate) async fn make_user(&self, person: &Person) -> Result<Arc<User>, ReconcileError> {
        let principal = person.user.id.as_str();
        let name = name_of(api_management::ids::USER_PREFIX, principal);
        let api: Api<User> = Api::all(self.client.clone());
        let attempt = || format!("create user \"{name}\" of principal \"{principal}\"");
        let user = match api.create(&PostParams::default(), &self.new_user(&name, person)).await {
            Ok(user) => user,
            Err(error) if is_code(&error, 409) => {
                let user = api.get(&name).await.attempt(attempt)?;
                if !user.principal_ids.iter().any(|id| id == principal) {
                    let cause = "a user of this name has no such principal any more; delete the \
                                 user, or add the principal to its principalIds";
                    return Err(ReconcileError::other(attempt(), cause));
                }
                user
            }
            Err(error) => return Err(error).attempt(attempt),
        };
        Ok(Arc::new(user))
    }

    fn new_user(&self, name: &str, person: &Person) -> User {
        let principal = person.user.id.clone();
        let roles = json!({"created": [], "required": self.memberships.of_new_users()});
        let annotations = [
            (keys::CREATOR_ROLE_BINDINGS.to_owned(), roles.to_string()),
            (PRINCIPAL_ANNOTATION.to_owned(), principal.clone()),
        ];
        let mut user = User {
            display_name: person.user.display_name.clone(),
            principal_ids: vec![principal, format!("{LOCAL_PRINCIPAL}{name}")],
            enabled: Some(true),
            ..User::default()
        };
        user.metadata.name = Some(name.to_owned());
        user.metadata.annotations = Some(BTreeMap::from(annotations));
        user.metadata.labels = Some(BTreeMap::from([creator_label()]));
        user
    }

    /// Gives a new user the roles that new users have. Done once, also when a login was cut short.
    ///
    /// # Errors
    /// The API refused.
    pub(crate) async fn give_initial_roles(&self, user: &User) -> Result<(), ReconcileError> {
        if !lacks_initial_roles(user) {
            return Ok(());
        }
        let name = user.name_any();
        let bindings: Api<GlobalRoleBinding> = Api::all(self.client.clone());
        // As the roles are now: what a user's annotation says is for others to read.
        for role in self.memberships.of_new_users() {
            let binding = GlobalRoleBinding {
                metadata: ObjectMeta {
                    name: Some(name_of("grb-", &format!("{name}/{role}"))),
                    owner_references: Some(vec![owner_reference(user)]),
                    labels: Some(BTreeMap::from([creator_label()])),
                    ..ObjectMeta::default()
                },
                global_role_name: role,
                user_name: name.clone(),
                ..GlobalRoleBinding::default()
            };
            ensure::created(&bindings, &binding).await?;
        }
        let mut conditions = conditions(user);
        conditions.push(json!({
            "type": INITIAL_ROLES_POPULATED,
            "status": "True",
            "lastUpdateTime": Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        }));
        let patch = Patch::Merge(json!({"status": {"conditions": conditions}}));
        let api: Api<User> = Api::all(self.client.clone());
        let patched = api.patch_status(&name, &PatchParams::default(), &patch).await;
        patched.attempt(|| format!("note that user \"{name}\" has its first roles")).map(drop)
    }
}

/// Annotation of a user of a directory: the principal it was made for.
const PRINCIPAL_ANNOTATION: &str = "authz.management.cattle.io/principal-id";

fn conditions(user: &User) -> Vec<Value> {
    let status = user.other.get("status").and_then(|status| status["conditions"].as_array());
    status.cloned().unwrap_or_default()
}

/// Whether a user that was made at a login has not got the first roles yet. No other user has.
fn lacks_initial_roles(user: &User) -> bool {
    let is_done = |condition: &Value| {
        condition["type"] == INITIAL_ROLES_POPULATED && condition["status"] == "True"
    };
    user.annotations().contains_key(PRINCIPAL_ANNOTATION) && !conditions(user).iter().any(is_done)
}

#[cfg(test)]
mod tests {
    use identity::provider::{Principal, PrincipalKind};

    use super::*;

    fn principal(id: &str, kind: PrincipalKind) -> Principal {
        let name = id.to_owned();
        Principal { id: id.to_owned(), kind, display_name: name.clone(), login_name: name }
    }

    #[test]
    fn names_are_the_beginning_of_a_hash_in_base_32() {
        // printf %s abc | sha256sum | xxd -r -p | base32 | head -c 10
        assert_eq!(name_of("u-", "abc"), "u-xj4bnp4pah");
    }

    #[test]
    fn access_modes_let_in_whom_they_name() {
        let person = Person {
            user: principal("openldap_user://ada", PrincipalKind::User),
            groups: vec![principal("openldap_group://staff", PrincipalKind::Group)],
        };
        let rule = |required, restricted, allowed: &[&str]| AccessRule {
            is_required: required,
            is_restricted: restricted,
            allowed: allowed.iter().map(|&id| id.to_owned()).collect(),
        };
        assert!(is_allowed(&rule(false, false, &[]), &person, || false));
        assert!(!is_allowed(&rule(false, true, &[]), &person, || false));
        assert!(is_allowed(&rule(false, true, &[]), &person, || true));
        assert!(!is_allowed(&rule(true, false, &["openldap_user://bob"]), &person, || true));
        assert!(is_allowed(&rule(true, false, &["openldap_group://staff"]), &person, || false));
    }

    #[test]
    fn only_users_made_at_a_login_get_first_roles_and_only_once() {
        let mut user = <User as Default>::default();
        assert!(!lacks_initial_roles(&user));
        user.annotations_mut().insert(PRINCIPAL_ANNOTATION.to_owned(), "x".to_owned());
        assert!(lacks_initial_roles(&user));
        let condition = json!({"type": INITIAL_ROLES_POPULATED, "status": "True"});
        user.other.insert("status".to_owned(), json!({"conditions": [condition]}));
        assert!(!lacks_initial_roles(&user));
    }
}
