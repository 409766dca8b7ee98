package main

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"sync"
	"sync/atomic"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	api "k8s.io/apimachinery/pkg/api/meta"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	followed = "followed"
	resync   = 2 * time.Second
)

var (
	mapKind     = core.SchemeGroupVersion.WithResource("configmaps")
	spaces      = core.SchemeGroupVersion.WithResource("namespaces")
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	bells       = schema.GroupVersionResource{Group: "go.example.com", Version: "v1", Resource: "bells"}
)

// Counts what informers ask for: lists that are streamed, and plain ones.
type listings struct {
	inner http.RoundTripper
	mutex sync.Mutex
	// By the last part of the path.
	streamed, plain map[string]int
}

func (l *listings) RoundTrip(request *http.Request) (*http.Response, error) {
	query, kind := request.URL.Query(), path.Base(request.URL.Path)
	l.mutex.Lock()
	switch {
	case request.Method != http.MethodGet:
	case query.Get("sendInitialEvents") == "true":
		l.streamed[kind]++
	case !query.Has("watch"):
		l.plain[kind]++
	}
	l.mutex.Unlock()
	return l.inner.RoundTrip(request)
}

func (l *listings) of(kind string) (streamed, plain int) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.streamed[kind], l.plain[kind]
}

// What handlers of one informer were told.
type told struct{ added, changed, again, deleted atomic.Int64 }

func (t *told) follow(informer cache.SharedIndexInformer) {
	version := func(object any) string {
		accessor, err := api.Accessor(object)
		check(err)
		return accessor.GetResourceVersion()
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { t.added.Add(1) },
		UpdateFunc: func(old, new any) {
			if version(old) == version(new) {
				t.again.Add(1)
			} else {
				t.changed.Add(1)
			}
		},
		DeleteFunc: func(any) { t.deleted.Add(1) },
	})
	check(err)
}

// Follows built-in and custom kinds with dynamic and metadata informers. Prints one line for each step that
// went well.
func follow(kubeconfig string) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	check(err)
	asked := &listings{streamed: map[string]int{}, plain: map[string]int{}}
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper {
		asked.inner = inner
		return asked
	})
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	defer cancel()
	client := dynamic.NewForConfigOrDie(config)
	stop := make(chan struct{})
	defer close(stop)

	namespaces := client.Resource(spaces)
	_, err = namespaces.Create(ctx, object("v1", "Namespace", "", followed, nil), meta.CreateOptions{})
	check(err)
	define(ctx, client)
	for i := range 3 {
		place(ctx, client, mapKind, object("v1", "ConfigMap", followed, fmt.Sprintf("early-%d", i), nil))
	}
	place(ctx, client, bells, object("go.example.com/v1", "Bell", followed, "early", map[string]any{"tone": "c"}))

	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, resync, followed, nil)
	mapInformer, bellInformer := factory.ForResource(mapKind), factory.ForResource(bells)
	var ofMaps, ofBells, ofMetadata, ofChosen told
	ofMaps.follow(mapInformer.Informer())
	ofBells.follow(bellInformer.Informer())
	factory.Start(stop)
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		expect(synced, kind)
	}
	// Every namespace has one map from its start.
	before := int64(len(mapInformer.Informer().GetStore().List()))

	step("dynamic start", func() {
		await(func() bool { return ofMaps.added.Load() == before && ofBells.added.Load() == 1 })
		listed, err := bellInformer.Lister().ByNamespace(followed).List(labels.Everything())
		check(err)
		expect(len(listed) == 1 && listed[0].(*unstructured.Unstructured).GetKind() == "Bell", listed)
	})
	step("metadata start", func() {
		factory := metadatainformer.NewFilteredSharedInformerFactory(metadata.NewForConfigOrDie(config), 0, followed, nil)
		informer := factory.ForResource(bells)
		ofMetadata.follow(informer.Informer())
		chosen := metadatainformer.NewFilteredSharedInformerFactory(metadata.NewForConfigOrDie(config), 0, followed,
			func(options *meta.ListOptions) { options.LabelSelector = "chosen=yes" })
		ofChosen.follow(chosen.ForResource(mapKind).Informer())
		factory.Start(stop)
		chosen.Start(stop)
		factory.WaitForCacheSync(ctx.Done())
		chosen.WaitForCacheSync(ctx.Done())
		await(func() bool { return ofMetadata.added.Load() == 1 })
		one, err := informer.Lister().ByNamespace(followed).Get("early")
		check(err)
		partial := one.(*meta.PartialObjectMetadata)
		expect(partial.Name == "early" && partial.UID != "" && partial.Generation == 1, partial)
		expect(ofChosen.added.Load() == 0, ofChosen.added.Load())
	})
	step("streamed lists", func() {
		for _, kind := range []string{"configmaps", "bells"} {
			streamed, plain := asked.of(kind)
			expect(streamed == 2 && plain == 0, fmt.Sprint(kind, streamed, plain))
		}
	})
	step("changes", func() {
		place(ctx, client, mapKind, object("v1", "ConfigMap", followed, "late", nil))
		place(ctx, client, bells, object("go.example.com/v1", "Bell", followed, "late", map[string]any{"tone": "d"}))
		late, err := client.Resource(mapKind).Namespace(followed).Get(ctx, "late", meta.GetOptions{})
		check(err)
		late.SetLabels(map[string]string{"chosen": "yes"})
		_, err = client.Resource(mapKind).Namespace(followed).Update(ctx, late, meta.UpdateOptions{})
		check(err)
		bell, err := client.Resource(bells).Namespace(followed).Get(ctx, "early", meta.GetOptions{})
		check(err)
		check(unstructured.SetNestedField(bell.Object, "e", "spec", "tone"))
		_, err = client.Resource(bells).Namespace(followed).Update(ctx, bell, meta.UpdateOptions{})
		check(err)
		await(func() bool {
			return ofMaps.added.Load() == before+1 && ofMaps.changed.Load() == 1 && ofBells.added.Load() == 2 &&
				ofBells.changed.Load() == 1 && ofMetadata.added.Load() == 2 && ofMetadata.changed.Load() == 1
		})
		// An object that begins to match is new to who selects it.
		await(func() bool { return ofChosen.added.Load() == 1 && ofChosen.changed.Load() == 0 })
	})
	step("resync", func() {
		await(func() bool { return ofMaps.again.Load() >= before+1 && ofBells.again.Load() >= 2 })
		expect(ofMetadata.again.Load() == 0, "nobody asked for it")
		streamed, plain := asked.of("configmaps")
		expect(streamed == 2 && plain == 0, "a resync is from the cache")
	})
	step("deletions", func() {
		check(client.Resource(bells).Namespace(followed).Delete(ctx, "early", meta.DeleteOptions{}))
		check(client.Resource(mapKind).Namespace(followed).Delete(ctx, "late", meta.DeleteOptions{}))
		await(func() bool {
			return ofBells.deleted.Load() == 1 && ofMetadata.deleted.Load() == 1 && ofMaps.deleted.Load() == 1 &&
				ofChosen.deleted.Load() == 1
		})
		_, err := bellInformer.Lister().ByNamespace(followed).Get("early")
		expect(errors.IsNotFound(err), err)
		check(namespaces.Delete(ctx, followed, meta.DeleteOptions{}))
		await(func() bool { return len(mapInformer.Informer().GetStore().List()) == 0 })
		await(func() bool { return len(bellInformer.Informer().GetStore().List()) == 0 })
	})
	fmt.Printf("%d resyncs\n", ofMaps.again.Load())
}

func object(version, kind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	made := &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": kind}}
	made.SetName(name)
	made.SetNamespace(namespace)
	if spec != nil {
		made.Object["spec"] = spec
	}
	return made
}

func place(ctx context.Context, client dynamic.Interface, kind schema.GroupVersionResource, object *unstructured.Unstructured) {
	created, err := client.Resource(kind).Namespace(object.GetNamespace()).Create(ctx, object, meta.CreateOptions{})
	check(err)
	expect(created.GetUID() != "", created)
}

// Serves bells.
func define(ctx context.Context, client dynamic.Interface) {
	text := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	definition := object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "bells.go.example.com", map[string]any{
		"group": "go.example.com", "scope": "Namespaced",
		"names": map[string]any{"plural": "bells", "singular": "bell", "kind": "Bell", "listKind": "BellList"},
		"versions": []any{map[string]any{
			"name": "v1", "served": true, "storage": true,
			"subresources": map[string]any{"status": map[string]any{}},
			"schema": map[string]any{"openAPIV3Schema": map[string]any{
				"type": "object", "properties": map[string]any{"spec": text, "status": text},
			}},
		}},
	})
	_, err := client.Resource(definitions).Create(ctx, definition, meta.CreateOptions{})
	check(err)
	await(func() bool {
		served, err := client.Resource(definitions).Get(ctx, definition.GetName(), meta.GetOptions{})
		check(err)
		conditions, _, err := unstructured.NestedSlice(served.Object, "status", "conditions")
		check(err)
		for _, condition := range conditions {
			told := condition.(map[string]any)
			if told["type"] == "Established" && told["status"] == "True" {
				return true
			}
		}
		return false
	})
}
