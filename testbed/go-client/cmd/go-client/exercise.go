package main

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"
	"time"

	apps "k8s.io/api/apps/v1"
	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/retry"
)

const (
	mediaType = "application/vnd.kubernetes.protobuf"
	namespace = "typed"
	patience  = 60 * time.Second
)

// Counts answers and ends the program at one that is not protobuf.
type onlyProtobuf struct {
	inner   http.RoundTripper
	answers atomic.Int64
}

func (o *onlyProtobuf) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := o.inner.RoundTrip(request)
	if err == nil {
		o.answers.Add(1)
		got := response.Header.Get("Content-Type")
		// Refusals are never transformed, so who would take JSON untransformed gets them in JSON.
		either := response.StatusCode >= 400 && strings.Contains(request.Header.Get("Accept"), "json")
		if !either && !strings.HasPrefix(got, mediaType) {
			fail("%s %s answered %d as %q", request.Method, request.URL.Path, response.StatusCode, got)
		}
	}
	return response, err
}

// Uses built-in kinds as controllers do. Bodies go out and answers come in as protobuf; an answer in any
// other form ends the program. Prints one line for each step that went well.
func exercise(kubeconfig string) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	check(err)
	config.ContentType = mediaType
	config.AcceptContentTypes = mediaType
	transport := &onlyProtobuf{}
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper {
		transport.inner = inner
		return transport
	})
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	client := kubernetes.NewForConfigOrDie(config)

	step("namespace", func() {
		object := &core.Namespace{ObjectMeta: meta.ObjectMeta{Name: namespace}}
		created, err := client.CoreV1().Namespaces().Create(ctx, object, meta.CreateOptions{})
		check(err)
		expect(created.UID != "" && created.Status.Phase == core.NamespaceActive, created)
		_, err = client.CoreV1().Namespaces().Create(ctx, object, meta.CreateOptions{})
		expect(errors.IsAlreadyExists(err), err)
	})
	stop := make(chan struct{})
	seen := informer(client, stop)
	step("config map", func() { configMaps(ctx, client) })
	step("secret", func() { secrets(ctx, client) })
	step("deployment", func() { deployments(ctx, client) })
	step("informer", func() {
		await(func() bool { return seen.added.Load() > 0 && seen.updated.Load() > 0 && seen.deleted.Load() > 0 })
		close(stop)
	})
	step("watch", func() { watches(ctx, client) })
	step("lease", func() { leases(ctx, client) })
	step("service account", func() { tokens(ctx, client) })
	step("reviews", func() { reviews(ctx, client) })
	step("errors", func() { refusals(ctx, client) })
	step("metadata", func() { metadataOnly(ctx, config) })
	step("deletion", func() {
		maps := client.CoreV1().ConfigMaps(namespace)
		policy := meta.DeletePropagationBackground
		options := meta.DeleteOptions{PropagationPolicy: &policy}
		check(maps.DeleteCollection(ctx, options, meta.ListOptions{LabelSelector: "made-by=go-client"}))
		left, err := maps.List(ctx, meta.ListOptions{LabelSelector: "made-by=go-client"})
		check(err)
		expect(len(left.Items) == 0, left.Items)
		check(client.CoreV1().Namespaces().Delete(ctx, namespace, meta.DeleteOptions{}))
		await(func() bool {
			_, err := client.CoreV1().Namespaces().Get(ctx, namespace, meta.GetOptions{})
			return errors.IsNotFound(err)
		})
	})
	fmt.Printf("%d answers, all in protobuf\n", transport.answers.Load())
}

func configMaps(ctx context.Context, client kubernetes.Interface) {
	maps := client.CoreV1().ConfigMaps(namespace)
	for i := range 5 {
		object := &core.ConfigMap{
			ObjectMeta: meta.ObjectMeta{Name: fmt.Sprintf("map-%d", i), Labels: map[string]string{"made-by": "go-client"}},
			Data:       map[string]string{"text": "grüße", "empty": ""},
			BinaryData: map[string][]byte{"bytes": {0, 1, 2, 0xff}},
		}
		created, err := maps.Create(ctx, object, meta.CreateOptions{FieldValidation: "Strict"})
		check(err)
		expect(reflect.DeepEqual(created.Data, object.Data), created.Data)
		expect(reflect.DeepEqual(created.BinaryData, object.BinaryData), created.BinaryData)
	}
	one, err := maps.Get(ctx, "map-0", meta.GetOptions{})
	check(err)
	one.Data["text"] = "changed"
	updated, err := maps.Update(ctx, one, meta.UpdateOptions{})
	check(err)
	expect(updated.Data["text"] == "changed" && updated.ResourceVersion != one.ResourceVersion, updated)
	_, err = maps.Update(ctx, one, meta.UpdateOptions{})
	expect(errors.IsConflict(err), err)
	patched, err := maps.Patch(ctx, "map-0", types.MergePatchType, []byte(`{"data":{"text":null}}`), meta.PatchOptions{})
	check(err)
	expect(len(patched.Data) == 1, patched.Data)

	names, options := map[string]bool{}, meta.ListOptions{LabelSelector: "made-by=go-client", Limit: 2}
	for pages := 1; ; pages++ {
		page, err := maps.List(ctx, options)
		check(err)
		for _, item := range page.Items {
			names[item.Name] = true
		}
		if options.Continue = page.Continue; options.Continue == "" {
			expect(pages == 3 && len(names) == 5, names)
			break
		}
	}
}

func secrets(ctx context.Context, client kubernetes.Interface) {
	object := &core.Secret{ObjectMeta: meta.ObjectMeta{Name: "secret"}, StringData: map[string]string{"key": "value"}}
	created, err := client.CoreV1().Secrets(namespace).Create(ctx, object, meta.CreateOptions{})
	check(err)
	expect(string(created.Data["key"]) == "value" && created.Type == core.SecretTypeOpaque, created)
	uid := types.UID("00000000-0000-0000-0000-000000000000")
	wrong := meta.DeleteOptions{Preconditions: &meta.Preconditions{UID: &uid}}
	err = client.CoreV1().Secrets(namespace).Delete(ctx, "secret", wrong)
	expect(errors.IsConflict(err), err)
	check(client.CoreV1().Secrets(namespace).Delete(ctx, "secret", meta.DeleteOptions{}))
}

func deployments(ctx context.Context, client kubernetes.Interface) {
	deployments := client.AppsV1().Deployments(namespace)
	replicas, surge, grace := int32(2), intstr.FromString("50%"), int64(5)
	labels := map[string]string{"app": "web"}
	object := &apps.Deployment{
		ObjectMeta: meta.ObjectMeta{Name: "web", Labels: labels},
		Spec: apps.DeploymentSpec{
			Replicas: &replicas,
			Selector: &meta.LabelSelector{MatchLabels: labels},
			Strategy: apps.DeploymentStrategy{RollingUpdate: &apps.RollingUpdateDeployment{MaxSurge: &surge}},
			Template: core.PodTemplateSpec{
				ObjectMeta: meta.ObjectMeta{Labels: labels},
				Spec: core.PodSpec{
					TerminationGracePeriodSeconds: &grace,
					Containers: []core.Container{{
						Name:  "web",
						Image: "example.invalid/web:1",
						Ports: []core.ContainerPort{{Name: "http", ContainerPort: 8080}},
						Resources: core.ResourceRequirements{Requests: core.ResourceList{
							core.ResourceCPU: resource.MustParse("1500m"), core.ResourceMemory: resource.MustParse("1Gi"),
						}},
						ReadinessProbe: &core.Probe{ProbeHandler: core.ProbeHandler{
							HTTPGet: &core.HTTPGetAction{Path: "/", Port: intstr.FromString("http")},
						}},
					}},
					Volumes: []core.Volume{{Name: "scratch", VolumeSource: core.VolumeSource{EmptyDir: &core.EmptyDirVolumeSource{}}}},
				},
			},
		},
	}
	created, err := deployments.Create(ctx, object, meta.CreateOptions{})
	check(err)
	pod := created.Spec.Template.Spec
	expect(*created.Spec.Strategy.RollingUpdate.MaxSurge == surge, created.Spec.Strategy)
	expect(pod.Containers[0].Resources.Requests.Cpu().Cmp(resource.MustParse("1.5")) == 0, pod)
	expect(pod.Containers[0].ReadinessProbe.HTTPGet.Port.StrVal == "http", pod)
	expect(pod.Volumes[0].EmptyDir != nil && pod.RestartPolicy == core.RestartPolicyAlways, pod)

	// The controller of deployments writes their status meanwhile.
	check(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		scale, err := deployments.GetScale(ctx, "web", meta.GetOptions{})
		check(err)
		expect(scale.Spec.Replicas == 2, scale)
		scale.Spec.Replicas = 3
		_, err = deployments.UpdateScale(ctx, "web", scale, meta.UpdateOptions{})
		return err
	}))
	patch := []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"example.invalid/web:2"}]}}}}`)
	patched, err := deployments.Patch(ctx, "web", types.StrategicMergePatchType, patch, meta.PatchOptions{})
	check(err)
	expect(*patched.Spec.Replicas == 3 && len(patched.Spec.Template.Spec.Containers[0].Ports) == 1, patched.Spec)
	await(func() bool {
		pods, err := client.CoreV1().Pods(namespace).List(ctx, meta.ListOptions{LabelSelector: "app=web"})
		check(err)
		running := 0
		for _, pod := range pods.Items {
			if pod.Status.Phase == core.PodRunning && pod.Spec.Containers[0].Image == "example.invalid/web:2" {
				running++
			}
		}
		return running == 3
	})
	check(deployments.Delete(ctx, "web", meta.DeleteOptions{}))
}

type counts struct{ added, updated, deleted atomic.Int64 }

// Follows pods as controllers do. Since v0.35 of the client that is a WatchList.
func informer(client kubernetes.Interface, stop chan struct{}) *counts {
	seen := &counts{}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	pods := factory.Core().V1().Pods().Informer()
	_, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { seen.added.Add(1) },
		UpdateFunc: func(any, any) { seen.updated.Add(1) },
		DeleteFunc: func(any) { seen.deleted.Add(1) },
	})
	check(err)
	factory.Start(stop)
	await(pods.HasSynced)
	return seen
}

func watches(ctx context.Context, client kubernetes.Interface) {
	initial, seconds := true, int64(patience.Seconds())
	watcher, err := client.CoreV1().ConfigMaps(namespace).Watch(ctx, meta.ListOptions{
		SendInitialEvents:    &initial,
		ResourceVersionMatch: meta.ResourceVersionMatchNotOlderThan,
		AllowWatchBookmarks:  true,
		TimeoutSeconds:       &seconds,
		LabelSelector:        "made-by=go-client",
	})
	check(err)
	defer watcher.Stop()
	for added := 0; ; added++ {
		event := <-watcher.ResultChan()
		object := event.Object.(*core.ConfigMap)
		if event.Type == watch.Bookmark {
			expect(added == 5 && object.Annotations[meta.InitialEventsAnnotationKey] == "true", event)
			expect(object.ResourceVersion != "", event)
			break
		}
		expect(event.Type == watch.Added && len(object.BinaryData["bytes"]) == 4, event)
	}
	old, err := client.CoreV1().ConfigMaps(namespace).Watch(ctx, meta.ListOptions{ResourceVersion: "1"})
	if err == nil {
		defer old.Stop()
		event := <-old.ResultChan()
		if event.Type == watch.Error {
			expect(errors.IsResourceExpired(errors.FromObject(event.Object)), event)
		}
	}
}

func leases(ctx context.Context, client kubernetes.Interface) {
	leases := client.CoordinationV1().Leases(namespace)
	holder, now := "go-client", meta.NewMicroTime(time.Unix(1_700_000_000, 123_456_000))
	object := &coordination.Lease{
		ObjectMeta: meta.ObjectMeta{Name: "lease"},
		Spec:       coordination.LeaseSpec{HolderIdentity: &holder, RenewTime: &now},
	}
	created, err := leases.Create(ctx, object, meta.CreateOptions{})
	check(err)
	expect(created.Spec.RenewTime.Time.Equal(now.Time) && created.Spec.AcquireTime == nil, created.Spec)
}

func tokens(ctx context.Context, client kubernetes.Interface) {
	accounts := client.CoreV1().ServiceAccounts(namespace)
	object := &core.ServiceAccount{ObjectMeta: meta.ObjectMeta{Name: "robot"}}
	_, err := accounts.Create(ctx, object, meta.CreateOptions{})
	check(err)
	seconds := int64(3600)
	request := &authentication.TokenRequest{Spec: authentication.TokenRequestSpec{ExpirationSeconds: &seconds}}
	token, err := accounts.CreateToken(ctx, "robot", request, meta.CreateOptions{})
	check(err)
	expect(token.Status.Token != "" && token.Status.ExpirationTimestamp.After(time.Now()), token.Spec)
}

func reviews(ctx context.Context, client kubernetes.Interface) {
	attributes := &authorization.ResourceAttributes{Verb: "get", Resource: "pods", Namespace: namespace}
	self, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorization.SelfSubjectAccessReview{
		Spec: authorization.SelfSubjectAccessReviewSpec{ResourceAttributes: attributes},
	}, meta.CreateOptions{})
	check(err)
	expect(self.Status.Allowed, self)
	other, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorization.SubjectAccessReview{
		Spec: authorization.SubjectAccessReviewSpec{
			ResourceAttributes: attributes, User: "nobody", Groups: []string{"none"},
			Extra: map[string]authorization.ExtraValue{"scopes": {"one", "two"}},
		},
	}, meta.CreateOptions{})
	check(err)
	expect(!other.Status.Allowed && len(other.Spec.Extra["scopes"]) == 2, other)
}

func refusals(ctx context.Context, client kubernetes.Interface) {
	_, err := client.CoreV1().Pods(namespace).Get(ctx, "nowhere", meta.GetOptions{})
	expect(errors.IsNotFound(err), err)
	status := err.(errors.APIStatus).Status()
	expect(status.Details.Name == "nowhere" && status.Details.Kind == "pods" && status.Code == 404, status)
	bad := &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: "Not_A_Name"}}
	_, err = client.CoreV1().ConfigMaps(namespace).Create(ctx, bad, meta.CreateOptions{})
	expect(errors.IsInvalid(err), err)
	expect(len(err.(errors.APIStatus).Status().Details.Causes) > 0, err)
}

// Metadata of built-in kinds, as the garbage collector reads it.
func metadataOnly(ctx context.Context, config *rest.Config) {
	client := metadata.NewForConfigOrDie(config)
	maps := client.Resource(core.SchemeGroupVersion.WithResource("configmaps")).Namespace(namespace)
	list, err := maps.List(ctx, meta.ListOptions{LabelSelector: "made-by=go-client"})
	check(err)
	expect(len(list.Items) == 5 && list.Items[0].Labels["made-by"] == "go-client", list)
	check(maps.Delete(ctx, "map-4", meta.DeleteOptions{}))
	_, err = maps.Get(ctx, "map-4", meta.GetOptions{})
	expect(errors.IsNotFound(err), err)
}

func step(name string, run func()) {
	run()
	fmt.Println("ok", name)
}

func expect(holds bool, instead any) {
	if !holds {
		panic(fmt.Sprintf("unexpected: %+v", instead))
	}
}

func await(holds func() bool) {
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			panic("it did not come true in time")
		}
	}
}
