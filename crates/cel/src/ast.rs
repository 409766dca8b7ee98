//! Expressions with their macros expanded.

/// Identifies a node of one expression: an index into the tables of later steps.
pub(crate) type Id = u32;

#[derive(Clone, Debug)]
pub(crate) struct Expr {
    pub id: Id,
    /// Characters before the node in the source.
    pub at: u32,
    /// Nodes on the longest path down, itself included; at most [`DEPTH_MAX`](crate::limits).
    pub height: u16,
    pub kind: ExprKind,
}

#[derive(Clone, Debug)]
pub(crate) enum ExprKind {
    Literal(Literal),
    Ident(Box<str>),
    Select {
        operand: Box<Expr>,
        field: Box<str>,
        test: bool,
    },
    Call {
        function: Box<str>,
        target: Option<Box<Expr>>,
        args: Vec<Expr>,
    },
    List(Vec<Element>),
    Map(Vec<MapEntry>),
    /// A message; see [`message`](crate::message) for the types.
    Struct {
        name: Box<str>,
        fields: Vec<MessageField>,
    },
    Fold(Box<Fold>),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Box<str>),
    Bytes(Box<[u8]>),
}

#[derive(Clone, Debug)]
pub(crate) struct Element {
    pub value: Expr,
    pub optional: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct MapEntry {
    pub key: Expr,
    pub value: Expr,
    pub optional: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct MessageField {
    /// Characters before the colon that follows the name.
    pub at: u32,
    pub name: Box<str>,
    pub value: Expr,
    pub optional: bool,
}

/// The expansion of every macro over lists and maps: an accumulator that each element updates.
#[derive(Clone, Debug)]
pub(crate) struct Fold {
    pub range: Expr,
    pub variable: Box<str>,
    /// The second variable, if any: then the first is the index or key, and this is the value.
    pub second: Option<Box<str>>,
    pub accumulator: Box<str>,
    pub init: Expr,
    pub condition: Expr,
    pub step: Expr,
    pub result: Expr,
}

/// The name of the macros' accumulator, which no identifier in a source can have.
pub(crate) const ACCUMULATOR: &str = "@result";

impl Expr {
    /// The child expressions, in the order of their evaluation.
    pub(crate) fn children(&self) -> Vec<&Expr> {
        match &self.kind {
            ExprKind::Literal(_) | ExprKind::Ident(_) => Vec::new(),
            ExprKind::Select { operand, .. } => vec![operand],
            ExprKind::Call { target, args, .. } => {
                target.as_deref().into_iter().chain(args).collect()
            }
            ExprKind::List(elements) => elements.iter().map(|element| &element.value).collect(),
            ExprKind::Map(entries) => entries.iter().flat_map(|e| [&e.key, &e.value]).collect(),
            ExprKind::Struct { fields, .. } => fields.iter().map(|field| &field.value).collect(),
            ExprKind::Fold(fold) => {
                vec![&fold.range, &fold.init, &fold.condition, &fold.step, &fold.result]
            }
        }
    }
}

impl Fold {
    /// Whether this binds a name to a value, without folding a list or map.
    pub(crate) fn is_binding(&self) -> bool {
        &*self.accumulator != ACCUMULATOR
    }
}

/// The names of operators as functions, those of cel-go.
pub(crate) mod operator {
    pub const CONDITIONAL: &str = "_?_:_";
    pub const AND: &str = "_&&_";
    pub const OR: &str = "_||_";
    pub const NOT: &str = "!_";
    pub const EQUALS: &str = "_==_";
    pub const NOT_EQUALS: &str = "_!=_";
    pub const LESS: &str = "_<_";
    pub const LESS_EQUALS: &str = "_<=_";
    pub const GREATER: &str = "_>_";
    pub const GREATER_EQUALS: &str = "_>=_";
    pub const ADD: &str = "_+_";
    pub const SUBTRACT: &str = "_-_";
    pub const MULTIPLY: &str = "_*_";
    pub const DIVIDE: &str = "_/_";
    pub const MODULO: &str = "_%_";
    pub const NEGATE: &str = "-_";
    pub const INDEX: &str = "_[_]";
    pub const OPTIONAL_INDEX: &str = "_[?_]";
    pub const OPTIONAL_SELECT: &str = "_?._";
    pub const IN: &str = "@in";
    pub const NOT_STRICTLY_FALSE: &str = "@not_strictly_false";
    pub const MAP_INSERT: &str = "cel.@mapInsert";
}
