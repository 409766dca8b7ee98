//! Logins through a directory, against real servers: OpenLDAP, also with the layout of FreeIPA, and
//! Samba as a domain controller of Active Directory.

#![allow(clippy::unwrap_used)]

#[path = "directories/samba.rs"]
mod samba;
#[path = "directories/slapd.rs"]
mod slapd;

use api_management::{GlobalRole, Token, User};
use bytes::Bytes;
use feature_identity::bootstrap;
use feature_kit::access::GROUP_PEOPLE;
use feature_kit::{Clients, Membership, RoleResolver};
use http::Request;
use identity::provider::ldap::{
    ACTIVE_DIRECTORY, Directory, FREEIPA, Flavour, LdapConfig, OPENLDAP,
};
use identity::provider::{IdentityProvider, PrincipalKind, Principals, ProviderError, Refreshed};
use identity::{Authenticate, Identity, Secret, credential};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams};
use rest_view::{Caller, RestView};
use samba::Samba;
use serde_json::{Value, json};
use slapd::{ADA_PASSWORD, BASE, READER, READER_PASSWORD, Slapd};
use test_kit::{World, eventually};

const PASSWORD: &str = "correct horse battery";
const ADA: &str = "openldap_user://uid=ada,ou=people,dc=example,dc=org";
const TEAM: &str = "openldap_group://cn=team,ou=groups,dc=example,dc=org";
const STAFF: &str = "openldap_group://cn=staff,ou=groups,dc=example,dc=org";
const LOGIN: &str = "/v3-public/openLdapProviders/openldap?action=login";
const CONFIG: &str = "/v3/openLdapConfigs/openldap";

fn config(slapd: &Slapd) -> Value {
    json!({
        "servers": ["127.0.0.1"],
        "port": slapd.port,
        "accessMode": "unrestricted",
        "connectionTimeout": 5000,
        "serviceAccountDistinguishedName": READER,
        "serviceAccountPassword": READER_PASSWORD,
        "userSearchBase": format!("ou=people,{BASE}"),
        "groupSearchBase": format!("ou=groups,{BASE}"),
    })
}

fn directory(config: &Value) -> Directory {
    directory_of(&OPENLDAP, config)
}

fn directory_of(flavour: &'static Flavour, config: &Value) -> Directory {
    let read = LdapConfig::read(flavour, config).map_err(|problems| format!("{problems:?}"));
    Directory::new(flavour, read.unwrap()).unwrap()
}

fn ids(person: &identity::provider::Person) -> Vec<&str> {
    person.groups.iter().map(|group| group.id.as_str()).collect()
}

#[tokio::test]
async fn people_log_in_with_their_groups_and_nobody_else_does() {
    let slapd = Slapd::start();
    let directory = directory(&config(&slapd));
    let password = Secret::new(ADA_PASSWORD);
    let ada = directory.authenticate("ada", &password).await.unwrap();
    assert_eq!((ada.user.id.as_str(), ada.user.display_name.as_str()), (ADA, "Ada Lovelace"));
    assert_eq!(ids(&ada), [TEAM]);
    for (name, password) in [
        ("ada", "wrong"),
        ("ada", ""),
        ("nobody", ADA_PASSWORD),
        ("*", ADA_PASSWORD),
        ("a*", ADA_PASSWORD),
        ("ada)(uid=*", ADA_PASSWORD),
        ("*)(objectClass=*", ADA_PASSWORD),
        ("ada)(|(uid=bob", "bob-secret"),
        ("ada\0", ADA_PASSWORD),
        ("\\61da", ADA_PASSWORD),
        ("uid=ada,ou=people,dc=example,dc=org", ADA_PASSWORD),
        ("reader", READER_PASSWORD),
    ] {
        let refused = directory.authenticate(name, &Secret::new(password)).await;
        assert_eq!(refused, Err(ProviderError::Wrong), "{name:?} {password:?}");
    }
}

#[tokio::test]
async fn groups_within_groups_count_when_that_is_set_and_rings_end() {
    let slapd = Slapd::start();
    let mut config = config(&slapd);
    config["nestedGroupMembershipEnabled"] = true.into();
    let ada = directory(&config).authenticate("ada", &Secret::new(ADA_PASSWORD)).await.unwrap();
    let ring = "openldap_group://cn=ring,ou=groups,dc=example,dc=org";
    assert_eq!(ids(&ada), [ring, STAFF, TEAM]);
}

#[tokio::test]
async fn searches_find_users_and_groups_by_how_they_begin() {
    let slapd = Slapd::start();
    let directory = directory(&config(&slapd));
    let found = directory.search("ad", Some(PrincipalKind::User), None).await.unwrap();
    assert_eq!(found.iter().map(|found| found.id.as_str()).collect::<Vec<_>>(), [ADA]);
    let found = directory.search("sta", None, None).await.unwrap();
    assert_eq!(found.iter().map(|found| found.id.as_str()).collect::<Vec<_>>(), [STAFF]);
    for nothing in ["*", "", ")(uid=*", "zzz"] {
        assert!(directory.search(nothing, None, None).await.unwrap().is_empty(), "{nothing}");
    }
    assert_eq!(directory.principal(STAFF, None).await.unwrap().unwrap().display_name, "staff");
    // The reader is in the directory, but not below the base of users.
    let reader = format!("openldap_user://{READER}");
    assert_eq!(directory.principal(&reader, None).await.unwrap(), None);
    assert_eq!(directory.principal("local://u-1", None).await.unwrap(), None);
}

#[tokio::test]
async fn tls_needs_the_authority_of_the_directory() {
    let slapd = Slapd::start();
    let password = Secret::new(ADA_PASSWORD);
    for (field, port) in [("tls", slapd.tls_port), ("starttls", slapd.port)] {
        let mut config = config(&slapd);
        config[field] = true.into();
        config["port"] = port.into();
        let untrusted = directory(&config).authenticate("ada", &password).await;
        assert!(matches!(untrusted, Err(ProviderError::Unavailable(_))), "{field}: {untrusted:?}");
        config["certificate"] = slapd.authority.clone().into();
        let ada = directory(&config).authenticate("ada", &password).await;
        assert_eq!(ada.unwrap().user.id, ADA, "{field}");
        // The certificate is not for this name.
        config["servers"] = json!(["127.0.0.2"]);
        let misnamed = directory(&config).authenticate("ada", &password).await;
        assert!(matches!(misnamed, Err(ProviderError::Unavailable(_))), "{field}: {misnamed:?}");
    }
}

#[tokio::test]
async fn a_refresh_knows_gone_from_unavailable_and_the_next_server_is_tried() {
    let mut slapd = Slapd::start();
    let mut config = config(&slapd);
    config["servers"] = json!(["127.0.0.3", "127.0.0.1"]);
    let directory = directory(&config);
    assert!(matches!(directory.refresh(ADA).await, Refreshed::Known(_)));
    // Groups that the service account cannot read are not none.
    slapd.conceal("groups");
    let refreshed = directory.refresh(ADA).await;
    assert!(matches!(refreshed, Refreshed::Unavailable(_)), "{refreshed:?}");
    slapd.stop();
    assert!(matches!(directory.refresh(ADA).await, Refreshed::Unavailable(_)));
    let refused = directory.authenticate("ada", &Secret::new(ADA_PASSWORD)).await;
    assert!(matches!(refused, Err(ProviderError::Unavailable(_))), "{refused:?}");
    slapd.start_again(&slapd::base());
    assert_eq!(directory.refresh(ADA).await, Refreshed::Gone);
    // A base that the service account cannot read says nothing about the user.
    slapd.conceal("people");
    let refreshed = directory.refresh(ADA).await;
    assert!(matches!(refreshed, Refreshed::Unavailable(_)), "{refreshed:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stored_password_goes_to_no_other_server_through_any_interface() {
    let slapd = Slapd::start();
    let rest = Rest::start().await;
    let admin = rest.admin().await;
    rest.enable(&admin, &config(&slapd)).await;
    let kind = GroupVersionKind::gvk("management.cattle.io", "v3", "AuthConfig");
    let resource = ApiResource::from_gvk_with_plural(&kind, "authconfigs");
    let configs: Api<DynamicObject> = Api::all_with(rest.world.admin(), &resource);
    let patch = async |change: Value| {
        configs.patch("openldap", &PatchParams::default(), &Patch::Merge(change)).await
    };
    let before = configs.get("openldap").await.unwrap().data;
    let reference = before["serviceAccountPassword"].clone();
    for change in [
        json!({"servers": ["127.0.0.9"]}),
        json!({"port": 1}),
        json!({"enabled": false, "servers": ["127.0.0.9"]}),
        json!({"servers": ["127.0.0.9"], "serviceAccountPassword": reference.clone()}),
    ] {
        let refused = patch(change.clone()).await.unwrap_err();
        assert!(refused.to_string().contains("enter it again"), "{change}: {refused}");
    }
    assert_eq!(configs.get("openldap").await.unwrap().data, before);
    // What is not about the server needs no password, and the same one may be entered again.
    patch(json!({"userSearchFilter": "(sn=*)"})).await.unwrap();
    let again = json!({"servers": ["localhost"], "serviceAccountPassword": READER_PASSWORD});
    let changed = patch(again).await.unwrap();
    assert_ne!(changed.data["serviceAccountPassword"], reference);
}

#[tokio::test]
async fn a_service_account_that_cannot_log_in_is_a_misconfiguration() {
    let slapd = Slapd::start();
    let mut config = config(&slapd);
    config["serviceAccountPassword"] = "wrong".into();
    let refused = directory(&config).authenticate("ada", &Secret::new(ADA_PASSWORD)).await;
    let field = "serviceAccountDistinguishedName";
    assert!(
        matches!(&refused, Err(ProviderError::Misconfigured { field: found, .. }) if *found == field),
        "{refused:?}"
    );
}

struct Rest {
    world: World,
    view: RestView,
    admin_id: String,
    flavour: &'static Flavour,
}

impl Rest {
    async fn start() -> Self {
        Self::with(&OPENLDAP).await
    }

    async fn with(flavour: &'static Flavour) -> Self {
        let world = World::start().await;
        let view = feature_kit::view::rest_view(&world.features, &world.context);
        let password = Some(Secret::new(PASSWORD));
        let made = bootstrap(&world.admin(), password).await.unwrap();
        eventually("the administrator known", async || {
            world.directory.user_by_username("admin").map(drop).ok_or("unknown")
        })
        .await;
        Self { view, admin_id: made.user_id.clone().unwrap(), world, flavour }
    }

    async fn identify(&self, token: &str) -> Option<Identity> {
        let mut headers = http::HeaderMap::new();
        headers.insert("authorization", format!("Bearer {token}").parse().unwrap());
        match credential::read_credential(&headers) {
            credential::PresentedCredential::Token(presented) => {
                self.world.directory.authenticate(&presented).await.ok()
            }
            _ => None,
        }
    }

    /// Like the server: the user of the token, their current groups, a client that acts as them.
    async fn call(&self, token: &str, method: &str, path: &str, body: Value) -> (u16, Value) {
        let (caller, client) = match self.identify(token).await {
            None => {
                let groups = ["system:unauthenticated".to_owned()];
                (Caller::anonymous(), self.world.api.client_as("system:anonymous", &groups))
            }
            Some(who) => {
                let membership = Membership { user: &who.user_id, groups: &who.groups };
                let mut groups = self.world.graph.management_groups(membership);
                groups.extend(["system:authenticated".to_owned(), GROUP_PEOPLE.to_owned()]);
                let client = self.world.api.client_as(&who.user_id, &groups);
                let caller = Caller {
                    user_id: who.user_id,
                    token_id: Some(who.token_id),
                    auth_provider: Some(who.auth_provider),
                    groups,
                    ..Caller::default()
                };
                (caller, client)
            }
        };
        let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
        let request = Request::builder().method(method).uri(path).header("host", "drover.example");
        let response = self.view.handle(request.body(body).unwrap(), &caller, &client).await;
        let (parts, body) = response.into_parts();
        (parts.status.as_u16(), serde_json::from_slice(&body).unwrap_or_default())
    }

    async fn get(&self, token: &str, path: &str) -> (u16, Value) {
        self.call(token, "GET", path, Value::Null).await
    }

    async fn login(&self, path: &str, username: &str, password: &str) -> (u16, Value) {
        let body = json!({"username": username, "password": password, "responseType": "json"});
        self.call("", "POST", path, body).await
    }

    /// The administrator's token, once the administrator's rights are effective.
    async fn admin(&self) -> String {
        let path = "/v3-public/localProviders/local?action=login";
        let (status, reply) = self.login(path, "admin", PASSWORD).await;
        assert_eq!(status, 201, "{reply}");
        let token = reply["token"].as_str().unwrap().to_owned();
        eventually("the administrator's rights", async || {
            let (status, reply) = self.get(&token, &self.config_path()).await;
            let links = reply["actions"]["testAndApply"].is_string();
            if status == 200 && links { Ok(()) } else { Err((status, reply)) }
        })
        .await;
        token
    }

    fn config_path(&self) -> String {
        format!("/v3/{}s/{}", self.flavour.config_type, self.flavour.provider)
    }

    async fn apply(&self, token: &str, config: &Value) -> (u16, Value) {
        let is_domain = self.flavour.has_domains;
        let password = if is_domain { samba::ADA_PASSWORD } else { ADA_PASSWORD };
        let field = if is_domain { "activeDirectoryConfig" } else { "ldapConfig" };
        let body = json!({field: config, "enabled": true, "username": "ada", "password": password});
        let path = format!("{}?action=testAndApply", self.config_path());
        self.call(token, "POST", &path, body).await
    }

    /// Applies the configuration and waits until the provider is enabled.
    async fn enable(&self, token: &str, config: &Value) {
        let (status, reply) = self.apply(token, config).await;
        assert_eq!(status, 200, "{reply}");
        eventually("the provider enabled", async || {
            let providers = self.world.directory.providers();
            let is_enabled = providers.is_enabled(self.flavour.provider);
            if is_enabled { Ok(()) } else { Err("not yet") }
        })
        .await;
    }

    /// The token of a login through the directory.
    async fn token_of(&self, username: &str, password: &str) -> String {
        let (public, provider) = (self.flavour.public_type, self.flavour.provider);
        let path = format!("/v3-public/{public}s/{provider}?action=login");
        let (status, reply) = self.login(&path, username, password).await;
        assert_eq!(status, 201, "{reply}");
        reply["token"].as_str().unwrap().to_owned()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_is_tested_enabled_used_and_disabled() {
    let slapd = Slapd::start();
    let rest = Rest::start().await;
    let admin = rest.admin().await;

    // Nothing is stored of what does not work.
    for (field, value) in [
        ("serviceAccountPassword", json!("wrong")),
        ("servers", json!(["127.0.0.9"])),
        ("userLoginAttribute", json!("uid)(x=*")),
        ("userSearchBase", json!("ou=nowhere,dc=example,dc=org")),
    ] {
        let mut broken = config(&slapd);
        broken[field] = value;
        let (status, reply) = rest.apply(&admin, &broken).await;
        assert_eq!(status, 422, "{field}: {reply}");
        assert!(!reply.to_string().contains(READER_PASSWORD));
    }
    assert_eq!(rest.get("", "/v3-public/openLdapProviders/openldap").await.0, 404);
    assert_ne!(rest.login(LOGIN, "ada", ADA_PASSWORD).await.0, 201);

    rest.enable(&admin, &config(&slapd)).await;
    let (_, stored) = rest.get(&admin, CONFIG).await;
    assert_eq!(stored["enabled"], true, "{stored}");
    assert!(!stored.to_string().contains(READER_PASSWORD), "{stored}");
    // As one of all configurations it is the same: Terraform reads its actions there.
    let (_, listed) = rest.get(&admin, "/v3/authConfigs/openldap").await;
    assert!(stored["actions"]["disable"].is_string(), "{stored}");
    assert_eq!(listed["actions"], stored["actions"]);
    let (_, providers) = rest.get("", "/v3-public/authProviders").await;
    let listed: Vec<_> = providers["data"].as_array().unwrap().iter().collect();
    assert_eq!(listed.len(), 2, "{providers}");
    assert!(listed.iter().any(|item| item["type"] == "openLdapProvider"), "{providers}");

    // Ada is the administrator's own account now.
    let token = rest.token_of("ada", ADA_PASSWORD).await;
    let who = rest.identify(&token).await.unwrap();
    assert_eq!(who.user_id, rest.admin_id);
    assert_eq!(
        (who.groups.as_slice(), who.auth_provider.as_str()),
        (&[TEAM.to_owned()][..], "openldap")
    );

    // The password stays where it was entered for.
    let mut moved = config(&slapd);
    moved.as_object_mut().unwrap().remove("serviceAccountPassword");
    moved["servers"] = json!(["127.0.0.7"]);
    let (status, reply) = rest.apply(&admin, &moved).await;
    assert_eq!((status, reply["fieldName"].as_str()), (422, Some("serviceAccountPassword")));

    let (status, reply) =
        rest.call(&admin, "POST", &format!("{CONFIG}?action=disable"), json!({})).await;
    assert_eq!(status, 200, "{reply}");
    eventually("tokens of the provider ended", async || {
        let tokens: Api<Token> = Api::all(rest.world.admin());
        let all = tokens.list(&ListParams::default()).await.unwrap().items;
        let left = all.iter().filter(|token| token.auth_provider == "openldap").count();
        if left == 0 { Ok(()) } else { Err(left) }
    })
    .await;
    assert!(rest.identify(&token).await.is_none());
    assert_ne!(rest.login(LOGIN, "ada", ADA_PASSWORD).await.0, 201);
    // The local administrator goes on.
    assert!(rest.identify(&admin).await.is_some());
    let (_, stored) = rest.get(&admin, CONFIG).await;
    assert_eq!((stored["enabled"].as_bool(), stored["servers"].is_null()), (Some(false), true));

    // Terraform enables it by the configuration's own field.
    let mut config = config(&slapd);
    config["enabled"] = true.into();
    let body = json!({"ldapConfig": config, "username": "ada", "password": ADA_PASSWORD});
    let (status, reply) =
        rest.call(&admin, "POST", &format!("{CONFIG}?action=testAndApply"), body).await;
    assert_eq!(status, 200, "{reply}");
    assert_eq!(rest.get(&admin, CONFIG).await.1["enabled"], true);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_from_a_directory_become_users_with_the_roles_of_new_users() {
    let mut slapd = Slapd::start();
    let rest = Rest::start().await;
    let admin = rest.admin().await;
    let role: Value = json!({"name": "newcomer", "newUserDefault": true, "rules": []});
    let (status, reply) = rest.call(&admin, "POST", "/v3/globalRoles", role).await;
    assert_eq!(status, 201, "{reply}");
    let role_id = reply["id"].as_str().unwrap().to_owned();
    let roles: Api<GlobalRole> = Api::all(rest.world.admin());
    assert!(roles.get(&role_id).await.unwrap().new_user_default);
    rest.enable(&admin, &config(&slapd)).await;

    let token = rest.token_of("bob", "bob-secret").await;
    let bob = rest.identify(&token).await.unwrap();
    assert!(bob.user_id.starts_with("u-") && bob.user_id.len() == 12, "{}", bob.user_id);
    let users: Api<User> = Api::all(rest.world.admin());
    let user = users.get(&bob.user_id).await.unwrap();
    assert_eq!((user.username.as_str(), user.display_name.as_str()), ("", "Bob"));
    let (_, bindings) = rest.get(&admin, "/v3/globalRoleBindings").await;
    let of_bob = bindings["data"].as_array().unwrap().iter().find(|binding| {
        binding["userId"] == bob.user_id.as_str() && binding["globalRoleId"] == role_id.as_str()
    });
    assert!(of_bob.is_some(), "{bindings}");
    // The second login is the same user.
    let again = rest.token_of("BOB", "bob-secret").await;
    assert_eq!(rest.identify(&again).await.unwrap().user_id, bob.user_id);

    // Principals come from the directory, then from here.
    let (_, own) = rest.get(&token, "/v3/principals").await;
    assert_eq!(own["data"][0]["id"], "openldap_user://uid=bob,ou=people,dc=example,dc=org");
    let search = json!({"name": "ad"});
    let (_, found) = rest.call(&token, "POST", "/v3/principals?action=search", search).await;
    let found: Vec<_> =
        found["data"].as_array().unwrap().iter().map(|item| item["id"].clone()).collect();
    // The administrator is Ada there, so is found only once.
    assert_eq!(found, [ADA]);

    // Who is gone there loses the logins from there; while nobody responds nobody does.
    let refresh = format!("/v3/users/{}?action=refreshauthprovideraccess", bob.user_id);
    slapd.stop();
    assert_eq!(rest.call(&admin, "POST", &refresh, json!({})).await.0, 200);
    assert!(rest.identify(&token).await.is_some());
    slapd.start_again(&slapd::base());
    assert_eq!(rest.call(&admin, "POST", &refresh, json!({})).await.0, 200);
    eventually("the token ended", async || match rest.identify(&token).await {
        None => Ok(()),
        Some(_) => Err("it holds"),
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn access_modes_and_disabled_users_are_refused() {
    let slapd = Slapd::start();
    let rest = Rest::start().await;
    let admin = rest.admin().await;
    let mut restricted = config(&slapd);
    restricted["accessMode"] = "restricted".into();
    rest.enable(&admin, &restricted).await;
    assert_eq!(rest.login(LOGIN, "bob", "bob-secret").await.0, 401);
    // Whoever tested it is let in.
    rest.token_of("ada", ADA_PASSWORD).await;
    restricted["allowedPrincipalIds"] =
        json!(["openldap_user://uid=bob,ou=people,dc=example,dc=org"]);
    rest.enable(&admin, &restricted).await;
    let bob = eventually("bob let in", async || {
        let (status, reply) = rest.login(LOGIN, "bob", "bob-secret").await;
        if status == 201 { Ok(reply) } else { Err((status, reply)) }
    })
    .await;
    let id = bob["userId"].as_str().unwrap();
    let path = format!("/v3/users/{id}");
    let (status, reply) = rest.call(&admin, "PUT", &path, json!({"enabled": false})).await;
    assert_eq!(status, 200, "{reply}");
    eventually("bob refused", async || {
        let (status, reply) = rest.login(LOGIN, "bob", "bob-secret").await;
        if status == 403 { Ok(()) } else { Err((status, reply)) }
    })
    .await;
    let unknown = rest.login(LOGIN, "nobody", "x").await;
    let wrong = rest.login(LOGIN, "ada", "x").await;
    assert_eq!((unknown.0, &unknown.1["message"]), (wrong.0, &wrong.1["message"]));
    assert_eq!(wrong.0, 401);
}

fn domain(samba: &Samba) -> Value {
    json!({
        "servers": [samba.address],
        "port": samba::TLS_PORT,
        "tls": true,
        "certificate": samba.authority,
        "accessMode": "unrestricted",
        "connectionTimeout": 5000,
        "defaultLoginDomain": samba::DOMAIN,
        "serviceAccountUsername": samba::READER,
        "serviceAccountPassword": samba::READER_PASSWORD,
        "userSearchBase": samba::BASE,
        "nestedGroupMembershipEnabled": true,
    })
}

/// The id of a user or group of the domain.
fn of_domain(kind: &str, name: &str) -> String {
    format!("activedirectory_{kind}://CN={name},CN=Users,{}", samba::BASE)
}

async fn check_logins(samba: &Samba, directory: &Directory) {
    let right = Secret::new(samba::ADA_PASSWORD);
    for name in ["ada", "ADA", "AD\\ada", "ada@ad.example.org"] {
        let ada = directory.authenticate(name, &right).await.unwrap();
        assert_eq!(ada.user.id, of_domain("user", "Ada Lovelace"), "{name}");
        assert_eq!(
            (ada.user.display_name.as_str(), &*ada.user.login_name),
            ("Ada Lovelace", "ada")
        );
        assert_eq!(ids(&ada), [of_domain("group", "staff"), of_domain("group", "team")]);
    }
    // The last one has to change the password first.
    for (name, password) in [
        ("ada", "wrong"),
        ("ada", ""),
        ("nobody", samba::ADA_PASSWORD),
        ("*", samba::ADA_PASSWORD),
        ("ada)(cn=*", samba::ADA_PASSWORD),
        ("eve", "Eve-secret-1"),
    ] {
        let refused = directory.authenticate(name, &Secret::new(password)).await;
        assert_eq!(refused, Err(ProviderError::Wrong), "{name:?} {password:?}");
    }
    // Passwords go over TLS only, which the domain insists on.
    let mut plain = domain(samba);
    plain["tls"] = false.into();
    plain["port"] = samba::PORT.into();
    let refused = directory_of(&ACTIVE_DIRECTORY, &plain).authenticate("ada", &right).await;
    let is_tls = |refused: &ProviderError| {
        matches!(refused, ProviderError::Misconfigured { field: "tls", .. })
    };
    assert!(refused.as_ref().is_err_and(is_tls), "{refused:?}");
    plain["starttls"] = true.into();
    directory_of(&ACTIVE_DIRECTORY, &plain).authenticate("ada", &right).await.unwrap();
    plain["certificate"] = Value::Null;
    let untrusted = directory_of(&ACTIVE_DIRECTORY, &plain).authenticate("ada", &right).await;
    assert!(matches!(untrusted, Err(ProviderError::Unavailable(_))), "{untrusted:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_of_an_active_directory_log_in_until_their_account_is_disabled() {
    let samba = tokio::task::spawn_blocking(Samba::start).await.unwrap();
    let directory = directory_of(&ACTIVE_DIRECTORY, &domain(&samba));
    check_logins(&samba, &directory).await;
    let found = directory.search("lovel", None, None).await.unwrap();
    assert_eq!(
        found.iter().map(|one| &one.id).collect::<Vec<_>>(),
        [&of_domain("user", "Ada Lovelace")]
    );
    let found = directory.search("tea", Some(PrincipalKind::Group), None).await.unwrap();
    assert_eq!(found[0].id, of_domain("group", "team"));

    let rest = Rest::with(&ACTIVE_DIRECTORY).await;
    let admin = rest.admin().await;
    rest.enable(&admin, &domain(&samba)).await;
    let token = rest.token_of("bob", samba::BOB_PASSWORD).await;
    let bob = rest.identify(&token).await.unwrap();
    assert_eq!(bob.groups, [of_domain("group", "other")]);
    let refresh = format!("/v3/users/{}?action=refreshauthprovideraccess", bob.user_id);
    samba.tool(&["group", "removemembers", "other", "bob"]);
    assert_eq!(rest.call(&admin, "POST", &refresh, json!({})).await.0, 200);
    eventually("the group lost", async || match rest.identify(&token).await {
        Some(bob) if bob.groups.is_empty() => Ok(()),
        other => Err(format!("{:?}", other.map(|bob| bob.groups))),
    })
    .await;
    samba.tool(&["user", "disable", "bob"]);
    let refused = directory.authenticate("bob", &Secret::new(samba::BOB_PASSWORD)).await;
    assert_eq!(refused, Err(ProviderError::Wrong));
    assert_eq!(directory.refresh(&of_domain("user", "bob")).await, Refreshed::Disabled);
    assert_eq!(rest.call(&admin, "POST", &refresh, json!({})).await.0, 200);
    eventually("the token ended", async || match rest.identify(&token).await {
        None => Ok(()),
        Some(_) => Err("it holds"),
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_of_a_directory_laid_out_like_freeipas_log_in_with_all_their_groups() {
    let slapd = Slapd::start_like_freeipa();
    let mut config = config(&slapd);
    let (users, groups) = (slapd::IPA_USERS, slapd::IPA_GROUPS);
    config["userSearchBase"] = users.into();
    config["groupSearchBase"] = groups.into();
    let directory = directory_of(&FREEIPA, &config);
    let ada = directory.authenticate("ada", &Secret::new(ADA_PASSWORD)).await.unwrap();
    assert_eq!(ada.user.id, format!("freeipa_user://uid=ada,{users}"));
    // FreeIPA lists in the user's entry also those that are in others.
    let expected = ["staff", "team"].map(|name| format!("freeipa_group://cn={name},{groups}"));
    assert_eq!(
        (ids(&ada), ada.user.display_name.as_str()),
        (expected.iter().map(String::as_str).collect(), "Ada")
    );
    let wrong = directory.authenticate("ada", &Secret::new("wrong")).await;
    assert_eq!(wrong, Err(ProviderError::Wrong));
    let rest = Rest::with(&FREEIPA).await;
    let admin = rest.admin().await;
    rest.enable(&admin, &config).await;
    let token = rest.token_of("ada", ADA_PASSWORD).await;
    assert_eq!(rest.identify(&token).await.unwrap().groups, expected);
}
