//! Logging in on the pages of a provider of OpenID Connect, as browsers and terminals do, and what
//! becomes of codes, states and answers that were made for somebody else. In a long run, the first
//! of them is at Keycloak.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

#[path = "open_id_connect/provider.rs"]
mod provider;

use std::process::Command;

use anyhow::{Context, Result, ensure};
use e2e::browser::{self, Page};
use e2e::{Browser, Cli, Client, Interactive, Server, eventually};
use serde_json::{Value, json};
use testbed::identity_provider::{CLIENT_ID, CLIENT_SECRET};

use self::provider::Provider;

/// Of the light provider.
const CONFIG: &str = "/v3/oidcConfigs/oidc";

struct World {
    server: Server,
    provider: Provider,
    admin: Client,
}

impl World {
    /// A server, and a provider that is not enabled yet.
    fn start() -> Self {
        Self::at(Provider::light)
    }

    fn at(provider: impl FnOnce(&str) -> Result<Provider>) -> Self {
        let server = Server::start().unwrap();
        let provider = provider(&format!("{}/verify-auth", server.url())).unwrap();
        let admin = server.admin().unwrap();
        Self { server, provider, admin }
    }

    /// A server where people log in through the provider.
    fn enabled() -> Self {
        let world = Self::start();
        world.enable("carol").unwrap();
        world
    }

    fn config(&self) -> Value {
        json!({
            "issuer": self.provider.issuer(),
            "clientId": CLIENT_ID,
            "clientSecret": CLIENT_SECRET,
            "certificate": self.provider.authority_pem(),
            "rancherUrl": format!("{}/verify-auth", self.server.url()),
        })
    }

    fn browser(&self) -> Browser {
        let servers = [
            (self.server.url(), self.server.ca_pem()),
            (self.provider.url(), self.provider.authority_pem()),
        ];
        Browser::new(&servers).unwrap()
    }

    /// The code of a test with `config`, in which `name` logs in.
    fn test_code(&self, config: &Value, name: &str) -> Result<String> {
        let begun = self.admin.post(&self.action("configureTest"), config)?.success()?;
        let url = begun["redirectUrl"].as_str().context("no address")?;
        let page = self.log_in(&mut self.browser(), url, name)?;
        code_of(&page, "test")
    }

    fn apply(&self, config: &Value, code: &str) -> Result<e2e::HttpResponse> {
        let body = json!({"oidcConfig": config, "code": code, "enabled": true});
        self.admin.post(&self.action("testAndApply"), &body)
    }

    fn action(&self, name: &str) -> String {
        format!("{}?action={name}", self.provider.names().config)
    }

    fn enable(&self, name: &str) -> Result<()> {
        let config = self.config();
        let code = self.test_code(&config, name)?;
        self.apply(&config, &code)?.success().map(drop)
    }

    /// Goes where `url` leads and logs in there as `name`, until the browser is back at the server
    /// and stays there.
    fn log_in(&self, browser: &mut Browser, url: &str, name: &str) -> Result<Page> {
        let back = format!("{}/verify-auth", self.server.url());
        let returned = self.come_back(browser, url, name)?;
        ensure!(returned.starts_with(&back), "the provider sent the browser to {returned}");
        browser.follow(&returned, |next| !next.contains("/verify-auth"))
    }

    /// Logs in at the provider. The address to which it sends the browser back, which is not
    /// opened.
    fn come_back(&self, browser: &mut Browser, url: &str, name: &str) -> Result<String> {
        let back = format!("{}/verify-auth", self.server.url());
        let is_back = |next: &str| next.starts_with(&back);
        let mut page = browser.follow(url, is_back)?;
        for fields in self.provider.forms(name) {
            if !is_back(&page.url) {
                page.url = self.provider.form_url(&page)?;
                page = browser.submit(&page, &fields, is_back)?;
            }
        }
        ensure!(is_back(&page.url), "at {}: {}", page.url, page.response.text());
        Ok(page.url)
    }

    fn start_url(&self, query: &str) -> String {
        format!("{}/v1-login/{}{query}", self.server.url(), self.provider.names().provider)
    }

    /// A client with the login of a browser.
    fn client(&self, browser: &Browser) -> Client {
        let token = browser.cookie("R_SESS").expect("the browser is logged in");
        self.server.anyone().unwrap().bearer(token)
    }
}

fn code_of(page: &Page, used_in: &str) -> Result<String> {
    let (address, fragment) = page.url.split_once('#').context("no code")?;
    ensure!(address.ends_with("/login/code"), "at {}", page.url);
    let values: Vec<(&str, &str)> =
        fragment.split('&').filter_map(|pair| pair.split_once('=')).collect();
    ensure!(values.contains(&("for", used_in)), "at {}", page.url);
    let code = values.iter().find(|(name, _)| *name == "code").context("no code")?.1;
    Ok(code.replace("%7E", "~"))
}

fn groups_of(client: &Client) -> Result<Vec<String>> {
    let principals = client.get("/v3/principals")?.success()?;
    let all = principals["data"].as_array().context("no list")?.clone();
    Ok(all.iter().filter_map(|one| one["id"].as_str()).map(str::to_owned).collect())
}

#[test]
fn a_browser_logs_in_at_the_provider_and_is_who_the_provider_says() {
    let mut world = World::at(Provider::of_this_run);
    if let Some(refused) = world.provider.without_offline_tokens() {
        let config = world.config();
        let code = world.test_code(&config, refused).unwrap();
        let answer = world.apply(&config, &code).unwrap().json();
        assert_eq!(answer["fieldName"], "scope", "{answer}");
    }
    world.enable("carol").unwrap();
    let provider = world.provider.names().provider;
    let (dev, ops) = (world.provider.group("dev"), world.provider.group("ops"));
    let user = world.provider.user("ada");
    let public = world.server.anyone().unwrap().get("/v3-public/authProviders").unwrap().json();
    let mut listed = public["data"].as_array().unwrap().iter();
    let listed = listed.find(|one| one["id"] == provider).unwrap();
    assert_eq!(listed["redirectUrl"], world.start_url(""), "{listed}");
    assert!(!public.to_string().contains("canary"), "{public}");

    let mut browser = world.browser();
    let page = world.log_in(&mut browser, &world.start_url("?to=%2Fclusters"), "ada").unwrap();
    assert!(page.url.ends_with("/clusters"), "{}", page.url);
    let ada = world.client(&browser);
    let me = ada.get("/v3/users?me=true").unwrap().success().unwrap()["data"][0].clone();
    assert_eq!(me["name"], "Ada Lovelace", "{me}");
    assert_eq!(me["principalIds"][0], user, "{me}");
    let groups = groups_of(&ada).unwrap();
    assert_eq!(groups, [&*dev, &*ops, &*user]);
    assert!(browser.cookie("__Host-drover-login").is_none(), "the login's secret stays");

    // A group's role holds for its members at once.
    let settings = |client: &Client| client.put("/v3/settings/ui-pl", &json!({"value": "x"}));
    assert_eq!(settings(&ada).unwrap().status, 403);
    let grant = json!({"globalRoleId": "settings-manage", "groupPrincipalId": ops});
    world.admin.post("/v3/globalRoleBindings", &grant).unwrap().success().unwrap();
    eventually("the role of the group", || settings(&ada)?.success());

    // The second login is the same user.
    let mut other = world.browser();
    world.log_in(&mut other, &world.start_url(""), "ada").unwrap();
    let again = world.client(&other).get("/v3/users?me=true").unwrap().json()["data"][0].clone();
    assert_eq!(again["id"], me["id"]);

    // Who leaves a group at the provider loses what the group may do.
    let id = me["id"].as_str().unwrap();
    let refresh = || {
        let path = format!("/v3/users/{id}?action=refreshauthprovideraccess");
        world.admin.post(&path, &json!({})).unwrap().success().unwrap();
    };
    refresh();
    assert_eq!(groups_of(&ada).unwrap(), groups);
    world.provider.take_ada_out_of_ops().unwrap();
    refresh();
    eventually("the groups that are left", || {
        let groups = groups_of(&ada)?;
        ensure!(groups == [&*dev, &*user], "{groups:?}");
        ensure!(settings(&ada)?.status == 403, "the role of the group is left");
        Ok(())
    });
    // Who is deleted there is out here.
    world.provider.delete_ada().unwrap();
    refresh();
    eventually("the end of the logins", || {
        ensure!(ada.get("/v3/principals")?.status == 401, "the login holds");
        Ok(())
    });
}

#[test]
fn what_was_made_for_another_login_is_refused() {
    let world = World::enabled();
    let is_refused = |browser: &mut Browser, url: &str, why: &str| {
        let page = browser.open(url).unwrap();
        let to = page.redirect().unwrap_or_default().to_owned();
        assert!(to.contains(&format!("failed={why}")), "{url}: {to}");
        assert!(browser.cookie("R_SESS").is_none(), "{url} logged in");
    };
    let parameter = |url: &str, name| browser::parameter(url, name).unwrap().to_owned();
    let back = format!("{}/verify-auth", world.server.url());

    // Mallory's answer, opened in the browser of a victim: with no login, and with one of its own.
    let mut mallory = world.browser();
    let answer = world.come_back(&mut mallory, &world.start_url(""), "bob").unwrap();
    is_refused(&mut world.browser(), &answer, "expired");
    let mut victim = world.browser();
    let own = world.come_back(&mut victim, &world.start_url(""), "ada").unwrap();
    let stolen =
        format!("{back}?code={}&state={}", parameter(&answer, "code"), parameter(&own, "state"));
    is_refused(&mut victim, &answer, "expired");
    let mut victim = world.browser();
    let own = world.come_back(&mut victim, &world.start_url(""), "ada").unwrap();
    let mixed = stolen.replace(&parameter(&stolen, "state"), &parameter(&own, "state"));
    is_refused(&mut victim, &mixed, "refused");

    // The code of a provider that says to be another one.
    let mut victim = world.browser();
    let own = world.come_back(&mut victim, &world.start_url(""), "ada").unwrap();
    let foreign = format!("{}&iss=https%3A%2F%2Fevil.example", own.split("&iss=").next().unwrap());
    is_refused(&mut victim, &foreign, "refused");

    // An answer is good once.
    let mut ada = world.browser();
    let answer = world.come_back(&mut ada, &world.start_url(""), "ada").unwrap();
    let page = ada.open(&answer).unwrap();
    assert_eq!(page.redirect(), Some("/"));
    let again = ada.open(&answer).unwrap();
    assert!(again.redirect().unwrap().contains("failed=expired"), "{again:?}");

    // Nobody is sent to another host, and what the provider refuses is said.
    let mut ada = world.browser();
    let evil = world.start_url("?to=%2F%2Fevil.example");
    let answer = world.come_back(&mut ada, &evil, "ada").unwrap();
    assert_eq!(ada.open(&answer).unwrap().redirect(), Some("/"));
    let mut ada = world.browser();
    let own = world.come_back(&mut ada, &world.start_url("?to=%2Fclusters"), "ada").unwrap();
    let denied = format!("{back}?error=access_denied&state={}", parameter(&own, "state"));
    is_refused(&mut ada, &denied, "denied&to=%2Fclusters");
    for nonsense in ["", "?state=", "?code=x", "?code=x&state=l-x", "?state=%00&code=%FF"] {
        is_refused(&mut world.browser(), &format!("{back}{nonsense}"), "expired");
    }
    let posted = world.server.anyone().unwrap().post("/verify-auth", &json!({})).unwrap();
    assert_eq!(posted.status, 405);
}

#[test]
fn a_configuration_is_enabled_by_a_login_only() {
    let world = World::start();
    let config = world.config();
    // Nobody logs in before that.
    let page = world.browser().open(&world.start_url("")).unwrap();
    assert!(page.redirect().unwrap().contains("failed=unreachable"), "{page:?}");
    for (field, value, named) in [
        ("issuer", json!("https://127.0.0.1:1"), "issuer"),
        ("issuer", json!(""), "issuer"),
        ("certificate", json!(world.server.ca_pem()), "issuer"),
        ("rancherUrl", json!("https://127.0.0.1/other"), "rancherUrl"),
        ("clientId", json!(""), "clientId"),
    ] {
        let mut wrong = config.clone();
        wrong[field] = value;
        let refused = world.admin.post(&format!("{CONFIG}?action=configureTest"), &wrong).unwrap();
        let body = refused.json();
        assert_eq!((refused.status.as_u16(), &body["fieldName"]), (422, &json!(named)), "{body}");
    }
    let mut wrong = config.clone();
    wrong["clientSecret"] = "wrong".into();
    let code = world.test_code(&wrong, "carol").unwrap();
    let refused = world.apply(&wrong, &code).unwrap().json();
    assert_eq!(refused["fieldName"], "clientSecret", "{refused}");

    // A code is good for the test that it was made for, and once.
    let code = world.test_code(&config, "bob").unwrap();
    let _own = world.admin.post(&format!("{CONFIG}?action=configureTest"), &config).unwrap();
    let refused = world.apply(&config, &code).unwrap().json();
    assert_eq!((&refused["fieldName"], &refused["status"]), (&json!("code"), &json!(422)));
    let refused = world.apply(&config, &code).unwrap().json();
    assert!(refused["message"].as_str().unwrap().contains("configureTest"), "{refused}");

    world.enable("carol").unwrap();
    let stored = world.admin.get(CONFIG).unwrap().success().unwrap();
    assert_eq!(stored["enabled"], true, "{stored}");
    assert!(!stored.to_string().contains(CLIENT_SECRET), "{stored}");
    let me = world.admin.get("/v3/users?me=true").unwrap().json();
    assert!(me.to_string().contains("oidc_user://carol"), "{me}");
    // The secret goes to no other issuer.
    let mut moved = stored.clone();
    moved["issuer"] = "https://evil.example".into();
    let refused = world.admin.put(CONFIG, &moved).unwrap();
    assert_eq!(
        (refused.status.as_u16(), &refused.json()["fieldName"]),
        (422, &json!("clientSecret"))
    );

    // Its logins end with it.
    let mut browser = world.browser();
    world.log_in(&mut browser, &world.start_url(""), "ada").unwrap();
    let ada = world.client(&browser);
    ada.get("/v3/principals").unwrap().success().unwrap();
    world.admin.post(&format!("{CONFIG}?action=disable"), &json!({})).unwrap().success().unwrap();
    eventually("the end of its logins", || {
        ensure!(ada.get("/v3/principals")?.status == 401, "the login holds");
        Ok(())
    });
}

/// A program that waits for a login with a browser, and the address that it shows.
fn waiting(command: &mut Command) -> (Interactive, String) {
    let program = Interactive::start(command).unwrap();
    let shown = |said: &str| {
        let line = said.lines().find(|line| line.contains("open this page"))?;
        said.contains(&format!("{line}\n")).then(|| line.split_once(": ").unwrap().1.to_owned())
    };
    let url = program.await_said(shown).unwrap();
    (program, url)
}

#[test]
fn a_terminal_logs_in_with_a_browser() {
    let world = World::start();
    let admin = Cli::admin(&world.server).unwrap();
    let file = admin.home().join("oidc.json");
    std::fs::write(&file, world.config().to_string()).unwrap();
    let file = file.to_str().unwrap();
    let mut enable =
        admin.command(&["auth-provider", "enable", "oidc", "-f", file, "--no-browser"]).unwrap();
    let (mut program, url) = waiting(&mut enable);
    let page = world.log_in(&mut world.browser(), &url, "carol").unwrap();
    program.write_input(&format!("{}\n", code_of(&page, "test").unwrap())).unwrap();
    eventually("the end of the command", || {
        ensure!(program.exit_status()?.success(), "{}", program.output());
        Ok(())
    });

    let ca = world.server.ca_file();
    let arguments = [
        "login",
        world.server.url(),
        "--provider",
        "oidc",
        "--ca-file",
        ca.to_str().unwrap(),
        "--no-browser",
    ];
    let whoami = |cli: &Cli| cli.succeed(&["whoami"]).unwrap();
    // The code is pasted.
    let cli = Cli::new().unwrap();
    let (mut program, url) = waiting(&mut cli.command(&arguments).unwrap());
    let page = world.log_in(&mut world.browser(), &url, "ada").unwrap();
    let code = code_of(&page, "terminal").unwrap();
    // Nobody else can use it.
    let login = "/v3-public/oidcProviders/oidc?action=login";
    let stolen = json!({"code": code, "codeVerifier": "guessed", "responseType": "json"});
    let (mut other, other_url) = waiting(&mut Cli::new().unwrap().command(&arguments).unwrap());
    let page = world.log_in(&mut world.browser(), &other_url, "bob").unwrap();
    let bobs = code_of(&page, "terminal").unwrap();
    let refused = world.server.anyone().unwrap().post(login, &stolen).unwrap();
    assert_eq!(refused.status, 401, "{refused:?}");
    program.write_input(&format!("{bobs}\n")).unwrap();
    eventually("the refusal", || {
        ensure!(!program.exit_status()?.success(), "a foreign code logged in");
        ensure!(program.output().contains("begin again"), "{}", program.output());
        Ok(())
    });
    other.close_input();

    // The browser brings it.
    let (mut program, url) = waiting(&mut cli.command(&arguments).unwrap());
    let page = world.log_in(&mut world.browser(), &url, "ada").unwrap();
    let code = code_of(&page, "terminal").unwrap();
    let port = page.url.rsplit_once("port=").unwrap().1.to_owned();
    let brought = Client::plain(&format!("127.0.0.1:{port}")).unwrap();
    let answered = brought.get(&format!("/?code={code}")).unwrap();
    assert!(answered.text().contains("You are logged in"), "{answered:?}");
    eventually("the login", || {
        ensure!(program.exit_status()?.success(), "{}", program.output());
        Ok(())
    });
    let shown = whoami(&cli);
    assert!(shown.contains("oidc"), "{shown}");
}
