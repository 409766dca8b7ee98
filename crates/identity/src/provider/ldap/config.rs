//! The configuration of a directory, read from its object, with the defaults of its [`Flavour`].

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::super::Problem;
use super::filter;
use super::flavour::Flavour;

/// Longest time that one step of a conversation may be configured to take.
const TIMEOUT_MAX: Duration = Duration::from_secs(60);
const TIMEOUT_DEFAULT_MILLIS: i64 = 5000;
const PORT_DEFAULT: i64 = 389;

/// How to reach a directory and what its attributes are called. The names are those of the object.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LdapConfig {
    pub servers: Vec<String>,
    pub port: i64,
    pub tls: bool,
    pub starttls: bool,
    /// PEM; empty to trust the authorities of this system.
    pub certificate: String,
    /// Milliseconds.
    pub connection_timeout: i64,
    pub service_account_distinguished_name: String,
    pub service_account_username: String,
    pub service_account_password: String,
    pub default_login_domain: String,
    pub user_search_base: String,
    pub user_search_filter: String,
    pub user_object_class: String,
    pub user_login_attribute: String,
    pub user_name_attribute: String,
    pub user_search_attribute: String,
    pub user_member_attribute: String,
    pub user_enabled_attribute: String,
    pub user_disabled_bit_mask: i64,
    pub group_search_base: String,
    pub group_search_filter: String,
    pub group_object_class: String,
    pub group_name_attribute: String,
    pub group_search_attribute: String,
    #[serde(rename = "groupDNAttribute")]
    pub group_dn_attribute: String,
    pub group_member_mapping_attribute: String,
    pub group_member_user_attribute: String,
    pub nested_group_membership_enabled: bool,
}

impl LdapConfig {
    /// The configuration in an object of the flavour's type. Pure.
    ///
    /// # Errors
    /// Every field that is not right.
    pub fn read(flavour: &Flavour, object: &Value) -> Result<Self, Vec<Problem>> {
        let config = Self::decode(flavour, object)?;
        let problems = config.problems(flavour);
        if problems.is_empty() { Ok(config) } else { Err(problems) }
    }

    fn decode(flavour: &Flavour, object: &Value) -> Result<Self, Vec<Problem>> {
        let mut fields = object.as_object().cloned().unwrap_or_default();
        fields.retain(|_, value| !value.is_null() && value != "");
        let defaults = flavour.defaults.iter();
        for (name, value) in defaults.map(|(name, value)| (*name, Value::from(*value))).chain([
            ("connectionTimeout", Value::from(TIMEOUT_DEFAULT_MILLIS)),
            ("port", Value::from(PORT_DEFAULT)),
            ("userDisabledBitMask", Value::from(flavour.disabled_bits)),
        ]) {
            fields.entry(name).or_insert(value);
        }
        serde_json::from_value(Value::Object(fields)).map_err(|error| {
            vec![Problem { field: "", text: format!("the configuration is malformed: {error}") }]
        })
    }

    /// The name with which the service account binds.
    pub fn service_account<'a>(&'a self, flavour: &Flavour) -> &'a str {
        if flavour.has_domains {
            &self.service_account_username
        } else {
            &self.service_account_distinguished_name
        }
    }

    /// How long each step of a conversation may take.
    pub fn timeout(&self) -> Duration {
        let millis = u64::try_from(self.connection_timeout).unwrap_or_default();
        Duration::from_millis(millis).min(TIMEOUT_MAX)
    }

    /// Where groups are.
    pub fn group_base(&self) -> &str {
        if self.group_search_base.is_empty() {
            &self.user_search_base
        } else {
            &self.group_search_base
        }
    }

    fn problems(&self, flavour: &Flavour) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut add = |field, text: &str| problems.push(Problem { field, text: text.to_owned() });
        if self.servers.iter().all(|server| server.trim().is_empty()) {
            add("servers", "is empty; enter the host name of at least one directory server");
        } else if !self.servers.iter().all(|server| is_host(server.trim())) {
            add("servers", "must be host names or addresses, without scheme and port");
        }
        if !(1..=65535).contains(&self.port) {
            add("port", "must be between 1 and 65535; usual are 389, and 636 with TLS");
        }
        if self.tls && self.starttls {
            add("starttls", "cannot be combined with tls; choose one of them");
        }
        if self.connection_timeout <= 0 {
            add("connectionTimeout", "must be a positive number of milliseconds, such as 5000");
        }
        if let Some(text) = self.certificate_problem() {
            add("certificate", &text);
        }
        if self.service_account(flavour).is_empty() {
            let text = "is empty; enter the account that may search the directory";
            add(flavour.service_account_field, text);
        }
        if self.service_account_password.is_empty() {
            add("serviceAccountPassword", "is empty; enter the password of the service account");
        }
        if self.user_search_base.is_empty() {
            add("userSearchBase", "is empty; enter the entry below which users are");
        }
        for (field, name) in self.single_attributes() {
            if !name.is_empty() && !filter::is_attribute(name) {
                add(field, "must be the name of one attribute, such as \"uid\"");
            }
        }
        for (field, names) in self.attribute_lists() {
            if !names.split('|').all(filter::is_attribute) {
                add(field, "must be names of attributes, separated by \"|\"");
            }
        }
        for (field, text) in self.filters() {
            if !text.is_empty() && !filter::is_filter(text) {
                add(field, "is not a filter; an example is \"(employeeType=staff)\"");
            }
        }
        problems
    }

    fn certificate_problem(&self) -> Option<String> {
        if self.certificate.trim().is_empty() {
            return None;
        }
        let error = tls_trust::roots_from_pem(&self.certificate).err()?;
        Some(format!("cannot be used ({error}); enter the authority's certificate as PEM"))
    }

    fn single_attributes(&self) -> [(&'static str, &str); 8] {
        [
            ("userLoginAttribute", &self.user_login_attribute),
            ("userNameAttribute", &self.user_name_attribute),
            ("userMemberAttribute", &self.user_member_attribute),
            ("userEnabledAttribute", &self.user_enabled_attribute),
            ("groupNameAttribute", &self.group_name_attribute),
            ("groupDNAttribute", &self.group_dn_attribute),
            ("groupMemberMappingAttribute", &self.group_member_mapping_attribute),
            ("groupMemberUserAttribute", &self.group_member_user_attribute),
        ]
    }

    fn attribute_lists(&self) -> [(&'static str, &str); 2] {
        [
            ("userSearchAttribute", &self.user_search_attribute),
            ("groupSearchAttribute", &self.group_search_attribute),
        ]
    }

    fn filters(&self) -> [(&'static str, &str); 2] {
        [
            ("userSearchFilter", &self.user_search_filter),
            ("groupSearchFilter", &self.group_search_filter),
        ]
    }
}

/// A host name, or an address, IPv6 without brackets or with them.
fn is_host(text: &str) -> bool {
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    if bare.parse::<std::net::IpAddr>().is_ok() {
        return true;
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    !text.is_empty() && text.chars().all(fits)
}
