package charttest

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"sigs.k8s.io/yaml"

	"everturn/deploy/chart-test/alerting"
)

// Conditions are what conditions.yaml holds.
type conditions struct {
	Well   []string            `json:"well"`
	Alerts map[string][]change `json:"alerts"`
}

// A change is what becomes different from a system that is well.
type change struct {
	Makes  []string          `json:"makes"`
	Fires  string            `json:"fires"`
	Labels map[string]string `json:"labels"`
	Also   []string          `json:"also"`
}

const (
	// When each condition begins, so that all ranges are full.
	begins = 2 * time.Hour
	until  = 5 * time.Hour
)

func readConditions(t *testing.T) conditions {
	t.Helper()
	var found conditions
	if err := yaml.UnmarshalStrict([]byte(read(t, "conditions.yaml")), &found); err != nil {
		t.Fatal(err)
	}
	return found
}

// parseSeries reads series in the notation of promtool. They get the labels that all of them share.
func parseSeries(t *testing.T, known map[string]metric, lines []string) alerting.Series {
	t.Helper()
	found := alerting.Series{}
	for _, line := range lines {
		set, values, err := alerting.Parser.ParseSeriesDesc(line)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		set = labels.NewBuilder(set).Set("job", "everturn").Set("namespace", "agents").Labels()
		described, is := series(known, set.Get(labels.MetricName))
		if !is {
			t.Errorf("%s: there is no such metric", line)
		}
		set.Range(func(label labels.Label) {
			if label.Name != labels.MetricName && !slices.Contains(described.labels, label.Name) {
				t.Errorf("%s: it has no label %s", line, label.Name)
			}
		})
		found.Begin(set)
		for minute, value := range values {
			if !value.Omitted {
				found.Add(set, minute, value.Value)
			}
		}
	}
	return found
}

// evaluate says when a rule fires on these series.
func evaluate(t *testing.T, engine *promql.Engine, rule monitoring.Rule, all alerting.Series) []alerting.Firing {
	t.Helper()
	found, err := alerting.Evaluate(engine, rule, all, until)
	if err != nil {
		t.Fatalf("%s: %v", rule.Alert, err)
	}
	return found
}

func TestNoAlertFiresWhenAllIsWell(t *testing.T) {
	engine, all := alerting.NewEngine(), parseSeries(t, knownMetrics(t), readConditions(t).Well)
	for name, rule := range alerts(t) {
		for _, fires := range evaluate(t, engine, rule, all) {
			t.Errorf("%s fires after %v: %v", name, fires.Since, fires.Labels)
		}
	}
}

// TestEachAlertFiresOnItsConditionOnly makes each condition in a system that is well, and what comes close to it.
func TestEachAlertFiresOnItsConditionOnly(t *testing.T) {
	engine, known, rules := alerting.NewEngine(), knownMetrics(t), alerts(t)
	given := readConditions(t)
	for name := range rules {
		fires := func(of change) bool { return of.Fires != "" }
		if !slices.ContainsFunc(given.Alerts[name], fires) {
			t.Errorf("no condition makes %s fire", name)
		}
		if !slices.ContainsFunc(given.Alerts[name], func(of change) bool { return !fires(of) }) {
			t.Errorf("nothing comes close to %s", name)
		}
	}
	for name, changes := range given.Alerts {
		if _, is := rules[name]; !is {
			t.Errorf("there is no alert %s", name)
		}
		for _, made := range changes {
			all := parseSeries(t, known, given.Well)
			maps.Copy(all, parseSeries(t, known, made.Makes))
			checkFirings(t, engine, rules, name, made, all)
		}
	}
}

func checkFirings(t *testing.T, engine *promql.Engine, rules map[string]monitoring.Rule, name string, made change, all alerting.Series) {
	t.Helper()
	what := name + ", with " + strings.Join(made.Makes, ", ")
	for other, rule := range rules {
		found := evaluate(t, engine, rule, all)
		wanted := other == name && made.Fires != "" || slices.Contains(made.Also, other)
		if (len(found) > 0) != wanted {
			t.Errorf("%s: it is %t that %s fires: %v", what, len(found) > 0, other, found)
		}
		if other != name || len(found) == 0 {
			continue
		}
		after, err := time.ParseDuration(made.Fires)
		if err != nil || found[0].Since-begins != after {
			t.Errorf("%s fires after %v, and not after %s", what, found[0].Since-begins, made.Fires)
		}
		for label, value := range made.Labels {
			if got := found[0].Labels.Get(label); got != value {
				t.Errorf("%s has %s=%q instead of %q", what, label, got, value)
			}
		}
	}
}
