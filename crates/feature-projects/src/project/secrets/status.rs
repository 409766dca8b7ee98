//! How the Secrets of the projects of one cluster stand in their namespaces, and what projects say
//! of it.

use std::collections::BTreeMap;

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
struct NamespaceStatus {
    /// Name of the project that it was in.
    project: Option<String>,
    problems: Vec<Problem>,
}

/// What was found, by namespace.
#[derive(Default)]
pub struct CopyStatus(Mutex<BTreeMap<String, NamespaceStatus>>);

impl CopyStatus {
    /// Notes what was found in a namespace. Answers which project it was in the last time, and the
    /// problems that are new.
    pub fn note(
        &self,
        namespace: &str,
        project: Option<&str>,
        problems: Vec<Problem>,
    ) -> (Option<String>, Vec<Problem>) {
        let found = NamespaceStatus { project: project.map(str::to_owned), problems };
        let mut all = self.0.lock();
        let old = all.remove(namespace).unwrap_or_default();
        let is_new = |problem: &&Problem| !old.problems.contains(problem);
        let new = found.problems.iter().filter(is_new).cloned().collect();
        if found.project.is_some() {
            all.insert(namespace.to_owned(), found);
        }
        (old.project, new)
    }

    /// All problems of a project that has these namespaces; `None` while not all of them have been
    /// looked at.
    pub fn problems(&self, project: &str, namespaces: &[String]) -> Option<Vec<Problem>> {
        let all = self.0.lock();
        let mut problems = Vec::new();
        for namespace in namespaces {
            let found = all.get(namespace);
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
