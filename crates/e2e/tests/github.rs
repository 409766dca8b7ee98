//! Logging in through GitHub, against a stand-in written from its public description: the pages,
//! the exchange of codes, organisations and teams over several pages, searches, and a suspended
//! user.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use anyhow::{Context, Result, ensure};
use e2e::{Browser, Client, HttpResponse, Server, browser, eventually, server};
use serde_json::{Value, json};
use testbed::IdentityProvider;
use testbed::identity_provider::{CLIENT_ID, CLIENT_SECRET};

const CONFIG: &str = "/v3/githubConfigs/github";
const GROUPS: [&str; 4] =
    ["github_org://1", "github_org://2", "github_org://3", "github_team://77"];

struct World {
    server: Server,
    github: IdentityProvider,
    admin: Client,
    /// The authority that the server trusts.
    _trusted: tempfile::TempDir,
}

impl World {
    fn start() -> Self {
        let trusted = tempfile::tempdir().unwrap();
        let file = trusted.path().join("authority.pem");
        let environment = vec![("SSL_CERT_FILE".to_owned(), file.to_str().unwrap().to_owned())];
        let options = server::Options { environment, ..server::Options::default() };
        let server = Server::start_with(options).unwrap();
        let github = IdentityProvider::github(&format!("{}/verify-auth", server.url())).unwrap();
        std::fs::write(&file, github.authority_pem()).unwrap();
        let admin = server.admin().unwrap();
        let url = json!({"value": server.url()});
        admin.put("/v3/settings/server-url", &url).unwrap().success().unwrap();
        Self { server, github, admin, _trusted: trusted }
    }

    fn config(&self) -> Value {
        let hostname = self.github.url().trim_start_matches("https://");
        json!({
            "clientId": CLIENT_ID, "clientSecret": CLIENT_SECRET, "hostname": hostname,
            "tls": true, "accessMode": "unrestricted",
        })
    }

    fn browser(&self) -> Browser {
        let servers = [
            (self.server.url(), self.server.ca_pem()),
            (self.github.url(), self.github.authority_pem()),
        ];
        Browser::new(&servers).unwrap()
    }

    /// Logs in at GitHub. The address to which it sends the browser back, which is not opened.
    fn come_back(&self, browser: &mut Browser, url: &str, name: &str) -> Result<String> {
        let back = format!("{}/verify-auth", self.server.url());
        let page = browser.follow(url, |_| false)?;
        let form = format!("login={name}&password=x");
        let page = browser.submit(&page, &form, |next| next.starts_with(&back))?;
        ensure!(page.url.starts_with(&back), "at {}: {}", page.url, page.response.text());
        Ok(page.url)
    }

    /// The client of who logs in.
    fn log_in(&self, name: &str) -> Result<Client> {
        let mut browser = self.browser();
        let start = format!("{}/v1-login/github", self.server.url());
        let answer = self.come_back(&mut browser, &start, name)?;
        let page = browser.open(&answer)?;
        let token = browser.cookie("R_SESS");
        let token = token.with_context(|| format!("sent to {:?}", page.redirect()))?;
        Ok(self.server.anyone()?.bearer(token))
    }

    fn apply(&self, config: &Value, name: &str) -> Result<HttpResponse> {
        let begun =
            self.admin.post(&format!("{CONFIG}?action=configureTest"), config)?.success()?;
        let url = begun["redirectUrl"].as_str().context("no address")?;
        let answer = self.come_back(&mut self.browser(), url, name)?;
        let code = browser::parameter(&answer, "code")?;
        let body = json!({"githubConfig": config, "code": code, "enabled": true});
        self.admin.post(&format!("{CONFIG}?action=testAndApply"), &body)
    }

    fn refresh(&self, user: &str) {
        let path = format!("/v3/users/{user}?action=refreshauthprovideraccess");
        self.admin.post(&path, &json!({})).unwrap().success().unwrap();
    }
}

fn principals(response: &HttpResponse) -> Result<Vec<String>> {
    let list = response.success()?;
    let all = list["data"].as_array().context("no list")?.clone();
    Ok(all.iter().filter_map(|one| one["id"].as_str()).map(str::to_owned).collect())
}

#[test]
fn people_log_in_with_organisations_and_teams_until_github_says_otherwise() {
    let mut world = World::start();
    let mut wrong = world.config();
    wrong["clientSecret"] = "wrong".into();
    let refused = world.apply(&wrong, "carol").unwrap().json();
    assert_eq!(refused["fieldName"], "clientSecret", "{refused}");
    world.apply(&world.config(), "carol").unwrap().success().unwrap();
    let stored = world.admin.get(CONFIG).unwrap().success().unwrap();
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
    let search = |name: &str, kind: &str| {
        let body = json!({"name": name, "principalType": kind});
        principals(&ada.post("/v3/principals?action=search", &body).unwrap()).unwrap()
    };
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
    world.github.limit(true).unwrap();
    world.refresh(&id);
    settings(&ada).unwrap().success().unwrap();
    world.github.limit(false).unwrap();
    let without = json!({"id": 1001, "name": "Ada Lovelace", "orgs": [{"id": 1, "login": "acme"}]});
    world.github.change("ada", Some(without.clone())).unwrap();
    world.refresh(&id);
    eventually("the loss of the role", || {
        ensure!(settings(&ada)?.status == 403, "the role of the team is left");
        Ok(())
    });

    // Who is suspended is out.
    let mut suspended = without;
    suspended["suspended"] = true.into();
    world.github.change("ada", Some(suspended)).unwrap();
    world.refresh(&id);
    eventually("the end of the logins", || {
        ensure!(ada.get("/v3/principals")?.status == 401, "the login holds");
        Ok(())
    });
    let refused = world.log_in("ada").map(drop).unwrap_err().to_string();
    assert!(refused.contains("failed=disabled"), "{refused}");
}

#[test]
fn a_code_of_another_login_is_refused() {
    let world = World::start();
    world.apply(&world.config(), "carol").unwrap().success().unwrap();
    let start = format!("{}/v1-login/github", world.server.url());
    let parameter = |url: &str, name| browser::parameter(url, name).unwrap().to_owned();
    let stolen = world.come_back(&mut world.browser(), &start, "bob").unwrap();
    let mut victim = world.browser();
    let own = world.come_back(&mut victim, &start, "ada").unwrap();
    let mixed = own.replace(&parameter(&own, "code"), &parameter(&stolen, "code"));
    let page = victim.open(&mixed).unwrap();
    assert!(page.redirect().unwrap().contains("failed=refused"), "{page:?}");
    assert!(victim.cookie("R_SESS").is_none());
}
