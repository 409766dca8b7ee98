//! The version that a build reports, and the versions of the compiler.

use super::*;

#[test]
fn the_linked_version_is_the_required_one() {
    let manifest = "module m\n\nrequire (\n\tgo.etcd.io/x v1.0.0\n\tk8s.io/kubernetes v1.36.3\n)\n\
                    replace k8s.io/kubernetes => k8s.io/kubernetes v9.9.9\n";
    let flags = kubernetes_flags(manifest).unwrap();
    assert!(flags.contains("-X k8s.io/component-base/version.gitVersion=v1.36.3"), "{flags}");
    assert!(flags.contains("-X k8s.io/component-base/version.gitMinor=36"), "{flags}");
    assert!(kubernetes_flags("module m\n").is_err());
}

#[test]
fn minor_versions_of_go_are_parsed() {
    assert_eq!(minor("go1.26.8"), Some(26));
    assert_eq!(minor("go1.27rc1"), Some(27));
    assert_eq!(minor("devel"), None);
}
