//! How the Secrets of the projects of one cluster stand in their namespaces, and what projects say of it.

use std::collections::{BTreeMap, BTreeSet};

use controller::ConditionState;
use parking_lot::Mutex;

/// Problems that a condition spells out; the rest is counted.
const SPELT_OUT_MAX: usize = 5;

/// Why a Secret of a project is not in one of its namespaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// One CamelCase word.
    pub reason: &'static str,
    /// For people, with the names of both.
    pub message: String,
}

/// What was found in one namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Found {
    /// Name of the project that it was in.
    project: Option<String>,
    problems: Vec<Problem>,
}

#[derive(Default)]
struct State {
    /// Namespaces by name of their project.
    namespaces: BTreeMap<String, BTreeSet<String>>,
    /// By namespace.
    found: BTreeMap<String, Found>,
}

/// Namespaces by project, and what was found in each.
#[derive(Default)]
pub struct Standing(Mutex<State>);

impl Standing {
    /// A namespace was put from one project into another; `None`: into none.
    pub fn moved(&self, namespace: &str, from: Option<&str>, to: Option<&str>) {
        let mut state = self.0.lock();
        if let Some(from) = from
            && let Some(set) = state.namespaces.get_mut(from)
        {
            set.remove(namespace);
            if set.is_empty() {
                state.namespaces.remove(from);
            }
        }
        if let Some(to) = to {
            state.namespaces.entry(to.to_owned()).or_default().insert(namespace.to_owned());
        }
    }

    /// The namespaces of a project.
    pub fn namespaces(&self, project: &str) -> Vec<String> {
        self.0.lock().namespaces.get(project).into_iter().flatten().cloned().collect()
    }

    /// Notes what was found in a namespace. Answers which project it was in the last time, and the problems
    /// that are new.
    pub fn note(
        &self,
        namespace: &str,
        project: Option<&str>,
        problems: Vec<Problem>,
    ) -> (Option<String>, Vec<Problem>) {
        let found = Found { project: project.map(str::to_owned), problems };
        let mut state = self.0.lock();
        let old = state.found.remove(namespace).unwrap_or_default();
        let is_new = |problem: &&Problem| !old.problems.contains(problem);
        let new = found.problems.iter().filter(is_new).cloned().collect();
        if found.project.is_some() {
            state.found.insert(namespace.to_owned(), found);
        }
        (old.project, new)
    }

    /// All problems of a project; `None` while not all of its namespaces have been looked at.
    pub fn problems(&self, project: &str) -> Option<Vec<Problem>> {
        let state = self.0.lock();
        let mut problems = Vec::new();
        for namespace in state.namespaces.get(project).into_iter().flatten() {
            let found = state.found.get(namespace);
            let found = found.filter(|found| found.project.as_deref() == Some(project))?;
            problems.extend(found.problems.iter().cloned());
        }
        Some(problems)
    }
}

/// What the project says. Pure.
pub fn condition(problems: &[Problem]) -> ConditionState {
    let Some(first) = problems.first() else { return ConditionState::yes() };
    let spelt: Vec<&str> =
        problems.iter().take(SPELT_OUT_MAX).map(|problem| problem.message.as_str()).collect();
    let mut message = spelt.join("; ");
    if problems.len() > SPELT_OUT_MAX {
        message.push_str(&format!("; and {} more", problems.len() - SPELT_OUT_MAX));
    }
    ConditionState::no(first.reason, message)
}
