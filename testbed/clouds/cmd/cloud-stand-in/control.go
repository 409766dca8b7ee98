package main

import (
	"encoding/json"
	"net/http"
	"sync"
)

// faults are what goes wrong next. Each kind is counted down.
type faults struct {
	mutex sync.Mutex
	// Kinds: "throttle", "unavailable" and "reset" of any request; "busy" of a
	// change, as when another is under way; "quota" of a cluster that is ordered:
	// it is half made, and fails.
	left map[string]int
}

// take says whether a fault of the kind is due, and counts it.
func (f *faults) take(kind string) bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.left[kind] == 0 {
		return false
	}
	f.left[kind]--
	return true
}

// broke cuts the connection if that is due.
func (f *faults) broke(w http.ResponseWriter) bool {
	if !f.take("reset") {
		return false
	}
	connection, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		connection.Close()
	}
	return true
}

type control struct {
	faults *faults
	state  func() map[string]any
	// disown takes the labels and tags from all that exists, so that it could be
	// somebody else's.
	disown func()
}

func (c *control) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/faults":
		c.faults.mutex.Lock()
		defer c.faults.mutex.Unlock()
		c.faults.left = map[string]int{}
		if err := json.NewDecoder(r.Body).Decode(&c.faults.left); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		respond(w, http.StatusOK, c.faults.left)
	case "/disown":
		c.disown()
		respond(w, http.StatusOK, map[string]any{})
	case "/state":
		respond(w, http.StatusOK, c.state())
	default:
		http.NotFound(w, r)
	}
}

func respond(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(body)
}
