// Command remotedialer is what most people reach their clusters through today, for measurements beside Drover: Go's
// reverse proxy over the tunnel module that Rancher publishes, with TLS on each hop.
//
//	remotedialer server FOLDER ADDRESS   serves /connect to agents, and everything else from the target
//	remotedialer agent FOLDER            connects to the server of the same folder
//
// The folder has the file "target.json"; the server adds "ca.pem" and, once it listens, "address".
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/gorilla/websocket"
	"github.com/rancher/remotedialer"
	"github.com/sirupsen/logrus"
)

// The one agent's name.
const agent = "agent"

// Connections kept to the target: more than a measurement uses at once, so that none is made anew for a request.
const connectionsMax = 256

// target is an API server, and what each request to it shows.
type target struct {
	URL     string      `json:"url"`
	CA      string      `json:"ca"`
	Headers http.Header `json:"headers"`
}

func main() {
	logrus.SetLevel(logrus.WarnLevel)
	var err error
	switch arguments := os.Args[1:]; {
	case len(arguments) == 3 && arguments[0] == "server":
		err = serve(arguments[1], arguments[2])
	case len(arguments) == 2 && arguments[0] == "agent":
		err = connect(arguments[1])
	default:
		err = errors.New("usage: remotedialer server FOLDER ADDRESS, or remotedialer agent FOLDER")
	}
	if err != nil {
		logrus.Fatal(err)
	}
}

func serve(folder, address string) error {
	authorize := func(*http.Request) (string, bool, error) { return agent, true, nil }
	tunnel := remotedialer.New(authorize, remotedialer.DefaultErrorWriter)
	proxy, err := reverseProxy(folder, tunnel)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/connect", tunnel)
	mux.Handle("/", proxy)
	certificate, err := newCertificate(folder, net.ParseIP(address))
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		return err
	}
	// In one step: who waits for the file may read it at once.
	fresh := filepath.Join(folder, ".address")
	if err := os.WriteFile(fresh, []byte(listener.Addr().String()), 0o600); err != nil {
		return err
	}
	if err := os.Rename(fresh, filepath.Join(folder, "address")); err != nil {
		return err
	}
	server := http.Server{
		Handler:   mux,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}},
	}
	return server.ServeTLS(listener, "", "")
}

func reverseProxy(folder string, tunnel *remotedialer.Server) (http.Handler, error) {
	text, err := os.ReadFile(filepath.Join(folder, "target.json"))
	if err != nil {
		return nil, err
	}
	var target target
	if err := json.Unmarshal(text, &target); err != nil {
		return nil, err
	}
	address, err := url.Parse(target.URL)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	if !config.RootCAs.AppendCertsFromPEM([]byte(target.CA)) {
		return nil, errors.New("the target's CA is not PEM")
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(request *httputil.ProxyRequest) {
			request.SetURL(address)
			maps.Copy(request.Out.Header, target.Headers)
		},
		Transport: &http.Transport{
			DialContext:         tunnel.Dialer(agent),
			TLSClientConfig:     config,
			MaxIdleConnsPerHost: connectionsMax,
		},
	}
	return proxy, nil
}

// newCertificate makes a certificate for address and the authority that has signed it.
func newCertificate(folder string, address net.IP) (tls.Certificate, error) {
	authority := template(1)
	authority.IsCA = true
	authority.BasicConstraintsValid = true
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	root, err := x509.CreateCertificate(rand.Reader, authority, authority, &signer.PublicKey, signer)
	if err != nil {
		return tls.Certificate{}, err
	}
	leaf := template(2)
	leaf.IPAddresses = []net.IP{address}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, authority, &key.PublicKey, signer)
	if err != nil {
		return tls.Certificate{}, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root})
	err = os.WriteFile(filepath.Join(folder, "ca.pem"), text, 0o600)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

func template(number int64) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(number),
		Subject:      pkix.Name{CommonName: "remotedialer"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
	}
}

func connect(folder string) error {
	address, err := os.ReadFile(filepath.Join(folder, "address"))
	if err != nil {
		return err
	}
	ca, err := os.ReadFile(filepath.Join(folder, "ca.pem"))
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	dialer := &websocket.Dialer{TLSClientConfig: &tls.Config{RootCAs: roots}}
	allow := func(string, string) bool { return true }
	return remotedialer.ConnectToProxy(
		context.Background(), "wss://"+string(address)+"/connect", nil, allow, dialer, nil)
}
