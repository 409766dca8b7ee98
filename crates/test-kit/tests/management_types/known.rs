//! Known differences between served schemas and the reference, with reasons.

use std::collections::BTreeMap;

/// Types without a collection: clients use `template` and `templateVersion`, and `ldapConfig` only
/// occurs inside others. Whether their schemas are shown makes no difference.
pub const NOT_OFFERED: [&str; 3] = ["catalogTemplate", "catalogTemplateVersion", "ldapConfig"];

/// Reasons, and the keys that each explains, with `*` for any text.
pub type Reasons = &'static [(&'static str, &'static [&'static str])];

/// For the types under `/v3`.
pub const MANAGEMENT: Reasons = &[
    ("not offered", &NOT_OFFERED),
    ("owners are bookkeeping and not shown", &["*.ownerReferences"]),
    (
        "beyond the reference: tokens of one project, last use, groups under another claim, a \
         directory at another address",
        &[
            "googleOauthConfig.directoryEndpoint",
            "keyCloakOIDCConfig.groupsClaim",
            "oidcConfig.groupsClaim",
            "token.lastUsedAt",
            "token.projectId",
        ],
    ),
    (
        "beyond the reference: a test of a provider that changes nothing",
        &["*Config?test", "authConfigTestedOutput", "authConfigTestedOutput.*"],
    ),
    (
        "beyond the reference: Pod Security Admission, which Rancher has since 2.7, also in projects",
        &[
            "cluster.defaultPodSecurityAdmissionConfigurationTemplateName",
            "podSecurityAdmissionConfigurationTemplate",
            "podSecurityAdmissionConfigurationTemplate*",
            "podSecurityPolicyTemplate.podSecurityLevel",
            "podSecurityPolicyTemplate.podSecurityNotCovered",
            "project.podSecurityAdmissionConfigurationTemplateName",
        ],
    ),
    (
        "null takes the template away, as the reference says of the action",
        &["setPodSecurityPolicyTemplateInput.podSecurityPolicyTemplateId"],
    ),
    (
        "the reference has these actions where it describes logins, not with the type",
        &[
            "keyCloakOIDCConfig?configureTest",
            "keyCloakOIDCConfig?disable",
            "keyCloakOIDCConfig?testAndApply",
            "oidcApplyInput",
            "oidcApplyInput.*",
            "oidcConfig?configureTest",
            "oidcConfig?disable",
            "oidcConfig?testAndApply",
            "oidcTestOutput",
            "oidcTestOutput.*",
        ],
    ),
    (
        "a new password ends logins, and says how many",
        &[
            "changePasswordInput.endTokens",
            "changePasswordOutput",
            "changePasswordOutput.endedTokens",
            "changePasswordOutput.remainingTokens",
            "setPasswordInput.endTokens",
            "user??changepassword",
        ],
    ),
    (
        "the server knows its features; a POST is 405, as in Rancher, and the schema says so",
        &["feature"],
    ),
    (
        "actions are offered when what they do is there",
        &[
            "adfsConfig?disable",
            "adfsConfig?testAndEnable",
            "catalog??refresh",
            "catalog?refresh",
            "cluster?disableMonitoring",
            "cluster?editMonitoring",
            "cluster?enableMonitoring",
            "cluster?exportYaml",
            "cluster?importYaml",
            "cluster?rotateCertificates",
            "cluster?runSecurityScan",
            "cluster?saveAsTemplate",
            "cluster?viewMonitoring",
            "clusterAlertRule?activate",
            "clusterAlertRule?deactivate",
            "clusterAlertRule?mute",
            "clusterAlertRule?unmute",
            "clusterCatalog??refresh",
            "clusterCatalog?refresh",
            "clusterLogging??dryRun",
            "clusterLogging??test",
            "clusterMonitorGraph??query",
            "clusterTemplateRevision??listquestions",
            "clusterTemplateRevision?disable",
            "clusterTemplateRevision?enable",
            "globalDns?addProjects",
            "globalDns?removeProjects",
            "keyCloakConfig?disable",
            "keyCloakConfig?testAndEnable",
            "kontainerDriver??refresh",
            "monitorMetric??listclustermetricname",
            "monitorMetric??listprojectmetricname",
            "monitorMetric??querycluster",
            "monitorMetric??queryproject",
            "multiClusterApp?addProjects",
            "multiClusterApp?removeProjects",
            "multiClusterApp?rollback",
            "nodeDriver?activate",
            "nodeDriver?deactivate",
            "notifier??send",
            "notifier?send",
            "oktaConfig?disable",
            "oktaConfig?testAndEnable",
            "pingConfig?disable",
            "pingConfig?testAndEnable",
            "project?disableMonitoring",
            "project?editMonitoring",
            "project?enableMonitoring",
            "project?exportYaml",
            "project?viewMonitoring",
            "projectAlertRule?activate",
            "projectAlertRule?deactivate",
            "projectAlertRule?mute",
            "projectAlertRule?unmute",
            "projectCatalog??refresh",
            "projectCatalog?refresh",
            "projectLogging??dryRun",
            "projectLogging??test",
            "projectMonitorGraph??query",
            "shibbolethConfig?disable",
            "shibbolethConfig?testAndEnable",
        ],
    ),
    (
        "only actions that are not offered use them",
        &[
            "catalogRefresh",
            "clusterMetricNamesInput",
            "clusterTemplateQuestionsOutput",
            "clusterTestInput",
            "exportOutput",
            "importClusterYamlInput",
            "importYamlOutput",
            "metricNamesOutput",
            "monitoringInput",
            "monitoringOutput",
            "multiClusterAppRollbackInput",
            "notification",
            "projectMetricNamesInput",
            "projectTestInput",
            "queryClusterGraph",
            "queryClusterGraphOutput",
            "queryClusterMetricInput",
            "queryGraphInput",
            "queryMetricOutput",
            "queryProjectGraph",
            "queryProjectGraphOutput",
            "queryProjectMetricInput",
            "rotateCertificateInput",
            "rotateCertificateOutput",
            "samlConfigTestInput",
            "samlConfigTestOutput",
            "saveAsTemplateInput",
            "saveAsTemplateOutput",
            "updateGlobalDNSTargetsInput",
            "updateMultiClusterAppTargetsInput",
        ],
    ),
    (
        "a configuration under test may lack what is stored, so the action checks it itself",
        &[
            "activeDirectoryTestAndApplyInput.*",
            "azureADConfigApplyInput.*",
            "freeIpaTestAndApplyInput.*",
            "githubConfigApplyInput.*",
            "googleOauthConfigApplyInput.*",
            "openLdapTestAndApplyInput.*",
        ],
    ),
    ("the list is off, as in the reference's notes", &["templateContent"]),
    ("nodes join their cluster there: nobody makes one here", &["node"]),
    (
        "a token is not changed, and what the server says of it is not for clients to send",
        &[
            "token",
            "token.authProvider",
            "token.current",
            "token.description",
            "token.enabled",
            "token.expired",
            "token.expiresAt",
            "token.groupPrincipals",
            "token.isDerived",
            "token.lastUpdateTime",
            "token.providerInfo",
            "token.token",
            "token.ttl",
            "token.userId",
            "token.userPrincipal",
        ],
    ),
    (
        "of type password, so that blanks around them are kept and they are never shown",
        &[
            "changePasswordInput.currentPassword",
            "changePasswordInput.newPassword",
            "setPasswordInput.newPassword",
            "user.password",
        ],
    ),
    (
        "the name of the object, which is fixed when it is made",
        &[
            "fleetWorkspace.name",
            "keyCloakOIDCConfig.name",
            "oidcConfig.name",
            "rancherUserNotification.name",
        ],
    ),
    (
        "fixed when it is made: later, clients that send back what they read have the resource's type there",
        &["managementSecret.type"],
    ),
    (
        "fields of our own",
        &[
            "cluster.namespaceId",
            "clusterRegistrationToken.expiresAt",
            "clusterRegistrationToken.usedAt",
        ],
    ),
];

const OWNERS: (&str, &[&str]) = ("owners are bookkeeping and not shown", &["*.ownerReferences"]);

/// For the types inside clusters.
pub const IN_CLUSTERS: Reasons = &[
    OWNERS,
    ("names of APIServices hold dots: without, none could be made", &["apiService.name"]),
];

/// For the types inside projects, except workloads.
pub const IN_PROJECTS: Reasons = &[OWNERS];

/// The differences that no reason explains, and the patterns that explain no difference.
pub fn explain<T>(
    reasons: Reasons,
    differences: &BTreeMap<String, T>,
) -> (Vec<String>, Vec<String>) {
    let patterns = || reasons.iter().flat_map(|(_, patterns)| *patterns);
    let unexplained = differences.keys().filter(|key| !patterns().any(|p| fits(p, key)));
    let idle = patterns().filter(|pattern| !differences.keys().any(|key| fits(pattern, key)));
    (unexplained.cloned().collect(), idle.map(|&pattern| pattern.to_owned()).collect())
}

fn fits(pattern: &str, key: &str) -> bool {
    match pattern.split_once('*') {
        Some((start, end)) => {
            key.len() >= start.len() + end.len() && key.starts_with(start) && key.ends_with(end)
        }
        None => pattern == key,
    }
}
