package main

import (
	"context"
	"encoding/json"
	"fmt"

	openapi_v3 "github.com/google/gnostic-models/openapiv3"
	"google.golang.org/protobuf/proto"
	api "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/tools/clientcmd"
	models "k8s.io/kube-openapi/pkg/util/proto"
)

const chimes = "com.example.go.v1.Chime"

// Reads what a server publishes about its types, in protobuf, and holds it against what it says in JSON.
// Prints one line for each step that went well.
func readOpenAPI(kubeconfig string) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	check(err)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err = dynamic.NewForConfigOrDie(config).Resource(definitions).Create(ctx,
		object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "chimes.go.example.com", chime()), api.CreateOptions{})
	check(err)
	client := discovery.NewDiscoveryClientForConfigOrDie(config)

	step("version 2", func() {
		await(func() bool {
			text := inJSON(ctx, client, "/openapi/v2")
			document, err := client.OpenAPISchema()
			check(err)
			known := names(text, "definitions")
			// The document may have changed between the two.
			if !same(text, document) || !known[chimes] {
				return false
			}
			expect(len(known) == len(document.Definitions.AdditionalProperties), known)
			readable, err := models.NewOpenAPIData(document)
			check(err)
			expect(len(readable.ListModels()) == len(known), readable.ListModels())
			model := readable.LookupModel(chimes)
			expect(model.GetExtensions()["x-kubernetes-group-version-kind"] != nil, model.GetExtensions())
			return true
		})
	})
	step("version 3", func() {
		await(func() bool {
			paths, err := client.OpenAPIV3().Paths()
			check(err)
			for path, version := range paths {
				if !sameVersion(version) {
					fmt.Println("changed:", path)
					return false
				}
			}
			return paths["apis/go.example.com/v1"] != nil
		})
	})
}

// Whether both forms of a document are one.
func sameVersion(version openapi.GroupVersion) bool {
	text, err := version.Schema("application/json")
	check(err)
	encoded, err := version.Schema(openapi.ContentTypeOpenAPIV3PB)
	check(err)
	var document openapi_v3.Document
	check(proto.Unmarshal(encoded, &document))
	if !same(text, &document) {
		return false
	}
	var whole struct{ Components map[string]map[string]any }
	check(json.Unmarshal(text, &whole))
	expect(len(whole.Components["schemas"]) == len(document.GetComponents().GetSchemas().GetAdditionalProperties()), whole)
	_, err = models.NewOpenAPIV3Data(&document)
	check(err)
	return true
}

// Whether the document says what the JSON says. Ends the program when the JSON has no form in protobuf.
func same(text []byte, document proto.Message) bool {
	parsed, err := parseDocument(text)
	check(err)
	return proto.Equal(parsed, document)
}

func inJSON(ctx context.Context, client *discovery.DiscoveryClient, path string) []byte {
	text, err := client.RESTClient().Get().AbsPath(path).SetHeader("Accept", "application/json").DoRaw(ctx)
	check(err)
	return text
}

func names(text []byte, member string) map[string]bool {
	var document map[string]json.RawMessage
	check(json.Unmarshal(text, &document))
	var members map[string]json.RawMessage
	check(json.Unmarshal(document[member], &members))
	names := map[string]bool{}
	for name := range members {
		names[name] = true
	}
	return names
}

// A definition with something of everything that schemas can say.
func chime() map[string]any {
	text := map[string]any{"type": "string"}
	spec := map[string]any{
		"type": "object", "description": "What it is:\n  two lines, # and \"quotes\".", "required": []any{"tone"},
		"x-kubernetes-validations": []any{
			map[string]any{"rule": "self.tone != 'none' ||\n  self.low <= 3", "message": "must sound: always # or 'often'", "reason": "FieldValueInvalid"},
			map[string]any{"rule": "self.tone.size() > 0 // never \"empty\"", "messageExpression": "'tone ' + self.tone"},
		},
		"properties": map[string]any{
			"tone":   map[string]any{"type": "string", "enum": []any{"c", "", "yes", "null", "1.5", "2026-01-02", "a: b", "- d"}, "default": "c"},
			"level":  map[string]any{"type": "integer", "format": "int32", "enum": []any{int64(-1), int64(0), int64(3)}, "default": int64(3)},
			"share":  map[string]any{"type": "number", "minimum": 0.25, "maximum": int64(2), "exclusiveMaximum": true, "multipleOf": 0.25, "default": 0.5},
			"low":    map[string]any{"type": "integer", "format": "int64", "nullable": true, "minimum": int64(0)},
			"loud":   map[string]any{"type": "boolean", "default": false},
			"port":   map[string]any{"x-kubernetes-int-or-string": true, "anyOf": []any{map[string]any{"type": "integer"}, text}},
			"free":   map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
			"inner":  map[string]any{"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
			"labels": map[string]any{"type": "object", "additionalProperties": text, "maxProperties": int64(4), "minProperties": int64(1), "x-kubernetes-map-type": "atomic"},
			"name":   map[string]any{"type": "string", "pattern": "^[a-z]+$", "minLength": int64(1), "maxLength": int64(9), "format": "date-time", "title": "Name"},
			"either": map[string]any{"type": "object", "properties": map[string]any{"a": text, "b": text},
				"oneOf": []any{map[string]any{"required": []any{"a"}}, map[string]any{"required": []any{"b"}}},
				"not":   map[string]any{"required": []any{"a", "b"}}, "default": map[string]any{"a": "x"}},
			"tags": map[string]any{"type": "array", "items": text, "x-kubernetes-list-type": "set", "maxItems": int64(5), "default": []any{"t"}},
			"parts": map[string]any{
				"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": []any{"name", "kind"}, "minItems": int64(0),
				"items": map[string]any{"type": "object", "required": []any{"name", "kind"}, "properties": map[string]any{"name": text, "kind": text}},
			},
		},
	}
	return map[string]any{
		"group": "go.example.com", "scope": "Namespaced",
		"names": map[string]any{"plural": "chimes", "singular": "chime", "kind": "Chime", "listKind": "ChimeList"},
		"versions": []any{map[string]any{
			"name": "v1", "served": true, "storage": true, "subresources": map[string]any{"status": map[string]any{}},
			"selectableFields": []any{map[string]any{"jsonPath": ".spec.tone"}},
			"schema": map[string]any{"openAPIV3Schema": map[string]any{
				"type": "object", "description": "A chime.", "externalDocs": map[string]any{"url": "https://example.com/chimes"},
				"properties": map[string]any{"spec": spec, "status": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		}},
	}
}
