//! What a namespace says of its project, and what follows from it. Pure.

/// The project that the annotation of a namespace names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim<'a> {
    None,
    /// By its name, a project of the cluster that the namespace is in.
    Own(&'a str),
    /// Of another cluster, or unreadable: other software's, without effect here.
    Foreign,
}

impl<'a> Claim<'a> {
    /// The project that an annotation of a namespace in `cluster` names.
    pub fn of(annotation: Option<&'a str>, cluster: &str) -> Self {
        match annotation.filter(|text| !text.is_empty()) {
            None => Self::None,
            Some(id) => match id.split_once(':') {
                Some((of, project)) if of == cluster && !project.is_empty() => Self::Own(project),
                _ => Self::Foreign,
            },
        }
    }

    /// Name of the project, if it is one of this cluster.
    pub fn project(self) -> Option<&'a str> {
        match self {
            Self::Own(project) => Some(project),
            Self::None | Self::Foreign => None,
        }
    }
}

/// What is to be done about a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Nothing,
    /// A change that was let through has come: this project holds from now on.
    Adopt(Option<String>),
    /// It is in this project from the start.
    Begin(String),
    /// The annotation and the label are to say this project again.
    PutBack(Option<String>),
}

/// Decides. `assigned` is what holds; `initial` the project of a namespace of which nobody has
/// decided yet; `is_pending` says whether a change to a project was let through; `is_project`
/// whether the cluster has a project of a name.
pub fn step(
    assigned: Option<&str>,
    initial: Option<&str>,
    claim: Claim<'_>,
    label: Option<&str>,
    is_pending: impl Fn(Option<&str>) -> bool,
    is_project: impl Fn(&str) -> bool,
) -> Step {
    let claimed = claim.project();
    if claimed != assigned && is_pending(claimed) {
        return Step::Adopt(claimed.map(str::to_owned));
    }
    if let (None, Some(project)) = (assigned, initial)
        && claim != Claim::Foreign
    {
        return Step::Begin(project.to_owned());
    }
    let is_as_assigned = match assigned {
        Some(project) => claimed == assigned && label == Some(project),
        // What is not about a project of this cluster is not ours.
        None => claimed.is_none() && !label.is_some_and(is_project),
    };
    match is_as_assigned {
        true => Step::Nothing,
        false => Step::PutBack(assigned.map(str::to_owned)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(assigned: Option<&str>, annotation: Option<&str>, label: Option<&str>) -> Step {
        let is_pending = |project: Option<&str>| project == Some("p-let");
        let claim = Claim::of(annotation, "c-a");
        step(assigned, None, claim, label, is_pending, |name| name != "other")
    }

    #[test]
    fn what_was_let_through_holds_and_every_other_change_is_put_back() {
        let back = |project: Option<&str>| Step::PutBack(project.map(str::to_owned));
        assert_eq!(after(None, None, None), Step::Nothing);
        assert_eq!(after(None, Some("c-a:p-let"), None), Step::Adopt(Some("p-let".to_owned())));
        assert_eq!(after(Some("p-1"), Some("c-a:p-1"), Some("p-1")), Step::Nothing);
        assert_eq!(after(Some("p-1"), Some("c-a:p-1"), None), back(Some("p-1")));
        assert_eq!(after(Some("p-1"), Some("c-a:p-1"), Some("p-2")), back(Some("p-1")));
        for annotation in
            [None, Some(""), Some("c-a:p-2"), Some("c-b:p-1"), Some("p-1"), Some("c-a:")]
        {
            assert_eq!(
                after(Some("p-1"), annotation, Some("p-1")),
                back(Some("p-1")),
                "{annotation:?}"
            );
        }
        assert_eq!(after(None, Some("c-a:p-2"), None), back(None));
        assert_eq!(after(None, None, Some("p-2")), back(None));
    }

    #[test]
    fn a_namespace_begins_in_its_initial_project_unless_something_else_was_decided() {
        let begin = |assigned, annotation| {
            let is_pending = |project: Option<&str>| project == Some("p-let");
            let claim = Claim::of(annotation, "c-a");
            step(assigned, Some("p-start"), claim, None, is_pending, |_| true)
        };
        let start = Step::Begin("p-start".to_owned());
        assert_eq!(begin(None, None), start);
        assert_eq!(begin(None, Some("")), start);
        // What the cluster itself says decides nothing.
        assert_eq!(begin(None, Some("c-a:p-2")), start);
        assert_eq!(begin(None, Some("c-a:p-let")), Step::Adopt(Some("p-let".to_owned())));
        assert_eq!(begin(Some("p-1"), None), Step::PutBack(Some("p-1".to_owned())));
        assert_eq!(begin(None, Some("c-b:p-2")), Step::Nothing);
    }

    #[test]
    fn what_other_software_says_of_projects_stays() {
        assert_eq!(after(None, Some("c-b:p-2"), Some("other")), Step::Nothing);
        assert_eq!(after(None, Some("anything"), None), Step::Nothing);
    }
}
