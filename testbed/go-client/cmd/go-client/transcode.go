package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

// What Go makes of one object.
type transcoded struct {
	// The object in protobuf.
	Protobuf []byte `json:"protobuf,omitempty"`
	// That protobuf, decoded and written as JSON.
	JSON  runtime.Object `json:"json,omitempty"`
	Error string         `json:"error,omitempty"`
}

func transcode() {
	types := knownTypes()
	serializer := protobuf.NewSerializer(types, types)
	in := bufio.NewReader(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			return
		}
		check(err)
		result, err := transcodeOne(types, serializer, line)
		if err != nil {
			result = transcoded{Error: err.Error()}
		}
		check(out.Encode(result))
	}
}

func transcodeOne(types *runtime.Scheme, serializer *protobuf.Serializer, line []byte) (transcoded, error) {
	var head runtime.TypeMeta
	if err := json.Unmarshal(line, &head); err != nil {
		return transcoded{}, err
	}
	object, err := types.New(schema.FromAPIVersionAndKind(head.APIVersion, head.Kind))
	if err != nil {
		return transcoded{}, err
	}
	if err := json.Unmarshal(line, object); err != nil {
		return transcoded{}, err
	}
	var encoded bytes.Buffer
	if err := serializer.Encode(object, &encoded); err != nil {
		return transcoded{}, err
	}
	decoded, _, err := serializer.Decode(encoded.Bytes(), nil, nil)
	return transcoded{Protobuf: encoded.Bytes(), JSON: decoded}, err
}
