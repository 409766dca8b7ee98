//! Who is asked how often, and what is kept of the answers.

use std::cell::RefCell;

use futures::future::join_all;
use futures::poll;
use serde_json::json;
use storage::{KeyValue, Revision};
use tokio::sync::oneshot;

use super::super::CacheEvent;
use super::*;
use crate::custom::definition_resource;
use crate::stored::to_bytes;

const WATCHERS: usize = 200;
const JSON: Encoding = Encoding { framing: Framing::Json, metadata_only: None };

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

type Answer = Result<Arc<Stored>, Status>;

/// Whom the view asks: each question waits until it is answered here.
#[derive(Default)]
struct Asked(RefCell<Vec<oneshot::Sender<Answer>>>);

impl Asked {
    fn by<'a>(&'a self, view: &'a View) -> impl Future<Output = Answer> + 'a {
        view.served(|_| {
            let (answer, answered) = oneshot::channel();
            self.0.borrow_mut().push(answer);
            answered.map(|answer| answer.expect("it is answered")).boxed()
        })
    }

    /// Answers the only question.
    fn answer(&self, answer: Answer) {
        let mut asked = self.0.borrow_mut();
        assert_eq!(asked.len(), 1);
        asked.remove(0).send(answer).ok();
    }
}

#[tokio::test]
async fn all_who_want_a_version_share_one_question_and_no_failure_is_kept() {
    let view = View::new(&Arc::new(definition_resource()), object("former", 1));
    let asked = Asked::default();
    let all = || join_all((0..WATCHERS).map(|_| asked.by(&view)));
    let failed = Status::internal("out of order");
    let (answers, ()) = futures::join!(all(), async { asked.answer(Err(failed.clone())) });
    assert!(answers.into_iter().all(|answer| answer.unwrap_err() == failed));

    let converted = object("present", 2);
    let (answers, ()) = futures::join!(all(), async { asked.answer(Ok(converted.clone())) });
    assert!(answers.into_iter().all(|answer| Arc::ptr_eq(&answer.unwrap(), &converted)));
    assert!(Arc::ptr_eq(&asked.by(&view).await.unwrap(), &converted));
    assert!(asked.0.borrow().is_empty());
}

#[tokio::test]
async fn a_question_ends_with_the_last_who_waits_for_it_and_not_with_who_asked() {
    let view = View::new(&Arc::new(definition_resource()), object("former", 1));
    let asked = Asked::default();
    let (mut first, mut second) = (Box::pin(asked.by(&view)), Box::pin(asked.by(&view)));
    assert!(poll!(&mut first).is_pending() && poll!(&mut second).is_pending());
    drop((first, second));
    assert!(asked.0.borrow_mut().remove(0).is_closed());

    let (mut first, mut second) = (Box::pin(asked.by(&view)), Box::pin(asked.by(&view)));
    assert!(poll!(&mut first).is_pending() && poll!(&mut second).is_pending());
    drop(first);
    asked.answer(Ok(object("present", 2)));
    assert_eq!(second.await.unwrap().revision, 2);
}

#[test]
fn a_changed_definition_sees_nothing_that_was_made_for_the_former_one() {
    let event = CacheEvent::new(1, None, Some(object("present", 1))).unwrap();
    let frame = |resource: &Arc<Resource>, bytes: &'static str| {
        event.view(Change::Added, resource).frame(Change::Added, JSON, || bytes.into())
    };
    let former = Arc::new(definition_resource());
    assert_eq!(frame(&former, "former"), "former");
    assert_eq!(frame(&former, "again"), "former");
    drop(former);
    assert_eq!(frame(&Arc::new(definition_resource()), "present"), "present");
}

#[test]
fn who_sees_an_object_leave_sees_its_last_selected_state() {
    let event = CacheEvent::new(2, Some(object("former", 1)), Some(object("present", 2))).unwrap();
    let resource = Arc::new(definition_resource());
    let shown = |change| event.view(change, &resource);
    assert!(std::ptr::eq(shown(Change::Added), shown(Change::Modified)));
    assert!(Arc::ptr_eq(shown(Change::Modified).stored(), &event.current));
    let left = shown(Change::Deleted).stored();
    let wanted = json!({"metadata": {"name": "a", "resourceVersion": "2"}, "state": "former"});
    assert_eq!((left.revision, left.value()), (2, wanted));
}
