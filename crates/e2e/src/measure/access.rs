//! An organisation of 1,000 clusters, 5,000 users and 5,000 projects: what a cluster has of them,
//! how soon a change of membership holds, how long the question takes what a change would do, and a
//! user with very many roles and groups.
//!
//! 50 of the clusters are connected, each to a real agent; all projects are in those.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::people::{self, Person};
use super::{Row, Samples, Target, fleet, settled_memory};
use crate::journey::MANAGEMENT;
use crate::server::ADMIN_PASSWORD;
use crate::wait::LOOK_INTERVAL;
use crate::{Cli, Client, Server, Sim, poll_until};

const CLUSTERS: usize = 1_000;
const CONNECTED: usize = 50;
const USERS: usize = 5_000;
const PROJECTS: usize = 5_000;
/// Users that are added to one project to see what a cluster gets of them.
const MORE_USERS: usize = 1_000;
/// Concurrent requests of the setup.
const HANDS: usize = 16;
/// Changes of a membership, each followed by a request.
const CHANGES: usize = 200;
const QUESTIONS: usize = 5;
const QUESTION_MAX: f64 = 1.0;
/// Of the user with very many roles. The second is more than a request carries.
const DIRECTORY_GROUPS: [usize; 2] = [500, 1_000];
const ROLE: &str = "project-member";
const NAMESPACE: &str = "team";
const SETTLED_TIMEOUT: Duration = Duration::from_secs(120);

/// See the module.
///
/// # Errors
/// The setup fails, or a request that must succeed does not.
pub fn measure() -> Result<Vec<Row>> {
    let organisation = Organisation::new()?;
    let mut rows = vec![organisation.memory()?];
    rows.extend(organisation.objects()?);
    rows.extend(organisation.changes()?);
    rows.push(organisation.question()?);
    rows.extend(organisation.many_roles()?);
    Ok(rows)
}

struct Organisation {
    server: Server,
    admin: Client,
    /// Ids of the connected clusters.
    clusters: Vec<String>,
    /// Ids of the projects, `<cluster>:<project>`.
    projects: Vec<String>,
    took: Duration,
    _sim: Sim,
}

/// Calls `one` with each number below `count`, several at once. The results are in that order.
fn in_parallel<T: Send>(count: usize, one: impl Fn(usize) -> Result<T> + Sync) -> Result<Vec<T>> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(count));
    let work = || -> Result<()> {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return Ok(());
            }
            let made = one(number)?;
            done.lock().expect("no holder of the list panics").push((number, made));
        }
    };
    std::thread::scope(|scope| {
        let hands: Vec<_> = (0..HANDS).map(|_| scope.spawn(work)).collect();
        hands
            .into_iter()
            .try_for_each(|hand| hand.join().map_err(|_| anyhow::anyhow!("a request panicked"))?)
    })?;
    let mut done = done.into_inner().expect("no holder of the list panics");
    done.sort_by_key(|(number, _)| *number);
    Ok(done.into_iter().map(|(_, made)| made).collect())
}

/// Creates an object as soon as its namespace is there.
fn create(client: &Client, path: &str, body: &Value) -> Result<Value> {
    let mut made = Value::Null;
    poll_until(SETTLED_TIMEOUT, LOOK_INTERVAL, || {
        let response = client.post(path, body)?;
        ensure!(response.status != 404, "{}", response.text());
        made = response.success()?;
        Ok(())
    })?;
    Ok(made)
}

/// The name of a project as it is generated, but each another one: of 5,000 generated names two are
/// likely the same.
fn project(number: usize) -> String {
    const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    let letter =
        |place: u32| char::from(LETTERS[number / LETTERS.len().pow(place) % LETTERS.len()]);
    format!("p-{}", (0..5).rev().map(letter).collect::<String>())
}

fn of_kind(kind: &str, mut object: Value) -> Value {
    object["apiVersion"] = "management.cattle.io/v3".into();
    object["kind"] = kind.into();
    object
}

fn name_of(object: &Value) -> Result<String> {
    object["metadata"]["name"].as_str().map(str::to_owned).context("an object without a name")
}

impl Organisation {
    fn new() -> Result<Self> {
        let since = Instant::now();
        let server = Server::start()?;
        let admin = server.anyone()?.bearer(&server.login("admin", ADMIN_PASSWORD)?);
        let number = CONNECTED.to_string();
        let sim = Sim::start(&["--clusters", &number])?;
        fleet::import_all(&Cli::admin(&server)?, "simulated", &sim.kubeconfigs()?)?;
        let clusters = fleet::ids(&server)?;
        ensure!(clusters.len() == CONNECTED, "{} clusters are connected", clusters.len());
        in_parallel(CLUSTERS - CONNECTED, |number| {
            let cluster = json!({"name": format!("elsewhere-{number}")});
            admin.post("/v3/clusters", &cluster)?.success()
        })?;
        in_parallel(USERS, |number| {
            let user = of_kind(
                "User",
                json!({"metadata": {"name": user(number)}, "username": user(number)}),
            );
            admin.post(&format!("{MANAGEMENT}/users"), &user)?.success()
        })?;
        let projects = in_parallel(PROJECTS, |number| {
            let cluster = &clusters[number % CONNECTED];
            let project = of_kind(
                "Project",
                json!({"metadata": {"name": project(number)},
                "spec": {"displayName": format!("project-{number}")}}),
            );
            let path = format!("{MANAGEMENT}/namespaces/{cluster}/projects");
            Ok(format!("{cluster}:{}", name_of(&create(&admin, &path, &project)?)?))
        })?;
        let mut made = Self { server, admin, clusters, projects, took: Duration::ZERO, _sim: sim };
        in_parallel(PROJECTS, |number| made.bind(number, &user(number % USERS)))?;
        in_parallel(CONNECTED, |number| made.create_namespace(number))?;
        made.took = since.elapsed();
        Ok(made)
    }

    /// Gives a user the role in a project; returns the path of the binding.
    fn bind(&self, project: usize, user: &str) -> Result<String> {
        let id = &self.projects[project];
        let (_, name) = id.split_once(':').context("an id without a colon")?;
        let path = format!("{MANAGEMENT}/namespaces/{name}/projectroletemplatebindings");
        let binding = of_kind(
            "ProjectRoleTemplateBinding",
            json!({"metadata": {"generateName": "prtb-"}, "projectName": id,
            "roleTemplateName": ROLE, "userName": user}),
        );
        let made = create(&self.admin, &path, &binding)?;
        Ok(format!("{path}/{}", name_of(&made)?))
    }

    /// In the first project of the cluster of this number.
    fn create_namespace(&self, number: usize) -> Result<()> {
        let annotations = json!({"field.cattle.io/projectId": self.projects[number]});
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": NAMESPACE, "annotations": annotations}});
        let path = format!("/k8s/clusters/{}/api/v1/namespaces", self.clusters[number]);
        self.admin.post(&path, &namespace)?.success().map(drop)
    }

    fn memory(&self) -> Result<Row> {
        let memory = settled_memory(self.server.process_id().context("the server has ended")?)?;
        let what = format!(
            "server memory, {CLUSTERS} clusters of which {CONNECTED} are connected, {USERS} users, {PROJECTS} projects"
        );
        let took = self.took.as_secs_f64();
        Ok(Row::new(what, memory, "MB", Target::Context)
            .note(format!("resident, settled; made in {took:.0} s"))
            .recorded(true))
    }

    /// Drover's objects in the first cluster.
    fn count(&self) -> Result<usize> {
        let root = format!("/k8s/clusters/{}/apis/rbac.authorization.k8s.io/v1", self.clusters[0]);
        let mut count = 0;
        for kind in ["clusterroles", "clusterrolebindings", "rolebindings"] {
            let list = self.admin.get(&format!("{root}/{kind}?labelSelector=drover.io/owned"))?;
            count += list.success()?["items"].as_array().context("no items")?.len();
        }
        Ok(count)
    }

    fn settled_count(&self) -> Result<usize> {
        let mut last = usize::MAX;
        poll_until(SETTLED_TIMEOUT, Duration::from_secs(1), || {
            let count = self.count()?;
            let before = std::mem::replace(&mut last, count);
            ensure!(count == before, "{count} objects, {before} a second before");
            Ok(())
        })?;
        Ok(last)
    }

    fn objects(&self) -> Result<Vec<Row>> {
        let before = self.settled_count()?;
        in_parallel(MORE_USERS, |number| self.bind(0, &user(number)))?;
        let after = self.settled_count()?;
        let row = |what: &str, value: usize, target| Row::new(what, value as f64, "", target);
        let each = PROJECTS / CONNECTED;
        Ok(vec![
            row("roles and bindings of Drover in a cluster", before, Target::Context)
                .note(format!("{each} projects with a member each, one of them with a namespace"))
                .recorded(true),
            row(
                &format!("more of them with {MORE_USERS} more users in a project"),
                after.abs_diff(before),
                Target::AtMost(0.0),
            ),
        ])
    }

    /// A role in a project is given and taken, again and again; the next request must know.
    fn changes(&self) -> Result<Vec<Row>> {
        let person = people::new(&self.server, &self.admin, "mia")?;
        let pods = format!("/k8s/clusters/{}/api/v1/namespaces/{NAMESPACE}/pods", self.clusters[0]);
        let (mut stale, mut times) = (0, Samples::default());
        for _ in 0..CHANGES {
            let binding = self.bind(0, &person.id)?;
            let since = Instant::now();
            stale += usize::from(person.client.get(&pods)?.status != 200);
            times.push(since.elapsed());
            self.admin.delete(&binding)?.success()?;
            stale += usize::from(person.client.get(&pods)?.status != 403);
        }
        let what = "changes of a membership that the next request did not know";
        Ok(vec![
            Row::new(what, stale as f64, "", Target::AtMost(0.0))
                .note(format!("{CHANGES} times given and taken, a request after each")),
            Row::new(
                "the request after a role was given, p99",
                times.percentile(99),
                "ms",
                Target::Context,
            )
            .note(format!("p50 {:.1} ms", times.median()))
            .recorded(true),
        ])
    }

    /// What a wider rule of the role would give, in all clusters.
    fn question(&self) -> Result<Row> {
        let path = format!("/v3/roleTemplates/{ROLE}");
        let mut role = self.admin.get(&path)?.success()?;
        let rules = role["rules"].as_array_mut().context("a role without rules")?;
        rules.push(json!({"apiGroups": ["example.com"], "resources": ["*"], "verbs": ["*"]}));
        let (mut times, mut users) = (Samples::default(), 0);
        for _ in 0..QUESTIONS {
            let since = Instant::now();
            let found = self.admin.post("/drover.io/v1/access/diff", &json!({"apply": [role]}))?;
            let found = found.success()?;
            times.push(since.elapsed());
            users = found.to_string().matches("example.com").count();
        }
        ensure!(users > 0, "nobody would gain anything");
        let what = "what a wider role would change, in all clusters";
        Ok(Row::new(what, times.median() / 1e3, "s", Target::AtMost(QUESTION_MAX)).note(format!(
            "median of {QUESTIONS}; the slowest {:.2} s",
            times.percentile(100) / 1e3
        )))
    }

    /// A member of all projects, whose directory says of them that they are in many groups.
    fn many_roles(&self) -> Result<Vec<Row>> {
        let person = people::new(&self.server, &self.admin, "max")?;
        in_parallel(PROJECTS, |number| self.bind(number, &person.id))?;
        let mut rows = Vec::new();
        for groups in DIRECTORY_GROUPS {
            rows.extend(self.request_with(&person, groups)?);
        }
        Ok(rows)
    }

    fn request_with(&self, person: &Person, groups: usize) -> Result<Vec<Row>> {
        self.put_into_groups(person, groups)?;
        let path = format!(
            "/k8s/clusters/{}/apis/authentication.k8s.io/v1/selfsubjectreviews",
            self.clusters[0]
        );
        let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
        let of = format!("a user with {PROJECTS} roles in projects and {groups} groups");
        let response = person.client.post(&path, &review)?;
        if response.status == 403 {
            let message = response.json()["message"].as_str().unwrap_or_default().to_owned();
            ensure!(message.contains("carries at most"), "{message}");
            return Ok(vec![
                Row::new(format!("{of}: requests that a cluster gets"), 0.0, "", Target::Context)
                    .note(message),
            ]);
        }
        let found = response.success()?;
        let sent = found["status"]["userInfo"]["groups"].as_array().context("no groups")?.clone();
        let bytes: usize = sent.iter().filter_map(Value::as_str).map(str::len).sum();
        let mut times = Samples::default();
        for _ in 0..CHANGES {
            let since = Instant::now();
            person.client.post(&path, &review)?.success()?;
            times.push(since.elapsed());
        }
        Ok(vec![
            Row::new(
                format!("{of}: bytes of groups in a request"),
                bytes as f64,
                "",
                Target::Context,
            )
            .note(format!("{} groups", sent.len()))
            .recorded(true),
            Row::new(format!("{of}: a request, p99"), times.percentile(99), "ms", Target::Context)
                .note(format!("p50 {:.1} ms", times.median()))
                .recorded(true),
        ])
    }

    /// As the directory of the login would say.
    fn put_into_groups(&self, person: &Person, count: usize) -> Result<()> {
        let tokens = self.admin.get(&format!("{MANAGEMENT}/tokens"))?.success()?;
        let tokens = tokens["items"].as_array().context("no items")?.clone();
        for mut token in tokens.into_iter().filter(|token| token["userId"] == person.id.as_str()) {
            let groups = (0..count).map(|n| format!("local_group://cn=group-{n:04},dc=example"));
            token["groupPrincipals"] = groups.collect::<Vec<_>>().into();
            let path = format!("{MANAGEMENT}/tokens/{}", name_of(&token)?);
            self.admin.put(&path, &token)?.success()?;
        }
        // The server knows it by a watch, as it shows it.
        poll_until(SETTLED_TIMEOUT, LOOK_INTERVAL, || {
            let list = person.client.get("/v3/tokens")?.success()?;
            let token = &list["data"][0];
            let known = token["groupPrincipals"].as_array().map_or(0, Vec::len);
            ensure!(known == count, "{known} of {count} groups are known");
            Ok(())
        })
    }
}

fn user(number: usize) -> String {
    format!("u-load{number:04}")
}
