//! Reads of one key and of spans, now and in the past: ST1, ST3 and ST6.

use super::{TestedStorage, create, get, list, newest, remove, update};
use crate::{KeyValue, RangeRequest, RangeResponse, StorageError};

async fn range(storage: &TestedStorage, request: RangeRequest) -> RangeResponse {
    storage.range(request).await.expect("the range can be read")
}

fn keys(items: &[KeyValue]) -> Vec<&str> {
    items.iter().map(|item| &*item.key).collect()
}

/// ST1: the order of keys is the order of lists.
pub async fn keys_are_listed_in_byte_order(storage: TestedStorage) {
    let mut names =
        ["/k/b", "/k/a", "/k/a-b", "/k/a.b", "/k/a/b", "/k/B", "/k/ab", "/k/a0", "/k/é"];
    for name in names {
        create(&storage, name, name).await;
    }
    names.sort_unstable();
    assert_eq!(keys(&list(&storage, "/k/", None).await), names);
}

/// ST1: `/a/` does not match `/a0`, and `/a/b` matches `/a/bc`, because a prefix has no segments.
pub async fn a_prefix_takes_no_neighbours(storage: TestedStorage) {
    for name in ["/a", "/a-", "/a/b", "/a/bc", "/a0", "/b/a"] {
        create(&storage, name, name).await;
    }
    assert_eq!(keys(&list(&storage, "/a/", None).await), ["/a/b", "/a/bc"]);
    assert_eq!(keys(&list(&storage, "/a/b", None).await), ["/a/b", "/a/bc"]);
    assert_eq!(keys(&list(&storage, "/c", None).await), [""; 0]);
}

/// The start is included, the end is not.
pub async fn a_range_is_half_open(storage: TestedStorage) {
    for name in ["/a", "/b", "/c"] {
        create(&storage, name, name).await;
    }
    let request =
        RangeRequest { start: "/a".to_owned(), end: "/c".to_owned(), limit: None, at: None };
    assert_eq!(keys(&range(&storage, request).await.items), ["/a", "/b"]);
}

/// The remaining keys are counted exactly, at the newest revision and at an older one.
pub async fn a_limit_cuts_and_counts_the_rest(storage: TestedStorage) {
    for number in 0..10 {
        create(&storage, &format!("/n/{number}"), "x").await;
    }
    let before = newest(&storage).await;
    // The older and the newest state differ on both sides of the limit.
    for number in [1, 7] {
        let found = get(&storage, &format!("/n/{number}")).await.expect("made above");
        remove(&storage, &found).await;
    }
    for name in ["/n/00", "/n/77", "/n/78"] {
        create(&storage, name, "new").await;
    }
    let cases = [(None, 3, 8), (None, 11, 0), (None, 0, 11), (Some(before), 3, 7)];
    for (at, limit, remaining) in cases {
        let request = RangeRequest { limit: Some(limit), at, ..RangeRequest::prefix("/n/") };
        let response = range(&storage, request).await;
        assert_eq!(response.items.len(), limit, "at {at:?}");
        assert_eq!(response.remaining, remaining, "at {at:?}");
    }
    let request = RangeRequest { limit: Some(3), ..RangeRequest::prefix("/n/") };
    assert_eq!(keys(&range(&storage, request).await.items), ["/n/0", "/n/00", "/n/2"]);
}

/// ST3: each revision above the compaction point can be read.
pub async fn an_older_revision_shows_the_past(storage: TestedStorage) {
    let empty = newest(&storage).await;
    let first = create(&storage, "/p/a", "1").await;
    let second = update(&storage, &first, "2").await;
    let other = create(&storage, "/p/b", "1").await;
    let removed = remove(&storage, &second).await;
    let again = create(&storage, "/p/a", "3").await;
    let states = [
        (empty, vec![]),
        (first.mod_revision, vec![first]),
        (second.mod_revision, vec![second.clone()]),
        (other.mod_revision, vec![second, other.clone()]),
        (removed, vec![other.clone()]),
        (again.mod_revision, vec![again, other]),
    ];
    for (revision, state) in states {
        assert_eq!(list(&storage, "/p/", Some(revision)).await, state);
        for key in ["/p/a", "/p/b"] {
            let (at, found) = storage.get(key, Some(revision)).await.expect("not compacted");
            assert_eq!(at, revision, "a get returns the requested revision");
            assert_eq!(found.as_ref(), state.iter().find(|item| &*item.key == key));
        }
    }
}

/// ST3: pages of one list are of one revision, whatever is written between them.
pub async fn pages_at_one_revision_are_stable_under_writes(storage: TestedStorage) {
    let mut expected = Vec::new();
    for number in 0..25 {
        expected.push(create(&storage, &format!("/l/{number:02}"), "old").await);
    }
    let mut request = RangeRequest { limit: Some(10), ..RangeRequest::prefix("/l/") };
    let mut pages = Vec::new();
    loop {
        let response = range(&storage, request.clone()).await;
        let seen = pages.len() + response.items.len();
        assert_eq!(response.remaining as usize, expected.len() - seen);
        let last = response.items.last().expect("a page is not empty").clone();
        pages.extend(response.items);
        if response.remaining == 0 {
            break;
        }
        request.start = format!("{}\0", last.key);
        request.at = Some(response.revision);
        // One key written, one created and one removed, on both sides of the next page.
        for number in [seen - 1, seen + 1] {
            update(&storage, &expected[number], "new").await;
        }
        create(&storage, &format!("/l/{seen:02}-new"), "new").await;
        remove(&storage, &expected[seen + 2]).await;
    }
    assert_eq!(pages, expected);
}

/// A revision that was not written yet cannot be read.
pub async fn a_future_revision_is_refused(storage: TestedStorage) {
    let current = create(&storage, "/f", "x").await.mod_revision;
    let future = current + 1;
    let is_future = |error: StorageError| match error {
        StorageError::Future { requested: r, current: c } => (r, c) == (future, current),
        _ => false,
    };
    assert!(storage.get("/f", Some(future)).await.is_err_and(is_future));
    let request = RangeRequest { at: Some(future), ..RangeRequest::prefix("/f") };
    assert!(storage.range(request).await.is_err_and(is_future));
}
