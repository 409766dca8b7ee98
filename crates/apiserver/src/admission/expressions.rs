//! CEL expressions of admission: the variables that they may use, the values of these in one write,
//! and the evaluation of several within one budget.
//!
//! Webhooks and policies are built on them. Messages follow kube-apiserver.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, LazyLock};

use cel::authorization::{AccessDecision, AccessQuery, AccessSubject, Authority, ResourceCheck};
use cel::compose::{Composed, VARIABLES, Variable};
use cel::declared::{DeclaredField, ListIdentity, Object};
use cel::message::Vocabulary;
use cel::types::Library;
use cel::{CompileError, Declared, DeclaredKind, Given, Input, Program, Type};
use serde_json::Value;

use crate::attributes::{Attributes, Authorizer, Decision, UserInfo};
use crate::registry::admission::AdmissionRequest;

/// The depth of an expression's syntax tree together with that of the variables that it uses. It is
/// bounded by what the stack of a worker surely holds. Kubernetes bounds each expression alone.
const HEIGHT_MAX: usize = 150;
const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// An expression in source and compiled form, or the compile error.
pub struct Expression {
    source: String,
    program: Result<Program, String>,
}

/// The value of an expression, or the error of its evaluation.
pub type EvaluationResult<'a> = Result<cel::Value<'a>, String>;

/// The environment of the expressions of one policy or webhook: the names that they may use and the
/// variables that they share.
#[derive(Default)]
pub struct Composition {
    /// Whether `params` is a name.
    params: bool,
    variables: Vec<Variable>,
    /// The tree depth of each variable, including the variables that it uses.
    heights: Vec<usize>,
    /// The types of `object` and `oldObject`, and of `params`; `None` when they are checked at run
    /// time.
    types: Option<[Arc<Declared>; 2]>,
}

impl Composition {
    /// Creates an environment without variables, in which objects are checked at run time. `params`
    /// says whether expressions may use `params`.
    pub fn new(params: bool) -> Self {
        Self { params, ..Self::default() }
    }

    /// Like [`Composition::new`], with declared types of the objects and the parameters.
    pub fn with_types(params: bool, object: Arc<Declared>, parameters: Arc<Declared>) -> Self {
        Self { params, types: Some([object, parameters]), ..Self::default() }
    }

    /// Adds a variable. Later expressions may use it even if it does not compile; they then fail at
    /// run time.
    ///
    /// # Errors
    /// The compile error. The variable is added all the same.
    pub fn add_variable(&mut self, name: &str, source: &str) -> Result<(), String> {
        let program = self.compile(source, &[], true);
        let height = program.as_ref().map_or(0, |program| self.height(program));
        let problem = program.as_ref().err().cloned();
        self.variables.push(Variable { name: name.to_owned(), program });
        self.heights.push(height);
        problem.map_or(Ok(()), Err)
    }

    /// Compiles an expression whose result must have one of the types `results`, or any if there
    /// are none. `authorizer` says whether it may use `authorizer`. A compile error is returned by
    /// each evaluation.
    pub fn expression(&self, source: &str, results: &[Type], authorizer: bool) -> Expression {
        let program = self.compile(source, results, authorizer);
        Expression { source: source.to_owned(), program }
    }

    /// Compiles the expression of a mutation, which may build messages. A compile error is returned
    /// by each evaluation.
    pub fn mutation(&self, source: &str, result: &Type) -> Expression {
        let program = self.compile_mutation(source, result);
        Expression { source: source.to_owned(), program }
    }

    /// Compiles the expression of a mutation. `result` is its type.
    ///
    /// # Errors
    /// The compile error, in the words of Kubernetes.
    pub fn compile_mutation(&self, source: &str, result: &Type) -> Result<Program, String> {
        let program = Program::compile_with(source, &self.inputs(true), Vocabulary::Mutations);
        self.check_result(program, std::slice::from_ref(result))
    }

    /// Compiles an expression whose result must have one of the types `results`, or any if there
    /// are none.
    ///
    /// # Errors
    /// The compile error, in the words of Kubernetes.
    pub fn compile(
        &self,
        source: &str,
        results: &[Type],
        authorizer: bool,
    ) -> Result<Program, String> {
        self.check_result(Program::compile(source, &self.inputs(authorizer)), results)
    }

    fn check_result(
        &self,
        program: Result<Program, CompileError>,
        results: &[Type],
    ) -> Result<Program, String> {
        let program = program.map_err(|error| error.to_string())?;
        let found = program.result_type();
        if !results.is_empty() && !results.contains(found) {
            let expected: Vec<String> = results.iter().map(type_name).collect();
            let found = type_name(found);
            return Err(match expected.as_slice() {
                [expected] => format!("must evaluate to {expected} but got {found}"),
                expected => {
                    format!("must evaluate to one of [{}] but got {found}", expected.join(" "))
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
            inputs.push(input("authorizer", typed_declaration(Type::Library(Library::Authorizer))));
            let resource = typed_declaration(Type::Library(Library::ResourceCheck));
            inputs.push(input("authorizer.requestResource", resource));
        }
        if !self.variables.is_empty() {
            let fields = self.variables.iter().map(|variable| {
                let kind =
                    variable.program.as_ref().map(|program| variable_type(program.result_type()));
                (variable.name.as_str(), typed_declaration(kind.unwrap_or(Type::Dyn)))
            });
            inputs.push(input(VARIABLES, structure("kubernetes.variables", fields)));
        }
        inputs
    }

    /// Binds the variables to the values of one write. Each variable is evaluated at most once.
    pub fn over<'a>(&'a self, facts: Facts<'a>) -> Rc<Composed<'a>> {
        Composed::new(&self.variables, move |name| facts.input_value(name))
    }
}

/// The CEL name of a type.
fn type_name(kind: &Type) -> String {
    match kind {
        Type::Null => "null_type".to_owned(),
        Type::Timestamp => "google.protobuf.Timestamp".to_owned(),
        Type::Duration => "google.protobuf.Duration".to_owned(),
        other => other.to_string(),
    }
}

/// The type that a variable is declared with. Composite library types are checked at run time.
fn variable_type(kind: &Type) -> Type {
    match kind {
        Type::Object(_)
        | Type::Library(_)
        | Type::Message(_)
        | Type::Optional(_)
        | Type::Type(_) => Type::Dyn,
        other => other.clone(),
    }
}

/// The values of one write. Absent ones are JSON null.
#[derive(Clone, Copy)]
pub struct Facts<'a> {
    /// The object as it will be written; null in a delete.
    pub object: &'a Value,
    /// The stored object; null in a create.
    pub old_object: &'a Value,
    /// The request as an AdmissionReview has it, without the objects. See [`Request::attributes`].
    pub request: &'a Value,
    /// The Namespace object of the write; null for cluster-scoped resources.
    pub namespace: &'a Value,
    /// The parameter object of the binding; null if there is none.
    pub params: &'a Value,
    /// Evaluates authorization checks of the expression.
    pub authority: &'a RequestAuthority<'a>,
}

impl<'a> Facts<'a> {
    fn input_value(&self, name: &str) -> Option<Given<'a>> {
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

/// Evaluates expressions in order, all within `budget` cost units. An absent expression has an
/// absent result. Returns the results and the remaining budget.
///
/// # Errors
/// The budget is exhausted. Then there are no results.
pub fn evaluate_all<'a>(
    composed: &Composed<'a>,
    expressions: impl IntoIterator<Item = Option<&'a Expression>>,
    mut budget: u64,
) -> Result<(Vec<Option<EvaluationResult<'a>>>, u64), String> {
    let mut results = Vec::new();
    for expression in expressions {
        let Some(expression) = expression else {
            results.push(None);
            continue;
        };
        let program = match &expression.program {
            Ok(program) => program,
            Err(problem) => {
                results.push(Some(Err(format!("compilation error: {problem}"))));
                continue;
            }
        };
        let (value, cost) = composed.evaluate(program);
        budget = budget.checked_sub(cost).ok_or(OUT_OF_BUDGET)?;
        let source = &expression.source;
        results.push(Some(
            value.map_err(|error| format!("expression '{source}' resulted in error: {error}")),
        ));
    }
    Ok((results, budget))
}

/// Evaluates authorization checks of expressions with the server's authorizer, for the user who
/// sent the write.
pub struct RequestAuthority<'a> {
    authorizer: Option<&'a dyn Authorizer>,
    user: &'a UserInfo,
    /// The resource of the write, for `authorizer.requestResource`.
    resource: ResourceCheck,
}

impl<'a> RequestAuthority<'a> {
    /// Creates the authority of one request. Without an authorizer every check returns an error.
    pub fn new(authorizer: Option<&'a dyn Authorizer>, request: &AdmissionRequest<'a>) -> Self {
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
    fn decide(&self, asker: &AccessSubject, question: &AccessQuery) -> AccessDecision {
        let Some(authorizer) = self.authorizer else {
            let error = Some("this server has no authorizer".to_owned());
            return AccessDecision { error, ..AccessDecision::default() };
        };
        let user = match asker {
            AccessSubject::Requester => self.user.clone(),
            AccessSubject::ServiceAccount { namespace, name } => UserInfo::new(
                &format!("system:serviceaccount:{namespace}:{name}"),
                &["system:serviceaccounts", &format!("system:serviceaccounts:{namespace}")],
            ),
        };
        // Rules have no selectors yet, so a check with a selector is a check of all objects.
        let attributes = match question.clone() {
            AccessQuery::Path { path, verb } => {
                Attributes { user, verb, path, ..Attributes::default() }
            }
            AccessQuery::Resource { resource, verb } => Attributes {
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
        AccessDecision { allowed, reason, error: None }
    }
}

fn anything() -> Arc<Declared> {
    Arc::new(Declared { nullable: true, ..Declared::dynamic() })
}

fn typed_declaration(kind: Type) -> Arc<Declared> {
    declaration(DeclaredKind::Typed(kind))
}

/// The declared type of `request`: the request of an AdmissionReview without the objects.
static REQUEST: LazyLock<Arc<Declared>> = LazyLock::new(|| {
    let kind = || texts_of("kubernetes.GroupVersionKind", &["group", "version", "kind"]);
    let resource =
        || texts_of("kubernetes.GroupVersionResource", &["group", "version", "resource"]);
    let user = [
        ("username", text()),
        ("uid", text()),
        ("groups", list(text())),
        ("extra", declaration(DeclaredKind::Map(list(text())))),
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
        ("dryRun", declaration(DeclaredKind::Bool)),
        ("options", Arc::new(Declared::dynamic())),
    ];
    structure("kubernetes.AdmissionRequest", fields)
});

/// The declared type of `namespaceObject`. Kubernetes declares `UID` in capitals here.
static NAMESPACE: LazyLock<Arc<Declared>> = LazyLock::new(|| {
    let time = || declaration(DeclaredKind::DateTime);
    let texts = || declaration(DeclaredKind::Map(text()));
    let metadata = [
        ("name", text()),
        ("generateName", text()),
        ("namespace", text()),
        ("labels", texts()),
        ("annotations", texts()),
        ("UID", text()),
        ("creationTimestamp", time()),
        ("deletionGracePeriodSeconds", declaration(DeclaredKind::Int)),
        ("deletionTimestamp", time()),
        ("generation", declaration(DeclaredKind::Int)),
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

fn declaration(kind: DeclaredKind) -> Arc<Declared> {
    Arc::new(Declared::new(kind, u64::MAX, 1))
}

fn text() -> Arc<Declared> {
    declaration(DeclaredKind::Text)
}

fn list(item: Arc<Declared>) -> Arc<Declared> {
    declaration(DeclaredKind::List(item, ListIdentity::Position))
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
        .map(|(name, declared)| (name.into(), DeclaredField { name: name.into(), declared }));
    let fields: BTreeMap<Box<str>, DeclaredField> = fields.collect();
    declaration(DeclaredKind::Object(Arc::new(Object { name: name.to_owned(), fields })))
}

#[cfg(test)]
mod tests;
