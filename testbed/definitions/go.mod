// Modules that publish definitions of custom resources. Only the files in the folders named behind
// each version are used: nothing is built, and what a module itself requires is not brought.
module drover.io/testbed/definitions

go 1.26

require (
	github.com/cert-manager/cert-manager v1.21.2 // deploy/crds
	github.com/external-secrets/external-secrets v1.3.2 // config/crds/bases
	github.com/kedacore/keda/v2 v2.21.0 // config/crd/bases
	github.com/kyverno/kyverno v1.19.1 // config/crds/kyverno config/crds/policies.kyverno.io
	github.com/open-policy-agent/frameworks/constraint v0.0.0-20260616163050-e1eaa1bf6d62 // config/crds
	github.com/prometheus-operator/prometheus-operator v0.85.0 // example/prometheus-operator-crd-full
	istio.io/api v1.31.1 // kubernetes
	sigs.k8s.io/cluster-api v1.14.2 // core/config/crd/bases controlplane/kubeadm/config/crd/bases bootstrap/kubeadm/config/crd/bases
	sigs.k8s.io/gateway-api v1.6.3 // config/crd/experimental
	sigs.k8s.io/karpenter v1.10.0 // pkg/apis/crds
)
