// Command go-client does what typed Go clients of Kubernetes do, for tests.
//
//	go-client schema             writes the table of crates/kubernetes-protobuf
//	go-client transcode          reads JSON objects, a line each; writes what Go makes of them
//	go-client gnostic-table      writes the table of the OpenAPI documents there
//	go-client gnostic            reads an OpenAPI document in JSON; writes it in protobuf
//	go-client exercise FILE      uses the cluster of a kubeconfig, in protobuf only
//	go-client informers FILE     follows it with dynamic and metadata informers
//	go-client manager FILE       runs controllers of controller-runtime on it
//	go-client openapi FILE       reads what it publishes about its types, in both forms
package main

import (
	"fmt"
	"os"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	metabeta "k8s.io/apimachinery/pkg/apis/meta/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

func main() {
	switch arguments := os.Args[1:]; {
	case len(arguments) == 1 && arguments[0] == "schema":
		writeSchema()
	case len(arguments) == 1 && arguments[0] == "transcode":
		transcode()
	case len(arguments) == 1 && arguments[0] == "gnostic-table":
		writeGnosticTable()
	case len(arguments) == 1 && arguments[0] == "gnostic":
		gnostic()
	case len(arguments) == 2 && arguments[0] == "exercise":
		exercise(arguments[1])
	case len(arguments) == 2 && arguments[0] == "informers":
		follow(arguments[1])
	case len(arguments) == 2 && arguments[0] == "manager":
		manage(arguments[1])
	case len(arguments) == 2 && arguments[0] == "openapi":
		readOpenAPI(arguments[1])
	default:
		fail("usage: go-client schema | transcode | gnostic-table | gnostic | (exercise | informers | manager | openapi) KUBECONFIG")
	}
}

// Every kind with a Go type.
func knownTypes() *runtime.Scheme {
	types := runtime.NewScheme()
	check(scheme.AddToScheme(types))
	check(apiextensions.AddToScheme(types))
	check(apiregistration.AddToScheme(types))
	check(metabeta.AddMetaToScheme(types))
	check(meta.AddMetaToScheme(types))
	return types
}

func check(err error) {
	if err != nil {
		fail("%v", err)
	}
}

func fail(format string, arguments ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", arguments...)
	os.Exit(1)
}
