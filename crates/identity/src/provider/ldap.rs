//! OpenLDAP, FreeIPA and Active Directory: one engine, whose differences are data ([`flavour`]).
//!
//! A login searches the user as the service account and then binds as the entry that was found,
//! so what a user types never is part of a name, and part of a filter only in escaped form
//! ([`filter`]). Each call opens a connection of its own, to the first server that responds.

pub mod config;
mod connection;
pub mod filter;
pub mod flavour;

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::BoxFuture;
use rustls::ClientConfig;

pub use config::LdapConfig;
use connection::{Connection, Entry};
pub use flavour::{ACTIVE_DIRECTORY, FLAVOURS, FREEIPA, Flavour, OPENLDAP};

use super::{
    IdentityProvider, Person, Principal, PrincipalKind, Principals, Problem, ProviderError,
    Refreshed,
};
use crate::password::PASSWORD_BYTES_MAX;
use crate::secret::Secret;

/// Principals of one kind that a search finds.
const FOUND_MAX: usize = 100;
/// Groups of one user.
const GROUPS_MAX: usize = 5000;
/// Levels of groups within groups.
const NESTING_MAX: usize = 20;
/// Groups whose groups one search finds.
const GROUPS_PER_FILTER: usize = 30;
/// Longest name or text that is searched for, in bytes.
const NAME_BYTES_MAX: usize = 256;
/// Attributes that are read with every entry.
const OBJECT_CLASS: &str = "objectClass";
/// The filter that each entry matches.
const ANY_ENTRY: &str = "(objectClass=*)";
/// The attribute of Active Directory by which users may log in beside their account name.
const PRINCIPAL_NAME: &str = "userPrincipalName";

/// A directory, as configured.
pub struct Directory {
    flavour: &'static Flavour,
    config: LdapConfig,
    tls: Arc<ClientConfig>,
}

impl Directory {
    /// A directory with this configuration. Connects to nothing yet.
    ///
    /// # Errors
    /// The certificate cannot be used; [`LdapConfig::read`] refuses such configurations.
    pub fn new(flavour: &'static Flavour, config: LdapConfig) -> Result<Self, Problem> {
        let roots = if config.certificate.trim().is_empty() {
            Ok(tls_trust::system_roots())
        } else {
            tls_trust::roots_from_pem(&config.certificate)
        };
        let roots = roots.map_err(|error| Problem {
            field: "certificate",
            text: format!("cannot be used: {error}"),
        })?;
        let tls = tls_trust::trust_roots(roots).with_no_client_auth();
        Ok(Self { flavour, config, tls: Arc::new(tls) })
    }

    async fn open(&self) -> Result<Connection, ProviderError> {
        let mut connection = Connection::open(&self.config, &self.tls).await?;
        connection.bind_service(self.flavour, &self.config).await?;
        Ok(connection)
    }

    async fn log_in(&self, name: &str, password: &Secret) -> Result<Person, ProviderError> {
        let password = password.expose();
        let is_fit = !password.is_empty() && password.len() <= PASSWORD_BYTES_MAX;
        if !is_fit || name.is_empty() || name.len() > NAME_BYTES_MAX {
            return Err(ProviderError::Wrong);
        }
        let mut connection = self.open().await?;
        let found = self.entry_of_login(&mut connection, name).await?;
        // An unknown user costs a bind as well, so that the time says nothing.
        let nobody = format!("cn=nobody,{}", self.config.user_search_base);
        let dn = found.as_ref().map_or(nobody.as_str(), |entry| entry.dn.as_str());
        let is_password = connection.is_password(dn, password).await?;
        let (Some(entry), true) = (found, is_password) else {
            connection.close().await;
            return Err(ProviderError::Wrong);
        };
        if self.is_disabled(&entry) {
            return Err(ProviderError::Disabled);
        }
        // The user may have no right to read groups.
        connection.bind_service(self.flavour, &self.config).await?;
        let groups = self.groups_of(&mut connection, &entry).await?;
        connection.close().await;
        Ok(Person { user: self.user(&entry), groups })
    }

    /// The one user with this login name; none when it is ambiguous.
    async fn entry_of_login(
        &self,
        connection: &mut Connection,
        name: &str,
    ) -> Result<Option<Entry>, ProviderError> {
        let config = &self.config;
        let filter = self.user_filter(&self.login_filter(name));
        let base = &config.user_search_base;
        let mut found = connection.search(base, &filter, &self.user_attributes(), 2).await?;
        if found.len() > 1 {
            tracing::warn!(
                provider = self.flavour.provider,
                "more than one user has the same {}; narrow userSearchBase or userSearchFilter",
                config.user_login_attribute
            );
            return Ok(None);
        }
        Ok(found.pop())
    }

    fn login_filter(&self, name: &str) -> String {
        let login = &self.config.user_login_attribute;
        if !self.flavour.has_domains {
            return filter::equals(login, name);
        }
        // `DOMAIN\name`: the domain says where to look, which the configuration does.
        let bare = name.rsplit_once('\\').map_or(name, |(_, bare)| bare);
        if !bare.contains('@') {
            return filter::equals(login, bare);
        }
        filter::any([&*filter::equals(login, bare), &*filter::equals(PRINCIPAL_NAME, bare)])
    }

    fn user_filter(&self, what: &str) -> String {
        let class = filter::equals(OBJECT_CLASS, &self.config.user_object_class);
        let configured = filter::configured(&self.config.user_search_filter);
        filter::all([&*class, what, &*configured])
    }

    fn group_filter(&self, what: &str) -> String {
        let class = filter::equals(OBJECT_CLASS, &self.config.group_object_class);
        let configured = filter::configured(&self.config.group_search_filter);
        filter::all([&*class, what, &*configured])
    }

    fn user_attributes(&self) -> Vec<&str> {
        let config = &self.config;
        let all = [
            config.user_login_attribute.as_str(),
            &config.user_name_attribute,
            &config.user_member_attribute,
            &config.user_enabled_attribute,
            &config.group_member_user_attribute,
        ];
        all.into_iter().filter(|name| !name.is_empty()).collect()
    }

    fn group_attributes(&self) -> Vec<&str> {
        let config = &self.config;
        let all = [
            config.group_name_attribute.as_str(),
            &config.group_dn_attribute,
            &config.user_member_attribute,
        ];
        all.into_iter().filter(|name| !name.is_empty()).collect()
    }

    fn is_disabled(&self, entry: &Entry) -> bool {
        let config = &self.config;
        let value = entry.first(&config.user_enabled_attribute);
        let bits = value.and_then(|value| value.trim().parse::<i64>().ok()).unwrap_or(0);
        config.user_disabled_bit_mask != 0 && bits & config.user_disabled_bit_mask != 0
    }

    fn user(&self, entry: &Entry) -> Principal {
        let config = &self.config;
        let login = entry.first(&config.user_login_attribute).unwrap_or_default();
        let name = entry.first(&config.user_name_attribute).unwrap_or(login);
        Principal {
            id: self.flavour.user_id(&entry.dn),
            kind: PrincipalKind::User,
            display_name: name.to_owned(),
            login_name: login.to_owned(),
        }
    }

    fn group(&self, entry: &Entry) -> Principal {
        let name = entry.first(&self.config.group_name_attribute).unwrap_or(&entry.dn);
        Principal {
            id: self.flavour.group_id(&entry.dn),
            kind: PrincipalKind::Group,
            display_name: name.to_owned(),
            login_name: name.to_owned(),
        }
    }

    /// The groups that name the user as a member, those that the user's entry names, and with
    /// nested groups those that these are in.
    async fn groups_of(
        &self,
        connection: &mut Connection,
        user: &Entry,
    ) -> Result<Vec<Principal>, ProviderError> {
        let config = &self.config;
        let member = user.first(&config.group_member_user_attribute).unwrap_or(&user.dn);
        let mut groups = Groups::default();
        let mut newest = self.groups_with(connection, &[member.to_owned()], &mut groups).await?;
        for dn in user.all(&config.user_member_attribute) {
            newest.extend(self.named_group(connection, dn, &mut groups).await?);
        }
        let mut level = 0;
        while config.nested_group_membership_enabled && !newest.is_empty() && level < NESTING_MAX {
            newest = self.groups_with(connection, &newest, &mut groups).await?;
            level += 1;
        }
        Ok(groups.0.into_values().map(|entry| self.group(&entry)).collect())
    }

    /// Adds the groups that have any of the members. Returns the names of those that are new.
    async fn groups_with(
        &self,
        connection: &mut Connection,
        members: &[String],
        groups: &mut Groups,
    ) -> Result<Vec<String>, ProviderError> {
        let attribute = &self.config.group_member_mapping_attribute;
        let mut new = Vec::new();
        for members in members.chunks(GROUPS_PER_FILTER) {
            let equal: Vec<String> =
                members.iter().map(|member| filter::equals(attribute, member)).collect();
            let any = filter::any(equal.iter().map(String::as_str));
            let (base, filter) = (self.config.group_base(), self.group_filter(&any));
            let attributes = self.group_attributes();
            let found = connection.search(base, &filter, &attributes, GROUPS_MAX).await?;
            for entry in found {
                new.extend(groups.add(entry));
            }
        }
        Ok(new)
    }

    /// Adds a group that an entry names, if it is one below the configured base.
    async fn named_group(
        &self,
        connection: &mut Connection,
        dn: &str,
        groups: &mut Groups,
    ) -> Result<Option<String>, ProviderError> {
        if groups.has(dn) || !is_below(dn, self.config.group_base()) {
            return Ok(None);
        }
        let filter = self.group_filter("");
        let found = connection.entry(dn, &filter, &self.group_attributes()).await?;
        Ok(found.and_then(|entry| groups.add(entry)))
    }

    async fn find(
        &self,
        text: &str,
        kind: Option<PrincipalKind>,
    ) -> Result<Vec<Principal>, ProviderError> {
        let config = &self.config;
        let text = text.trim();
        if text.is_empty() || text.len() > NAME_BYTES_MAX {
            return Ok(Vec::new());
        }
        let mut connection = self.open().await?;
        let mut found = Vec::new();
        let among = |attributes: &str| {
            let each = attributes.split('|').map(|attribute| filter::begins(attribute, text));
            let each: Vec<String> = each.collect();
            filter::any(each.iter().map(String::as_str))
        };
        if kind != Some(PrincipalKind::Group) {
            let filter = self.user_filter(&among(&config.user_search_attribute));
            let base = &config.user_search_base;
            let attributes = self.user_attributes();
            let users = connection.search(base, &filter, &attributes, FOUND_MAX).await?;
            found.extend(users.iter().map(|entry| self.user(entry)));
        }
        if kind != Some(PrincipalKind::User) {
            let filter = self.group_filter(&among(&config.group_search_attribute));
            let base = config.group_base();
            let attributes = self.group_attributes();
            let groups = connection.search(base, &filter, &attributes, FOUND_MAX).await?;
            found.extend(groups.iter().map(|entry| self.group(entry)));
        }
        connection.close().await;
        Ok(found)
    }

    async fn by_id(&self, id: &str) -> Result<Option<Principal>, ProviderError> {
        let config = &self.config;
        let mut connection = match (self.flavour.user_dn(id), self.flavour.group_dn(id)) {
            (None, None) => return Ok(None),
            _ => self.open().await?,
        };
        let found = if let Some(dn) = self.flavour.user_dn(id) {
            self.user_at(&mut connection, dn).await?.map(|entry| self.user(&entry))
        } else {
            let dn = self.flavour.group_dn(id).unwrap_or_default();
            let is_ours = is_below(dn, config.group_base());
            let filter = self.group_filter("");
            let entry = match is_ours {
                true => connection.entry(dn, &filter, &self.group_attributes()).await?,
                false => None,
            };
            entry.map(|entry| self.group(&entry))
        };
        connection.close().await;
        Ok(found)
    }

    async fn user_at(
        &self,
        connection: &mut Connection,
        dn: &str,
    ) -> Result<Option<Entry>, ProviderError> {
        if !is_below(dn, &self.config.user_search_base) {
            return Ok(None);
        }
        connection.entry(dn, &self.user_filter(""), &self.user_attributes()).await
    }

    async fn read_anew(&self, id: &str) -> Result<Refreshed, ProviderError> {
        let Some(dn) = self.flavour.user_dn(id) else { return Ok(Refreshed::Gone) };
        let mut connection = self.open().await?;
        let Some(entry) = self.user_at(&mut connection, dn).await? else {
            return self.without_entry(&mut connection).await;
        };
        if self.is_disabled(&entry) {
            return Ok(Refreshed::Disabled);
        }
        let groups = self.groups_of(&mut connection, &entry).await?;
        let base = ("groupSearchBase", self.config.group_base());
        if groups.is_empty()
            && let Some(concealed) = concealed(&mut connection, base).await?
        {
            return Ok(concealed);
        }
        connection.close().await;
        Ok(Refreshed::Known(Person { user: self.user(&entry), groups }))
    }

    /// A user without an entry is gone, unless nobody has one.
    async fn without_entry(&self, connection: &mut Connection) -> Result<Refreshed, ProviderError> {
        let base = ("userSearchBase", self.config.user_search_base.as_str());
        Ok(concealed(connection, base).await?.unwrap_or(Refreshed::Gone))
    }
}

/// What follows when nothing is found below a base that cannot be read: a server conceals what the
/// service account may not read as if it were not there. `base`: its field and its name.
async fn concealed(
    connection: &mut Connection,
    (field, base): (&str, &str),
) -> Result<Option<Refreshed>, ProviderError> {
    let is_readable = connection.entry(base, ANY_ENTRY, &[OBJECT_CLASS]).await?.is_some();
    let text = format!("{field}: \"{base}\" is not there, or the service account may not read it");
    Ok((!is_readable).then_some(Refreshed::Unavailable(text)))
}

/// Groups by their names in lower case.
#[derive(Default)]
struct Groups(BTreeMap<String, Entry>);

impl Groups {
    fn has(&self, dn: &str) -> bool {
        self.0.contains_key(&dn.to_lowercase())
    }
    /// Returns the name when the group is new.
    fn add(&mut self, entry: Entry) -> Option<String> {
        let key = entry.dn.to_lowercase();
        if self.0.contains_key(&key) || self.0.len() >= GROUPS_MAX {
            return None;
        }
        let dn = entry.dn.clone();
        self.0.insert(key, entry);
        Some(dn)
    }
}

/// Whether the entry is the base or below it.
fn is_below(dn: &str, base: &str) -> bool {
    let bare = |name: &str| {
        let parts = name.split(',').map(|part| part.trim().to_lowercase());
        parts.collect::<Vec<_>>().join(",")
    };
    let (dn, base) = (bare(dn), bare(base));
    dn == base || dn.ends_with(&format!(",{base}"))
}

impl IdentityProvider for Directory {
    fn authenticate<'a>(
        &'a self,
        username: &'a str,
        password: &'a Secret,
    ) -> BoxFuture<'a, Result<Person, ProviderError>> {
        Box::pin(self.log_in(username, password))
    }
    fn refresh<'a>(&'a self, user: &'a str) -> BoxFuture<'a, Refreshed> {
        Box::pin(async move {
            match self.read_anew(user).await {
                Ok(refreshed) => refreshed,
                Err(error) => Refreshed::Unavailable(error.to_string()),
            }
        })
    }
}

impl Principals for Directory {
    fn search<'a>(
        &'a self,
        text: &'a str,
        kind: Option<PrincipalKind>,
        _: Option<&'a Secret>,
    ) -> BoxFuture<'a, Result<Vec<Principal>, ProviderError>> {
        Box::pin(self.find(text, kind))
    }
    fn principal<'a>(
        &'a self,
        id: &'a str,
        _: Option<&'a Secret>,
    ) -> BoxFuture<'a, Result<Option<Principal>, ProviderError>> {
        Box::pin(self.by_id(id))
    }
}

#[cfg(test)]
mod tests;
