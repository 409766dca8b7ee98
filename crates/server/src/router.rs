//! Where a request goes.
//!
//! Everything comes in through one port. The identity is found out once, here; what follows
//! believes it.

use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use api_meta::audit::AuditEvent;
use api_meta::status::Status;
use apiserver::attributes::Revocation;
use apiserver::audit::Origin;
use apiserver::body::respond::{self, Body};
use apiserver::serve::{self, PeerAddress};
use apiserver::{ApiServer, UserInfo};
use cluster_access::proxy::{ProjectToken, Proxy, ProxyCaller};
use feature_kit::access::Membership;
use feature_kit::{RoleResolver, Route};
use futures::future::BoxFuture;
use http::{Method, Request, Response, StatusCode, Uri, header, request};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use identity::Identity;
use identity::browser::logout_cookies;
use identity::cross_site;
use kind_view::{KindView, Place};
use rest_view::store::METADATA_LIST;
use rest_view::{RestView, Subscriber};

use crate::audit_view::{self, AuditView};
use crate::authentication::{Authenticated, Authentication, Refusal};
use crate::bodies::{self, Anonymous};
use crate::clients::InProcess;
use crate::denied::Deniable;
use crate::door::{Door, DoorRecord};
use crate::guide_pages;
use crate::peer::TrustedProxies;
use crate::security_headers::SecurityHeaders;
use crate::ui;
use feature_identity::cluster_identity::no_role;
use feature_identity::revocation::{Revocations, RoleScope};

/// Path prefix of the proxy.
pub(crate) const CLUSTERS: &str = "/k8s/clusters/";
/// The management API itself, as a cluster.
pub(crate) const LOCAL: &str = "local";
/// The agents' tunnel.
const CONNECT: [&str; 2] = ["/v3/connect", "/v3/connect/register"];
/// Where people find out about their own rights and identity.
const SELF_REVIEWS: [&str; 3] = [
    "/apis/authentication.k8s.io/v1/selfsubjectreviews",
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
];
/// Code of the REST view for what a page of another origin may not do.
const CROSS_SITE: &str = "CrossSiteRequest";
/// Groups that every person of ours is in.
const GROUPS_OF_ALL: [&str; 2] = ["system:authenticated", "system:cattle:authenticated"];

/// The body of every answer. A proxied one can break off, which ends the connection, so that nobody
/// takes a part for the whole.
pub type Outbound = cluster_access::Body;

/// Everything that requests can be sent to.
pub struct Parts {
    pub api: ApiServer,
    pub view: RestView,
    pub kinds: KindView,
    /// Of all features; the longest prefix that fits wins.
    pub routes: Vec<Route>,
    pub acceptor: tunnel::Acceptor,
    pub proxy: Proxy,
    pub revocations: Arc<Revocations>,
    pub authentication: Authentication,
    pub access: Arc<dyn RoleResolver>,
    pub proxies: TrustedProxies,
    pub security_headers: SecurityHeaders,
    pub anonymous: Anonymous,
    pub door: Door,
    pub audit_view: AuditView,
}

/// The service behind the listener. Cheap to clone.
#[derive(Clone)]
pub struct Router(Arc<Parts>);

impl Router {
    /// A router; the route with the longest matching prefix is used.
    pub fn new(mut parts: Parts) -> Self {
        parts.routes.sort_by_key(|route| std::cmp::Reverse(route.prefix.len()));
        Self(Arc::new(parts))
    }

    async fn answer(&self, mut request: Request<Incoming>) -> Response<Outbound> {
        self.0.proxies.remove_untrusted(&mut request);
        let security_headers = self.0.security_headers.of(&request);
        let sender = self.0.proxies.sender(request.extensions(), request.headers());
        let record = self.0.door.open(&mut request, sender);
        let _abandoned = record.abandoned();
        let response = match self.proxied(request, &record).await {
            Ok(response) => response,
            Err(request) => self.own(*request, &record).await.map(outbound),
        };
        let mut response = record.respond(response);
        security_headers.set(response.headers_mut());
        response
    }

    /// Requests for a downstream cluster; others come back.
    async fn proxied(
        &self,
        request: Request<Incoming>,
        record: &DoorRecord,
    ) -> Result<Response<Outbound>, Box<Request<Incoming>>> {
        if kind_view::place_of(request.uri().path()).is_some() {
            return Err(Box::new(request));
        }
        let rest = request.uri().path().strip_prefix(CLUSTERS);
        let Some(cluster) = rest.and_then(|rest| rest.split('/').next()) else {
            return Err(Box::new(request));
        };
        if cluster == LOCAL {
            return Err(Box::new(request));
        }
        record.cluster(cluster);
        let refused = match self.0.authentication.identify(&request).await {
            Ok(Some(identity)) if is_bound_elsewhere(&identity, cluster) => {
                let refused = match &identity.project {
                    Some(project) => outside_project(project, &identity, record),
                    None => wrong_cluster(&identity, record),
                };
                respond::status(&refused)
            }
            Ok(Some(identity)) => {
                serve::mark_authenticated(request.extensions());
                record.user(|| person(&identity));
                let deniable = Deniable::of(&request);
                let mut response = self.0.proxy.handle(self.caller(&identity), request).await;
                if let Some(deniable) = deniable {
                    deniable.explain(&mut response);
                }
                return Ok(response);
            }
            Ok(None) => respond::status(&Status::unauthorized()),
            Err(refusal) => {
                record.refuse(&refusal);
                refused(&refusal, &request, false)
            }
        };
        Ok(refused.map(outbound))
    }

    /// Requests that this server answers itself.
    async fn own(&self, request: Request<Incoming>, record: &DoorRecord) -> Response<Body> {
        let path = request.uri().path();
        match path {
            "/ping" => return respond::text(StatusCode::OK, "pong"),
            connect if CONNECT.contains(&connect) => return self.connect(request, record).await,
            _ => {}
        }
        if let Some(page) = guide_pages::respond(request.method(), path, request.headers()) {
            return page;
        }
        let route = self.0.routes.iter().find(|route| path.starts_with(route.prefix));
        if route.is_none()
            && let Some(answer) = ui::answer(request.method(), path, request.headers())
        {
            return answer;
        }
        let is_login = is_public_view(path) || route.is_some_and(|route| route.public);
        let identified = if is_login {
            self.0.authentication.identify_at_login(&request).await
        } else {
            self.0.authentication.identify(&request).await
        };
        let identified = identified.inspect_err(|refusal| record.refuse(refusal));
        let identity = match identified {
            Ok(identity) => identity,
            Err(refusal) => {
                return refused(&refusal, &request, is_view(path) || route.is_some());
            }
        };
        if let Some(identity) = &identity {
            serve::mark_authenticated(request.extensions());
            record.user(|| person(identity));
        }
        if let Some(place) = kind_view::place_of(path) {
            return self.kinds(request, identity.as_ref(), &place, record).await;
        }
        if let Some(identity) = &identity
            && let Some(project) = &identity.project
        {
            let status = outside_project(project, identity, record);
            let is_view = is_view(path) || route.is_some();
            return if is_view { view_error(&status) } else { respond::status(&status) };
        }
        let _open = match self.begin_anonymous(&request, identity.as_ref(), route) {
            Ok(open) => open,
            Err(status) => return view_error(&status),
        };
        if path.eq_ignore_ascii_case(audit_view::PATH) {
            return self.audit_events(request, identity.as_ref(), record).await;
        }
        if let Some(route) = route {
            return self.feature(route, request, identity.as_ref(), record).await;
        }
        if let Some(identity) = &identity
            && (self.0.view.is_feed(path) || self.0.view.is_resource_socket(&request))
        {
            return self.socket(request, identity, record).await;
        }
        if is_view(path) {
            return self.view(request, identity.as_ref(), record).await;
        }
        if let Some(rest) = path.strip_prefix(CLUSTERS) {
            let rest = rest.strip_prefix(LOCAL).unwrap_or(rest).to_owned();
            return self.local(request, identity, &rest, record).await;
        }
        self.management(request, identity.as_ref(), record).await
    }

    /// Counts a request without credentials that this server answers itself; the management API
    /// counts its own.
    fn begin_anonymous(
        &self,
        request: &Request<Incoming>,
        identity: Option<&Authenticated>,
        route: Option<&Route>,
    ) -> Result<Option<bodies::Open>, Status> {
        if identity.is_some() || !(route.is_some() || is_view(request.uri().path())) {
            return Ok(None);
        }
        let sender = self.0.proxies.sender(request.extensions(), request.headers());
        self.0.anonymous.begin(sender).map(Some)
    }

    /// The view of kinds, of this API and of clusters.
    async fn kinds(
        &self,
        request: Request<Incoming>,
        identity: Option<&Authenticated>,
        place: &Place,
        record: &DoorRecord,
    ) -> Response<Body> {
        let _open = match self.begin_anonymous(&request, identity, None) {
            Ok(open) => open,
            Err(status) => return view_error(&status),
        };
        let (parts, body) = request.into_parts();
        let Some(identity) = identity else {
            let _ = bodies::refuse(body).await;
            return refused_view(&Refusal::nothing());
        };
        if let Place::Cluster(id) = place {
            record.cluster(id);
        }
        let refused = match (&identity.project, place) {
            (Some(project), Place::Management) => Some(outside_project(project, identity, record)),
            _ if is_bound_elsewhere(identity, place.cluster()) => {
                Some(wrong_cluster(identity, record))
            }
            _ => None,
        };
        if let Some(status) = refused {
            let _ = bodies::refuse(body).await;
            return view_error(&status);
        }
        if kind_view::is_subscription(parts.uri.path()) {
            let subscriber = self.subscriber(identity);
            let request = Request::from_parts(parts, ());
            return self.0.kinds.subscribe(request, subscriber).map(respond::full);
        }
        let client = self.client_of(identity.clone(), record.origin());
        match bodies::read(body, rest_view::response::BODY_SIZE_MAX).await {
            Ok(body) => {
                let request = Request::from_parts(parts, body);
                let caller = self.viewer(identity);
                self.0.kinds.handle(request, &caller, &client).await.map(respond::full)
            }
            Err(status) => view_error(&status),
        }
    }

    async fn connect(&self, request: Request<Incoming>, record: &DoorRecord) -> Response<Body> {
        let peer = request.extensions().get::<PeerAddress>().map(|peer| peer.0);
        self.0
            .acceptor
            .handle(request, peer, record.observer())
            .await
            .map(|body| body.boxed_unsync())
    }

    /// The management API: as the person, or with credentials of its own (service accounts).
    async fn management(
        &self,
        mut request: Request<Incoming>,
        identity: Option<&Authenticated>,
        record: &DoorRecord,
    ) -> Response<Body> {
        if let Some(identity) = identity {
            if is_bound_elsewhere(identity, LOCAL) {
                return respond::status(&wrong_cluster(identity, record));
            }
            self.act_as(&mut request, identity);
            apiserver::authentication::strip_credentials(request.headers_mut());
        }
        self.0.api.handle(request).await
    }

    /// Makes the request one of the person as the management API knows them, role groups included,
    /// until their token or one of their roles ends.
    fn act_as<B>(&self, request: &mut Request<B>, identity: &Authenticated) {
        let membership = Membership { user: &identity.user_id, groups: &identity.groups };
        let (roles, roles_lost) = self.0.revocations.of_roles(RoleScope::Management, membership);
        let token_ended = self.0.revocations.of_token(&identity.token_id, &identity.user_id);
        let mut user = person(identity);
        user.groups.extend(roles);
        request.extensions_mut().insert(user);
        request.extensions_mut().insert(Revocation::new([token_ended, roles_lost]));
    }

    async fn audit_events(
        &self,
        request: Request<Incoming>,
        identity: Option<&Authenticated>,
        record: &DoorRecord,
    ) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let _ = bodies::refuse(body).await;
        let Some(identity) = identity else { return refused_view(&Refusal::nothing()) };
        record.event(AuditEvent::AuditRead);
        let membership = Membership { user: &identity.user_id, groups: &identity.groups };
        let mut user = person(identity);
        user.groups.extend(self.0.access.management_groups(membership));
        match self.0.audit_view.page(&parts, user, identity.cluster.as_deref()).await {
            Ok(page) => respond::json_bytes(StatusCode::OK, page.to_string()),
            Err(status) => view_error(&status),
        }
    }

    async fn view(
        &self,
        request: Request<Incoming>,
        identity: Option<&Authenticated>,
        record: &DoorRecord,
    ) -> Response<Body> {
        let client = match identity {
            Some(identity) => self.client_of(identity.clone(), record.origin()),
            None => InProcess(self.0.api.clone()).client(UserInfo::anonymous()),
        };
        let viewer = |identity| self.viewer(identity);
        let mut caller = identity.map_or_else(rest_view::Caller::anonymous, viewer);
        caller.address = self.0.proxies.sender(request.extensions(), request.headers());
        let (parts, body) = request.into_parts();
        let size_max = rest_view::view::BODY_SIZE_MAX;
        let body = match identity {
            Some(_) => bodies::read(body, size_max).await,
            None if is_public_view(parts.uri.path()) => bodies::read_public(body, size_max).await,
            None => bodies::refuse(body).await,
        };
        match body {
            Ok(body) => {
                let request = Request::from_parts(parts, body);
                let response = self.0.view.handle(request, &caller, &client).await;
                record.note(caller.audit.snapshot());
                response.map(respond::full)
            }
            Err(status) => view_error(&status),
        }
    }

    /// A WebSocket of the view, its change feed or one of an object: lives longer than the request,
    /// and so does what it rests on.
    async fn socket(
        &self,
        request: Request<Incoming>,
        identity: &Authenticated,
        record: &DoorRecord,
    ) -> Response<Body> {
        let request = request.map(|_| ());
        if self.0.view.is_feed(request.uri().path()) {
            return self
                .0
                .view
                .subscribe(request, self.subscriber(identity))
                .await
                .map(respond::full);
        }
        let client = self.client_of(identity.clone(), record.origin());
        let caller = self.viewer(identity);
        let response = self.0.view.open_socket(request, &caller, &client).await;
        record.note(caller.audit.snapshot());
        response.map(respond::full)
    }

    fn subscriber(&self, identity: &Authenticated) -> Subscriber {
        Subscriber {
            caller: self.viewer(identity),
            // What changed is read again and again: that the feed was opened is the event.
            client: self.client_of(identity.clone(), Origin::silent()),
            rights: self.rights_of(identity.clone()),
        }
    }

    /// Acts as the person, with the roles they have at the time of each request: in the management
    /// API, and below [`CLUSTERS`] in clusters, through the proxy. `origin`: where they come from.
    fn client_of(&self, identity: Authenticated, origin: Origin) -> kube::Client {
        let (router, from) = (self.clone(), Arc::new((identity, origin)));
        let service = move |request: Request<kube::client::Body>| {
            let (router, from) = (router.clone(), from.clone());
            async move { Ok::<_, Infallible>(router.as_person(&from.0, &from.1, request).await) }
        };
        kube::Client::new(tower::service_fn(service), "default")
    }

    /// A request that the view makes for a person goes where the person's own would.
    async fn as_person(
        &self,
        identity: &Authenticated,
        origin: &Origin,
        mut request: Request<kube::client::Body>,
    ) -> Response<Outbound> {
        let origin = if finds_out(&request) { &Origin::silent() } else { origin };
        let below = request.uri().path().strip_prefix(CLUSTERS).map(str::to_owned);
        if let Some(below) = below {
            let cluster = below.split('/').next().unwrap_or_default();
            let record = self.0.door.begin(origin.clone(), &request);
            record.user(|| person(identity));
            if is_bound_elsewhere(identity, cluster) {
                let refused = respond::status(&wrong_cluster(identity, &record)).map(outbound);
                return record.respond(refused);
            }
            if cluster != LOCAL {
                record.cluster(cluster);
                let _abandoned = record.abandoned();
                let read = self.0.proxy.read(self.caller(identity), request).await;
                return record.respond(read);
            }
            let (mut parts, body) = request.into_parts();
            if let Err(status) = rebase(&mut parts, &below[LOCAL.len()..]) {
                return respond::status(&status).map(outbound);
            }
            request = Request::from_parts(parts, body);
            if !self.may_enter_local(identity, request.method(), request.uri().path()) {
                return respond::status(&no_role(LOCAL)).map(outbound);
            }
        }
        self.act_as(&mut request, identity);
        request.extensions_mut().insert(origin.clone());
        self.0.api.handle(request).await.map(outbound)
    }

    /// Another number once the person's rights in the management API may have changed.
    fn rights_of(&self, identity: Authenticated) -> Box<dyn Fn() -> u64 + Send + Sync> {
        let router = self.clone();
        Box::new(move || {
            let person = Membership { user: &identity.user_id, groups: &identity.groups };
            let mut hasher = DefaultHasher::new();
            router.0.access.management_groups(person).hash(&mut hasher);
            router.0.api.authorizer().generation().hash(&mut hasher);
            hasher.finish()
        })
    }

    /// Waits until what outlives its request has ended, once the server's stop has fired.
    pub async fn closed(&self) {
        self.0.view.feed_closed().await;
    }

    async fn feature(
        &self,
        route: &Route,
        request: Request<Incoming>,
        identity: Option<&Authenticated>,
        record: &DoorRecord,
    ) -> Response<Body> {
        if identity.is_none() && !route.public {
            let _ = bodies::refuse(request.into_body()).await;
            return refused_view(&Refusal::nothing());
        }
        if let Some(identity) = identity
            && !route.public
            && is_bound_elsewhere(identity, LOCAL)
        {
            let _ = bodies::refuse(request.into_body()).await;
            return view_error(&wrong_cluster(identity, record));
        }
        let caller = identity.map(|identity| {
            let membership = Membership { user: &identity.user_id, groups: &identity.groups };
            let mut groups = person(identity).groups;
            groups.extend(self.0.access.management_groups(membership));
            let (user_id, token_id) = (identity.user_id.clone(), Some(identity.token_id.clone()));
            feature_kit::route::Caller { user_id, token_id, groups }
        });
        let sender = self.0.proxies.sender(request.extensions(), request.headers());
        let (parts, body) = request.into_parts();
        let body = match identity {
            Some(_) => bodies::read(body, route.body_max_bytes).await,
            None => bodies::read_public(body, route.body_max_bytes).await,
        };
        match body {
            Ok(body) => {
                let mut request = feature_kit::route::Request::new(parts, body, caller);
                request.sender = sender;
                let audit = request.audit.clone();
                let response = route.handler.handle(request).await;
                record.note(audit.snapshot());
                response.map(respond::full)
            }
            Err(status) => view_error(&status),
        }
    }

    /// The management API as a cluster among others.
    async fn local(
        &self,
        request: Request<Incoming>,
        identity: Option<Authenticated>,
        rest: &str,
        record: &DoorRecord,
    ) -> Response<Body> {
        let Some(identity) = identity else { return respond::status(&Status::unauthorized()) };
        let (mut parts, body) = request.into_parts();
        match rebase(&mut parts, if rest.is_empty() { "/" } else { rest }) {
            Ok(()) if !self.may_enter_local(&identity, &parts.method, parts.uri.path()) => {
                respond::status(&no_role(LOCAL))
            }
            Ok(()) => {
                let request = Request::from_parts(parts, body);
                self.management(request, Some(&identity), record).await
            }
            Err(status) => respond::status(&status),
        }
    }

    /// Whether the management API answers this request as the cluster `local`: to people with a
    /// role in it, to others only what kubectl needs to say that they have none.
    fn may_enter_local(&self, identity: &Authenticated, method: &Method, path: &str) -> bool {
        let caller = self.caller(identity);
        let person = Membership { user: &caller.user, groups: &caller.groups };
        let is_open = match *method {
            Method::GET | Method::HEAD => is_discovery(path),
            Method::POST => SELF_REVIEWS.contains(&path),
            _ => false,
        };
        is_open || !self.0.access.cluster_groups(LOCAL, person).is_empty()
    }

    /// The person as the REST view knows them.
    fn viewer(&self, identity: &Authenticated) -> rest_view::Caller {
        rest_view::Caller {
            user_id: identity.user_id.clone(),
            token_id: Some(identity.token_id.clone()),
            auth_provider: Some(identity.auth_provider.clone()),
            groups: identity.groups.clone(),
            token_cluster: identity.cluster.clone(),
            csrf: identity.csrf().cloned(),
            ended: self.0.revocations.of_token(&identity.token_id, &identity.user_id),
            ..rest_view::Caller::default()
        }
    }

    /// The person as downstream clusters know them, role groups not yet included.
    fn caller(&self, identity: &Authenticated) -> ProxyCaller {
        let UserInfo { name: user, uid, groups, extra } = person(identity);
        // One that names no project of the cluster has roles in none.
        let project = identity.project.as_ref().map(|id| ProjectToken {
            token: identity.token_id.clone(),
            project: id.split_once(':').map(|(_, name)| name).unwrap_or(id).to_owned(),
        });
        ProxyCaller {
            project,
            user,
            uid,
            groups,
            extra,
            revoked: self.0.revocations.of_token(&identity.token_id, &identity.user_id),
        }
    }
}

/// The person as Kubernetes knows them, role groups not yet included.
fn person(identity: &Authenticated) -> UserInfo {
    let mut groups = identity.groups.clone();
    groups.extend(GROUPS_OF_ALL.map(str::to_owned));
    let name = identity.user_id.clone();
    UserInfo { name, uid: String::new(), groups, extra: identity_extra(identity) }
}

fn outbound(body: Body) -> Outbound {
    body.map_err(|never| match never {}).boxed_unsync()
}

/// Puts another path under the request, keeping its query.
fn rebase(parts: &mut request::Parts, path: &str) -> Result<(), Status> {
    let query = parts.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let uri: Uri = format!("{path}{query}")
        .parse()
        .map_err(|_| Status::bad_request("the path cannot be read"))?;
    parts.uri = uri;
    Ok(())
}

/// Whether the token is good for another cluster only.
fn is_bound_elsewhere(identity: &Identity, cluster: &str) -> bool {
    identity.cluster.as_deref().is_some_and(|only| only != cluster)
}

/// A token of a project outside of its cluster's API.
fn outside_project(project: &str, identity: &Authenticated, record: &DoorRecord) -> Status {
    let cluster = identity.cluster.as_deref().unwrap_or_default();
    let text = format!(
        "this token is good in project \"{project}\" only: use it below {CLUSTERS}{cluster}, or another token here"
    );
    record.user(|| person(identity));
    record.refuse_here(&text);
    Status::new(403, "Forbidden", text)
}

fn wrong_cluster(identity: &Authenticated, record: &DoorRecord) -> Status {
    let cluster = identity.cluster.as_deref().unwrap_or_default();
    let text = format!("this token is good for cluster \"{cluster}\" only; use another one here");
    record.user(|| person(identity));
    record.refuse_here(&text);
    Status::new(401, "Unauthorized", text)
}

fn identity_extra(identity: &Identity) -> std::collections::BTreeMap<String, Vec<String>> {
    [
        ("principalid".to_owned(), identity.principal_ids.clone()),
        ("username".to_owned(), vec![identity.login_name.clone()]),
    ]
    .into()
}

/// Whether the path says which APIs there are, and whether the server is well.
fn is_discovery(path: &str) -> bool {
    let mut segments = path.trim_matches('/').split('/');
    match segments.next() {
        Some("api") => segments.count() <= 1,
        Some("apis") => segments.count() <= 2,
        Some("openapi" | "version" | "healthz" | "livez" | "readyz") => true,
        _ => false,
    }
}

pub(crate) fn is_view(path: &str) -> bool {
    matches!(path.split('/').nth(1), Some("v1" | "v3"))
        || is_public_view(path)
        || kind_view::place_of(path).is_some()
}

/// Whether a view finds out by this request what there is and what it may offer, which is no deed
/// of the person: rights, the kinds of a cluster, and of objects nothing but metadata.
fn finds_out<B>(request: &Request<B>) -> bool {
    let path = request.uri().path();
    if SELF_REVIEWS.iter().any(|review| path.ends_with(review)) {
        return true;
    }
    let below = path.strip_prefix(CLUSTERS).and_then(|below| below.split_once('/'));
    let mut segments = below.map_or(path, |(_, path)| path).trim_matches('/').split('/');
    // `/api/v1` and `/apis/apps/v1` have the kinds of a version.
    let is_discovery = match segments.next() {
        Some("api") => segments.count() <= 1,
        Some("apis") => segments.count() <= 2,
        _ => false,
    };
    let accept = request.headers().get(header::ACCEPT).map(|value| value.as_bytes());
    let is_metadata = accept == Some(METADATA_LIST.as_bytes());
    request.method() == Method::GET && (is_discovery || is_metadata)
}

/// Where logins begin.
pub(crate) fn is_public_view(path: &str) -> bool {
    path.split('/').nth(1) == Some("v3-public")
}

/// An error in the form of the REST view.
fn view_error(status: &Status) -> Response<Body> {
    view_error_with(status, None)
}

/// `detail`: a sentence of its own for users.
fn view_error_with(status: &Status, detail: Option<String>) -> Response<Body> {
    let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut body = serde_json::json!({
        "baseType": "error",
        "type": "error",
        "code": status.reason,
        "status": status.code,
        "message": status.message,
    });
    if let Some(detail) = detail {
        body["detail"] = detail.into();
    }
    let mut response = respond::json_bytes(code, body.to_string());
    let retry_after = status.details.as_ref().and_then(|details| details.retry_after_seconds);
    if let Some(seconds) = retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

/// A request that nobody may act on, in the form of the REST view or of the Kubernetes API. A
/// browser whose login has ended forgets the cookie, so that nothing is refused for it again.
fn refused<B>(refusal: &Refusal, request: &Request<B>, in_view: bool) -> Response<Body> {
    let status = refusal.to_status();
    let mut response = if in_view { refused_view(refusal) } else { respond::status(&status) };
    // Pages cannot read the response to an upgrade: the response to the next request says why.
    let is_upgrade = cross_site::RequestKind::of(request) == cross_site::RequestKind::Upgrade;
    if refusal.login_end().is_some() && !is_upgrade {
        for cookie in logout_cookies() {
            response.headers_mut().append(header::SET_COOKIE, cookie);
        }
    }
    response
}

/// A request that nobody may act on, in the form of the REST view.
fn refused_view(refusal: &Refusal) -> Response<Body> {
    let mut status = refusal.to_status();
    match refusal {
        Refusal::Unauthenticated { .. } => {
            status.message =
                "must authenticate: log in and send the token with the request".to_owned();
        }
        Refusal::CrossSite(_) => status.reason = CROSS_SITE.into(),
    }
    view_error_with(&status, refusal.login_end().map(|end| end.to_string()))
}

impl tower::Service<Request<Incoming>> for Router {
    type Response = Response<Outbound>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut TaskContext<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        let router = self.clone();
        Box::pin(async move { Ok(router.answer(request).await) })
    }
}
