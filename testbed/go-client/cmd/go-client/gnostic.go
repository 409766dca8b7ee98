package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	openapi_v3 "github.com/google/gnostic-models/openapiv3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Fields that hold what stands in a JSON object beside the members that the message names, and the
// beginning of the keys that they take.
var entries = map[protoreflect.Name]string{
	"additional_properties":   "*",
	"path":                    "*",
	"response_code":           "*",
	"response_or_reference":   "*",
	"specification_extension": "x-*",
	"vendor_extension":        "x-*",
}

// One document as JSON, with `swagger` or `openapi` saying which version it is of.
type header struct {
	Swagger string `json:"swagger"`
	OpenAPI string `json:"openapi"`
}

// Writes the table that crates/kubernetes-protobuf writes OpenAPI documents by. It reads it off the
// published messages.
func writeGnosticTable() {
	out := bufio.NewWriter(os.Stdout)
	fmt.Fprintln(out, "# OpenAPI documents in protobuf. Written by `go-client gnostic-table` of the testbed.")
	for _, root := range []proto.Message{&openapi_v2.Document{}, &openapi_v3.Document{}} {
		open := []protoreflect.MessageDescriptor{root.ProtoReflect().Descriptor()}
		known := map[protoreflect.FullName]bool{open[0].FullName(): true}
		for len(open) > 0 {
			message := open[0]
			open = open[1:]
			fmt.Fprintln(out, form(message), shortName(message))
			for _, field := range byNumber(message) {
				line, next := fieldLine(message, field)
				fmt.Fprintln(out, line)
				if next != nil && !known[next.FullName()] {
					known[next.FullName()] = true
					open = append(open, next)
				}
			}
		}
	}
	check(out.Flush())
}

// How a message looks in JSON: an object with its fields, one of several things, or its only field's value.
func form(message protoreflect.MessageDescriptor) string {
	fields := message.Fields()
	_, takesEntries := entries[fields.Get(0).Name()]
	switch {
	case message.Oneofs().Len() > 0:
		return "oneof"
	case fields.Len() == 1 && fields.Get(0).IsList() && !takesEntries:
		return "value"
	default:
		return "object"
	}
}

func byNumber(message protoreflect.MessageDescriptor) []protoreflect.FieldDescriptor {
	var fields []protoreflect.FieldDescriptor
	for i := range message.Fields().Len() {
		fields = append(fields, message.Fields().Get(i))
	}
	slices.SortFunc(fields, func(one, other protoreflect.FieldDescriptor) int {
		return int(one.Number() - other.Number())
	})
	return fields
}

func fieldLine(message protoreflect.MessageDescriptor, field protoreflect.FieldDescriptor) (string, protoreflect.MessageDescriptor) {
	name, shape := field.JSONName(), ""
	if field.Name() == "_ref" {
		name = "$ref"
	}
	value := field
	if keys, takesEntries := entries[field.Name()]; takesEntries && field.IsList() {
		// Its messages are pairs of a key and a value.
		name, shape, value = keys, "entries ", field.Message().Fields().ByName("value")
	} else if field.IsList() {
		shape = "list "
	}
	kind := value.Kind().String()
	var next protoreflect.MessageDescriptor
	if value.Kind() == protoreflect.MessageKind {
		kind = shortName(value.Message())
		if value.Message().Name() == "Any" {
			kind = "any"
		} else {
			next = value.Message()
		}
	}
	return fmt.Sprintf("%d %s %s%s", field.Number(), name, shape, kind), next
}

// `openapi.v2.Schema` is `v2.Schema`.
func shortName(message protoreflect.MessageDescriptor) string {
	return strings.TrimPrefix(string(message.FullName()), "openapi.")
}

// Reads a document as JSON and writes it in protobuf, as servers of Kubernetes do.
func gnostic() {
	text, err := io.ReadAll(os.Stdin)
	check(err)
	document, err := parseDocument(text)
	check(err)
	encoded, err := proto.Marshal(document)
	check(err)
	_, err = os.Stdout.Write(encoded)
	check(err)
}

func parseDocument(text []byte) (proto.Message, error) {
	var head header
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, err
	}
	if head.Swagger != "" {
		return openapi_v2.ParseDocument(text)
	}
	return openapi_v3.ParseDocument(text)
}
