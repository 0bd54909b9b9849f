package charttest

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
	"sigs.k8s.io/yaml"
)

// The package of Prometheus that runs rules brings the clients of all clouds with it. So only its query engine is used here,
// on series in memory, and what a rule adds to a query is below: `for`.

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
	// The time between two samples, and between two looks at the rules.
	interval = time.Minute
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
func parseSeries(t *testing.T, known map[string]metric, lines []string) map[string]storage.Series {
	t.Helper()
	found := map[string]storage.Series{}
	for _, line := range lines {
		set, values, err := promQL.ParseSeriesDesc(line)
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
		var samples []chunks.Sample
		for at, value := range values {
			if !value.Omitted {
				samples = append(samples, sample{int64(at) * interval.Milliseconds(), value.Value})
			}
		}
		found[set.String()] = storage.NewListSeries(set, samples)
	}
	return found
}

// A sample is a value at a time, in milliseconds.
type sample struct {
	at    int64
	value float64
}

func (s sample) T() int64                      { return s.at }
func (s sample) ST() int64                     { return 0 }
func (s sample) F() float64                    { return s.value }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }

// A selection is the series that match, in the order of their labels.
type selection struct {
	series []storage.Series
	next   int
}

func (s *selection) Next() bool                        { s.next++; return s.next <= len(s.series) }
func (s *selection) At() storage.Series                { return s.series[s.next-1] }
func (s *selection) Err() error                        { return nil }
func (s *selection) Warnings() annotations.Annotations { return nil }

func inMemory(all map[string]storage.Series) storage.Queryable {
	choose := func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
		found := &selection{}
		for _, key := range slices.Sorted(maps.Keys(all)) {
			set := all[key].Labels()
			if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(set.Get(m.Name)) }) {
				found.series = append(found.series, all[key])
			}
		}
		return found
	}
	return &storage.MockQueryable{MockQuerier: &storage.MockQuerier{SelectMockFunction: choose}}
}

// A firing is an alert that fires, and since when.
type firing struct {
	since  time.Duration
	labels labels.Labels
}

// evaluate looks at a rule every minute, as Prometheus does: an alert fires when its expression has had a result with the
// same labels at each look for as long as `for` says.
func evaluate(t *testing.T, engine *promql.Engine, rule monitoring.Rule, all map[string]storage.Series) []firing {
	t.Helper()
	query, err := engine.NewRangeQuery(t.Context(), inMemory(all), nil, rule.Expr.String(), time.UnixMilli(0), time.UnixMilli(until.Milliseconds()), interval)
	if err != nil {
		t.Fatalf("%s: %v", rule.Alert, err)
	}
	defer query.Close()
	matrix, err := query.Exec(context.Background()).Matrix()
	if err != nil {
		t.Fatalf("%s: %v", rule.Alert, err)
	}
	var pending model.Duration
	if rule.For != nil {
		if pending, err = model.ParseDuration(string(*rule.For)); err != nil {
			t.Fatalf("%s: %v", rule.Alert, err)
		}
	}
	var found []firing
	for _, result := range matrix {
		since, last := int64(0), int64(-1)
		for _, point := range result.Floats {
			if last < 0 || point.T-last > interval.Milliseconds() {
				since = point.T
			}
			last = point.T
			if point.T-since >= time.Duration(pending).Milliseconds() {
				found = append(found, firing{time.Duration(point.T) * time.Millisecond, result.Metric})
				break
			}
		}
	}
	return found
}

func newEngine() *promql.Engine {
	return promql.NewEngine(promql.EngineOpts{MaxSamples: 1_000_000, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, Parser: promQL})
}

func TestNoAlertFiresWhenAllIsWell(t *testing.T) {
	engine, all := newEngine(), parseSeries(t, knownMetrics(t), readConditions(t).Well)
	for name, rule := range alerts(t) {
		for _, fires := range evaluate(t, engine, rule, all) {
			t.Errorf("%s fires after %v: %v", name, fires.since, fires.labels)
		}
	}
}

// TestEachAlertFiresOnItsConditionOnly makes each condition in a system that is well, and what comes close to it.
func TestEachAlertFiresOnItsConditionOnly(t *testing.T) {
	engine, known, rules := newEngine(), knownMetrics(t), alerts(t)
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

func checkFirings(t *testing.T, engine *promql.Engine, rules map[string]monitoring.Rule, name string, made change, all map[string]storage.Series) {
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
		if err != nil || found[0].since-begins != after {
			t.Errorf("%s fires after %v, and not after %s", what, found[0].since-begins, made.Fires)
		}
		for label, value := range made.Labels {
			if got := found[0].labels.Get(label); got != value {
				t.Errorf("%s has %s=%q instead of %q", what, label, got, value)
			}
		}
	}
}

func promqlSample(value float64) promql.Sample { return promql.Sample{F: value} }
