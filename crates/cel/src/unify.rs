//! Whether types fit, and what that says of the types not known yet.

use crate::types::Type;

/// What has been found out about type variables.
#[derive(Debug, Default)]
pub(crate) struct Bindings {
    /// By the number of the variable.
    known: Vec<Option<Type>>,
    /// What was known before each change, so that a trial that fails leaves nothing behind.
    trail: Vec<(u32, Option<Type>)>,
}

impl Bindings {
    pub fn fresh(&mut self) -> Type {
        Type::Variable(self.reserve(1))
    }

    /// `count` fresh variables; the number of the first.
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

    /// `given` with all that is known put in. What is not known stays a variable, or becomes `dyn`.
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

    /// Whether all of one list fit the other. Learns from it only then.
    pub fn assign_all(&mut self, given: &[Type], wanted: &[Type]) -> bool {
        self.trail.clear();
        let fits = given.len() == wanted.len()
            && given.iter().zip(wanted).all(|(given, wanted)| self.fits(given, wanted));
        if !fits {
            for (name, before) in self.trail.drain(..).rev() {
                self.known[name as usize] = before;
            }
        }
        fits
    }

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

    /// Whether the variable can stand for `given`, and whether something was known of it before.
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

/// The one of two fitting types that says less.
pub(crate) fn most_general<'a>(a: &'a Type, b: &'a Type) -> &'a Type {
    if says_less_or_same(a, b) { a } else { b }
}

fn says_less_or_same(a: &Type, b: &Type) -> bool {
    if matches!(a, Type::Dyn | Type::Variable(_)) {
        return true;
    }
    if matches!(b, Type::Dyn | Type::Variable(_)) {
        return false;
    }
    let parameters = || a.parameters().into_iter().zip(b.parameters());
    a.same_kind(b)
        && (matches!(a, Type::Type(_)) || parameters().all(|(a, b)| says_less_or_same(a, b)))
}
