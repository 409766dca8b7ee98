package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	azureTenant       = "11111111-1111-1111-1111-111111111111"
	azureSubscription = "22222222-2222-2222-2222-222222222222"
	azureClient       = "33333333-3333-3333-3333-333333333333"
	azureSecret       = "azure-secret"
	azureBase         = "https://management.azure.com/"
)

var azureLocations = []string{"eastus", "westeurope"}

// microsoft has the token endpoint for applications, and of the resource
// manager groups, workspaces for logs, and clusters.
type microsoft struct {
	clusters *clusters
	faults   *faults

	mutex     sync.Mutex
	tokens    map[string]bool
	resources map[string]*resource
	changes   map[string]map[string]any
}

type resource struct {
	fields  map[string]any
	cluster *cluster
	token   string
}

func newMicrosoft(clusters *clusters, faults *faults) *microsoft {
	return &microsoft{
		clusters: clusters, faults: faults, tokens: map[string]bool{},
		resources: map[string]*resource{}, changes: map[string]map[string]any{},
	}
}

func (m *microsoft) state() any {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	found := []any{}
	for path, one := range m.resources {
		found = append(found, map[string]any{"path": path, "resource": one.fields})
	}
	return found
}

func (m *microsoft) disown() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for _, one := range m.resources {
		delete(one.fields, "tags")
	}
}

func (m *microsoft) refuse(w http.ResponseWriter, status int, code, message string) {
	respond(w, status, map[string]any{"error": map[string]string{"code": code, "message": message}})
}

func (m *microsoft) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	switch {
	case m.faults.broke(w):
	case m.faults.take("throttle"):
		w.Header().Set("Retry-After", "1")
		m.refuse(w, 429, "TooManyRequests", "The request is being throttled.")
	case m.faults.take("unavailable"):
		m.refuse(w, 503, "ServiceUnavailable", "The service is unavailable.")
	case strings.HasSuffix(r.URL.Path, "/oauth2/v2.0/token"):
		m.giveToken(w, r)
	case !m.tokens[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]:
		m.refuse(w, 401, "InvalidAuthenticationToken", "The access token is invalid.")
	case strings.HasPrefix(r.URL.Path, "/operations/"):
		respond(w, 200, m.changes[strings.TrimPrefix(r.URL.Path, "/operations/")])
	default:
		m.api(w, r)
	}
}

func (m *microsoft) giveToken(w http.ResponseWriter, r *http.Request) {
	refuse := func(code, text string) {
		respond(w, 401, map[string]string{"error": code, "error_description": text + "\r\nTrace ID: 1"})
	}
	switch {
	case r.URL.Path != "/"+azureTenant+"/oauth2/v2.0/token":
		refuse("invalid_request", "AADSTS90002: Tenant not found.")
	case r.FormValue("client_id") != azureClient:
		refuse("unauthorized_client", "AADSTS700016: Application was not found in the directory.")
	case r.FormValue("client_secret") != azureSecret:
		refuse("invalid_client", "AADSTS7000215: Invalid client secret provided.")
	case r.FormValue("scope") != azureBase+".default":
		refuse("invalid_scope", "AADSTS70011: The provided value for scope is not valid.")
	default:
		token := random("eyJ")
		m.tokens[token] = true
		respond(w, 200, map[string]any{"access_token": token, "token_type": "Bearer", "expires_in": 3599})
	}
}

// api has paths /subscriptions/S/resourceGroups/G[/providers/N/TYPE/NAME[/ACTION]].
func (m *microsoft) api(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case r.URL.Query().Get("api-version") == "":
		m.refuse(w, 400, "MissingApiVersionParameter", "The api-version query parameter is required.")
		return
	case len(parts) < 4 || parts[0] != "subscriptions" || parts[2] != "resourceGroups":
		m.refuse(w, 404, "NotFound", "no such path")
		return
	case parts[1] != azureSubscription:
		m.refuse(w, 404, "SubscriptionNotFound", "The subscription '"+parts[1]+"' could not be found.")
		return
	}
	group := "/" + strings.Join(parts[:4], "/")
	path := r.URL.Path
	if len(parts) > 4 && m.resources[group] == nil {
		m.refuse(w, 404, "ResourceGroupNotFound", "Resource group '"+parts[3]+"' could not be found.")
		return
	}
	switch {
	case len(parts) == 5 && parts[4] == "resources":
		inside := []any{}
		for other := range m.resources {
			if strings.HasPrefix(other, group+"/") {
				inside = append(inside, map[string]string{"id": other})
			}
		}
		respond(w, 200, map[string]any{"value": inside})
	case r.Method == http.MethodPost && strings.HasSuffix(path, "/listClusterAdminCredential"):
		m.credential(w, strings.TrimSuffix(path, "/listClusterAdminCredential"))
	case r.Method == http.MethodPut:
		m.put(w, r, path, slices.Contains(parts, "managedClusters"))
	case m.resources[path] == nil:
		m.refuse(w, 404, "ResourceNotFound", "The Resource '"+path+"' was not found.")
	case r.Method == http.MethodGet:
		respond(w, 200, m.resources[path].fields)
	case r.Method == http.MethodDelete:
		m.delete(w, path)
	default:
		m.refuse(w, 405, "MethodNotAllowed", "no such method")
	}
}

func (m *microsoft) credential(w http.ResponseWriter, path string) {
	one := m.resources[path]
	if one == nil || one.cluster == nil {
		m.refuse(w, 404, "ResourceNotFound", "The Resource '"+path+"' was not found.")
		return
	}
	kubeconfig := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters:
- name: aks
  cluster: {server: "https://%s", certificate-authority-data: %s}
users:
- name: admin
  user: {token: %s}
contexts:
- name: aks-admin
  context: {cluster: aks, user: admin}
current-context: aks-admin
`, one.cluster.address(), m.clusters.ca(), one.token)
	encoded := base64.StdEncoding.EncodeToString([]byte(kubeconfig))
	respond(w, 200, map[string]any{"kubeconfigs": []any{map[string]string{"name": "clusterAdmin", "value": encoded}}})
}

func (m *microsoft) put(w http.ResponseWriter, r *http.Request, path string, isCluster bool) {
	var fields map[string]any
	if err := json.NewDecoder(r.Body).Decode(&fields); err != nil {
		m.refuse(w, 400, "InvalidRequestContent", err.Error())
		return
	}
	location, _ := fields["location"].(string)
	if !slices.Contains(azureLocations, location) {
		m.refuse(w, 400, "LocationNotAvailableForResourceType", "The provided location '"+location+"' is not available.")
		return
	}
	one := m.resources[path]
	if one == nil {
		one = &resource{token: random("aks-")}
		m.resources[path] = one
	} else if state(one.fields) != "Succeeded" && state(one.fields) != "Failed" || isCluster && m.faults.take("busy") {
		m.refuse(w, 409, "OperationNotAllowed", "Operation is not allowed because there's an in progress operation.")
		return
	}
	properties, _ := fields["properties"].(map[string]any)
	if properties == nil {
		properties = map[string]any{}
	}
	fields["properties"] = properties
	one.fields = fields
	if !isCluster {
		properties["provisioningState"] = "Succeeded"
		respond(w, 201, fields)
		return
	}
	pools, _ := properties["agentPoolProfiles"].([]any)
	account, _ := properties["servicePrincipalProfile"].(map[string]any)
	if len(pools) != 1 || account["secret"] != azureSecret {
		delete(m.resources, path)
		m.refuse(w, 400, "InvalidParameter", "agentPoolProfiles and servicePrincipalProfile are required.")
		return
	}
	delete(account, "secret")
	count, _ := pools[0].(map[string]any)["count"].(float64)
	properties["provisioningState"] = "Creating"
	name := random("op-")
	m.changes[name] = map[string]any{"status": "InProgress"}
	w.Header().Set("Azure-AsyncOperation", azureBase+"operations/"+name+"?api-version=2024-09-01")
	respond(w, 201, fields)
	quota := m.faults.take("quota")
	go m.apply(path, one, name, int(count), quota)
}

func state(fields map[string]any) string {
	properties, _ := fields["properties"].(map[string]any)
	found, _ := properties["provisioningState"].(string)
	return found
}

func (m *microsoft) apply(path string, one *resource, change string, count int, quota bool) {
	var err error
	made := one.cluster
	switch {
	case quota:
		time.Sleep(m.clusters.delay)
		err = fmt.Errorf("Insufficient regional vcpu quota left for location eastus")
	case made == nil:
		name := path[strings.LastIndex(path, "/")+1:]
		made, err = m.clusters.make(name, count, func(token string) bool { return token == one.token })
	default:
		err = made.resize(count)
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	properties := one.fields["properties"].(map[string]any)
	if err != nil {
		properties["provisioningState"] = "Failed"
		m.changes[change] = map[string]any{
			"status": "Failed",
			"error":  map[string]string{"code": "ErrCode_InsufficientVCPUQuota", "message": err.Error()},
		}
		return
	}
	one.cluster = made
	properties["provisioningState"] = "Succeeded"
	m.changes[change] = map[string]any{"status": "Succeeded"}
}

func (m *microsoft) delete(w http.ResponseWriter, path string) {
	one := m.resources[path]
	if s := state(one.fields); s == "Creating" || s == "Deleting" {
		m.refuse(w, 409, "OperationNotAllowed", "Operation is not allowed because there's an in progress operation.")
		return
	}
	one.fields["properties"].(map[string]any)["provisioningState"] = "Deleting"
	w.WriteHeader(http.StatusAccepted)
	go func() {
		time.Sleep(m.clusters.delay)
		if one.cluster != nil {
			one.cluster.remove()
		}
		m.mutex.Lock()
		defer m.mutex.Unlock()
		delete(m.resources, path)
	}()
}
