package main

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	googleAccount = "driver@drover-project.iam.gserviceaccount.com"
	googleToken   = "https://oauth2.googleapis.com/token"
)

var googleLocations = []string{"us-central1", "us-central1-a", "europe-west1", "europe-west1-b"}

// google has the token endpoint for service accounts, and version 1 of the API
// of Kubernetes Engine.
type google struct {
	clusters *clusters
	faults   *faults
	key      *rsa.PublicKey

	mutex      sync.Mutex
	tokens     map[string]bool
	made       map[string]*googleCluster
	operations map[string]map[string]any
}

type googleCluster struct {
	fields  map[string]any
	cluster *cluster
}

func newGoogle(clusters *clusters, faults *faults) (*google, string, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, "", err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, "", err
	}
	file, err := json.Marshal(map[string]string{
		"type": "service_account", "project_id": "drover-project", "private_key_id": "k1",
		"private_key":  string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
		"client_email": googleAccount, "client_id": "1", "token_uri": googleToken,
	})
	return &google{
		clusters: clusters, faults: faults, key: &key.PublicKey, tokens: map[string]bool{},
		made: map[string]*googleCluster{}, operations: map[string]map[string]any{},
	}, string(file), err
}

func (g *google) state() any {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	found := []any{}
	for path, one := range g.made {
		found = append(found, map[string]any{"path": path, "cluster": one.fields})
	}
	return found
}

func (g *google) disown() {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	for _, one := range g.made {
		delete(one.fields, "resourceLabels")
	}
}

func (g *google) refuse(w http.ResponseWriter, code int, status, message string) {
	respond(w, code, map[string]any{
		"error": map[string]any{"code": code, "status": status, "message": message},
	})
}

func (g *google) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case g.faults.broke(w):
	case g.faults.take("throttle"):
		g.refuse(w, 429, "RESOURCE_EXHAUSTED", "Quota exceeded for requests per minute")
	case g.faults.take("unavailable"):
		g.refuse(w, 503, "UNAVAILABLE", "The service is currently unavailable.")
	case r.URL.Path == "/token":
		g.giveToken(w, r)
	case !g.knows(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")):
		g.refuse(w, 401, "UNAUTHENTICATED", "Request had invalid authentication credentials.")
	default:
		g.api(w, r)
	}
}

func (g *google) knows(token string) bool {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	return g.tokens[token]
}

// giveToken exchanges an assertion that the key of the account has signed.
func (g *google) giveToken(w http.ResponseWriter, r *http.Request) {
	refuse := func(text string) {
		respond(w, 400, map[string]string{"error": "invalid_grant", "error_description": text})
	}
	if r.FormValue("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" {
		refuse("Unsupported grant type")
		return
	}
	parts := strings.Split(r.FormValue("assertion"), ".")
	if len(parts) != 3 {
		refuse("Invalid JWT")
		return
	}
	signature, _ := base64.RawURLEncoding.DecodeString(parts[2])
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if rsa.VerifyPKCS1v15(g.key, crypto.SHA256, sum[:], signature) != nil {
		refuse("Invalid JWT Signature.")
		return
	}
	var claims struct {
		Iss, Scope, Aud string
		Iat, Exp        int64
	}
	payload, _ := base64.RawURLEncoding.DecodeString(parts[1])
	json.Unmarshal(payload, &claims)
	now := time.Now().Unix()
	if claims.Iss != googleAccount || claims.Aud != googleToken || claims.Scope == "" ||
		claims.Exp < now || claims.Exp > claims.Iat+3600 || claims.Iat > now+60 {
		refuse("Invalid JWT: claims")
		return
	}
	token := random("ya29.")
	g.mutex.Lock()
	g.tokens[token] = true
	g.mutex.Unlock()
	respond(w, 200, map[string]any{"access_token": token, "token_type": "Bearer", "expires_in": 3599})
}

// api has paths /v1/projects/P/locations/L/{clusters,operations}[/NAME…].
func (g *google) api(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/v1/"), "/")
	if len(parts) < 5 || parts[0] != "projects" || parts[2] != "locations" {
		g.refuse(w, 404, "NOT_FOUND", "Not found: "+r.URL.Path)
		return
	}
	if parts[1] != "drover-project" {
		g.refuse(w, 403, "PERMISSION_DENIED", "Permission denied on resource project "+parts[1])
		return
	}
	known := false
	for _, location := range googleLocations {
		known = known || location == parts[3]
	}
	if !known {
		g.refuse(w, 400, "INVALID_ARGUMENT", "Location \""+parts[3]+"\" does not exist.")
		return
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	location := strings.Join(parts[:4], "/")
	if parts[4] == "operations" {
		g.operation(w, parts)
		return
	}
	if len(parts) == 5 && r.Method == http.MethodPost {
		g.create(w, r, location)
		return
	}
	if len(parts) < 6 {
		g.refuse(w, 404, "NOT_FOUND", "Not found: "+r.URL.Path)
		return
	}
	path := location + "/clusters/" + parts[5]
	one, found := g.made[path]
	if !found {
		g.refuse(w, 404, "NOT_FOUND", "Not found: "+path)
		return
	}
	if r.Method == http.MethodGet {
		respond(w, 200, one.fields)
		return
	}
	if one.fields["status"] != "RUNNING" && one.fields["status"] != "ERROR" || g.faults.take("busy") {
		g.refuse(w, 400, "FAILED_PRECONDITION", "Cluster is running incompatible operation")
		return
	}
	g.change(w, r, parts, path, one)
}

func (g *google) operation(w http.ResponseWriter, parts []string) {
	found := g.operations[parts[len(parts)-1]]
	if found == nil {
		g.refuse(w, 404, "NOT_FOUND", "Not found: operation")
		return
	}
	respond(w, 200, found)
}

// begin does something that takes time. What it says in the end is the error of
// the operation.
func (g *google) begin(w http.ResponseWriter, work func() error) {
	name := random("operation-")
	operation := map[string]any{"name": name, "status": "RUNNING"}
	g.operations[name] = operation
	respond(w, 200, operation)
	go func() {
		err := work()
		g.mutex.Lock()
		defer g.mutex.Unlock()
		done := map[string]any{"name": name, "status": "DONE"}
		if err != nil {
			done["error"] = map[string]any{"code": 8, "message": err.Error()}
		}
		g.operations[name] = done
	}()
}

func (g *google) create(w http.ResponseWriter, r *http.Request, location string) {
	var body struct{ Cluster map[string]any }
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		g.refuse(w, 400, "INVALID_ARGUMENT", err.Error())
		return
	}
	fields := body.Cluster
	name, _ := fields["name"].(string)
	pools, _ := fields["nodePools"].([]any)
	if name == "" || len(pools) != 1 {
		g.refuse(w, 400, "INVALID_ARGUMENT", "Cluster.name and Cluster.node_pools are required.")
		return
	}
	path := location + "/clusters/" + name
	if g.made[path] != nil {
		g.refuse(w, 409, "ALREADY_EXISTS", "Already exists: "+path)
		return
	}
	pool := pools[0].(map[string]any)
	version := fields["initialClusterVersion"]
	if version == nil {
		version = "1.36.1-gke.100"
	}
	if pool["version"] == nil {
		pool["version"] = version
	}
	fields["currentMasterVersion"], fields["status"] = version, "PROVISIONING"
	one := &googleCluster{fields: fields}
	g.made[path] = one
	quota := g.faults.take("quota")
	count, _ := pool["initialNodeCount"].(float64)
	g.begin(w, func() error {
		set := func(status string) {
			copied := map[string]any{}
			for name, value := range fields {
				copied[name] = value
			}
			copied["status"] = status
			one.fields = copied
		}
		if quota {
			time.Sleep(g.clusters.delay)
			g.mutex.Lock()
			defer g.mutex.Unlock()
			set("ERROR")
			one.fields["statusMessage"] = "Insufficient regional quota to satisfy request: resource \"CPUS\""
			return fmt.Errorf("Insufficient regional quota to satisfy request: resource \"CPUS\"")
		}
		made, err := g.clusters.make(name, int(count), g.knows)
		g.mutex.Lock()
		defer g.mutex.Unlock()
		if err != nil {
			set("ERROR")
			return err
		}
		one.cluster = made
		set("RUNNING")
		one.fields["endpoint"] = made.address()
		one.fields["masterAuth"] = map[string]string{"clusterCaCertificate": g.clusters.ca()}
		return nil
	})
}

func (g *google) change(
	w http.ResponseWriter, r *http.Request, parts []string, path string, one *googleCluster,
) {
	status := func(status string) {
		copied := map[string]any{}
		for name, value := range one.fields {
			copied[name] = value
		}
		copied["status"] = status
		one.fields = copied
	}
	settle := func(work func() error) func() error {
		return func() error {
			err := work()
			g.mutex.Lock()
			defer g.mutex.Unlock()
			status("RUNNING")
			return err
		}
	}
	pool := func() map[string]any { return one.fields["nodePools"].([]any)[0].(map[string]any) }
	var body struct {
		NodeCount int
		Update    struct{ DesiredMasterVersion, DesiredNodeVersion, DesiredNodePoolId string }
	}
	json.NewDecoder(r.Body).Decode(&body)
	resize := len(parts) == 8 && parts[7] == fmt.Sprintf("%v:setSize", pool()["name"])
	switch {
	case r.Method == http.MethodDelete && len(parts) == 6:
		status("STOPPING")
		g.begin(w, func() error {
			var err error
			if one.cluster != nil {
				err = one.cluster.remove()
			}
			g.mutex.Lock()
			defer g.mutex.Unlock()
			delete(g.made, path)
			return err
		})
	case r.Method == http.MethodPost && resize:
		status("RECONCILING")
		g.begin(w, settle(func() error {
			g.mutex.Lock()
			pool()["initialNodeCount"] = body.NodeCount
			g.mutex.Unlock()
			return one.cluster.resize(body.NodeCount)
		}))
	case r.Method == http.MethodPut && body.Update.DesiredMasterVersion != "":
		status("RECONCILING")
		g.begin(w, settle(func() error {
			time.Sleep(g.clusters.delay)
			g.mutex.Lock()
			defer g.mutex.Unlock()
			one.fields["currentMasterVersion"] = body.Update.DesiredMasterVersion
			return nil
		}))
	case r.Method == http.MethodPut && body.Update.DesiredNodeVersion != "":
		if body.Update.DesiredNodePoolId != pool()["name"] {
			g.refuse(w, 404, "NOT_FOUND", "Not found: node pool")
			return
		}
		status("RECONCILING")
		g.begin(w, settle(func() error {
			time.Sleep(g.clusters.delay)
			g.mutex.Lock()
			defer g.mutex.Unlock()
			pool()["version"] = body.Update.DesiredNodeVersion
			return nil
		}))
	default:
		g.refuse(w, 400, "INVALID_ARGUMENT", "Must specify a field to update.")
	}
}
