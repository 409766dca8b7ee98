//! What the rules of a built-in role say.

use anyhow::{Context, Result};
use e2e::Client;
use serde_json::Value;

use super::resources::{RESOURCES, Resource, VERBS, Verb};
use super::{PLACES, Place, Rights};

/// What all projects of a cluster share, of which a role in a project gives no more than to read.
const SHARED: [(&str, &str); 4] = [
    ("", "persistentvolumes"),
    ("storage.k8s.io", "storageclasses"),
    ("apiregistration.k8s.io", "apiservices"),
    ("catalog.cattle.io", "clusterrepos"),
];
const READ: [Verb; 3] = [Verb::Get, Verb::List, Verb::Watch];

pub struct Role {
    pub name: String,
    pub context: String,
    /// Its own and all that it inherits.
    rules: Vec<Value>,
}

/// The role templates that come with the server, in the order of their names.
///
/// # Errors
/// A request fails.
pub fn built_in(admin: &Client, cluster: &str) -> Result<Vec<Role>> {
    let templates = admin.get("/v3/roleTemplates?limit=-1")?.success()?;
    let templates = templates["data"].as_array().context("no data")?.clone();
    let mut roles = Vec::new();
    for template in templates.iter().filter(|template| template["builtin"] == true) {
        let mut rules = Vec::new();
        collect(admin, cluster, &templates, template, &mut rules)?;
        let text = |field: &str| template[field].as_str().unwrap_or_default().to_owned();
        roles.push(Role { name: text("id"), context: text("context"), rules });
    }
    roles.sort_by(|a, b| (&a.context, &a.name).cmp(&(&b.context, &b.name)));
    Ok(roles)
}

fn collect(
    admin: &Client,
    cluster: &str,
    templates: &[Value],
    template: &Value,
    into: &mut Vec<Value>,
) -> Result<()> {
    if template["external"] == true {
        let name = template["id"].as_str().context("no id")?;
        let path = format!(
            "/k8s/clusters/{cluster}/apis/rbac.authorization.k8s.io/v1/clusterroles/{name}"
        );
        let role = admin.get(&path)?;
        // A role that the cluster does not have gives nothing.
        if role.status != 404 {
            into.extend(role.success()?["rules"].as_array().cloned().unwrap_or_default());
        }
    }
    into.extend(template["rules"].as_array().cloned().unwrap_or_default());
    for inherited in template["roleTemplateIds"].as_array().into_iter().flatten() {
        let found = templates.iter().find(|template| template["id"] == *inherited);
        collect(admin, cluster, templates, found.context("an inherited role")?, into)?;
    }
    Ok(())
}

fn lists(rule: &Value, field: &str, text: &str) -> bool {
    let mut entries = rule[field].as_array().into_iter().flatten();
    entries.any(|entry| entry == "*" || entry == text)
}

impl Role {
    pub fn is_of_projects(&self) -> bool {
        self.context == "project"
    }

    fn has(&self, resource: &Resource, verb: Verb) -> bool {
        self.rules.iter().any(|rule| {
            let is_of_all = rule["resourceNames"].as_array().is_none_or(Vec::is_empty);
            is_of_all
                && lists(rule, "apiGroups", resource.group)
                && lists(rule, "resources", &resource.in_rules())
                && lists(rule, "verbs", verb.name())
        })
    }

    fn allows(&self, place: Place, resource: &Resource, verb: Verb) -> bool {
        let has = self.has(resource, verb);
        match place {
            Place::OtherCluster => false,
            Place::Cluster | Place::OtherProject if !self.is_of_projects() => has,
            Place::Project if !self.is_of_projects() => has,
            // Members see the namespaces of their project; who may create some has them.
            Place::Project if resource.is_namespaces() => {
                verb == Verb::Get || self.has(resource, Verb::Create)
            }
            Place::Project => has,
            Place::OtherProject => false,
            Place::Cluster => {
                let shared = SHARED.contains(&(resource.group, resource.plural));
                shared && READ.contains(&verb) && has
            }
        }
    }

    /// What must be allowed.
    pub fn rights(&self) -> Rights {
        let mut rights = Rights::new();
        for place in PLACES {
            for (number, resource) in RESOURCES.iter().enumerate() {
                let there = resource.verbs(place);
                let mut allowed: Vec<Verb> =
                    VERBS.into_iter().filter(|verb| there.contains(verb)).collect();
                allowed.retain(|verb| self.allows(place, resource, *verb));
                if !allowed.is_empty() {
                    rights.insert((place, number), allowed);
                }
            }
        }
        rights
    }
}
