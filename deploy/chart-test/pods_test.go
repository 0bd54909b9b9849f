package charttest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	autoscaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// A report collects what is wrong with a rendering.
type report []string

func (r *report) require(holds bool, format string, arguments ...any) {
	if !holds {
		*r = append(*r, fmt.Sprintf(format, arguments...))
	}
}

// problems checks what the types cannot: what each pod must have, and that objects name what exists.
func problems(objects []any) []string {
	var found report
	loads := workloads(objects)
	for _, load := range loads {
		checkPod(&found, load)
		if load.selector != nil {
			found.require(selects(load.selector, load.pod.Labels), "%s: the selector does not match its own pods", load.name)
		}
	}
	for _, object := range objects {
		checkReferences(&found, object, objects, loads)
	}
	return found
}

func checkPod(found *report, load workload) {
	spec := load.pod.Spec
	found.require(isFalse(spec.AutomountServiceAccountToken), "%s: has a token of the Kubernetes API", load.name)
	found.require(isFalse(spec.EnableServiceLinks), "%s: gets variables of Services", load.name)
	security := spec.SecurityContext
	if security == nil {
		*found = append(*found, load.name+": the pod has no securityContext")
	} else {
		found.require(isTrue(security.RunAsNonRoot), "%s: may run as root", load.name)
		found.require(security.RunAsUser != nil && *security.RunAsUser > 0, "%s: has no numeric user", load.name)
		profile := security.SeccompProfile
		found.require(profile != nil && profile.Type == core.SeccompProfileTypeRuntimeDefault, "%s: has no seccomp profile", load.name)
	}
	volumes := map[string]bool{}
	for _, volume := range spec.Volumes {
		volumes[volume.Name] = true
		if volume.EmptyDir != nil {
			found.require(volume.EmptyDir.SizeLimit != nil, "%s: volume %s has no limit", load.name, volume.Name)
		}
	}
	mounted := map[string]bool{}
	for at, container := range spec.Containers {
		// A sidecar has the settings that the values give.
		if at == 0 {
			checkContainer(found, load, container)
		}
		for _, mount := range container.VolumeMounts {
			mounted[mount.Name] = true
			found.require(volumes[mount.Name], "%s: there is no volume %s", load.name, mount.Name)
		}
	}
	for name := range volumes {
		found.require(mounted[name], "%s: nobody mounts volume %s", load.name, name)
	}
}

func checkContainer(found *report, load workload, container core.Container) {
	requests, limits := container.Resources.Requests, container.Resources.Limits
	found.require(!requests.Cpu().IsZero() && !requests.Memory().IsZero(), "%s: asks for no CPU or memory", load.name)
	found.require(!limits.Memory().IsZero(), "%s: has no limit of memory", load.name)
	security := container.SecurityContext
	if security == nil {
		*found = append(*found, load.name+": the container has no securityContext")
	} else {
		found.require(isTrue(security.ReadOnlyRootFilesystem), "%s: may write to its root file system", load.name)
		found.require(isFalse(security.AllowPrivilegeEscalation), "%s: may get more privileges", load.name)
		drops := security.Capabilities != nil && slices.Contains(security.Capabilities.Drop, "ALL")
		found.require(drops, "%s: keeps capabilities", load.name)
	}
	seen := map[string]bool{}
	for _, variable := range container.Env {
		found.require(!seen[variable.Name], "%s: %s is set twice", load.name, variable.Name)
		seen[variable.Name] = true
	}
	found.require(container.Image != "" && !strings.HasSuffix(container.Image, ":latest"), "%s: the image is not pinned", load.name)
	if load.serves {
		found.require(container.StartupProbe != nil, "%s: has no startup probe", load.name)
		found.require(container.ReadinessProbe != nil, "%s: has no readiness probe", load.name)
		found.require(container.LivenessProbe != nil, "%s: has no liveness probe", load.name)
	}
	for _, probe := range []*core.Probe{container.StartupProbe, container.ReadinessProbe, container.LivenessProbe} {
		if probe != nil {
			port := probe.HTTPGet.Port.StrVal
			found.require(hasPort(container, port), "%s: a probe asks on port %q, which there is not", load.name, port)
		}
	}
}

func checkReferences(found *report, object any, objects []any, loads []workload) {
	named := func(name string) bool {
		return slices.ContainsFunc(loads, func(load workload) bool { return load.serves && load.name == name })
	}
	served := map[string]bool{}
	for _, other := range objects {
		if service, is := other.(*core.Service); is {
			for _, port := range service.Spec.Ports {
				served[fmt.Sprintf("%s:%d", service.Name, port.Port)] = true
			}
		}
	}
	switch object := object.(type) {
	case *policy.PodDisruptionBudget:
		some := slices.ContainsFunc(loads, func(load workload) bool { return selects(object.Spec.Selector, load.pod.Labels) })
		found.require(some, "budget %s: protects no pod", object.Name)
	case *autoscaling.HorizontalPodAutoscaler:
		found.require(named(object.Spec.ScaleTargetRef.Name), "autoscaler %s: scales nothing", object.Name)
		found.require(len(object.Spec.Metrics) > 0, "autoscaler %s: has no metric", object.Name)
	case *scaledObject:
		found.require(named(object.Spec.ScaleTargetRef.Name), "scaled object %s: scales nothing", object.Name)
	case *httpRoute:
		for _, rule := range object.Spec.Rules {
			for _, backend := range rule.BackendRefs {
				found.require(served[fmt.Sprintf("%s:%d", backend.Name, backend.Port)], "route %s: no Service has %s:%d", object.Name, backend.Name, backend.Port)
			}
		}
	case *core.Service:
		selector := labels.SelectorFromSet(object.Spec.Selector)
		count := 0
		for _, load := range loads {
			if !selector.Matches(labels.Set(load.pod.Labels)) {
				continue
			}
			count++
			for _, port := range object.Spec.Ports {
				name := port.TargetPort.StrVal
				found.require(hasPort(load.pod.Spec.Containers[0], name), "service %s: %s has no port %s", object.Name, load.name, name)
			}
		}
		found.require(count > 0, "service %s: selects no pod", object.Name)
	}
}

func hasPort(container core.Container, name string) bool {
	return slices.ContainsFunc(container.Ports, func(port core.ContainerPort) bool { return port.Name == name })
}

func selects(selector *meta.LabelSelector, set map[string]string) bool {
	parsed, err := meta.LabelSelectorAsSelector(selector)
	return err == nil && parsed.Matches(labels.Set(set))
}

func isTrue(value *bool) bool  { return value != nil && *value }
func isFalse(value *bool) bool { return value != nil && !*value }

func TestPodsAreBoundedAndConfined(t *testing.T) {
	for name := range cases {
		for _, problem := range problems(decodeAll(t, renderCase(t, name))) {
			t.Errorf("%s: %s", name, problem)
		}
	}
}

// What is missing is found: each line is taken out of the rendered objects, or replaced.
func TestWhatIsMissingIsFound(t *testing.T) {
	for _, broken := range []struct{ old, new, expect string }{
		{"limits:\n              memory: 1Gi\n            ", "", "has no limit of memory"},
		{"              cpu: 250m\n", "", "asks for no CPU or memory"},
		{"            readOnlyRootFilesystem: true\n", "", "may write to its root file system"},
		{"            allowPrivilegeEscalation: false\n", "", "may get more privileges"},
		{"              - ALL\n", "              - CHOWN\n", "keeps capabilities"},
		{"        runAsNonRoot: true\n", "", "may run as root"},
		{"        runAsUser: 65532\n", "        runAsUser: 0\n", "has no numeric user"},
		{"          type: RuntimeDefault\n", "          type: Unconfined\n", "has no seccomp profile"},
		{"            sizeLimit: 256Mi\n", "            medium: \"\"\n", "volume tmp has no limit"},
		{"              port: health\n", "              port: healthy\n", "which there is not"},
		{"automountServiceAccountToken: false", "automountServiceAccountToken: true", "has a token"},
		{"targetPort: http\n", "targetPort: web\n", "has no port web"},
		{"image: everturn:0.1.0", "image: everturn:latest", "is not pinned"},
	} {
		rendered := renderCase(t, "minimal")
		changed := false
		for at, document := range rendered.documents {
			text := strings.Replace(document.text, broken.old, broken.new, 1)
			changed = changed || text != document.text
			rendered.documents[at].text = text
		}
		if !changed {
			t.Errorf("there is no %q to replace", broken.old)
			continue
		}
		all := strings.Join(problems(decodeAll(t, rendered)), "\n")
		if !strings.Contains(all, broken.expect) {
			t.Errorf("%q for %q is not found to be wrong: %q", broken.new, broken.old, all)
		}
	}
}
