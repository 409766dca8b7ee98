//! The providers that people can log in through, but for this server itself: what distinguishes
//! them in the API, and how each is opened.

use std::sync::Arc;

use identity::provider::azure_ad::{self, AzureAd, AzureAdConfig};
use identity::provider::github::{self, Github, GithubConfig};
use identity::provider::google::{self, Google, GoogleConfig};
use identity::provider::ldap::{self, LdapConfig};
use identity::provider::oidc::{self, OidcConfig, OidcProvider};
use identity::provider::{CodeProvider, IdentityProvider, Principals, Problem};
use serde_json::Value;

/// What answers for a provider, by how people log in.
pub enum Backend {
    /// With a name and a password that this server checks there.
    Passwords(Arc<dyn IdentityProvider>),
    /// On the provider's own pages.
    Codes(Arc<dyn CodeProvider>),
}

impl Backend {
    /// Who can be found there.
    pub fn principals(&self) -> &dyn Principals {
        match self {
            Self::Passwords(provider) => &**provider,
            Self::Codes(provider) => &**provider,
        }
    }
}

/// How people log in through a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginWay {
    /// With a name and a password that this server checks there.
    Password,
    /// On the provider's own pages.
    Pages,
}

/// The types of what its actions take and return. Several providers may share one.
#[derive(Debug)]
pub struct ActionTypes {
    /// The input of a login.
    pub login: &'static str,
    /// The input of `configureTest`, if it has one, and what it returns.
    pub test: Option<&'static str>,
    pub tested: &'static str,
    /// The input of `testAndApply`, and its field with the configuration.
    pub apply: &'static str,
    pub apply_field: &'static str,
}

/// A provider. Each is one of [`ProviderKind::ALL`].
#[derive(Debug)]
pub struct ProviderKind {
    /// Name of the configuration, and prefix of principals.
    pub name: &'static str,
    /// Type of the configuration, and of its public part.
    pub config_type: &'static str,
    pub public_type: &'static str,
    pub way: LoginWay,
    pub types: ActionTypes,
    /// The fields of the configuration with credentials.
    pub credential_fields: &'static [&'static str],
    /// The field that says where the provider is.
    pub address_field: &'static str,
    /// What to check when it does not respond.
    pub check: &'static str,
    open: fn(&Value, String) -> Result<Backend, Vec<Problem>>,
    problems: fn(&Value) -> Vec<Problem>,
}

/// The types of providers with passwords.
const fn with_password(apply: &'static str, apply_field: &'static str) -> ActionTypes {
    ActionTypes { login: "basicLogin", test: None, tested: "", apply, apply_field }
}

/// The types of all providers of OpenID Connect.
const OIDC_TYPES: ActionTypes = ActionTypes {
    login: "oidcLogin",
    test: None,
    tested: "oidcTestOutput",
    apply: "oidcApplyInput",
    apply_field: "oidcConfig",
};

impl ProviderKind {
    /// All of them.
    pub const ALL: [&Self; 8] = [
        &Self::ACTIVE_DIRECTORY,
        &Self::AZURE_AD,
        &Self::FREE_IPA,
        &Self::GITHUB,
        &Self::GOOGLE,
        &Self::KEYCLOAK,
        &Self::OIDC,
        &Self::OPEN_LDAP,
    ];

    const ACTIVE_DIRECTORY: Self = Self {
        types: with_password("activeDirectoryTestAndApplyInput", "activeDirectoryConfig"),
        open: |object, _| open_directory(&ldap::ACTIVE_DIRECTORY, object),
        problems: |object| problems_of(LdapConfig::read(&ldap::ACTIVE_DIRECTORY, object)),
        ..Self::directory(&ldap::ACTIVE_DIRECTORY)
    };
    const FREE_IPA: Self = Self {
        types: with_password("freeIpaTestAndApplyInput", "ldapConfig"),
        open: |object, _| open_directory(&ldap::FREEIPA, object),
        problems: |object| problems_of(LdapConfig::read(&ldap::FREEIPA, object)),
        ..Self::directory(&ldap::FREEIPA)
    };
    pub(crate) const OPEN_LDAP: Self = Self::directory(&ldap::OPENLDAP);

    const fn directory(flavour: &'static ldap::Flavour) -> Self {
        Self {
            name: flavour.provider,
            config_type: flavour.config_type,
            public_type: flavour.public_type,
            way: LoginWay::Password,
            types: with_password("openLdapTestAndApplyInput", "ldapConfig"),
            credential_fields: &["serviceAccountPassword"],
            address_field: "servers",
            check: "check servers, port, tls, starttls and certificate",
            open: |object, _| open_directory(&ldap::OPENLDAP, object),
            problems: |object| problems_of(LdapConfig::read(&ldap::OPENLDAP, object)),
        }
    }

    const KEYCLOAK: Self = Self {
        open: |object, _| open_oidc(&oidc::KEYCLOAK, object),
        ..Self::open_id_connect(&oidc::KEYCLOAK)
    };
    pub(crate) const OIDC: Self = Self::open_id_connect(&oidc::GENERIC);

    const fn open_id_connect(flavour: &'static oidc::Flavour) -> Self {
        Self {
            name: flavour.provider,
            config_type: flavour.config_type,
            public_type: flavour.public_type,
            way: LoginWay::Pages,
            types: OIDC_TYPES,
            credential_fields: &["clientSecret", "privateKey"],
            address_field: "issuer",
            check: "check issuer and certificate",
            open: |object, _| open_oidc(&oidc::GENERIC, object),
            problems: |object| problems_of(OidcConfig::read(object)),
        }
    }

    const AZURE_AD: Self = Self {
        name: azure_ad::PROVIDER,
        config_type: azure_ad::CONFIG_TYPE,
        public_type: azure_ad::PUBLIC_TYPE,
        way: LoginWay::Pages,
        types: ActionTypes {
            login: "azureADLogin",
            test: Some(azure_ad::CONFIG_TYPE),
            tested: "azureADConfigTestOutput",
            apply: "azureADConfigApplyInput",
            apply_field: "config",
        },
        credential_fields: &["applicationSecret"],
        address_field: "endpoint",
        check: "check the endpoints",
        open: |object, callback| {
            let provider = AzureAd::new(AzureAdConfig::read(object)?, callback).map_err(one)?;
            Ok(Backend::Codes(Arc::new(provider)))
        },
        problems: |object| problems_of(AzureAdConfig::read(object)),
    };

    const GITHUB: Self = Self {
        name: github::PROVIDER,
        config_type: github::CONFIG_TYPE,
        public_type: github::PUBLIC_TYPE,
        way: LoginWay::Pages,
        types: ActionTypes {
            login: "githubLogin",
            test: Some(github::CONFIG_TYPE),
            tested: "githubConfigTestOutput",
            apply: "githubConfigApplyInput",
            apply_field: "githubConfig",
        },
        credential_fields: &["clientSecret"],
        address_field: "hostname",
        check: "check hostname and tls",
        open: |object, callback| {
            let provider = Github::new(GithubConfig::read(object)?, callback).map_err(one)?;
            Ok(Backend::Codes(Arc::new(provider)))
        },
        problems: |object| problems_of(GithubConfig::read(object)),
    };

    const GOOGLE: Self = Self {
        name: google::PROVIDER,
        config_type: google::CONFIG_TYPE,
        public_type: google::PUBLIC_TYPE,
        way: LoginWay::Pages,
        types: ActionTypes {
            login: "googleOauthLogin",
            test: Some(google::CONFIG_TYPE),
            tested: "googleOauthConfigTestOutput",
            apply: "googleOauthConfigApplyInput",
            apply_field: "googleOauthConfig",
        },
        credential_fields: &["oauthCredential", "serviceAccountCredential"],
        address_field: "oauthCredential",
        check: "check the addresses in both credentials, userInfoEndpoint and directoryEndpoint",
        open: |object, callback| {
            let provider = Google::new(GoogleConfig::read(object)?, callback).map_err(one)?;
            Ok(Backend::Codes(Arc::new(provider)))
        },
        problems: |object| problems_of(GoogleConfig::read(object)),
    };

    /// The one whose configuration has this name.
    pub fn of_name(name: &str) -> Option<&'static Self> {
        Self::ALL.into_iter().find(|kind| kind.name == name)
    }
    /// The one whose configuration has this type.
    pub fn of_config(config_type: &str) -> Option<&'static Self> {
        Self::ALL.into_iter().find(|kind| kind.config_type == config_type)
    }
    /// Whether it is the first one with a type that `type_of` returns: that one declares it.
    pub fn declares(&self, type_of: impl Fn(&Self) -> &'static str) -> bool {
        let first = Self::ALL.into_iter().find(|kind| type_of(kind) == type_of(self));
        first.is_some_and(|first| first.name == self.name)
    }
    /// The provider with the configuration in `object`, which has its credentials. It sends
    /// browsers back to `callback`, unless the configuration says where to.
    ///
    /// # Errors
    /// Every field that is not right.
    pub fn open(&self, object: &Value, callback: String) -> Result<Backend, Vec<Problem>> {
        (self.open)(object, callback)
    }
    /// What is not right in a configuration whose credentials may be references. Pure.
    pub fn problems(&self, object: &Value) -> Vec<Problem> {
        (self.problems)(object)
    }
}

fn one(problem: Problem) -> Vec<Problem> {
    vec![problem]
}

fn problems_of<T>(read: Result<T, Vec<Problem>>) -> Vec<Problem> {
    read.err().unwrap_or_default()
}

fn open_directory(
    flavour: &'static ldap::Flavour,
    object: &Value,
) -> Result<Backend, Vec<Problem>> {
    let config = LdapConfig::read(flavour, object)?;
    Ok(Backend::Passwords(Arc::new(ldap::Directory::new(flavour, config).map_err(one)?)))
}

fn open_oidc(flavour: &'static oidc::Flavour, object: &Value) -> Result<Backend, Vec<Problem>> {
    let config = OidcConfig::read(object)?;
    Ok(Backend::Codes(Arc::new(OidcProvider::new(flavour, config).map_err(one)?)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_providers_have_a_name_or_a_type_in_common() {
        for of in [
            |kind: &ProviderKind| kind.name,
            |kind: &ProviderKind| kind.config_type,
            |kind: &ProviderKind| kind.public_type,
        ] {
            let all: BTreeSet<&str> = ProviderKind::ALL.into_iter().map(of).collect();
            assert_eq!(all.len(), ProviderKind::ALL.len());
        }
    }

    #[test]
    fn each_provider_is_opened_as_itself() {
        // What is read of nothing differs by what the provider must know.
        for kind in ProviderKind::ALL {
            let fields: Vec<&str> =
                kind.problems(&Value::Null).iter().map(|problem| problem.field).collect();
            let opened = kind.open(&Value::Null, String::new()).err().unwrap();
            let at_opening: Vec<&str> = opened.iter().map(|problem| problem.field).collect();
            assert!(!fields.is_empty(), "{}", kind.name);
            assert_eq!(fields, at_opening, "{}", kind.name);
        }
    }
}
