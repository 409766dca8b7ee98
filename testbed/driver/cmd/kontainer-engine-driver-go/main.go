// A cluster driver in Go, as existing ones are written: flags by hand, the state as JSON in the
// metadata, logs on standard output, and nil for what it does not implement.
//
// Its clusters exist already; its provider is the memory of its options.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"

	"google.golang.org/grpc"
	"google.golang.org/grpc/reflection"

	"drover.io/testbed/driver/types"
)

type driver struct {
	types.UnimplementedDriverServer
}

// What the driver remembers of a cluster.
type state struct {
	Name       string   `json:"name"`
	Endpoint   string   `json:"endpoint"`
	CA         string   `json:"ca"`
	Token      string   `json:"token"`
	DiskSizeGb int64    `json:"diskSizeGb"`
	Labels     []string `json:"labels"`
}

func (driver) GetDriverCreateOptions(context.Context, *types.Empty) (*types.DriverFlags, error) {
	text := func(usage string, password bool) *types.Flag {
		return &types.Flag{Type: "string", Usage: usage, Password: password}
	}
	return &types.DriverFlags{Options: map[string]*types.Flag{
		"disk-size-gb": {
			Type:    "int",
			Usage:   "Size of the disk attached to each node",
			Default: &types.Default{DefaultInt: 100},
		},
		"cluster-endpoint": text("Address of the cluster", false),
		"cluster-ca":       text("Certificate authority of the cluster, PEM in base64", false),
		"access-token":     text("Token of an administrator", true),
		"labels":           {Type: "stringSlice", Usage: "Labels of the nodes"},
	}}, nil
}

func (driver) GetDriverUpdateOptions(context.Context, *types.Empty) (*types.DriverFlags, error) {
	return &types.DriverFlags{Options: map[string]*types.Flag{
		"disk-size-gb": {Type: "int", Usage: "Size of the disk attached to each node"},
	}}, nil
}

// Programs send the name of the flag, servers that of the field.
func option[V any](options map[string]V, names ...string) (value V) {
	for _, name := range names {
		if value, ok := options[name]; ok {
			return value
		}
	}
	return value
}

func (driver) Create(_ context.Context, request *types.CreateRequest) (*types.ClusterInfo, error) {
	options := request.GetDriverOptions()
	texts := options.GetStringOptions()
	made := state{
		Name:       option(texts, "name"),
		Endpoint:   option(texts, "cluster-endpoint", "clusterEndpoint"),
		CA:         option(texts, "cluster-ca", "clusterCa"),
		Token:      option(texts, "access-token", "accessToken"),
		DiskSizeGb: option(options.GetIntOptions(), "disk-size-gb", "diskSizeGb"),
		Labels:     option(options.GetStringSliceOptions(), "labels").GetValue(),
	}
	fmt.Printf("creating %q\n", made.Name)
	info := &types.ClusterInfo{}
	if err := store(info, made); err != nil {
		return nil, err
	}
	if made.Endpoint == "" {
		// As the servers of such drivers report a failure without losing what exists.
		info.CreateError = "the option cluster-endpoint is required"
	}
	return info, nil
}

func store(info *types.ClusterInfo, state state) error {
	bytes, err := json.Marshal(state)
	if err != nil {
		return err
	}
	if info.Metadata == nil {
		info.Metadata = map[string]string{}
	}
	info.Metadata["state"] = string(bytes)
	info.Endpoint = state.Endpoint
	info.RootCaCertificate = state.CA
	return nil
}

func load(info *types.ClusterInfo) (state, error) {
	found := state{}
	err := json.Unmarshal([]byte(info.GetMetadata()["state"]), &found)
	return found, err
}

func (driver) Update(_ context.Context, request *types.UpdateRequest) (*types.ClusterInfo, error) {
	info := request.GetClusterInfo()
	found, err := load(info)
	if err != nil {
		return nil, err
	}
	if size := option(request.GetDriverOptions().GetIntOptions(), "disk-size-gb", "diskSizeGb"); size > 0 {
		found.DiskSizeGb = size
	}
	return info, store(info, found)
}

func (driver) PostCheck(_ context.Context, info *types.ClusterInfo) (*types.ClusterInfo, error) {
	found, err := load(info)
	if err != nil {
		return nil, err
	}
	info.ServiceAccountToken = found.Token
	return info, nil
}

func (driver) Remove(context.Context, *types.ClusterInfo) (*types.Empty, error) {
	return &types.Empty{}, nil
}

func (driver) GetCapabilities(context.Context, *types.Empty) (*types.Capabilities, error) {
	return &types.Capabilities{Capabilities: map[int64]bool{}}, nil
}

// As the helpers that drivers embed for what they leave out.
func (driver) GetVersion(context.Context, *types.ClusterInfo) (*types.KubernetesVersion, error) {
	return nil, nil
}

func (driver) SetVersion(context.Context, *types.SetVersionRequest) (*types.Empty, error) {
	return nil, nil
}

func (driver) GetNodeCount(context.Context, *types.ClusterInfo) (*types.NodeCount, error) {
	return nil, nil
}

func (driver) SetNodeCount(context.Context, *types.SetNodeCountRequest) (*types.Empty, error) {
	return nil, nil
}

func (driver) RemoveLegacyServiceAccount(context.Context, *types.ClusterInfo) (*types.Empty, error) {
	return &types.Empty{}, nil
}

func (driver) ETCDSave(context.Context, *types.SaveETCDSnapshotRequest) (*types.Empty, error) {
	return nil, errors.New("ETCD backup operations are not implemented")
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: kontainer-engine-driver-go PORT")
		os.Exit(1)
	}
	port, err := strconv.Atoi(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "the port is no number:", err)
		os.Exit(1)
	}
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	server := grpc.NewServer()
	types.RegisterDriverServer(server, driver{})
	reflection.Register(server)
	fmt.Println("serving at", listener.Addr())
	if err := server.Serve(listener); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
