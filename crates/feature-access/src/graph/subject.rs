//! Who a binding gives its role to, and which of these a person is. Pure.

use api_management::{
    ClusterRoleTemplateBinding, GlobalRoleBinding, ProjectRoleTemplateBinding, user,
};
use feature_kit::Membership;
use feature_kit::access::ROLE_GROUP_PREFIX;

/// Who a role is given to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Subject {
    User(Box<str>),
    Group(Box<str>),
}

impl Subject {
    /// The subjects that a person is: the user, and each group from outside. A person's role groups
    /// are resolved here and never taken from outside.
    pub fn of_person<'a>(person: Membership<'a>) -> impl Iterator<Item = Self> + 'a {
        let user = (!person.user.is_empty()).then(|| Self::User(person.user.into()));
        let outside = person.groups.iter().filter(|group| !group.starts_with(ROLE_GROUP_PREFIX));
        user.into_iter().chain(outside.map(|group| Self::Group(group.as_str().into())))
    }

    /// `User` or `Group`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::User(_) => "User",
            Self::Group(_) => "Group",
        }
    }

    /// Id of the user, or the group as an identity provider knows it.
    pub fn name(&self) -> &str {
        let (Self::User(name) | Self::Group(name)) = self;
        name
    }

    /// The group, as an identity provider knows it; empty for a user.
    pub fn group(&self) -> &str {
        match self {
            Self::User(_) => "",
            Self::Group(name) => name,
        }
    }

    /// Those that a global binding names: one user or group.
    pub fn of_global(binding: &GlobalRoleBinding) -> Vec<Self> {
        subjects(&binding.user_name, "", ["", &binding.group_principal_name])
    }

    /// Those that a binding in a cluster names.
    pub fn of_cluster(binding: &ClusterRoleTemplateBinding) -> Vec<Self> {
        let groups = [binding.group_name.as_str(), &binding.group_principal_name];
        subjects(&binding.user_name, &binding.user_principal_name, groups)
    }

    /// Service accounts are none: they do not come through Drover, and are bound in the cluster.
    pub fn of_project(binding: &ProjectRoleTemplateBinding) -> Vec<Self> {
        let groups = [binding.group_name.as_str(), &binding.group_principal_name];
        subjects(&binding.user_name, &binding.user_principal_name, groups)
    }
}

fn subjects(user: &str, user_principal: &str, groups: [&str; 2]) -> Vec<Subject> {
    let user = match user {
        // A local principal names the user it belongs to.
        "" => user_principal.strip_prefix(user::LOCAL_PRINCIPAL).unwrap_or_default(),
        user => user,
    };
    let user = (!user.is_empty()).then(|| Subject::User(user.into()));
    let groups = groups.into_iter().filter(|group| !group.is_empty());
    user.into_iter().chain(groups.map(|group| Subject::Group(group.into()))).collect()
}
