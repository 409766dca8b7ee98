//! Making and ending tokens. The key is given back once and stored only as a hash.

use api_management::{Token, ids, keys, token as kinds};
use controller::{Attempt, ReconcileError, ensure};
use feature_kit::ownership::owner_reference;
use identity::provider::Person;
use identity::{TokenKey, generate_key, hash_key, random_text};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{ListParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::directory::Directory;

/// A token to be made.
#[derive(Clone, Debug)]
pub struct TokenRequest {
    pub user_id: String,
    /// What it is for: one of the `KIND_…` of [`api_management::token`].
    pub kind: &'static str,
    pub description: String,
    /// 0 is "as long as the cap allows".
    pub ttl_millis: i64,
    /// The only cluster it is to be good for.
    pub cluster: Option<String>,
    /// The only project it is to be good for, as `<cluster>:<project>` of that cluster.
    pub project: Option<String>,
    /// Made from another token, not by a login.
    pub derived: bool,
    pub auth_provider: String,
}

/// Who a token is of at the provider of its login. The default is nobody elsewhere.
#[derive(Clone, Debug, Default)]
pub struct TokenOrigin {
    /// The user's principal; absent for the local one.
    pub user_principal: Option<Value>,
    /// Principal ids.
    pub groups: Vec<String>,
    /// When the groups were read, RFC 3339; empty without a provider.
    pub read_at: String,
}

impl TokenOrigin {
    /// What a provider says about a person who logs in now.
    pub fn of(provider: &str, person: &Person) -> Self {
        let user = &person.user;
        let principal = json!({
            "metadata": {"name": user.id},
            "displayName": user.display_name,
            "loginName": user.login_name,
            "principalType": "user",
            "provider": provider,
            "me": true,
        });
        Self {
            user_principal: Some(principal),
            groups: person.groups.iter().map(|group| group.id.clone()).collect(),
            read_at: now(),
        }
    }
    /// That of another token, for one that is made from it.
    pub fn from_token(token: &Token) -> Self {
        Self {
            user_principal: token.user_principal.clone(),
            groups: token.group_principals.clone(),
            read_at: token.last_update_time.clone(),
        }
    }
}

/// The present time, RFC 3339.
pub(crate) fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// What became of a user's tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndedTokens {
    pub ended: usize,
    /// For the API and in kubeconfigs; not counting the one of the request.
    pub remaining: usize,
}

/// A token just made.
#[derive(Clone, Debug)]
pub struct Issued {
    /// As it is stored.
    pub token: Token,
    /// As it is presented; never to be had again.
    pub key: TokenKey,
}

/// The object that is stored. Pure but for the name's random suffix, which is an argument.
pub(crate) fn object(
    request: &TokenRequest,
    hash: String,
    suffix: &str,
    owner: Option<OwnerReference>,
    origin: TokenOrigin,
) -> Token {
    let user_id = request.user_id.clone();
    let name = match request.kind {
        kinds::KIND_KUBECONFIG => format!("kubeconfig-{user_id}{suffix}"),
        _ => format!("{}{suffix}", ids::TOKEN_PREFIX),
    };
    let labels = [
        (keys::TOKEN_USER_ID.to_owned(), user_id.clone()),
        (keys::TOKEN_KIND.to_owned(), request.kind.to_owned()),
    ];
    let annotations = [
        (keys::TOKEN_HASHED.to_owned(), "true".to_owned()),
        (keys::CREATOR_ID.to_owned(), user_id.clone()),
    ];
    let mut token = Token {
        token: hash,
        user_principal: origin.user_principal.or_else(|| Some(principal(&user_id))),
        group_principals: origin.groups,
        last_update_time: origin.read_at,
        auth_provider: request.auth_provider.clone(),
        ttl_millis: request.ttl_millis,
        description: request.description.clone(),
        is_derived: request.derived,
        cluster_name: request.cluster.clone().unwrap_or_default(),
        project_name: request.project.clone().unwrap_or_default(),
        // A login uses its token.
        last_used_at: match request.kind {
            kinds::KIND_SESSION => controller::status::now(),
            _ => String::new(),
        },
        enabled: Some(true),
        user_id,
        ..Token::default()
    };
    token.metadata.name = Some(name);
    token.metadata.labels = Some(labels.into());
    token.metadata.annotations = Some(annotations.into());
    token.metadata.owner_references = owner.map(|owner| vec![owner]);
    token
}

fn principal(user_id: &str) -> Value {
    json!({
        "metadata": {"name": format!("local://{user_id}")},
        "principalType": "user",
        "provider": "local",
        "me": true,
    })
}

impl Directory {
    /// Makes a token. It holds at once.
    ///
    /// Login tokens live as long as `ttl_millis` says; others at most as long as the setting
    /// `auth-token-max-ttl-minutes` allows.
    ///
    /// # Errors
    /// The user is gone or the API refused.
    pub async fn issue(&self, request: TokenRequest) -> Result<Issued, ReconcileError> {
        self.issue_for(request, TokenOrigin::default()).await
    }

    /// Like [`Self::issue`], with who the user is at the provider of the login.
    ///
    /// # Errors
    /// Like [`Self::issue`].
    pub async fn issue_for(
        &self,
        mut request: TokenRequest,
        origin: TokenOrigin,
    ) -> Result<Issued, ReconcileError> {
        let user = self.user(&request.user_id).await;
        let Some(user) = user else {
            let attempt = format!("make a token for user \"{}\"", request.user_id);
            return Err(ReconcileError::other(attempt, "no such user"));
        };
        if request.kind != kinds::KIND_SESSION {
            request.ttl_millis = self.settings.token_ttl_millis(request.ttl_millis);
        }
        let key = generate_key();
        let owner = owner_reference(&*user);
        let suffix = random_text(ids::SUFFIX_LEN);
        let token = object(&request, hash_key(&key), &suffix, Some(owner), origin);
        let api: Api<Token> = Api::all(self.client.clone());
        let created = api.create(&PostParams::default(), &token).await;
        let token = created.attempt(|| format!("create token for user \"{}\"", user.name_any()))?;
        let key = TokenKey { name: token.name_any(), key };
        Ok(Issued { token, key })
    }

    /// Ends a user's tokens, all but `except`: those of logins, and with `all` also those for the
    /// API and kubeconfigs. What rests on them ends at once.
    ///
    /// # Errors
    /// The API refused; some may have ended. Calling it again is harmless.
    pub async fn end_tokens(
        &self,
        user_id: &str,
        except: Option<&str>,
        all: bool,
    ) -> Result<EndedTokens, ReconcileError> {
        let api: Api<Token> = Api::all(self.client.clone());
        // As it is stored, not as it is known: a login may have made one a moment ago.
        let tokens = api.list(&ListParams::default()).await;
        let tokens = tokens.attempt(|| "list tokens".to_owned())?;
        let mut counts = EndedTokens::default();
        for token in tokens.iter().filter(|token| token.user_id == user_id) {
            let name = token.name_any();
            if except == Some(name.as_str()) {
                continue;
            }
            let kind = token.labels().get(keys::TOKEN_KIND).map(String::as_str);
            if all || kind == Some(kinds::KIND_SESSION) {
                ensure::absent(&api, &name).await?;
                counts.ended += 1;
            } else {
                counts.remaining += 1;
            }
        }
        Ok(counts)
    }

    /// Ends a token. Harmless when it has ended.
    ///
    /// # Errors
    /// The API refused.
    pub async fn revoke(&self, token: &str) -> Result<(), ReconcileError> {
        let api: Api<Token> = Api::all(self.client.clone());
        ensure::absent(&api, token).await.map(drop)
    }
}
