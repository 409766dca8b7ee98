//! Where credentials are, taking them out and putting them back.

use serde_json::json;

use super::*;

/// Takes out with ids that count.
fn taken_out(
    kind: &str,
    object: &mut Value,
    old: Option<&Value>,
    stored: &Values,
) -> Result<Values, Vec<Cause>> {
    let mut taken = Values::new();
    let mut next = stored.len();
    let mut new_id = || {
        next += 1;
        next.to_string()
    };
    take_out(kind, object, old, stored, &mut taken, &mut new_id)?;
    Ok(taken)
}

fn reference(key: &str) -> String {
    format!("{PREFIX}{key}")
}

#[test]
fn every_marked_field_is_listed() {
    let mut lines = Vec::new();
    for kind in kinds() {
        let fields = fields(kind);
        lines.push(kind.to_owned());
        lines.extend(fields.iter().map(|(path, mark)| format!("  {path} {mark:?}")));
    }
    let listed = lines.join("\n") + "\n";
    let expected = include_str!("fields.txt");
    if std::env::var_os("UPDATE_FIELDS").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/credentials/fields.txt");
        std::fs::write(path, &listed).unwrap();
        return;
    }
    assert_eq!(listed, expected, "review the difference, then run this with UPDATE_FIELDS=1");
}

#[test]
fn credentials_become_references_at_the_top_and_however_deep() {
    let mut catalog = json!({"spec": {"url": "https://u:p@a", "password": "x"}});
    let taken = taken_out("Catalog", &mut catalog, None, &Values::new()).unwrap();
    assert_eq!(catalog["spec"]["url"], reference("c-2"));
    assert_eq!(catalog["spec"]["password"], reference("p-1"));
    assert_eq!(
        taken,
        [("p-1", "x"), ("c-2", "https://u:p@a")].map(|(k, v)| (k.into(), v.into())).into()
    );
    let mut cluster = json!({"spec": {
        "agentEnvVars": [{"name": "HTTPS_PROXY", "value": "http://u:p@proxy"}],
        "genericEngineConfig": {"driverName": "d", "nested": {"secretKey": "s"}, "size": 3},
        "rancherKubernetesEngineConfig": {
            "nodes": [{"address": "a"}, {"address": "b", "sshKey": "k"}],
            "bastionHost": {"sshKey": ""},
            "services": {"kubeApi": {"extraEnv": ["A=b"]}},
        },
    }});
    let taken = taken_out("Cluster", &mut cluster, None, &Values::new()).unwrap();
    let values: BTreeSet<&str> = taken.values().map(String::as_str).collect();
    assert_eq!(values, ["A=b", "http://u:p@proxy", "k", "s"].into());
    let text = cluster.to_string();
    assert!(!text.contains("u:p@proxy") && !text.contains("A=b"), "{text}");
    assert_eq!(cluster["spec"]["agentEnvVars"][0]["name"], "HTTPS_PROXY");
    assert_eq!(cluster["spec"]["genericEngineConfig"]["size"], 3);
    assert_eq!(cluster["spec"]["genericEngineConfig"]["driverName"], "d");
    assert_eq!(cluster["spec"]["rancherKubernetesEngineConfig"]["bastionHost"]["sshKey"], "");
    assert!(!has_plain("Cluster", &cluster));
    put_back("Cluster", &mut cluster, &taken, true);
    assert_eq!(cluster["spec"]["genericEngineConfig"]["nested"]["secretKey"], "s");
    assert_eq!(cluster["spec"]["rancherKubernetesEngineConfig"]["nodes"][1]["sshKey"], "k");
}

#[test]
fn a_url_is_a_credential_when_it_names_a_user() {
    for (url, expected) in [
        ("https://charts.example/index.yaml", false),
        ("https://charts.example/a@b", false),
        ("git@github.com:a/b.git", false),
        ("proxy:3128", false),
        ("", false),
        ("https://user:password@charts.example", true),
        ("https://token@charts.example", true),
        ("http://user:pass/word@proxy", true),
        ("user:password@proxy:3128", true),
        ("git@host.example:charts.git", false),
        ("host.example/a:b@c", false),
    ] {
        assert_eq!(has_plain("Catalog", &json!({"spec": {"url": url}})), expected, "{url}");
    }
}

#[test]
fn a_value_that_is_sent_again_retains_its_reference_and_another_gets_a_new_one() {
    let stored: Values = [("c-1".to_owned(), "https://a".to_owned())].into();
    let old = json!({"spec": {"slackConfig": {"url": reference("c-1")}}});
    let mut same = json!({"spec": {"slackConfig": {"url": "https://a"}}});
    assert_eq!(taken_out("Notifier", &mut same, Some(&old), &stored).unwrap(), Values::new());
    assert_eq!(same, old);
    let mut other = json!({"spec": {"slackConfig": {"url": "https://b"}}});
    let taken = taken_out("Notifier", &mut other, Some(&old), &stored).unwrap();
    assert_eq!(taken, [("c-2".to_owned(), "https://b".to_owned())].into());
    // What an interrupted write left is used, and stored once more.
    let mut moved = json!({"spec": {"webhookConfig": {"url": "https://a"}}});
    let nothing = json!({"spec": {}});
    let taken = taken_out("Notifier", &mut moved, Some(&nothing), &stored).unwrap();
    assert_eq!(taken, stored);
}

#[test]
fn references_of_other_objects_and_of_passwords_in_other_fields_are_refused() {
    let stored: Values = [("p-1".to_owned(), "x".to_owned())].into();
    let old = json!({"spec": {"smtpConfig": {"password": reference("p-1")}}});
    let refused = |mut object: Value, old: Option<&Value>| {
        let causes = taken_out("Notifier", &mut object, old, &stored).err().unwrap_or_default();
        causes.into_iter().map(|cause| cause.field).collect::<Vec<_>>()
    };
    assert_eq!(refused(old.clone(), None), ["spec.smtpConfig.password"]);
    assert!(refused(old.clone(), Some(&old)).is_empty());
    let moved = json!({"spec": {"slackConfig": {"url": reference("p-1")}}});
    assert_eq!(refused(moved, Some(&old)), ["spec.slackConfig.url"]);
    let foreign = json!({"spec": {"slackConfig": {"url": reference("c-9")}}});
    assert_eq!(refused(foreign, Some(&old)), ["spec.slackConfig.url"]);
}

#[test]
fn passwords_are_put_back_for_the_server_alone_and_no_reference_is_left() {
    let values: Values =
        [("p-1", "x"), ("c-1", "https://a")].map(|(k, v)| (k.into(), v.into())).into();
    let object = json!({"spec": {
        "smtpConfig": {"host": "h", "password": reference("p-1")},
        "slackConfig": {"url": reference("c-1")},
        "webhookConfig": {"url": reference("c-2")},
    }});
    let mut shown = object.clone();
    put_back("Notifier", &mut shown, &values, false);
    assert_eq!(
        shown,
        json!({"spec": {
            "smtpConfig": {"host": "h"}, "slackConfig": {"url": "https://a"}, "webhookConfig": {},
        }})
    );
    let mut hidden = object.clone();
    put_back("Notifier", &mut hidden, &Values::new(), false);
    assert!(!hidden.to_string().contains(PREFIX), "{hidden}");
    let mut whole = object;
    put_back("Notifier", &mut whole, &values, true);
    assert_eq!(whole["spec"]["smtpConfig"]["password"], "x");
}

#[test]
fn what_kubectl_notes_of_an_object_has_no_credentials() {
    let applied = json!({"spec": {"slackConfig": {"url": "https://a"}, "displayName": "n"}});
    let mut object = applied.clone();
    object["metadata"]["annotations"][LAST_APPLIED] = applied.to_string().into();
    taken_out("Notifier", &mut object, None, &Values::new()).unwrap();
    let noted = object["metadata"]["annotations"][LAST_APPLIED].as_str().unwrap();
    assert!(!noted.contains("https://a") && noted.contains("displayName"), "{noted}");
    assert!(!has_plain("Notifier", &object));
    let mut unreadable = json!({"metadata": {"annotations": {LAST_APPLIED: "{https://a"}}});
    taken_out("Notifier", &mut unreadable, None, &Values::new()).unwrap();
    assert_eq!(unreadable["metadata"]["annotations"][LAST_APPLIED], REDACTED);
}

#[test]
fn a_credential_that_is_sent_again_to_another_server_has_a_new_reference() {
    let old = json!({"type": "openLdapConfig", "servers": ["a.example"], "port": 636,
                     "serviceAccountPassword": "drover-credential://p-1"});
    let stored = Values::from([("p-1".to_owned(), "secret".to_owned())]);
    let taken = |mut object: Value| {
        let mut new_id = || "2".to_owned();
        let mut extracted = Values::new();
        take_out("AuthConfig", &mut object, Some(&old), &stored, &mut extracted, &mut new_id)
            .unwrap();
        let elsewhere = takes_elsewhere("AuthConfig", &object, &old);
        (object["serviceAccountPassword"].as_str().unwrap_or_default().to_owned(), elsewhere)
    };
    let mut object = old.clone();
    object["serviceAccountPassword"] = "secret".into();
    assert_eq!(taken(object.clone()), ("drover-credential://p-1".to_owned(), false));
    object["servers"] = json!(["b.example"]);
    assert_eq!(taken(object.clone()), ("drover-credential://p-2".to_owned(), false));
    object["serviceAccountPassword"] = old["serviceAccountPassword"].clone();
    assert!(taken(object.clone()).1);
    // Nor in two steps, with the reference in another field in between.
    object["serviceAccountPassword"] = Value::Null;
    object["clientSecret"] = old["serviceAccountPassword"].clone();
    assert!(taken(object).1);
}
