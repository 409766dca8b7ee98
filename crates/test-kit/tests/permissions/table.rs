//! The operations of each user on every type, determined by requests, compared with the committed
//! table.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};
use test_kit::eventually;

use super::objects::{Objects, Side, Type};
use super::samples::make_needed;
use super::setup::{Setup, TestUser, USERS};

const FILE: &str = "../../docs/reference/permissions.md";
/// The line of [`FILE`] after which this test writes everything.
const HEAD: &str = "<!-- From here on written by the test: see above. -->\n";
/// Variable that makes the test write the table again.
const WRITE_ENV: &str = "DROVER_WRITE_PERMISSIONS";
const VERBS: [char; 5] = ['l', 'g', 'c', 'u', 'd'];

/// The operations of one user on objects of one type.
#[derive(Default)]
struct Rights {
    by_side: BTreeMap<Side, BTreeSet<char>>,
    /// On objects that the user created.
    own: BTreeSet<char>,
}

impl Rights {
    /// `lgc` for objects everywhere, `A: lgc` for those of cluster A, `own: gd` for those of the
    /// user.
    fn cell(&self) -> String {
        let of = |side| self.by_side.get(&side);
        let a = of(Side::A).cloned().unwrap_or_default();
        let everywhere = match of(Side::B) {
            Some(b) => {
                assert!(b.is_subset(&a), "more rights where there is no role: {b:?}, not {a:?}");
                b.clone()
            }
            None => a.clone(),
        };
        let ordered = |letters: &BTreeSet<char>| -> String {
            VERBS.into_iter().filter(|verb| letters.contains(verb)).collect()
        };
        let only_a = ordered(&(&a - &everywhere));
        let own = ordered(&(&self.own - &a));
        let parts = [("", ordered(&everywhere)), ("A: ", only_a), ("own: ", own)];
        let parts = parts.iter().filter(|(_, letters)| !letters.is_empty());
        let cell = parts.map(|(of, letters)| format!("{of}{letters}")).collect::<Vec<_>>();
        if cell.is_empty() { "-".to_owned() } else { cell.join("; ") }
    }
}

struct Probe<'a> {
    objects: &'a Objects<'a>,
    user: TestUser,
    types: &'a [Type],
    kind: &'a Type,
}

impl Probe<'_> {
    async fn try_to(&self, verb: char, path: &str, body: &Value) -> (bool, Value) {
        let method = match verb {
            'l' | 'g' => "GET",
            'c' => "POST",
            'u' => "PUT",
            _ => "DELETE",
        };
        let (status, response) = self.objects.setup.request(self.user, method, path, body).await;
        let exchange = format!("{:?} {method} {path} {body}: {status} {response}", self.user);
        let is_allowed = match status {
            200 | 201 | 204 => true,
            401 | 403 | 404 => false,
            405 => {
                assert!(!self.kind.offers(verb), "its schema offers it: {exchange}");
                false
            }
            _ => panic!("neither done nor refused: {exchange}"),
        };
        assert!(!is_allowed || self.kind.offers(verb), "its schema does not offer it: {exchange}");
        (is_allowed, response)
    }

    async fn lists(&self, id: &str) -> bool {
        let (_, list) = self.try_to('l', &self.kind.path(), &Value::Null).await;
        list["data"].as_array().is_some_and(|data| data.iter().any(|item| item["id"] == id))
    }

    /// The operations on the object, except its removal.
    async fn with(&self, id: &str) -> BTreeSet<char> {
        let mut rights = BTreeSet::new();
        if self.lists(id).await {
            rights.insert('l');
        }
        let path = self.kind.path_of(id);
        let (may_get, shown) = self.try_to('g', &path, &Value::Null).await;
        if may_get {
            rights.insert('g');
            self.check_links(&shown).await;
        }
        // Changes nothing.
        let may_update = self.try_to('u', &path, &json!({})).await.0;
        if may_update {
            rights.insert('u');
        }
        if may_get && self.kind.offers('u') {
            let offered = shown["links"].get("update").is_some();
            assert_eq!(offered, may_update, "{:?}: {shown}", self.user);
        }
        rights
    }

    /// Checks that links of an object are those of its schema, and actions those of the schema that
    /// it names as its type (a provider is one of several), and that the targets of links exist.
    async fn check_links(&self, shown: &Value) {
        let (kind, links) = (self.kind, shown["links"].as_object().unwrap());
        let is_self = kind.id == "user" && shown["id"] == self.user.id();
        for (link, verb) in [("update", 'u'), ("remove", 'd')] {
            // Users without the right do not see it, no user can delete themselves, and providers
            // cannot be deleted.
            let admin_lacks = self.user == TestUser::Admin
                && kind.offers(verb)
                && !(verb == 'd' && (is_self || kind.id == "authConfig"));
            let has = links.contains_key(link);
            let fits = if has { kind.offers(verb) } else { !admin_lacks };
            assert!(fits, "{link} of {}: {shown}", kind.id);
        }
        let own = shown["type"].as_str().unwrap();
        let schema = format!("/v3/schemas/{own}");
        let (_, schema) = self.objects.setup.get(TestUser::Admin, &schema).await;
        for action in shown["actions"].as_object().unwrap().keys() {
            assert!(schema["resourceActions"][action].is_object(), "{action} of {own}");
        }
        if ![TestUser::Admin, TestUser::Member].contains(&self.user) {
            return;
        }
        for url in links.values() {
            let path = url.as_str().unwrap().split_once("drover.example").unwrap().1;
            let last = path.split('?').next().unwrap().rsplit('/').next().unwrap();
            let is_type = self.types.iter().any(|known| known.plural.eq_ignore_ascii_case(last));
            // Contents of the cluster would come from the cluster itself.
            if is_type || path.ends_with(shown["id"].as_str().unwrap()) {
                let (status, response) = self.objects.setup.get(self.user, path).await;
                assert_eq!(status, 200, "{:?} {path}: {response}", self.user);
            }
        }
    }

    /// Creators of clusters and projects become their owners after the response.
    async fn wait_for_ownership(&self, id: &str) {
        if !["cluster", "project"].contains(&self.kind.id.as_str()) {
            return;
        }
        eventually("the creator is the owner", async || {
            let updates = self.try_to('u', &self.kind.path_of(id), &json!({})).await;
            if updates.0 && self.lists(id).await { Ok(()) } else { Err(updates.1) }
        })
        .await;
    }

    async fn removes(&self, id: &str) -> bool {
        self.try_to('d', &self.kind.path_of(id), &Value::Null).await.0
    }

    async fn rights(&self, there: &mut BTreeMap<Side, String>) -> Rights {
        let mut rights = Rights::default();
        for &side in self.kind.sides() {
            let mut found = self.with(&there[&side]).await;
            let body = self.objects.body(self.kind, side);
            let (made, response) = self.try_to('c', &self.kind.path(), &body).await;
            if made {
                found.insert('c');
                let own = response["id"].as_str().unwrap();
                self.wait_for_ownership(own).await;
                rights.own.extend(self.with(own).await);
                if self.kind.offers('d') && self.removes(own).await {
                    rights.own.insert('d');
                }
            }
            if self.removes(&there[&side]).await {
                found.insert('d');
                there.insert(side, self.objects.make(self.kind, side, "again").await);
            }
            rights.by_side.insert(side, found);
        }
        let own = match self.kind.id.as_str() {
            _ if self.user == TestUser::Anonymous => None,
            "user" => Some(self.user.id().to_owned()),
            "principal" => Some(format!("local://{}", self.user.id())),
            _ => None,
        };
        if let Some(own) = own {
            rights.own.extend(self.with(&own).await);
        }
        rights
    }
}

async fn table(objects: &Objects<'_>) -> String {
    let mut text = "| Type | Offered | admin | cluster-owner | cluster-member | user | nobody | \
                    anonymous |\n|---|---|---|---|---|---|---|---|\n"
        .to_owned();
    let types = &objects.types().await;
    for kind in types {
        let mut there = BTreeMap::new();
        for &side in kind.sides() {
            there.insert(side, objects.make(kind, side, "first").await);
        }
        let mut cells = Vec::new();
        for user in USERS {
            let rights = Probe { objects, user, types, kind }.rights(&mut there).await;
            cells.insert(0, rights.cell());
        }
        let offered: String = VERBS.into_iter().filter(|verb| kind.offers(*verb)).collect();
        writeln!(text, "| {} | {offered} | {} |", kind.id, cells.join(" | ")).unwrap();
    }
    text
}

/// Schemas are the same for every user: they describe types, not rights.
async fn check_schemas(setup: &Setup) {
    let (_, schemas) = setup.get(TestUser::Admin, "/v3/schemas").await;
    for user in USERS {
        let (status, shown) = setup.get(user, "/v3/schemas").await;
        match user {
            TestUser::Anonymous => assert_eq!(status, 401),
            _ => assert!(shown == schemas, "{user:?} gets other schemas"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_committed_permissions_table_is_correct() {
    let setup = Setup::start(|view, _| view).await;
    make_needed(&setup.world.admin()).await;
    let objects = Objects::new(&setup);
    check_schemas(&setup).await;
    let text = table(&objects).await;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, committed) = page.split_once(HEAD).unwrap();
    if std::env::var_os(WRITE_ENV).is_some() {
        std::fs::write(&path, format!("{before}{HEAD}\n{text}")).unwrap();
        return;
    }
    for (line, known) in text.lines().zip(committed.trim_start().lines()) {
        assert_eq!(line, known, "differs; {WRITE_ENV}=1 writes docs/reference/permissions.md anew");
    }
    assert_eq!(text, committed.trim_start());
}
