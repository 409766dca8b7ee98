// A cluster driver that tries to get out of its sandbox, for the tests of confinement.
//
// It serves the contract so far that the option "attempt" of Create names what it tries; what came
// of it stands in the metadata: "done" with what it got, or "refused" with the reason.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"

	"drover.io/testbed/driver/types"
)

type driver struct {
	types.UnimplementedDriverServer
}

// What an attempt got, or why it failed. The argument is what the test names: a path, an address.
type attempt func(argument string) (string, error)

var attempts = map[string]attempt{
	"read":        read,
	"write":       write,
	"list":        list,
	"environment": environment,
	"processes":   processes,
	"kill":        kill,
	"identity":    identity,
	"connect":     connect,
	"proxy":       throughProxy,
	"http":        throughHTTP,
	"abstract":    abstract,
	"packets":     rawPackets,
	"mount":       mountSomething,
	"namespace":   namespace,
	"trace":       trace,
	"leave":       leaveRoot,
	"device":      makeDevice,
	"setuid":      becomeRoot,
	"fork":        forkMany,
	"memory":      takeMemory,
	"fill":        fillDisk,
	"descriptors": openMany,
	"host-name":   renameHost,
	"run":         runProgram,
	"orphan":      orphan,
}

func (driver) GetCapabilities(context.Context, *types.Empty) (*types.Capabilities, error) {
	return &types.Capabilities{}, nil
}

func (driver) Create(_ context.Context, request *types.CreateRequest) (*types.ClusterInfo, error) {
	texts := request.GetDriverOptions().GetStringOptions()
	try, known := attempts[texts["attempt"]]
	if !known {
		return nil, fmt.Errorf("no attempt %q", texts["attempt"])
	}
	got, err := try(texts["argument"])
	if err != nil {
		return &types.ClusterInfo{Metadata: map[string]string{"refused": err.Error()}}, nil
	}
	return &types.ClusterInfo{Metadata: map[string]string{"done": got}}, nil
}

func read(path string) (string, error) {
	text, err := os.ReadFile(path)
	return string(text), err
}

func write(path string) (string, error) {
	return path, os.WriteFile(path, []byte("x"), 0o644)
}

func list(path string) (string, error) {
	entries, err := os.ReadDir(path)
	names := []string{}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return strings.Join(names, " "), err
}

// Of this process and of every other one that it can read.
func environment(string) (string, error) {
	found := strings.Join(os.Environ(), "\n")
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		text, _ := os.ReadFile(file)
		found += "\n" + strings.ReplaceAll(string(text), "\x00", "\n")
	}
	return found, err
}

func processes(string) (string, error) {
	found := []string{}
	files, err := filepath.Glob("/proc/[0-9]*/comm")
	for _, file := range files {
		text, _ := os.ReadFile(file)
		found = append(found, strings.TrimSpace(string(text)))
	}
	return strings.Join(found, " "), err
}

func kill(argument string) (string, error) {
	var id int
	if _, err := fmt.Sscan(argument, &id); err != nil {
		return "", err
	}
	return argument, syscall.Kill(id, 0)
}

func identity(string) (string, error) {
	status, err := os.ReadFile("/proc/self/status")
	return string(status), err
}

func connect(address string) (string, error) {
	connection, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return "", err
	}
	return address, connection.Close()
}

// A tunnel, as a client of HTTPS opens it.
func throughProxy(address string) (string, error) {
	proxy, err := url.Parse(os.Getenv("HTTPS_PROXY"))
	if err != nil {
		return "", err
	}
	connection, err := net.Dial("tcp", proxy.Host)
	if err != nil {
		return "", err
	}
	defer connection.Close()
	fmt.Fprintf(connection, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", address, address)
	buffer := make([]byte, 4096)
	length, err := connection.Read(buffer)
	if err != nil {
		return "", err
	}
	response := string(buffer[:length])
	if !strings.HasPrefix(response, "HTTP/1.1 200") {
		return "", fmt.Errorf("%s", response)
	}
	return response, nil
}

// Plain HTTP, for which the proxy gets the whole address.
func throughHTTP(address string) (string, error) {
	proxy, err := url.Parse(os.Getenv("HTTP_PROXY"))
	if err != nil {
		return "", err
	}
	client := http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy)}}
	response, err := client.Get(address)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	if err != nil {
		return "", err
	}
	if response.StatusCode >= 400 {
		return "", fmt.Errorf("%s: %s", response.Status, text)
	}
	return string(text), nil
}

func abstract(name string) (string, error) {
	connection, err := net.Dial("unix", "@"+name)
	if err != nil {
		return "", err
	}
	return name, connection.Close()
}

func rawPackets(string) (string, error) {
	_, err := syscall.Socket(syscall.AF_PACKET, syscall.SOCK_RAW, 0)
	return "a socket", err
}

func mountSomething(path string) (string, error) {
	return path, syscall.Mount("none", path, "tmpfs", 0, "")
}

func namespace(string) (string, error) {
	return "a namespace", syscall.Unshare(syscall.CLONE_NEWUSER)
}

func trace(string) (string, error) {
	return "process 1", syscall.PtraceAttach(1)
}

// The way out of a chroot that works for root.
func leaveRoot(string) (string, error) {
	if err := os.MkdirAll("/tmp/inner", 0o755); err != nil {
		return "", err
	}
	if err := syscall.Chroot("/tmp/inner"); err != nil {
		return "", err
	}
	return "another root", nil
}

func makeDevice(path string) (string, error) {
	return path, syscall.Mknod(path, syscall.S_IFBLK|0o666, 8<<8)
}

func becomeRoot(string) (string, error) {
	if _, _, errno := syscall.RawSyscall(syscall.SYS_SETUID, 0, 0, 0); errno != 0 {
		return "", errno
	}
	// In a namespace of users it is root already; that gives it nothing outside.
	return "root", syscall.Mount("none", "/tmp", "tmpfs", 0, "")
}

func forkMany(string) (string, error) {
	for count := 0; count < 2000; count++ {
		command := exec.Command("/proc/self/exe", "sleep")
		if err := command.Start(); err != nil {
			return "", fmt.Errorf("after %d: %w", count, err)
		}
		defer command.Process.Kill()
	}
	return "2000 processes", nil
}

func takeMemory(string) (string, error) {
	bytes, err := syscall.Mmap(-1, 0, 8<<30, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return "", err
	}
	return fmt.Sprint(len(bytes)), nil
}

func fillDisk(string) (string, error) {
	block := make([]byte, 1<<20)
	for count := 0; count < 8; count++ {
		path := fmt.Sprintf("/tmp/%d", count)
		file, err := os.Create(path)
		if err != nil {
			return "", err
		}
		defer os.Remove(path)
		for blocks := 0; blocks < 32; blocks++ {
			if _, err := file.Write(block); err != nil {
				return "", err
			}
		}
	}
	return "256 MiB", nil
}

func openMany(string) (string, error) {
	files := []*os.File{}
	defer func() {
		for _, file := range files {
			file.Close()
		}
	}()
	for len(files) < 5000 {
		file, err := os.Open("/dev/null")
		if err != nil {
			return "", err
		}
		files = append(files, file)
	}
	return "5000 files", nil
}

func renameHost(name string) (string, error) {
	return name, syscall.Sethostname([]byte(name))
}

func runProgram(path string) (string, error) {
	output, err := exec.Command(path).CombinedOutput()
	return string(output), err
}

// A process that outlives the driver where it can; the test looks for its name.
func orphan(name string) (string, error) {
	command := exec.Command("/proc/self/exe", "sleep", name)
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return name, command.Start()
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "sleep" {
		time.Sleep(time.Hour)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Args[len(os.Args)-1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	server := grpc.NewServer()
	types.RegisterDriverServer(server, driver{})
	if err := server.Serve(listener); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
