//! Expressions of admission: which names they know, what these stand for in one write, and how
//! several are evaluated within one budget.
//!
//! Conditions of webhooks and policies are made of them. Texts are those of Kubernetes.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, LazyLock};

use cel::authorization::{Asker, Authority, Question, ResourceCheck, Verdict};
use cel::compose::{Composed, VARIABLES, Variable};
use cel::declared::{Field, ListIdentity, Object};
use cel::message::Vocabulary;
use cel::types::Library;
use cel::{CompileError, Declared, DeclaredKind, Given, Input, Program, Type};
use serde_json::Value;

use crate::attributes::{Attributes, Authorizer, Decision, UserInfo};
use crate::registry::admission::Request;

/// Nodes one below the other of an expression and the variables that it stands on, together: what
/// the stack of a worker is sure to hold. Upstream bounds each expression alone.
const HEIGHT_MAX: usize = 150;
const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// An expression as it is written, and made ready; or why it could not be.
pub struct Expression {
    source: String,
    program: Result<Program, String>,
}

/// What came of an expression.
pub type Outcome<'a> = Result<cel::Value<'a>, String>;

/// The names that the expressions of one policy or webhook know, and the variables that they share.
#[derive(Default)]
pub struct Composition {
    /// Whether there are parameters.
    params: bool,
    variables: Vec<Variable>,
    /// Of each variable, with those it stands on.
    heights: Vec<usize>,
    /// The types of `object`, `oldObject` and `params`, where they are known.
    types: Option<[Arc<Declared>; 2]>,
}

impl Composition {
    pub fn new(params: bool) -> Self {
        Self { params, ..Self::default() }
    }

    /// As [`Composition::new`], where the types of the objects and the parameters are known.
    pub fn typed(params: bool, object: Arc<Declared>, parameters: Arc<Declared>) -> Self {
        Self { params, types: Some([object, parameters]), ..Self::default() }
    }

    /// Adds a variable, which later expressions may use whether it could be compiled or not.
    ///
    /// # Errors
    /// Why it could not be.
    pub fn add_variable(&mut self, name: &str, source: &str) -> Result<(), String> {
        let program = self.compile(source, &[], true);
        let height = program.as_ref().map_or(0, |program| self.height(program));
        let problem = program.as_ref().err().cloned();
        self.variables.push(Variable { name: name.to_owned(), program });
        self.heights.push(height);
        problem.map_or(Ok(()), Err)
    }

    pub fn expression(&self, source: &str, results: &[Type], authorizer: bool) -> Expression {
        let program = self.compile(source, results, authorizer);
        Expression { source: source.to_owned(), program }
    }

    /// An expression that makes what an object is changed by: it knows messages.
    pub fn mutation(&self, source: &str, result: &Type) -> Expression {
        let program = self.compile_mutation(source, result);
        Expression { source: source.to_owned(), program }
    }

    /// Compiles an expression that makes what an object is changed by.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn compile_mutation(&self, source: &str, result: &Type) -> Result<Program, String> {
        let program = Program::compile_with(source, &self.inputs(true), Vocabulary::Mutations);
        self.checked(program, std::slice::from_ref(result))
    }

    /// Compiles an expression whose result must be of one of these types; of any if there are none.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn compile(
        &self,
        source: &str,
        results: &[Type],
        authorizer: bool,
    ) -> Result<Program, String> {
        self.checked(Program::compile(source, &self.inputs(authorizer)), results)
    }

    fn checked(
        &self,
        program: Result<Program, CompileError>,
        results: &[Type],
    ) -> Result<Program, String> {
        let program = program.map_err(|error| error.to_string())?;
        let found = program.result_type();
        if !results.is_empty() && !results.contains(found) {
            let wanted: Vec<String> = results.iter().map(told).collect();
            let found = told(found);
            return Err(match wanted.as_slice() {
                [wanted] => format!("must evaluate to {wanted} but got {found}"),
                wanted => {
                    format!("must evaluate to one of [{}] but got {found}", wanted.join(" "))
                }
            });
        }
        if self.height(&program) > HEIGHT_MAX {
            return Err(format!(
                "expression recursion limit exceeded: {HEIGHT_MAX}, with the variables that it uses"
            ));
        }
        Ok(program)
    }

    fn height(&self, program: &Program) -> usize {
        let selected = program.selected_fields(VARIABLES);
        let used = |name: &str| selected.as_ref().is_none_or(|fields| fields.contains(&name));
        let below = self.variables.iter().zip(&self.heights);
        let below = below.filter(|(variable, _)| used(&variable.name)).map(|(_, height)| *height);
        program.height() + below.max().unwrap_or(0)
    }

    fn inputs(&self, authorizer: bool) -> Vec<Input> {
        let input = |name, declared| Input { name, declared, optional: false };
        let [object, params] = self.types.clone().unwrap_or_else(|| [anything(), anything()]);
        let mut inputs = vec![
            input("object", object.clone()),
            input("oldObject", object),
            input("request", REQUEST.clone()),
            input("namespaceObject", NAMESPACE.clone()),
        ];
        if self.params {
            inputs.push(input("params", params));
        }
        if authorizer {
            inputs.push(input("authorizer", typed(Type::Library(Library::Authorizer))));
            let resource = typed(Type::Library(Library::ResourceCheck));
            inputs.push(input("authorizer.requestResource", resource));
        }
        if !self.variables.is_empty() {
            let fields = self.variables.iter().map(|variable| {
                let kind = variable.program.as_ref().map(|program| plain(program.result_type()));
                (variable.name.as_str(), typed(kind.unwrap_or(Type::Dyn)))
            });
            inputs.push(input(VARIABLES, structure("kubernetes.variables", fields)));
        }
        inputs
    }

    /// The expressions of this composition over the values of one write.
    pub fn over<'a>(&'a self, facts: Facts<'a>) -> Rc<Composed<'a>> {
        Composed::new(&self.variables, move |name| facts.given(name))
    }
}

/// A type by the name that declares it.
fn told(kind: &Type) -> String {
    match kind {
        Type::Null => "null_type".to_owned(),
        Type::Timestamp => "google.protobuf.Timestamp".to_owned(),
        Type::Duration => "google.protobuf.Duration".to_owned(),
        other => other.to_string(),
    }
}

/// The types that variables keep; others are found out as they are used.
fn plain(kind: &Type) -> Type {
    match kind {
        Type::Object(_)
        | Type::Library(_)
        | Type::Message(_)
        | Type::Optional(_)
        | Type::Type(_) => Type::Dyn,
        other => other.clone(),
    }
}

/// The values of one write. JSON null where there is none.
#[derive(Clone, Copy)]
pub struct Facts<'a> {
    pub object: &'a Value,
    pub old_object: &'a Value,
    /// See [`request_value`].
    pub request: &'a Value,
    pub namespace: &'a Value,
    pub params: &'a Value,
    pub authority: &'a RequestAuthority<'a>,
}

impl<'a> Facts<'a> {
    fn given(&self, name: &str) -> Option<Given<'a>> {
        let dynamic = |json: &'a Value| Given::Value(cel::Value::dynamic(json));
        Some(match name {
            "object" => dynamic(self.object),
            "oldObject" => dynamic(self.old_object),
            "params" => dynamic(self.params),
            "namespaceObject" => dynamic(self.namespace),
            "request" => Given::Json(self.request),
            "authorizer" => Given::Value(cel::Value::authorizer(self.authority)),
            "authorizer.requestResource" => {
                let resource = self.authority.resource.clone();
                Given::Value(cel::Value::request_resource(self.authority, resource))
            }
            _ => return None,
        })
    }
}

/// Evaluates expressions one after the other, all within `budget`; absent ones are passed over. The
/// results come with what is left of the budget.
///
/// # Errors
/// The budget is used up, which leaves no result at all.
pub fn evaluate_all<'a>(
    composed: &Composed<'a>,
    expressions: impl IntoIterator<Item = Option<&'a Expression>>,
    mut budget: u64,
) -> Result<(Vec<Option<Outcome<'a>>>, u64), String> {
    let mut outcomes = Vec::new();
    for expression in expressions {
        let Some(expression) = expression else {
            outcomes.push(None);
            continue;
        };
        let program = match &expression.program {
            Ok(program) => program,
            Err(problem) => {
                outcomes.push(Some(Err(format!("compilation error: {problem}"))));
                continue;
            }
        };
        let (result, cost) = composed.evaluate(program);
        budget = budget.checked_sub(cost).ok_or(OUT_OF_BUDGET)?;
        let source = &expression.source;
        outcomes.push(Some(
            result.map_err(|error| format!("expression '{source}' resulted in error: {error}")),
        ));
    }
    Ok((outcomes, budget))
}

/// Asks the server's authorizer on behalf of who sent the write.
pub struct RequestAuthority<'a> {
    authorizer: Option<&'a dyn Authorizer>,
    user: &'a UserInfo,
    /// What the write is about.
    resource: ResourceCheck,
}

impl<'a> RequestAuthority<'a> {
    /// Without an authorizer every question ends in an error.
    pub fn new(authorizer: Option<&'a dyn Authorizer>, request: &Request<'a>) -> Self {
        let resource = ResourceCheck {
            group: request.resource.group.clone(),
            resource: request.resource.plural.clone(),
            subresource: request.subresource.to_owned(),
            namespace: request.namespace.to_owned(),
            name: request.name.to_owned(),
            ..ResourceCheck::default()
        };
        Self { authorizer, user: &request.options.user, resource }
    }
}

impl Authority for RequestAuthority<'_> {
    fn decide(&self, asker: &Asker, question: &Question) -> Verdict {
        let Some(authorizer) = self.authorizer else {
            let error = Some("this server has no authorizer".to_owned());
            return Verdict { error, ..Verdict::default() };
        };
        let user = match asker {
            Asker::Requester => self.user.clone(),
            Asker::ServiceAccount { namespace, name } => UserInfo::new(
                &format!("system:serviceaccount:{namespace}:{name}"),
                &["system:serviceaccounts", &format!("system:serviceaccounts:{namespace}")],
            ),
        };
        // Rules know nothing of selectors yet: to them a selected part is the whole.
        let attributes = match question.clone() {
            Question::Path { path, verb } => {
                Attributes { user, verb, path, ..Attributes::default() }
            }
            Question::Resource { resource, verb } => Attributes {
                user,
                verb,
                is_resource: true,
                group: resource.group,
                version: "*".to_owned(),
                resource: resource.resource,
                subresource: resource.subresource,
                namespace: resource.namespace,
                name: resource.name,
                path: String::new(),
            },
        };
        let (allowed, reason) = match authorizer.authorize(&attributes) {
            Decision::Allow { reason } => (true, reason),
            Decision::Deny { reason } | Decision::NoOpinion { reason } => (false, reason),
        };
        Verdict { allowed, reason, error: None }
    }
}

fn anything() -> Arc<Declared> {
    Arc::new(Declared { nullable: true, ..Declared::dynamic() })
}

fn typed(kind: Type) -> Arc<Declared> {
    declared(DeclaredKind::Typed(kind))
}

/// The request as AdmissionReview has it, without the objects.
static REQUEST: LazyLock<Arc<Declared>> = LazyLock::new(|| {
    let kind = || texts_of("kubernetes.GroupVersionKind", &["group", "version", "kind"]);
    let resource =
        || texts_of("kubernetes.GroupVersionResource", &["group", "version", "resource"]);
    let user = [
        ("username", text()),
        ("uid", text()),
        ("groups", list(text())),
        ("extra", declared(DeclaredKind::Map(list(text())))),
    ];
    let fields = [
        ("kind", kind()),
        ("resource", resource()),
        ("subResource", text()),
        ("requestKind", kind()),
        ("requestResource", resource()),
        ("requestSubResource", text()),
        ("name", text()),
        ("namespace", text()),
        ("operation", text()),
        ("userInfo", structure("kubernetes.UserInfo", user)),
        ("dryRun", declared(DeclaredKind::Bool)),
        ("options", Arc::new(Declared::dynamic())),
    ];
    structure("kubernetes.AdmissionRequest", fields)
});

/// The namespace of what is written: what expressions may know of it. Its name for `uid` is
/// upstream's.
static NAMESPACE: LazyLock<Arc<Declared>> = LazyLock::new(|| {
    let time = || declared(DeclaredKind::DateTime);
    let texts = || declared(DeclaredKind::Map(text()));
    let metadata = [
        ("name", text()),
        ("generateName", text()),
        ("namespace", text()),
        ("labels", texts()),
        ("annotations", texts()),
        ("UID", text()),
        ("creationTimestamp", time()),
        ("deletionGracePeriodSeconds", declared(DeclaredKind::Int)),
        ("deletionTimestamp", time()),
        ("generation", declared(DeclaredKind::Int)),
        ("resourceVersion", text()),
        ("finalizers", list(text())),
    ];
    let condition = [
        ("status", text()),
        ("type", text()),
        ("lastTransitionTime", time()),
        ("message", text()),
        ("reason", text()),
    ];
    let conditions = list(structure("kubernetes.NamespaceCondition", condition));
    let fields = [
        ("metadata", structure("kubernetes.NamespaceMetadata", metadata)),
        ("spec", structure("kubernetes.NamespaceSpec", [("finalizers", list(text()))])),
        (
            "status",
            structure(
                "kubernetes.NamespaceStatus",
                [("conditions", conditions), ("phase", text())],
            ),
        ),
    ];
    structure("kubernetes.Namespace", fields)
});

fn declared(kind: DeclaredKind) -> Arc<Declared> {
    Arc::new(Declared::new(kind, u64::MAX, 1))
}

fn text() -> Arc<Declared> {
    declared(DeclaredKind::Text)
}

fn list(item: Arc<Declared>) -> Arc<Declared> {
    declared(DeclaredKind::List(item, ListIdentity::Place))
}

fn texts_of(name: &str, fields: &[&'static str]) -> Arc<Declared> {
    structure(name, fields.iter().map(|field| (*field, text())))
}

fn structure<'f>(
    name: &str,
    fields: impl IntoIterator<Item = (&'f str, Arc<Declared>)>,
) -> Arc<Declared> {
    // Unlike those of objects, these names are not escaped: it is `request.namespace`.
    let fields = fields
        .into_iter()
        .map(|(name, declared)| (name.into(), Field { name: name.into(), declared }));
    let fields: BTreeMap<Box<str>, Field> = fields.collect();
    declared(DeclaredKind::Object(Arc::new(Object { name: name.to_owned(), fields })))
}

#[cfg(test)]
mod tests;
