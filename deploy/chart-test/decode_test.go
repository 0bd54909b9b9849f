package charttest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubejson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// The type of each kind of object that the chart makes.
var kinds = map[string]func() any{
	"apps/v1 Deployment":                      func() any { return new(apps.Deployment) },
	"autoscaling/v2 HorizontalPodAutoscaler":  func() any { return new(autoscaling.HorizontalPodAutoscaler) },
	"batch/v1 CronJob":                        func() any { return new(batch.CronJob) },
	"batch/v1 Job":                            func() any { return new(batch.Job) },
	"gateway.networking.k8s.io/v1 HTTPRoute":  func() any { return new(httpRoute) },
	"keda.sh/v1alpha1 ScaledObject":           func() any { return new(scaledObject) },
	"keda.sh/v1alpha1 TriggerAuthentication":  func() any { return new(triggerAuthentication) },
	"monitoring.coreos.com/v1 PrometheusRule": func() any { return new(monitoring.PrometheusRule) },
	"monitoring.coreos.com/v1 ServiceMonitor": func() any { return new(monitoring.ServiceMonitor) },
	"networking.k8s.io/v1 Ingress":            func() any { return new(networking.Ingress) },
	"networking.k8s.io/v1 NetworkPolicy":      func() any { return new(networking.NetworkPolicy) },
	"policy/v1 PodDisruptionBudget":           func() any { return new(policy.PodDisruptionBudget) },
	"temporal.io/v1alpha1 Connection":         func() any { return new(connection) },
	"temporal.io/v1alpha1 WorkerDeployment":   func() any { return new(workerDeployment) },
	"v1 Pod":                                  func() any { return new(core.Pod) },
	"v1 ConfigMap":                            func() any { return new(core.ConfigMap) },
	"v1 Service":                              func() any { return new(core.Service) },
	"v1 ServiceAccount":                       func() any { return new(core.ServiceAccount) },
}

// decode reads an object into its type. A field that the type does not have, in whatever case it is written, is an error, and
// so is one that stands twice.
func decode(text string) (any, error) {
	asJSON, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return nil, err
	}
	return decodeJSON(asJSON)
}

func decodeJSON(asJSON []byte) (any, error) {
	var kind meta.TypeMeta
	if err := kubejson.UnmarshalCaseSensitivePreserveInts(asJSON, &kind); err != nil {
		return nil, err
	}
	name := kind.APIVersion + " " + kind.Kind
	make, known := kinds[name]
	if !known {
		return nil, fmt.Errorf("no type is known for %s", name)
	}
	object := make()
	unknown, err := kubejson.UnmarshalStrict(asJSON, object)
	return object, errors.Join(append(unknown, err)...)
}

// decodeAll decodes a rendering, and fails the test with every object that cannot be decoded.
func decodeAll(t *testing.T, found rendering) []any {
	t.Helper()
	var objects []any
	for _, document := range found.documents {
		object, err := decode(document.text)
		if err != nil {
			t.Errorf("%s: %v", document.template, err)
			continue
		}
		objects = append(objects, object)
	}
	return objects
}

func TestObjectsAreOfTheKubernetesAPI(t *testing.T) {
	made := map[string]bool{}
	for name := range cases {
		for _, object := range decodeAll(t, renderCase(t, name)) {
			made[fmt.Sprintf("%T", object)] = true
		}
	}
	// A kind that no case makes is not tested.
	for kind, make := range kinds {
		if !made[fmt.Sprintf("%T", make())] {
			t.Errorf("no case makes a %s", kind)
		}
	}
}

func TestNoTwoObjectsHaveOneName(t *testing.T) {
	for name := range cases {
		seen := map[string]string{}
		for _, document := range renderCase(t, name).documents {
			var object struct {
				meta.TypeMeta   `json:",inline"`
				meta.ObjectMeta `json:"metadata"`
			}
			if err := yaml.Unmarshal([]byte(document.text), &object); err != nil {
				t.Fatal(err)
			}
			key := object.Kind + "/" + object.Name
			if before, twice := seen[key]; twice {
				t.Errorf("%s: %s is in %s and %s", name, key, before, document.template)
			}
			seen[key] = document.template
			if len(object.Name) > 63 {
				t.Errorf("%s: the name %s is longer than 63", name, object.Name)
			}
		}
	}
}

// Maps whose keys are not fields. A key with a slash is one of a label, wherever it is.
var free = []string{"annotations", "labels", "matchLabels", "nodeSelector", "data", "limits", "requests"}

// TestATypoInAnyFieldIsFound mistypes each field of each object, one at a time.
func TestATypoInAnyFieldIsFound(t *testing.T) {
	count := 0
	for _, name := range []string{"everything", "pools", "controller"} {
		for _, document := range renderCase(t, name).documents {
			var object map[string]any
			if err := yaml.Unmarshal([]byte(document.text), &object); err != nil {
				t.Fatal(err)
			}
			eachField(object, "", func(path string, parent map[string]any, key string) {
				if strings.Contains(key, "/") {
					return
				}
				for _, typo := range []string{key + "s", strings.ToUpper(key[:1]) + key[1:]} {
					if typo == key {
						continue
					}
					if mistyped(t, object, parent, key, typo) == nil {
						t.Errorf("%s, %s: %s may be written %s", name, document.template, path, typo)
					}
					count++
				}
			})
		}
	}
	if count < 1000 {
		t.Errorf("only %d fields were mistyped", count)
	}
}

// mistyped decodes the object with one key renamed, and puts the key back.
func mistyped(t *testing.T, object, parent map[string]any, key, typo string) error {
	t.Helper()
	value := parent[key]
	delete(parent, key)
	parent[typo] = value
	asJSON, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	delete(parent, typo)
	parent[key] = value
	_, err = decode(string(asJSON))
	return err
}

func eachField(value any, path string, visit func(path string, parent map[string]any, key string)) {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			here := strings.TrimPrefix(path+"."+key, ".")
			visit(here, value, key)
			if !slices.Contains(free, key) {
				eachField(value[key], here, visit)
			}
		}
	case []any:
		for _, item := range value {
			eachField(item, path, visit)
		}
	}
}
