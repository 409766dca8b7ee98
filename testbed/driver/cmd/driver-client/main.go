// Starts a cluster driver as a manager in Go does, and leads one cluster through its life:
//
//	driver-client OPTION=VALUE… -- PROGRAM ARGUMENT…
//
// The options are texts. What each call returned is one JSON object on standard output.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"drover.io/testbed/driver/types"
)

const (
	startTimeMax = 30 * time.Second
	callTimeMax  = 60 * time.Second
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	separator := slices.Index(arguments, "--")
	if separator < 0 || separator+1 == len(arguments) {
		return fmt.Errorf("usage: driver-client OPTION=VALUE… -- PROGRAM ARGUMENT…")
	}
	options := &types.DriverOptions{StringOptions: map[string]string{"name": "c-client"}}
	for _, pair := range arguments[:separator] {
		name, value, _ := strings.Cut(pair, "=")
		options.StringOptions[name] = value
	}
	driver, end, err := start(arguments[separator+1:])
	if err != nil {
		return err
	}
	defer end()
	returned, err := live(driver, options)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(returned)
}

// Starts the program at a free port, and waits until it serves.
func start(command []string) (types.DriverClient, func(), error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil {
		return nil, nil, err
	}
	program := exec.Command(command[0], append(command[1:], strconv.Itoa(port))...)
	program.Stderr = os.Stderr
	if err := program.Start(); err != nil {
		return nil, nil, err
	}
	end := func() {
		_ = program.Process.Kill()
		_ = program.Wait()
	}
	connection, err := grpc.NewClient(
		fmt.Sprintf("127.0.0.1:%d", port),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
	)
	if err != nil {
		end()
		return nil, nil, err
	}
	driver := types.NewDriverClient(connection)
	ctx, cancel := context.WithTimeout(context.Background(), startTimeMax)
	defer cancel()
	if _, err := driver.GetCapabilities(ctx, &types.Empty{}, grpc.WaitForReady(true)); err != nil {
		end()
		return nil, nil, fmt.Errorf("the driver does not serve: %w", err)
	}
	return driver, end, nil
}

// Makes a cluster, inspects it, and removes it.
func live(driver types.DriverClient, options *types.DriverOptions) (map[string]any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeMax)
	defer cancel()
	flags, err := driver.GetDriverCreateOptions(ctx, &types.Empty{})
	if err != nil {
		return nil, fmt.Errorf("GetDriverCreateOptions: %w", err)
	}
	made, err := driver.Create(ctx, &types.CreateRequest{DriverOptions: options})
	if err != nil {
		return nil, fmt.Errorf("Create: %w", err)
	}
	if made.CreateError != "" {
		return nil, fmt.Errorf("Create: %s", made.CreateError)
	}
	checked, err := driver.PostCheck(ctx, made)
	if err != nil {
		return nil, fmt.Errorf("PostCheck: %w", err)
	}
	version, err := driver.GetVersion(ctx, checked)
	if err != nil {
		return nil, fmt.Errorf("GetVersion: %w", err)
	}
	_, unsupported := driver.SetNodeCount(ctx, &types.SetNodeCountRequest{Info: checked})
	if _, err := driver.Remove(ctx, checked); err != nil {
		return nil, fmt.Errorf("Remove: %w", err)
	}
	return map[string]any{
		"flags":        flags.Options,
		"endpoint":     checked.Endpoint,
		"token":        checked.ServiceAccountToken,
		"version":      version.Version,
		"setNodeCount": fmt.Sprint(unsupported),
	}, nil
}
