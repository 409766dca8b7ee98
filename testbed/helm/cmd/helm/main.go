// Command helm is the Helm of the published module.
package main

import (
	"errors"
	"log/slog"
	"os"

	"helm.sh/helm/v4/pkg/cmd"
	"helm.sh/helm/v4/pkg/kube"
	_ "k8s.io/client-go/plugin/pkg/client/auth"
)

func main() {
	// Else the name of the file would be told as the manager of fields.
	kube.ManagedFieldsManager = "helm"
	root, err := cmd.NewRootCmd(os.Stdout, os.Args[1:], cmd.SetupLogging)
	if err != nil {
		slog.Error("cannot build the command", "error", err)
		os.Exit(1)
	}
	if err := root.Execute(); err != nil {
		// The command has told it.
		var coded cmd.CommandError
		if errors.As(err, &coded) {
			os.Exit(coded.ExitCode)
		}
		os.Exit(1)
	}
}
