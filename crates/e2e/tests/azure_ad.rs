//! Logging in through Microsoft Entra ID, against a stand-in written from the public description of
//! its login and of Graph: more groups than a token has, nested ones, pages, searches, and a
//! disabled user.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use anyhow::ensure;
use e2e::provider_world::{Names, ProviderWorld, principals};
use e2e::{Client, browser, eventually};
use serde_json::{Value, json};
use testbed::IdentityProvider;
use testbed::identity_provider::{CLIENT_ID, CLIENT_SECRET};

const TENANT: &str = "11111111-2222-3333-4444-555555555555";
const ADA: &str = "ada@example.org";
const CAROL: &str = "carol@example.org";

fn world() -> ProviderWorld {
    let names =
        Names { provider: "azuread", config: "/v3/azureADConfigs/azuread", field: "config" };
    // As applications are registered for Rancher.
    ProviderWorld::start(names, |back| IdentityProvider::microsoft(&format!("{back}-azure")))
        .unwrap()
}

fn config(world: &ProviderWorld) -> Value {
    let url = world.provider.url();
    json!({
        "applicationId": CLIENT_ID, "applicationSecret": CLIENT_SECRET, "tenantId": TENANT,
        "endpoint": url, "graphEndpoint": url, "accessMode": "unrestricted",
        "authEndpoint": format!("{url}/{TENANT}/oauth2/v2.0/authorize"),
        "tokenEndpoint": format!("{url}/{TENANT}/oauth2/v2.0/token"),
        "rancherUrl": format!("{}/verify-auth-azure", world.server.url()),
    })
}

#[test]
fn each_way_to_misconfigure_it_names_the_field() {
    let mut world = world();
    let refused = |world: &ProviderWorld, field: &str, value: &str| {
        let mut config = config(world);
        config[field] = value.into();
        let refused = world.apply(&config, CAROL).unwrap();
        assert!(!refused.status.is_success());
        refused.json()
    };
    let answer = refused(&world, "applicationSecret", "wrong");
    assert_eq!(answer["fieldName"], "applicationSecret", "{answer}");
    let nowhere = format!("{}/nowhere/oauth2/v2.0/token", world.provider.url());
    let answer = refused(&world, "tokenEndpoint", &nowhere);
    assert_eq!(answer["fieldName"], "tenantId", "{answer}");
    world.provider.set("isDenied", true.into()).unwrap();
    let answer = world.apply(&config(&world), CAROL).unwrap().json();
    assert_eq!(answer["fieldName"], "applicationId", "{answer}");
    assert!(answer["message"].as_str().unwrap().contains("Directory.Read.All"), "{answer}");
    let mut retired = config(&world);
    retired["graphEndpoint"] = "https://graph.windows.net/".into();
    let path = "/v3/azureADConfigs/azuread?action=configureTest";
    let answer = world.admin.post(path, &retired).unwrap().json();
    assert_eq!(answer["fieldName"], "graphEndpoint", "{answer}");
}

#[test]
fn people_log_in_with_all_groups_until_the_tenant_says_otherwise() {
    let mut world = world();
    world.apply(&config(&world), CAROL).unwrap().success().unwrap();
    let stored = world.stored().unwrap();
    assert!(stored["enabled"] == true && !stored.to_string().contains(CLIENT_SECRET), "{stored}");

    let ada = world.log_in(ADA).unwrap();
    let me = ada.get("/v3/users?me=true").unwrap().success().unwrap()["data"][0].clone();
    let expected = (&json!("Ada Lovelace"), &json!("azuread_user://ada-1"));
    assert_eq!((&me["name"], &me["principalIds"][0]), expected);
    // More groups than a token has, and one that she is in by another.
    let own = principals(&ada.get("/v3/principals").unwrap()).unwrap();
    assert_eq!(own.len(), 252);
    assert!(own.iter().any(|id| id == "azuread_group://all-group"));

    // What is searched for is text, whatever it has in it.
    let search = |name, kind| world.search(&ada, name, kind).unwrap();
    assert_eq!(search("bob@", "user"), ["azuread_user://bob-2"]);
    assert_eq!(search("O'Hara", "group"), ["azuread_group://all-group"]);
    assert!(search("x') or startswith(id,'", "").is_empty());
    // A token of the server that was ended before its time.
    world.provider.set("epoch", 1.into()).unwrap();
    assert_eq!(world.search(&ada, "bob@", "user").unwrap(), ["azuread_user://bob-2"]);
    world.provider.set("epoch", 2.into()).unwrap();
    world.refresh(me["id"].as_str().unwrap()).unwrap();
    world.log_in(ADA).unwrap();
    // One that the provider does not take at all says nothing about users.
    world.provider.set("epoch", "none".into()).unwrap();
    world.refresh(me["id"].as_str().unwrap()).unwrap();
    ada.get("/v3/principals").unwrap().success().unwrap();
    world.provider.set("epoch", 3.into()).unwrap();
    let group = ada.get("/v3/principals/azuread_group%3A%2F%2Fops-group").unwrap();
    assert_eq!(group.success().unwrap()["name"], "Ops");

    // A role of a group, until the user leaves it.
    let settings = |client: &Client| client.put("/v3/settings/ui-pl", &json!({"value": "x"}));
    let grant =
        json!({"globalRoleId": "settings-manage", "groupPrincipalId": "azuread_group://all-group"});
    world.admin.post("/v3/globalRoleBindings", &grant).unwrap().success().unwrap();
    eventually("the role of the group", || settings(&ada)?.success());
    let id = me["id"].as_str().unwrap().to_owned();
    // What Graph does not say changes nothing.
    world.provider.limit(true).unwrap();
    world.refresh(&id).unwrap();
    settings(&ada).unwrap().success().unwrap();
    world.provider.limit(false).unwrap();
    let mut person = json!({"id": "ada-1", "displayName": "Ada", "groups": ["group-001"]});
    world.provider.change(ADA, Some(person.clone())).unwrap();
    world.refresh(&id).unwrap();
    eventually("the loss of the role", || {
        ensure!(settings(&ada)?.status == 403, "the role of the group is left");
        Ok(())
    });

    // Who is disabled is out, without another login there.
    person["accountEnabled"] = false.into();
    world.provider.change(ADA, Some(person)).unwrap();
    world.refresh(&id).unwrap();
    eventually("the end of the logins", || {
        ensure!(ada.get("/v3/principals")?.status == 401, "the login holds");
        Ok(())
    });
}

#[test]
fn a_code_of_another_login_is_refused() {
    let world = world();
    world.apply(&config(&world), CAROL).unwrap().success().unwrap();
    let start = world.start_url();
    let parameter = |url: &str, name| browser::parameter(url, name).unwrap().to_owned();
    let stolen = world.come_back(&mut world.browser().unwrap(), &start, "bob@example.org").unwrap();
    let mut victim = world.browser().unwrap();
    let own = world.come_back(&mut victim, &start, ADA).unwrap();
    let mixed = own.replace(&parameter(&own, "code"), &parameter(&stolen, "code"));
    let page = victim.open(&mixed).unwrap();
    assert!(page.redirect().unwrap().contains("failed=refused"), "{page:?}");
    assert!(victim.cookie("R_SESS").is_none());
}
