package main

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"reflect"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Types whose JSON is not what their fields say.
var special = map[reflect.Type]string{
	reflect.TypeFor[apiextensions.JSON]():                         "any",
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrArray]():       "schema-or-array",
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrBool]():        "schema-or-bool",
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrStringArray](): "schema-or-strings",
	reflect.TypeFor[intstr.IntOrString]():                         "int-or-string",
	reflect.TypeFor[meta.FieldsV1]():                              "any",
	reflect.TypeFor[meta.MicroTime]():                             "micro-time",
	reflect.TypeFor[meta.Time]():                                  "time",
	reflect.TypeFor[resource.Quantity]():                          "quantity",
	reflect.TypeFor[runtime.RawExtension]():                       "any",
}

// What every group has, with the one type behind it.
var shared = map[string]reflect.Type{
	"CreateOptions": reflect.TypeFor[meta.CreateOptions](),
	"DeleteOptions": reflect.TypeFor[meta.DeleteOptions](),
	"GetOptions":    reflect.TypeFor[meta.GetOptions](),
	"ListOptions":   reflect.TypeFor[meta.ListOptions](),
	"PatchOptions":  reflect.TypeFor[meta.PatchOptions](),
	"UpdateOptions": reflect.TypeFor[meta.UpdateOptions](),
}

// The kind of what a watch sends. It holds an object and is none.
const watchEvent = "WatchEvent"

type table struct {
	messages map[string][]string
}

// Writes the table that crates/kubernetes-protobuf transcodes by: of every kind that a Kubernetes API
// server serves, the fields with their numbers on the wire, their names in JSON, and when each form
// leaves one out. It reads all that off the published Go types.
func writeSchema() {
	types := knownTypes()
	kinds := map[string]string{}
	found := table{messages: map[string][]string{}}
	add := func(version, kind string, typ reflect.Type) {
		kinds[version+" "+kind] = found.message(typ)
	}
	for known, typ := range types.AllKnownTypes() {
		_, everywhere := shared[known.Kind]
		everywhere = everywhere || known.Kind == watchEvent
		if served(known.GroupVersion()) && !everywhere && encodable(typ) {
			add(known.GroupVersion().String(), known.Kind, typ)
		}
	}
	for kind, typ := range shared {
		add("*", kind, typ)
	}

	out := bufio.NewWriter(os.Stdout)
	fmt.Fprintf(out, "# Kubernetes in protobuf, by k8s.io/api %s. Written by `go-client schema` of the testbed.\n", version())
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		fmt.Fprintf(out, "kind %s %s\n", name, kinds[name])
	}
	for _, name := range slices.Sorted(maps.Keys(found.messages)) {
		fmt.Fprintf(out, "message %s\n", name)
		for _, field := range found.messages[name] {
			fmt.Fprintln(out, field)
		}
	}
	check(out.Flush())
}

// Versions that a server offers without being asked to: the stable ones.
func served(version schema.GroupVersion) bool {
	return !strings.Contains(version.Version, "alpha") &&
		(!strings.Contains(version.Version, "beta") || version.Group == "meta.k8s.io") &&
		version.Version != runtime.APIVersionInternal
}

func encodable(typ reflect.Type) bool {
	_, ok := reflect.PointerTo(typ).MethodByName("MarshalToSizedBuffer")
	return ok
}

// Enters a struct, or a slice that is a message of its own, and returns its name.
func (t table) message(typ reflect.Type) string {
	name := messageName(typ)
	if _, known := t.messages[name]; known {
		return name
	}
	t.messages[name] = nil
	if typ.Kind() == reflect.Slice {
		t.messages[name] = []string{"1 = value list " + t.typeOf(typ.Elem(), "bytes")}
		return name
	}
	lines := map[int]string{}
	for i := range typ.NumField() {
		field := typ.Field(i)
		number, line := t.field(name, field)
		if line == "" {
			continue
		}
		if _, twice := lines[number]; twice {
			fail("%s has two fields %d", name, number)
		}
		lines[number] = line
	}
	for _, number := range slices.Sorted(maps.Keys(lines)) {
		t.messages[name] = append(t.messages[name], fmt.Sprintf("%d %s", number, lines[number]))
	}
	return name
}

// One line: JSON name (`.`: its members stand in the object itself), presence, when JSON leaves it out, type.
func (t table) field(owner string, field reflect.StructField) (int, string) {
	tag := field.Tag.Get("protobuf")
	if tag == "" || tag == "-" {
		if field.Type != reflect.TypeFor[meta.TypeMeta]() && field.Tag.Get("json") != "-" {
			fail("%s.%s has no number", owner, field.Name)
		}
		return 0, ""
	}
	parts := strings.Split(tag, ",")
	number, err := strconv.Atoi(parts[1])
	check(err)
	json := strings.Split(field.Tag.Get("json"), ",")
	name, options := json[0], json[1:]
	presence := "value"
	for _, option := range options {
		switch option {
		case "omitempty":
			presence += "?"
		case "omitzero":
			presence += "0"
		case "inline":
			name = "."
		default:
			fail("%s.%s: cannot tell the JSON option %s", owner, field.Name, option)
		}
	}
	if name == "" {
		if !field.Anonymous {
			fail("%s.%s has no JSON name", owner, field.Name)
		}
		name = "."
	}
	typ := field.Type
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
		presence = strings.Replace(presence, "value", "optional", 1)
	}
	return number, fmt.Sprintf("%s %s %s", name, presence, t.typeOf(typ, parts[0]))
}

func (t table) typeOf(typ reflect.Type, wire string) string {
	if name, ok := special[typ]; ok {
		if name[:3] == "sch" {
			name += " " + t.message(reflect.TypeFor[apiextensions.JSONSchemaProps]())
		}
		return name
	}
	if _, custom := reflect.PointerTo(typ).MethodByName("MarshalJSON"); custom {
		fail("%s has a JSON form of its own", typ)
	}
	switch typ.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "bool"
	case reflect.Int32:
		return "int32"
	case reflect.Int64:
		return "int64"
	case reflect.Float64:
		return "double"
	case reflect.Struct:
		return "message " + t.message(typ)
	case reflect.Slice:
		if typ.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		if encodable(typ) {
			return "message " + t.message(typ)
		}
		return "list " + t.typeOf(typ.Elem(), wire)
	case reflect.Map:
		if typ.Key().Kind() != reflect.String {
			fail("%s has keys that are no strings", typ)
		}
		return "map " + t.typeOf(typ.Elem(), wire)
	case reflect.Pointer:
		fail("%s stands where no pointer was met before", typ)
	}
	fail("cannot tell the type %s", typ)
	return ""
}

// `core/v1.Pod`: unique, and short enough to be read.
func messageName(typ reflect.Type) string {
	parts := strings.Split(typ.PkgPath(), "/")
	return strings.Join(parts[len(parts)-2:], "/") + "." + typ.Name()
}

func version() string {
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if module.Path == "k8s.io/api" {
			return module.Version
		}
	}
	return "of unknown version"
}
