//! Users without administrator rights, and their roles.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::{Client, Server};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const GROUP: &str = "rbac.authorization.k8s.io";

/// A user who is logged in.
pub struct Person {
    pub id: String,
    pub client: Client,
}

/// A new user of this login name, without any right.
pub fn new(server: &Server, admin: &Client, name: &str) -> Result<Person> {
    let password = format!("password-of-{name}");
    let user = json!({"username": name, "password": password, "name": name});
    let user = admin.post("/v3/users", &user)?.success()?;
    let id = user["id"].as_str().context("a user without an id")?.to_owned();
    Ok(Person { id, client: server.anyone()?.bearer(&server.login(name, &password)?) })
}

/// A cluster role of this name with one rule.
pub fn role(admin: &Client, name: &str, rule: &Value) -> Result<()> {
    let role = json!({"metadata": {"name": name}, "rules": [rule]});
    admin.post(&format!("{RBAC}/clusterroles"), &role)?.success()?;
    Ok(())
}

/// Grants a cluster role to users, with one binding of its name.
pub fn bind<'a>(
    admin: &Client,
    role: &str,
    people: impl IntoIterator<Item = &'a Person>,
) -> Result<()> {
    let subject = |one: &Person| json!({"apiGroup": GROUP, "kind": "User", "name": one.id});
    let subjects: Vec<Value> = people.into_iter().map(subject).collect();
    let binding = json!({
        "metadata": {"name": role}, "subjects": subjects,
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": role},
    });
    admin.post(&format!("{RBAC}/clusterrolebindings"), &binding)?.success()?;
    Ok(())
}

/// Revokes it again.
pub fn unbind(admin: &Client, role: &str) -> Result<()> {
    admin.delete(&format!("{RBAC}/clusterrolebindings/{role}"))?.success()?;
    Ok(())
}
