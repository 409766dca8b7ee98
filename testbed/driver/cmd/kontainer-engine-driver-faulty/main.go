// A cluster driver in Go that fails as its options say, and that records how it is called: each call
// is a line of its log, with the checksum of the state that came with it.
//
// Its clusters exist already; its provider is the memory of its options.
package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"drover.io/testbed/driver/types"
)

// How long a hanging call takes: longer than any test.
const hangTime = time.Hour

// How long a slow call takes: as the slowest clouds do.
const slowTime = 40 * time.Minute

// How late an answer comes that nobody waits for any more.
const lateTime = 2 * time.Second

// What a file ends with whose options are others.
const otherOptionsMark = "other-options"

// Lines of a log that comes too fast.
const floodLines = 200_000

// Spaces, escapes and the order of the keys must come back as they are.
const stateForm = "{\"z\": 1,  \"text\": \"\\u00e9é\\n\", \"endpoint\": %q, \"a\": [ ]}\n"

// Where the fault is for the calls that get no options. Not its own name: what is in the metadata wins
// over an option of the same name.
const storedFault = "stored-fault"

type driver struct {
	types.UnimplementedDriverServer
}

func (driver) GetDriverCreateOptions(context.Context, *types.Empty) (*types.DriverFlags, error) {
	text := func(usage string, password bool) *types.Flag {
		return &types.Flag{Type: "string", Usage: usage, Password: password}
	}
	options := map[string]*types.Flag{
		"cluster-endpoint":   text("Address of the cluster", false),
		"cluster-ca":         text("Certificate authority of the cluster, PEM in base64", false),
		"access-token":       text("Token of an administrator", true),
		"client-certificate": text("Certificate of an administrator, PEM in base64", false),
		"client-key":         text("Its key, PEM in base64", true),
		"fault":              text("What goes wrong, as WHAT:METHOD", false),
		"size":               {Type: "int", Usage: "Something that can change"},
	}
	if hasOtherOptions() {
		delete(options, "size")
		options["zone"] = text("Something that the driver before did not have", false)
	}
	return &types.DriverFlags{Options: options}, nil
}

func hasOtherOptions() bool {
	file, err := os.Executable()
	if err != nil {
		return false
	}
	content, err := os.ReadFile(file)
	return err == nil && strings.HasSuffix(string(content), otherOptionsMark)
}

func (driver) GetDriverUpdateOptions(context.Context, *types.Empty) (*types.DriverFlags, error) {
	return &types.DriverFlags{}, nil
}

func (driver) GetCapabilities(context.Context, *types.Empty) (*types.Capabilities, error) {
	return &types.Capabilities{}, nil
}

func (driver) GetK8SCapabilities(context.Context, *types.DriverOptions) (*types.K8SCapabilities, error) {
	return &types.K8SCapabilities{
		L4LoadBalancer: &types.LoadBalancerCapabilities{
			Enabled: true, Provider: "faulty", ProtocolsSupported: []string{"TCP"},
		},
		IngressControllers: []*types.IngressCapabilities{{IngressProvider: "faulty"}},
	}, nil
}

func (driver) Create(_ context.Context, request *types.CreateRequest) (*types.ClusterInfo, error) {
	options := request.GetDriverOptions().GetStringOptions()
	info := &types.ClusterInfo{
		Endpoint:          options["clusterEndpoint"],
		RootCaCertificate: options["clusterCa"],
		ClientCertificate: options["clientCertificate"],
		ClientKey:         options["clientKey"],
		Metadata: map[string]string{
			"state": fmt.Sprintf(stateForm, options["clusterEndpoint"]),
			"token": options["accessToken"],
		},
		// As drivers do that write the phase of their cloud there.
		Status: "CLOUD-PHASE",
	}
	if fault(options, "Create") == "half" {
		info.CreateError = "the quota of the cloud is exceeded"
	}
	return info, nil
}

func (driver) Update(_ context.Context, request *types.UpdateRequest) (*types.ClusterInfo, error) {
	info := request.GetClusterInfo()
	if token := request.GetDriverOptions().GetStringOptions()["accessToken"]; token != "" {
		info.Metadata["token"] = token
	}
	return info, nil
}

func (driver) PostCheck(_ context.Context, info *types.ClusterInfo) (*types.ClusterInfo, error) {
	if info.GetMetadata()["token"] == "" {
		// As drivers from before Kubernetes 1.24 say it.
		return nil, errors.New("failed to fetch serviceAccountToken")
	}
	info.ServiceAccountToken = info.Metadata["token"]
	return info, nil
}

func (driver) Remove(context.Context, *types.ClusterInfo) (*types.Empty, error) {
	return &types.Empty{}, nil
}

func (driver) ETCDSave(_ context.Context, request *types.SaveETCDSnapshotRequest) (*types.Empty, error) {
	fmt.Printf("saving %q\n", request.GetSnapshotName())
	return &types.Empty{}, nil
}

func (driver) ETCDRestore(context.Context, *types.RestoreETCDSnapshotRequest) (*types.ClusterInfo, error) {
	return nil, errors.New("ETCD backup operations are not implemented")
}

// What goes wrong in a method.
func fault(options map[string]string, method string) string {
	what, where, _ := strings.Cut(options["fault"], ":")
	if where == method {
		return what
	}
	return ""
}

// The options of a call that has them, and the state that it comes with.
func contents(request any) (map[string]string, string) {
	switch request := request.(type) {
	case *types.CreateRequest:
		return request.GetDriverOptions().GetStringOptions(), request.GetClusterInfo().GetMetadata()["state"]
	case *types.UpdateRequest:
		return request.GetDriverOptions().GetStringOptions(), request.GetClusterInfo().GetMetadata()["state"]
	case *types.ClusterInfo:
		return map[string]string{"fault": request.GetMetadata()[storedFault]}, request.GetMetadata()["state"]
	}
	return nil, ""
}

func intercept(
	context context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler,
) (any, error) {
	_, method, _ := strings.Cut(strings.TrimPrefix(info.FullMethod, "/"), "/")
	options, state := contents(request)
	sum := sha256.Sum256([]byte(state))
	fmt.Printf("call %s state %x\n", method, sum[:4])
	switch fault(options, method) {
	case "crash":
		fmt.Println("panic: the memory is corrupt")
		os.Exit(2)
	case "hang":
		time.Sleep(hangTime)
	case "slow":
		time.Sleep(slowTime)
	case "late":
		signal.Ignore(syscall.SIGTERM)
		time.Sleep(lateTime)
	case "flood":
		for line := range floodLines {
			fmt.Printf("line %d of a driver that writes and writes\n", line)
		}
	case "nil":
		// What the helpers of drivers return that leave a method out: a message without anything.
		return nil, nil
	case "garbage":
		return &types.ClusterInfo{Endpoint: "nowhere at all", Metadata: map[string]string{"state": "\x01"}}, nil
	case "error":
		return nil, errors.New("the cloud does not like it")
	case "status":
		return nil, status.Error(codes.ResourceExhausted, "too many requests")
	}
	response, err := handle(context, request)
	// The fault of an option is also that of the calls that have none.
	if made, isInfo := response.(*types.ClusterInfo); isInfo && made != nil && options["fault"] != "" {
		made.Metadata[storedFault] = options["fault"]
	}
	if _, isUpdate := request.(*types.UpdateRequest); isUpdate && err == nil {
		response.(*types.ClusterInfo).Metadata[storedFault] = options["fault"]
	}
	return response, err
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: kontainer-engine-driver-faulty PORT")
		os.Exit(1)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(intercept))
	types.RegisterDriverServer(server, driver{})
	if err := server.Serve(listener); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
