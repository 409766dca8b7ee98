package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"
)

// clusters are simulated, and made by a provider.
type clusters struct {
	provider  string
	token     string
	client    *http.Client
	delay     time.Duration
	authority *authority

	mutex sync.Mutex
	ports map[int]bool
}

func newClusters(
	provider, token, caFile string, from, count int, delay time.Duration, made *authority,
) (*clusters, error) {
	ca, err := os.ReadFile(caFile)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	ports := map[int]bool{}
	for port := from; port < from+count; port++ {
		ports[port] = false
	}
	return &clusters{
		provider: provider, token: token, client: &http.Client{Transport: transport},
		delay: delay, authority: made, ports: ports,
	}, nil
}

// cluster is one of them, with its address.
type cluster struct {
	all      *clusters
	id       string
	port     int
	listener net.Listener
}

type ordered struct {
	ID         string
	State      string
	Reason     string
	Kubeconfig string
}

func (c *clusters) call(method, path string, body any) (ordered, error) {
	var found ordered
	sent, err := json.Marshal(body)
	if err != nil {
		return found, err
	}
	request, err := http.NewRequest(method, c.provider+"/clusters"+path, bytes.NewReader(sent))
	if err != nil {
		return found, err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	response, err := c.client.Do(request)
	if err != nil {
		return found, err
	}
	defer response.Body.Close()
	if response.StatusCode >= 300 {
		return found, fmt.Errorf("the provider answers %s", response.Status)
	}
	if response.StatusCode == http.StatusNoContent {
		return found, nil
	}
	json.NewDecoder(response.Body).Decode(&found)
	return found, nil
}

var field = regexp.MustCompile(`(?m)"?(server|token|certificate-authority-data)"?:\s*(?:>-\s*)?"?([^"\s,}]+)`)

// make makes a cluster. knows says of a token whether it is an administrator's.
func (c *clusters) make(name string, nodes int, knows func(token string) bool) (*cluster, error) {
	time.Sleep(c.delay)
	found, err := c.call(http.MethodPost, "", map[string]any{"name": name, "nodes": nodes})
	if err != nil {
		return nil, err
	}
	for found.State != "running" {
		if found.State == "failed" {
			return nil, fmt.Errorf("the provider failed: %s", found.Reason)
		}
		time.Sleep(50 * time.Millisecond)
		if found, err = c.call(http.MethodGet, "/"+found.ID, nil); err != nil {
			return nil, err
		}
	}
	made := &cluster{all: c, id: found.ID}
	if err := made.serve(found.Kubeconfig, knows); err != nil {
		c.call(http.MethodDelete, "/"+found.ID, nil)
		return nil, err
	}
	return made, nil
}

// serve opens the address of the cluster, where the cloud's tokens hold.
func (c *cluster) serve(kubeconfig string, knows func(token string) bool) error {
	fields := map[string]string{}
	for _, found := range field.FindAllStringSubmatch(kubeconfig, -1) {
		fields[found[1]] = found[2]
	}
	target, err := url.Parse(fields["server"])
	if err != nil {
		return err
	}
	ca, err := base64.StdEncoding.DecodeString(fields["certificate-authority-data"])
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1,
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}},
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			token, _ := strings.CutPrefix(r.In.Header.Get("Authorization"), "Bearer ")
			if knows(token) {
				r.Out.Header.Set("Authorization", "Bearer "+fields["token"])
			}
		},
	}
	c.all.mutex.Lock()
	defer c.all.mutex.Unlock()
	for port, used := range c.all.ports {
		if used {
			continue
		}
		address := fmt.Sprintf("127.0.0.1:%d", port)
		listener, err := tls.Listen("tcp", address, c.all.authority.config())
		if err != nil {
			continue
		}
		c.all.ports[port] = true
		c.port, c.listener = port, listener
		go http.Serve(listener, proxy)
		return nil
	}
	return fmt.Errorf("no port is free")
}

func (c *cluster) address() string {
	return fmt.Sprintf("127.0.0.1:%d", c.port)
}

// ca is the authority of the cluster's address, PEM in base64.
func (c *clusters) ca() string {
	return base64.StdEncoding.EncodeToString([]byte(c.authority.pem))
}

func (c *cluster) resize(nodes int) error {
	time.Sleep(c.all.delay)
	_, err := c.all.call(http.MethodPatch, "/"+c.id, map[string]any{"nodes": nodes})
	return err
}

func (c *cluster) remove() error {
	time.Sleep(c.all.delay)
	c.listener.Close()
	c.all.mutex.Lock()
	c.all.ports[c.port] = false
	c.all.mutex.Unlock()
	_, err := c.all.call(http.MethodDelete, "/"+c.id, nil)
	return err
}
