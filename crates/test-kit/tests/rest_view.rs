//! `/v3` over all features: reads and writes of users with and without rights, through real
//! requests.

#![allow(clippy::unwrap_used)]

#[path = "rest_view/references.rs"]
mod references;

use bytes::Bytes;
use feature_identity::bootstrap;
use feature_kit::access::{GROUP_GLOBAL_ADMIN, GROUP_PEOPLE};
use feature_kit::{Clients, Membership, RoleResolver};
use http::{HeaderMap, Request};
use identity::{Authenticate, Identity, Secret, credential};
use rest_view::{Caller, RestView};
use serde_json::{Value, json};
use test_kit::{KubeApi, Profile, World, eventually};

const PASSWORD: &str = "correct horse battery";

struct Rest {
    world: World,
    view: RestView,
    admin_id: String,
}

struct Reply {
    status: u16,
    headers: HeaderMap,
    body: Value,
}

impl Reply {
    fn text(&self, field: &str) -> String {
        self.body[field].as_str().unwrap_or_else(|| panic!("no {field}: {}", self.body)).to_owned()
    }
    fn ids(&self) -> Vec<String> {
        let data = self.body["data"].as_array().unwrap_or_else(|| panic!("no list: {}", self.body));
        data.iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
    }
}

impl Rest {
    async fn start() -> Self {
        let world = World::start().await;
        let view = feature_kit::view::rest_view(&world.features, &world.context);
        let password = Some(Secret::new(PASSWORD));
        let made = bootstrap(&world.admin(), password).await.unwrap();
        eventually("the administrator known", async || {
            world.directory.user_by_username("admin").map(drop).ok_or("unknown")
        })
        .await;
        Self { view, admin_id: made.user_id.clone().unwrap(), world }
    }

    /// Like the server: the user of the token, their current groups, a client that acts as the
    /// user.
    async fn send(&self, request: http::request::Builder, token: &str, body: &Value) -> Reply {
        let mut request = request.header("host", "drover.example");
        if !token.is_empty() {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
        let request = request.body(body).unwrap();
        let (caller, client) = match self.identify(request.headers()).await {
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
                    token_cluster: who.cluster,
                    auth_provider: Some(who.auth_provider),
                    groups,
                    ..Caller::default()
                };
                (caller, client)
            }
        };
        let (parts, body) = self.view.handle(request, &caller, &client).await.into_parts();
        let body = serde_json::from_slice(&body).unwrap_or_default();
        Reply { status: parts.status.as_u16(), headers: parts.headers, body }
    }

    async fn identify(&self, headers: &HeaderMap) -> Option<Identity> {
        match credential::read_credential(headers) {
            credential::PresentedCredential::Token(presented) => {
                self.world.directory.authenticate(&presented).await.ok()
            }
            _ => None,
        }
    }

    async fn call(&self, token: &str, method: &str, path: &str, body: Value) -> Reply {
        self.send(Request::builder().method(method).uri(path), token, &body).await
    }
    async fn get(&self, token: &str, path: &str) -> Reply {
        self.call(token, "GET", path, Value::Null).await
    }

    async fn login(&self, username: &str, password: &str) -> Reply {
        let body = json!({"username": username, "password": password, "responseType": "json"});
        self.call("", "POST", "/v3-public/localProviders/local?action=login", body).await
    }
    async fn token_of(&self, username: &str, password: &str) -> String {
        let reply = self.login(username, password).await;
        assert_eq!(reply.status, 201, "{}", reply.body);
        reply.text("token")
    }
    /// The administrator's token, once the administrator's rights are effective.
    async fn admin(&self) -> String {
        let token = self.token_of("admin", PASSWORD).await;
        eventually("the administrator's rights", async || {
            let groups = self
                .world
                .graph
                .management_groups(Membership { user: &self.admin_id, groups: &[] });
            let reply = self.get(&token, "/v3/users").await;
            let knows = groups.iter().any(|group| group == GROUP_GLOBAL_ADMIN);
            if knows && !reply.ids().is_empty() { Ok(()) } else { Err((groups, reply.body)) }
        })
        .await;
        token
    }

    /// Creates a user with a password; returns the id.
    async fn user(&self, admin: &str, username: &str) -> String {
        let body = json!({"username": username, "name": username, "password": PASSWORD});
        let reply = self.call(admin, "POST", "/v3/users", body).await;
        assert_eq!(reply.status, 201, "{}", reply.body);
        assert!(reply.body.get("password").is_none());
        let id = reply.text("id");
        eventually("the login name", async || {
            self.world.directory.user_by_username(username).map(drop).ok_or("unknown")
        })
        .await;
        id
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_login_returns_a_token_that_is_valid_until_logout() {
    let rest = Rest::start().await;
    for (user, password) in [("admin", "wrong"), ("nobody", PASSWORD), ("", "")] {
        let reply = rest.login(user, password).await;
        assert_eq!((reply.status, reply.text("code").as_str()), (401, "Unauthorized"), "{user}");
        assert_eq!(reply.text("message"), "authentication failed");
    }
    let reply = rest.login("admin", PASSWORD).await;
    assert_eq!((reply.status, reply.text("type").as_str()), (201, "token"));
    assert_eq!(reply.text("userId"), rest.admin_id);
    let token = reply.text("token");
    let id = token.split(':').next().unwrap().to_owned();
    let shown = rest.get(&token, &format!("/v3/tokens/{id}")).await;
    assert_eq!((shown.status, &shown.body["current"]), (200, &json!(true)), "{}", shown.body);
    assert!(shown.body.get("token").is_none());
    assert_eq!(
        rest.call(&token, "DELETE", &format!("/v3/tokens/{id}"), Value::Null).await.status,
        400
    );

    let ended = rest.call(&token, "POST", "/v3/tokens?action=logout", json!({})).await;
    assert_eq!(ended.status, 200);
    assert_eq!(ended.headers.get_all("set-cookie").iter().count(), 3);
    eventually("the end of the token", async || {
        let status = rest.get(&token, "/v3/tokens").await.status;
        if status == 401 { Ok(()) } else { Err(status) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_browser_gets_its_token_as_a_cookie_only() {
    let rest = Rest::start().await;
    let body = json!({"username": "admin", "password": PASSWORD, "responseType": "cookie"});
    let path = "/v3-public/localProviders/local?action=login";
    let reply = rest.call("", "POST", path, body).await;
    assert_eq!((reply.status, &reply.body), (200, &Value::Null));
    let cookie = reply.headers["set-cookie"].to_str().unwrap();
    let (value, attributes) = cookie.split_once(';').unwrap();
    assert!(value.starts_with("R_SESS=token-"), "{value}");
    assert_eq!(attributes, " Path=/; Secure; HttpOnly; SameSite=Lax");
    let request = Request::builder().uri("/v3/tokens").header("cookie", value);
    assert_eq!(rest.send(request, "", &Value::Null).await.status, 200);

    let providers = rest.get("", "/v3-public/authProviders").await;
    assert_eq!(providers.body["data"][0]["type"], "localProvider");
    let action = providers.body["data"][0]["actions"]["login"].as_str().unwrap();
    assert!(action.ends_with(path), "{action}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_public_settings_are_open_and_fixed_ones_stay() {
    let rest = Rest::start().await;
    let cacerts = rest.get("", "/v3/settings/cacerts").await;
    assert_eq!((cacerts.status, cacerts.text("value").as_str()), (200, "PEM"));
    assert_eq!(rest.get("", "/v3/settings/server-url").await.status, 401);
    assert_eq!(rest.get("", "/v3/settings").await.status, 401);

    let admin = rest.admin().await;
    let put = async |name: &str| {
        let path = format!("/v3/settings/{name}");
        rest.call(&admin, "PUT", &path, json!({"value": "https://new.example"})).await
    };
    let changed = put("server-url").await;
    assert_eq!((changed.status, changed.text("source").as_str()), (200, "db"), "{}", changed.body);
    let refused = put("cacerts").await;
    assert_eq!((refused.status, refused.text("code").as_str()), (405, "MethodNotAllow"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everybody_has_their_own_tokens_and_nobody_elses() {
    let rest = Rest::start().await;
    let admin = rest.admin().await;
    rest.user(&admin, "ann").await;
    let ann = rest.token_of("ann", PASSWORD).await;
    let made = rest.call(&ann, "POST", "/v3/tokens", json!({"description": "ci", "ttl": 60000}));
    let made = made.await;
    assert_eq!(made.status, 201, "{}", made.body);
    let (id, key) = (made.text("id"), made.text("token"));
    assert_eq!(made.body["isDerived"], true);
    assert_eq!(rest.get(&key, "/v3/tokens").await.status, 200);

    let path = format!("/v3/tokens/{id}");
    assert_eq!(rest.get(&admin, &path).await.status, 404);
    assert_eq!(rest.call(&admin, "DELETE", &path, Value::Null).await.status, 404);
    assert!(!rest.get(&admin, "/v3/tokens").await.ids().contains(&id));
    eventually("the token in the list", async || {
        let ids = rest.get(&ann, "/v3/tokens").await.ids();
        if ids.contains(&id) { Ok(()) } else { Err(ids) }
    })
    .await;
    assert_eq!(rest.call(&ann, "DELETE", &path, Value::Null).await.status, 204);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_for_one_cluster_makes_none_for_another() {
    let rest = Rest::start().await;
    let admin = rest.admin().await;
    rest.world.create_cluster("c-one").await;
    rest.world.create_cluster("c-two").await;
    let body = json!({"clusterId": "c-one"});
    let bound = rest.call(&admin, "POST", "/v3/tokens", body).await.text("token");
    for path in ["/v3/tokens", "/v3/users", "/v3/clusters", "/v3/clusters/c-two"] {
        assert_eq!(rest.get(&bound, path).await.status, 401, "{path}");
    }
    assert_eq!(rest.get(&bound, "/v3/clusters/c-one").await.status, 200);
    let inside = "/v3/clusters/c-one/tokens";
    let made = rest.call(&bound, "POST", inside, json!({"clusterId": "c-two"})).await;
    assert_eq!(made.body["clusterId"], "c-one", "{}", made.body);
    let action = "/v3/clusters/c-one?action=generateKubeconfig";
    let made = rest.call(&bound, "POST", action, json!({})).await.text("config");
    let config: Value = serde_saphyr::from_str(&made).unwrap();
    let key = config["users"][0]["user"]["token"].as_str().unwrap();
    assert_eq!(rest.get(key, "/v3/clusters").await.status, 401);
    let missing = rest.call(&admin, "POST", "/v3/tokens", json!({"clusterId": "c-none"})).await;
    assert_eq!(missing.status, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn passwords_are_set_by_users_with_the_right_and_changed_by_those_who_know_them() {
    let rest = Rest::start().await;
    let admin = rest.admin().await;
    let (ann, bob) = (rest.user(&admin, "ann").await, rest.user(&admin, "bob").await);
    let as_ann = rest.token_of("ann", PASSWORD).await;

    let set = |id: &str| format!("/v3/users/{id}?action=setpassword");
    let first_login = async || rest.get("", "/v3/settings/first-login").await.text("value");
    assert_eq!(first_login().await, "true");
    let new = json!({"newPassword": "another good password"});
    let refused = rest.call(&as_ann, "POST", &set(&bob), new.clone()).await;
    assert_eq!((refused.status, refused.text("code").as_str()), (404, "NotFound"));
    let done = rest.call(&admin, "POST", &set(&bob), new).await;
    assert_eq!((done.status, done.text("id")), (200, bob), "{}", done.body);
    assert_eq!(rest.login("bob", PASSWORD).await.status, 401);
    rest.token_of("bob", "another good password").await;
    assert_eq!(first_login().await, "false");

    let change = "/v3/users?action=changepassword";
    let wrong = json!({"currentPassword": "no", "newPassword": "yet another password"});
    let refused = rest.call(&as_ann, "POST", change, wrong).await;
    assert_eq!(refused.text("code"), "InvalidBodyContent");
    let short = json!({"currentPassword": PASSWORD, "newPassword": "short"});
    let refused = rest.call(&as_ann, "POST", change, short).await;
    assert_eq!((refused.status, refused.text("fieldName").as_str()), (422, "newPassword"));
    let right = json!({"currentPassword": PASSWORD, "newPassword": "yet another password"});
    assert_eq!(rest.call(&as_ann, "POST", change, right).await.status, 200);
    rest.token_of("ann", "yet another password").await;

    // Login names are unique, and users cannot disable themselves.
    let twice = json!({"username": "ann", "name": "x", "password": PASSWORD});
    let refused = rest.call(&admin, "POST", "/v3/users", twice).await;
    assert_eq!((refused.status, refused.text("code").as_str()), (422, "NotUnique"));
    let own = format!("/v3/users/{}", rest.admin_id);
    assert_eq!(rest.call(&admin, "DELETE", &own, Value::Null).await.status, 422);
    assert_eq!(rest.get(&admin, &own).await.body["me"], true);
    let removed = rest.call(&admin, "DELETE", &format!("/v3/users/{ann}"), Value::Null).await;
    // The user may still be there for a moment, until no binding names it.
    assert!(matches!(removed.status, 200 | 204), "{}", removed.body);
    eventually("the end of the user's tokens", async || {
        let status = rest.get(&as_ann, "/v3/tokens").await.status;
        if status == 401 { Ok(()) } else { Err(status) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn setting_a_new_password_ends_the_logins_of_a_thief() {
    let rest = Rest::start().await;
    let admin = rest.admin().await;
    let ann = rest.user(&admin, "ann").await;
    let stolen = rest.token_of("ann", PASSWORD).await;
    let program = rest.call(&stolen, "POST", "/v3/tokens", json!({"description": "CI"})).await;
    let program = program.text("token");
    let holds = async |token: &str| rest.get(token, "/v3/tokens").await.status == 200;

    let set = format!("/v3/users/{ann}?action=setpassword");
    let new = json!({"newPassword": "another good password"});
    let done = rest.call(&admin, "POST", &set, new).await;
    assert_eq!((&done.body["endedTokens"], &done.body["remainingTokens"]), (&json!(1), &json!(1)));
    assert_eq!((done.text("id"), done.text("type").as_str()), (ann.clone(), "user"));
    eventually(
        "the end of the login",
        async || if holds(&stolen).await { Err(()) } else { Ok(()) },
    )
    .await;
    assert!(holds(&program).await && holds(&admin).await);

    // The login that changes the password remains valid, others of the same user do not.
    let (own, other) = (
        rest.token_of("ann", "another good password").await,
        rest.token_of("ann", "another good password").await,
    );
    let change = json!({"currentPassword": "another good password",
        "newPassword": "yet another password", "endTokens": true});
    let done = rest.call(&own, "POST", "/v3/users?action=changepassword", change).await;
    assert_eq!(done.body["type"], "changePasswordOutput", "{}", done.body);
    assert_eq!((&done.body["endedTokens"], &done.body["remainingTokens"]), (&json!(2), &json!(0)));
    for ended in [other, program] {
        eventually(
            "the end of all others",
            async || if holds(&ended).await { Err(()) } else { Ok(()) },
        )
        .await;
    }
    assert!(holds(&own).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_who_must_change_the_password_is_required_to_until_it_is_changed() {
    let rest = Rest::start().await;
    let admin = rest.admin().await;
    let new = json!({"username": "ann", "password": PASSWORD, "mustChangePassword": true});
    let ann = rest.call(&admin, "POST", "/v3/users", new).await.text("id");
    let must_change = async || {
        rest.get(&admin, &format!("/v3/users/{ann}")).await.body["mustChangePassword"] == true
    };
    // A password set by another user must be changed by the user.
    let set = json!({"newPassword": "chosen by an administrator"});
    let done = rest.call(&admin, "POST", &format!("/v3/users/{ann}?action=setpassword"), set).await;
    assert_eq!(done.status, 200, "{}", done.body);
    assert!(must_change().await);

    let own = rest.token_of("ann", "chosen by an administrator").await;
    let change = "/v3/users?action=changepassword";
    let wrong = json!({"currentPassword": "a guess", "newPassword": "chosen by the user"});
    assert_eq!(rest.call(&own, "POST", change, wrong).await.status, 422);
    assert!(must_change().await);
    let right = json!({
        "currentPassword": "chosen by an administrator", "newPassword": "chosen by the user",
    });
    let done = rest.call(&own, "POST", change, right).await;
    assert_eq!(done.status, 200, "{}", done.body);
    assert!(!must_change().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_read_their_own_user_and_no_other() {
    let rest = Rest::start().await;
    let admin = rest.admin().await;
    let (ann, bob) = (rest.user(&admin, "ann").await, rest.user(&admin, "bob").await);
    let as_ann = rest.token_of("ann", PASSWORD).await;

    let own = format!("/v3/users/{ann}");
    let shown = rest.get(&as_ann, &own).await;
    assert_eq!((shown.status, shown.text("username").as_str()), (200, "ann"), "{}", shown.body);
    assert_eq!((&shown.body["me"], &shown.body["password"]), (&json!(true), &Value::Null));
    for list in ["/v3/users", "/v3/users?me=true"] {
        assert_eq!(rest.get(&as_ann, list).await.ids(), [ann.as_str()], "{list}");
    }
    assert!(rest.get(&as_ann, "/v3/users?username=bob").await.ids().is_empty());
    for other in [bob.as_str(), "u-none"] {
        assert_eq!(rest.get(&as_ann, &format!("/v3/users/{other}")).await.status, 403, "{other}");
    }
    let change = json!({"name": "Somebody"});
    assert!(matches!(rest.call(&as_ann, "PUT", &own, change).await.status, 403 | 404));
    // A token alone sets no password without the old one.
    let set = json!({"newPassword": "another good password"});
    let path = format!("{own}?action=setpassword");
    assert_eq!(rest.call(&as_ann, "POST", &path, set).await.status, 403);
    assert_eq!(rest.login("ann", PASSWORD).await.status, 201);
    assert_eq!(rest.get(&admin, "/v3/users?me=true").await.ids(), [rest.admin_id.as_str()]);
    assert!(rest.get(&admin, "/v3/users").await.ids().contains(&bob));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_find_each_other_by_name_and_see_no_more_than_that() {
    let rest = Rest::start().await;
    let admin = rest.admin().await;
    let (ann, bob) = (rest.user(&admin, "ann").await, rest.user(&admin, "bob").await);
    let as_ann = rest.token_of("ann", PASSWORD).await;

    let own = rest.get(&as_ann, "/v3/principals").await;
    assert_eq!(own.ids(), [format!("local://{ann}")]);
    assert!(own.body["actions"]["search"].is_string(), "{}", own.body);
    let search = "/v3/principals?action=search";
    let found = rest.call(&as_ann, "POST", search, json!({"name": "bo"})).await;
    assert_eq!((found.status, found.ids()), (200, vec![format!("local://{bob}")]));
    let shown = &found.body["data"][0];
    let principal = ["loginName", "principalType", "provider"].map(|field| shown[field].clone());
    assert_eq!(principal, [json!("bob"), json!("user"), json!("local")]);
    assert_eq!((&shown["me"], &shown["principalIds"]), (&json!(false), &Value::Null));
    for none in [json!({"name": "nobody"}), json!({"name": "bo", "principalType": "group"})] {
        assert!(rest.call(&as_ann, "POST", search, none).await.ids().is_empty());
    }
    let refused = rest.call(&as_ann, "POST", search, json!({})).await;
    assert_eq!((refused.status, refused.text("fieldName").as_str()), (422, "name"));

    let path = format!("/v3/principals/local:%2F%2F{bob}");
    assert_eq!(rest.get(&as_ann, &path).await.text("id"), format!("local://{bob}"));
    assert_eq!(rest.get(&as_ann, &format!("/v3/users/{bob}")).await.status, 403);
    for unknown in ["local:%2F%2Fu-none", "local:%2F%2F", "github_user:%2F%2F1", "bob"] {
        assert_eq!(rest.get(&as_ann, &format!("/v3/principals/{unknown}")).await.status, 404);
    }
    assert_eq!(rest.get("", "/v3/principals").await.status, 401);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_is_created_seen_and_used_through_v3() {
    let rest = Rest::start().await;
    let admin = rest.admin().await;
    let body = json!({"name": "north", "labels": {"Region": "NorthAmerica"}});
    let made = rest.call(&admin, "POST", "/v3/clusters", body.clone()).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let id = made.text("id");
    assert!(id.starts_with("c-") && id.len() == 7, "{id}");
    assert_eq!(made.text("creatorId"), rest.admin_id);
    assert_ne!(made.text("state"), "active");
    eventually("the name being taken", async || {
        let again = rest.call(&admin, "POST", "/v3/clusters", body.clone()).await;
        if again.status == 422 { Ok(()) } else { Err(again.body) }
    })
    .await;
    let invalid = rest.call(&admin, "POST", "/v3/clusters", json!({"name": "No_Label"})).await;
    assert_eq!((invalid.status, invalid.text("code").as_str()), (422, "InvalidFormat"));

    let path = format!("/v3/clusters/{id}");
    let shown = rest.get(&admin, &path).await;
    let header = shown.headers["x-api-schemas"].to_str().unwrap();
    assert_eq!(header, format!("https://drover.example{path}/schemas"));
    assert_eq!((shown.text("name"), shown.text("namespaceId")), ("north".to_owned(), id.clone()));
    for gone in ["finalizers", "resourceVersion", "ownerReferences", "metadata"] {
        assert!(shown.body.get(gone).is_none(), "{gone}");
    }
    let tokens = format!("{path}/clusterregistrationtokens");
    eventually("a registration token with commands", async || {
        let reply = rest.get(&admin, &tokens).await;
        match reply.body["data"][0]["manifestUrl"].as_str() {
            Some(url) if url.contains("/v3/import/") => Ok(()),
            _ => Err(reply.body),
        }
    })
    .await;

    let action = format!("{path}?action=generateKubeconfig");
    let made = rest.call(&admin, "POST", &action, json!({})).await;
    assert_eq!(made.text("type"), "generateKubeConfigOutput");
    let config: Value = serde_saphyr::from_str(&made.text("config")).unwrap();
    let server = config["clusters"][0]["cluster"]["server"].as_str().unwrap();
    assert_eq!(server, format!("https://drover.example/k8s/clusters/{id}"));
    let key = config["users"][0]["user"]["token"].as_str().unwrap();
    assert_eq!(rest.get(key, &path).await.status, 200);

    let put = rest.call(&admin, "PUT", &path, json!({"description": "the north"})).await;
    assert_eq!((put.status, put.text("description").as_str()), (200, "the north"));
    assert_eq!(put.body["labels"]["Region"], "NorthAmerica");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_see_their_cluster_and_its_contents_and_nothing_else() {
    let rest = Rest::start().await;
    let admin = rest.admin().await;
    let downstream = KubeApi::start(Profile::Cluster).await;
    rest.world.import("c-one", &downstream).await;
    rest.world.create_cluster("c-two").await;
    let member = rest.user(&admin, "member").await;
    let token = rest.token_of("member", PASSWORD).await;
    assert_eq!(rest.get(&token, "/v3/clusters").await.ids(), Vec::<String>::new());
    assert_eq!(rest.get(&token, "/v3/clusters/c-one").await.status, 403);

    let body = json!({
        "clusterId": "c-one", "roleTemplateId": "cluster-member",
        "userPrincipalId": format!("local://{member}"),
    });
    let bound = rest.call(&admin, "POST", "/v3/clusterroletemplatebindings", body.clone()).await;
    assert_eq!((bound.status, bound.text("userId")), (201, member), "{}", bound.body);
    eventually("the member's rights", async || {
        let clusters = rest.get(&token, "/v3/clusters").await.ids();
        let projects = rest.get(&token, "/v3/projects").await;
        let seen = (clusters, projects.status, projects.ids().len());
        if seen.0 == ["c-one"] { Ok(()) } else { Err(seen) }
    })
    .await;
    let seen = rest.get(&token, "/v3/clusters/c-one").await;
    assert_eq!(seen.text("state"), "active", "{}", seen.body);
    assert_eq!(rest.get(&token, "/v3/clusters/c-two").await.status, 403);
    assert_eq!(
        rest.call(&token, "POST", "/v3/clusterroletemplatebindings", body).await.status,
        403
    );
    let change = rest.call(&token, "PUT", "/v3/clusters/c-one", json!({"description": "x"})).await;
    assert_eq!(change.status, 403);
    assert_eq!(rest.call(&token, "DELETE", "/v3/clusters/c-one", Value::Null).await.status, 403);
    let kubeconfig = "/v3/clusters/c-one?action=generateKubeconfig";
    assert_eq!(rest.call(&token, "POST", kubeconfig, json!({})).await.status, 200);
    let hidden = "/v3/clusters/c-two?action=generateKubeconfig";
    assert_eq!(rest.call(&token, "POST", hidden, json!({})).await.status, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removed_cluster_passes_through_removing_and_ends_in_404() {
    let rest = Rest::start().await;
    let admin = rest.admin().await;
    rest.world.create_cluster("c-one").await;
    let path = "/v3/clusters/c-one";
    let removed = rest.call(&admin, "DELETE", path, Value::Null).await;
    if removed.status == 200 {
        assert_eq!(removed.text("state"), "removing");
    } else {
        assert_eq!(removed.status, 204);
    }
    eventually("the end of the cluster", async || {
        let reply = rest.get(&admin, path).await;
        if reply.status == 404 { Ok(()) } else { Err(reply.body) }
    })
    .await;
    let local = rest.call(&admin, "DELETE", "/v3/clusters/local", Value::Null).await;
    assert_eq!(local.status, 403, "{}", local.body);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_type_that_a_schema_names_has_a_schema() {
    let rest = Rest::start().await;
    let admin = rest.admin().await;
    let reply = rest.get(&admin, "/v3/schemas").await;
    let ids = reply.ids();
    for kind in [
        "cluster",
        "clusterRegistrationToken",
        "node",
        "project",
        "user",
        "token",
        "setting",
        "roleTemplate",
        "clusterRoleTemplateBinding",
    ] {
        assert!(ids.iter().any(|id| id == kind), "{kind}");
    }
    let plain = [
        "string",
        "password",
        "dnsLabel",
        "hostname",
        "int",
        "float",
        "boolean",
        "json",
        "base64",
        "intOrString",
        "date",
        "enum",
    ];
    for schema in reply.body["data"].as_array().unwrap() {
        for (name, field) in schema["resourceFields"].as_object().unwrap() {
            let mut kind = field["type"].as_str().unwrap();
            while let Some(inner) =
                ["array[", "map["].iter().find_map(|prefix| kind.strip_prefix(prefix))
            {
                kind = inner.strip_suffix(']').unwrap();
            }
            let known = kind.starts_with("reference[")
                || plain.contains(&kind)
                || ids.iter().any(|id| id == kind);
            assert!(known, "{}.{name}: {kind}", schema["id"]);
        }
        for actions in ["resourceActions", "collectionActions"] {
            for (name, action) in schema[actions].as_object().unwrap() {
                for side in ["input", "output"] {
                    let kind = action[side].as_str().unwrap_or_default();
                    // A list of the type itself has no schema of its own.
                    let known =
                        ["", "collection"].contains(&kind) || ids.iter().any(|id| id == kind);
                    assert!(known, "{}.{name}: {kind}", schema["id"]);
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn links_to_update_and_remove_are_shown_to_who_may() {
    let rest = Rest::start().await;
    let admin = rest.admin().await;
    rest.world.create_cluster("c-one").await;
    rest.user(&admin, "ann").await;
    let ann = rest.token_of("ann", PASSWORD).await;

    let setting = "/v3/settings/ui-pl";
    let shown = rest.get(&ann, setting).await.body["links"].clone();
    assert!(shown["self"].is_string() && shown.get("update").is_none(), "{shown}");
    assert!(shown.get("remove").is_none(), "{shown}");
    let shown = rest.get(&admin, setting).await.body["links"].clone();
    assert!(shown["update"].is_string() && shown["remove"].is_string(), "{shown}");

    // Each link agrees with the result of the write, for all objects that either sees in any list.
    let mut refused = 0;
    for token in [&ann, &admin] {
        let root = rest.get(token, "/v3").await.body["links"].clone();
        let collections = root.as_object().unwrap().values().filter_map(Value::as_str);
        for list in collections.filter(|url| url.matches('/').count() == 4) {
            let path = list.trim_start_matches("https://drover.example");
            let path = path.trim_start_matches("http://drover.example");
            let found = rest.get(token, path).await;
            for item in found.body["data"].as_array().into_iter().flatten() {
                let links = &item["links"];
                let own = links["self"].as_str().unwrap();
                let own = &own[own.find("/v3").unwrap()..];
                let put = rest.call(token, "PUT", own, json!({})).await;
                if put.status != 405 {
                    let offered = links.get("update").is_some();
                    assert_eq!(offered, put.status != 403, "{own}: {links} {}", put.body);
                    refused += usize::from(put.status == 403);
                }
            }
        }
    }
    assert!(refused > 10, "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_have_the_codes_and_messages_that_clients_compare() {
    let rest = Rest::start().await;
    let admin = rest.admin().await;
    let cluster = rest.world.create_cluster("c-one").await;
    rest.world.token("c-one").await;
    assert_eq!(cluster.metadata.name.as_deref(), Some("c-one"));

    let pool = json!({"clusterId": "c-one", "hostnamePrefix": "a", "nodeTemplateId": "thisisnotatemplate"});
    let app = json!({"name": "a", "templateVersionId": "cattle-global-data:none", "targets": []});
    let roles = json!({"name": "a", "templateVersionId": "cattle-global-data:none", "targets": [{"projectId": "c-one:p-x"}], "roles": ["nonsense"]});
    let catalog = json!({"name": "c", "url": "https://github.com/%0dx%0A/c.git"});
    let user = json!({"username": "ann", "name": "ann"});
    for (method, path, body, status, words) in [
        ("POST", "/v3/nodePools", &pool, 404, "unable to find node template [thisisnotatemplate]"),
        ("POST", "/v3/multiClusterApps", &app, 422, "missing required roles"),
        ("POST", "/v3/multiClusterApps", &roles, 404, "unable to find role template [nonsense]"),
        ("POST", "/v3/catalogs", &catalog, 422, "Invalid characters in catalog URL"),
        ("POST", "/v3/users", &user, 422, "missing required password"),
        ("POST", "/v3/features", &json!({"name": "mine", "value": true}), 405, "POST"),
        ("POST", "/v3/settings", &json!({"name": "cacerts", "value": "x"}), 405, "readOnly"),
        ("PUT", "/v3/settings/cacerts", &json!({"value": "x"}), 405, "readOnly"),
        ("DELETE", "/v3/settings/cacerts", &Value::Null, 405, "readOnly"),
    ] {
        let reply = rest.call(&admin, method, path, body.clone()).await;
        assert_eq!(reply.status, status, "{method} {path}: {}", reply.body);
        assert!(reply.text("message").contains(words), "{method} {path}: {}", reply.body);
        if status == 405 {
            assert_eq!(reply.text("code"), "MethodNotAllow");
        }
    }

    let system = eventually("the System project", async || {
        let all = rest.get(&admin, "/v3/projects?name=System").await;
        all.ids().first().cloned().ok_or(all.body)
    })
    .await;
    let refused = rest.call(&admin, "DELETE", &format!("/v3/projects/{system}"), Value::Null).await;
    assert_eq!((refused.status, refused.text("code").as_str()), (405, "MethodNotAllow"));
    assert_eq!(refused.text("message"), "System Project cannot be deleted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_field_without_effect_says_so_and_a_new_object_has_conditions() {
    let rest = Rest::start().await;
    let admin = rest.admin().await;
    let made = rest.call(&admin, "POST", "/v3/clusters", json!({"name": "one"})).await;
    assert!(made.body["conditions"].is_array(), "{}", made.body);
    let cluster = made.text("id");
    rest.world.token(&cluster).await;
    let body = json!({
        "name": "p", "clusterId": cluster, "enableProjectMonitoring": true,
    });
    let made = rest.call(&admin, "POST", "/v3/projects", body).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let effective = |shown: &Value| {
        let all = shown["conditions"].as_array().unwrap();
        all.iter().find(|condition| condition["type"] == "Effective").cloned()
    };
    let said = effective(&made.body).unwrap_or_else(|| panic!("{}", made.body));
    assert_eq!((&said["status"], &said["reason"]), (&json!("False"), &json!("NotImplemented")));
    assert!(said["message"].as_str().unwrap().contains("enableProjectMonitoring"), "{said}");

    // It remains when controllers write their conditions, and is removed with the fields.
    let path = format!("/v3/projects/{}", made.text("id"));
    eventually("the conditions of controllers", async || {
        let shown = rest.get(&admin, &path).await.body;
        let all = shown["conditions"].as_array().unwrap();
        let both = all.len() > 1 && effective(&shown).is_some();
        if both { Ok(()) } else { Err(shown) }
    })
    .await;
    let nothing = json!({"enableProjectMonitoring": false});
    let changed = rest.call(&admin, "PUT", &path, nothing).await;
    assert_eq!(changed.status, 200, "{}", changed.body);
    assert!(effective(&changed.body).is_none(), "{}", changed.body);
    let plain = json!({"name": "q", "clusterId": cluster});
    let plain = rest.call(&admin, "POST", "/v3/projects", plain).await;
    assert_eq!(plain.body["conditions"], json!([]), "{}", plain.body);
}
