//! `/v3` of a whole management plane, with requests of different users.

use api_management::User;
use bytes::Bytes;
use feature_kit::Clients;
use feature_kit::access::GROUP_PEOPLE;
use http::Request;
use kube::api::PostParams;
use kube::{Api, Client};
use rest_view::{Caller, RestView};
use serde_json::Value;
use test_kit::World;

/// Users that exist from the start.
const USERS: [&str; 3] = ["u-admin", "u-bob", "u-eve"];

pub struct Rest {
    pub world: World,
    view: RestView,
}

/// The user of a request.
#[derive(Clone, Copy)]
pub enum Requester {
    Admin,
    /// A logged-in user without any role.
    User(&'static str),
}

impl Rest {
    pub async fn start() -> Self {
        let world = World::start().await;
        let view = feature_kit::view::rest_view(&world.features, &world.context);
        for id in USERS {
            let mut user = User::default();
            user.metadata.name = Some(id.to_owned());
            let users: Api<User> = Api::all(world.admin());
            users.create(&PostParams::default(), &user).await.unwrap();
        }
        Self { world, view }
    }

    fn requester(&self, requester: Requester) -> (Caller, Client) {
        match requester {
            Requester::Admin => (Caller::user("u-admin"), self.world.admin()),
            Requester::User(name) => {
                let groups = ["system:authenticated", GROUP_PEOPLE].map(str::to_owned);
                (Caller::user(name), self.world.api.client_as(name, &groups))
            }
        }
    }

    pub async fn request(
        &self,
        who: Requester,
        method: &str,
        path: &str,
        body: &Value,
    ) -> (u16, Value) {
        let (caller, client) = self.requester(who);
        let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
        let request = Request::builder().method(method).uri(path).header("host", "drover.example");
        let response = self.view.handle(request.body(body).unwrap(), &caller, &client).await;
        let (parts, body) = response.into_parts();
        (parts.status.as_u16(), serde_json::from_slice(&body).unwrap_or_default())
    }
    pub async fn get(&self, who: Requester, path: &str) -> (u16, Value) {
        self.request(who, "GET", path, &Value::Null).await
    }
    /// A request as administrator; the response must have this code.
    pub async fn must(&self, code: u16, method: &str, path: &str, body: &Value) -> Value {
        let (status, response) = self.request(Requester::Admin, method, path, body).await;
        assert_eq!(status, code, "{method} {path} {body}: {response}");
        response
    }
    /// The schemas of a version.
    pub async fn schemas(&self, version: &str) -> Vec<Value> {
        let (status, body) = self.get(Requester::Admin, &format!("{version}/schemas")).await;
        assert_eq!(status, 200);
        body["data"].as_array().unwrap().clone()
    }
}
