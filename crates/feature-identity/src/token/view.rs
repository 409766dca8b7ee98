//! Token in the REST view: everybody sees, makes and ends their own tokens, and nobody else's.
//!
//! The Kubernetes objects are the directory's alone, since they hold hashes; so this type has a
//! store of its own and decides itself: the caller must be the token's user.

use std::sync::Arc;
use std::time::Duration;

use api_management::token::KIND_API;
use api_management::{Project, Token, ids};
use api_meta::audit::{self as names, AuditEvent};
use controller::ReconcileError;
use feature_kit::table;
use feature_kit::view::resource_of;
use futures::future::BoxFuture;
use http::{StatusCode, header};
use identity::browser::logout_cookies;
use jiff::Timestamp;
use rest_view::store::{DeleteOptions, call};
use rest_view::{
    Action, ActionHandler, ActionRequest, ActionResponse, ApiError, Caller, Context, Descriptor,
    Field, FieldType, Key, KubeResource, ListScope, Methods, Presentation, Resource, Store,
    StructType,
};
use serde_json::{Value, json};

use crate::directory::Directory;
use crate::token::issue::{Issued, TokenOrigin, TokenRequest};

/// How long an answer waits until lists show what it says. They come from a watch, which is behind
/// by milliseconds.
const KNOWN_TIME_MAX: Duration = Duration::from_secs(2);

/// The type `token` under `/v3`.
pub fn view(directory: &Arc<Directory>) -> Descriptor {
    let tokens = Tokens { directory: directory.clone(), resource: resource_of::<Token>() };
    table::descriptor("token")
        .store(Arc::new(tokens))
        .methods(Methods { update: false, ..Methods::ALL })
        .collection_action(Action::new("logout", Logout(directory.clone())))
        .root(fields())
        .formatter(format)
}

/// As an embedded type, for versions that answer tokens but do not hold them.
pub fn struct_type() -> StructType {
    StructType::new("token", fields())
}

fn fields() -> Vec<Field> {
    vec![
        Field::string("authProvider"),
        Field::reference("clusterId", "cluster").create().at("clusterName"),
        Field::boolean("current").computed(),
        Field::string("description").create(),
        Field::boolean("enabled").default(true).nullable(true),
        Field::boolean("expired").computed(),
        Field::string("expiresAt").computed(),
        Field::array("groupPrincipals", FieldType::reference("principal")),
        Field::boolean("isDerived"),
        Field::string("lastUpdateTime"),
        Field::string("lastUsedAt"),
        Field::reference("projectId", "project").create().at("projectName"),
        Field::map("providerInfo", FieldType::String),
        Field::string("token").write_only(),
        Field::int("ttl").create(),
        Field::reference("userId", "user"),
        Field::reference("userPrincipal", "principal").computed(),
    ]
}

fn format(context: &Presentation<'_>, stored: &Value, resource: &mut Resource) {
    let own = resource.id.clone();
    let is_current = context.caller.token_id.as_deref() == Some(own.as_str());
    // A token made from another one is never the login itself.
    let current = is_current && stored["isDerived"] != true;
    resource.fields.insert("current".to_owned(), current.into());
    add_expiry(stored, context.now, &mut resource.fields);
    let principal = as_go_prints(&stored["userPrincipal"]);
    resource.fields.insert("userPrincipal".to_owned(), principal.into());
}

fn add_expiry(stored: &Value, now: Timestamp, fields: &mut serde_json::Map<String, Value>) {
    let token: Token = serde_json::from_value(stored.clone()).unwrap_or_default();
    let at = token.expires_at_millis().and_then(|at| Timestamp::from_millisecond(at).ok());
    let expired = token.is_expired(now.as_millisecond());
    fields.insert("expired".to_owned(), expired.into());
    fields.insert("expiresAt".to_owned(), at.map(|at| at.to_string()).unwrap_or_default().into());
}

/// A token just made, as the answer to a login: the only time its key is shown.
pub fn issued_fields(issued: &Issued, now: Timestamp) -> serde_json::Map<String, Value> {
    let stored = shown_once(issued);
    let metadata = &stored["metadata"];
    let mut fields = serde_json::Map::new();
    for field in fields_stored_at_the_top() {
        fields.insert(field.to_owned(), stored[field].clone());
    }
    add_expiry(&stored, now, &mut fields);
    let created = metadata["creationTimestamp"].as_str().unwrap_or_default();
    if let Ok(at) = created.parse::<Timestamp>() {
        fields.insert("createdTS".to_owned(), at.as_millisecond().into());
    }
    for (name, value) in [
        ("id", metadata["name"].clone()),
        ("name", metadata["name"].clone()),
        ("created", created.into()),
        ("uuid", metadata["uid"].clone()),
        ("labels", metadata["labels"].clone()),
        ("annotations", json!({})),
        ("creatorId", Value::Null),
        ("clusterId", stored["clusterName"].clone()),
        ("projectId", stored["projectName"].clone()),
        ("current", false.into()),
        ("isDerived", (stored["isDerived"] == true).into()),
        ("userPrincipal", as_go_prints(&stored["userPrincipal"]).into()),
        ("actions", json!({})),
    ] {
        fields.insert(name.to_owned(), value);
    }
    fields
}

fn fields_stored_at_the_top() -> [&'static str; 6] {
    ["authProvider", "description", "enabled", "token", "ttl", "userId"]
}

/// The stored form with the key, as it is presented, in place of the hash.
fn shown_once(issued: &Issued) -> Value {
    let mut stored = serde_json::to_value(&issued.token).unwrap_or_default();
    stored["token"] = issued.key.expose().into();
    stored
}

/// The stored form without the hash.
fn without_hash(token: &Token) -> Value {
    let mut stored = serde_json::to_value(token).unwrap_or_default();
    if let Some(map) = stored.as_object_mut() {
        map.remove("token");
    }
    stored
}

/// Clients know this field as the text of a Go map. They do not parse it.
fn as_go_prints(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let entries = map.iter().map(|(key, value)| format!("{key}:{}", as_go_prints(value)));
            format!("map[{}]", entries.collect::<Vec<_>>().join(" "))
        }
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// The cluster of a project that the caller may see. `requested`: the one that the caller named.
async fn cluster_of_project<'a>(
    context: &Context<'_>,
    project: &'a str,
    requested: Option<&str>,
) -> Result<&'a str, ApiError> {
    let wrong = |why: &str| {
        let text =
            format!("project \"{project}\" {why}; use the id of a project, as in c-abcde:p-abcde");
        ApiError::invalid_field("InvalidReference", "projectId", text)
    };
    let Some((cluster, name)) = project.split_once(':') else {
        return Err(wrong("does not name its cluster"));
    };
    if requested.is_some_and(|requested| requested != cluster) {
        return Err(wrong("is of another cluster"));
    }
    if cluster == ids::LOCAL_CLUSTER {
        return Err(wrong("is in the cluster of the server, where roles in projects give nothing"));
    }
    let key = Key { namespace: cluster.to_owned(), name: name.to_owned() };
    match call(context, "GET", &resource_of::<Project>().object_path(&key), None).await {
        Err(error) if error.is_not_found() || error.is_forbidden() => {
            Err(wrong("does not exist, or you may not see it"))
        }
        found => found.map(|_| cluster),
    }
}

struct Tokens {
    directory: Arc<Directory>,
    /// Where the objects are.
    resource: KubeResource,
}

impl Tokens {
    /// The caller's token of this name; another's is as good as none.
    async fn own(&self, caller: &Caller, name: &str) -> Result<Arc<Token>, ApiError> {
        let token = self.directory.token(name).await;
        token
            .filter(|token| token.user_id == caller.user_id)
            .ok_or_else(|| ApiError::not_found(format!("token \"{name}\" not found")))
    }

    async fn make(&self, context: &Context<'_>, object: Value) -> Result<Value, ApiError> {
        let caller = context.caller;
        let text = |field: &str| object[field].as_str().filter(|text| !text.is_empty());
        let project = text("projectName");
        let requested = match project {
            None => text("clusterName"),
            Some(project) => Some(cluster_of_project(context, project, text("clusterName")).await?),
        };
        let cluster = match (caller.token_cluster.as_deref(), requested) {
            (Some(bound), Some(requested)) if bound != requested => {
                let text = "the token is good for another cluster only";
                return Err(ApiError::permission_denied(text));
            }
            (bound, requested) => bound.or(requested),
        };
        if let Some(cluster) = cluster {
            let key = Key { namespace: String::new(), name: cluster.to_owned() };
            let path = resource_of::<api_management::Cluster>().object_path(&key);
            call(context, "GET", &path, None).await?;
        }
        let request = TokenRequest {
            user_id: caller.user_id.clone(),
            kind: KIND_API,
            description: object["description"].as_str().unwrap_or_default().to_owned(),
            ttl_millis: object["ttl"].as_i64().unwrap_or_default(),
            cluster: cluster.map(str::to_owned),
            project: project.map(str::to_owned),
            derived: true,
            auth_provider: caller.auth_provider.clone().unwrap_or_else(|| "local".to_owned()),
        };
        if request.ttl_millis < 0 {
            let text = "field \"ttl\" must not be negative";
            return Err(ApiError::invalid_field("MinLimitExceeded", "ttl", text));
        }
        // Groups come from the provider of the login, so they go on with what is made from it.
        let origin = match caller.token_id.as_deref() {
            Some(own) => self.own(caller, own).await.ok(),
            None => None,
        };
        let origin = origin.map(|token| TokenOrigin::from_token(&token)).unwrap_or_default();
        let issued = self.directory.issue_for(request, origin).await.map_err(failed)?;
        caller.audit.event(AuditEvent::TokenCreated);
        caller.audit.annotate(names::TOKEN, &issued.key.name);
        self.known(&issued.key.name, true).await;
        Ok(shown_once(&issued))
    }

    /// Waits until the token is known, or no longer, so that a client sees what it did.
    async fn known(&self, name: &str, is_expected: bool) {
        let seen = self.directory.tokens().wait_for(|tokens| {
            let is_there = tokens.named(name).is_some();
            (is_there == is_expected).then_some(())
        });
        if tokio::time::timeout(KNOWN_TIME_MAX, seen).await.is_err() {
            tracing::warn!(token = name, "lists of tokens are behind");
        }
    }

    async fn end(&self, caller: &Caller, name: &str) -> Result<(), ApiError> {
        self.own(caller, name).await?;
        if caller.token_id.as_deref() == Some(name) {
            let text = "Cannot delete token for current session. Use logout instead";
            return Err(ApiError::new(400, "InvalidAction", text));
        }
        self.directory.revoke(name).await.map_err(failed)?;
        caller.audit.event(AuditEvent::TokenDeleted);
        caller.audit.annotate(names::TOKEN, name);
        self.known(name, false).await;
        Ok(())
    }
}

fn failed(error: ReconcileError) -> ApiError {
    ApiError::server_error(error.chain())
}

impl Store for Tokens {
    fn list<'a>(
        &'a self,
        context: &'a Context<'a>,
        _: &'a ListScope,
    ) -> BoxFuture<'a, Result<Vec<Value>, ApiError>> {
        Box::pin(async move {
            let mut own = Vec::new();
            self.directory.tokens().for_each(|_, token| {
                if token.user_id == context.caller.user_id {
                    own.push(without_hash(token));
                }
            });
            Ok(own)
        })
    }
    fn get<'a>(
        &'a self,
        context: &'a Context<'a>,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        Box::pin(async move { Ok(without_hash(&*self.own(context.caller, &key.name).await?)) })
    }
    fn create<'a>(
        &'a self,
        context: &'a Context<'a>,
        object: Value,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        Box::pin(self.make(context, object))
    }
    fn delete<'a>(
        &'a self,
        context: &'a Context<'a>,
        key: &'a Key,
        _: &'a DeleteOptions,
    ) -> BoxFuture<'a, Result<Option<Value>, ApiError>> {
        Box::pin(async move { self.end(context.caller, &key.name).await.map(|()| None) })
    }
    fn indexed_resource(&self) -> Option<&KubeResource> {
        Some(&self.resource)
    }
}

/// Ends the token that was presented, and the browser's cookies.
struct Logout(Arc<Directory>);

impl ActionHandler for Logout {
    fn run<'a>(
        &'a self,
        request: ActionRequest<'a>,
    ) -> BoxFuture<'a, Result<ActionResponse, ApiError>> {
        Box::pin(async move {
            let caller = request.context.caller;
            if let Some(token) = &caller.token_id {
                self.0.revoke(token).await.map_err(failed)?;
                caller.audit.event(AuditEvent::Logout);
                caller.audit.annotate(names::TOKEN, token);
            }
            let mut response = http::Response::new(bytes::Bytes::new());
            *response.status_mut() = StatusCode::OK;
            for cookie in logout_cookies() {
                response.headers_mut().append(header::SET_COOKIE, cookie);
            }
            Ok(ActionResponse::Raw(response))
        })
    }
}

#[cfg(test)]
mod tests;
