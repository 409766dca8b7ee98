//! Filters, configurations and names, without a directory; with one: `test-kit`.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::connection::with_domain;
use super::*;

fn valid(flavour: &Flavour) -> Value {
    let mut config = json!({
        "servers": ["ldap.example.org"],
        "serviceAccountPassword": "secret",
        "userSearchBase": "dc=example,dc=org",
    });
    config[flavour.service_account_field] = "cn=reader,dc=example,dc=org".into();
    config
}

#[test]
fn a_minimal_configuration_gets_the_defaults_of_its_flavour() {
    for flavour in FLAVOURS {
        let config = LdapConfig::read(flavour, &valid(flavour)).map_err(|p| format!("{p:?}"));
        let config = config.unwrap();
        assert_eq!((config.port, config.connection_timeout), (389, 5000), "{}", flavour.provider);
        assert_eq!(config.group_base(), "dc=example,dc=org");
        assert!(Directory::new(flavour, config).is_ok());
    }
    let config = LdapConfig::read(&ACTIVE_DIRECTORY, &valid(&ACTIVE_DIRECTORY)).ok().unwrap();
    assert_eq!(config.user_login_attribute, "sAMAccountName");
    assert_eq!(config.user_disabled_bit_mask, 2);
}

#[test]
fn each_field_that_is_not_right_is_named() {
    for (field, value) in [
        ("servers", json!([])),
        ("servers", json!(["ldap://ldap.example.org"])),
        ("servers", json!(["ldap.example.org:389"])),
        ("port", json!(70_000)),
        ("connectionTimeout", json!(-1)),
        ("certificate", json!("not a certificate")),
        ("serviceAccountDistinguishedName", json!("")),
        ("serviceAccountPassword", json!("")),
        ("userSearchBase", json!("")),
        ("userLoginAttribute", json!("uid)(objectClass=*")),
        ("userSearchAttribute", json!("uid|*")),
        ("userSearchFilter", json!("(uid=")),
        ("userSearchFilter", json!("(uid=a)(uid=b)")),
        ("groupSearchFilter", json!("((((((((((((((((((")),
    ] {
        let mut config = valid(&OPENLDAP);
        config[field] = value.clone();
        let problems = LdapConfig::read(&OPENLDAP, &config).err().unwrap_or_default();
        let fields: Vec<_> = problems.iter().map(|problem| problem.field).collect();
        assert_eq!(fields, [field], "{value}");
    }
    let mut both = valid(&OPENLDAP);
    both["tls"] = true.into();
    both["starttls"] = true.into();
    assert!(LdapConfig::read(&OPENLDAP, &both).is_err());
}

#[test]
fn principals_are_named_by_scheme_and_distinguished_name() {
    assert_eq!(OPENLDAP.user_id("uid=ada,dc=x"), "openldap_user://uid=ada,dc=x");
    assert_eq!(ACTIVE_DIRECTORY.group_id("CN=S,DC=x"), "activedirectory_group://CN=S,DC=x");
    assert_eq!(FREEIPA.user_dn("freeipa_user://uid=a"), Some("uid=a"));
    assert_eq!(FREEIPA.user_dn("openldap_user://uid=a"), None);
    assert_eq!(FREEIPA.group_dn("freeipa_user://uid=a"), None);
}

#[test]
fn names_get_the_domain_only_when_they_have_none() {
    for (name, domain, expected) in [
        ("ada", "EXAMPLE", "EXAMPLE\\ada"),
        ("OTHER\\ada", "EXAMPLE", "OTHER\\ada"),
        ("ada@example.org", "EXAMPLE", "ada@example.org"),
        ("cn=ada,dc=x", "EXAMPLE", "cn=ada,dc=x"),
        ("ada", "", "ada"),
    ] {
        assert_eq!(with_domain(name, domain), expected);
    }
}

#[test]
fn users_of_active_directory_are_found_by_either_name() {
    let config = LdapConfig::read(&ACTIVE_DIRECTORY, &valid(&ACTIVE_DIRECTORY)).ok().unwrap();
    let directory = Directory::new(&ACTIVE_DIRECTORY, config).ok().unwrap();
    assert_eq!(directory.login_filter("ada"), "(sAMAccountName=ada)");
    assert_eq!(directory.login_filter("EXAMPLE\\ada"), "(sAMAccountName=ada)");
    let either = "(|(sAMAccountName=ada@example.org)(userPrincipalName=ada@example.org))";
    assert_eq!(directory.login_filter("ada@example.org"), either);
}

#[test]
fn entries_outside_of_the_base_are_not_below_it() {
    assert!(is_below("uid=ada, ou=People,dc=x", "OU=people,DC=x"));
    assert!(is_below("dc=x", "dc=x"));
    assert!(!is_below("uid=ada,ou=other,dc=x", "ou=people,dc=x"));
    assert!(!is_below("uid=eve,xou=people,dc=x", "ou=people,dc=x"));
}

#[tokio::test]
async fn an_empty_password_is_refused_before_anything_is_sent() {
    let mut config = valid(&OPENLDAP);
    // Nobody is there: only a refusal without a connection is `Wrong`.
    config["servers"] = json!(["192.0.2.1"]);
    let config = LdapConfig::read(&OPENLDAP, &config).ok().unwrap();
    let directory = Directory::new(&OPENLDAP, config).ok().unwrap();
    let refused = directory.authenticate("ada", &Secret::new("")).await;
    assert_eq!(refused, Err(ProviderError::Wrong));
    let refused = directory.authenticate("", &Secret::new("x")).await;
    assert_eq!(refused, Err(ProviderError::Wrong));
}

proptest! {
    #[test]
    fn whatever_is_typed_stays_one_value_of_a_filter(text in any::<String>()) {
        let built = filter::equals("uid", &text);
        let value = &built["(uid=".len()..built.len() - 1];
        prop_assert!(!value.contains(['(', ')', '*', '\0']));
        // A backslash only begins an escape: with it undone the text is what was typed.
        prop_assert_eq!(unescaped(value), text);
        if !value.is_empty() {
            prop_assert!(ldap3::parse_filter(&built).is_ok());
        }
    }
}

fn unescaped(value: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = value.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        if first == b'\\' {
            let hex = std::str::from_utf8(&after[..2]).unwrap();
            bytes.push(u8::from_str_radix(hex, 16).unwrap());
            rest = &after[2..];
        } else {
            bytes.push(first);
            rest = after;
        }
    }
    String::from_utf8(bytes).unwrap()
}
