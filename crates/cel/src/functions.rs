//! All functions and their overloads.
//!
//! The names of overloads are those of `cel-go` and Kubernetes, because they determine costs.

mod tables;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use self::tables::{EXTENSIONS, KUBERNETES, OPERATORS, STANDARD};
use crate::types::{Library, Type};

/// One signature of a function.
#[derive(Debug)]
pub(crate) struct Overload {
    pub id: &'static str,
    /// Called as `a.f(b)`; the receiver is the first parameter.
    pub member: bool,
    pub parameters: Vec<Type>,
    pub result: Type,
    /// The number of type variables.
    pub variables: u32,
}

pub(crate) fn overloads(function: &str) -> Option<&'static [Overload]> {
    FUNCTIONS.get(function).map(Vec::as_slice)
}

static FUNCTIONS: LazyLock<HashMap<&'static str, Vec<Overload>>> = LazyLock::new(|| {
    let mut functions: HashMap<&'static str, Vec<Overload>> = HashMap::new();
    let lines = [OPERATORS, STANDARD, EXTENSIONS, KUBERNETES].into_iter().flat_map(str::lines);
    for line in lines.map(str::trim).filter(|line| !line.is_empty()) {
        let (name, overload) = parse(line);
        functions.entry(name).or_default().push(overload);
    }
    functions
});

/// Parses a line of the tables.
fn parse(line: &'static str) -> (&'static str, Overload) {
    let (head, result) = line.rsplit_once(") ").expect("a result follows the parameters");
    let (names, parameters) = head.split_once('(').expect("parameters are in parentheses");
    let mut names = names.split_whitespace();
    let name = names.next().expect("a function has a name");
    let id = names.next().expect("an overload has a name");
    let member = names.next() == Some(".");
    let mut parameters = parameters;
    let mut types = Vec::new();
    while !parameters.is_empty() {
        let (parameter, rest) = parse_type(parameters);
        types.push(parameter);
        parameters = rest.trim_start_matches([',', ' ']);
    }
    let result = parse_type(result).0;
    (name, Overload { id, member, parameters: types, result, variables: 3 })
}

fn parse_type(text: &'static str) -> (Type, &'static str) {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let inner = |rest: &'static str| {
        let (inner, rest) = parse_type(&rest[1..]);
        (Arc::new(inner), &rest[1..])
    };
    let simple = match name {
        "list" => {
            let (item, rest) = inner(rest);
            return (Type::List(item), rest);
        }
        "optional" => {
            let (item, rest) = inner(rest);
            return (Type::Optional(item), rest);
        }
        "type" => {
            let (item, rest) = inner(rest);
            return (Type::Type(item), rest);
        }
        "map" => {
            let (key, rest) = parse_type(&rest[1..]);
            let (value, rest) = parse_type(&rest[1..]);
            return (Type::map(key, value), &rest[1..]);
        }
        "A" => Type::Variable(0),
        "B" => Type::Variable(1),
        "C" => Type::Variable(2),
        "dyn" => Type::Dyn,
        "null" => Type::Null,
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::Text,
        "bytes" => Type::Bytes,
        "timestamp" => Type::Timestamp,
        "duration" => Type::Duration,
        "quantity" => Type::Library(Library::Quantity),
        "url" => Type::Library(Library::Url),
        "ip" => Type::Library(Library::Ip),
        "cidr" => Type::Library(Library::Cidr),
        "format" => Type::Library(Library::Format),
        "semver" => Type::Library(Library::Semver),
        "authorizer" => Type::Library(Library::Authorizer),
        "pathcheck" => Type::Library(Library::PathCheck),
        "groupcheck" => Type::Library(Library::GroupCheck),
        "resourcecheck" => Type::Library(Library::ResourceCheck),
        "decision" => Type::Library(Library::Decision),
        other => unreachable!("the tables know no type {other:?}"),
    };
    (simple, rest)
}
