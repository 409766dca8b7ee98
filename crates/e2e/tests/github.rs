//! Logging in through GitHub, against a stand-in written from its public description: the pages,
//! the exchange of codes, organisations and teams over several pages, searches, and a suspended
//! user.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use anyhow::ensure;
use e2e::provider_world::{Names, ProviderWorld, principals};
use e2e::{Client, browser, eventually};
use serde_json::{Value, json};
use testbed::IdentityProvider;
use testbed::identity_provider::{CLIENT_ID, CLIENT_SECRET};

const GROUPS: [&str; 4] =
    ["github_org://1", "github_org://2", "github_org://3", "github_team://77"];

fn world() -> ProviderWorld {
    let names =
        Names { provider: "github", config: "/v3/githubConfigs/github", field: "githubConfig" };
    ProviderWorld::start(names, IdentityProvider::github).unwrap()
}

fn config(world: &ProviderWorld) -> Value {
    let hostname = world.provider.url().trim_start_matches("https://");
    json!({
        "clientId": CLIENT_ID, "clientSecret": CLIENT_SECRET, "hostname": hostname,
        "tls": true, "accessMode": "unrestricted",
    })
}

#[test]
fn people_log_in_with_organisations_and_teams_until_github_says_otherwise() {
    let mut world = world();
    let mut wrong = config(&world);
    wrong["clientSecret"] = "wrong".into();
    let refused = world.apply(&wrong, "carol").unwrap().json();
    assert_eq!(refused["fieldName"], "clientSecret", "{refused}");
    world.apply(&config(&world), "carol").unwrap().success().unwrap();
    let stored = world.stored().unwrap();
    assert!(stored["enabled"] == true && !stored.to_string().contains(CLIENT_SECRET), "{stored}");

    let ada = world.log_in("ada").unwrap();
    let me = ada.get("/v3/users?me=true").unwrap().success().unwrap()["data"][0].clone();
    assert_eq!(
        (&me["name"], &me["principalIds"][0]),
        (&json!("Ada Lovelace"), &json!("github_user://1001"))
    );
    let own = principals(&ada.get("/v3/principals").unwrap()).unwrap();
    assert_eq!(own, [GROUPS.as_slice(), &["github_user://1001"]].concat());

    // Others are found by their login name, and called as GitHub calls them.
    let search = |name, kind| world.search(&ada, name, kind).unwrap();
    assert_eq!(search("bo", "user"), ["github_user://1002"]);
    assert_eq!(search("gam", "group"), ["github_org://3"]);
    let team = ada.get("/v3/principals/github_team%3A%2F%2F77").unwrap().success().unwrap();
    assert_eq!(team["name"], "acme/Ops", "{team}");

    // A role of a team, until the user leaves it.
    let settings = |client: &Client| client.put("/v3/settings/ui-pl", &json!({"value": "x"}));
    let grant = json!({"globalRoleId": "settings-manage", "groupPrincipalId": "github_team://77"});
    world.admin.post("/v3/globalRoleBindings", &grant).unwrap().success().unwrap();
    eventually("the role of the team", || settings(&ada)?.success());
    let id = me["id"].as_str().unwrap().to_owned();
    // What GitHub does not say changes nothing.
    world.provider.limit(true).unwrap();
    world.refresh(&id).unwrap();
    settings(&ada).unwrap().success().unwrap();
    world.provider.limit(false).unwrap();
    let without = json!({"id": 1001, "name": "Ada Lovelace", "orgs": [{"id": 1, "login": "acme"}]});
    world.provider.change("ada", Some(without.clone())).unwrap();
    world.refresh(&id).unwrap();
    eventually("the loss of the role", || {
        ensure!(settings(&ada)?.status == 403, "the role of the team is left");
        Ok(())
    });

    // Who is suspended is out.
    let mut suspended = without;
    suspended["suspended"] = true.into();
    world.provider.change("ada", Some(suspended)).unwrap();
    world.refresh(&id).unwrap();
    eventually("the end of the logins", || {
        ensure!(ada.get("/v3/principals")?.status == 401, "the login holds");
        Ok(())
    });
    let refused = world.log_in("ada").map(drop).unwrap_err().to_string();
    assert!(refused.contains("failed=disabled"), "{refused}");
}

#[test]
fn a_code_of_another_login_is_refused() {
    let world = world();
    world.apply(&config(&world), "carol").unwrap().success().unwrap();
    let start = world.start_url();
    let parameter = |url: &str, name| browser::parameter(url, name).unwrap().to_owned();
    let stolen = world.come_back(&mut world.browser().unwrap(), &start, "bob").unwrap();
    let mut victim = world.browser().unwrap();
    let own = world.come_back(&mut victim, &start, "ada").unwrap();
    let mixed = own.replace(&parameter(&own, "code"), &parameter(&stolen, "code"));
    let page = victim.open(&mixed).unwrap();
    assert!(page.redirect().unwrap().contains("failed=refused"), "{page:?}");
    assert!(victim.cookie("R_SESS").is_none());
}
