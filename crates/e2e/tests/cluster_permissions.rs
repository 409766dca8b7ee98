//! What each built-in role lets its holder do inside of a cluster, on two clusters of real
//! Kubernetes components: every verb on every resource is a request through Drover. The result is
//! the committed page, and equal to what the rules of the roles say.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

#[path = "cluster_permissions/page.rs"]
mod page;
#[path = "cluster_permissions/resources.rs"]
mod resources;
#[path = "cluster_permissions/rules.rs"]
mod rules;

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use e2e::http::runtime;
use e2e::journey::{self, ImportTarget, Imported};
use e2e::{Cli, Client, Guarantee, Server, eventually, no_second_try};
use serde_json::json;
use testbed::RealCluster;

use self::resources::{RESOURCES, Resource, Verb};
use self::rules::Role;

/// Where a request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// What belongs to no namespace, and lists over all of them.
    Cluster,
    /// A namespace of the project.
    Project,
    /// A namespace of another project.
    OtherProject,
    /// The cluster in which nobody has a role.
    OtherCluster,
}

const PLACES: [Place; 4] =
    [Place::Cluster, Place::Project, Place::OtherProject, Place::OtherCluster];

/// What is allowed, by place and resource.
type Rights = BTreeMap<(Place, usize), Vec<Verb>>;

const OWN_NAMESPACE: &str = "web";
const OTHER_NAMESPACE: &str = "elsewhere";
/// Roles that are tried at the same time.
const HANDS: usize = 3;

struct World {
    /// With their agents.
    _imported: [Imported; 2],
    server: Server,
    admin: Client,
    /// The cluster in which the roles are granted, and another one.
    clusters: [String; 2],
    /// `<cluster>:<project>`.
    project: String,
    _real: [RealCluster; 2],
}

impl World {
    fn start() -> Self {
        let server = Server::start().unwrap();
        let cli = Cli::admin(&server).unwrap();
        let admin = server.admin().unwrap();
        let import = |name: &str, cluster: &RealCluster| {
            let target = ImportTarget::of(cluster).unwrap();
            journey::import(&server, &cli, name, &target).unwrap()
        };
        let real = [RealCluster::start().unwrap(), RealCluster::start().unwrap()];
        let imported = [import("north", &real[0]), import("south", &real[1])];
        let clusters = imported.each_ref().map(|imported| imported.id.clone());
        let project = |name: &str, cluster: &str| {
            let body = json!({"name": name, "clusterId": cluster});
            let made = admin.post("/v3/projects", &body).unwrap().success().unwrap();
            made["id"].as_str().unwrap().to_owned()
        };
        let own = project("shop", &clusters[0]);
        let other = project("other", &clusters[0]);
        let project = own.clone();
        let world = Self { _imported: imported, server, admin, clusters, project, _real: real };
        world.create_namespace(OWN_NAMESPACE, &own);
        world.create_namespace(OTHER_NAMESPACE, &other);
        world
    }

    fn create_namespace(&self, name: &str, project: &str) {
        let path = format!("/k8s/clusters/{}/api/v1/namespaces", self.clusters[0]);
        let body = resources::namespace(name, Some(project));
        self.admin.post(&path, &body).unwrap().success().unwrap();
    }

    /// A user with this role and no other; without a role if it is none.
    fn user(&self, name: &str, role: Option<&Role>) -> Client {
        let password = format!("password-of-{name}");
        let body = json!({"username": name, "password": password, "mustChangePassword": false});
        let made = self.admin.post("/v3/users", &body).unwrap().success().unwrap();
        if let Some(role) = role {
            let mut binding = json!({"roleTemplateId": role.name, "userId": made["id"]});
            let path = if role.is_of_projects() {
                binding["projectId"] = self.project.as_str().into();
                "/v3/projectRoleTemplateBindings"
            } else {
                binding["clusterId"] = self.clusters[0].as_str().into();
                "/v3/clusterRoleTemplateBindings"
            };
            self.admin.post(path, &binding).unwrap().success().unwrap();
        }
        let token = self.server.login(name, &password).unwrap();
        self.server.anyone().unwrap().bearer(&token)
    }

    /// Whether the request is allowed: the cluster answers something else than 403.
    async fn allows(
        &self,
        user: &mut e2e::http::Connection,
        place: Place,
        resource: &Resource,
        verb: Verb,
    ) -> Result<bool> {
        let cluster = &self.clusters[usize::from(place == Place::OtherCluster)];
        let namespace = match place {
            Place::Cluster => None,
            Place::Project => Some(OWN_NAMESPACE),
            Place::OtherProject => Some(OTHER_NAMESPACE),
            Place::OtherCluster => Some("default"),
        };
        let request = resource.request(verb, cluster, namespace, &self.project)?;
        let what = format!("{} {}", request.method(), request.uri());
        let response = user.send(request).await.with_context(|| what.clone())?;
        let status = response.status.as_u16();
        // A request that is allowed has no valid body, and is for an object that does not exist.
        let known = [200, 201, 400, 403, 404, 405, 409, 415, 422];
        ensure!(known.contains(&status), "{what}: {status} {}", response.text());
        Ok(status != 403)
    }

    /// Tries everything.
    fn rights(&self, user: &Client) -> Result<Rights> {
        runtime().block_on(async {
            let mut connection = user.connect().await?;
            let mut rights = Rights::new();
            for (place, (number, resource)) in PLACES
                .into_iter()
                .flat_map(|place| RESOURCES.iter().enumerate().map(move |it| (place, it)))
            {
                for verb in resource.verbs(place) {
                    if self.allows(&mut connection, place, resource, verb).await? {
                        rights.entry((place, number)).or_default().push(verb);
                    }
                }
            }
            Ok(rights)
        })
    }

    /// Waits until one of the rights holds in each place in which there must be some.
    fn settle(&self, name: &str, user: &Client, expected: &Rights) {
        for ((place, number), verbs) in expected {
            eventually(&format!("the rights of {name}"), || {
                runtime().block_on(async {
                    let mut connection = user.connect().await?;
                    let resource = &RESOURCES[*number];
                    let allowed = self.allows(&mut connection, *place, resource, verbs[0]).await?;
                    ensure!(allowed, "{:?} {} at {place:?}", verbs[0], resource.name());
                    Ok(())
                })
            });
        }
    }
}

fn differences(name: &str, expected: &Rights, found: &Rights) -> Vec<String> {
    let mut keys: Vec<_> = expected.keys().chain(found.keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    let differing = keys.into_iter().filter(|key| expected.get(key) != found.get(key));
    let line = |key: &(Place, usize)| {
        let (rules, requests) = (expected.get(key), found.get(key));
        let what = RESOURCES[key.1].name();
        format!("{name}, {:?}, {what}: the rules say {rules:?}, the cluster {requests:?}", key.0)
    };
    differing.map(line).collect()
}

#[test]
fn each_built_in_role_gives_what_its_rules_say_and_the_committed_page_shows_it() {
    no_second_try(Guarantee::Rights);
    let world = World::start();
    let roles = rules::built_in(&world.admin, &world.clusters[0]).unwrap();
    assert!(roles.len() > 30, "{} roles", roles.len());
    let next = std::sync::atomic::AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some(role) = roles.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
            let user = world.user(&format!("holder-of-{}", role.name), Some(role));
            let expected = role.rights();
            world.settle(&role.name, &user, &expected);
            let found = world.rights(&user).unwrap();
            done.push((role.name.clone(), expected, found));
        }
        done
    };
    let mut tried: Vec<(String, Rights, Rights)> = std::thread::scope(|scope| {
        let hands: Vec<_> = (0..HANDS).map(|_| scope.spawn(work)).collect();
        hands.into_iter().flat_map(|hand| hand.join().unwrap()).collect()
    });
    tried.sort_by_key(|(name, ..)| roles.iter().position(|role| role.name == *name));

    let nobody = world.rights(&world.user("nobody", None)).unwrap();
    assert_eq!(nobody, Rights::new(), "without a role");
    let wrong: Vec<String> = tried
        .iter()
        .flat_map(|(name, expected, found)| differences(name, expected, found))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let rows = tried.iter().map(|(name, _, found)| (name.as_str(), found));
    page::compare(&page::table(&roles, rows));
}
