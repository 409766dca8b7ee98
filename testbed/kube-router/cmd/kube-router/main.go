// Command kube-router enforces NetworkPolicies in the network namespace that it is started in: the
// controller of kube-router alone, without its routes and Services. It needs iptables and ipset in
// its PATH, and the kernel's br_netfilter where pods share a bridge.
package main

import (
	"flag"
	"log"
	"sync"
	"time"

	"github.com/cloudnativelabs/kube-router/v2/pkg/controllers/netpol"
	"github.com/cloudnativelabs/kube-router/v2/pkg/healthcheck"
	"github.com/cloudnativelabs/kube-router/v2/pkg/options"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// heartbeats is more than one round of the controller sends.
const heartbeats = 10

// resync is the time after which all rules are written again; every change is written at once.
const resync = time.Minute

func main() {
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig of a user that may list and watch pods, namespaces, nodes and NetworkPolicies")
	node := flag.String("hostname-override", "", "name of the node")
	services := flag.String("service-cluster-ip-range", "", "range of the cluster's Services")
	flag.Parse()
	if err := run(*kubeconfig, *node, *services); err != nil {
		log.Fatal(err)
	}
}

func run(kubeconfig, node, services string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	settings := options.NewKubeRouterConfig()
	settings.ClusterIPCIDRs = []string{services}
	settings.EnableIPv4 = true
	settings.EnableIPv6 = false
	settings.HostnameOverride = node
	settings.IPTablesSyncPeriod = resync

	forever := make(chan struct{})
	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods().Informer()
	namespaces := factory.Core().V1().Namespaces().Informer()
	policies := factory.Networking().V1().NetworkPolicies().Informer()
	factory.Start(forever)
	factory.WaitForCacheSync(forever)

	tables, sets, err := netpol.NewIPTablesHandlers(settings)
	if err != nil {
		return err
	}
	var oneAtATime sync.Mutex
	controller, err := netpol.NewNetworkPolicyController(
		client, settings, pods, policies, namespaces, &oneAtATime, tables, sets)
	if err != nil {
		return err
	}
	for informer, handler := range map[cache.SharedIndexInformer]cache.ResourceEventHandler{
		pods:       controller.PodEventHandler,
		namespaces: controller.NamespaceEventHandler,
		policies:   controller.NetworkPolicyEventHandler,
	} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return err
		}
	}
	// Nobody asks whether the controller is alive, but it waits until its heartbeats are read.
	beats := make(chan *healthcheck.ControllerHeartbeat, heartbeats)
	go func() {
		for range beats {
		}
	}()
	var running sync.WaitGroup
	running.Add(1)
	controller.Run(beats, forever, &running)
	return nil
}
