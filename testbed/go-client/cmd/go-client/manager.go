package main

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/go-logr/logr"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	managed   = "managed"
	finalizer = "go.example.com/silence"
	lease     = "bells"
)

// Bell is a kind of the program's own.
type Bell struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty"`
	Spec            BellSpec   `json:"spec,omitempty"`
	Status          BellStatus `json:"status,omitempty"`
}

// BellSpec is what is wanted of a bell.
type BellSpec struct {
	Tone string `json:"tone"`
}

// BellStatus is what was done for a bell.
type BellStatus struct {
	ObservedGeneration int64            `json:"observedGeneration,omitempty"`
	Conditions         []meta.Condition `json:"conditions,omitempty"`
}

// BellList is a list of bells.
type BellList struct {
	meta.TypeMeta `json:",inline"`
	meta.ListMeta `json:"metadata,omitempty"`
	Items         []Bell `json:"items"`
}

// DeepCopyObject copies a bell.
func (b *Bell) DeepCopyObject() runtime.Object {
	copied := *b
	b.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	copied.Status.Conditions = append([]meta.Condition(nil), b.Status.Conditions...)
	return &copied
}

// DeepCopyObject copies a list of bells.
func (l *BellList) DeepCopyObject() runtime.Object {
	copied := *l
	copied.Items = nil
	for i := range l.Items {
		copied.Items = append(copied.Items, *l.Items[i].DeepCopyObject().(*Bell))
	}
	return &copied
}

// Keeps a ConfigMap for each bell, and another one that only the finalizer removes.
type reconciler struct {
	client.Client
	types    *runtime.Scheme
	recorder events.EventRecorder
	identity string
	calls    atomic.Int64
}

func silence(bell *Bell) *core.ConfigMap {
	return &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Namespace: bell.Namespace, Name: bell.Name + "-silence"}}
}

// Reconcile does for one bell what it asks for.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	r.calls.Add(1)
	bell := &Bell{}
	if err := r.Get(ctx, request.NamespacedName, bell); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !bell.DeletionTimestamp.IsZero() {
		if err := client.IgnoreNotFound(r.Delete(ctx, silence(bell))); err != nil {
			return ctrl.Result{}, err
		}
		if controllerutil.RemoveFinalizer(bell, finalizer) {
			return ctrl.Result{}, client.IgnoreNotFound(r.Update(ctx, bell))
		}
		return ctrl.Result{}, nil
	}
	if controllerutil.AddFinalizer(bell, finalizer) {
		return ctrl.Result{}, r.Update(ctx, bell)
	}
	if err := r.Create(ctx, silence(bell)); err != nil && !errors.IsAlreadyExists(err) {
		return ctrl.Result{}, err
	}
	owned := &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Namespace: bell.Namespace, Name: bell.Name}}
	done, err := controllerutil.CreateOrUpdate(ctx, r.Client, owned, func() error {
		owned.Data = map[string]string{"tone": bell.Spec.Tone, "generation": strconv.FormatInt(bell.Generation, 10)}
		return controllerutil.SetControllerReference(bell, owned, r.types)
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	if done != controllerutil.OperationResultNone {
		r.recorder.Eventf(bell, nil, core.EventTypeNormal, "Tuned", "Tune", "%s has the tone %s", bell.Name, bell.Spec.Tone)
	}
	if bell.Status.ObservedGeneration == bell.Generation {
		return ctrl.Result{}, nil
	}
	before := bell.DeepCopyObject().(*Bell)
	bell.Status.ObservedGeneration = bell.Generation
	bell.Status.Conditions = []meta.Condition{{
		Type: "Ready", Status: meta.ConditionTrue, Reason: "Tuned", Message: "by " + r.identity,
		ObservedGeneration: bell.Generation, LastTransitionTime: meta.Now(),
	}}
	return ctrl.Result{}, r.Status().Patch(ctx, bell, client.MergeFrom(before))
}

// One manager with its controller, which runs until it is told to stop.
type running struct {
	reconciler *reconciler
	elected    <-chan struct{}
	cancel     context.CancelFunc
	ended      chan error
}

func startManager(ctx context.Context, settings *rest.Config, types *runtime.Scheme, identity string) *running {
	manager, err := ctrl.NewManager(rest.CopyConfig(settings), ctrl.Options{
		Scheme:                        types,
		LeaderElection:                true,
		LeaderElectionID:              lease,
		LeaderElectionNamespace:       managed,
		LeaderElectionReleaseOnCancel: true,
		Metrics:                       server.Options{BindAddress: "0"},
		// Both managers live in this process.
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	check(err)
	ours := &reconciler{
		Client: manager.GetClient(), types: types, recorder: manager.GetEventRecorder(identity), identity: identity,
	}
	check(ctrl.NewControllerManagedBy(manager).For(&Bell{}).Owns(&core.ConfigMap{}).Complete(ours))
	ctx, cancel := context.WithCancel(ctx)
	one := &running{reconciler: ours, elected: manager.Elected(), cancel: cancel, ended: make(chan error, 1)}
	go func() { one.ended <- manager.Start(ctx) }()
	return one
}

func (r *running) leads() bool {
	select {
	case <-r.elected:
		return true
	default:
		return false
	}
}

// Runs two managers as people write them with controller-runtime. Prints one line for each step that went well.
func manage(kubeconfig string) {
	log.SetLogger(logr.Discard())
	settings, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	check(err)
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	defer cancel()
	types := knownTypes()
	version := schema.GroupVersion{Group: bells.Group, Version: bells.Version}
	types.AddKnownTypes(version, &Bell{}, &BellList{})
	meta.AddToGroupVersion(types, version)
	direct, err := client.New(settings, client.Options{Scheme: types})
	check(err)
	check(direct.Create(ctx, &core.Namespace{ObjectMeta: meta.ObjectMeta{Name: managed}}))
	define(ctx, dynamic.NewForConfigOrDie(settings))

	first := startManager(ctx, settings, types, "first")
	await(first.leads)
	second := startManager(ctx, settings, types, "second")
	key := client.ObjectKey{Namespace: managed, Name: "big"}
	get := func(into client.Object, key client.ObjectKey) bool {
		err := direct.Get(ctx, key, into)
		expect(err == nil || errors.IsNotFound(err), err)
		return err == nil
	}
	tuned := func(bell *Bell, by string) bool {
		return get(bell, key) && bell.Status.ObservedGeneration == bell.Generation &&
			len(bell.Status.Conditions) == 1 && bell.Status.Conditions[0].Message == "by "+by
	}
	bell, owned := &Bell{}, &core.ConfigMap{}

	step("reconciled", func() {
		made := &Bell{ObjectMeta: meta.ObjectMeta{Namespace: managed, Name: "big"}, Spec: BellSpec{Tone: "c"}}
		check(direct.Create(ctx, made))
		await(func() bool { return tuned(bell, "first") })
		expect(controllerutil.ContainsFinalizer(bell, finalizer) && bell.Generation == 1, bell)
		expect(get(owned, key) && owned.Data["tone"] == "c" && meta.IsControlledBy(owned, bell), owned)
		expect(second.reconciler.calls.Load() == 0 && !second.leads(), "the second waits")
	})
	step("owned object", func() {
		before := owned.UID
		check(direct.Delete(ctx, owned))
		await(func() bool { return get(owned, key) && owned.UID != before })
		owned.Data["tone"] = "wrong"
		check(direct.Update(ctx, owned))
		await(func() bool { return get(owned, key) && owned.Data["tone"] == "c" })
	})
	step("generation", func() {
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"tone":"d"}}`))
		check(direct.Patch(ctx, bell, patch))
		await(func() bool { return tuned(bell, "first") && bell.Generation == 2 })
		expect(get(owned, key) && owned.Data["generation"] == "2" && owned.Data["tone"] == "d", owned)
	})
	step("events", func() {
		await(func() bool {
			told := &core.EventList{}
			check(direct.List(ctx, told, client.InNamespace(managed)))
			for _, event := range told.Items {
				if event.InvolvedObject.UID == bell.UID && event.Reason == "Tuned" && event.ReportingController == "first" {
					return true
				}
			}
			return false
		})
	})
	step("leadership", func() {
		first.cancel()
		check(<-first.ended)
		await(second.leads)
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"tone":"e"}}`))
		check(direct.Patch(ctx, bell, patch))
		await(func() bool { return tuned(bell, "second") && bell.Generation == 3 })
	})
	step("finalizer", func() {
		kept := silence(bell)
		expect(get(kept, client.ObjectKeyFromObject(kept)), "the finalizer's map")
		check(direct.Delete(ctx, bell))
		await(func() bool { return !get(bell, key) })
		expect(!get(kept, client.ObjectKeyFromObject(kept)), "the finalizer removed it before")
		await(func() bool { return !get(owned, key) })
	})
	second.cancel()
	check(<-second.ended)
	fmt.Printf("%d and %d calls\n", first.reconciler.calls.Load(), second.reconciler.calls.Load())
}
