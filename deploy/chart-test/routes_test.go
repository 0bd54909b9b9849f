package charttest

import (
	"slices"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
)

const bodySize = "nginx.ingress.kubernetes.io/proxy-body-size"

// annotationsOfIngress renders an ingress with values under gateway.ingress, and with lines of everturn.toml.
func annotationsOfIngress(t *testing.T, ingress, config string) map[string]string {
	t.Helper()
	rendered, err := render(t, parseValues(t, "gateway: {ingress: {enabled: true, "+ingress+"}}\nconfig: |\n"+
		"  [auth]\n  required = true\n  [gateway]\n  trusted_proxies = [\"10.0.0.0/8\"]\n"+config))
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range decodeAll(t, rendered) {
		if ingress, is := object.(*networking.Ingress); is {
			return ingress.Annotations
		}
	}
	t.Fatal("there is no ingress")
	return nil
}

func TestAnIngressTakesTheLargestFile(t *testing.T) {
	for _, given := range []struct{ ingress, config, expect string }{
		{"controller: nginx", "", "11m"},
		{"controller: nginx", "  [blobs]\n  file_bytes = 52428800\n", "51m"},
		{"controller: nginx", "  [blobs]\n  file_bytes = 1000\n  [limits]\n  body_bytes = 3000000\n", "4m"},
		{"controller: nginx, annotations: {" + bodySize + ": 1g}", "", "1g"},
		{"controller: alb", "", ""},
		{"className: nginx", "", ""},
	} {
		if got := annotationsOfIngress(t, given.ingress, given.config)[bodySize]; got != given.expect {
			t.Errorf("%s %q: proxy-body-size is %q instead of %q", given.ingress, given.config, got, given.expect)
		}
	}
}

func TestContainersOfYoursAreInThePodsOfTheirRole(t *testing.T) {
	rendered, err := render(t, parseValues(t, `
gateway: {sidecars: [{name: proxy, image: "proxy:1"}]}
workers:
  initContainers: [{name: wait, image: "wait:1"}]
  pools: {plain: {initContainers: []}, waiting: {}}
`))
	if err != nil {
		t.Fatal(err)
	}
	names := func(containers []core.Container) string {
		var found []string
		for _, container := range containers {
			found = append(found, container.Name)
		}
		return strings.Join(found, " ")
	}
	var found []string
	for _, load := range workloads(decodeAll(t, rendered)) {
		if load.serves {
			found = append(found, load.name+": "+names(load.pod.Spec.InitContainers)+"|"+names(load.pod.Spec.Containers))
		}
	}
	slices.Sort(found)
	expect := []string{
		"everturn-gateway: |everturn proxy", "everturn-worker-plain: |everturn", "everturn-worker-waiting: wait|everturn",
	}
	if !slices.Equal(found, expect) {
		t.Errorf("the containers are %q instead of %q", found, expect)
	}
}

// The pod of `helm test` asks the Service of the gateways, and a network policy lets the pod through.
func TestTheTestReachesTheGateways(t *testing.T) {
	objects := decodeAll(t, renderCase(t, "everything"))
	at := slices.IndexFunc(objects, func(object any) bool { _, is := object.(*core.Pod); return is })
	pod := objects[at].(*core.Pod)
	if pod.Annotations["helm.sh/hook"] != "test" {
		t.Errorf("the pod is no test: %v", pod.Annotations)
	}
	if args := pod.Spec.Containers[0].Args; !slices.Equal(args, []string{"health", "http://agents-eu-gateway:8080"}) {
		t.Errorf("the test runs %v", args)
	}
	for _, object := range objects {
		policy, is := object.(*networking.NetworkPolicy)
		if !is || policy.Name != "agents-eu-gateway" {
			continue
		}
		from := policy.Spec.Ingress[0].From
		reaches := slices.ContainsFunc(from, func(peer networking.NetworkPolicyPeer) bool {
			return peer.NamespaceSelector == nil && selects(peer.PodSelector, pod.Labels)
		})
		if !reaches {
			t.Errorf("the policy of the gateways lets no test through: %v", from)
		}
	}
}
