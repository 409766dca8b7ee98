//! The encodings of schemas, and their headers.

use std::io::Read;

use apiserver::UserInfo;
use apiserver::attributes::GROUP_MASTERS;
use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, IF_NONE_MATCH};
use http::{HeaderName, Request, Response};
use http_body_util::{BodyExt, Full};
use kubernetes_protobuf::openapi::{OpenApiVersion, encode};
use serde_json::Value;

use crate::custom_resources::{World, definition};

const JSON: &str = "application/json";
const V3_PATH: &str = "/openapi/v3/apis/ex.org/v1";

async fn send_request(
    world: &World,
    path: &str,
    headers: &[(HeaderName, &str)],
) -> Response<Bytes> {
    let admin = UserInfo::new("admin", &[GROUP_MASTERS]);
    let mut request = Request::get(path).extension(admin);
    for (name, value) in headers {
        request = request.header(name, *value);
    }
    let request = request.body(Full::from(Bytes::new())).unwrap();
    let (parts, body) = world.server.handle(request).await.into_parts();
    Response::from_parts(parts, body.collect().await.unwrap().to_bytes())
}

fn header(response: &Response<Bytes>, name: &str) -> String {
    let values = response.headers().get_all(name).iter().map(|value| value.to_str().unwrap());
    values.collect::<Vec<_>>().join(", ")
}

async fn world() -> World {
    let world = World::start().await;
    world.define(&definition()).await;
    world
}

#[tokio::test]
async fn schemas_are_protobuf_for_clients_that_prefer_it() {
    let world = world().await;
    for (path, version) in [("/openapi/v2", OpenApiVersion::V2), (V3_PATH, OpenApiVersion::V3)] {
        let (new, old) = (version.media_type(), version.old_media_type());
        let json = send_request(&world, path, &[]).await;
        assert_eq!((json.status().as_u16(), &*header(&json, "content-type")), (200, JSON));
        let document: Value = serde_json::from_slice(json.body()).unwrap();
        let protobuf = encode(version, &document);
        assert!(protobuf.len() > 1000);
        let wants = [
            new.to_owned(),
            old.to_owned(),
            format!("application/yaml, {old}"),
            format!("application/json;q=0.5, {new}"),
            format!("*/*, {old}"),
        ];
        for accept in wants {
            let answer = send_request(&world, path, &[(ACCEPT, &accept)]).await;
            assert_eq!(header(&answer, "content-type"), new, "{accept}");
            assert!(*answer.body() == protobuf, "{accept}: other bytes");
            assert_eq!(header(&answer, "etag"), header(&json, "etag"));
            assert!(header(&answer, "vary").split(", ").any(|name| name == "Accept"));
            let gzip = [(ACCEPT, &*accept), (ACCEPT_ENCODING, "gzip")];
            let answer = send_request(&world, path, &gzip).await;
            assert_eq!(header(&answer, "content-encoding"), "gzip");
            assert_eq!(answer.headers()[CONTENT_TYPE], new);
            let mut plain = Vec::new();
            flate2::read::GzDecoder::new(&**answer.body()).read_to_end(&mut plain).unwrap();
            assert!(plain == protobuf, "{accept}: other bytes in gzip");
        }
        for accept in [JSON, "*/*", "application/*", "*", &format!("{new};q=0.5, */json")] {
            let answer = send_request(&world, path, &[(ACCEPT, accept)]).await;
            assert_eq!(header(&answer, "content-type"), JSON, "{accept}");
            assert_eq!(answer.body(), json.body());
        }
        let other =
            if version == OpenApiVersion::V2 { OpenApiVersion::V3 } else { OpenApiVersion::V2 };
        for accept in ["application/yaml", kubernetes_protobuf::MEDIA_TYPE, other.media_type()] {
            let answer = send_request(&world, path, &[(ACCEPT, accept)]).await;
            assert_eq!((answer.status().as_u16(), answer.body().len()), (406, 0), "{accept}");
        }
    }
}

#[tokio::test]
async fn both_encodings_of_a_schema_have_one_hash() {
    let world = world().await;
    for (path, version) in [("/openapi/v2", OpenApiVersion::V2), (V3_PATH, OpenApiVersion::V3)] {
        let etag = header(&send_request(&world, path, &[]).await, "etag");
        for accept in [JSON, version.media_type()] {
            let known = [(ACCEPT, accept), (IF_NONE_MATCH, &*etag)];
            let answer = send_request(&world, path, &known).await;
            assert_eq!((answer.status().as_u16(), answer.body().len()), (304, 0), "{accept}");
            let outdated = [(ACCEPT, accept), (IF_NONE_MATCH, "\"ABC\"")];
            assert_eq!(send_request(&world, path, &outdated).await.status(), 200);
        }
    }
    let hash = header(&send_request(&world, V3_PATH, &[]).await, "etag").replace('"', "");
    let right = format!("{V3_PATH}?hash={hash}");
    let protobuf = [(ACCEPT, OpenApiVersion::V3.old_media_type())];
    let answer = send_request(&world, &right, &protobuf).await;
    assert_eq!(header(&answer, "content-type"), OpenApiVersion::V3.media_type());
    assert_eq!(header(&answer, "cache-control"), "public, immutable");
    assert!(header(&answer, "expires").ends_with(" GMT"));
    let answer = send_request(&world, &format!("{V3_PATH}?hash=ABC"), &protobuf).await;
    assert_eq!((answer.status().as_u16(), header(&answer, "location")), (301, right));
    let answer = send_request(&world, "/openapi/v3/apis/nosuch/v1", &protobuf).await;
    assert_eq!(answer.status(), 404);
}
