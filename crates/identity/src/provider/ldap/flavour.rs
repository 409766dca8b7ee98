//! What distinguishes the directories that are reached over LDAP. All of it is data.

/// A kind of directory.
#[derive(Debug, PartialEq, Eq)]
pub struct Flavour {
    /// Name of its configuration, and prefix of its principals: `openldap`.
    pub provider: &'static str,
    /// Type of its configuration: `openLdapConfig`.
    pub config_type: &'static str,
    /// Type of its public part: `openLdapProvider`.
    pub public_type: &'static str,
    /// The configuration's field with the name of the account that searches.
    pub service_account_field: &'static str,
    /// Names without a domain get that of the field `defaultLoginDomain`; users may be called by
    /// their principal name, `ada@example.org`.
    pub has_domains: bool,
    /// Values of the configuration's fields that are empty.
    pub defaults: &'static [(&'static str, &'static str)],
    /// The bits of the field `userEnabledAttribute` that say that an account is disabled.
    pub disabled_bits: i64,
}

pub const OPENLDAP: Flavour = Flavour {
    provider: "openldap",
    config_type: "openLdapConfig",
    public_type: "openLdapProvider",
    service_account_field: "serviceAccountDistinguishedName",
    has_domains: false,
    defaults: &[
        ("groupDNAttribute", "entryDN"),
        ("groupMemberMappingAttribute", "member"),
        ("groupMemberUserAttribute", "entryDN"),
        ("groupNameAttribute", "cn"),
        ("groupObjectClass", "groupOfNames"),
        ("groupSearchAttribute", "cn"),
        ("userLoginAttribute", "uid"),
        ("userMemberAttribute", "memberOf"),
        ("userNameAttribute", "cn"),
        ("userObjectClass", "inetOrgPerson"),
        ("userSearchAttribute", "uid|sn|givenName"),
    ],
    disabled_bits: 0,
};

pub const FREEIPA: Flavour = Flavour {
    provider: "freeipa",
    config_type: "freeIpaConfig",
    public_type: "freeIpaProvider",
    service_account_field: "serviceAccountDistinguishedName",
    has_domains: false,
    defaults: &[
        ("groupDNAttribute", "entrydn"),
        ("groupMemberMappingAttribute", "member"),
        ("groupMemberUserAttribute", "entrydn"),
        ("groupNameAttribute", "cn"),
        ("groupObjectClass", "groupofnames"),
        ("groupSearchAttribute", "cn"),
        ("userLoginAttribute", "uid"),
        ("userMemberAttribute", "memberOf"),
        ("userNameAttribute", "givenName"),
        ("userObjectClass", "inetorgperson"),
        ("userSearchAttribute", "uid|sn|givenName"),
    ],
    disabled_bits: 0,
};

pub const ACTIVE_DIRECTORY: Flavour = Flavour {
    provider: "activedirectory",
    config_type: "activeDirectoryConfig",
    public_type: "activeDirectoryProvider",
    service_account_field: "serviceAccountUsername",
    has_domains: true,
    defaults: &[
        ("groupDNAttribute", "distinguishedName"),
        ("groupMemberMappingAttribute", "member"),
        ("groupMemberUserAttribute", "distinguishedName"),
        ("groupNameAttribute", "name"),
        ("groupObjectClass", "group"),
        ("groupSearchAttribute", "sAMAccountName"),
        ("userEnabledAttribute", "userAccountControl"),
        ("userLoginAttribute", "sAMAccountName"),
        ("userMemberAttribute", "memberOf"),
        ("userNameAttribute", "name"),
        ("userObjectClass", "person"),
        ("userSearchAttribute", "sAMAccountName|sn|givenName"),
    ],
    disabled_bits: 2,
};

/// All of them.
pub const FLAVOURS: [&Flavour; 3] = [&ACTIVE_DIRECTORY, &FREEIPA, &OPENLDAP];

impl Flavour {
    /// The kind of directory with this type of configuration.
    pub fn of_config(config_type: &str) -> Option<&'static Self> {
        FLAVOURS.into_iter().find(|flavour| flavour.config_type == config_type)
    }
    /// The kind of directory whose configuration has this name.
    pub fn of_provider(name: &str) -> Option<&'static Self> {
        FLAVOURS.into_iter().find(|flavour| flavour.provider == name)
    }
    /// The id of the user with this distinguished name.
    pub fn user_id(&self, dn: &str) -> String {
        format!("{}_user://{dn}", self.provider)
    }
    /// The id of the group with this distinguished name.
    pub fn group_id(&self, dn: &str) -> String {
        format!("{}_group://{dn}", self.provider)
    }
    /// The distinguished name in the id of a user.
    pub fn user_dn<'a>(&self, id: &'a str) -> Option<&'a str> {
        id.strip_prefix(self.provider)?.strip_prefix("_user://")
    }
    /// The distinguished name in the id of a group.
    pub fn group_dn<'a>(&self, id: &'a str) -> Option<&'a str> {
        id.strip_prefix(self.provider)?.strip_prefix("_group://")
    }
}
