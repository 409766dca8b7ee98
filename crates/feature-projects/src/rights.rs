//! Whether somebody may do something in the management API, as its authorizer says.

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};

/// What is requested of a kind of ours, and by whom.
pub(crate) struct Question<'a> {
    pub user: &'a str,
    pub groups: &'a [String],
    pub verb: &'a str,
    /// In the plural.
    pub resource: &'a str,
    pub namespace: &'a str,
    /// None: all of the namespace.
    pub name: Option<&'a str>,
}

/// Whether it is allowed. `client` may create SubjectAccessReviews.
///
/// # Errors
/// The API does not respond.
pub(crate) async fn is_allowed(
    client: &Client,
    question: &Question<'_>,
) -> Result<bool, kube::Error> {
    let review = SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: Some(question.user.to_owned()),
            groups: Some(question.groups.to_vec()),
            resource_attributes: Some(ResourceAttributes {
                verb: Some(question.verb.to_owned()),
                group: Some(api_management::GROUP.to_owned()),
                resource: Some(question.resource.to_owned()),
                namespace: Some(question.namespace.to_owned()),
                name: question.name.map(str::to_owned),
                ..ResourceAttributes::default()
            }),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    };
    review_of(client, &review).await
}

/// The answer of the API server of `client`.
///
/// # Errors
/// It does not respond.
pub(crate) async fn review_of(
    client: &Client,
    review: &SubjectAccessReview,
) -> Result<bool, kube::Error> {
    let reviews: Api<SubjectAccessReview> = Api::all(client.clone());
    let answer = reviews.create(&PostParams::default(), review).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}
