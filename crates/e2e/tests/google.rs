//! Logging in through Google Workspace, against a stand-in written from the public description of
//! Google's login and of its Directory API: a service account that signs, nested groups, pages,
//! searches, accounts of others, and a suspended user.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use anyhow::ensure;
use e2e::provider_world::{Names, ProviderWorld, principals};
use e2e::{Client, eventually};
use serde_json::{Value, json};
use testbed::IdentityProvider;
use testbed::identity_provider::CLIENT_SECRET;

fn world() -> ProviderWorld {
    let names = Names {
        provider: "googleoauth",
        config: "/v3/googleOauthConfigs/googleoauth",
        field: "googleOauthConfig",
    };
    ProviderWorld::start(names, IdentityProvider::google).unwrap()
}

fn config(world: &ProviderWorld) -> Value {
    let url = world.provider.url();
    let (client, account) = world.provider.google_files();
    json!({
        "adminEmail": "admin@example.org", "hostname": "example.org",
        "nestedGroupMembershipEnabled": true, "accessMode": "unrestricted",
        "oauthCredential": client.to_string(), "serviceAccountCredential": account.to_string(),
        "userInfoEndpoint": format!("{url}/v1/userinfo"), "directoryEndpoint": url,
    })
}

#[test]
fn each_way_to_misconfigure_it_names_the_field() {
    let world = world();
    let refused = |field: &str, value: &str| {
        let mut config = config(&world);
        config[field] = value.into();
        let refused = world.apply(&config, "carol").unwrap();
        assert!(!refused.status.is_success());
        refused.json()
    };
    let answer = refused("adminEmail", "nobody@example.org");
    assert_eq!(answer["fieldName"], "adminEmail", "{answer}");
    let (client, _) = world.provider.google_files();
    let wrong = client.to_string().replace(CLIENT_SECRET, "wrong");
    let answer = refused("oauthCredential", &wrong);
    assert_eq!(answer["fieldName"], "oauthCredential", "{answer}");
    // The key of somebody else.
    let (_, foreign) =
        IdentityProvider::google("https://localhost/verify-auth").unwrap().google_files();
    let (_, mut own) = world.provider.google_files();
    own["private_key"] = foreign["private_key"].clone();
    let answer = refused("serviceAccountCredential", &own.to_string());
    assert_eq!(answer["fieldName"], "serviceAccountCredential", "{answer}");
    let mut no_file = config(&world);
    no_file["oauthCredential"] = "{\"web\": {}}".into();
    let path = "/v3/googleOauthConfigs/googleoauth?action=configureTest";
    let answer = world.admin.post(path, &no_file).unwrap().json();
    assert_eq!(answer["fieldName"], "oauthCredential", "{answer}");
}

#[test]
fn people_of_the_organisation_log_in_with_groups_until_it_says_otherwise() {
    let mut world = world();
    world.apply(&config(&world), "carol").unwrap().success().unwrap();
    let stored = world.stored().unwrap();
    let text = stored.to_string();
    let is_kept_apart = !text.contains(CLIENT_SECRET) && !text.contains("PRIVATE KEY");
    assert!(stored["enabled"] == true && is_kept_apart, "{stored}");
    // Only the organisation's own people.
    let refused = world.log_in("eve").map(drop).unwrap_err().to_string();
    assert!(refused.contains("failed=refused"), "{refused}");

    let ada = world.log_in("ada").unwrap();
    let me = ada.get("/v3/users?me=true").unwrap().success().unwrap()["data"][0].clone();
    let expected = (&json!("Ada Lovelace"), &json!("googleoauth_user://1001"));
    assert_eq!((&me["name"], &me["principalIds"][0]), expected);
    let own = principals(&ada.get("/v3/principals").unwrap()).unwrap();
    let groups = ["01all", "02dev", "03ops", "04qa"].map(|id| format!("googleoauth_group://{id}"));
    assert_eq!(own, [groups.as_slice(), &["googleoauth_user://1001".to_owned()]].concat());

    let search = |name, kind| world.search(&ada, name, kind).unwrap();
    assert_eq!(search("kah", "user"), ["googleoauth_user://1002"]);
    assert_eq!(search("quali", "group"), ["googleoauth_group://04qa"]);
    assert!(search("x' OR email:'a", "").is_empty());
    // A token of the server that was ended before its time.
    world.provider.set("epoch", 1.into()).unwrap();
    assert_eq!(world.search(&ada, "kah", "user").unwrap(), ["googleoauth_user://1002"]);
    world.provider.set("epoch", 2.into()).unwrap();
    world.refresh(me["id"].as_str().unwrap()).unwrap();
    // One that the provider does not take at all says nothing about users.
    world.provider.set("epoch", "none".into()).unwrap();
    world.refresh(me["id"].as_str().unwrap()).unwrap();
    ada.get("/v3/principals").unwrap().success().unwrap();
    world.provider.set("epoch", 3.into()).unwrap();

    // A role of a group that she is in by another, until that one leaves it.
    let settings = |client: &Client| client.put("/v3/settings/ui-pl", &json!({"value": "x"}));
    let grant =
        json!({"globalRoleId": "settings-manage", "groupPrincipalId": "googleoauth_group://01all"});
    world.admin.post("/v3/globalRoleBindings", &grant).unwrap().success().unwrap();
    eventually("the role of the group", || settings(&ada)?.success());
    let id = me["id"].as_str().unwrap().to_owned();
    // What Google does not say changes nothing.
    world.provider.limit(true).unwrap();
    world.refresh(&id).unwrap();
    settings(&ada).unwrap().success().unwrap();
    world.provider.limit(false).unwrap();
    world.provider.set("groups", json!({})).unwrap();
    world.refresh(&id).unwrap();
    eventually("the loss of the role", || {
        ensure!(settings(&ada)?.status == 403, "the role of the group is left");
        Ok(())
    });

    // Who is suspended is out, without another login there.
    let suspended = json!({"id": "1001", "name": "Ada Lovelace", "suspended": true});
    world.provider.change("ada", Some(suspended)).unwrap();
    world.refresh(&id).unwrap();
    eventually("the end of the logins", || {
        ensure!(ada.get("/v3/principals")?.status == 401, "the login holds");
        Ok(())
    });
}
