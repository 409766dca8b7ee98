//! How often objects are converted, and which results are cached.

use std::cell::RefCell;

use futures::future::join_all;
use futures::poll;
use serde_json::json;
use storage::{KeyValue, Revision};
use tokio::sync::oneshot;

use super::super::CacheEvent;
use super::*;
use crate::kind::Kind;
use crate::stored::to_bytes;

const WATCHERS: usize = 200;
const JSON: Encoding = Encoding { framing: Framing::Json, metadata_only: None };

fn secrets() -> Arc<Resource> {
    Arc::new(Kind::new("", "secrets", "secret", "Secret").into_resource())
}

fn object(state: &str, revision: Revision) -> Arc<Stored> {
    let object = json!({"metadata": {"name": "a"}, "state": state});
    let item = KeyValue {
        key: "/registry/things/a".into(),
        value: to_bytes(&object),
        create_revision: 1,
        mod_revision: revision,
    };
    Arc::new(Stored::decode(&item, &[]).unwrap())
}

type ConversionResult = Result<Arc<Stored>, Status>;

/// The conversions of a view: each is pending until the test completes it.
#[derive(Default)]
struct PendingConversions(RefCell<Vec<oneshot::Sender<ConversionResult>>>);

impl PendingConversions {
    fn convert<'a>(&'a self, view: &'a View) -> impl Future<Output = ConversionResult> + 'a {
        view.get_or_convert(|_| {
            let (sender, receiver) = oneshot::channel();
            self.0.borrow_mut().push(sender);
            receiver.map(|result| result.expect("the test completes it")).boxed()
        })
    }

    /// Completes the only pending conversion.
    fn complete(&self, result: ConversionResult) {
        let mut pending = self.0.borrow_mut();
        assert_eq!(pending.len(), 1);
        pending.remove(0).send(result).ok();
    }
}

#[tokio::test]
async fn watchers_of_a_version_share_one_conversion_and_failures_are_not_cached() {
    let view = View::new(&secrets(), object("former", 1));
    let pending = PendingConversions::default();
    let all = || join_all((0..WATCHERS).map(|_| pending.convert(&view)));
    let failed = Status::internal("out of order");
    let (results, ()) = futures::join!(all(), async { pending.complete(Err(failed.clone())) });
    assert!(results.into_iter().all(|result| result.unwrap_err() == failed));

    let converted = object("present", 2);
    let (results, ()) = futures::join!(all(), async { pending.complete(Ok(converted.clone())) });
    assert!(results.into_iter().all(|result| Arc::ptr_eq(&result.unwrap(), &converted)));
    assert!(Arc::ptr_eq(&pending.convert(&view).await.unwrap(), &converted));
    assert!(pending.0.borrow().is_empty());
}

#[tokio::test]
async fn a_conversion_is_cancelled_with_its_last_waiting_caller_only() {
    let view = View::new(&secrets(), object("former", 1));
    let pending = PendingConversions::default();
    let (mut first, mut second) =
        (Box::pin(pending.convert(&view)), Box::pin(pending.convert(&view)));
    assert!(poll!(&mut first).is_pending() && poll!(&mut second).is_pending());
    drop((first, second));
    assert!(pending.0.borrow_mut().remove(0).is_closed());

    let (mut first, mut second) =
        (Box::pin(pending.convert(&view)), Box::pin(pending.convert(&view)));
    assert!(poll!(&mut first).is_pending() && poll!(&mut second).is_pending());
    drop(first);
    pending.complete(Ok(object("present", 2)));
    assert_eq!(second.await.unwrap().revision, 2);
}

#[test]
fn a_changed_definition_uses_no_frames_of_the_former_one() {
    let event = CacheEvent::new(1, None, Some(object("present", 1))).unwrap();
    let frame = |resource: &Arc<Resource>, bytes: &'static str| {
        event
            .view(WatchEventType::Added, resource)
            .frame(WatchEventType::Added, JSON, || bytes.into())
    };
    let former = secrets();
    assert_eq!(frame(&former, "former"), "former");
    assert_eq!(frame(&former, "again"), "former");
    drop(former);
    assert_eq!(frame(&secrets(), "present"), "present");
}

#[test]
fn an_object_that_leaves_a_selection_is_shown_in_its_last_selected_state() {
    let event = CacheEvent::new(2, Some(object("former", 1)), Some(object("present", 2))).unwrap();
    let resource = secrets();
    let view_of = |change| event.view(change, &resource);
    assert!(std::ptr::eq(view_of(WatchEventType::Added), view_of(WatchEventType::Modified)));
    assert!(Arc::ptr_eq(view_of(WatchEventType::Modified).stored(), &event.current));
    let left = view_of(WatchEventType::Deleted).stored();
    let expected = json!({"metadata": {"name": "a", "resourceVersion": "2"}, "state": "former"});
    assert_eq!((left.revision, left.value()), (2, expected));
}
