//! The requests of the Terraform provider, in its order, with the states that it waits for: an
//! apply, the reads of a plan, which must be empty, and a destroy.

use anyhow::{Context, Result, bail, ensure};
use e2e::{Client, Server, eventually};
use serde_json::{Map, Value, json};

/// States that the provider accepts while it waits for a project.
const PROJECT_STATES: [&str; 3] = ["initializing", "configuring", "active"];
const PASSWORD: &str = "a password for terraform";
const NEW_PASSWORD: &str = "another password for terraform";

/// `joined`: the id of a cluster whose agent is connected.
pub fn run(server: &Server, client: &Client, joined: &str) -> Result<()> {
    configure(server, client).context("configure")?;
    bootstrap(server).context("bootstrap")?;
    let terraform = Terraform { client };
    let cluster = terraform.cluster().context("cluster")?;
    let made =
        [terraform.project(joined).context("project")?, terraform.user(server).context("user")?];
    let [project, user] = &made;
    let namespace = terraform.namespace(joined, project).context("namespace")?;
    terraform.records(project, &namespace)?;
    terraform.remove(&format!("/v3/clusters/{joined}/namespaces/{namespace}"))?;
    let bindings = [
        terraform
            .make("/v3/globalrolebindings", &json!({"globalRoleId": "user", "userId": user}))?,
        terraform.make(
            "/v3/clusterroletemplatebindings",
            &json!({"clusterId": joined, "roleTemplateId": "cluster-member", "userId": user,
                "name": "tf-members"}),
        )?,
        terraform.make(
            "/v3/projectroletemplatebindings",
            &json!({"projectId": project, "roleTemplateId": "project-member", "userId": user,
                "name": "tf-project-members"}),
        )?,
    ];
    let plurals =
        ["globalRoleBindings", "clusterRoleTemplateBindings", "projectRoleTemplateBindings"];
    for (plural, id) in plurals.into_iter().zip(&bindings) {
        terraform.remove(&format!("/v3/{plural}/{id}")).with_context(|| plural.to_owned())?;
    }
    terraform.kinds(joined).context("kinds of the cluster")?;
    let template = terraform.pod_security(project).context("pod security")?;
    terraform.auth_config().context("auth config")?;
    terraform.remove(&format!("/v3/projects/{project}"))?;
    // Right after the project that it was for.
    terraform.remove(&format!("/v3/podsecuritypolicytemplates/{template}"))?;
    terraform.remove(&format!("/v3/users/{user}"))?;
    terraform.remove(&format!("/v3/clusters/{cluster}"))
}

fn configure(server: &Server, client: &Client) -> Result<()> {
    ensure!(server.anyone()?.get("/ping")?.text() == "pong");
    let schemas = client.get("/v3")?.headers.get("x-api-schemas").cloned();
    ensure!(schemas.is_some_and(|at| at.as_bytes().ends_with(b"/v3/schemas")));
    client.get("/v3/settings/k8s-version")?.success()?;
    let version = client.get("/v3/settings/server-version")?.success()?;
    ensure!(version["value"] == "v2.6.9", "{version}");
    let images = client.get("/v3/rkek8ssystemimages")?.success()?;
    ensure!(images["data"].is_array() && images["pagination"]["next"].is_null(), "{images}");
    Ok(())
}

/// The bootstrap requests to a new server with the password of its administrator, which does not
/// change.
fn bootstrap(server: &Server) -> Result<()> {
    let login = "/v3-public/localProviders/local?action=login";
    let password = e2e::server::ADMIN_PASSWORD;
    let body = json!({"username": "admin", "password": password, "ttl": 60_000,
        "description": "Terraform bootstrap admin session"});
    let token = server.anyone()?.post(login, &body)?.success()?;
    ensure!(token["type"] == "token" && token["id"].is_string(), "{token}");
    let client = server.anyone()?.bearer(token["token"].as_str().context("no token")?);
    for (name, value) in [("server-url", server.url()), ("telemetry-opt", "out")] {
        let path = format!("/v3/settings/{name}");
        let set = client.put(&path, &json!({"value": value}))?.success()?;
        ensure!(set["value"] == value, "{set}");
    }
    let users = client.get("/v3/users?username=admin")?.success()?;
    let [admin] = users["data"].as_array().context("no list")?.as_slice() else {
        bail!("not one administrator: {users}");
    };
    let set = admin["actions"]["setpassword"].as_str().context("no setpassword")?;
    let action = format!("/v3/users/{}?action=setpassword", text(admin, "id")?);
    ensure!(set.ends_with(&action), "{set}");
    client.post(&action, &json!({"newPassword": password}))?.success()?;
    let body = json!({"userId": admin["id"], "description": "Terraform", "ttl": 0});
    let made = client.post("/v3/tokens", &body)?.success()?;
    let lasting = server.anyone()?.bearer(&text(&made, "token")?);
    let gone = lasting.delete(&format!("/v3/tokens/{}", text(&token, "id")?))?;
    ensure!(gone.status.is_success(), "{}", gone.text());
    let read = lasting.get(&format!("/v3/tokens/{}", text(&made, "id")?))?.success()?;
    ensure!(read["expired"] == false, "{read}");
    ensure!(client.get("/v3/users")?.status == 401, "the first token still holds");
    Ok(())
}

struct Terraform<'a> {
    client: &'a Client,
}

impl Terraform<'_> {
    /// Creates, and reads until nothing changes any more: the requested values must be read back.
    fn make(&self, collection: &str, body: &Value) -> Result<String> {
        let made = self.client.post(collection, body)?.success()?;
        let id = text(&made, "id")?;
        self.planned(&format!("{collection}/{id}"), body)?;
        Ok(id)
    }

    /// An empty plan: repeated reads return all requested values.
    fn planned(&self, path: &str, requested: &Value) -> Result<()> {
        let read = || self.client.get(path)?.success();
        let (mut first, mut second) = (read()?, read()?);
        // What is used is the server's alone, and not part of a plan.
        for read in [&mut first, &mut second] {
            if let Some(Value::Object(quota)) = read.get_mut("resourceQuota") {
                quota.remove("usedLimit");
            }
        }
        for (name, value) in requested.as_object().unwrap_or(&Map::new()) {
            let secret = name == "password";
            ensure!(secret || first[name] == *value, "{path}: {name} is {}", first[name]);
            ensure!(first[name] == second[name], "{path}: {name} changes");
        }
        Ok(())
    }

    fn state(&self, path: &str, expected: &str, taken: &[&str]) -> Result<Value> {
        let mut other = None;
        let found = eventually(&format!("{path} is {expected}"), || -> Result<Option<Value>> {
            let read = self.client.get(path)?.success()?;
            let state = text(&read, "state")?;
            if !taken.is_empty() && !taken.contains(&state.as_str()) {
                other = Some(state);
                return Ok(None);
            }
            ensure!(state == expected, "{state}");
            Ok(Some(read))
        });
        found.with_context(|| format!("{path}: the provider does not wait in {other:?}"))
    }

    /// An imported cluster without an agent: pending, with the commands to import it.
    fn cluster(&self) -> Result<String> {
        let body = json!({"name": "tf-imported", "description": "by Terraform"});
        let id = self.make("/v3/clusters", &body)?;
        let own = format!("/v3/clusters/{id}");
        self.state(&own, "pending", &[])?;
        let path = format!("/v3/clusterregistrationtokens/{id}:default-token");
        eventually("the commands of the registration token", || {
            let token = self.client.get(&path)?.success()?;
            for command in ["command", "insecureCommand", "nodeCommand", "manifestUrl"] {
                ensure!(!text(&token, command)?.is_empty(), "{token}");
            }
            Ok(())
        });
        let projects = self.client.get(&format!("/v3/projects?clusterId={id}"))?.success()?;
        ensure!(projects["data"].is_array(), "{projects}");
        let generate = format!("{own}?action=generateKubeconfig");
        let made = self.client.post(&generate, &json!({}))?.success()?;
        let token = kubeconfig_token(&text(&made, "config")?)?;
        let (name, _) = token.split_once(':').context("no name:key")?;
        let read = self.client.get(&format!("/v3/tokens/{name}"))?.success()?;
        ensure!(read["expired"] == false, "{read}");
        self.client.put(&own, &json!({"description": "changed"}))?.success()?;
        self.planned(&own, &json!({"name": "tf-imported", "description": "changed"}))?;
        Ok(id)
    }

    fn project(&self, cluster: &str) -> Result<String> {
        let mut body = json!({
            "name": "tf-project", "clusterId": cluster, "description": "by Terraform",
            "resourceQuota": {"limit": {"pods": "20", "limitsCpu": "2000m"}},
            "namespaceDefaultResourceQuota": {"limit": {"pods": "10", "limitsCpu": "1000m"}},
            "containerDefaultResourceLimit": {"limitsCpu": "20m", "requestsMemory": "10Mi"},
        });
        let made = self.client.post("/v3/projects", &body)?.success()?;
        let id = text(&made, "id")?;
        let own = format!("/v3/projects/{id}");
        self.state(&own, "active", &PROJECT_STATES)?;
        self.planned(&own, &body)?;
        body["description"] = "changed".into();
        body["resourceQuota"]["limit"] = json!({"pods": "30"});
        body["namespaceDefaultResourceQuota"]["limit"] = json!({"pods": "10"});
        self.client.put(&format!("{own}?_replace=true"), &body)?.success()?;
        self.planned(&own, &body)?;
        Ok(id)
    }

    /// A policy template that the project has by its action.
    fn pod_security(&self, project: &str) -> Result<String> {
        let any = json!({"rule": "RunAsAny"});
        let body = json!({"name": "tf-restricted", "privileged": false,
            "allowPrivilegeEscalation": false, "requiredDropCapabilities": ["ALL"],
            "runAsUser": {"rule": "MustRunAsNonRoot"}, "seLinux": any, "fsGroup": any,
            "supplementalGroups": any, "volumes": ["configMap", "emptyDir", "secret"]});
        let id = self.make("/v3/podsecuritypolicytemplates", &body)?;
        let own = format!("/v3/projects/{project}");
        let read = self.client.get(&own)?.success()?;
        text(&read["actions"], "setpodsecuritypolicytemplate")?;
        let set = format!("{own}?action=setpodsecuritypolicytemplate");
        self.client.post(&set, &json!({"podSecurityPolicyTemplateId": id}))?.success()?;
        self.planned(&own, &json!({"podSecurityPolicyTemplateId": id}))?;
        Ok(id)
    }

    /// The provider reads the actions of a configuration where all configurations are.
    fn auth_config(&self) -> Result<()> {
        let config = self.client.get("/v3/authConfigs/openldap")?.success()?;
        let action = text(&config["actions"], "testAndApply")?;
        ensure!(action.ends_with("/v3/openLdapConfigs/openldap?action=testAndApply"), "{action}");
        let nowhere = json!({"servers": ["127.0.0.1"], "port": 1, "userSearchBase": "dc=x",
            "serviceAccountDistinguishedName": "cn=x", "serviceAccountPassword": "x"});
        let body = json!({"ldapConfig": nowhere, "username": "u", "password": "p"});
        let refused =
            self.client.post("/v3/openLdapConfigs/openldap?action=testAndApply", &body)?;
        ensure!(refused.status == 422, "{}", refused.text());
        Ok(())
    }

    /// `secret_v2`, `config_map_v2` and `storage_class_v2`, at `/v1` of the cluster: the schemas
    /// say where the objects are, and an update sends what was read.
    fn kinds(&self, cluster: &str) -> Result<()> {
        let base = self.client.get(&format!("/k8s/clusters/{cluster}/v1"))?;
        let schemas = base.headers.get("x-api-schemas").context("no X-API-Schemas")?.to_str()?;
        let schemas = self.client.get(path_of(schemas)?)?.success()?;
        let metadata = |name: &str| json!({"name": name, "namespace": "default"});
        for (kind, body, change) in [
            (
                "secret",
                json!({"type": "Opaque", "_type": "Opaque", "metadata": metadata("tf-secret"),
                    "data": {"key": "b25l"}}),
                json!({"data": {"key": "dHdv"}}),
            ),
            (
                "configmap",
                json!({"type": "configmap", "metadata": metadata("tf-config"),
                    "data": {"key": "one"}}),
                json!({"data": {"key": "two"}}),
            ),
            (
                "storage.k8s.io.storageclass",
                json!({"type": "storage.k8s.io.storageclass", "metadata": {"name": "tf-class"},
                    "provisioner": "example.io/none", "reclaimPolicy": "Delete",
                    "volumeBindingMode": "Immediate"}),
                json!({"allowVolumeExpansion": true}),
            ),
        ] {
            let mut all = schemas["data"].as_array().context("no schemas")?.iter();
            let schema = all.find(|schema| schema["id"] == kind).context("no schema")?;
            let of_objects = schema["resourceMethods"].to_string();
            ensure!(["GET", "PUT", "DELETE"].iter().all(|method| of_objects.contains(method)));
            let collection = path_of(schema["links"]["collection"].as_str().context("no link")?)?;
            let made = self.client.post(collection, &body)?.success()?;
            let read = format!("{collection}/{}", text(&made, "id")?);
            let mut object = self.client.get(&read)?.success()?;
            let requested = change.as_object().context("no change")?;
            for (name, value) in requested {
                object[name] = value.clone();
            }
            let own = path_of(object["links"]["self"].as_str().context("no link")?)?.to_owned();
            self.client.put(&own, &object)?.success()?;
            let changed = self.client.get(&read)?.success()?;
            ensure!(requested.iter().all(|(name, value)| changed[name] == *value), "{changed}");
            ensure!(self.client.delete(&own)?.status == 204);
            ensure!(self.client.get(&read)?.status == 404);
        }
        Ok(())
    }

    /// A namespace of a project, with quotas, moved to another project and back.
    fn namespace(&self, cluster: &str, project: &str) -> Result<String> {
        let collection = format!("/v3/clusters/{cluster}/namespaces");
        let limits = json!({"limitsCpu": "20m", "requestsMemory": "1Mi"});
        let mut body = json!({"name": "tf-namespace", "projectId": project,
            "description": "by Terraform", "containerDefaultResourceLimit": limits,
            "resourceQuota": {"limit": {"pods": "1"}}});
        let id = self.make(&collection, &body)?;
        let own = format!("{collection}/{id}");
        self.state(&own, "active", &["activating", "active"])?;
        let found = self.client.get(&format!("{collection}?name=tf-namespace"))?.success()?;
        ensure!(found["data"].as_array().is_some_and(|data| data.len() == 1), "{found}");
        let other = json!({"name": "tf-other", "clusterId": cluster});
        let other = self.make("/v3/projects", &other)?;
        for to in [other.as_str(), project] {
            let namespace = self.client.get(&own)?.success()?;
            text(&namespace["actions"], "move")?;
            let moved = self.client.post(&format!("{own}?action=move"), &json!({"projectId": to}));
            ensure!(moved?.status.is_success(), "the namespace is not moved to '{to}'");
            ensure!(self.client.get(&own)?.success()?["projectId"] == to);
        }
        body["description"] = "changed".into();
        body["resourceQuota"]["limit"]["pods"] = "2".into();
        self.client.put(&own, &body)?.success()?;
        self.planned(&own, &body)?;
        self.remove(&format!("/v3/projects/{other}"))?;
        // Requests end with a role that they run with: those that follow wait for its end.
        eventually("the end of the creator's role in it", || {
            let bindings = format!("/v3/projectroletemplatebindings?projectId={other}");
            let left = self.client.get(&bindings)?.success()?;
            ensure!(left["data"].as_array().is_some_and(Vec::is_empty), "{left}");
            Ok(())
        });
        Ok(id)
    }

    /// Types that are created, read, found by name, changed and deleted without special steps.
    fn records(&self, project: &str, namespace: &str) -> Result<()> {
        let within = format!("/v3/projects/{project}");
        let data = json!({"address": "YQ=="});
        let registries = json!({"registry.example": {"username": "u", "password": "p"}});
        let rules = json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]);
        let keys = json!({"accessKey": "a", "secretKey": "s"});
        let records = [
            (format!("{within}/secrets"), json!({"data": data})),
            (
                format!("{within}/namespacedsecrets"),
                json!({"data": data, "namespaceId": namespace}),
            ),
            (format!("{within}/dockercredentials"), json!({"registries": registries})),
            (
                format!("{within}/namespaceddockercredentials"),
                json!({"registries": registries, "namespaceId": namespace}),
            ),
            ("/v3/roletemplates".to_owned(), json!({"context": "cluster", "rules": rules})),
            ("/v3/globalroles".to_owned(), json!({"rules": rules, "newUserDefault": false})),
            ("/v3/settings".to_owned(), json!({"value": "by Terraform"})),
            ("/v3/catalogs".to_owned(), json!({"url": "https://charts.example"})),
            ("/v3/cloudcredentials".to_owned(), json!({"s3credentialConfig": keys})),
        ];
        for (collection, body) in records {
            self.record(&collection, body).with_context(|| collection.clone())?;
        }
        Ok(())
    }

    fn record(&self, collection: &str, mut body: Value) -> Result<()> {
        body["name"] = "tf-record".into();
        let made = self.client.post(collection, &body)?.success()?;
        let own = format!("{collection}/{}", text(&made, "id")?);
        let mut requested = body.clone();
        // Fields with secrets are omitted; the rest is read back.
        for kept in ["registries", "s3credentialConfig"] {
            let shown = requested.as_object_mut().and_then(|fields| fields.remove(kept));
            ensure!(shown.is_none() || made[kept].is_object(), "no {kept}: {made}");
        }
        self.planned(&own, &requested)?;
        let found = self.client.get(&format!("{collection}?name=tf-record"))?.success()?;
        let ids: Vec<_> = found["data"].as_array().into_iter().flatten().collect();
        ensure!(ids.len() == 1 && ids[0]["id"] == made["id"], "{found}");
        let change = match collection.ends_with("settings") {
            true => json!({"value": "changed"}),
            false => json!({"description": "changed"}),
        };
        self.client.put(&own, &change)?.success()?;
        self.planned(&own, &change)?;
        self.remove(&own)
    }

    fn user(&self, server: &Server) -> Result<String> {
        let body = json!({"username": "tf-user", "password": PASSWORD, "name": "Terraform's",
            "enabled": true});
        let id = self.make("/v3/users", &body)?;
        let own = format!("/v3/users/{id}");
        self.state(&own, "active", &[])?;
        server.login("tf-user", PASSWORD)?;
        let set = format!("{own}?action=setpassword");
        self.client.post(&set, &json!({"newPassword": NEW_PASSWORD}))?.success()?;
        server.login("tf-user", NEW_PASSWORD)?;
        Ok(id)
    }

    /// Through `removing`, if it is observed, to 404 or 403, which the provider treats as removed.
    fn remove(&self, path: &str) -> Result<()> {
        let response = self.client.delete(path)?;
        ensure!(response.status.is_success(), "{}: {}", response.status, response.text());
        let mut other = None;
        eventually(&format!("{path} is removed"), || {
            let read = self.client.get(path)?;
            if read.status == 404 || read.status == 403 {
                return Ok(());
            }
            let state = read.json()["state"].as_str().map(str::to_owned);
            let unknown = state.filter(|state| state != "removing" && other.is_none());
            other = other.take().or(unknown);
            bail!("{}: {}", read.status, read.text())
        });
        ensure!(other.is_none(), "{path} was {other:?} while it was removed");
        Ok(())
    }
}

fn text(resource: &Value, field: &str) -> Result<String> {
    let found = resource[field].as_str().map(str::to_owned);
    found.with_context(|| format!("no '{field}': {resource}"))
}

/// The token of the only user of a kubeconfig.
fn kubeconfig_token(config: &str) -> Result<String> {
    let config: Value = serde_saphyr::from_str(config)?;
    let users = config["users"].as_array().context("no users")?;
    ensure!(users.len() == 1, "{} users", users.len());
    text(&users[0]["user"], "token")
}

/// The path of a URL of this server.
fn path_of(url: &str) -> Result<&str> {
    let rest = url.strip_prefix("https://").context("no https URL")?;
    Ok(&rest[rest.find('/').context("no path")?..])
}
