//! Unification of types.

use crate::types::Type;

/// The types that are bound to type variables.
#[derive(Debug, Default)]
pub(crate) struct Bindings {
    /// Indexed by the number of the variable.
    known: Vec<Option<Type>>,
    /// The value before each change, so that a failed attempt can be undone.
    trail: Vec<(u32, Option<Type>)>,
}

impl Bindings {
    /// A new type variable.
    pub fn fresh(&mut self) -> Type {
        Type::Variable(self.reserve(1))
    }

    /// Adds `count` new variables and returns the number of the first.
    pub fn reserve(&mut self, count: u32) -> u32 {
        let first = self.known.len();
        self.known.resize(first + count as usize, None);
        first as u32
    }

    fn find(&self, name: u32) -> Option<&Type> {
        self.known.get(name as usize)?.as_ref()
    }

    fn learn(&mut self, name: u32, found: Type) {
        let before = self.known[name as usize].replace(found);
        self.trail.push((name, before));
    }

    /// `given` with its bound variables replaced. Unbound variables stay, or become `dyn`.
    pub fn resolve(&self, given: &Type, unknown_is_dyn: bool) -> Type {
        match given {
            Type::Variable(name) => match self.find(*name) {
                Some(found) => self.resolve(found, unknown_is_dyn),
                None if unknown_is_dyn => Type::Dyn,
                None => given.clone(),
            },
            other => other.with_parameters(&mut |inner| self.resolve(inner, unknown_is_dyn)),
        }
    }

    /// Whether all types of one list are assignable to the other. Binds variables only then.
    pub fn assign_all(&mut self, given: &[Type], expected: &[Type]) -> bool {
        self.trail.clear();
        let fits = given.len() == expected.len()
            && given.iter().zip(expected).all(|(given, expected)| self.fits(given, expected));
        if !fits {
            for (name, before) in self.trail.drain(..).rev() {
                self.known[name as usize] = before;
            }
        }
        fits
    }

    /// Whether `b` is assignable to `a`. Binds variables only then.
    pub fn assign(&mut self, a: &Type, b: &Type) -> bool {
        self.assign_all(std::slice::from_ref(a), std::slice::from_ref(b))
    }

    fn fits(&mut self, a: &Type, b: &Type) -> bool {
        if let Type::Variable(name) = b {
            match self.bind(a, *name) {
                (true, _) => return true,
                (false, true) => return false,
                (false, false) => {}
            }
        }
        if let Type::Variable(name) = a {
            return self.bind(b, *name).0;
        }
        if a.is_dyn() || b.is_dyn() {
            return true;
        }
        match (a, b) {
            (Type::Null, other) | (other, Type::Null) => matches!(
                other,
                Type::Null
                    | Type::Object(_)
                    | Type::Library(_)
                    | Type::Message(_)
                    | Type::Optional(_)
                    | Type::Timestamp
                    | Type::Duration
            ),
            (Type::Type(_), Type::Type(_)) => true,
            _ => {
                a.same_kind(b)
                    && a.parameters().iter().zip(b.parameters()).all(|(a, b)| self.fits(a, b))
            }
        }
    }

    /// Binds the variable to `given`. Returns whether that is possible, and whether it was bound
    /// before.
    fn bind(&mut self, given: &Type, name: u32) -> (bool, bool) {
        if *given == Type::Variable(name) {
            return (true, true);
        }
        if let Some(known) = self.find(name).cloned() {
            if *given == known {
                return (true, true);
            }
            if !self.fits(given, &known) {
                return (false, true);
            }
            let general = most_general(given, &known).clone();
            if !self.mentions(&general, name) {
                self.learn(name, general);
            }
            return (true, true);
        }
        if self.mentions(given, name) {
            return (false, false);
        }
        self.learn(name, given.clone());
        (true, false)
    }

    fn mentions(&self, given: &Type, name: u32) -> bool {
        match given {
            Type::Variable(other) if *other == name => true,
            Type::Variable(other) => {
                self.find(*other).is_some_and(|known| self.mentions(known, name))
            }
            other => other.parameters().iter().any(|inner| self.mentions(inner, name)),
        }
    }
}

/// The more general one of two compatible types.
pub(crate) fn most_general<'a>(a: &'a Type, b: &'a Type) -> &'a Type {
    if is_as_general(a, b) { a } else { b }
}

fn is_as_general(a: &Type, b: &Type) -> bool {
    if matches!(a, Type::Dyn | Type::Variable(_)) {
        return true;
    }
    if matches!(b, Type::Dyn | Type::Variable(_)) {
        return false;
    }
    let parameters = || a.parameters().into_iter().zip(b.parameters());
    a.same_kind(b) && (matches!(a, Type::Type(_)) || parameters().all(|(a, b)| is_as_general(a, b)))
}
