//! Lists: whole, by pages and by a selector.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use http::Request;

use super::super::{Row, Samples, Target};
use super::load::LABELLED_EVERY;
use super::side::{Both, Side};
use crate::http::{Connection, empty, runtime};

/// The namespace of the many objects.
pub const NAMESPACE: &str = "many";
const LIST_RATIO_MIN: f64 = 5.0;
const ROUNDS: usize = 5;
/// The page size of client-go's informers and kubectl.
const PAGE: usize = 500;

/// A list of everything in a namespace, which has `number` objects.
pub fn full(both: &Both, namespace: &str, number: usize) -> Result<Row> {
    let path = path(namespace);
    let what = format!("list of {number} objects");
    both.ratio(&what, "ms", Target::Context, |side| whole(side, &path, 1))
}

/// Measures, in the namespace with `number` objects, the whole list, all its pages, and a selector.
pub fn many(both: &Both, number: usize) -> Result<Vec<Row>> {
    let path = path(NAMESPACE);
    let target = Target::AtLeast(LIST_RATIO_MIN);
    let what = |form: &str| format!("list of {number} objects, {form}");
    let selected = format!("{path}?labelSelector=rare%3Dyes");
    let first = format!("{path}?limit={PAGE}");
    let cached = format!("{path}?resourceVersion=0");
    Ok(vec![
        both.ratio(&what("whole"), "ms", target, |side| whole(side, &path, 1))?,
        both.ratio(&what("whole, any version"), "ms", target, |side| whole(side, &cached, 1))?,
        both.ratio(&what(&format!("pages of {PAGE}")), "ms", target, |side| pages(side, number))?,
        both.ratio(&what("first page"), "ms", Target::Context, |side| whole(side, &first, 1))?,
        both.ratio(
            &what(&format!("selector that takes one in {LABELLED_EVERY}")),
            "ms",
            target,
            |side| whole(side, &selected, 1),
        )?,
    ])
}

fn path(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps")
}

/// Milliseconds at the median.
fn whole(side: &Side, path: &str, warm_up: usize) -> Result<f64> {
    let mut samples = Samples::default();
    runtime().block_on(async {
        let mut connection = side.client.connect().await?;
        for round in 0..ROUNDS + warm_up {
            let since = Instant::now();
            connection.measure(path).await?;
            if round >= warm_up {
                samples.push(since.elapsed());
            }
        }
        anyhow::Ok(())
    })?;
    Ok(samples.median())
}

/// Milliseconds for all pages, one after the other.
fn pages(side: &Side, number: usize) -> Result<f64> {
    runtime().block_on(async {
        let mut connection = side.client.connect().await?;
        let since = Instant::now();
        let (mut token, mut pages) = (String::new(), 0);
        loop {
            token = page(&mut connection, &token).await?;
            pages += 1;
            if token.is_empty() {
                break;
            }
        }
        ensure!(pages == number.div_ceil(PAGE), "{pages} pages");
        Ok(since.elapsed().as_secs_f64() * 1e3)
    })
}

/// The token of the next page.
async fn page(connection: &mut Connection, token: &str) -> Result<String> {
    let path = format!("{}?limit={PAGE}&continue={token}", path(NAMESPACE));
    let response = connection.send(Request::builder().uri(path).body(empty())?).await?;
    ensure!(response.status.is_success(), "{}: {}", response.status, response.text());
    // Read from the head alone: parsing the whole would measure this client.
    let head = &response.body[..response.body.len().min(1024)];
    let head = String::from_utf8_lossy(head);
    let metadata = head.split_once("\"metadata\":{").context("a list without metadata")?.1;
    let metadata = metadata.split_once('}').context("a list without metadata")?.0;
    let token = metadata.split_once("\"continue\":\"").map(|(_, rest)| rest);
    Ok(token.and_then(|rest| rest.split('"').next()).unwrap_or_default().to_owned())
}
