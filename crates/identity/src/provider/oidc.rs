//! Providers of OpenID Connect: a browser logs in there and comes back with a code, which is
//! exchanged for who the user is.
//!
//! The protocol is `openidconnect`'s. Here stand what a configuration means ([`config`]), what of
//! the claims counts ([`claims`]), and which failure is whose fault. Metadata and keys of the
//! provider are kept for a minute, and read at once for a signature by a key that is not known.

mod claims;
mod config;

use std::time::Duration;

use futures::future::BoxFuture;
use openidconnect::core::{
    CoreAuthDisplay, CoreAuthPrompt, CoreClientAuthMethod, CoreErrorResponseType, CoreGenderClaim,
    CoreJsonWebKey, CoreJweContentEncryptionAlgorithm, CoreJwsSigningAlgorithm,
    CoreProviderMetadata, CoreResponseType, CoreRevocableToken, CoreRevocationErrorResponse,
    CoreTokenIntrospectionResponse, CoreTokenType,
};
use openidconnect::{
    AccessToken, AuthType, AuthUrl, AuthenticationFlow, AuthorizationCode, ClaimsVerificationError,
    Client, ClientId, ClientSecret, CsrfToken, DiscoveryError, EmptyExtraTokenFields,
    EndpointMaybeSet, EndpointNotSet, EndpointSet, IdTokenFields, IssuerUrl, Nonce,
    OAuth2TokenResponse, PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, RefreshToken,
    RequestTokenError, Scope, SignatureVerificationError, StandardClaims, StandardErrorResponse,
    StandardTokenResponse, SubjectIdentifier, TokenResponse, UserInfoClaims,
};
use parking_lot::Mutex;
use tokio::time::Instant;

use self::claims::{ClaimedNames, MoreClaims};
pub use self::config::OidcConfig;
use super::http::{HttpClient, HttpError, chain};
use super::{
    CodeAttempt, CodeLogin, CodeProvider, Person, Principal, PrincipalKind, Principals, Problem,
    ProviderError, Refreshed, ReturnedCode,
};
use crate::secret::Secret;

/// What every login requests; `openid` comes with the protocol.
const SCOPES: [&str; 2] = ["profile", "email"];
/// Requested too where the provider has them: groups, and reading the user anew later.
const OPTIONAL_SCOPES: [&str; 2] = ["groups", "offline_access"];

/// How long metadata and keys are good that were read.
const METADATA_AGE_MAX: Duration = Duration::from_secs(60);

/// What distinguishes providers of OpenID Connect.
#[derive(Debug, PartialEq, Eq)]
pub struct Flavour {
    /// Name of its configuration, and prefix of its principals: `keycloakoidc`.
    pub provider: &'static str,
    /// Type of its configuration: `keyCloakOIDCConfig`.
    pub config_type: &'static str,
    /// Type of its public part: `keyCloakOIDCProvider`.
    pub public_type: &'static str,
}

pub const GENERIC: Flavour =
    Flavour { provider: "oidc", config_type: "oidcConfig", public_type: "oidcProvider" };

pub const KEYCLOAK: Flavour = Flavour {
    provider: "keycloakoidc",
    config_type: "keyCloakOIDCConfig",
    public_type: "keyCloakOIDCProvider",
};

/// All of them.
pub const FLAVOURS: [&Flavour; 2] = [&KEYCLOAK, &GENERIC];

impl Flavour {
    /// The id of the user with this subject.
    fn user_id(&self, subject: &str) -> String {
        format!("{}_user://{subject}", self.provider)
    }
    /// The id of the group with this name.
    fn group_id(&self, name: &str) -> String {
        format!("{}_group://{name}", self.provider)
    }
    fn group(&self, name: &str) -> Principal {
        Principal {
            id: self.group_id(name),
            kind: PrincipalKind::Group,
            display_name: name.to_owned(),
            login_name: name.to_owned(),
        }
    }
    fn user(&self, subject: &str) -> Principal {
        Principal {
            id: self.user_id(subject),
            kind: PrincipalKind::User,
            display_name: subject.to_owned(),
            login_name: subject.to_owned(),
        }
    }
}

type Tokens = StandardTokenResponse<
    IdTokenFields<
        MoreClaims,
        EmptyExtraTokenFields,
        CoreGenderClaim,
        CoreJweContentEncryptionAlgorithm,
        CoreJwsSigningAlgorithm,
    >,
    CoreTokenType,
>;

type OidcClient = Client<
    MoreClaims,
    CoreAuthDisplay,
    CoreGenderClaim,
    CoreJweContentEncryptionAlgorithm,
    CoreJsonWebKey,
    CoreAuthPrompt,
    StandardErrorResponse<CoreErrorResponseType>,
    Tokens,
    CoreTokenIntrospectionResponse,
    CoreRevocableToken,
    CoreRevocationErrorResponse,
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointMaybeSet,
    EndpointMaybeSet,
>;

type Claimed = UserInfoClaims<MoreClaims, CoreGenderClaim>;
type TokenError = RequestTokenError<HttpError, StandardErrorResponse<CoreErrorResponseType>>;

/// A provider with its configuration.
pub struct OidcProvider {
    flavour: &'static Flavour,
    config: OidcConfig,
    http: HttpClient,
    metadata: Mutex<Option<(Instant, CoreProviderMetadata)>>,
}

impl OidcProvider {
    /// A provider. Sends nothing.
    ///
    /// # Errors
    /// The certificate or the private key is not readable.
    pub fn new(flavour: &'static Flavour, config: OidcConfig) -> Result<Self, Problem> {
        let http = HttpClient::new(&config.certificate, &config.private_key).map_err(|text| {
            Problem { field: "certificate", text: format!("is not usable: {text}") }
        })?;
        Ok(Self { flavour, config, http, metadata: Mutex::default() })
    }

    async fn metadata(&self) -> Result<CoreProviderMetadata, ProviderError> {
        let known = self.metadata.lock().clone();
        if let Some((read_at, metadata)) = known
            && read_at.elapsed() < METADATA_AGE_MAX
        {
            return Ok(metadata);
        }
        let issuer =
            IssuerUrl::new(self.config.issuer.clone()).map_err(|error| wrong_issuer(&error))?;
        let metadata = CoreProviderMetadata::discover_async(issuer, &self.http).await;
        let metadata = metadata.map_err(not_discovered)?;
        *self.metadata.lock() = Some((Instant::now(), metadata.clone()));
        Ok(metadata)
    }

    fn client(&self, metadata: CoreProviderMetadata) -> Result<OidcClient, ProviderError> {
        let signing: Vec<_> = metadata.id_token_signing_alg_values_supported().to_vec();
        let signing = signing.into_iter().filter(is_signed_by_provider).collect();
        let metadata = metadata.set_id_token_signing_alg_values_supported(signing);
        let takes_basic = takes_basic(&metadata);
        let secret = Some(&self.config.client_secret).filter(|secret| !secret.is_empty());
        let secret = secret.map(|secret| ClientSecret::new(secret.clone()));
        let id = ClientId::new(self.config.client_id.clone());
        let redirect = RedirectUrl::new(self.config.rancher_url.clone());
        let redirect = redirect.map_err(|error| misconfigured("rancherUrl", &error))?;
        let client = OidcClient::from_provider_metadata(metadata, id, secret);
        let client = client.set_redirect_uri(redirect);
        let client = if takes_basic { client } else { client.set_auth_type(AuthType::RequestBody) };
        if self.config.auth_endpoint.is_empty() {
            return Ok(client);
        }
        let endpoint = AuthUrl::new(self.config.auth_endpoint.clone());
        Ok(client.set_auth_uri(endpoint.map_err(|error| misconfigured("authEndpoint", &error))?))
    }

    fn scopes(&self, metadata: &CoreProviderMetadata) -> Vec<Scope> {
        if !self.config.scope.trim().is_empty() {
            let scopes = self.config.scope.split_whitespace().filter(|scope| *scope != "openid");
            return scopes.map(|scope| Scope::new(scope.to_owned())).collect();
        }
        let has = |scope: &&str| {
            let known = metadata.scopes_supported().into_iter().flatten();
            known.into_iter().any(|known| known.as_str() == *scope)
        };
        let scopes = SCOPES.into_iter().chain(OPTIONAL_SCOPES.into_iter().filter(has));
        scopes.map(|scope| Scope::new(scope.to_owned())).collect()
    }

    /// The claims of the user, from the provider itself if it answers such requests.
    async fn claimed(
        &self,
        client: &OidcClient,
        token: &AccessToken,
        subject: &SubjectIdentifier,
    ) -> Result<Option<Claimed>, ProviderError> {
        let Ok(request) = client.user_info(token.clone(), Some(subject.clone())) else {
            return Ok(None);
        };
        let claims: Result<Claimed, _> = request.request_async(&self.http).await;
        claims.map(Some).map_err(|error| {
            ProviderError::Unavailable(format!(
                "the user's claims cannot be read: {}",
                chain(&error)
            ))
        })
    }

    /// The person of an ID token. What the provider itself says now counts more.
    async fn person(
        &self,
        client: &OidcClient,
        tokens: &Tokens,
        nonce: Option<&Nonce>,
    ) -> Result<Person, ProviderError> {
        let id_token = tokens.id_token().ok_or_else(|| {
            let text = "the provider returned no ID token: the scope \"openid\" must be allowed to \
                        this client";
            ProviderError::Unavailable(text.to_owned())
        })?;
        let fresh;
        let mut verifier = client.id_token_verifier();
        if is_of_unknown_key(id_token.claims(&verifier, any_nonce).err().as_ref()) {
            *self.metadata.lock() = None;
            fresh = self.client(self.metadata().await?)?;
            verifier = fresh.id_token_verifier();
        }
        let claims = match nonce {
            Some(nonce) => id_token.claims(&verifier, nonce),
            // The nonce of the login is not kept, and renewed tokens need not have one.
            None => id_token.claims(&verifier, any_nonce),
        };
        let claims = claims.map_err(refused_token)?;
        let subject = claims.subject();
        let mut more = claims.additional_claims().0.clone();
        let mut names = ClaimedNames::of_id_token(claims);
        if let Some(claimed) = self.claimed(client, tokens.access_token(), subject).await? {
            more.extend(claimed.additional_claims().0.clone());
            names = ClaimedNames::of(claimed.standard_claims()).or(names);
        }
        let groups_claim = self.config.groups_claim();
        Ok(claims::person(self.flavour, groups_claim, subject.as_str(), names, &more))
    }

    async fn redeem_code(
        &self,
        attempt: &CodeAttempt,
        returned: &ReturnedCode,
    ) -> Result<CodeLogin, ProviderError> {
        if returned.issuer.as_ref().is_some_and(|issuer| *issuer != self.config.issuer) {
            tracing::warn!(issuer = returned.issuer, "a code of another provider was refused");
            return Err(ProviderError::Wrong);
        }
        let client = self.client(self.metadata().await?)?;
        let request =
            client.exchange_code(AuthorizationCode::new(returned.code.expose().to_owned()));
        let request = request.map_err(|_| without_token_endpoint())?;
        let verifier = PkceCodeVerifier::new(attempt.verifier.expose().to_owned());
        let tokens = request.set_pkce_verifier(verifier).request_async(&self.http).await;
        let tokens = tokens.map_err(not_redeemed)?;
        let nonce = Nonce::new(attempt.nonce.expose().to_owned());
        let person = self.person(&client, &tokens, Some(&nonce)).await?;
        Ok(CodeLogin { person, grant: grant_of(&tokens) })
    }

    async fn read_again(
        &self,
        user: &str,
        grant: &Secret,
    ) -> Result<(Person, Option<Secret>), ProviderError> {
        let client = self.client(self.metadata().await?)?;
        let token = RefreshToken::new(grant.expose().to_owned());
        let request = client.exchange_refresh_token(&token);
        let request = request.map_err(|_| without_token_endpoint())?;
        let tokens: Tokens = request.request_async(&self.http).await.map_err(not_redeemed)?;
        let person = match tokens.id_token() {
            Some(_) => self.person(&client, &tokens, None).await?,
            None => self.person_without_token(&client, &tokens, user).await?,
        };
        if person.user.id != user {
            return Err(ProviderError::Wrong);
        }
        Ok((person, grant_of(&tokens)))
    }

    /// The person, from the provider's answer alone: renewed tokens need not have an ID token.
    async fn person_without_token(
        &self,
        client: &OidcClient,
        tokens: &Tokens,
        user: &str,
    ) -> Result<Person, ProviderError> {
        let subject = self.subject(user).ok_or(ProviderError::Wrong)?;
        let expected = SubjectIdentifier::new(subject.to_owned());
        let claimed = self.claimed(client, tokens.access_token(), &expected).await?;
        let claimed = claimed.ok_or_else(|| {
            let text = "the provider says nothing about users after their login: it has no userinfo \
                        endpoint, and renewed tokens have no ID token";
            ProviderError::Unavailable(text.to_owned())
        })?;
        let names = ClaimedNames::of(claimed.standard_claims());
        let more = &claimed.additional_claims().0;
        Ok(claims::person(self.flavour, self.config.groups_claim(), subject, names, more))
    }

    /// The subject in the id of a user of this provider.
    fn subject<'a>(&self, id: &'a str) -> Option<&'a str> {
        id.strip_prefix(self.flavour.provider)?.strip_prefix("_user://")
    }
}

impl ClaimedNames {
    fn of(claims: &StandardClaims<CoreGenderClaim>) -> Self {
        Self {
            name: claims.name().and_then(|name| name.get(None)).map(|name| name.to_string()),
            preferred_username: claims.preferred_username().map(|name| name.to_string()),
            email: claims.email().map(|email| email.to_string()),
        }
    }

    fn of_id_token(claims: &openidconnect::IdTokenClaims<MoreClaims, CoreGenderClaim>) -> Self {
        Self {
            name: claims.name().and_then(|name| name.get(None)).map(|name| name.to_string()),
            preferred_username: claims.preferred_username().map(|name| name.to_string()),
            email: claims.email().map(|email| email.to_string()),
        }
    }

    /// Those of `other` where one lacks.
    fn or(self, other: Self) -> Self {
        Self {
            name: self.name.or(other.name),
            preferred_username: self.preferred_username.or(other.preferred_username),
            email: self.email.or(other.email),
        }
    }
}

/// Whether the provider's own key signs with it. A secret that both know proves nothing to third
/// parties, and no signature nothing to anybody.
fn is_signed_by_provider(algorithm: &CoreJwsSigningAlgorithm) -> bool {
    use CoreJwsSigningAlgorithm as Algorithm;
    matches!(
        algorithm,
        Algorithm::EcdsaP256Sha256
            | Algorithm::EcdsaP384Sha384
            | Algorithm::EdDsa
            | Algorithm::RsaSsaPkcs1V15Sha256
            | Algorithm::RsaSsaPkcs1V15Sha384
            | Algorithm::RsaSsaPkcs1V15Sha512
            | Algorithm::RsaSsaPssSha256
            | Algorithm::RsaSsaPssSha384
            | Algorithm::RsaSsaPssSha512
    )
}

/// Whether the client's secret may be sent in a header, which is the default of the protocol.
fn takes_basic(metadata: &CoreProviderMetadata) -> bool {
    let methods = metadata.token_endpoint_auth_methods_supported();
    methods.is_none_or(|methods| {
        methods.contains(&CoreClientAuthMethod::ClientSecretBasic)
            || !methods.contains(&CoreClientAuthMethod::ClientSecretPost)
    })
}

fn grant_of(tokens: &Tokens) -> Option<Secret> {
    tokens.refresh_token().map(|token| Secret::new(token.secret()))
}

fn misconfigured(field: &'static str, error: &dyn std::error::Error) -> ProviderError {
    ProviderError::Misconfigured { field, text: chain(error) }
}

fn wrong_issuer(error: &dyn std::error::Error) -> ProviderError {
    misconfigured("issuer", error)
}

fn without_token_endpoint() -> ProviderError {
    let text = "the provider has no token endpoint in its metadata".to_owned();
    ProviderError::Misconfigured { field: "issuer", text }
}

fn not_discovered(error: DiscoveryError<HttpError>) -> ProviderError {
    match error {
        DiscoveryError::Request(error) => {
            ProviderError::Unavailable(format!("the provider does not respond: {error}"))
        }
        DiscoveryError::Response(status, ..) if status.is_server_error() => {
            ProviderError::Unavailable(format!("the provider responds with status {status}"))
        }
        DiscoveryError::Response(status, ..) => ProviderError::Misconfigured {
            field: "issuer",
            text: format!(
                "there is no provider of OpenID Connect here: its metadata have status {status}"
            ),
        },
        other => wrong_issuer(&other),
    }
}

fn not_redeemed(error: TokenError) -> ProviderError {
    match error {
        RequestTokenError::ServerResponse(refusal) => match refusal.error() {
            CoreErrorResponseType::InvalidGrant => {
                tracing::info!(%refusal, "the provider refused a code or a grant");
                ProviderError::Wrong
            }
            CoreErrorResponseType::InvalidClient | CoreErrorResponseType::UnauthorizedClient => {
                let text =
                    format!("the provider refuses this client ({refusal}); check clientId too");
                ProviderError::Misconfigured { field: "clientSecret", text }
            }
            _ => refused_otherwise(&refusal.to_string()),
        },
        other => ProviderError::Unavailable(format!("the exchange failed: {}", chain(&other))),
    }
}

/// The protocol has no code for a scope that this user may not have; Keycloak says so in words.
fn refused_otherwise(refusal: &str) -> ProviderError {
    if refusal.to_ascii_lowercase().contains("offline") {
        let text = format!(
            "the provider refuses the scope offline_access to this user ({refusal}); allow it there, in \
             Keycloak by the realm role offline_access, or set scope without it"
        );
        return ProviderError::Misconfigured { field: "scope", text };
    }
    ProviderError::Unavailable(format!("the provider refuses the exchange: {refusal}"))
}

fn any_nonce(_: Option<&Nonce>) -> Result<(), String> {
    Ok(())
}

/// Whether a token failed because none of the known keys has signed it.
fn is_of_unknown_key(error: Option<&ClaimsVerificationError>) -> bool {
    let Some(ClaimsVerificationError::SignatureVerification(error)) = error else { return false };
    matches!(error, SignatureVerificationError::NoMatchingKey)
}

fn refused_token(error: ClaimsVerificationError) -> ProviderError {
    tracing::warn!(error = chain(&error), "an ID token was refused");
    ProviderError::Wrong
}

impl CodeProvider for OidcProvider {
    fn login_url<'a>(
        &'a self,
        attempt: &'a CodeAttempt,
    ) -> BoxFuture<'a, Result<String, ProviderError>> {
        Box::pin(async move {
            let metadata = self.metadata().await?;
            let scopes = self.scopes(&metadata);
            let client = self.client(metadata)?;
            let verifier = PkceCodeVerifier::new(attempt.verifier.expose().to_owned());
            let (state, nonce) = (attempt.state.clone(), attempt.nonce.expose().to_owned());
            let (state, nonce) = (move || CsrfToken::new(state), move || Nonce::new(nonce));
            let flow = AuthenticationFlow::<CoreResponseType>::AuthorizationCode;
            let request = client.authorize_url(flow, state, nonce).add_scopes(scopes);
            let challenge = PkceCodeChallenge::from_code_verifier_sha256(&verifier);
            let (url, _, _) = request.set_pkce_challenge(challenge).url();
            Ok(url.into())
        })
    }

    fn callback(&self) -> &str {
        &self.config.rancher_url
    }

    fn redeem<'a>(
        &'a self,
        attempt: &'a CodeAttempt,
        code: &'a ReturnedCode,
    ) -> BoxFuture<'a, Result<CodeLogin, ProviderError>> {
        Box::pin(self.redeem_code(attempt, code))
    }

    fn refresh<'a>(
        &'a self,
        user: &'a str,
        grant: Option<&'a Secret>,
    ) -> BoxFuture<'a, (Refreshed, Option<Secret>)> {
        Box::pin(async move {
            let Some(grant) = grant else {
                let text = "the provider gave no refresh token at the login; allow it the scope \
                            offline_access";
                return (Refreshed::Unavailable(text.to_owned()), None);
            };
            match self.read_again(user, grant).await {
                Ok((person, grant)) => (Refreshed::Known(person), grant),
                Err(ProviderError::Wrong) => (Refreshed::Gone, None),
                Err(ProviderError::Disabled) => (Refreshed::Disabled, None),
                Err(error) => (Refreshed::Unavailable(error.to_string()), None),
            }
        })
    }
}

impl Principals for OidcProvider {
    /// The protocol has no search: the text is taken as the subject of a user and the name of a
    /// group.
    fn search<'a>(
        &'a self,
        text: &'a str,
        kind: Option<PrincipalKind>,
        _: Option<&'a Secret>,
    ) -> BoxFuture<'a, Result<Vec<Principal>, ProviderError>> {
        let text = text.trim();
        let all = [self.flavour.user(text), self.flavour.group(text)].into_iter();
        let is_meant = |found: &Principal| kind.is_none_or(|kind| kind == found.kind);
        let found = all.filter(|found| !text.is_empty() && is_meant(found)).collect();
        Box::pin(std::future::ready(Ok(found)))
    }

    fn principal<'a>(
        &'a self,
        id: &'a str,
        _: Option<&'a Secret>,
    ) -> BoxFuture<'a, Result<Option<Principal>, ProviderError>> {
        let group =
            id.strip_prefix(self.flavour.provider).and_then(|id| id.strip_prefix("_group://"));
        let user = self.subject(id).map(|subject| self.flavour.user(subject));
        let found = user.or_else(|| group.map(|name| self.flavour.group(name)));
        Box::pin(std::future::ready(Ok(found)))
    }
}
