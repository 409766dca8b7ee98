//! Generates mostly valid expressions of a given type, from a seed.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

/// The type of an expression.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Bool,
    Int,
    Double,
    Text,
    Bytes,
    Time,
    Duration,
    Texts,
    Ints,
    Map,
    Item,
    Items,
    Dyn,
    OptionalInt,
    OptionalText,
    Quantity,
    Url,
    Ip,
    Cidr,
    Semver,
}

use Kind::{
    Bool, Bytes, Cidr, Double, Duration, Dyn, Int, Ints, Ip, Item, Items, Map, OptionalInt,
    OptionalText, Quantity, Semver, Text, Texts, Time, Url,
};

/// See its first lines.
const TEMPLATES: &str = include_str!("templates.txt");

/// The remaining depth at which an expression must end.
fn leaf(kind: Kind) -> &'static [&'static str] {
    match kind {
        Bool => &["true", "{S}.b", "has({S}.i)"],
        Int => &["0", "1", "3", "-1", "{S}.i", "{S}.j", "{S}.o.x"],
        Double => &["0.5", "{S}.d"],
        Text => &["'a'", "''", "{S}.s", "{S}.t", "{S}.e", "{S}.o.opt"],
        Bytes => &["b'hello'", "{S}.by"],
        Time => &["{S}.dt", "{S}.day", "timestamp('2021-01-01T00:00:00Z')"],
        Duration => &["{S}.du", "duration('90m')"],
        Texts => &["['a', 'b']", "{S}.l", "{S}.st"],
        Ints => &["[1, 2, 3]", "{S}.n"],
        Map => &["{S}.m", "{'a': 'x'}"],
        Item => &["{S}.ml[0]"],
        Items => &["{S}.ml"],
        Dyn => &["{S}.ios"],
        OptionalInt => &["{S}.?i", "optional.none()"],
        OptionalText => &["{S}.?s", "{S}.m[?'a']"],
        Quantity => &["quantity('1Gi')", "quantity({S}.s)"],
        Url => &["url('https://a.example/p')", "url({S}.s)"],
        Ip => &["ip('10.0.0.1')", "ip({S}.s)"],
        Cidr => &["cidr('10.0.0.0/8')", "cidr({S}.t)"],
        Semver => &["semver('1.2.3')", "semver({S}.s)"],
    }
}

fn named(name: &str) -> Option<Kind> {
    Some(match name {
        "b" => Bool,
        "i" => Int,
        "d" => Double,
        "t" => Text,
        "by" => Bytes,
        "tm" => Time,
        "du" => Duration,
        "ts" => Texts,
        "is" => Ints,
        "m" => Map,
        "it" => Item,
        "ms" => Items,
        "dy" => Dyn,
        "oi" => OptionalInt,
        "os" => OptionalText,
        "q" => Quantity,
        "ur" => Url,
        "ip" => Ip,
        "ci" => Cidr,
        "sv" => Semver,
        _ => return None,
    })
}

const ALL: [Kind; 20] = [
    Bool,
    Int,
    Double,
    Text,
    Bytes,
    Time,
    Duration,
    Texts,
    Ints,
    Map,
    Item,
    Items,
    Dyn,
    OptionalInt,
    OptionalText,
    Quantity,
    Url,
    Ip,
    Cidr,
    Semver,
];

/// Sources that are invalid expressions, or invalid rules.
const BROKEN: [&str; 24] = [
    "",
    " ",
    "self.i",
    "self.s",
    "1 +",
    "(true",
    "self.none",
    "self.i.none == 1",
    "none == 1",
    "self.s.none()",
    "none(1)",
    "self.i + self.s == 1",
    "self.l.all(1, true)",
    "has(self)",
    "self.s.matches('[')",
    "duration('1x') == self.du",
    "int('abc') == 1",
    "[1, 'a'].size() == 2",
    "self.l.all(x, self.l.all(y, self.l.all(z, x + y + z != '')))",
    "self.u.all(x, self.u.all(y, x != y))",
    "self.u.all(x, x > 0)\n && true",
    "self.t.matches(self.t)",
    "'%d'.format(['a']) == ''",
    "self.u.sort() == self.u.distinct()",
];

/// Generates expressions.
pub struct Expressions {
    random: StdRng,
    templates: Vec<(Kind, &'static str)>,
}

/// Nesting of templates.
const DEPTH_MAX: usize = 3;

impl Expressions {
    pub fn new(seed: u64) -> Self {
        let lines = TEMPLATES.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        let templates = lines.map(|line| {
            let (kind, template) = line.split_once(' ').expect("a template follows its kind");
            (named(kind).expect("the kind is known"), template)
        });
        Self { random: StdRng::seed_from_u64(!seed), templates: templates.collect() }
    }

    /// A rule; `old`: it can use the old value, as an optional one when that is true.
    pub fn rule(&mut self, old: Option<bool>) -> String {
        if self.random.random_bool(0.04) {
            return self.pick(&BROKEN).to_owned();
        }
        self.of(Bool, old)
    }

    /// The expression of a message.
    pub fn message(&mut self, old: Option<bool>) -> String {
        let kind = if self.random.random_bool(0.05) { Int } else { Text };
        self.of(kind, old)
    }

    fn of(&mut self, kind: Kind, old: Option<bool>) -> String {
        let depth = self.random.random_range(1..=DEPTH_MAX);
        let text = self.expression(kind, depth, None);
        let mut out = String::new();
        let mut parts = text.split("{S}");
        out.push_str(parts.next().unwrap_or_default());
        for part in parts {
            let old_name = match old {
                Some(true) => "oldSelf.value()",
                _ => "oldSelf",
            };
            let is_old = old.is_some() && self.random.random_bool(0.5);
            out.push_str(if is_old { old_name } else { "self" });
            out.push_str(part);
        }
        out
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from.choose(&mut self.random).copied().expect("the choice is not empty")
    }

    /// An expression with `{S}` as placeholder of its value.
    fn expression(&mut self, kind: Kind, depth: usize, variable: Option<(&str, Kind)>) -> String {
        if let Some((name, of)) = variable
            && of == kind
            && self.random.random_bool(0.6)
        {
            return name.to_owned();
        }
        // Sometimes of another type than requested.
        let kind = match self.random.random_bool(0.01) {
            true => *ALL.choose(&mut self.random).expect("there are kinds"),
            false => kind,
        };
        let template = if depth == 0 {
            self.pick(leaf(kind))
        } else {
            let fit = self.templates.iter().filter(|(given, _)| *given == kind);
            let fit: Vec<&str> = fit.map(|(_, template)| *template).collect();
            self.pick(&fit)
        };
        self.filled(template, depth.saturating_sub(1))
    }

    fn filled(&mut self, template: &str, depth: usize) -> String {
        let mut out = String::new();
        let mut rest = template;
        while let Some(open) = rest.find('{') {
            let close = rest[open..].find('}').map(|at| open + at);
            out.push_str(&rest[..open]);
            let name = close.map(|close| &rest[open + 1..close]).unwrap_or_default();
            let (variable, name) = match name.split_once(':') {
                Some((variable, name)) if variable.len() == 1 => (Some(variable), name),
                _ => (None, name),
            };
            match (named(name), close) {
                (Some(kind), Some(close)) => {
                    let variable = variable.map(|variable| (variable, kind));
                    let part = self.expression(kind, depth, variable);
                    out.push_str(&part);
                    rest = &rest[close + 1..];
                }
                // A brace of the language, or the placeholder of the value.
                _ => {
                    out.push('{');
                    rest = &rest[open + 1..];
                }
            }
        }
        out.push_str(rest);
        out
    }
}
