// The parts of the public APIs of Google, Amazon and Microsoft that drivers of
// their Kubernetes services use, at one address of this machine. Each cluster
// that is ordered is a simulated one, which a provider makes (`drover sim
// --provider`), behind an address of its own that knows the cloud's tokens.
//
// It checks what the clouds check: tokens and signatures, names, the form of
// what is ordered. POST /faults makes it fail; POST /disown takes the
// labels from what exists; GET /state shows it.
package main

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"flag"
	"fmt"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// The only region of Amazon here, and the keys of the only account.
const (
	region    = "us-west-2"
	accessKey = "AKIAIOSFODNN7EXAMPLE"
	secretKey = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
)

var hosts = []string{
	"container.googleapis.com",
	"oauth2.googleapis.com",
	"cloudformation." + region + ".amazonaws.com",
	"sts." + region + ".amazonaws.com",
	"management.azure.com",
	"login.microsoftonline.com",
}

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "address of the APIs")
	from := flag.Int("clusters-from", 0, "first port of clusters")
	count := flag.Int("clusters", 8, "number of ports of clusters")
	provider := flag.String("provider", "", "URL of the provider of simulated clusters")
	token := flag.String("provider-token", "", "its token")
	authority := flag.String("provider-ca", "", "file with its certificate authority")
	folder := flag.String("folder", "", "folder for ca.pem, google.json and address")
	delay := flag.Duration("delay", 200*time.Millisecond, "what each change takes at least")
	flag.Parse()

	made, err := newAuthority()
	check(err)
	clusters, err := newClusters(*provider, *token, *authority, *from, *count, *delay, made)
	check(err)
	faults := &faults{}
	google, key, err := newGoogle(clusters, faults)
	check(err)
	amazon := newAmazon(clusters, faults)
	microsoft := newMicrosoft(clusters, faults)
	control := &control{faults: faults, state: func() map[string]any {
		return map[string]any{
			"google": google.state(), "amazon": amazon.state(), "microsoft": microsoft.state(),
		}
	}, disown: func() {
		google.disown()
		amazon.disown()
		microsoft.disown()
	}}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, found := strings.Cut(r.Host, ":")
		if !found {
			host = r.Host
		}
		switch {
		case strings.HasSuffix(host, ".googleapis.com"):
			google.ServeHTTP(w, r)
		case strings.HasSuffix(host, ".amazonaws.com"):
			amazon.ServeHTTP(w, r)
		case host == "management.azure.com" || host == "login.microsoftonline.com":
			microsoft.ServeHTTP(w, r)
		default:
			control.ServeHTTP(w, r)
		}
	})
	listener, err := tls.Listen("tcp", *listen, made.config(hosts...))
	check(err)
	write := func(name, text string) {
		check(os.WriteFile(filepath.Join(*folder, name), []byte(text), 0o644))
	}
	write("ca.pem", made.pem)
	write("google.json", key)
	// The last: whoever waits for it finds the others.
	write("address.part", listener.Addr().String())
	check(os.Rename(filepath.Join(*folder, "address.part"), filepath.Join(*folder, "address")))
	log.Fatal(http.Serve(listener, handler))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// authority issues the certificates of the APIs and of the clusters.
type authority struct {
	certificate *x509.Certificate
	key         *rsa.PrivateKey
	pem         string
}

func newAuthority() (*authority, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "clouds"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return &authority{certificate: certificate, key: key, pem: string(text)}, nil
}

// config is for a server at this machine with the names.
func (a *authority) config(names ...string) *tls.Config {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	check(err)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	check(err)
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "cloud"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
		DNSNames:     names,
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, a.key)
	check(err)
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		// Connections of clusters are upgraded, which HTTP/2 does not do.
		NextProtos: []string{"http/1.1"},
	}
}

// random is a name that nobody guesses.
func random(prefix string) string {
	bytes := make([]byte, 12)
	_, err := rand.Read(bytes)
	check(err)
	return fmt.Sprintf("%s%x", prefix, bytes)
}
